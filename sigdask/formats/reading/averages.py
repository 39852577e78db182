"""Average several values of one item, as exact sums where possible.

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
from sigdask.counts.checks import check_common_items
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
    """The values of one kind of score, by system and item.

    Attributes
    ----------
    cells : Cells
        Values of each system and item.
    sizes : mapping of key to int
        What an item counts, where that is not 1: its value is then a sum of so many parts.
    """

    cells: Cells = field(default_factory=dict)
    sizes: dict[Key, int] = field(default_factory=dict)


def add_value(cells: Cells, system: str, item: Key, value: float) -> None:
    """Add a value of an item; a list is created only for a second value, to save memory."""
    values = cells.setdefault(system, {})
    previous = values.get(item)
    if previous is None:
        values[item] = value
    elif isinstance(previous, list):
        previous.append(value)
    else:
        values[item] = [previous, value]


def count_repeated(cells: Cells) -> tuple[int, int]:
    """Return the number of values of items that have several values, and the number of these items."""
    sizes = [len(value) for values in cells.values() for value in values.values() if isinstance(value, list)]
    return sum(sizes), len(sizes)


def build_averaged_counts(
    columns: Mapping[str, ScoreColumn],
    systems: Sequence[str],
    items: Mapping[Key, str],
    *,
    groups: Mapping[str, Sequence[str]],
    options: Options,
    warnings: Sequence[str] = (),
) -> Counts:
    """Return counts in which the score of an item is the mean of its values.

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
    weight = _compute_weight(columns)
    return build_score_counts(
        {
            name: np.column_stack([_scale_values(column.cells.get(system, {}), items, weight) for system in systems])
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


def build_score_counts(
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
    """Return counts from matrices of scores, one for each score column.

    Parameters
    ----------
    matrices : mapping of str to array, shape (n_items, n_systems)
        Scores by the column's name, "" for the field `score`; NaN where a system has none.
    systems : sequence of str
        Names, in order.
    ids : sequence of str, or None
        Of the items.
    groups, options, warnings
        As in `build_averaged_counts`.
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
    field_presence: dict[str, NDArray[np.bool_]] = {}
    present = np.zeros((n_items, len(systems)), np.bool_)
    for name, matrix in matrices.items():
        is_present = ~np.isnan(matrix)
        has_score = np.asarray(is_present.any(axis=1))
        lacking = ~is_present & has_score.reshape(-1, 1)
        check_common_items(is_present, systems, options.min_items, missing, ids)
        if missing == "error" and lacking.any():
            raise _build_missing_error(name, ~lacking, systems, ids)
        field_presence[name] = (
            is_present if missing == "pairwise" else np.repeat(has_score.reshape(-1, 1), len(systems), axis=1)
        )
        present |= field_presence[name]
        fields[_format_field(name)] = np.nan_to_num(matrix, nan=0.0)
        item_values = (sizes or {}).get(name)
        if item_values is not None or not has_score.all():
            fields[f"items[{name}]"] = (weight * (1 if item_values is None else item_values) * has_score).reshape(-1, 1)
    fields["items"] = np.full((n_items, 1), weight, np.int64)
    return Counts(
        systems=tuple(systems),
        fields=fields,
        n_items=n_items,
        name=options.name,
        ids=ids,
        groups=groups,
        present=None if present.all() else present,
        held={
            _format_field(name): item_values
            for name, item_values in field_presence.items()
            if not (item_values == present).all()
        },
        outputs=Outputs(tuple((fields["score"] / weight).T.astype(object))) if "" in matrices else None,
        suggested=tuple(name or "mean" for name in matrices),
        warnings=tuple(warnings),
    )


def _format_field(column: str) -> str:
    return f"score[{column}]" if column else "score"


def _build_missing_error(
    name: str, present: NDArray[np.bool_], systems: Sequence[str], ids: Sequence[str] | None
) -> InputError:
    item, system = (int(k) for k in np.argwhere(~present)[0])
    position = f"for item {ids[item]!r}" if ids is not None else f"at position {item + 1}"
    return InputError(
        f"system {systems[system]!r} has no score {f'{name!r} ' if name else ''}{position} "
        f"({np.count_nonzero(~present)} missing in all); choose --missing pairwise (compare each pair on the items "
        "both have) or zero"
    )


def _compute_weight(columns: Mapping[str, ScoreColumn]) -> int:
    counts = {
        len(value)
        for column in columns.values()
        for values in column.cells.values()
        for value in values.values()
        if isinstance(value, list)
    }
    weight = math.lcm(1, *counts)
    return weight if weight <= MOST_WEIGHT else 1


def _scale_values(values: Mapping[Key, float | list[float]], items: Iterable[Key], weight: int) -> NDArray[np.float64]:
    return np.array([_scale_mean(values.get(item, math.nan), weight) for item in items], np.float64)


def _scale_mean(value: float | list[float], weight: int) -> float:
    """Return weight times the mean of values, in decimal arithmetic: 3 times the mean of three 0.1 is exactly 0.3."""
    if isinstance(value, list):
        return float(sum(Decimal(repr(v)) for v in value) * weight / len(value))
    return value if weight == 1 or math.isnan(value) else float(Decimal(repr(value)) * weight)
