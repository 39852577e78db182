"""Replicates: several files with one name (runs, seeds), or several samples of an item in one file.

Values of one item are averaged exactly if possible. The mean of three ratings is not a decimal, but a third of their
sum: with L the least common multiple of the numbers of values, an item contributes L times its mean to `score`, and L
to `items`. Both are exact, and the ratio of their sums is the mean of the items' means.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sigdask.counts import Counts, Outputs, Runs
from sigdask.counts.checks import check_common_items, check_complete
from sigdask.counts.factors import Factor
from sigdask.counts.fields import Array, Bools, Floats, Integers
from sigdask.counts.texts import ScopeNote, Texts
from sigdask.errors import InputError
from sigdask.formats.reading.files import build_repeated_id_error
from sigdask.formats.reading.missing import describe_missing
from sigdask.formats.reading.options import Options
from sigdask.formats.roles import resolve_roles
from sigdask.interface import spell
from sigdask.io.compression import set_variable
from sigdask.text import describe_items, format_count

if TYPE_CHECKING:
    from sigdask.formats.reading.tables import FileTable


MAX_SAMPLES = 5040
"""Largest least common multiple of the numbers of samples."""

MIN_IMBALANCE = 10
"""Ratio of two systems' numbers of samples per item from which a note says that the test may reject too often."""


@dataclass(slots=True)
class SamplesRead:
    """The samples of items with repeated ids in all tables, and the number of the sample that is currently read.

    Attributes
    ----------
    format_ : str
        The format that is read, for errors.
    may_differ : bool
        Whether items may have unlike numbers of samples: it was said that repeated ids are replicates.
    current : int
        The number of the sample that readers take of each item.
    sizes : dict of Path to list of int
        The numbers of samples that items of a table have.
    notes : dict of Path to str
        Notes on each table.
    places : dict of Path to (FileTable, array of int, array of int)
        Tables with replicates: for each row, the number of its sample and the number of its item's samples.
    numbers : dict of Path to dict
        The number of samples by system (None if the table has no column of systems) and item.
    runs : dict of Path to (str, set of tuple)
        The column of runs in tables that have one, and the names of each system's runs.
    """

    format_: str
    may_differ: bool
    current: int = 0
    sizes: dict[Path, list[int]] = field(default_factory=dict)
    notes: dict[Path, str] = field(default_factory=dict)
    places: dict[Path, tuple[FileTable, Integers, Integers]] = field(default_factory=dict)
    numbers: dict[Path, dict[tuple[str | None, str], int]] = field(default_factory=dict)
    runs: dict[Path, tuple[str, set[tuple[str, ...]]]] = field(default_factory=dict)

    def select_sample(self, path: Path) -> FileTable:
        """Return a table with the current sample of each item; an item with fewer samples repeats them in turn."""
        table, sample_numbers, n_rows = self.places[path]
        return table.select_rows(sample_numbers == self.current % n_rows)

    @property
    def n_samples(self) -> int:
        """Number of times tables are read: a common multiple of the sample counts of all items."""
        n = math.lcm(*(size for sizes in self.sizes.values() for size in sizes))
        if n > MAX_SAMPLES:
            path, sizes = max(self.sizes.items(), key=lambda item: len(item[1]))
            raise InputError(
                f"items have {describe_items(list(map(str, sizes)), 'different number')} of samples; average the "
                "scores of each item, or give all items equally many samples",
                file=path,
            )
        return n

    def count_samples(self, counts: Counts, paths: Sequence[Path]) -> Integers:
        """Return the number of samples of each item and system, -1 if a system's are not known.

        Parameters
        ----------
        counts : Counts
            Counts with these items and systems.
        paths : sequence of Path
            The files of the systems: one each, or one table of all.
        """
        columns = []
        for s, system in enumerate(counts.systems):
            path = paths[s] if len(paths) == counts.n_systems else paths[0]
            numbers = self.numbers.get(path)
            key = system if numbers and None not in {name for name, _ in numbers} else None
            column = [1 if numbers is None else numbers.get((key, item), 0) for item in counts.ids or ()]
            columns.append(column if any(column) else [-1] * counts.n_items)
        return np.array(columns, np.int64).T

    def find_runs(self, n_files: int) -> Runs | None:
        """Return the runs that replicates are: files of one name, or the values of a column. None if they are samples.

        Parameters
        ----------
        n_files : int
            Files of each system.
        """
        if n_files > 1:
            return Runs("run", tuple(map(str, range(1, n_files + 1))))
        names = set().union(*(table_names for _, table_names in self.runs.values()))
        if not names or self.runs.keys() != self.places.keys() or not self.is_uniform:
            return None
        first, is_shared = min(names), len(names) == 1
        shown = first if is_shared else tuple(map(str, range(1, len(first) + 1)))
        return Runs(next(iter(self.runs.values()))[0], shown, is_shared)

    @property
    def is_uniform(self) -> bool:
        """Whether all items of all tables have equally many samples."""
        return len({tuple(sizes) for sizes in self.sizes.values()}) == 1 and len(next(iter(self.sizes.values()))) == 1

    @property
    def first_lines(self) -> list[str]:
        """Notes on repeated ids, for the first lines of a report; more than two tables share one note."""
        paths = [*self.notes]
        if len(paths) <= 2:
            return [ScopeNote(note) for note in self.notes.values()]
        return [ScopeNote(f"{self.notes[paths[0]]}; {len(paths) - 1:,} more files repeat ids too")]


