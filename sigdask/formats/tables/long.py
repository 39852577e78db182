"""Long tables of scores: one row for each system and item, in one or several files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.factors import Factor
from sigdask.counts.item_texts import ScopeNote
from sigdask.counts.texts import Texts, join_columns
from sigdask.errors import InputError
from sigdask.formats.reading.averages import build_score_counts
from sigdask.formats.reading.options import Options, Source, list_row_systems
from sigdask.formats.reading.replicates import select_one_sample
from sigdask.formats.reading.summaries import find_summary_items
from sigdask.formats.reading.tables import ID_NAMES, SCORE_NAMES, SYSTEM_NAMES, FileTable, read_table
from sigdask.formats.tables.score_notation import convert_scores
from sigdask.formats.tables.scores import check_no_gold
from sigdask.metrics import is_lower_better
from sigdask.text import describe_items


def read_long(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read rows of system, item and score."""
    options.check_format_options("long")
    check_no_gold(gold, "long")
    long_tables = [_read_long_table(source, options) for source in sources]
    rows = _LongRows.from_tables(long_tables, sources)
    scores = rows.build_scores()
    items = rows.items.levels[rows.items.first_occurrences[0]]
    dropped, notes = find_summary_items(items, scores.values())
    is_kept = np.ones(len(items), np.bool_)
    is_kept[list(dropped)] = False
    first_rows = rows.items.first_occurrences[1][rows.items.first_occurrences[0]][is_kept]
    ids = items[is_kept] if dropped else items
    groups = {name: column[first_rows] for name, column in zip(options.groups, rows.groups, strict=True)}
    warnings = [
        *(note for long_table in long_tables for note in long_table.table.notes),
        *(f"{', '.join(str(source.path) for source in sources)}: {note}" for note in notes),
    ]
    if options.score_column is not None and is_lower_better(options.score_column):
        matrix = np.column_stack([column[is_kept] for column in scores.values()]).astype(np.float64)
        return build_score_counts(
            {options.score_column: matrix}, [*scores], ids, groups=groups, options=options, warnings=warnings
        )
    return Counts.from_scores(
        {name: column[is_kept] for name, column in scores.items()} if dropped else scores,
        ids=ids,
        groups=groups,
        name=options.name,
        missing=options.missing_policy,
        min_items=options.min_items,
        warnings=warnings,
    )


@dataclass(frozen=True, slots=True)
class _LongColumns:
    """The columns of one long table that are read: system, item, score and groups."""

    table: FileTable
    systems: Factor
    items: Texts
    scores: NDArray[Any]
    groups: list[Texts]


def _read_long_table(source: Source, options: Options) -> _LongColumns:
    table = read_table(source.path, options.ignore, options.decimal)
    system, item, score = find_long_columns(table, options)
    table = select_one_sample(convert_scores(table, options, [score]), item, options, system=system)
    other_columns = table.list_other_columns(system, item, score, *options.groups, *options.ignore, *table.nested)
    if omitted := [name for name in other_columns if table.is_numeric(name)]:
        note = (
            f"{table.path}: {score!r} is compared; {describe_items(omitted, 'column')} left out (--score-column "
            "chooses another)"
        )
        table = replace(table, notes=[*table.notes, ScopeNote(note)])
    groups = [Texts.from_values(table.get_column(name)) for name in options.groups]
    return _LongColumns(
        table,
        Factor.from_values(table.get_column(system)),
        Texts.from_values(table.get_column(item)),
        table.get_numbers(score),
        groups,
    )


