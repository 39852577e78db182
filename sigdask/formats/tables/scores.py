"""Score tables: wide (one column a system), long (a row a system and item), or one file a system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.texts import Factor, Texts, joined
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import AS_THEY_STAND, Order, align, group_columns
from sigdask.formats.reading.numbers import holds_numbers
from sigdask.formats.reading.options import Options, Source, systems_inside, twice
from sigdask.formats.reading.summaries import ends_in_means, summary_items, without_mean_columns, without_summaries
from sigdask.formats.reading.tables import ID_NAMES, ROW_NAMES, SCORE_NAMES, SYSTEM_NAMES, Table, no_header, read_table

SUMMARY_NAMES = frozenset({"win_rate", "discrete_win_rate", "length_controlled_winrate", "lc_win_rate",
                           "standard_error", "std_error", "stderr", "lc_standard_error", "n_total", "n_wins",
                           "n_wins_base", "n_draws", "avg_length", "num_battles", "rating_q025", "rating_q975",
                           "elo"})  # fmt: skip
"""Columns of leaderboards, whose rows are systems."""

NO_SCORE_NAMES = frozenset({"rank", "n", "count", "support", "size", "length", "n_tokens", "n_words", "seed", "step",
                            "epoch", "time", "seconds", "line", "lineno", "line_number", "position"})  # fmt: skip
"""Columns that stand beside systems and are none."""

SPREADS = ("_std", "_sd", "_se", "_stderr", "_sem", "_ci", "_var")
"""Endings of such columns."""

MOST_CLASSES = 20


def read_wide(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read one table with a column a system, or one file of scores a system."""
    options.only("wide")
    _no_gold(gold, "wide")
    tables = [without_summaries(read_table(source.path, options.ignore), options) for source in sources]
    further = _further_groups(tables[0], options)
    options = replace(options, groups=(*options.groups, *further))
    ids, orders, warnings = align(tables[0], tables[1:], options)
    found: dict[str, tuple[Table, str, Order]] = {}
    homes: dict[str, Path] = {}
    for source, table, order in zip(sources, tables, [AS_THEY_STAND, *orders], strict=True):
        columns = table.others(table.id_name(options), *options.groups, *options.ignore)
        if not table.header and len(table.columns) > 1:
            raise no_header(table.path, table.lines[0])
        columns, said = without_mean_columns(table, columns)
        warnings += said
        if not columns:
            raise InputError(f"{table.path}: no column of scores besides ids; columns: {', '.join(table.columns)}")
        for column in columns:
            name = source.system if len(columns) == 1 < len(sources) else column
            if source.name is not None and len(columns) > 1 < len(sources):
                name = f"{source.name}:{column}"
            if homes.setdefault(name, table.path) != table.path:
                raise twice(table.path, name, homes[name])
            found[name or source.system] = table, column, order
    scores = Columns(found)
    groups = group_columns(tables[0], options)
    warnings += [
        f"{table.path}: column {name!r} counts the rows: taken for their ids or left out, no system"
        for table in tables
        for name in table.row_columns()
        if name.lower() not in ID_NAMES and not ROW_NAMES.fullmatch(name)
    ]
    warnings = [*warnings, *(f"column {name!r} holds no numbers: taken as groups of items" for name in further)]
    warnings += _doubts(tables, scores, ids)
    return Counts.from_scores(
        scores, ids=ids, groups=groups, name=options.name, missing=options.missing_policy, warnings=warnings
    )


@dataclass(frozen=True, slots=True)
class Columns(Mapping[str, NDArray[np.float64]]):
    """The scores of systems by their columns in tables, read when they are asked for."""

    found: Mapping[str, tuple[Table, str, Order]]

    def __getitem__(self, system: str) -> NDArray[np.float64]:
        table, column, order = self.found[system]
        numbers: NDArray[np.float64] = table.numbers(column)[order]
        return numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


