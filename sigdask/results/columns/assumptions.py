"""Doubts about the test's assumptions, from the units: skewed differences, few deciding units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
AssumptionKind = Literal["skewed-differences", "few-units-decide", "one-sign"]
Severity = Literal["warning", "note"]

CONFIDENCE = 0.95
"""Of the bound on the rate of units that were not seen."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """A doubt about the test's assumptions, based on the units of one comparison.

    Attributes
    ----------
    kind : {"skewed-differences", "few-units-decide", "one-sign"}
        What was found.
    severity : {"warning", "note"}
        Whether the verdict should not be read without it.
    detail : str
        The finding as a sentence.
    skewness : float or None
        Of the units' differences.
    n_deciding : int or None
        The fewest units without which the sign or the verdict changes.
    changes : {"sign", "verdict"} or None
        What changes without them.
    unseen_rate : float or None
        Where no unit favours the other system, the 95 % upper bound of the rate of such units.
    cancelling_size : float or None
        How much each of them would have to lose, at that rate, to cancel the difference.
    """

    kind: AssumptionKind
    severity: Severity
    detail: str
    skewness: float | None = None
    n_deciding: int | None = None
    changes: Literal["sign", "verdict"] | None = None
    unseen_rate: float | None = None
    cancelling_size: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Assumptions:
    """Doubts about the assumptions of comparisons, as columns: arrays of shape (n,).

    Attributes
    ----------
    skewness : float64
        Of the units' differences, where it is larger than chance makes it; else NaN.
    is_skewed : bool
        Where it is.
    n_deciding : int64
        The fewest units without which the sign or the verdict changes; 0 where these are not few.
    reverses : bool
        Whether the sign changes without them; else the verdict does.
    unseen_rate : float64
        Where all units that differ favour one system, the 95 % upper bound of the rate of others; else NaN.
    cancelling_size : float64
        How much each of them would have to lose to cancel the difference; NaN where scores are no means.
    """

    skewness: Floats
    is_skewed: NDArray[np.bool_]
    n_deciding: NDArray[np.int64]
    reverses: NDArray[np.bool_]
    unseen_rate: Floats
    cancelling_size: Floats


def build_empty_assumptions(n: int) -> Assumptions:
    """Return columns for `n` comparisons about which there are no doubts."""
    missing, is_false = np.full(n, np.nan), np.zeros(n, np.bool_)
    return Assumptions(missing, is_false, np.zeros(n, np.int64), is_false, missing, missing)


def compute_unseen_rate(n_units: int) -> float:
    """Return the 95 % upper bound on the rate of a kind of unit, if none occurs among `n_units`.

    Examples
    --------
    >>> round(compute_unseen_rate(20), 3)
    0.139
    """
    return float(1 - (1 - CONFIDENCE) ** (1 / max(n_units, 1)))


def format_kinds(kinds: Iterable[str]) -> str:
    """Join kinds of doubts for one table cell, empty if there is none."""
    return ", ".join(kinds)


def format_deciding(n_deciding: int, n_units: int, unit: str) -> str:
    """Return a phrase on how few units decide.

    Examples
    --------
    >>> format_deciding(2, 20, "item"), format_deciding(1, 1200, "topic")
    ('2 of 20 items decide', '1 of 1,200 topics decides')
    """
    return f"{n_deciding:,} of {n_units:,} {pluralize(unit, n_units)} decide{'s' if n_deciding == 1 else ''}"


def format_short_doubt(doubts: Iterable[Assumption], n_units: int, unit: str) -> str:
    """Return a short phrase for the most important doubt to show with a verdict, empty if there is no warning."""
    kinds = {doubt.kind: doubt for doubt in doubts if doubt.severity == "warning"}
    if (few_units := kinds.get("few-units-decide")) is not None and few_units.n_deciding:
        return f"{format_deciding(few_units.n_deciding, n_units, unit)} it"
    return "skewed differences" if kinds else ""


def pluralize(unit: str, n: int = 2) -> str:
    """Return a unit's name, plural unless `n` is 1; names that are no words become "unit" or "units"."""
    name = unit if unit.isalpha() and not unit.endswith("s") else "unit"
    return name if n == 1 else f"{name}s"


def build_assumptions(doubts: Sequence[Iterable[Assumption]]) -> Assumptions | None:
    """Return columns with the doubts of each row, or None if no row has any."""
    doubts_by_kind = [{doubt.kind: doubt for doubt in row_doubts} for row_doubts in doubts]
    if not any(doubts_by_kind):
        return None
    columns = build_empty_assumptions(len(doubts_by_kind))
    columns = Assumptions(*(getattr(columns, name).copy() for name in Assumptions.__slots__))
    for row, row_doubts in enumerate(doubts_by_kind):
        if (skewed := row_doubts.get("skewed-differences")) is not None:
            columns.is_skewed[row], columns.skewness[row] = True, skewed.skewness
        if (few_units := row_doubts.get("few-units-decide")) is not None:
            columns.n_deciding[row], columns.reverses[row] = few_units.n_deciding or 0, few_units.changes == "sign"
        if (one_sign := row_doubts.get("one-sign")) is not None:
            columns.unseen_rate[row] = one_sign.unseen_rate
            columns.cancelling_size[row] = np.nan if one_sign.cancelling_size is None else one_sign.cancelling_size
    return columns
