"""Doubts about the test's assumptions as sentences, for each row of a table."""

from __future__ import annotations

import numpy as np

from sigdask.results.columns.assumptions import CONFIDENCE, Assumption, Assumptions, format_deciding, pluralize
from sigdask.results.table import Table


def list_assumptions(table: Table) -> dict[int, tuple[Assumption, ...]]:
    """Return the doubts about the test's assumptions for each row that has any."""
    columns = table.assumptions
    if columns is None:
        return {}
    doubts: dict[int, tuple[Assumption, ...]] = {}
    for row in np.flatnonzero(columns.is_skewed | ~np.isnan(columns.unseen_rate)).tolist():
        n_units = int(table.n_units[row])
        doubts[row] = (
            *([_describe_skewed(columns, row)] if columns.is_skewed[row] else ()),
            *([_describe_few(columns, row, n_units, table.unit[row])] if columns.n_deciding[row] else ()),
            *(
                []
                if np.isnan(columns.unseen_rate[row])
                else [_describe_one_sign(columns, row, n_units, table.unit[row])]
            ),
        )
    return doubts


def _describe_skewed(columns: Assumptions, row: int) -> Assumption:
    skewness = float(columns.skewness[row])
    detail = (
        f"the differences of units are skewed (skewness {skewness:+.1f}): the test and the interval assume symmetric "
        "differences if the systems are equal, and err where rare large ones were not drawn"
    )
    return Assumption("skewed-differences", "warning", detail, skewness=skewness)


def _describe_few(columns: Assumptions, row: int, n_units: int, unit: str) -> Assumption:
    n, reverses = int(columns.n_deciding[row]), bool(columns.reverses[row])
    consequence = "the other system would be ahead" if reverses else "the verdict would change"
    detail = f"{format_deciding(n, n_units, unit)} the result: without {'it' if n == 1 else 'them'} {consequence}"
    skewness, changes = float(columns.skewness[row]), "sign" if reverses else "verdict"
    return Assumption("few-units-decide", "warning", detail, skewness, n, changes)  # type: ignore[arg-type]


def _describe_one_sign(columns: Assumptions, row: int, n_units: int, unit: str) -> Assumption:
    rate, size = float(columns.unseen_rate[row]), float(columns.cancelling_size[row])
    size_text = "" if np.isnan(size) else f", and {size:.3g} lost on each of them would cancel the difference"
    detail = (
        f"none of {n_units:,} {pluralize(unit, n_units)} favours the other system; up to {100 * rate:.3g} % of all may "
        f"({100 * CONFIDENCE:g} % bound){size_text}"
    )
    known_size = None if np.isnan(size) else size
    return Assumption("one-sign", "note", detail, unseen_rate=rate, cancelling_size=known_size)
