"""Wide tables of scores: one column a system, or one file a system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.factors import Factor
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.formats.reading.aggregated import is_metric
from sigdask.formats.reading.alignment import AS_THEY_STAND, Order, align, group_columns
from sigdask.formats.reading.numbers import holds_numbers
from sigdask.formats.reading.options import Options, Source, twice
from sigdask.formats.reading.replicates import one_sample
from sigdask.formats.reading.summaries import ends_in_means, without_mean_columns
from sigdask.formats.reading.tables import ID_NAMES, ROW_NAMES, FileTable, no_header, read_table
from sigdask.formats.tables.bookkeeping import GOLD_LIKE, chosen_systems
from sigdask.formats.tables.notation import score_table

SUMMARY_NAMES = frozenset({"win_rate", "discrete_win_rate", "length_controlled_winrate", "lc_win_rate",
                           "standard_error", "std_error", "stderr", "lc_standard_error", "n_total", "n_wins",
                           "n_wins_base", "n_draws", "avg_length", "num_battles", "rating_q025", "rating_q975",
                           "elo"})  # fmt: skip
"""Columns of leaderboards, whose rows are systems."""

SPREADS = ("_std", "_sd", "_se", "_stderr", "_sem", "_ci", "_var")
"""Endings of columns that stand beside systems and are none."""

MOST_CLASSES = 20


def read_wide(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read one table with a column a system, or one file of scores a system."""
    options.only("wide", systems=())
    no_gold(gold, "wide")
    tables = [score_table(source, options) for source in sources]
    texts = further_groups(tables[0], options)
    tables = [one_sample(table, table.id_name(options), options) for table in tables]
    further = [name for name in further_groups(tables[0], options) if name in texts]
    options = replace(options, groups=(*options.groups, *further), ignore=(*options.ignore, *({*texts} - {*further})))
    ids, orders, warnings = align(tables[0], tables[1:], options)
    found: dict[str, tuple[FileTable, str, Order]] = {}
    homes: dict[str, Path] = {}
    for source, table, order in zip(sources, tables, [AS_THEY_STAND, *orders], strict=True):
        columns = table.others(table.id_name(options), *options.groups, *options.ignore)
        columns = chosen_systems(table, options, columns)
        if not table.header and len(table.columns) > 1:
            commas = "" if len(table.columns) > 2 else "; or say --decimal , where commas part decimals"
            raise no_header(table.path, table.lines[0], commas)
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
    if len(found) < 2 and len(sources) == 1:
        raise _alone(tables[0], next(iter(found)), texts, options)
    scores = ScoreTables(found)
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
        scores,
        ids=ids,
        groups=groups,
        name=options.name,
        missing=options.missing_policy,
        min_items=options.min_items,
        warnings=warnings,
    )


def _alone(table: FileTable, name: str, groups: Sequence[str], options: Options) -> InputError:
    """Return the error for a table with one column of scores: what its other columns are, and what may be done."""
    left_out = "".join(f"; {note}" for note in table.notes if "left out as no" in note)
    columns = ", ".join(read_table(table.path, options.ignore, options.decimal).columns)
    which = " or ".join(map(repr, groups))
    way = f" Are systems named in {which}? Then call that column 'system' (or say --system-column)." if groups else ""
    return InputError(
        f"{table.path}: a comparison needs two systems or more, found only {name!r}; columns: {columns}{left_out}.{way}"
        " Give the scores of two systems at least"
    )


@dataclass(frozen=True, slots=True)
class ScoreTables(Mapping[str, NDArray[np.float64]]):
    """The scores of systems by their columns in tables, read when they are asked for."""

    found: Mapping[str, tuple[FileTable, str, Order]]

    def __getitem__(self, system: str) -> NDArray[np.float64]:
        table, column, order = self.found[system]
        numbers: NDArray[np.float64] = table.numbers(column)[order]
        return numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


def _doubts(
    tables: Sequence[FileTable], scores: Mapping[str, NDArray[np.float64]], ids: Sequence[str] | None
) -> Iterator[str]:
    """Say where columns may be no scores of items: of a leaderboard, class labels, counts; and rows no items."""
    path = tables[0].path
    summary = [name for name in scores if name.lower() in SUMMARY_NAMES]
    if len(summary) > 1:
        listed = ", ".join(summary[:3])
        yield f"{path}: columns {listed} look like a summary with a row a system; rows are taken for items"
        return
    for name in scores:
        if name.lower() in GOLD_LIKE or name.lower().endswith(SPREADS):
            yield f"{path}: column {name!r} is taken for a system's scores; if it is none, --ignore {name}"
    if len(tables) == 1 and all(map(is_metric, scores)):
        yield f"{path}: columns are called like metrics: taken for systems; are they of one? Then give a file a system"
    n_items = tables[0].n_rows
    if len(scores) > n_items > 1 and len(tables) == 1:
        yield f"{path}: {len(scores)} systems on {n_items} items: are systems rows? Then transpose it"
    if ids is None and len(scores) > 1 and ends_in_means(list(scores.values())):
        yield f"{path}: the last row holds the means or totals of the others; remove it if it is no item"
    if all(list(table.columns) == [""] for table in tables):
        values = np.unique(np.concatenate(list(scores.values())))
        if values[-1] > 1 and len(values) <= MOST_CLASSES and (values == np.arange(len(values)) + values[0]).all():
            yield f"every score is a whole number up to {values[-1]:g}; are they class labels? Then give --gold FILE"


def further_groups(table: FileTable, options: Options) -> list[str]:
    """Return the columns of texts that repeat: groups of items, which need not be named to be told apart."""
    found: list[str] = []
    if "systems" in options.own:
        return found
    for name in table.others(table.id_name(options), *options.groups, *options.ignore, *table.nested):
        cells = table.columns[name]
        if holds_numbers(Texts.of(cells[:1])):
            continue
        values = Factor.of(cells).levels
        if 2 <= len(values) <= table.n_rows / 2 and not holds_numbers(values):
            found.append(name)
    return found


def no_gold(gold: Path | None, name: str) -> None:
    """Refuse a gold file."""
    if gold is not None:
        raise InputError(f"--gold {gold}: format {name} holds scores and takes no gold file")
