"""Wide tables of scores: one column for each system, or one file for each system."""

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
from sigdask.formats.reading.alignment import FILE_ORDER, RowOrder, align, get_group_columns
from sigdask.formats.reading.averages_only import is_metric_name
from sigdask.formats.reading.numbers import has_numbers
from sigdask.formats.reading.options import Options, Source, build_repeated_system_error
from sigdask.formats.reading.replicates import select_one_sample
from sigdask.formats.reading.summaries import has_mean_row, remove_summary_columns
from sigdask.formats.reading.tables import ID_NAMES, ROW_NAMES, FileTable, build_header_error, read_table
from sigdask.formats.tables.bookkeeping import GOLD_LIKE_NAMES, select_systems
from sigdask.formats.tables.score_notation import read_score_table

LEADERBOARD_NAMES = frozenset({"win_rate", "discrete_win_rate", "length_controlled_winrate", "lc_win_rate",
                           "standard_error", "std_error", "stderr", "lc_standard_error", "n_total", "n_wins",
                           "n_wins_base", "n_draws", "avg_length", "num_battles", "rating_q025", "rating_q975",
                           "elo"})  # fmt: skip
"""Columns of leaderboards, whose rows are systems."""

SPREAD_ENDINGS = ("_std", "_sd", "_se", "_stderr", "_sem", "_ci", "_var")
"""Endings of columns that stand beside systems and are none."""

MOST_CLASSES = 20


def read_wide(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read one table with a column for each system, or one file of scores for each system."""
    options.check_format_options("wide", systems=())
    check_no_gold(gold, "wide")
    tables = [read_score_table(source, options) for source in sources]
    texts = find_group_columns(tables[0], options)
    tables = [select_one_sample(table, table.find_id_column(options), options) for table in tables]
    further = [name for name in find_group_columns(tables[0], options) if name in texts]
    options = replace(options, groups=(*options.groups, *further), ignore=(*options.ignore, *({*texts} - {*further})))
    ids, orders, warnings = align(tables[0], tables[1:], options)
    score_columns: dict[str, tuple[FileTable, str, RowOrder]] = {}
    path_by_system: dict[str, Path] = {}
    for source, table, order in zip(sources, tables, [FILE_ORDER, *orders], strict=True):
        columns = table.list_other_columns(table.find_id_column(options), *options.groups, *options.ignore)
        columns = select_systems(table, options, columns)
        if not table.header and len(table.columns) > 1:
            commas = "" if len(table.columns) > 2 else "; or say --decimal , where commas part decimals"
            raise build_header_error(table.path, table.lines[0], commas)
        columns, notes = remove_summary_columns(table, columns)
        warnings += notes
        if not columns:
            raise InputError(f"{table.path}: no column of scores besides ids; columns: {', '.join(table.columns)}")
        for column in columns:
            name = source.system if len(columns) == 1 < len(sources) else column
            if source.name is not None and len(columns) > 1 < len(sources):
                name = f"{source.name}:{column}"
            if path_by_system.setdefault(name, table.path) != table.path:
                raise build_repeated_system_error(table.path, name, path_by_system[name])
            score_columns[name or source.system] = table, column, order
    if len(score_columns) < 2 and len(sources) == 1:
        raise _build_single_system_error(tables[0], next(iter(score_columns)), texts, options)
    scores = ScoreTables(score_columns)
    groups = get_group_columns(tables[0], options)
    warnings += [
        f"{table.path}: column {name!r} counts the rows: taken for their ids or left out, no system"
        for table in tables
        for name in table.list_row_columns()
        if name.lower() not in ID_NAMES and not ROW_NAMES.fullmatch(name)
    ]
    warnings = [*warnings, *(f"column {name!r} holds no numbers: taken as groups of items" for name in further)]
    warnings += _describe_doubts(tables, scores, ids)
    return Counts.from_scores(
        scores,
        ids=ids,
        groups=groups,
        name=options.name,
        missing=options.missing_policy,
        min_items=options.min_items,
        warnings=warnings,
    )


def _build_single_system_error(table: FileTable, name: str, groups: Sequence[str], options: Options) -> InputError:
    """Return the error for a table with only one score column, with advice on its other columns."""
    left_out = "".join(f"; {note}" for note in table.notes if "left out as no" in note)
    columns = ", ".join(read_table(table.path, options.ignore, options.decimal).columns)
    group_names = " or ".join(map(repr, groups))
    advice = (
        f" Are systems named in {group_names}? Then call that column 'system' (or say --system-column)."
        if groups
        else ""
    )
    return InputError(
        f"{table.path}: a comparison needs two systems or more, found only {name!r}; columns: "
        f"{columns}{left_out}.{advice}"
        " Give the scores of two systems at least"
    )


@dataclass(frozen=True, slots=True)
class ScoreTables(Mapping[str, NDArray[np.float64]]):
    """The scores of systems in table columns, read on demand."""

    score_columns: Mapping[str, tuple[FileTable, str, RowOrder]]

    def __getitem__(self, system: str) -> NDArray[np.float64]:
        table, column, order = self.score_columns[system]
        numbers: NDArray[np.float64] = table.get_numbers(column)[order]
        return numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self.score_columns)

    def __len__(self) -> int:
        return len(self.score_columns)


def _describe_doubts(
    tables: Sequence[FileTable], scores: Mapping[str, NDArray[np.float64]], ids: Sequence[str] | None
) -> Iterator[str]:
    """Yield warnings on columns that may not be scores of items, and on rows that may not be items."""
    path = tables[0].path
    summary = [name for name in scores if name.lower() in LEADERBOARD_NAMES]
    if len(summary) > 1:
        examples = ", ".join(summary[:3])
        yield f"{path}: columns {examples} look like a summary with a row a system; rows are taken for items"
        return
    for name in scores:
        if name.lower() in GOLD_LIKE_NAMES or name.lower().endswith(SPREAD_ENDINGS):
            yield f"{path}: column {name!r} is taken for a system's scores; if it is none, --ignore {name}"
    if len(tables) == 1 and all(map(is_metric_name, scores)):
        yield f"{path}: columns are called like metrics: taken for systems; are they of one? Then give a file a system"
    n_items = tables[0].n_rows
    if len(scores) > n_items > 1 and len(tables) == 1:
        yield f"{path}: {len(scores)} systems on {n_items} items: are systems rows? Then transpose it"
    if ids is None and len(scores) > 1 and has_mean_row(list(scores.values())):
        yield f"{path}: the last row holds the means or totals of the others; remove it if it is no item"
    if all(list(table.columns) == [""] for table in tables):
        values = np.unique(np.concatenate(list(scores.values())))
        if values[-1] > 1 and len(values) <= MOST_CLASSES and (values == np.arange(len(values)) + values[0]).all():
            yield f"every score is a whole number up to {values[-1]:g}; are they class labels? Then give --gold FILE"


def find_group_columns(table: FileTable, options: Options) -> list[str]:
    """Return the columns of repeating texts, which are groups of items."""
    groups: list[str] = []
    if "systems" in options.own:
        return groups
    for name in table.list_other_columns(
        table.find_id_column(options), *options.groups, *options.ignore, *table.nested
    ):
        cells = table.columns[name]
        if has_numbers(Texts.from_values(cells[:1])):
            continue
        values = Factor.from_values(cells).levels
        if 2 <= len(values) <= table.n_rows / 2 and not has_numbers(values):
            groups.append(name)
    return groups


def check_no_gold(gold: Path | None, name: str) -> None:
    """Raise an error if there is a gold file."""
    if gold is not None:
        raise InputError(f"--gold {gold}: format {name} holds scores and takes no gold file")