def _doubts(
    tables: Sequence[Table], scores: Mapping[str, NDArray[np.float64]], ids: Sequence[str] | None
) -> Iterator[str]:
    """Say where columns may be no scores of items: of a leaderboard, class labels, counts; and rows no items."""
    path = tables[0].path
    summary = [name for name in scores if name.lower() in SUMMARY_NAMES]
    if len(summary) > 1:
        listed = ", ".join(summary[:3])
        yield f"{path}: columns {listed} look like a summary with a row a system; rows are taken for items"
        return
    for name in scores:
        if name.lower() in NO_SCORE_NAMES or name.lower().endswith(SPREADS):
            yield f"{path}: column {name!r} is taken for a system's scores; if it is none, --ignore {name}"
    n_items = tables[0].n_rows
    if len(scores) > n_items > 1 and len(tables) == 1:
        yield f"{path}: {len(scores)} systems on {n_items} items: are systems rows? Then transpose it"
    if ids is None and len(scores) > 1 and ends_in_means(list(scores.values())):
        yield f"{path}: the last row holds the means or totals of the others; remove it if it is no item"
    if all(list(table.columns) == [""] for table in tables):
        values = np.unique(np.concatenate(list(scores.values())))
        if values[-1] > 1 and len(values) <= MOST_CLASSES and (values == np.arange(len(values)) + values[0]).all():
            yield f"every score is a whole number up to {values[-1]:g}; are they class labels? Then give --gold FILE"


def _further_groups(table: Table, options: Options) -> list[str]:
    """Return the columns of texts that repeat: groups of items, which need not be named to be told apart."""
    found = []
    for name in table.others(table.id_name(options), *options.groups, *options.ignore, *table.nested):
        cells = table.columns[name]
        if holds_numbers(Texts.of(cells[:1])):
            continue
        values = Factor.of(cells).levels
        if 2 <= len(values) <= table.n_rows / 2 and not holds_numbers(values):
            found.append(name)
    return found


def read_long(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read rows of system, item and score."""
    options.only("long")
    _no_gold(gold, "long")
    rows = _Rows.of([_long_table(source, options) for source in sources], sources)
    scores = rows.scores()
    items = rows.items.levels[rows.items.met[0]]
    dropped, notes = summary_items(items, scores.values())
    kept = np.ones(len(items), np.bool_)
    kept[list(dropped)] = False
    first = rows.items.met[1][rows.items.met[0]][kept]
    return Counts.from_scores(
        {name: column[kept] for name, column in scores.items()} if dropped else scores,
        ids=items[kept] if dropped else items,
        groups={name: column[first] for name, column in zip(options.groups, rows.groups, strict=True)},
        name=options.name,
        missing=options.missing_policy,
        warnings=[f"{', '.join(str(source.path) for source in sources)}: {note}" for note in notes],
    )


@dataclass(frozen=True, slots=True)
class _Long:
    """The columns of a long table that matter."""

    table: Table
    systems: Factor
    items: Texts
    scores: NDArray[Any]
    groups: list[Texts]


def _long_table(source: Source, options: Options) -> _Long:
    table = read_table(source.path, options.ignore)
    system, item, score = long_columns(table, options)
    return _Long(
        table,
        Factor.of(table.column(system)),
        Texts.of(table.column(item)),
        table.numbers(score),
        [Texts.of(table.column(g)) for g in options.groups],
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of all long tables, one table after the other: system, item, score and groups of each."""

    systems: list[str]
    of_system: NDArray[np.intp]
    items: Factor
    values: list[NDArray[Any]]
    groups: list[Factor]

    @staticmethod
    def of(parts: Sequence[_Long], sources: Sequence[Source]) -> _Rows:
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
        rows = _Rows([*systems], np.concatenate(of_system), items, [part.scores for part in parts], groups)
        cells = np.sort(rows.of_system * len(items.levels) + items.codes)
        first = items.met[1][items.codes]
        if (cells[1:] == cells[:-1]).any() or any((own.codes != own.codes[first]).any() for own in groups):
            raise rows.refused(parts)
        return rows

    def refused(self, parts: Sequence[_Long]) -> InputError:
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
    values: NDArray[Any]
    places: NDArray[np.intp]
    bounds: NDArray[np.intp]
    kinds: list[np.dtype[Any]]
    n_items: int

    def __getitem__(self, system: str) -> NDArray[Any]:
        k = self.systems.index(system)
        own = slice(self.bounds[k], self.bounds[k + 1])
        scores = np.full(self.n_items, np.nan, self.kinds[k])
        scores[self.places[own]] = self.values[own]
        return scores

    def __iter__(self) -> Iterator[str]:
        return iter(self.systems)

    def __len__(self) -> int:
        return len(self.systems)


def long_columns(table: Table, options: Options) -> tuple[str, str, str]:
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


def _no_gold(gold: Path | None, name: str) -> None:
    if gold is not None:
        raise InputError(f"--gold {gold}: format {name} holds scores and takes no gold file")
