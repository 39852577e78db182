"""What the units of each comparison say about the test's assumptions: skewed differences, few deciding units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.grouping import numbered, rows_of
from sigdask.randomization.influence import Verdicts, unit_influence
from sigdask.randomization.panels.sums import SUMS, Panel

if TYPE_CHECKING:
    from sigdask.comparison.comparisons import Comparisons
    from sigdask.comparison.table import Table

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


def check_assumptions(asked: Sequence[Comparisons], table: Table) -> Assumptions:
    """Diagnose the units of the comparisons of test sets, whose results stand below each other in a table."""
    made = no_assumptions(len(table))
    columns = Assumptions(*(getattr(made, name).copy() for name in Assumptions.__slots__))
    verdicts, start = verdicts_of(table), 0
    for own in asked:
        for rows in rows_of(numbered(own.panel, own.column)):
            panel = own.panels[int(own.panel[rows[0]])]
            if panel.kind == SUMS and isinstance(panel, Panel):
                _enter(columns, panel, int(own.column[rows[0]]), own.row[rows].astype(np.int64), start + rows, verdicts)
        start += len(own)
    return columns


def _enter(
    columns: Assumptions,
    panel: Panel,
    metric: int,
    pairs: NDArray[np.int64],
    rows: NDArray[np.int64],
    verdicts: Verdicts,
) -> None:
    own = Verdicts(verdicts.decision[rows], verdicts.level[rows], verdicts.side[rows])
    found = unit_influence(panel, metric, pairs, own)
    columns.skewness[rows] = np.where(found.is_skewed, found.skewness, np.nan)
    for name in ("is_skewed", "n_deciding", "reverses"):
        getattr(columns, name)[rows] = getattr(found, name)
    one_sign = found.has_one_sign
    rate = unseen_rate(panel.n_units)
    columns.unseen_rate[rows[one_sign]] = rate
    if panel.linear[metric]:
        size = np.abs(panel.differences[pairs, metric]) * (1 - rate) / rate
        columns.cancelling_size[rows[one_sign]] = size[one_sign]


def verdicts_of(table: Table) -> Verdicts:
    """Return what was decided, and the level that p alone has to reach: of an adjusted p, as its adjustment tells."""
    sides = {"two-sided": 0, "greater": 1, "less": -1}
    side = np.array([sides[value] for value in table.alternative.values], np.int8)[table.alternative.codes]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(np.isnan(table.p_adjusted) | (table.p_adjusted == 0), 1.0, table.p_value / table.p_adjusted)
    return Verdicts(table.decision, np.nan_to_num(table.alpha * share, nan=table.alpha), side)


def unseen_rate(n_units: int) -> float:
    """Return the 95 % upper bound of the rate of units of which none was seen among so many.

    Examples
    --------
    >>> round(unseen_rate(20), 3)
    0.139
    """
    return float(1 - (1 - CONFIDENCE) ** (1 / max(n_units, 1)))


def listed_assumptions(table: Table) -> dict[int, tuple[Assumption, ...]]:
    """Return what was found of the rows of which something was."""
    own = table.assumptions
    if own is None:
        return {}
    found: dict[int, tuple[Assumption, ...]] = {}
    for row in np.flatnonzero(own.is_skewed | ~np.isnan(own.unseen_rate)).tolist():
        n_units = int(table.n_units[row])
        found[row] = (
            *([_skewed(own, row)] if own.is_skewed[row] else ()),
            *([_few(own, row, n_units, table.unit[row])] if own.n_deciding[row] else ()),
            *([] if np.isnan(own.unseen_rate[row]) else [_one_sign(own, row, n_units, table.unit[row])]),
        )
    return found


def kinds_text(kinds: Iterable[str]) -> str:
    """Return kinds of doubts in one cell; empty where there is none."""
    return ", ".join(kinds)


def _skewed(own: Assumptions, row: int) -> Assumption:
    skewness = float(own.skewness[row])
    detail = (
        f"the differences of units are skewed (skewness {skewness:+.1f}): the test and the interval assume symmetric "
        "differences if the systems are equal, and err where rare large ones were not drawn"
    )
    return Assumption("skewed-differences", "warning", detail, skewness=skewness)


def _few(own: Assumptions, row: int, n_units: int, unit: str) -> Assumption:
    n, reverses = int(own.n_deciding[row]), bool(own.reverses[row])
    what = "the other system would be ahead" if reverses else "the verdict would change"
    detail = f"{deciding_text(n, n_units, unit)} the result: without {'it' if n == 1 else 'them'} {what}"
    skewness, changes = float(own.skewness[row]), "sign" if reverses else "verdict"
    return Assumption("few-units-decide", "warning", detail, skewness, n, changes)  # type: ignore[arg-type]


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


def _one_sign(own: Assumptions, row: int, n_units: int, unit: str) -> Assumption:
    rate, size = float(own.unseen_rate[row]), float(own.cancelling_size[row])
    each = "" if np.isnan(size) else f", and {size:.3g} lost on each of them would cancel the difference"
    detail = (
        f"none of {n_units:,} {plural(unit, n_units)} favours the other system; up to {100 * rate:.3g} % of all may "
        f"({100 * CONFIDENCE:g} % bound){each}"
    )
    known = None if np.isnan(size) else size
    return Assumption("one-sign", "note", detail, unseen_rate=rate, cancelling_size=known)


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
