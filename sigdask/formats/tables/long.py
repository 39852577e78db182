"""Long tables of scores: a row a system and item, of one file or several."""

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
from sigdask.counts.shown import FirstLine
from sigdask.counts.texts import Texts, joined
from sigdask.errors import InputError
from sigdask.formats.reading.averages import of_matrices
from sigdask.formats.reading.options import Options, Source, systems_inside
from sigdask.formats.reading.replicates import one_sample
from sigdask.formats.reading.summaries import summary_items
from sigdask.formats.reading.tables import ID_NAMES, SCORE_NAMES, SYSTEM_NAMES, FileTable, read_table
from sigdask.formats.tables.notation import in_numbers
from sigdask.formats.tables.scores import no_gold
from sigdask.metrics import is_lower_better
from sigdask.text import some


def read_long(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read rows of system, item and score."""
    options.only("long")
    no_gold(gold, "long")
    parts = [_long_table(source, options) for source in sources]
    rows = _LongRows.of(parts, sources)
    scores = rows.scores()
    items = rows.items.levels[rows.items.met[0]]
    dropped, notes = summary_items(items, scores.values())
    kept = np.ones(len(items), np.bool_)
    kept[list(dropped)] = False
    first = rows.items.met[1][rows.items.met[0]][kept]
    ids = items[kept] if dropped else items
    groups = {name: column[first] for name, column in zip(options.groups, rows.groups, strict=True)}
    warnings = [
        *(note for part in parts for note in part.table.notes),
        *(f"{', '.join(str(source.path) for source in sources)}: {note}" for note in notes),
    ]
    if options.score_column is not None and is_lower_better(options.score_column):
        matrix = np.column_stack([column[kept] for column in scores.values()]).astype(np.float64)
        return of_matrices(
            {options.score_column: matrix}, [*scores], ids, groups=groups, options=options, warnings=warnings
        )
    return Counts.from_scores(
        {name: column[kept] for name, column in scores.items()} if dropped else scores,
        ids=ids,
        groups=groups,
        name=options.name,
        missing=options.missing_policy,
        min_items=options.min_items,
        warnings=warnings,
    )


@dataclass(frozen=True, slots=True)
class _LongColumns:
    """The columns of a long table that matter."""

    table: FileTable
    systems: Factor
    items: Texts
    scores: NDArray[Any]
    groups: list[Texts]


def _long_table(source: Source, options: Options) -> _LongColumns:
    table = read_table(source.path, options.ignore, options.decimal)
    system, item, score = long_columns(table, options)
    table = one_sample(in_numbers(table, options, [score]), item, options, system=system)
    others = table.others(system, item, score, *options.groups, *options.ignore, *table.nested)
    if left := [name for name in others if table.is_numeric(name)]:
        said = f"{table.path}: {score!r} is compared; {some(left, 'column')} left out (--score-column chooses another)"
        table = replace(table, notes=[*table.notes, FirstLine(said)])
    groups = [Texts.of(table.column(name)) for name in options.groups]
    return _LongColumns(
        table, Factor.of(table.column(system)), Texts.of(table.column(item)), table.numbers(score), groups
    )


@dataclass(frozen=True, slots=True)
class _LongRows:
    """The rows of all long tables, one table after the other: system, item, score and groups of each."""

    systems: list[str]
    of_system: NDArray[np.intp]
    items: Factor
    values: list[NDArray[Any]]
    groups: list[Factor]

    @staticmethod
    def of(parts: Sequence[_LongColumns], sources: Sequence[Source]) -> _LongRows:
        """Bring tables together.

        Raises
        ------
        InputError
            An item has two scores of one system, or lies in several groups.
        """
        homes: dict[str, Path] = {}
        systems: dict[str, int] = {}
        of_system = []
        for part, source in zip(parts, sources, strict=True):
            order = part.systems.met[0]
            names = systems_inside(source, part.systems.levels[order].tolist(), homes, alone=len(sources) == 1)
            codes = np.empty(len(order), np.intp)
            codes[order] = [systems.setdefault(name, len(systems)) for name in names]
            of_system.append(codes[part.systems.codes])
        items = Factor.of(joined([part.items for part in parts]))
        groups = [Factor.of(joined(list(columns))) for columns in zip(*(part.groups for part in parts), strict=True)]
        rows = _LongRows([*systems], np.concatenate(of_system), items, [part.scores for part in parts], groups)
        cells = np.sort(rows.of_system * len(items.levels) + items.codes)
        first = items.met[1][items.codes]
        if (cells[1:] == cells[:-1]).any() or any((own.codes != own.codes[first]).any() for own in groups):
            raise rows.refused(parts)
        return rows

    def refused(self, parts: Sequence[_LongColumns]) -> InputError:
        """Return the error for the first row that has no place."""
        cells: dict[tuple[int, int], tuple[Path, int]] = {}
        items: dict[int, tuple[str, ...]] = {}
        lines = ((part.table.path, line) for part in parts for line in part.table.lines)
        of_groups = zip(*self.groups, strict=True) if self.groups else repeat(())
        for (path, line), system, code, group in zip(
            lines, self.of_system.tolist(), self.items.codes.tolist(), of_groups, strict=False
        ):
            item = self.items.levels[code]
            if (system, code) in cells:
                other, at = cells[system, code]
                return InputError(
                    f"{path}, line {line}: system {self.systems[system]!r}, item {item!r} has a score already, "
                    f"on line {at} of {other}"
                )
            if items.setdefault(code, group) != group:
                return InputError(f"{path}, line {line}: item {item!r} is in {group}, elsewhere in {items[code]}")
            cells[system, code] = path, line
        raise AssertionError

    def scores(self) -> LongScores:
        """Return the scores of each system."""
        order = np.argsort(self.of_system, kind="stable")
        bounds = np.searchsorted(self.of_system[order], np.arange(len(self.systems) + 1))
        place = np.empty(len(self.items.levels), np.intp)
        place[self.items.met[0]] = np.arange(len(place))
        kinds = [values.dtype for values in self.values]
        values = np.concatenate(self.values) if len(self.values) > 1 else self.values[0]
        part_of = np.repeat(np.arange(len(kinds)), [len(own) for own in self.values])
        own_kinds = [kinds[part_of[order[first]]] for first in bounds[:-1]]
        return LongScores(self.systems, values[order], place[self.items.codes[order]], bounds, own_kinds, len(place))


@dataclass(frozen=True, slots=True)
class LongScores(Mapping[str, NDArray[Any]]):
    """The scores of systems in the order of items, NaN for what has none; made when they are asked for."""

    systems: list[str]
    numbers: NDArray[Any]
    places: NDArray[np.intp]
    bounds: NDArray[np.intp]
    kinds: list[np.dtype[Any]]
    n_items: int

    def __getitem__(self, system: str) -> NDArray[Any]:
        k = self.systems.index(system)
        own = slice(self.bounds[k], self.bounds[k + 1])
        scores = np.full(self.n_items, np.nan, self.kinds[k])
        scores[self.places[own]] = self.numbers[own]
        return scores

    def __iter__(self) -> Iterator[str]:
        return iter(self.systems)

    def __len__(self) -> int:
        return len(self.systems)


def long_columns(table: FileTable, options: Options) -> tuple[str, str, str]:
    """Return the columns of system, item and score.

    Raises
    ------
    InputError
        Where one is not there under a conventional name and was not named.
    """
    found = (
        options.system_column or table.conventional(SYSTEM_NAMES),
        options.id_column or table.conventional(ID_NAMES),
        options.score_column or table.conventional(SCORE_NAMES),
    )
    for name, what, option in zip(
        found, ("system", "item", "score"), ("--system-column", "--id", "--score-column"), strict=True
    ):
        if name is None:
            raise InputError(
                f"{table.path}: no {what} column; columns: {', '.join(table.columns)}; name it with {option}"
            )
        table.column(name)
    system, item, score = (name or "" for name in found)
    return system, item, score
