"""Choose a format from the names of the requested metrics, where only one format supports them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sigdask import metrics
from sigdask.errors import InputError
from sigdask.formats.reading.files import is_parquet, read_head_lines
from sigdask.formats.reading.rows import parse_header
from sigdask.formats.reading.tables import HEADER_NAMES
from sigdask.formats.texts import fairseq
from sigdask.metrics import retrieval

FORMATS = {
    "bleu": "segments",
    "chrf": "segments",
    "chrf++": "segments",
    "ter": "segments",
    "wer": "speech",
    "cer": "speech",
    "type-precision": "terms",
    "type-recall": "terms",
    "type-f1": "terms",
    "edit-distance": "pairs",
    "exact_match": "squad",
    "ap": "trec",
}
"""Metric in small letters to the format that alone has it beside a gold file; without one it is a column of scores."""

CASEFOLDED_METRICS = frozenset(map(str.casefold, metrics.METRICS))

LINE_FORMATS = frozenset({"segments", "speech"})
"""Formats of text a line: not what is JSON, Parquet or in columns."""

JSON_START = re.compile(r"\s*(\{\s*(\"|$)|\[\s*([\[{\"\d]|$))")


def find_format(metric_names: Sequence[str], paths: Sequence[Path], gold: Path) -> str | None:
    """Return the one format that supports the requested metrics, or None if metrics or files do not settle it.

    Parameters
    ----------
    metric_names : sequence of str
        Metrics as users name them.
    paths : sequence of Path
        Files of systems.
    gold : Path
        Gold-standard file.
    """
    formats = {format_ for name in metric_names if (format_ := _find_metric_format(name)) is not None}
    if len(formats) != 1:
        return None
    (format_,) = formats
    has_plain_lines = all(map(is_line_text, (gold, *paths))) if format_ in LINE_FORMATS else True
    return format_ if has_plain_lines else None


def has_single_format(name: str) -> bool:
    """Return whether a metric belongs to a single format, so that its name settles the format."""
    return name.casefold() in FORMATS


def _find_metric_format(name: str) -> str | None:
    try:
        base = metrics.Spec.parse(name).base.casefold()
        if base in FORMATS or base in CASEFOLDED_METRICS:
            return FORMATS.get(base)
        return "trec" if retrieval.find_measure(name) is not None else None
    except InputError:  # a metric of the user's own, or a name that is none
        return None


def is_line_text(path: Path) -> bool:
    """Return whether a file holds plain lines of text, XML or SGML, rather than columns or JSON."""
    if path.is_dir() or is_parquet(path):
        return False
    lines = [line for line in read_head_lines(path)[:20] if line.strip()]
    tab_counts = {line.count("\t") for line in lines}
    if not lines or fairseq.is_log(path) or JSON_START.match(lines[0]) or (len(tab_counts) == 1 and tab_counts != {0}):
        return False
    names = {name.lower() for name in parse_header(lines[0])}
    return len(names) < 2 or HEADER_NAMES.isdisjoint(names)
