"""Dependency parses: CoNLL-U, scored as in the CoNLL 2018 shared task, and CoNLL-X, word by word.

Items are the gold sentences. Each word, token and sentence of a system counts for the gold sentence in which its first
character lies. So sums over items are the counts of the whole files, however the system divides the text.
"""

from __future__ import annotations

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
from sigdask.formats.parsing.scoring import CONLLX_METRICS, LABELS, METRICS, ScoredSystem, ScoredWords
from sigdask.formats.parsing.treebank import Integers, Treebank, read_treebank
from sigdask.formats.reading.alignment import build_sentence_groups
from sigdask.formats.reading.files import read_head
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.types_of_gold import check_types
from sigdask.interface import spell
from sigdask.metrics.base import Spec
from sigdask.metrics.parsing import WORD_METRICS
from sigdask.text import format_count

TEXT_UNITS = ("tokens", "sentences")
FieldSpec = tuple[str, str, str | None, int]
"""What a field counts: kind, unit or metric, and column and code of a label."""


@dataclass(frozen=True, eq=False)
class ParseFields(ComputedFields):
    """Fields of parses, summed by gold sentence on access.

    `correct[METRIC]` counts right words (tokens, sentences); `gold[UNIT]` and `system[UNIT]` count what there is and
    `aligned[UNIT]` the gold words that are aligned; a unit is tokens, sentences, words or content (content words).
    `[relation=R]`, `[upos=T]` or `[xpos=T]` after it restricts words to those of one relation or tag.

    Attributes
    ----------
    n_items : int
        Number of gold sentences.
    gold : ScoredWords
        The words of the gold standard.
    systems : sequence of ScoredSystem
        Words of each system, and the gold words that it has right.
    codes : Codes
        Numbers of labels.
    metrics : sequence of str
        The metrics that the files can be scored by.
    """

    n_items: int
    gold: ScoredWords
    systems: Sequence[ScoredSystem]
    codes: Codes
    metrics: Sequence[str]

    def __getitem__(self, name: str) -> Array:
        kind, what, column, code = self.specs[name]
        systems = self.systems[:1] if kind == "gold" else self.systems
        if what in TEXT_UNITS:
            columns = [system.totals[f"{kind}[{what}]"] for system in systems]
        elif kind == "system":
            columns = [self._count(system.words, _select_words(system.words, what, column, code)) for system in systems]
        else:
            mask = _select_words(self.gold, what, column, code)
            bit = np.uint16(METRICS.index(what if kind == "correct" else "Words"))
            columns = [
                self._count(self.gold, mask if kind == "gold" else mask & (system.flags >> bit & 1).astype(bool))
                for system in systems
            ]
        return np.stack(columns, axis=1).astype(np.int32)

    def _count(self, words: ScoredWords, mask: Bools) -> Integers:
        return np.bincount(words.sentences[mask], minlength=self.n_items)

    @cached_property
    def specs(self) -> Mapping[str, FieldSpec]:
        """What each field counts, by name."""
        return dict(self._iter_specs())

    def _iter_specs(self) -> Iterator[tuple[str, FieldSpec]]:
        """Yield the names, those of labels last; each metric has a unit and perhaps a column of labels."""
        texts = list(self.codes)
        units = dict.fromkeys(WORD_METRICS[metric][0] for metric in self.metrics)
        pairs = [("correct", name.lower() if name.lower() in TEXT_UNITS else name) for name in self.metrics]
        for unit in units:
            pairs += [(kind, unit) for kind in ("system", "gold", *(() if unit in TEXT_UNITS else ("aligned",)))]
        yield from ((f"{kind}[{what}]", (kind, what, None, 0)) for kind, what in pairs)
        for column in LABELS:
            used = [words.labels[column] for words in (self.gold, *(system.words for system in self.systems))]
            scored = [metric for metric in self.metrics if WORD_METRICS[metric][1] == column]
            pairs = [("correct", metric) for metric in scored]
            units = dict.fromkeys(WORD_METRICS[metric][0] for metric in scored)
            pairs += [(kind, unit) for unit in units for kind in ("aligned", "system", "gold")]
            for code in sorted({*np.concatenate(used).tolist()}, key=texts.__getitem__):
                for kind, what in pairs:
                    yield f"{kind}[{what}][{column}={texts[code]}]", (kind, what, column, code)

    def __contains__(self, name: object) -> bool:
        return name in self.specs

    def __iter__(self) -> Iterator[str]:
        return iter(self.specs)


def _select_words(words: ScoredWords, what: str, column: str | None, code: int) -> Bools:
    """Return a mask of the words that a metric or unit counts, of all labels or of one."""
    mask = words.is_content if what in {"content", *scoring.CONTENT_METRICS} else words.is_scored
    return mask if column is None else mask & (words.labels[column] == code)


