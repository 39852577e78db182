"""Notes on intervals: why one is missing, that it disagrees with p, or that its coverage may be too low."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.results.columns.adjusted import AdjustmentDetails
from sigdask.results.columns.intervals import BCA, INVERSION, NORMAL, PERCENTILE, TANGO, Intervals
from sigdask.results.messages.notes import Note
from sigdask.results.table import get_details
from sigdask.statistics.intervals import compute_level
from sigdask.statistics.rounding import format_p_equals

if TYPE_CHECKING:
    from sigdask.results.table import Table

RowNotes = Iterator[tuple[int, Note]]
Rows = NDArray[np.bool_]

FEW_UNITS = 30
"""Units below which resampling them tells too little of others: 0.92 of intervals hold the truth at 25, 0.90 at 10."""

FEW_DISCORDANT = 10
"""Units that differ below which resampling them does."""

SKEWNESS_LIMIT = 0.1
"""Skewness of units' contributions, over the root of their number, from which resampling them does: of BCa intervals
0.947 hold the truth below it, 0.91 from 0.1 to 0.2 and 0.89 from there to 0.4."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A condition under which measured coverage is below the nominal level (docs/statistics.md).

    Attributes
    ----------
    name : str
        What it is, for programs.
    text : str
        What it is, for people.
    """

    name: str
    text: str


FEW = Shortfall("few-units", "units are few")
SPARSE = Shortfall("few-discordant", "few units differ")
SKEW = Shortfall("skewed", "what units contribute is skewed")


def iter_shortfalls(table: Table, intervals: Intervals) -> Iterator[tuple[Shortfall, Rows]]:
    """Yield each kind of coverage shortfall with a mask of the rows to which it applies."""
    resampled = _has_method(intervals, BCA, PERCENTILE, NORMAL) & (table.n_discordant > 0)
    skewness = np.abs(np.nan_to_num(intervals.skewness)) / np.sqrt(np.maximum(table.n_units, 1))
    yield FEW, resampled & (table.n_units < FEW_UNITS)
    yield SPARSE, resampled & (table.n_discordant < FEW_DISCORDANT)
    yield SKEW, resampled & (skewness >= SKEWNESS_LIMIT)


def iter_interval_notes(table: Table) -> RowNotes:
    """Yield (row, note) for all notes on the intervals of single rows."""
    intervals = table.intervals
    if intervals is None:
        return
    yield from _note_reasons(intervals)
    yield from _note_differing(table, intervals)
    yield from _note_shortfalls(table, intervals)


def _has_method(intervals: Intervals, *methods: str) -> Rows:
    return np.asarray(
        np.array([method in methods for method in intervals.method.values], np.bool_)[intervals.method.codes]
    )


def _note_reasons(intervals: Intervals) -> RowNotes:
    has_reason = np.array([bool(text) for text in intervals.why.values], np.bool_)[intervals.why.codes]
    for row in np.flatnonzero(has_reason).tolist():
        method = intervals.method[row]
        head = "interval" if method else "no interval"
        yield row, Note("interval", f"{head}: {intervals.why[row]}", {"method": method or None})


def _note_differing(table: Table, intervals: Intervals) -> RowNotes:
    """Yield a note for each row whose interval and p disagree on whether the difference is 0, with the reason."""
    level = np.array(
        [np.nan if np.isnan(confidence) else compute_level(confidence) for confidence in intervals.confidence.tolist()]
    )
    contains_zero = (intervals.low <= 0) & (intervals.high >= 0)
    is_small = table.p_value <= level
    is_known = ~np.isnan(table.p_value) & ~np.isnan(intervals.low) & (table.n_trials > 0)
    for row in np.flatnonzero(is_known & (contains_zero == is_small)).tolist():
        relation = "contains 0 though" if contains_zero[row] else "leaves 0 out though"
        p, method = format_p_equals(float(table.p_value[row])), intervals.method[row]
        percent = f"{100 * intervals.confidence[row]:.4g} %"
        text = f"the {percent} interval {relation} {p}: {_explain_difference(table.alternative[row], method)}"
        numbers = {"confidence": float(intervals.confidence[row]), "p_value": float(table.p_value[row])}
        yield row, Note("interval-differs", text, numbers)


def _explain_difference(alternative: str, method: str) -> str:
    if alternative != "two-sided":
        return "p is one-sided, the interval leaves out as much on either side"
    return {
        INVERSION: "both are of one test, by other trials or arrangements; more of them would bring the two together",
        NORMAL: "the interval takes the difference of so many units for normal",
        TANGO: "the test counts arrangements of the items that differ, the interval takes their difference for normal",
    }.get(
        method,
        "the test exchanges systems on these units and needs no approximation, the bootstrap asks what other units "
        "would give; whether there is a difference is the test's to say, the interval tells how large it may be",
    )


def _note_shortfalls(table: Table, intervals: Intervals) -> RowNotes:
    shortfalls_by_row: dict[int, list[Shortfall]] = {}
    for shortfall, rows in iter_shortfalls(table, intervals):
        for row in np.flatnonzero(rows).tolist():
            shortfalls_by_row.setdefault(row, []).append(shortfall)
    for row, row_shortfalls in shortfalls_by_row.items():
        reasons = " and ".join(item.text for item in row_shortfalls)
        text = (
            f"{reasons}: intervals of such data were measured to hold the true difference less often than "
            f"{100 * intervals.confidence[row]:.4g} % of the time (docs/statistics.md); read it as too short"
        )
        numbers = {
            "shortfalls": ", ".join(item.name for item in row_shortfalls),
            "skewness": _nan_to_none(intervals.skewness[row]),
        }
        yield row, Note("interval-coverage", text, numbers)


def _nan_to_none(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)


def note_adjusted(table: Table) -> list[Note]:
    """Return notes on how many intervals seem to contradict the adjusted p-values."""
    intervals, details = table.intervals, get_details(table)
    if intervals is None:
        return []
    if details.has_interval.any():
        return _note_simultaneous(table, details)
    is_contrary = (
        ~np.isnan(intervals.low) & ((intervals.low > 0) | (intervals.high < 0)) & (table.p_adjusted > table.alpha)
    )
    if not (n := int(np.count_nonzero(is_contrary))):
        return []
    text = (
        f"intervals are of each comparison alone: {n:,} of {len(table):,} {'leaves' if n == 1 else 'leave'} 0 out "
        f"where the adjusted p is above {table.alpha:g}"
    )
    return [Note("intervals-alone", text, {"n_comparisons": n, "of": len(table), "alpha": table.alpha})]


def _note_simultaneous(table: Table, details: AdjustmentDetails) -> list[Note]:
    """Return a note in a list if some simultaneous intervals contradict the verdicts, else an empty list."""
    rejected = table.p_adjusted <= table.alpha
    is_contrary = details.has_interval & (((details.low > 0) | (details.high < 0)) != rejected)
    if not (rows := np.flatnonzero(is_contrary)).size:
        return []
    pairs = [f"{table.a[row]} and {table.b[row]}" for row in rows[:MAX_NAMED].tolist()]
    remainder = f" and {len(rows) - len(pairs):,} more" if len(rows) > len(pairs) else ""
    text = (
        f"the simultaneous interval and the adjusted p of {', '.join(pairs)}{remainder} part: the interval takes one "
        "step "
        "and resamples units, the p that decides may step down, exchange outputs, or be the larger of two"
    )
    return [Note("simultaneous-differs", text, {"n_comparisons": len(rows), "of": len(table), "alpha": table.alpha})]


MAX_NAMED = 3
"""Comparisons that a note names."""
