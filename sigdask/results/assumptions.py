"""Doubts about a test's assumptions, listed for each row of a table."""

from __future__ import annotations

import numpy as np

from sigdask.results.columns.assumptions import CONFIDENCE, Assumption, Assumptions, deciding_text, plural
from sigdask.results.table import Table


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


def _one_sign(own: Assumptions, row: int, n_units: int, unit: str) -> Assumption:
    rate, size = float(own.unseen_rate[row]), float(own.cancelling_size[row])
    each = "" if np.isnan(size) else f", and {size:.3g} lost on each of them would cancel the difference"
    detail = (
        f"none of {n_units:,} {plural(unit, n_units)} favours the other system; up to {100 * rate:.3g} % of all may "
        f"({100 * CONFIDENCE:g} % bound){each}"
    )
    known = None if np.isnan(size) else size
    return Assumption("one-sign", "note", detail, unseen_rate=rate, cancelling_size=known)
