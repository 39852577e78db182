"""The formats of files: one declared table, by which files are recognized, options are checked, and help is written.

A new format is one reader function and one entry in `FORMATS`. All declared signatures are looked at, and exactly one
format must fit. There is no order in which formats are tried. Files without a signature are tables, whose shape follows
from the roles of their columns, or lists of one value per line, of which the metric says what they are.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal

from sigdask import metrics
from sigdask.errors import InputError, RefusedFileError
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.signatures import is_list, read_keys
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.roles import UNNAMED, Roles, build_roles_error, name_role, resolve_roles
from sigdask.formats.tables.scores import list_scores
from sigdask.interface import spell
from sigdask.io.addresses import load_object
from sigdask.metrics import retrieval
from sigdask.metrics.regression import PREFIX
from sigdask.text import format_list


@dataclass(frozen=True, slots=True)
class Format:
    """A documented format of files. Functions are given as "module:function", or ".module:function" of this package.

    Attributes
    ----------
    reader : str
        Reader: a function `(sources, gold, options) -> Counts`. In another package it is a function
        `(path) -> Arrow table`, whose columns have the names of roles.
    help : str
        Description of its files, in one sentence.
    signature : str
        Function of `reading.signatures` that recognises its files, in another package a function `(path) -> bool`. It
        looks at the first 64 kB of a file at most. None is a table, recognised by the roles of its columns.
    gold : {"none", "optional", "required"}
        Whether it takes a gold file.
    options : tuple of str
        Its own options. Fixed choices follow a name, as in `case=keep|lower`; the first one is the default.
    metrics : tuple of str
        Metrics, in lower case, that only this format has if there is a gold file.
    roles : tuple of str
        Roles of columns that it uses, and the options `align`, `label_map` and `ignore` if it uses them.
    """

    reader: str
    help: str
    signature: str = ""
    gold: Literal["none", "optional", "required"] = "optional"
    options: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    @property
    def is_of_package(self) -> bool:
        """Whether the format is of another package, whose reader returns tables."""
        return not self.reader.startswith(".")

    def load(self) -> Any:
        """Import and return the reader."""
        return _load_function(self.reader)

    def fits(self, sources: Sequence[Source], gold: Path | None) -> bool:
        """Return whether files have the signature."""
        if not self.signature or self.gold == ("required" if gold is None else "none"):
            return False
        function = _load_function(self.signature)
        if self.is_of_package:
            return all(source.path.is_file() and function(source.path) for source in sources)
        return bool(function(sources, gold))

    def check(self, name: str, gold: Path | None, options: Options) -> None:
        """Raise an error for options and values that the format does not have, and for a gold file it cannot use."""
        declared = (option.partition("=") for option in (*self.options, *SHARED_OPTIONS, "replicates=paired"))
        choices = {key: tuple(filter(None, values.split("|"))) for key, _, values in declared}
        options.check_format_options(name, choices)
        if gold is not None and self.gold == "none":
            raise InputError(f"format {name} takes no gold file", file=gold, remedy=f"leave out {spell('gold')}")
        if gold is None and self.gold == "required":
            raise InputError(f"format {name} needs the gold standard", remedy=f"give {spell('gold', 'FILE')}")


@cache
def _load_function(address: str) -> Any:
    return pkgutil.resolve_name(f"sigdask.formats{address}" if address.startswith(".") else address)


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
        roles=("align", "item", "gold", "prediction", "ignore"),
    ),
    "labels": Format(
        ".tables.predictions:read_labels",
        "labels, one or several per item: columns of gold and systems, or --gold FILE and one file per system",
        options=("separator", "systems", "list=no|yes"),
        roles=("align", "item", "system", "gold", "prediction", "label_map", "ignore"),
    ),
    "numbers": Format(
        ".tables.predictions:read_numbers",
        "predicted numbers for real gold values: columns of gold and systems; or --gold FILE and one file per system",
        options=("systems", "list=no|yes"),
        metrics=NUMBER_METRICS,
        roles=("align", "item", "system", "gold", "prediction", "ignore"),
    ),
    "wide": Format(
        ".tables.scores:read_wide",
        "scores, one row per item and one column per system (systems=A+B names them); or files of numbers",
        gold="none",
        options=("systems",),
        roles=("align", "item", "score", "ignore"),
    ),
    "segments": Format(
        ".texts.segments:read_segments",
        "translations, one per line; --gold REFERENCE, --reference for more, --documents for units; or WMT XML",
        ".reading.signatures:fits_segments",
        options=("reference", "collection", "references=tab", "column"),
        metrics=("bleu", "chrf", "chrf++", "ter"),
    ),
    "speech": Format(
        ".texts.speech:read_speech",
        "transcripts, NIST trn `words (speaker-utterance)`, Kaldi `id words` or plain lines; --gold REFERENCE",
        ".reading.signatures:fits_speech",
        gold="required",
        options=("ids=trn|first|none", "column"),
        metrics=("wer", "cer"),
    ),
    "terms": Format(
        ".spans.terms:read_terms",
        "lists of terms of a sentence or document: JSON with a term list, rows of id and term, or a folder of lists",
        ".reading.signatures:fits_terms",
        gold="required",
        metrics=("type-precision", "type-recall", "type-f1"),
        roles=("align", "item", "gold", "prediction"),
    ),
    "spans": Format(
        ".spans.spans:read_spans",
        "labelled spans: JSON lines, brat folders of .ann files, rows of offsets; slots filled by entities (MUC)",
        ".reading.signatures:fits_spans",
        gold="required",
        metrics=("relation-precision", "relation-recall", "relation-f1"),
        roles=("align", "item", "gold", "prediction", "label_map"),
    ),
    "pairs": Format(
        ".spans.pairs:read_pairs",
        "a word and its morphs (form, phones) per line, tab-separated; --gold FILE and one file per system",
        ".reading.signatures:fits_pairs",
        gold="required",
        metrics=("edit-distance",),
        roles=("align",),
    ),
    "long": Format(
        ".tables.scores:read_long",
        "scores, rows of system, item, score (and metric)",
        gold="none",
        roles=("align", "item", "system", "metric", "score", "ignore"),
    ),
    "conll": Format(
        ".tagging.conll:read_conll",
        "tagged tokens, --gold FILE or a gold column: chunks; options scheme, column, gold-column",
        ".reading.signatures:fits_conll",
        options=("scheme=conlleval|IOB1|IOB2|BIO|IOE1|IOE2|IOBES|BIOES|BILOU|BMES|IO|raw", "column", "gold-column"),
        roles=("label_map",),
    ),
    "conllu": Format(
        ".parsing.dependencies:read_conllu",
        "dependency parses in CoNLL-U, --gold FILE: as the CoNLL 2018 evaluation, tokens may differ",
        ".reading.signatures:fits_conllu",
        gold="required",
    ),
    "trees": Format(
        ".parsing.trees:read_trees",
        "bracketed trees, --gold FILE: as evalb; options parameters=FILE.prm (default COLLINS.prm), length=N",
        ".reading.signatures:fits_trees",
        gold="required",
        options=("parameters", "length"),
        metrics=("bracket-precision", "bracket-recall", "bracket-f1", "tag-accuracy"),
    ),
    "timbl": Format(
        ".tagging.timbl:read_timbl",
        "TiMBL's output: features, class, predicted class; distributions and distances are skipped",
        ".reading.signatures:fits_timbl",
        gold="none",
        roles=("label_map",),
    ),
    "mbt": Format(
        ".tagging.timbl:read_mbt",
        "Mbt's output on a tagged test file: word, tag, predicted tag; sentences end with <utt>",
        ".reading.signatures:fits_mbt",
        gold="none",
        roles=("label_map",),
    ),
    "trec": Format(
        ".trec:read_trec",
        "runs, one file per system, --gold QRELS; or what trec_eval -q prints; say order= if scores and ranks disagree",
        ".reading.signatures:fits_trec",
        options=("order=score|rank", "topics=1|2"),
        metrics=("ap",),
    ),
    "ratings": Format(
        ".ratings:read_ratings",
        "people's ratings (MQM, ESA, DA), rows of system, segment, score or errors; raters averaged",
        ".reading.signatures:fits_ratings",
        gold="none",
        options=("raters=mean", "critical=none|5|10|25"),
        roles=("item", "system", "score", "ignore"),
    ),
    "samples": Format(
        ".samples:read_samples",
        "logs of samples: lm-evaluation-harness, Inspect, HELM, SWE-bench, HumanEval",
        ".reading.signatures:fits_samples",
        gold="none",
        roles=("item", "score", "ignore"),
    ),
    "metrics": Format(
        ".segment_scores:read_metrics",
        "COMET's JSON (comet-score --to_json): scores of segments, one system per file of translations",
        ".reading.signatures:fits_metrics",
        gold="none",
    ),
    "mt-metrics-eval": Format(
        ".segment_scores:read_directory",
        "a test set's folder of WMT's metrics tasks: human and metric scores; options pair=en-de, scores=NAME+NAME",
        ".reading.signatures:fits_mt_metrics_eval",
        gold="none",
        options=("pair", "scores"),
    ),
    "meta": Format(
        ".segment_scores:read_meta",
        "metrics and people: rows of system, segment, human, one column per metric; or a folder of mt-metrics-eval",
        gold="none",
        options=("pair", "scores", "lower"),
        roles=("item", "gold", "system", "ignore"),
    ),
    "squad": Format(
        ".texts.squad:read_squad",
        "answers to questions, JSON of id to answer; --gold SQuAD (v1.1, v2.0, or of Hugging Face's datasets)",
        ".reading.signatures:fits_squad",
        gold="required",
        options=("version=1.1|2.0",),
        metrics=("exact_match",),
    ),
    "ref-hyp": Format(
        ".texts.speech:read_ref_hyp",
        "reference and hypothesis of utterances in one file: icefall, Kaldi per_utt",
        ".reading.signatures:fits_ref_hyp",
        gold="none",
    ),
    "battles": Format(
        ".ratings:read_battles",
        "wins, ties and losses of two models (Arena, evalscope, AlpacaEval annotations); a tie is half a win",
        ".reading.signatures:fits_battles",
        gold="none",
        roles=("item",),
    ),
}
"""The documented formats, and the shapes of tables: responses, labels, numbers, wide and long."""

FOLDER_FORMATS = ("terms", "spans", "samples", "mt-metrics-eval", "meta")
"""Formats that read folders."""

SCORED_FORMATS = ("pairs", "long", "trec", "ratings", "samples", "metrics", "mt-metrics-eval", "squad", "battles")
"""Formats whose files may hold scores under names of metrics."""

FORMATS_BY_METRIC = {metric: name for name, declared in FORMATS.items() for metric in declared.metrics}
"""Format that each metric implies, if only one format has it and there is a gold file. Without a gold file, such a
name is a column of scores.
"""


@cache
def add_installed_formats() -> None:
    """Add the formats that other packages declare by entry points of the group `sigdask.formats`."""
    for entry in sorted(entry_points(group="sigdask.formats")):
        declared = load_object(entry.value, f"entry point {entry.name} of sigdask.formats:")
        if not isinstance(declared, Format) or entry.name in FORMATS:
            expected = "a Format, with a name that no other one has"
            raise InputError(f"entry point {entry.name!r} of sigdask.formats", found=declared, expected=expected)
        FORMATS[entry.name] = declared


TABLE = "table"
"""Format that stands for the shape of a table, which the roles of its columns decide."""

CASEFOLDED_METRICS = frozenset(map(str.casefold, metrics.METRICS))

LINE_FORMATS = {"segments": "translations", "speech:ids=none": "transcripts", "labels": "labels", "numbers": "numbers"}
"""Formats of lists of one value per line beside a gold file, with what the lines then are."""


def resolve_format(sources: Sequence[Source], gold: Path | None, options: Options, requested: str = "auto") -> str:
    """Return the one format whose signature fits files, or that the metric implies, or the shape of a table.

    Parameters
    ----------
    sources : sequence of Source
        Files, one of each system.
    gold : Path, optional
        Gold-standard file.
    options : Options
        Options of reading; their metrics may decide between formats.
    requested : {"auto", "table"}
        Whether only the shapes of tables are considered.

    Raises
    ------
    InputError
        No format fits, or several.
    """
    if options.metrics and all(name.startswith(PREFIX) for name in options.metrics):
        return "meta"
    if requested == TABLE:
        return _resolve_table(sources, gold, options)
    if options.references:
        return "segments"
    by_metric = {name for metric in options.metrics if (name := find_metric_format(metric))} if gold else set()
    fitting = _list_fitting(sources, gold)
    if len(fitting) > 1 and by_metric & {*fitting}:
        fitting = [name for name in fitting if name in by_metric]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        ways = ", or ".join(f"{spell('format', name)} ({FORMATS[name].help})" for name in fitting)
        raise InputError(f"fits the formats {format_list(fitting)}", file=sources[0].path, remedy=f"choose {ways}")
    if gold is not None and all(map(is_list, (gold, *(source.path for source in sources)))):
        return _resolve_lists(sources, gold, options, by_metric)
    return by_metric.pop() if len(by_metric) == 1 else _resolve_table(sources, gold, options)


def _list_fitting(sources: Sequence[Source], gold: Path | None) -> list[str]:
    """Return the formats whose signatures fit; an error that one raises counts if no other fits."""
    fitting, first_error = [], None
    for name, declared in FORMATS.items():
        try:
            fitting += [name] * declared.fits(sources, gold)
        except InputError as error:
            first_error = first_error or error
    if first_error is not None and not fitting:
        raise first_error
    return fitting


def find_metric_format(name: str) -> str | None:
    """Return the one format that has a metric if there is a gold file, or None."""
    try:
        base = metrics.Spec.parse(name).base.casefold()
        if base in FORMATS_BY_METRIC or base in CASEFOLDED_METRICS:
            return FORMATS_BY_METRIC.get(base)
        return "trec" if retrieval.find_measure(name) is not None else None
    except InputError:  # a metric of the user's own, or a name that is none
        return None


def _resolve_lists(sources: Sequence[Source], gold: Path, options: Options, by_metric: set[str]) -> str:
    """Return the format of lists, which the metric decides."""
    if options.documents is not None and not options.metrics:
        return "segments"
    known = by_metric or {"labels" for name in options.metrics if find_metric_format(name) is None}
    if len(known) == 1:
        return known.pop()
    if known:
        raise InputError(
            f"metrics {format_list([*options.metrics])} need different formats ({format_list(sorted(known))})",
            remedy="compare them one after the other",
        )
    if any({"gold", "prediction"} & {*name_role(read_keys(path)[0])} for path in (gold, sources[0].path)):
        return "labels"
    ways = [f"{spell('format', name)} (they are {what})" for name, what in LINE_FORMATS.items()]
    problem = "files of one value per line may be labels, numbers or texts; a metric decides"
    remedy = f"give {spell('metrics', 'bleu')} or {spell('metrics', 'accuracy')}, or say {', or '.join(ways)}"
    raise InputError(problem, file=gold, remedy=remedy)


def _resolve_table(sources: Sequence[Source], gold: Path | None, options: Options) -> str:
    """Return the shape of tables, by the roles of the columns of the first one."""
    numbers = any(find_metric_format(name) == "numbers" for name in options.metrics)
    if gold is not None:
        return "numbers" if numbers else "labels"
    table = _read_table(sources[0].path, options)
    if len(table.columns) == 1 and not table.header:
        return "wide"
    roles = resolve_roles(table, options)
    if (roles.get("gold") or "").lower() == "of_interest" and "system" not in roles and len(sources) == 1:
        return "responses"
    has_metric = not {name.casefold() for name in table.columns}.isdisjoint(map(str.casefold, options.metrics))
    if "gold" not in roles and "metric" not in roles and not has_metric:
        _check_reference(table.path, options)
    has_no_labels = {"gold", "score"} <= roles.columns.keys() and not (roles.unknown or "prediction" in roles)
    if has_no_labels and not numbers and (len(sources) > 1 or "system" in roles):
        problem = "has a gold standard and scores, but no predictions"
        raise build_roles_error(table, problem, [spell("ignore", str(roles.get("gold")))])
    if "gold" in roles and "metric" not in roles:
        return "numbers" if numbers and not {*options.metrics} & {*table.columns} else "labels"
    if "system" in roles:
        return "long"
    if "prediction" in roles and "score" not in roles:
        ways = [spell("gold", "FILE"), *(spell("columns", f"gold={column}") for column in roles.unknown)]
        raise build_roles_error(table, "has predictions, but no gold standard", ways)
    if "score" in roles or len(sources) > 1 or roles.unknown or "systems" in options.own:
        return "wide"
    ways = [f"{spell('gold', 'FILE')} (for outputs of a system)", f"{spell('format', 'NAME')} ({', '.join(FORMATS)})"]
    raise build_roles_error(table, "cannot tell the format, as no column holds scores", ways)


def _read_table(path: Path, options: Options) -> FileTable:
    """Read a file as a table; an error says that it was read as one, or asks for the references of texts."""
    if is_list(path):
        _check_reference(path, options)
    try:
        return read_table(path, options.ignore)
    except RefusedFileError:
        raise
    except InputError as error:
        ways = [f"choose with {spell('format')}"]
        if not any(map(name_role, read_keys(path))):
            ways.append(f"or give {spell('gold', 'FILE')} for outputs of a system")
        raise error.add_hint(f"read as a table; {', '.join(ways)}") from None


def _check_reference(path: Path, options: Options) -> None:
    """Raise an error for metrics that compare outputs with a reference."""
    for metric in options.metrics:
        if find_metric_format(metric) is not None:
            problem = f"metric {metric} compares outputs with a reference"
            raise InputError(problem, file=path, remedy=f"give {spell('gold', 'FILE')}")


def describe_reading(sources: Sequence[Source], gold: Path | None, options: Options) -> str:
    """Return which column has which role, and what is left out, for the first line of an output; empty for no table."""
    path = sources[0].path
    if path.is_dir() or sources[0].parts or (gold is None and is_list(path)):
        return ""
    try:
        table = read_table(path, options.ignore)
        roles = resolve_roles(table, options, None if gold is None else "system")
        return _describe_roles(table, roles, options, has_scores=gold is None, are_files=len(sources) > 1)
    except InputError:  # of another kind than a table
        return ""


def _describe_roles(table: FileTable, roles: Roles, options: Options, *, has_scores: bool, are_files: bool) -> str:
    if not table.header:
        return "items by position"
    has_items = "item" in roles and options.align != "position"
    parts = [f"item {options.id_column or roles.get('item')}" if has_items else "items by position"]
    shown = ("system", "metric", "gold", "prediction", "run", "unit", "subset")
    items = roles.list_all("item")  # which are units too, if several are joined
    named = [(role, [column for column in roles.list_all(role) if column not in items]) for role in shown]
    parts += [f"{role} {' + '.join(columns)}" for role, columns in named if columns]
    left_out = ["an unnamed index" if name.startswith(UNNAMED) else name for name in roles.left_out]
    scores = roles.columns.get("score", ())
    is_labelled = "gold" in roles or not has_scores
    if is_labelled and ("prediction" in roles or roles.unknown):
        left_out += (*roles.unknown, *scores) if "prediction" in roles else scores
        scores = ()
    elif not is_labelled and ("system" in roles or are_files):
        scores = list_scores(table, roles, options)
        left_out += [name for name in roles.unknown if name not in scores]
    if scores:
        parts.append(f"score{'s' * (len(scores) > 1)} {' + '.join(scores)}")
    return ", ".join(parts) + (f"; left out: {format_list(left_out, 10)}" if left_out else "")