def _read_parses(sources: Sequence[Source], gold: Path | None, options: Options, *, is_universal: bool) -> Counts:
    """Read parses in CoNLL-U and a gold file of the same text, or in CoNLL-X and a gold file of the same words."""
    assert gold is not None
    codes, names = Codes(), list_system_names(sources)
    paths = (gold, *(source.path for source in sources))
    first, *banks = (read_treebank(path, codes, is_universal=is_universal) for path in paths)
    notes: list[str] = []
    marks: frozenset[int] = frozenset()
    if is_universal:
        for bank in (first, *banks):
            scoring.make_universal(bank, codes)
    elif options.get_choice("punctuation", ("no", "yes")) == "no":
        marks = frozenset(code for form, code in codes.items() if is_punctuation(form))
    gold_words, *words = (scoring.score_words(first, bank, codes, marks) for bank in (first, *banks))
    if marks:
        notes.append(_describe_punctuation(first, int(gold_words.is_scored.sum())))
    systems = [scoring.score_system(first, bank, own, codes) for bank, own in zip(banks, words, strict=True)]
    notes += [note for bank in banks for note in _describe_other_words(first, bank, is_universal=is_universal)]
    metrics = ("Tokens", "Sentences", *METRICS) if is_universal else CONLLX_METRICS
    return Counts(
        systems=tuple(names),
        fields=ParseFields(len(first.starts), gold_words, systems, codes, metrics),
        n_items=len(first.starts),
        ids=first.ids,
        groups=build_sentence_groups(gold, len(first.starts), first.documents, options.groups),
        suggested=("LAS", "UAS", "UPOS"),
        warnings=(*notes, *_check_relations(first, banks, names, codes, options)),
    )


read_conllu, read_conllx = partial(_read_parses, is_universal=True), partial(_read_parses, is_universal=False)
"""Readers of parses in CoNLL-U, whatever the tokens of each file, and in CoNLL-X."""


def is_punctuation(form: str) -> bool:
    """Return whether all characters of a form are punctuation (Unicode's categories P).

    Examples
    --------
    >>> is_punctuation("..."), is_punctuation("$"), is_punctuation("«"), is_punctuation("d.")
    (True, False, True, False)
    """
    return all(unicodedata.category(c).startswith("P") for c in form)


def _describe_punctuation(gold: Treebank, n_scored: int) -> ScopeNote:
    """Return a note on words that are not scored, as eval.pl does; raise if these are all."""
    if not n_scored:
        remedy = f"choose {spell('format', 'conllx:punctuation=yes')}"
        raise InputError("all words are punctuation, which is not scored", file=gold.path, remedy=remedy)
    rule = "punctuation is left out, as eval.pl does without -p; conllx:punctuation=yes scores all"
    return ScopeNote(f"{n_scored:,} of {gold.n_words:,} words are scored: {rule}")


def _describe_other_words(gold: Treebank, system: Treebank, *, is_universal: bool) -> list[str]:
    """Return a note on a system whose words or sentences are not those of gold; raise for CoNLL-X."""
    arrays = [(bank.tokens, bank.token_ends, bank.starts) for bank in (gold, system)]
    if all(map(np.array_equal, *arrays)):
        return []
    sizes = [(len(bank.heads), len(bank.starts)) for bank in (gold, system)]
    gold_words, words = (f"{format_count(n, 'word')} in {format_count(m, 'sentence')}" for n, m in sizes)
    if not is_universal:
        problem = f"has other words or sentences ({words}) than {gold.path} ({gold_words})"
        raise InputError(problem, file=system.path, remedy="parse the words of the gold file")
    rule = "words are aligned by characters, and count for the gold sentence in which they begin"
    return [f"{system.path}: {words}, gold has {gold_words}; {rule}"]


def _check_relations(
    gold: Treebank, banks: Sequence[Treebank], names: Sequence[str], codes: Codes, options: Options
) -> list[str]:
    """Return a note on relations that gold never has; raise if all of a system are such, unless no metric uses them."""
    bases = {Spec.parse(name).base.casefold() for name in options.metrics}
    if bases and bases.isdisjoint({"las", "clas", "mlas", "blex"}):
        return []
    texts = list(codes)
    known, *used = ([texts[code] for code in bank.columns["relation"].tolist()] for bank in (gold, *banks))
    remedy = f"compare heads alone with {spell('metrics', 'UAS')}"
    return check_types(gold.path, known, dict(zip(names, used, strict=True)), "words", "relations", remedy)


def _sniff(sources: Sequence[Source], gold: Path | None, options: Options, *, is_universal: bool) -> bool:
    """Return whether gold and systems have ten columns with heads; not if only metrics of tags are requested."""
    if gold is None or options.own or any(path.is_dir() for path in (gold, *(source.path for source in sources))):
        return False
    bases = {Spec.parse(name).base.casefold() for name in options.metrics if ":" not in name}
    if options.metrics and bases.isdisjoint(name.casefold() for name in WORD_METRICS):
        return False
    has_marks = any(line.startswith("#") or treebank.RANGE_ID.match(line) for line in read_head(gold).filled_lines)
    return (is_universal or not has_marks) and all(map(_are_parses, (gold, *(source.path for source in sources))))


sniff_conllu, sniff_conllx = partial(_sniff, is_universal=True), partial(_sniff, is_universal=False)
"""Functions that recognize parses in CoNLL-U, and in CoNLL-X, which has no comments and multiword tokens."""


def _are_parses(path: Path) -> bool:
    """Return whether the first lines have ten columns, ids, heads and relations."""
    rows = [line.split("\t") for line in read_head(path).filled_lines if not line.startswith("#")]
    words = [cells for cells in rows if cells[treebank.ID].isdecimal()]
    return (
        all(len(cells) == treebank.WIDTH for cells in rows)
        and all(cells[treebank.HEAD].isdecimal() for cells in words)
        and any(cells[treebank.DEPREL] != "_" for cells in words)
    )