_current_samples: ContextVar[SamplesRead | None] = ContextVar("samples that are read", default=None)


@contextmanager
def collect_samples(format_: str, *, may_differ: bool) -> Iterator[SamplesRead]:
    """Treat repeated ids as samples of one item inside the `with` block, and count them."""
    samples = SamplesRead(format_, may_differ)
    with set_variable(_current_samples, samples):
        yield samples


def select_one_sample(
    table: FileTable, id_name: str | None, options: Options, *, within: Sequence[str] = (), gold: str | None = None
) -> FileTable:
    """Return the table with only the current sample of each item if ids are repeated; else the table unchanged.

    Parameters
    ----------
    table : FileTable
        The table as it was read.
    id_name : str or None
        Its column of ids.
    options : Options
        How to read.
    within : sequence of str
        Columns such as that of systems, each of which has items of its own.
    gold : str, optional
        The column of gold labels, which samples of an item share.

    Raises
    ------
    InputError
        Ids are repeated, and rows with one id are not samples of an item, or their numbers differ.
    """
    if id_name is None or options.align == "position":
        return table
    samples = _current_samples.get()
    if samples is not None and samples.current and table.path in samples.places:
        return samples.select_sample(table.path)
    cells = Texts.from_values(table.get_column(id_name))
    if not cells.sizes.all() or cells.are_unique:
        return table  # an empty id is refused where ids are checked
    items = Factor.from_values(cells)
    side = _join_columns(table, within)
    if len(np.unique(_compute_cell_numbers(items, side))) == len(items):
        return table
    roles = resolve_roles(table, options)
    aside = {id_name, *within}
    run_column = _find_run_column(table, items, side, options, [c for c in roles.list_all("run") if c not in aside])
    shared = {*roles.list_all(*SHARED_ROLES), *([] if gold is None else [gold])}
    if options.id_column is not None:  # it was said that rows with one id are of one item
        shared -= {*roles.list_all("unit", "subset")}
    _check_samples(table, id_name, items, {name for name in shared if name not in {*aside, run_column}})
    return _number_samples(table, id_name, items, side, run_column).select_sample(table.path)


SHARED_ROLES = ("gold", "unit", "subset", "text", "metric", "item", "system")
"""Roles of columns that have one value in all rows of an item."""


def _find_run_column(
    table: FileTable, items: Factor, within: Factor | None, options: Options, names: Sequence[str]
) -> str | None:
    """Return the column of runs (seeds, raters): each item has a row for each run of its system. None without one."""
    for name in names:
        runs = Factor.from_values(table.get_column(name))
        systems = np.zeros(len(items), np.int64) if within is None else within.codes.astype(np.int64)
        _, run_of_system, n_rows = np.unique(systems * len(runs.levels) + runs.codes, return_inverse=True,
                                             return_counts=True)  # fmt: skip
        cells = _compute_cell_numbers(items, within)
        n_items = np.bincount(systems[np.unique(cells, return_index=True)[1]])
        rows = np.unique(cells * len(runs.levels) + runs.codes)
        if len(rows) == len(items) and (n_rows[run_of_system.reshape(-1)] == n_items[systems]).all():
            return name
    if (requested := options.columns.get("run")) is not None:
        found = "some items lack a run or have two rows of it"
        raise InputError(f"column {requested!r} does not name runs: {found}", file=table.path)
    return None


