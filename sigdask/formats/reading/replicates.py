"""Replicates: several files with one name (runs, seeds), or several samples of an item in one file.

Values of one item are averaged exactly if possible. The mean of three ratings is not a decimal, but a third of their
sum: with L the least common multiple of the numbers of values, an item contributes L times its mean to `score`, and L
to `items`. Both are exact, and the ratio of their sums is the mean of the items' means.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.checks import check_common_items, check_complete
from sigdask.counts.fields import Array, Bools, Floats
from sigdask.counts.texts import ScopeNote
from sigdask.formats.reading.alignment import describe_missing
from sigdask.formats.reading.options import Options
from sigdask.metrics import is_lower_better

MIN_IMBALANCE = 10
"""Ratio of two systems' numbers of samples per item from which a note says that the test may reject too often."""


Key = Hashable
Cells = dict[str, dict[Key, float | list[float]]]
"""Values by system and item key."""

MAX_WEIGHT = 5040
"""Largest common multiple of the numbers of values. Items beyond it contribute their rounded means."""


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


def _describe_imbalance(n_samples: Mapping[str, float]) -> list[ScopeNote]:
    """Return a note if one system has many more samples per item than another.

    Averages of more samples scatter less. Where few samples are right, the differences are then skewed, and a test at
    0.05 rejects up to 0.14 of equal pairs with 20 against 1 samples (`benchmarks.calibration`, unequal answers).
    """
    most, least = max(n_samples, key=n_samples.__getitem__), min(n_samples, key=n_samples.__getitem__)
    if not 0 < n_samples[least] * MIN_IMBALANCE <= n_samples[most]:
        return []
    ratio = f"{n_samples[most]:.3g} samples per item and {least} {n_samples[least]:.3g}"
    return [ScopeNote(f"{most} has {ratio}: p can be too small if few samples are right")]


def count_repeated(cells: Cells) -> tuple[int, int]:
    """Return the number of values of items that have several values, and the number of these items."""
    sizes = [len(value) for values in cells.values() for value in values.values() if isinstance(value, list)]
    return sum(sizes), len(sizes)


def build_averaged_counts(
    columns: Mapping[str, Cells],
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
    columns : mapping of str to Cells
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
        A value is missing, unless `options.missing` allows it.
    """
    cells = [values for column in columns.values() for values in column.values()]
    weight = math.lcm(*{len(value) for values in cells for value in values.values() if isinstance(value, list)})
    weight = weight if weight <= MAX_WEIGHT else 1
    n_samples = {
        system: float(np.mean([len(v) if isinstance(v, list) else 1 for v in values.values()] or [0]))
        for column in columns.values()
        for system, values in column.items()
    }

    def scale_mean(value: float | list[float]) -> float:
        """Return weight times the mean of values, in decimals: 3 times the mean of three 0.1 is exactly 0.3."""
        if isinstance(value, list):
            return float(sum(Decimal(repr(v)) for v in value) * weight / len(value))
        return value if weight == 1 or math.isnan(value) else float(Decimal(repr(value)) * weight)

    def scale_column(values: Mapping[Key, float | list[float]]) -> Floats:
        return np.array([scale_mean(values.get(item, math.nan)) for item in items], np.float64)

    counts = build_score_counts(
        {
            name: np.column_stack([scale_column(column.get(system, {})) for system in systems])
            for name, column in columns.items()
        },
        systems,
        tuple(items.values()),
        groups=groups,
        options=options,
        weight=weight,
        warnings=(*warnings, *_describe_imbalance(n_samples)),
    )
    numbers = {
        f"samples[{name}]" if name else "samples": np.column_stack(
            [[_count_values(column.get(system, {}).get(item)) for item in items] for system in systems]
        )
        for name, column in columns.items()
        if _are_repeated_outcomes(column)
    }
    return replace(counts, fields={**counts.fields, **numbers}) if numbers else counts


def _count_values(value: float | list[float] | None) -> int:
    return len(value) if isinstance(value, list) else int(value is not None)


def _are_repeated_outcomes(column: Cells) -> bool:
    """Return whether some items have several values, and all values are 0 or 1: samples that are wrong or right."""
    values = [value for cells in column.values() for value in cells.values()]
    numbers = {number for value in values for number in (value if isinstance(value, list) else [value])}
    return any(isinstance(value, list) for value in values) and numbers <= {0.0, 1.0}


def build_score_counts(
    matrices: Mapping[str, Array],
    systems: Sequence[str],
    ids: Sequence[str] | None,
    *,
    groups: Mapping[str, Sequence[str]],
    options: Options,
    weight: int = 1,
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
        Ids of the items.
    groups, options, warnings
        As in `build_averaged_counts`.
    weight : int
        Weight of an item in scores.

    Raises
    ------
    InputError
        A value is missing, unless `options.missing` allows it.
    """
    missing, n_items = options.missing or "error", len(next(iter(matrices.values())))
    fields: dict[str, Array] = {}
    held: dict[str, Bools] = {}
    present = np.zeros((n_items, len(systems)), np.bool_)
    for name, matrix in matrices.items():
        is_present = ~np.isnan(matrix)
        has_score = is_present.any(axis=1, keepdims=True)
        if not options.few_in_common:
            check_common_items(is_present, systems, missing, ids)
        is_zero_best = is_lower_better(name) or ((matrix < 0).any() and not (matrix > 0).any())
        if missing == "error" or (missing == "zero" and is_zero_best):
            noun = f"score {name!r}" if name else "score"
            check_complete(is_present | ~has_score, systems, ids, noun, None if is_zero_best else "")
        field_name = f"score[{name}]" if name else "score"
        fields[field_name] = np.nan_to_num(matrix, nan=0.0)
        held[field_name] = is_present if missing == "pairwise" else np.repeat(has_score, len(systems), axis=1)
        present |= held[field_name]
        if not has_score.all():
            fields[f"items[{name}]"] = np.asarray(weight * has_score.astype(np.int64))
    fields["items"] = np.full((n_items, 1), weight, np.int64)
    is_known = np.logical_and.reduce([~np.isnan(m) | np.isnan(m).all(1, keepdims=True) for m in matrices.values()])
    warnings = (*warnings, *describe_missing(is_known, systems, options))
    return Counts(
        systems=tuple(systems),
        fields=fields,
        n_items=n_items,
        ids=ids,
        groups=groups,
        present=None if present.all() else present,
        held={name: has_item for name, has_item in held.items() if not (has_item == present).all()},
        outputs=Outputs(tuple((fields["score"] / weight).T.astype(object))) if "" in matrices else None,
        suggested=tuple(name or "mean" for name in matrices),
        warnings=tuple(warnings),
    )
