"""The formats of files: one declared table, by which files are recognized, options are checked, and help is written.

A new format is one reader function and one entry in `FORMATS`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from sigdask.errors import InputError
from sigdask.formats.reading.options import Options, Source
from sigdask.interface import spell
from sigdask.io.addresses import load_entry_points


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
        Roles of columns that it uses, and the options `label_map` and `ignore` if it uses them.
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
        roles=("item", "gold", "prediction", "ignore"),
    ),
    "labels": Format(
        ".tables.predictions:read_labels",
        "labels, one or several per item: columns of gold and systems, or --gold FILE and one file per system",
        options=("separator", "systems", "list=no|yes"),
        roles=("item", "system", "gold", "prediction", "label_map", "ignore"),
    ),
    "numbers": Format(
        ".tables.predictions:read_numbers",
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
        roles=("item", "gold", "prediction"),
    ),
    "spans": Format(
        ".spans.spans:read_spans",
        "labelled spans: JSON lines, brat folders of .ann files, rows of offsets; slots filled by entities (MUC)",
        ".reading.signatures:fits_spans",
        gold="required",
        metrics=("relation-precision", "relation-recall", "relation-f1"),
        roles=("item", "gold", "prediction", "label_map"),
    ),
    "pairs": Format(
        ".spans.pairs:read_pairs",
        "a word and its morphs (form, phones) per line, tab-separated; --gold FILE and one file per system",
        ".reading.signatures:fits_pairs",
        gold="required",
        metrics=("edit-distance",),
    ),
    "long": Format(
        ".tables.scores:read_long",
        "scores, rows of system, item, score (and metric)",
        gold="none",
        roles=("item", "system", "score", "ignore"),
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
        "runs, one file per system, --gold QRELS; or what trec_eval -q prints; order=score|rank, if both differ",
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
    for name, declared in load_entry_points("sigdask.formats"):
        if not isinstance(declared, Format) or name in FORMATS:
            expected = "a Format, with a name that no other one has"
            raise InputError(f"entry point {name!r} of sigdask.formats", found=declared, expected=expected)
        FORMATS[name] = declared