@dataclass(frozen=True, slots=True)
class _LongRows:
    """The concatenated rows of all long tables: system, item, score and groups."""

    systems: list[str]
    system_codes: NDArray[np.intp]
    items: Factor
    values: list[NDArray[Any]]
    groups: list[Factor]

    @staticmethod
    def from_tables(long_tables: Sequence[_LongColumns], sources: Sequence[Source]) -> _LongRows:
        """Concatenate long tables.

        Raises
        ------
        InputError
            An item has two scores of one system, or lies in several groups.
        """
        homes: dict[str, Path] = {}
        systems: dict[str, int] = {}
        codes_by_table = []
        for long_table, source in zip(long_tables, sources, strict=True):
            order = long_table.systems.first_occurrences[0]
            names = list_row_systems(
                source, long_table.systems.levels[order].tolist(), homes, is_only_file=len(sources) == 1
            )
            codes = np.empty(len(order), np.intp)
            codes[order] = [systems.setdefault(name, len(systems)) for name in names]
            codes_by_table.append(codes[long_table.systems.codes])
        items = Factor.from_values(join_columns([long_table.items for long_table in long_tables]))
        groups = [
            Factor.from_values(join_columns(list(columns)))
            for columns in zip(*(long_table.groups for long_table in long_tables), strict=True)
        ]
        rows = _LongRows(
            [*systems], np.concatenate(codes_by_table), items, [long_table.scores for long_table in long_tables], groups
        )
        cells = np.sort(rows.system_codes * len(items.levels) + items.codes)
        first_rows = items.first_occurrences[1][items.codes]
        if (cells[1:] == cells[:-1]).any() or any((group.codes != group.codes[first_rows]).any() for group in groups):
            raise rows.build_row_error(long_tables)
        return rows

    def build_row_error(self, long_tables: Sequence[_LongColumns]) -> InputError:
        """Return the error for the first row with a repeated score or a conflicting group."""
        cells: dict[tuple[int, int], tuple[Path, int]] = {}
        items: dict[int, tuple[str, ...]] = {}
        lines = ((long_table.table.path, line) for long_table in long_tables for line in long_table.table.lines)
        groups_by_row = zip(*self.groups, strict=True) if self.groups else repeat(())
        for (path, line), system, code, group in zip(
            lines, self.system_codes.tolist(), self.items.codes.tolist(), groups_by_row, strict=False
        ):
            item = self.items.levels[code]
            if (system, code) in cells:
                other_path, other_line = cells[system, code]
                return InputError(
                    f"{path}, line {line}: system {self.systems[system]!r}, item {item!r} has a score already, "
                    f"on line {other_line} of {other_path}"
                )
            if items.setdefault(code, group) != group:
                return InputError(f"{path}, line {line}: item {item!r} is in {group}, elsewhere in {items[code]}")
            cells[system, code] = path, line
        raise AssertionError

    def build_scores(self) -> LongScores:
        """Return the scores of each system."""
        order = np.argsort(self.system_codes, kind="stable")
        bounds = np.searchsorted(self.system_codes[order], np.arange(len(self.systems) + 1))
        item_positions = np.empty(len(self.items.levels), np.intp)
        item_positions[self.items.first_occurrences[0]] = np.arange(len(item_positions))
        kinds = [values.dtype for values in self.values]
        values = np.concatenate(self.values) if len(self.values) > 1 else self.values[0]
        table_numbers = np.repeat(np.arange(len(kinds)), [len(table_values) for table_values in self.values])
        system_kinds = [kinds[table_numbers[order[start]]] for start in bounds[:-1]]
        return LongScores(
            self.systems,
            values[order],
            item_positions[self.items.codes[order]],
            bounds,
            system_kinds,
            len(item_positions),
        )


@dataclass(frozen=True, slots=True)
class LongScores(Mapping[str, NDArray[Any]]):
    """The scores of systems in item order, built on demand; NaN where a system has none."""

    systems: list[str]
    numbers: NDArray[Any]
    positions: NDArray[np.intp]
    bounds: NDArray[np.intp]
    kinds: list[np.dtype[Any]]
    n_items: int

    def __getitem__(self, system: str) -> NDArray[Any]:
        k = self.systems.index(system)
        span = slice(self.bounds[k], self.bounds[k + 1])
        scores = np.full(self.n_items, np.nan, self.kinds[k])
        scores[self.positions[span]] = self.numbers[span]
        return scores

    def __iter__(self) -> Iterator[str]:
        return iter(self.systems)

    def __len__(self) -> int:
        return len(self.systems)


def find_long_columns(table: FileTable, options: Options) -> tuple[str, str, str]:
    """Return the names of the system, item and score columns.

    Raises
    ------
    InputError
        Where one is not there under a conventional name and was not named.
    """
    names = (
        options.system_column or table.find_column(SYSTEM_NAMES),
        options.id_column or table.find_column(ID_NAMES),
        options.score_column or table.find_column(SCORE_NAMES),
    )
    for name, role, option in zip(
        names, ("system", "item", "score"), ("--system-column", "--id", "--score-column"), strict=True
    ):
        if name is None:
            raise InputError(
                f"{table.path}: no {role} column; columns: {', '.join(table.columns)}; name it with {option}"
            )
        table.get_column(name)
    system, item, score = (name or "" for name in names)
    return system, item, score
