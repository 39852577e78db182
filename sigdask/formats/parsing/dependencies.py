"""Dependency parses: CoNLL-U, scored as in the CoNLL 2018 shared task, and CoNLL-X, word by word.

Items are the gold sentences. Each word, token and sentence of a system counts for the gold sentence in which its first
character lies. So sums over items are the counts of the whole files, however the system divides the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.factors import Codes
from sigdask.counts.fields import Array, Bools, ComputedFields
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.parsing import scoring, treebank
from sigdask.formats.parsing.scoring import CONLLX_METRICS, LABELS, METRICS, ScoredSystem
from sigdask.formats.parsing.treebank import Integers, Treebank
from sigdask.formats.reading.alignment import build_sentence_groups
from sigdask.formats.reading.files import read_head_lines
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.types_of_gold import check_types
from sigdask.interface import spell
from sigdask.metrics.base import Spec
from sigdask.metrics.parsing import WORD_METRICS
from sigdask.text import format_count

UNIVERSAL_TAGS = frozenset({
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT",
    "SCONJ", "SYM", "VERB", "X", "_",
})  # fmt: skip
"""Universal parts of speech of CoNLL-U, and the mark for none."""

COUNTED = ("aligned", "system", "gold")
FIELD = re.compile(r"(correct|aligned|system|gold)\[(\w+)\](?:\[(\w+)=(.*)\])?")


@dataclass(frozen=True, eq=False)
class ParseFields(ComputedFields):
    """Fields of parses, summed by gold sentence on access.

    `correct[METRIC]` counts right words (tokens, sentences); `gold[UNIT]` and `system[UNIT]` count what there is and
    `aligned[UNIT]` the gold words that are aligned; a unit is tokens, sentences, words or content (content words).
    `[relation=R]`, `[upos=T]` or `[xpos=T]` after it restricts words to those of one relation or tag.

    Attributes
    ----------
    gold : Treebank
        The gold standard.
    is_scored : bool array, shape (n_words,)
        Whether each gold word is scored.
    systems : sequence of ScoredSystem
        Correct words of each system.
    codes : Codes
        Numbers of labels.
    metrics : sequence of str
        The metrics that the files can be scored by.
    """

    gold: Treebank
    is_scored: Bools
    systems: Sequence[ScoredSystem]
    codes: Codes
    metrics: Sequence[str]

    def __getitem__(self, name: str) -> Array:
        match = FIELD.fullmatch(name)
        if match is None or name not in self.names:
            raise KeyError(name)
        kind, what, column, label = match.groups()
        if what in {"tokens", "sentences"}:
            if kind == "gold":
                spans = self.gold.token_starts if what == "tokens" else np.append(0, self.gold.sentence_ends[:-1])
                return self._sum([scoring.find_sentences(self.gold.sentence_ends, spans)])
            return np.stack([system.totals[f"{kind}[{what}]"] for system in self.systems], axis=1).astype(np.int32)
        if kind == "system":
            chosen = []
            for system in self.systems:
                mask = system.is_content if what == "content" else self._get_scored(system)
                chosen.append(system.sentences[mask & self._has_label(system.labels, column, label)])
            return self._sum(chosen)
        mask = self.is_content if what in {"content", *scoring.CONTENT_METRICS} else self.is_scored
        mask = mask & self._has_label(self.gold.columns, column, label)
        sentences = self.gold.sentences
        if kind == "gold":
            return self._sum([sentences[mask]])
        bit = np.uint16(METRICS.index("Words" if kind == "aligned" else what))
        return self._sum([sentences[mask & (scored.flags >> bit & 1).astype(bool)] for scored in self.systems])

    @cached_property
    def is_content(self) -> Bools:
        """A mask of the gold words that are content words."""
        return scoring.is_among(self.gold.columns["relation"], scoring.CONTENT, self.codes)

    @cached_property
    def names(self) -> Mapping[str, None]:
        """The names of the fields."""
        return dict.fromkeys(self._iter_names())

    def _iter_names(self) -> Iterator[str]:
        """Yield the names, those of labels last; each metric has a unit and perhaps a column of labels."""
        texts = list(self.codes)
        units = dict.fromkeys(WORD_METRICS[metric][0] for metric in self.metrics)
        for metric in self.metrics:
            unit, _ = WORD_METRICS[metric]
            yield f"correct[{unit if unit in {'tokens', 'sentences'} else metric}]"
        for unit in units:
            yield from (f"{kind}[{unit}]" for kind in ("system", "gold"))
            if unit in {"words", "content"}:
                yield f"aligned[{unit}]"
        for column in LABELS:
            columns = [self.gold.columns[column], *(system.labels[column] for system in self.systems)]
            labels = sorted({texts[code] for codes in columns for code in np.unique(codes).tolist()})
            scored = [metric for metric in self.metrics if WORD_METRICS[metric][1] == column]
            counted = {WORD_METRICS[metric][0]: None for metric in scored}
            for label in labels:
                yield from (f"correct[{metric}][{column}={label}]" for metric in scored)
                yield from (f"{kind}[{unit}][{column}={label}]" for unit in counted for kind in COUNTED)

    def _get_scored(self, system: ScoredSystem) -> Bools:
        """Return which words of a system are scored: all, or where words are compared by position those of gold."""
        n = len(system.sentences)
        return self.is_scored if n == len(self.is_scored) else np.ones(n, np.bool_)

    def _has_label(self, columns: Mapping[str, Integers], column: str | None, label: str) -> Bools | bool:
        return True if column is None else columns[column] == self.codes.get(label, -1)

    def _sum(self, columns: Sequence[Integers]) -> Array:
        n = len(self.gold.starts)
        return np.stack([np.bincount(sentences, minlength=n) for sentences in columns], axis=1).astype(np.int32)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)


def read_conllu(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read parses in CoNLL-U and a gold file of the same text, whatever the tokens and sentences of each."""
    codes = Codes()
    first, *banks = _read_files(sources, gold, codes, is_universal=True)
    for bank in (first, *banks):
        scoring.make_universal(bank, codes)
    systems = [scoring.score_system(first, bank, codes) for bank in banks]
    notes = [note for bank in banks for note in _describe_other_words(first, bank)]
    is_scored = np.ones(first.n_words, np.bool_)
    fields = ParseFields(first, is_scored, systems, codes, ("Tokens", "Sentences", *METRICS))
    notes += _check_relations(fields, sources, banks, options)
    return _build_counts(fields, sources, options, notes)