def _check_samples(table: FileTable, id_name: str, items: Factor, shared: Collection[str]) -> None:
    """Raise an error if rows with one id differ in a column that samples of one item share."""
    for name in (name for name in table.columns if name in shared):
        column = Factor.from_values(table.columns[name])
        differs = column.codes != column.codes[items.first_occurrences[1][items.codes]]
        if differs.any():
            joint = spell("columns", f"item={name}+{id_name}")
            reason = (
                f"the rows differ in {name!r}. If both columns name the items, {joint}. If the rows are samples of "
            )
            reason += f"one item, {spell('ignore', name)}"
            raise _build_repeat_error(table, items, int(np.argmax(differs)), reason)


def _join_columns(table: FileTable, names: Sequence[str]) -> Factor | None:
    """Return the cells of columns joined row by row, None without columns."""
    columns = [table.get_column(name) for name in names]
    if len(columns) < 2:
        return Factor.from_values(columns[0]) if columns else None
    return Factor.from_values(map("/".join, zip(*columns, strict=True)))


def _compute_cell_numbers(items: Factor, within: Factor | None) -> Integers:
    """Return an integer for each row that identifies its item or, with `within`, its pair of item and system."""
    codes = items.codes.astype(np.int64)
    return codes if within is None else within.codes.astype(np.int64) * len(items.levels) + codes


def _build_repeat_error(
    table: FileTable, items: Factor, row: int, reason: str, within: Factor | None = None
) -> InputError:
    """Return the error for a row that repeats the id of an earlier row."""
    cells = _compute_cell_numbers(items, within)
    first_row = int(np.argmax(cells == cells[row]))
    item = repr(items[row]) if within is None else f"{items[row]!r} of system {within[row]!r}"
    position = "" if within is not None else f". If each row is an item of its own, {spell('align', 'position')}"
    place = f"{table.path}, line {table.lines[row]}"
    return build_repeated_id_error(place, item, f"on line {table.lines[first_row]}", reason + position)


