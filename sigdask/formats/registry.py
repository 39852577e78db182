"""The formats of files: one declared table, by which files are recognized, options are checked, and help is written.

A new format is one reader function and one entry in `FORMATS`.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, Literal

from sigdask.errors import InputError
from sigdask.formats.reading import files
from sigdask.formats.reading.json_records import read_keys
from sigdask.formats.reading.options import Options, Source
from sigdask.interface import spell
from sigdask.io.addresses import load_entry_points

Gold = Literal["none", "optional", "required"]

PACKAGE = "sigdask.formats"

N_LINES = 5
"""Number of non-empty lines that a pattern of lines must fit."""


@dataclass(frozen=True, slots=True)
class FileSignature:
    """How files of a format are recognised: all conditions that are given must hold for every file of a system.

    Attributes
    ----------
    keys : tuple of str
        Keys that the first JSON record has. `a.b` is the key b in the object a, or in the first object of the list a.
    columns : tuple of str
        Columns that the header of a table has, compared without case. `a|b` is one of the two.
    line : str
        Regular expression that the first five lines fit, without empty ones.
    file : str
        Pattern of the file's name, such as "*.ann".
    folder : str
        Pattern of the name of a file that the folder has, such as "human-scores/*.seg.score".
    check : str
        Function `(sources, gold, options) -> bool`, given as "module:function", where patterns cannot say it. It looks
        at the first 64 kB of a file at most.
    """

    keys: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    line: str = ""
    file: str = ""
    folder: str = ""
    check: str = ""

    def fits(self, sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
        """Return whether files have this signature."""
        if not all(self._fits_file(source.path) for source in sources):
            return False
        return not self.check or bool(load_object(self.check)(sources, gold, options))

    def _fits_file(self, path: Path) -> bool:
        if self.file and not fnmatch(path.name.lower(), self.file.lower()):
            return False
        if path.is_dir():
            has_content = bool(self.keys or self.columns or self.line)
            return not has_content and (not self.folder or any(path.glob(self.folder)))
        return not self.folder and self._fits_content(path)

    def _fits_content(self, path: Path) -> bool:
        if self.keys and not {*self.keys} <= {*read_keys(path)}:
            return False
        if self.columns and not has_columns({*map(str.lower, read_keys(path))}, self.columns):
            return False
        return not self.line or _has_lines(path, self.line)


@dataclass(frozen=True, slots=True)
class Format:
    """A documented format of files.

    Attributes
    ----------
    reader : str
        Reader, as "module:function": a function `(sources, gold, options) -> Counts`, or with the trait "table" a
        function `(path) -> Arrow table`, whose columns have the names of roles.
    help : str
        Description of its files, in one sentence.
    signature : tuple of FileSignature
        How its files are recognised: by any of these. None is a table, recognised by the roles of its columns.
    gold : {"none", "optional", "required"}
        Whether it takes a gold file.
    options : tuple of str
        Its own options. Fixed choices follow a name, as in `case=keep|lower`; the first one is the default.
    metrics : tuple of str
        Metrics, in lower case, that only this format has if there is a gold file.
    roles : tuple of str
        Roles of columns that it uses, and the options `label_map` and `ignore` if it uses them.
    traits : tuple of str
        "table": its reader returns the table of one file. "folders": it reads folders. "metrics": its files bring
        metrics of their own.
    """

    reader: str
    help: str
    signature: tuple[FileSignature, ...] = ()
    gold: Gold = "optional"
    options: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    roles: tuple[str, ...] = ("item", "ignore")
    traits: tuple[str, ...] = ()

    @property
    def choices(self) -> dict[str, tuple[str, ...]]:
        """The values that each option takes; an empty tuple stands for any."""
        declared = (option.partition("=") for option in (*self.options, *SHARED_OPTIONS, "replicates=paired"))
        return {key: tuple(filter(None, values.split("|"))) for key, _, values in declared}

    def load(self) -> Any:
        """Import and return the reader."""
        return load_object(self.reader)

    def fits(self, sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
        """Return whether files have one of the signatures."""
        return any(signature.fits(sources, gold, options) for signature in self.signature)

    def check(self, name: str, gold: Path | None, options: Options) -> None:
        """Raise an error for options and values that the format does not have, and for a gold file it cannot use."""
        options.check_format_options(name, self.choices)
        if gold is not None and self.gold == "none":
            raise InputError(f"format {name} takes no gold file", file=gold, remedy=f"leave out {spell('gold')}")
        if gold is None and self.gold == "required":
            raise InputError(f"format {name} needs the gold standard", remedy=f"give {spell('gold', 'FILE')}")

    def can_be_detected(self, gold: Path | None) -> bool:
        """Return whether the format can be detected from files, with or without a gold file."""
        return self.gold != ("required" if gold is None else "none")


def load_object(address: str) -> Any:
    """Import what "module:name" names, or ".module:name" within `sigdask.formats`."""
    return pkgutil.resolve_name(f"{PACKAGE}{address}" if address.startswith(".") else address)


def has_columns(names: Collection[str], wanted: Sequence[str]) -> bool:
    """Return whether a table has all wanted columns; `a|b` is one of two."""
    return all(any(name in names for name in choice.split("|")) for choice in wanted)


def _has_lines(path: Path, pattern: str) -> bool:
    lines = files.read_head(path).filled_lines[:N_LINES]
    return bool(lines) and all(re.fullmatch(pattern, line) for line in lines)


SHARED_OPTIONS = ("sheet", "decimal=.|,", "size=limited|any", "quotes=marks|text", "header=yes|no")
"""Options of all formats."""

NUMBER_METRICS = ("mae", "mse", "rmse", "r2", "pearson", "spearman", "kendall", "auc", "average-precision", "brier",
                  "log-loss", "ece")  # fmt: skip
"""Metrics of numbers beside gold values."""

FORMATS: dict[str, Format] = {
    "responses": Format(
        ".tables.scores:read_responses",
        "one row per response: id, gold (is it correct: 1/0), one column per system (did the system give it: 1/0)",
        gold="none",
        roles=("item", "gold", "prediction", "ignore"),
    ),
    "labels": Format(
        ".tables.labels:read_labels",
        "labels, one or several per item: columns of gold and systems, or --gold FILE and one file per system",
        options=("separator", "systems", "list=no|yes"),
        roles=("item", "system", "gold", "prediction", "label_map", "ignore"),
    ),
    "numbers": Format(
        ".tables.numbers:read_numbers",
        "predicted numbers for real gold values: columns of gold and systems; or --gold FILE and one file per system",
        options=("systems", "list=no|yes"),
        metrics=NUMBER_METRICS,
        roles=("item", "system", "gold", "prediction", "ignore"),
    ),
    "wide": Format(
        ".tables.scores:read_wide",
        "scores, one row per item and one column per system (systems=A+B names them); or files of numbers",
        gold="none",
        options=("systems",),
        roles=("item", "score", "ignore"),
    ),
    "segments": Format(
        ".texts.segments:read_segments",
        "translations, one per line; --gold REFERENCE, --reference for more, --documents for units; or WMT XML",
        signature=(FileSignature(check=".texts.segments:sniff"),),
        options=("reference", "collection", "references=tab", "column"),
        metrics=("bleu", "chrf", "chrf++", "ter"),
        roles=(),
    ),
    "speech": Format(
        ".texts.speech:read_speech",
        "transcripts, NIST trn `words (speaker-utterance)`, Kaldi `id words` or plain lines; --gold REFERENCE",
        signature=(FileSignature(check=".texts.speech:sniff"),),
        gold="required",
        options=("ids=trn|first|none", "column"),
        metrics=("wer", "cer"),
        roles=(),
    ),
    "terms": Format(
        ".spans.terms:read_terms",
        "lists of terms of a sentence or document: JSON with a term list, rows of id and term, or a folder of lists",
        signature=(
            *(FileSignature(folder=f"**/*.{ending}") for ending in ("key", "keys", "term", "terms")),
            FileSignature(
                columns=(
                    "term|predicted_term|keyphrase|keyword|term_list|terms|termlist|predicted_terms|extracted_terms|keyphrases|keywords",
                )
            ),
            FileSignature(check=".spans.terms:sniff"),
        ),
        gold="required",
        options=("terms", "case=keep|lower"),
        metrics=("type-precision", "type-recall", "type-f1"),
        roles=("item", "gold", "prediction"),
        traits=("folders",),
    ),
    "spans": Format(
        ".spans.spans:read_spans",
        "labelled spans: JSON lines, brat folders of .ann files, rows of offsets; slots filled by entities (MUC)",
        signature=(
            *(FileSignature(file=f"*.{ending}") for ending in ("ann", "ann.gz")),
            *(FileSignature(folder=f"**/*.{ending}") for ending in ("ann", "ann.gz")),
            FileSignature(check=".spans.spans:sniff"),
        ),
        options=("spans", "match=exact|ceaf", "relations", "symmetric", "annotator"),
        metrics=("relation-precision", "relation-recall", "relation-f1"),
        roles=("item", "gold", "prediction", "label_map"),
        traits=("folders",),
    ),
    "pairs": Format(
        ".spans.pairs:read_pairs",
        "a word and its morphs (form, phones) per line, tab-separated; --gold FILE and one file per system",
        signature=(FileSignature(check=".spans.pairs:sniff"),),
        gold="required",
        options=("separator", "column", "level=word|sentence"),
        metrics=("edit-distance",),
        roles=(),
        traits=("metrics",),
    ),
    "long": Format(
        ".tables.scores:read_long",
        "scores, rows of system, item, score (and metric)",
        gold="none",
        roles=("item", "system", "score", "ignore"),
        traits=("metrics",),
    ),
    "conll": Format(
        ".tagging.conll:read_conll",
        "tagged tokens, --gold FILE or a gold column: chunks; options scheme, column, gold-column, tokens",
        signature=(FileSignature(check=".tagging.columns:sniff"),),
        options=(
            "scheme=conlleval|IOB1|IOB2|BIO|IOE1|IOE2|IOBES|BIOES|BILOU|BMES|IO|raw",
            "column",
            "gold-column",
            "tokens",
        ),
        roles=("gold", "prediction", "label_map"),
    ),
    "conllu": Format(
        ".parsing.dependencies:read_conllu",
        "dependency parses in CoNLL-U, --gold FILE: as the CoNLL 2018 evaluation, tokens may differ",
        signature=(FileSignature(check=".parsing.dependencies:sniff"),),
        gold="required",
        roles=(),
    ),
    "trees": Format(
        ".parsing.trees:read_trees",
        "bracketed trees, --gold FILE: as evalb; option parameters=FILE.prm (default COLLINS.prm)",
        signature=(FileSignature(check=".parsing.trees:sniff"),),
        gold="required",
        options=("parameters",),
        metrics=("bracket-precision", "bracket-recall", "bracket-f1", "tag-accuracy"),
        roles=(),
    ),
    "timbl": Format(
        ".tagging.timbl:read_timbl",
        "TiMBL's output: features, class, predicted class; distributions and distances are skipped",
        signature=(FileSignature(check=".tagging.timbl:sniff_timbl"),),
        gold="none",
        roles=("label_map",),
    ),
    "mbt": Format(
        ".tagging.timbl:read_mbt",
        "Mbt's output on a tagged test file: word, tag, predicted tag; sentences end with <utt>",
        signature=(FileSignature(check=".tagging.timbl:sniff_mbt"),),
        gold="none",
        options=("end",),
        roles=("label_map",),
    ),
    "trec": Format(
        ".trec:read_trec",
        "runs, one file per system, --gold QRELS; or what trec_eval -q prints; order=score|rank, if both differ",
        signature=(FileSignature(check=".trec:sniff"),),
        options=("order=score|rank", "topics=1|2"),
        metrics=("ap",),
        roles=(),
        traits=("metrics",),
    ),
    "ratings": Format(
        ".ratings.ratings:read_ratings",
        "people's ratings (MQM, ESA, DA), rows of system, segment, score or errors; raters averaged",
        signature=(FileSignature(check=".ratings.ratings:sniff"),),
        gold="none",
        options=("raters=mean", "major", "minor", "critical"),
        roles=("item", "system", "score", "ignore"),
        traits=("metrics",),
    ),
    "samples": Format(
        ".samples.samples:read_samples",
        "logs of samples: lm-evaluation-harness, Inspect, HELM, SWE-bench, HumanEval",
        signature=(FileSignature(check=".samples.samples:sniff"),),
        gold="none",
        roles=("item", "score", "ignore"),
        traits=("folders", "metrics"),
    ),
    "metrics": Format(
        ".segment_scores.tools:read_metrics",
        "COMET's JSON (comet-score --to_json): scores of segments, one system per file of translations",
        signature=(FileSignature(check=".segment_scores.tools:sniff"),),
        gold="none",
        roles=(),
        traits=("metrics",),
    ),
    "mt-metrics-eval": Format(
        ".segment_scores.mt_metrics_eval:read_directory",
        "a test set's folder of WMT's metrics tasks: human and metric scores; options pair=en-de, scores=NAME+NAME",
        signature=(FileSignature(check=".segment_scores.mt_metrics_eval:sniff"),),
        gold="none",
        options=("pair", "scores"),
        roles=(),
        traits=("folders", "metrics"),
    ),
    "meta": Format(
        ".segment_scores.meta:read_meta",
        "metrics and people: rows of system, segment, human, one column per metric; or a folder of mt-metrics-eval",
        gold="none",
        options=("pair", "scores", "lower"),
        roles=("item", "gold", "system", "ignore"),
        traits=("folders",),
    ),
    "squad": Format(
        ".texts.squad:read_squad",
        "answers to questions, JSON of id to answer; --gold SQuAD (v1.1, v2.0, or of Hugging Face's datasets)",
        signature=(FileSignature(check=".texts.squad:sniff"),),
        gold="required",
        options=("version=1.1|2.0",),
        metrics=("exact_match",),
        roles=(),
        traits=("metrics",),
    ),
    "ref-hyp": Format(
        ".texts.ref_hyp:read_ref_hyp",
        "reference and hypothesis of utterances in one file: icefall, Kaldi per_utt, sclite .pra",
        signature=(FileSignature(check=".texts.ref_hyp:sniff"),),
        gold="none",
        roles=(),
    ),
    "battles": Format(
        ".ratings.battles:read_battles",
        "wins, ties and losses of two models (Arena, evalscope, AlpacaEval annotations); a tie is half a win",
        signature=(FileSignature(check=".ratings.battles:sniff"),),
        gold="none",
        options=("against",),
        roles=("item",),
        traits=("metrics",),
    ),
}
"""The documented formats, and the shapes of tables: responses, labels, numbers, wide and long."""

FORMATS_BY_METRIC = {metric: name for name, declared in FORMATS.items() for metric in declared.metrics}
"""Format that each metric implies, if only one format has it and there is a gold file. Without a gold file, such a
name is a column of scores.
"""


@cache
def add_installed_formats() -> None:
    """Add the formats that other packages declare by entry points of the group `sigdask.formats`."""
    for name, declared in load_entry_points("sigdask.formats"):
        if not isinstance(declared, Format):
            found = type(declared).__name__
            raise InputError(f"entry point {name!r} of sigdask.formats", found=found, expected="a Format")
        if name in FORMATS:
            raise InputError(f"entry point {name!r} of sigdask.formats: there is a format of this name already")
        FORMATS[name] = declared


FOLDER_FORMATS = tuple(name for name, declared in FORMATS.items() if "folders" in declared.traits)
