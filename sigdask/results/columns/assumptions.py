"""What the units of each comparison say about the test's assumptions: skewed differences, few deciding units."""

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
    """A doubt about the test's assumptions, read from the units of one comparison.

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
    """The diagnosis of comparisons, as columns: arrays of shape (n,).

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


def no_assumptions(n: int) -> Assumptions:
    """Return the columns of comparisons that were not diagnosed."""
    nothing, no = np.full(n, np.nan), np.zeros(n, np.bool_)
    return Assumptions(nothing, no, np.zeros(n, np.int64), no, nothing, nothing)


def unseen_rate(n_units: int) -> float:
    """Return the 95 % upper bound of the rate of units of which none was seen among so many.

    Examples
    --------
    >>> round(unseen_rate(20), 3)
    0.139
    """
    return float(1 - (1 - CONFIDENCE) ** (1 / max(n_units, 1)))


def kinds_text(kinds: Iterable[str]) -> str:
    """Return kinds of doubts in one cell; empty where there is none."""
    return ", ".join(kinds)


def deciding_text(n_deciding: int, n_units: int, unit: str) -> str:
    """Say how few units decide.

    Examples
    --------
    >>> deciding_text(2, 20, "item"), deciding_text(1, 1200, "topic")
    ('2 of 20 items decide', '1 of 1,200 topics decides')
    """
    return f"{n_deciding:,} of {n_units:,} {plural(unit, n_units)} decide{'s' if n_deciding == 1 else ''}"


def short_doubt(found: Iterable[Assumption], n_units: int, unit: str) -> str:
    """Say in a few words what a verdict should not be read without; empty where that is nothing."""
    kinds = {one.kind: one for one in found if one.severity == "warning"}
    if (few := kinds.get("few-units-decide")) is not None and few.n_deciding:
        return f"{deciding_text(few.n_deciding, n_units, unit)} it"
    return "skewed differences" if kinds else ""


def plural(unit: str, n: int = 2) -> str:
    """Return the plural of a unit's name, unless there is one; "units" of names that are no words."""
    name = unit if unit.isalpha() and not unit.endswith("s") else "unit"
    return name if n == 1 else f"{name}s"


def assumptions_of(found: Sequence[Iterable[Assumption]]) -> Assumptions | None:
    """Make columns of what is listed of each row, such as are read one by one."""
    listed = [{one.kind: one for one in own} for own in found]
    if not any(listed):
        return None
    columns = no_assumptions(len(listed))
    columns = Assumptions(*(getattr(columns, name).copy() for name in Assumptions.__slots__))
    for row, own in enumerate(listed):
        if (skewed := own.get("skewed-differences")) is not None:
            columns.is_skewed[row], columns.skewness[row] = True, skewed.skewness
        if (few := own.get("few-units-decide")) is not None:
            columns.n_deciding[row], columns.reverses[row] = few.n_deciding or 0, few.changes == "sign"
        if (sign := own.get("one-sign")) is not None:
            columns.unseen_rate[row] = sign.unseen_rate
            columns.cancelling_size[row] = np.nan if sign.cancelling_size is None else sign.cancelling_size
    return columns