def _number_samples(
    table: FileTable, id_name: str, items: Factor, within: Factor | None, run_column: str | None
) -> SamplesRead:
    """Store for each row its sample number and its item's number of samples, and return the object that holds them."""
    cells = _compute_cell_numbers(items, within)
    values, cell, n_rows = np.unique(cells, return_inverse=True, return_counts=True)
    cell = cell.reshape(-1)
    samples, n_items = _current_samples.get(), len(items.levels)
    sizes_by_system = np.split(n_rows, np.flatnonzero(np.diff(values // n_items)) + 1)
    are_even = n_items > 1 and all((system_sizes == system_sizes[0]).all() for system_sizes in sizes_by_system)
    if samples is None or not (are_even or samples.may_differ):
        row = int(np.argmax(n_rows[cell] > 1))
        row = int(np.flatnonzero(cells == cells[row])[1])
        name = "NAME" if samples is None else samples.format_
        problem = f"{np.count_nonzero(n_rows > 1):,} of {len(n_rows):,} ids are repeated, and not all equally often"
        remedy = f"{spell('format', f'{name}:replicates=together')} averages them"
        reason = f"{problem}. If rows are samples of one item, {remedy}. If another column belongs to the id, "
        reason += spell("columns", f"item={id_name}+COLUMN")
        raise _build_repeat_error(table, items, row, reason, within)
    sizes = sorted({*n_rows.tolist()})
    size_range = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    samples.sizes[table.path] = sizes
    samples.notes[table.path] = (
        f"{table.path}: {size_range} replicates of each of {format_count(n_items, 'item')} ({table.n_rows:,} rows), "
        "averaged as one unit"
    )
    sample_numbers = np.empty(len(cells), np.int64)
    starts = np.cumsum(n_rows) - n_rows
    rank = np.zeros(len(cells), np.int64)
    if run_column is not None:
        runs = [*table.get_column(run_column)]
        rank = np.unique(runs, return_inverse=True)[1].reshape(-1)
        side = [0] * len(runs) if within is None else within.codes.tolist()
        pairs = sorted({*zip(side, runs, strict=True)})
        names = {tuple(run for system, run in pairs if system == code) for code in {*side}}
        samples.runs[table.path] = run_column, names
        samples.notes[table.path] = f"{table.path}: {size_range} runs of each system (column {run_column!r})"
        table = replace(table, columns={name: c for name, c in table.columns.items() if name != run_column})
    sample_numbers[np.lexsort((rank, cell))] = np.arange(len(cells)) - np.repeat(starts, n_rows)
    samples.places[table.path] = table, sample_numbers, n_rows[cell]
    first_rows = np.unique(cell, return_index=True)[1].tolist()
    systems = [None] * len(n_rows) if within is None else [within[row] for row in first_rows]
    keys = zip(systems, (items[row] for row in first_rows), strict=True)
    samples.numbers[table.path] = dict(zip(keys, n_rows.tolist(), strict=True))
    return samples


Key = Hashable
Cells = dict[str, dict[Key, float | list[float]]]
"""Values by system and item key."""

MAX_WEIGHT = 5040
"""Largest common multiple of the numbers of values. Items beyond it contribute their rounded means."""


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """The values of one kind of score, by system and item.

    Attributes
    ----------
    cells : Cells
        Values of each system and item.
    sizes : mapping of key to int
        Weight of an item if it is not 1. Its value is then a sum of so many parts.
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


def describe_imbalance(n_samples: Mapping[str, float]) -> Iterator[ScopeNote]:
    """Yield a note if one system has many more samples per item than another.

    Averages of more samples scatter less. Where few samples are right, the differences are then skewed, and a test at
    0.05 rejects up to 0.14 of equal pairs with 20 against 1 samples (`benchmarks.calibration`, unequal answers).

    Parameters
    ----------
    n_samples : mapping of str to float
        Mean number of samples per item of each system.
    """
    most, least = max(n_samples, key=n_samples.__getitem__), min(n_samples, key=n_samples.__getitem__)
    if 0 < n_samples[least] * MIN_IMBALANCE <= n_samples[most]:
        ratio = f"{n_samples[most]:.3g} samples per item and {least} {n_samples[least]:.3g}"
        yield ScopeNote(f"{most} has {ratio}: p can be too small if few samples are right")


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
        A value is missing, unless `options.missing` allows it.
    """
    cells = [values for column in columns.values() for values in column.cells.values()]
    weight = math.lcm(*{len(value) for values in cells for value in values.values() if isinstance(value, list)})
    weight = weight if weight <= MAX_WEIGHT else 1
    n_samples = {
        system: float(np.mean([len(v) if isinstance(v, list) else 1 for v in values.values()] or [0]))
        for column in columns.values()
        for system, values in column.cells.items()
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
            name: np.column_stack([scale_column(column.cells.get(system, {})) for system in systems])
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
        warnings=(*warnings, *describe_imbalance(n_samples)),
    )
    numbers = {
        f"samples[{name}]" if name else "samples": np.column_stack(
            [[_count_values(column.cells.get(system, {}).get(item)) for item in items] for system in systems]
        )
        for name, column in columns.items()
        if not column.sizes and _are_repeated_outcomes(column)
    }
    return replace(counts, fields={**counts.fields, **numbers}) if numbers else counts


def _count_values(value: float | list[float] | None) -> int:
    return len(value) if isinstance(value, list) else int(value is not None)


def _are_repeated_outcomes(column: ScoreColumn) -> bool:
    """Return whether some items have several values, and all values are 0 or 1: samples that are wrong or right."""
    values = [value for cells in column.cells.values() for value in cells.values()]
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
        Ids of the items.
    groups, options, warnings
        As in `build_averaged_counts`.
    weight : int
        Weight of an item in scores.
    sizes : mapping of str to array, shape (n_items,), optional
        Weights of the items in a column, if not 1.

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
        if missing == "error":
            check_complete(is_present | ~has_score, systems, ids, f"score {name!r}" if name else "score")
        field_name = f"score[{name}]" if name else "score"
        fields[field_name] = np.nan_to_num(matrix, nan=0.0)
        held[field_name] = is_present if missing == "pairwise" else np.repeat(has_score, len(systems), axis=1)
        present |= held[field_name]
        item_values = (sizes or {}).get(name)
        if item_values is not None or not has_score.all():
            n_parts = np.ones(n_items, np.int64) if item_values is None else item_values
            fields[f"items[{name}]"] = np.asarray(weight * n_parts[:, None] * has_score)
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