def read_conllx(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read parses in CoNLL-X and a gold file of the same words; punctuation is left out, as eval.pl does."""
    codes = Codes()
    first, *banks = _read_files(sources, gold, codes, is_universal=False)
    systems = [scoring.compare_by_position(first, bank, codes) for bank in banks]
    is_scored = np.ones(first.n_words, np.bool_)
    notes: list[str] = []
    if options.get_choice("punctuation", ("no", "yes")) == "no":
        texts = list(codes)
        forms = np.unique(first.columns["form"])
        marks = [code for code in forms.tolist() if is_punctuation(texts[code])]
        is_scored = ~np.isin(first.columns["form"], marks)
        n_scored = int(is_scored.sum())
        rule = "punctuation is left out, as eval.pl does without -p; conllx:punctuation=yes scores all"
        notes = [ScopeNote(f"{n_scored:,} of {first.n_words:,} words are scored: {rule}")]
        if not n_scored:
            raise InputError(
                f"all words are punctuation, which is not scored; {spell('format', 'conllx:punctuation=yes')} "
                "scores it",
                file=first.path,
            )
    fields = ParseFields(first, is_scored, systems, codes, CONLLX_METRICS)
    notes += _check_relations(fields, sources, banks, options)
    return _build_counts(fields, sources, options, notes)


def is_punctuation(form: str) -> bool:
    """Return whether all characters of a form are punctuation (Unicode's categories P).

    Examples
    --------
    >>> is_punctuation("..."), is_punctuation("$"), is_punctuation("«"), is_punctuation("d.")
    (True, False, True, False)
    """
    return all(unicodedata.category(c).startswith("P") for c in form)


def _read_files(sources: Sequence[Source], gold: Path | None, codes: Codes, *, is_universal: bool) -> list[Treebank]:
    assert gold is not None
    paths = (gold, *(source.path for source in sources))
    return [treebank.read_treebank(path, codes, is_universal=is_universal) for path in paths]


def _describe_other_words(gold: Treebank, system: Treebank) -> list[str]:
    """Return a note on a system whose words or sentences are not those of gold."""
    sizes = [(bank.n_words, len(bank.starts)) for bank in (gold, system)]
    if sizes[0] == sizes[1] and np.array_equal(gold.token_ends, system.token_ends):
        return []
    gold_words, words = (f"{format_count(n, 'word')} in {format_count(m, 'sentence')}" for n, m in sizes)
    rule = "words are aligned by characters, and count for the gold sentence in which they begin"
    return [f"{system.path}: {words}, gold has {gold_words}; {rule}"]


def _check_relations(
    fields: ParseFields, sources: Sequence[Source], banks: Sequence[Treebank], options: Options
) -> list[str]:
    """Return a note on relations that gold never has; raise if all of a system are such, unless no metric uses them."""
    texts = list(fields.codes)
    known = {texts[code] for code in np.unique(fields.gold.columns["relation"]).tolist()}
    used = {
        name: [texts[code] for code in bank.columns["relation"].tolist()]
        for name, bank in zip(list_system_names(sources), banks, strict=True)
    }
    bases = {Spec.parse(name).base.casefold() for name in options.metrics}
    is_labelled = not bases or not bases.isdisjoint({"las", "clas", "mlas", "blex"})
    if not is_labelled:
        return []
    remedy = f"compare heads alone with {spell('metrics', 'UAS')}"
    return check_types(fields.gold.path, sorted(known), used, "words", "relations", remedy)


def _build_counts(fields: ParseFields, sources: Sequence[Source], options: Options, notes: Sequence[str]) -> Counts:
    gold = fields.gold
    return Counts(
        systems=tuple(list_system_names(sources)),
        fields=fields,
        n_items=len(gold.starts),
        ids=gold.ids,
        groups=build_sentence_groups(gold.path, len(gold.starts), gold.documents, options.groups),
        suggested=("LAS", "UAS", "UPOS"),
        warnings=tuple(notes),
    )


def _sniff(sources: Sequence[Source], gold: Path | None, options: Options, *, is_universal: bool) -> bool:
    """Return whether gold and systems have ten columns with heads; not if only metrics of tags are requested."""
    paths = [source.path for source in sources]
    if gold is None or options.own or any(path.is_dir() for path in (gold, *paths)):
        return False
    bases = {Spec.parse(name).base.casefold() for name in options.metrics if ":" not in name}
    requested = {name.casefold() for name in WORD_METRICS} & bases
    if options.metrics and not requested:
        return False
    return _find_kind(gold) == ("conllu" if is_universal else "conllx") and None not in map(_find_kind, paths)


sniff_conllu, sniff_conllx = partial(_sniff, is_universal=True), partial(_sniff, is_universal=False)
"""Functions that recognize parses in CoNLL-U, and in CoNLL-X."""


def _find_kind(path: Path) -> str | None:
    """Return "conllu" or "conllx" if the first lines have ten columns, ids and heads; else None.

    CoNLL-U has comments, multiword tokens, empty nodes or the universal parts of speech.
    """
    lines = read_head_lines(path)
    if lines and not lines[-1]:
        lines.pop()  # what ends the last line
    tags: list[str] = []
    has_marks = has_relations = False
    for line in filter(str.strip, lines):
        cells = line.split("\t")
        name = cells[treebank.ID]
        if line.startswith("#"):
            has_marks = True
        elif len(cells) != treebank.WIDTH:
            return None
        elif treebank.RANGE_ID.fullmatch(name) or treebank.EMPTY_ID.fullmatch(name):
            has_marks = True
        elif not (name.isdecimal() and cells[treebank.HEAD].isdecimal()):
            return None
        else:
            tags.append(cells[treebank.UPOS])
            has_relations |= cells[treebank.DEPREL] != "_"
    if not has_relations:
        return None
    return "conllu" if has_marks or UNIVERSAL_TAGS.issuperset(tags) else "conllx"
