"""Several values of one item: averaged, and kept as exact sums where that can be.

The mean of three ratings is no decimal, but a third of a sum is: with L the least common multiple
of the numbers of values, an item contributes L times its mean to `score` and L to `items`. Both
are exact, and the ratio of their sums is the mean of the items' means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Array, Counts
from sigdask.formats.options import Options

Cells = dict[str, dict[str, float | list[float]]]
"""System, then item, to its value or values."""

MOST_WEIGHT = 64
"""The largest L; items with more unlike numbers of values contribute their rounded means."""


def add(cells: Cells, system: str, item: str, value: float) -> None:
    """Add a value of an item; lists are made of the second one on, for memory's sake."""
    own = cells.setdefault(system, {})
    before = own.get(item)
    if before is None:
        own[item] = value
    elif isinstance(before, list):
        before.append(value)
    else:
        own[item] = [before, value]


def averaged(
    columns: Mapping[str, Cells],
    items: Sequence[str],
    *,
    groups: Mapping[str, Sequence[str]],
    options: Options,
    warnings: Sequence[str] = (),
) -> Counts:
    """Return counts of item means.

    Parameters
    ----------
    columns : mapping of str to Cells
        The values of each column of scores; the column "" is the field `score`, NAME `score[NAME]`.
        All columns have the same systems.
    items : sequence of str
        Ids, in order; an item that a system's cells lack is missing there.
    groups, warnings
        As in `Counts`.
    options : Options
        Its `missing` and `name`.

    Raises
    ------
    InputError
        For a missing value, unless `options.missing` allows it.
    """
    systems = list(next(iter(columns.values())))
    weight = _weight(columns)
    fields: dict[str, Array] = {}
    base: Counts | None = None
    for name, cells in columns.items():
        matrix = np.column_stack([_column(cells[system], items, weight) for system in systems])
        if base is None:
            base = Counts.from_scores(
                {system: matrix[:, k] / weight for k, system in enumerate(systems)},
                ids=items,
                groups=groups,
                name=options.name,
                missing=options.missing,
                warnings=warnings,
            )
        fields[f"score[{name}]" if name else "score"] = np.nan_to_num(matrix, nan=0.0)
    assert base is not None
    fields["items"] = np.full((len(items), 1), weight, np.int64)
    return replace(base, fields=fields, outputs=base.outputs if "" in columns else None)


def _weight(columns: Mapping[str, Cells]) -> int:
    counts = {
        len(value)
        for cells in columns.values()
        for own in cells.values()
        for value in own.values()
        if isinstance(value, list)
    }
    weight = math.lcm(1, *counts)
    return weight if weight <= MOST_WEIGHT else 1


def _column(own: Mapping[str, float | list[float]], items: Sequence[str], weight: int) -> NDArray[np.float64]:
    return np.array([_scaled(own.get(item, math.nan), weight) for item in items], np.float64)


def _scaled(value: float | list[float], weight: int) -> float:
    """Return weight times the mean, through decimals: 0.1 three times is 0.3, not 0.30000000000000004."""
    if isinstance(value, list):
        return float(sum(Decimal(repr(v)) for v in value) * weight / len(value))
    return value if weight == 1 or math.isnan(value) else float(Decimal(repr(value)) * weight)
