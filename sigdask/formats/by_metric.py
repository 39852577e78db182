"""Formats known by the metrics asked for: what one format alone has needs no look at the files' words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sigdask import metrics
from sigdask.errors import InputError
from sigdask.formats.reading.files import head_lines, is_parquet
from sigdask.formats.reading.rows import header_of
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

BY_FOLD = frozenset(map(str.casefold, metrics.METRICS))

OF_LINES = frozenset({"segments", "speech"})
"""Formats of text a line: not what is JSON, Parquet or in columns."""

JSON = re.compile(r"\s*(\{\s*(\"|$)|\[\s*([\[{\"\d]|$))")


def format_of(asked: Sequence[str], paths: Sequence[Path], gold: Path) -> str | None:
    """Return the format that alone has the metrics asked for; None where they leave it open.

    Parameters
    ----------
    asked : sequence of str
        Metrics as users name them.
    paths : sequence of Path
        Files of systems.
    gold : Path
        File of what is right.
    """
    found = {format_ for name in asked if (format_ := _of(name)) is not None}
    if len(found) != 1:
        return None
    (format_,) = found
    plain = all(map(is_lines, (gold, *paths))) if format_ in OF_LINES else True
    return format_ if plain else None


def is_of_format(name: str) -> bool:
    """Say whether a metric is one that a single format has."""
    return name.casefold() in FORMATS


def _of(name: str) -> str | None:
    try:
        base = metrics.Spec.of(name).base.casefold()
        if base in FORMATS or base in BY_FOLD:
            return FORMATS.get(base)
        return "trec" if retrieval.measure(name) is not None else None
    except InputError:  # a metric of the user's own, or a name that is none
        return None


def is_lines(path: Path) -> bool:
    """Whether a file is text without columns; XML and SGML hold text too."""
    if path.is_dir() or is_parquet(path):
        return False
    lines = [line for line in head_lines(path)[:20] if line.strip()]
    columns = {line.count("\t") for line in lines}
    if not lines or fairseq.is_log(path) or JSON.match(lines[0]) or (len(columns) == 1 and columns != {0}):
        return False
    names = {name.lower() for name in header_of(lines[0])}
    return len(names) < 2 or HEADER_NAMES.isdisjoint(names)
