"""What is to be known of intervals: why one is missing, that it and p part, that such intervals cover too little."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.results.columns.adjusted import AdjustmentDetails
from sigdask.results.columns.intervals import BCA, INVERSION, NORMAL, PERCENTILE, TANGO, Intervals
from sigdask.results.messages.notes import Note
from sigdask.results.table import details_of
from sigdask.statistics.intervals import level_of
from sigdask.statistics.rounding import p_equals

if TYPE_CHECKING:
    from sigdask.results.table import Table

Said = Iterator[tuple[int, Note]]
Rows = NDArray[np.bool_]

FEW_UNITS = 30
"""Units below which resampling them tells too little of others: 0.92 of intervals hold the truth at 25, 0.90 at 10."""

FEW_DISCORDANT = 10
"""Units that differ below which resampling them does."""

SKEWED = 0.1
"""Skewness of units' contributions, over the root of their number, from which resampling them does: of BCa intervals
0.947 hold the truth below it, 0.91 from 0.1 to 0.2 and 0.89 from there to 0.4."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Where intervals were measured to hold the true difference less often than they say (docs/statistics.md).

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


def shortfalls(table: Table, own: Intervals) -> Iterator[tuple[Shortfall, Rows]]:
    """Yield shortfalls of coverage, and the rows that have them."""
    resampled = _is(own, BCA, PERCENTILE, NORMAL) & (table.n_discordant > 0)
    skewness = np.abs(np.nan_to_num(own.skewness)) / np.sqrt(np.maximum(table.n_units, 1))
    yield FEW, resampled & (table.n_units < FEW_UNITS)
    yield SPARSE, resampled & (table.n_discordant < FEW_DISCORDANT)
    yield SKEW, resampled & (skewness >= SKEWED)


def remarks(table: Table) -> Said:
    """Yield the notes on intervals, by row."""
    own = table.intervals
    if own is None:
        return
    yield from _reasons(own)
    yield from _parting(table, own)
    yield from _short(table, own)


def _is(own: Intervals, *methods: str) -> Rows:
    return np.asarray(np.array([method in methods for method in own.method.values], np.bool_)[own.method.codes])


def _reasons(own: Intervals) -> Said:
    has = np.array([bool(text) for text in own.why.values], np.bool_)[own.why.codes]
    for row in np.flatnonzero(has).tolist():
        method = own.method[row]
        head = "interval" if method else "no interval"
        yield row, Note("interval", f"{head}: {own.why[row]}", {"method": method or None})


def _parting(table: Table, own: Intervals) -> Said:
    """Say where an interval holds 0 beside a p that is small, or the reverse, and how that can be."""
    level = np.array([level_of(each) if each == each else np.nan for each in own.confidence.tolist()])  # noqa: PLR0124
    holds = (own.low <= 0) & (own.high >= 0)
    small = table.p_value <= level
    known = ~np.isnan(table.p_value) & ~np.isnan(own.low) & (table.n_trials > 0)
    for row in np.flatnonzero(known & (holds == small)).tolist():
        what = "contains 0 though" if holds[row] else "leaves 0 out though"
        p, method = p_equals(float(table.p_value[row])), own.method[row]
        percent = f"{100 * own.confidence[row]:.4g} %"
        text = f"the {percent} interval {what} {p}: {_reason(table.alternative[row], method)}"
        numbers = {"confidence": float(own.confidence[row]), "p_value": float(table.p_value[row])}
        yield row, Note("interval-differs", text, numbers)


def _reason(alternative: str, method: str) -> str:
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


def _short(table: Table, own: Intervals) -> Said:
    told: dict[int, list[Shortfall]] = {}
    for shortfall, rows in shortfalls(table, own):
        for row in np.flatnonzero(rows).tolist():
            told.setdefault(row, []).append(shortfall)
    for row, found in told.items():
        why = " and ".join(one.text for one in found)
        text = (
            f"{why}: intervals of such data were measured to hold the true difference less often than "
            f"{100 * own.confidence[row]:.4g} % of the time (docs/statistics.md); read it as too short"
        )
        numbers = {"shortfalls": ", ".join(one.name for one in found), "skewness": _or_none(own.skewness[row])}
        yield row, Note("interval-coverage", text, numbers)


def _or_none(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)


def beside_adjusted(table: Table) -> list[Note]:
    """Say of adjusted p-values where intervals seem to say otherwise: simultaneous ones, or those that are none."""
    own, beside = table.intervals, details_of(table)
    if own is None:
        return []
    if beside.has_interval.any():
        return _simultaneous(table, beside)
    apart = ~np.isnan(own.low) & ((own.low > 0) | (own.high < 0)) & (table.p_adjusted > table.alpha)
    if not (n := int(np.count_nonzero(apart))):
        return []
    text = (
        f"intervals are of each comparison alone: {n:,} of {len(table):,} {'leaves' if n == 1 else 'leave'} 0 out "
        f"where the adjusted p is above {table.alpha:g}"
    )
    return [Note("intervals-alone", text, {"n_comparisons": n, "of": len(table), "alpha": table.alpha})]


def _simultaneous(table: Table, beside: AdjustmentDetails) -> list[Note]:
    """Say where a simultaneous interval and the verdict part."""
    rejected = table.p_adjusted <= table.alpha
    parts = beside.has_interval & (((beside.low > 0) | (beside.high < 0)) != rejected)
    if not (rows := np.flatnonzero(parts)).size:
        return []
    named = [f"{table.a[row]} and {table.b[row]}" for row in rows[:MOST_NAMED].tolist()]
    more = f" and {len(rows) - len(named):,} more" if len(rows) > len(named) else ""
    text = (
        f"the simultaneous interval and the adjusted p of {', '.join(named)}{more} part: the interval takes one step "
        "and resamples units, the p that decides may step down, exchange outputs, or be the larger of two"
    )
    return [Note("simultaneous-differs", text, {"n_comparisons": len(rows), "of": len(table), "alpha": table.alpha})]


MOST_NAMED = 3
"""Comparisons that a note names."""
