"""Several values of one item: averaged, and kept as exact sums where that can be.

The mean of three ratings is no decimal, but a third of a sum is: with L the least common multiple
of the numbers of values, an item contributes L times its mean to `score` and L to `items`. Both
are exact, and the ratio of their sums is the mean of the items' means.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts, Outputs
from sigdask.counts.checks import check_common
from sigdask.counts.fields import Array
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options

Key = Hashable
Cells = dict[str, dict[Key, float | list[float]]]
"""System, then what an item is known by, to its value or values."""

MOST_WEIGHT = 5040
"""The largest L; items with more unlike numbers of values contribute their rounded means."""


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """One kind of score.

    Attributes
    ----------
    cells : Cells
        Values of each system and item.
    sizes : mapping of key to int
        What an item counts, where that is not 1: its value is then a sum of so many parts.
    """

    cells: Cells = field(default_factory=dict)
    sizes: dict[Key, int] = field(default_factory=dict)


def add(cells: Cells, system: str, item: Key, value: float) -> None:
    """Add a value of an item; lists are made of the second one on, for memory's sake."""
    own = cells.setdefault(system, {})
    before = own.get(item)
    if before is None:
        own[item] = value
    elif isinstance(before, list):
        before.append(value)
    else:
        own[item] = [before, value]


def repeated(cells: Cells) -> tuple[int, int]:
    """Count the values of items with more than one, and these items."""
    several = [len(value) for own in cells.values() for value in own.values() if isinstance(value, list)]
    return sum(several), len(several)


def averaged(
    columns: Mapping[str, ScoreColumn],
    systems: Sequence[str],
    items: Mapping[Key, str],
    *,
    groups: Mapping[str, Sequence[str]],
    options: Options,
    warnings: Sequence[str] = (),
) -> Counts:
    """Return counts of item means.

    Parameters
    ----------
    columns : mapping of str to ScoreColumn
        The column "" is the field `score`, NAME is `score[NAME]`.
    systems : sequence of str
        Names, in order.
    items : mapping of key to str
        Ids, in order. An item belongs to the columns that some system has it in; a system that
        lacks it in one of these misses it there, and in no other column.
    groups, warnings
        As in `Counts`.
    options : Options
        Its `missing` and `name`.

    Raises
    ------
    InputError
        For a missing value, unless `options.missing` allows it.
    """
    weight = _weight(columns)
    return of_matrices(
        {
            name: np.column_stack([_values(column.cells.get(system, {}), items, weight) for system in systems])
            for name, column in columns.items()
        },
        systems,
        tuple(items.values()),
        groups=groups,
        options=options,
        weight=weight,
        sizes={
            name: np.array([column.sizes.get(item, 1) for item in items], np.int64)
            for name, column in columns.items()
            if column.sizes
        },
        warnings=warnings,
    )


def of_matrices(
    matrices: Mapping[str, Array],
    systems: Sequence[str],
    ids: Sequence[str] | None,
    *,
    groups: Mapping[str, Sequence[str]],
    options: Options,
    weight: int = 1,
    sizes: Mapping[str, Array] | None = None,
    warnings: Sequence[str] = (),
) -> Counts:
    """Return counts of columns of scores.

    Parameters
    ----------
    matrices : mapping of str to array, shape (n_items, n_systems)
        Scores by the column's name, "" for the field `score`; NaN where a system has none.
    systems : sequence of str
        Names, in order.
    ids : sequence of str, or None
        Of the items.
    groups, options, warnings
        As in `averaged`.
    weight : int
        What an item counts in scores.
    sizes : mapping of str to array, shape (n_items,), optional
        What items count in a column, where that is not 1.

    Raises
    ------
    InputError
        For a missing value, unless `options.missing` allows it.
    """
    missing, n_items = options.missing or "error", len(next(iter(matrices.values())))
    fields: dict[str, Array] = {}
    held: dict[str, NDArray[np.bool_]] = {}
    present = np.zeros((n_items, len(systems)), np.bool_)
    for name, matrix in matrices.items():
        found = ~np.isnan(matrix)
        has = np.asarray(found.any(axis=1))
        lacking = ~found & has.reshape(-1, 1)
        check_common(found, systems, options.min_items, missing, ids)
        if missing == "error" and lacking.any():
            raise _missing(name, ~lacking, systems, ids)
        held[name] = found if missing == "pairwise" else np.repeat(has.reshape(-1, 1), len(systems), axis=1)
        present |= held[name]
        fields[_field(name)] = np.nan_to_num(matrix, nan=0.0)
        own = (sizes or {}).get(name)
        if own is not None or not has.all():
            fields[f"items[{name}]"] = (weight * (1 if own is None else own) * has).reshape(-1, 1)
    fields["items"] = np.full((n_items, 1), weight, np.int64)
    return Counts(
        systems=tuple(systems),
        fields=fields,
        n_items=n_items,
        name=options.name,
        ids=ids,
        groups=groups,
        present=None if present.all() else present,
        held={_field(name): own for name, own in held.items() if not (own == present).all()},
        outputs=Outputs(tuple((fields["score"] / weight).T.astype(object))) if "" in matrices else None,
        suggested=tuple(name or "mean" for name in matrices),
        warnings=tuple(warnings),
    )


def _field(column: str) -> str:
    return f"score[{column}]" if column else "score"


def _missing(name: str, present: NDArray[np.bool_], systems: Sequence[str], ids: Sequence[str] | None) -> InputError:
    item, system = (int(k) for k in np.argwhere(~present)[0])
    where = f"for item {ids[item]!r}" if ids is not None else f"at position {item + 1}"
    return InputError(
        f"system {systems[system]!r} has no score {f'{name!r} ' if name else ''}{where} "
        f"({np.count_nonzero(~present)} missing in all); choose --missing pairwise (compare each pair on the items "
        "both have) or zero"
    )


def _weight(columns: Mapping[str, ScoreColumn]) -> int:
    counts = {
        len(value)
        for column in columns.values()
        for own in column.cells.values()
        for value in own.values()
        if isinstance(value, list)
    }
    weight = math.lcm(1, *counts)
    return weight if weight <= MOST_WEIGHT else 1


def _values(own: Mapping[Key, float | list[float]], items: Iterable[Key], weight: int) -> NDArray[np.float64]:
    return np.array([_scaled(own.get(item, math.nan), weight) for item in items], np.float64)


def _scaled(value: float | list[float], weight: int) -> float:
    """Return weight times the mean, through decimals: 0.1 three times is 0.3, not 0.30000000000000004."""
    if isinstance(value, list):
        return float(sum(Decimal(repr(v)) for v in value) * weight / len(value))
    return value if weight == 1 or math.isnan(value) else float(Decimal(repr(value)) * weight)
