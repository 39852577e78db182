"""Tables of scores in three shapes, and tables of responses.

A wide table has a column for each system. A long table has a row for each system and item, in one or several files.
Otherwise each file is one system, with columns of its scores. Which column has which role is decided by the columns'
names (`sigdask.formats.roles`). Tables of responses say in each row whether a response is of interest, and which
systems gave it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.factors import Factor
from sigdask.counts.fields import Array, Floats, LazyColumns
from sigdask.counts.precision import ScoreMatrix
from sigdask.counts.texts import ScopeNote, Texts, join_columns
from sigdask.errors import InputError, MissingColumnError
from sigdask.formats.reading.alignment import FILE_ORDER, RowOrder, align
from sigdask.formats.reading.columns import MAX_EXACT
from sigdask.formats.reading.listings import build_set_counts, read_by_system
from sigdask.formats.reading.missing import add_missing_rows, describe_missing
from sigdask.formats.reading.options import Options, Source, list_row_systems, list_system_names
from sigdask.formats.reading.replicates import build_score_counts, select_one_sample
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.roles import Roles, build_roles_error, name_role, resolve_roles, split_columns
from sigdask.interface import spell
from sigdask.metrics import is_lower_better

Integers = NDArray[np.intp]

TABLE_ROLES = ("score", "system", "metric", "gold", "prediction")
"""Roles beside which a column without a role is no system."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """A table of scores whose columns have roles.

    Attributes
    ----------
    table : FileTable
        The table.
    roles : Roles
        The roles of its columns.
    item : str or None
        Column of the items, or columns joined by "+". None if rows are items in their order.
    scores : tuple of str
        Columns of scores: of systems in a wide table, else of metrics.
    groups : tuple of str
        Columns of units and subsets.
    """

    table: FileTable
    roles: Roles
    item: str | None
    scores: tuple[str, ...]
    groups: tuple[str, ...]

    def select_one_sample(self, options: Options, *within: str) -> ScoreTable:
        """Return the table with the current sample of each item, if items have several rows.

        Raises
        ------
        InputError
            A unit or subset differs between rows of one item, and the user does not say that they are one item.
        """
        if self.item is None:
            return self
        varying = [name for name in self.groups if name not in within and self._varies(name)]
        if varying and options.id_column is None:
            joint = "+".join((*varying, self.item))
            ways = [
                f"{spell('columns', f'item={joint}')} (if items are numbered within them)",
                f"{spell('columns', f'item={self.item}')} (if rows of one {self.item!r} are samples of it)",
            ]
            raise build_roles_error(self.table, f"rows of one {self.item!r} differ in {_join(varying)}", ways)
        groups = tuple(name for name in self.groups if name not in varying or name in options.groups)
        own = options.with_columns(item=self.item)
        return replace(self, table=select_one_sample(self.table, self.item, own, within=within), groups=groups)

    def _varies(self, name: str) -> bool:
        """Return whether a column differs between rows of one item."""
        items = Factor.from_values(self.table.get_column(str(self.item)))
        if name not in self.table.columns or len(items.levels) == len(items):
            return False
        column = Factor.from_values(self.table.columns[name])
        pairs = items.codes.astype(np.int64) * len(column.levels) + column.codes
        return len(np.unique(pairs)) > len(items.levels)

    def get_numbers(self, column: str) -> Floats:
        """Return a column of scores as numbers; raise an error if it is empty, or holds anything else."""
        try:
            numbers = np.asarray(self.table.get_numbers(column))
        except InputError as error:
            raise _add_ways(error, self.table, column) from None
        if len(numbers) and np.isnan(numbers).all():
            raise InputError(
                f"column {column!r} has no score in any of {len(numbers):,} rows",
                file=self.table.path,
                remedy=f"leave it out: {spell('ignore', column)}",
            )
        return numbers


def _add_ways(error: InputError, table: FileTable, column: str) -> InputError:
    """Return an error about a cell that is no number, with the option that leaves its column out."""
    if column not in table.columns or len(table.columns) < 3:
        return error
    return InputError(f"{error}. If {column!r} holds no scores, leave it out: {spell('ignore', column)}")


def list_systems(table: FileTable, roles: Roles, options: Options) -> tuple[str, ...]:
    """Return the columns of a wide table that are systems: those that the user names, or those without a role.

    Raises
    ------
    InputError
        No column is left, or the roles of other columns show that the table is not wide.
    """
    if requested := options.own.get("systems"):
        columns = split_columns(requested, table.columns)
        for column in columns:
            table.get_column(column)
        return columns
    others = [column for role in (*TABLE_ROLES, "run", "text") for column in roles.columns.get(role, ())]
    named = {*options.groups, *options.columns.values()}
    others = [column for column in others if column not in named]
    if roles.unknown and not others:
        return roles.unknown
    raise _build_shape_error(table, roles)


def _build_shape_error(table: FileTable, roles: Roles) -> InputError:
    """Return the error for one table that is neither wide nor long, with all ways to read it."""
    unknown, scores = roles.unknown, roles.columns.get("score", ())
    others = sorted({*roles.columns} - {"item", "unit", "subset"})
    joint, runs = "+".join((*unknown, *scores)), roles.columns.get("run", ())[:1]
    are_systems = f"{spell('format', f'wide:systems={joint}')} (if all are systems)"
    ways = []
    if unknown and others:
        nouns = "columns" if len(unknown) > 1 else "column"
        problem = f"{nouns} {_join(unknown)}: no role, beside columns of the roles {', '.join(others)}"
        if len(unknown) > 1:
            aside = " ".join(
                spell("columns", f"run={name}") if name in runs else spell("ignore", name)
                for name in roles.list_all(*others)
            )
            ways.append(f"{aside} (if {_join(unknown)} are systems)")
        elif scores and "system" not in roles:
            ways.append(f"{spell('columns', f'system={unknown[0]}')} (if it names the system of each row)")
        ways += [are_systems] * bool(scores)
    elif scores:
        problem = f"columns {_join(scores)} are scores of one system; a comparison needs two"
        ways = [are_systems] * (len(scores) > 1)
        names = roles.list_all("unit", "subset", "run")
        ways += [f"{spell('columns', f'system={name}')} (if it names the system of each row)" for name in names]
    else:
        problem = "has no column of scores"
    return build_roles_error(table, problem, [*ways, "a file of each system, or a column called `system`"])


def _join(columns: Sequence[str]) -> str:
    return " and ".join(map(repr, columns))


def list_scores(table: FileTable, roles: Roles, options: Options) -> tuple[str, ...]:
    """Return the columns of scores in a file of one system, or in a long table.

    They are those that the user names, also as a metric, or those whose names are of scores, or the only column
    without a role.

    Raises
    ------
    InputError
        A column has no role, or there is no column of scores.
    """
    named = split_columns(options.columns["score"], table.columns) if "score" in options.columns else ()
    for column in named:
        table.get_column(column)
    asked = tuple(name for name in dict.fromkeys(options.metrics) if name in roles.unknown)
    scores = named or (*roles.columns.get("score", ()), *asked)
    unknown = [column for column in roles.unknown if column not in scores]
    if not scores and len(unknown) == 1 and unknown[0] not in table.nested:
        return (unknown[0],)
    if scores and (named or asked or not unknown):
        return scores
    raise _build_scores_error(table, scores, unknown)


def _build_scores_error(table: FileTable, scores: Sequence[str], unknown: Sequence[str]) -> InputError:
    if not (scores or unknown):
        columns = ", ".join(table.columns)
        return InputError(
            f"has no column of scores; columns: {columns}",
            file=table.path,
            remedy=f"name it: {spell('columns', 'score=COLUMN')}",
        )
    ways = [f"{spell('columns', f'score={column}')} (if it is the score)" for column in (*scores, *unknown)]
    joint = "+".join((*scores, *unknown))
    ways.append(f"{spell('columns', f'score={joint}')} (if all are scores)")
    if scores:
        ways.append(" ".join(spell("ignore", column) for column in unknown))
    nouns = "column" if len(unknown) == 1 else "columns"
    return build_roles_error(table, f"{nouns} {_join(unknown)} may be scores or not", ways)


def open_table(source: Source, options: Options, shape: str) -> ScoreTable:
    """Read a table of scores in one of the shapes "wide", "long" and "files" (a file is one system)."""
    table = read_table(source.path, options.ignore, options.decimal)
    if [*table.columns] == [""]:
        return ScoreTable(table, Roles(), None, ("",), ())
    roles = resolve_roles(table, options)
    scores = list_systems(table, roles, options) if shape == "wide" else list_scores(table, roles, options)
    groups = tuple(dict.fromkeys((*options.groups, *roles.list_all("unit", "subset"))))
    item = options.id_column or roles.get("item")
    return ScoreTable(table, roles, item, scores, tuple(name for name in groups if name not in scores))


def read_wide(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read one table with a column for each system, or a file of scores for each system."""
    shape = "wide" if len(sources) == 1 else "files"
    opened = [open_table(source, options, shape).select_one_sample(options) for source in sources]
    first = opened[0]
    if shape == "wide" and len(first.scores) < 2:
        raise _build_single_system_error(first)
    opened, ids, orders, warnings = _align(opened, options)
    _check_no_summary(first.table.path, ids)
    first = opened[0]
    groups = {name: Factor.from_values(first.table.get_column(name)) for name in first.groups}
    rows: list[RowOrder] = [FILE_ORDER, *orders]
    if shape == "wide":
        cells: dict[str, tuple[ScoreTable, str, RowOrder]] = {name: (first, name, FILE_ORDER) for name in first.scores}
        return _build_counts(cells, ids, groups, options, warnings)
    names = list_system_names(sources)
    metrics = tuple(dict.fromkeys(name for table in opened for name in table.scores))
    _check_metrics(opened, metrics)
    if len(metrics) == 1 or all(len(table.scores) == 1 for table in opened):
        cells = {name: (table, table.scores[0], order) for name, table, order in zip(names, opened, rows, strict=True)}
        return _build_counts(cells, ids, groups, options, warnings, metric=_name_only_metric(metrics, options))
    matrices = {
        metric: np.column_stack([table.get_numbers(metric)[order] for table, order in zip(opened, rows, strict=True)])
        for metric in metrics
    }
    return build_score_counts(matrices, names, ids, groups=groups, options=options, warnings=warnings)


def _align(
    opened: Sequence[ScoreTable], options: Options
) -> tuple[list[ScoreTable], Texts | None, list[RowOrder], list[str]]:
    """Match the rows of all tables by the items, or by position if some table has no column of items.

    The tables are returned with rows for missing items, if these are allowed.
    """
    item = opened[0].item
    if item is None or any(table.item is None for table in opened):
        if options.align == "id":
            table = next(table.table for table in opened if table.item is None)
            raise InputError("has no column of items", file=table.path, remedy=spell("columns", "item=COLUMN"))
        options = replace(options.with_columns(item=None), align="position")
        return [*opened], *align(opened[0].table, [table.table for table in opened[1:]], options)
    tables = [
        table.table
        if table.item == item
        else replace(table.table, columns={**table.table.columns, item: table.table.get_column(str(table.item))})
        for table in opened
    ]
    own = options.with_columns(item=item)
    tables = add_missing_rows(tables, own)
    aligned = [replace(table, table=own_table) for table, own_table in zip(opened, tables, strict=True)]
    return aligned, *align(tables[0], tables[1:], own)


SUMMARY_NAMES = frozenset({"mean", "average", "avg", "all", "overall", "total"})
"""Names of rows that sum up all others, which are no items."""


def _check_no_summary(path: Path, ids: Texts | None) -> None:
    """Raise an error for an item with the name of a mean or total, which would count as one item more."""
    names = Texts.from_values(()) if ids is None else ids[np.r_[0 : min(len(ids), 8), max(len(ids) - 8, 0) : len(ids)]]
    if name := next((name for name in names if name.lower() in SUMMARY_NAMES), None):
        raise InputError(
            f"item {name!r} may sum up the others",
            file=path,
            remedy=f"remove its row. If it is an item like the others, give it another name, or say "
            f"{spell('align', 'position')}",
        )


def _check_metrics(opened: Sequence[ScoreTable], metrics: Sequence[str]) -> None:
    """Raise an error if the files of systems have different columns of scores."""
    for table in opened:
        if len(table.scores) < len(metrics) and max(len(other.scores) for other in opened) > 1:
            lacking = next(metric for metric in metrics if metric not in table.scores)
            common = [metric for metric in metrics if all(metric in other.scores for other in opened)]
            raise InputError(
                f"has no column of scores {lacking!r}, which other files have",
                file=table.table.path,
                remedy=spell("columns", f"score={'+'.join(common)}") if common else "give files with the same columns",
            )


def _name_only_metric(columns: Sequence[str], options: Options) -> str:
    """Return the name of the metric of a single column of scores, "" for a column of a system or called "score"."""
    name = columns[0]
    is_metric = is_lower_better(name) or name in options.metrics or name_role(name) == ("score",)
    return name if len(columns) == 1 and is_metric and name.lower() not in PLAIN_NAMES else ""


PLAIN_NAMES = frozenset({"score", "scores", "value", "rating"})
"""Names of columns of scores that do not say which metric it is."""


def _build_counts(
    cells: Mapping[str, tuple[ScoreTable, str, RowOrder]],
    ids: Texts | None,
    groups: Mapping[str, Factor],
    options: Options,
    warnings: Sequence[str],
    metric: str = "",
) -> Counts:
    """Return counts of one score of each system, whose columns are read when they are needed."""

    def read_scores(system: str) -> Floats:
        table, column, order = cells[system]
        return np.asarray(table.get_numbers(column)[order])

    if metric:
        matrix = np.column_stack([read_scores(system) for system in cells]).astype(np.float64)
        return build_score_counts({metric: matrix}, [*cells], ids, groups=groups, options=options, warnings=warnings)
    scores = ScoreMatrix.from_scores(LazyColumns([*cells], read_scores))
    path = next(iter(cells.values()))[0].table.path
    return Counts.from_scores(
        scores,
        ids=ids,
        groups=groups,
        missing=options.missing_policy,
        few_in_common=options.few_in_common,
        warnings=[
            *warnings,
            *_describe_doubts(path, scores, options),
            *describe_missing(scores.present, [*cells], options),
        ],
    )


def _describe_doubts(path: Path, scores: Mapping[str, Floats], options: Options) -> Iterator[ScopeNote]:
    """Yield notes on the direction of scores, and on numbers that floats cannot hold."""
    named = {"file's name says": [path.name], "systems' names say": [*scores]}
    lower = next((says for says, names in named.items() if all(map(is_lower_better, names))), None)
    if lower and not any(":better=" in name for name in options.metrics):
        yield ScopeNote(
            f"{path}: higher is taken as better. Is lower better, as the {lower}? Then -m mean:better=lower"
        )
    if any(np.fmax.reduce(np.abs(column), initial=0) > MAX_EXACT for column in scores.values()):
        yield ScopeNote(
            f"{path}: scores exceed 2^53, so that their last digits are lost: subtract a number from all of them"
        )


def _build_single_system_error(table: ScoreTable) -> InputError:
    """Return the error for a wide table with one column of scores."""
    ways = [spell("columns", f"system={name}") for name in (*table.groups, *table.roles.left_out)]
    ways = [f"{way} (if it names the system of each row)" for way in ways]
    problem = f"a comparison needs two systems or more, found only {table.scores[0] or 'one column of scores'!r}"
    return build_roles_error(table.table, problem, [*ways, "scores of at least two systems, in columns or in files"])


TRUE_WORDS = frozenset({"1", "true", "yes", "x", "1.0"})
FALSE_WORDS = frozenset({"0", "false", "no", "", "0.0"})


def read_responses(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read one table of responses, or one list of ids for each system and a list of gold ids."""
    if gold is not None:
        if options.groups:
            raise MissingColumnError(
                f"lists of ids have no column {options.groups[0]!r}; give one table of responses with this column",
                options.groups[0],
            )
        return build_set_counts(_read_ids(options, gold), read_by_system(sources, partial(_read_ids, options)))
    if len(sources) > 1:
        remedy = f"give {spell('gold', 'FILE')} (the right ids), or one table with a column per system"
        raise InputError(f"format responses: several files and no gold list; {remedy}")
    table = read_table(sources[0].path, options.ignore)
    roles = resolve_roles(table, options)
    name, item = roles.get("gold"), options.id_column or roles.get("item")
    if name is None:
        raise table.build_column_error(
            "no column says which responses are of interest", spell("columns", "gold=COLUMN")
        )
    own = options.with_columns(item=item) if item else replace(options, align="position")
    table = select_one_sample(table, item, own, gold=name)
    systems = roles.list_all("prediction") or roles.unknown
    if "systems" in options.own:
        systems = split_columns(options.own["systems"], table.columns)
    groups = tuple(dict.fromkeys((*options.groups, *roles.list_all("unit", "subset"))))
    return Counts.from_responses(
        parse_truths(table, name),
        {system: parse_truths(table, system) for system in systems},
        ids=table.get_ids(own),
        groups={group: Factor.from_values(table.get_column(group)) for group in groups},
        warnings=table.notes,
    )


def parse_truths(table: FileTable, name: str) -> list[bool]:
    """Return a column of truth values (1/0, true/false, yes/no) as booleans."""
    cells = [cell.lower() for cell in table.get_column(name)]
    for line_number, cell in zip(table.lines, cells, strict=True):
        if cell not in TRUE_WORDS and cell not in FALSE_WORDS:
            raise InputError(
                f"{table.path}, line {line_number}, column {name!r}: found {cell!r}, expected 1 or 0 (true/false, "
                f"yes/no, x); if the column is none of responses, leave it out with {spell('ignore', name)}"
            )
    return [cell in TRUE_WORDS for cell in cells]


def _read_ids(options: Options, path: Path) -> frozenset[str]:
    table = read_table(path, options.ignore)
    name = options.id_column or resolve_roles(table, options).get("item") or next(iter(table.columns))
    return frozenset(table.get_ids(replace(options.with_columns(item=name), align="id")) or ())


@dataclass(frozen=True, slots=True)
class _LongFile:
    """The columns of a table of rows of system, item and scores."""

    table: FileTable
    groups: Mapping[str, Texts]
    systems: Factor
    items: Texts
    scores: Mapping[str, Array]
    metrics: Factor | None


def read_long(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read rows of system, item and scores: a column for each metric, or a column that names the metric of a row."""
    files = [_read_long_file(source, options) for source in sources]
    systems, system_codes = _number_systems(files, sources)
    items = Factor.from_values(join_columns([file.items for file in files]))
    group_names = tuple(dict.fromkeys(name for file in files for name in file.groups))
    groups = [Factor.from_values(join_columns([_get_group(file, name) for file in files])) for name in group_names]
    columns = tuple(dict.fromkeys(name for file in files for name in file.scores))
    row_metrics = _join_metrics(files)
    n_metrics = 1 if row_metrics is None else len(row_metrics.levels)
    codes = system_codes if row_metrics is None else row_metrics.codes.astype(np.intp) * len(systems) + system_codes
    _check_long_rows(files, systems * n_metrics, codes, items, groups)
    item_order, first_rows = items.first_occurrences
    rows = first_rows[item_order]
    item_groups = {name: column[rows] for name, column in zip(group_names, groups, strict=True)}
    ids, warnings = items.levels[item_order], [note for file in files for note in file.table.notes]
    _check_no_summary(files[0].table.path, ids)
    metrics = columns if row_metrics is None else [*row_metrics.levels.tolist()]
    keys = [f"{metric}\0{system}" for metric in metrics for system in systems]
    values = [[_get_scores(file, column) for file in files] for column in columns]
    blocks = (
        [_build_long_scores(keys, codes, items, values[0])]
        if row_metrics is not None
        else [_build_long_scores(systems, codes, items, column_values) for column_values in values]
    )
    if len(metrics) == 1 and row_metrics is None and not _name_only_metric(metrics, options):
        scores = ScoreMatrix.from_scores(blocks[0])
        return Counts.from_scores(
            scores,
            ids=ids,
            groups=item_groups,
            missing=options.missing_policy,
            few_in_common=options.few_in_common,
            warnings=[*warnings, *describe_missing(scores.present, systems, options)],
        )
    columns_of_scores = [column for block in blocks for column in block.values()]
    matrix = np.column_stack(columns_of_scores).astype(np.float64)
    matrices = dict(zip(metrics, np.split(matrix, len(metrics), axis=1), strict=True))
    return build_score_counts(matrices, systems, ids, groups=item_groups, options=options, warnings=warnings)


def _read_long_file(source: Source, options: Options) -> _LongFile:
    opened = open_table(source, options, "long")
    roles, item = opened.roles, opened.item
    system = options.system_column or roles.get("system")
    for role, column in (("system", system), ("item", item)):
        if column is None:
            ways = [spell("columns", f"{role}={name}") for name in (*roles.unknown, *roles.list_all("unit", "run"))]
            problem = f"rows of system, item and score need a column of the role {role}"
            raise build_roles_error(opened.table, problem, ways or [spell("columns", f"{role}=COLUMN")])
    assert system is not None
    metric = roles.get("metric")
    if metric is not None and len(opened.scores) > 1:
        joined = " or ".join(spell("columns", f"score={name}") for name in opened.scores)
        raise InputError(
            f"column {metric!r} names the metric of each row, but {_join(opened.scores)} are scores",
            file=source.path,
            remedy=f"choose {joined}, or {spell('ignore', metric)}",
        )
    opened = opened.select_one_sample(options, system, *([metric] if metric else []))
    table = opened.table
    return _LongFile(
        table,
        {name: Texts.from_values(table.get_column(name)) for name in opened.groups if name not in {system, item}},
        Factor.from_values(table.get_column(system)),
        Texts.from_values(table.get_column(str(item))),
        {name: opened.get_numbers(name) for name in opened.scores},
        Factor.from_values(table.get_column(metric)) if metric else None,
    )


def _get_group(file: _LongFile, name: str) -> Texts:
    return file.groups[name] if name in file.groups else Texts.from_values(file.table.get_column(name))


def _get_scores(file: _LongFile, column: str) -> Array:
    if column in file.scores:
        return file.scores[column]
    raise InputError(
        f"has no column of scores {column!r}, which another file has",
        file=file.table.path,
        remedy="give files with the same columns",
    )


def _join_metrics(files: Sequence[_LongFile]) -> Factor | None:
    """Return the metric of each row, or None if no row names one."""
    if all(file.metrics is None for file in files):
        return None
    cells = [file.metrics or Factor.from_values([next(iter(file.scores))] * len(file.items)) for file in files]
    return Factor.from_values(join_columns([Texts.from_values(column.tolist()) for column in cells]))


def _number_systems(files: Sequence[_LongFile], sources: Sequence[Source]) -> tuple[list[str], Integers]:
    """Return the systems in the order of their first rows, and the number of each row's system."""
    homes: dict[str, Path] = {}
    numbers: dict[str, int] = {}
    row_numbers = []
    for file, source in zip(files, sources, strict=True):
        order = file.systems.first_occurrences[0]
        names = list_row_systems(source, file.systems.levels[order].tolist(), homes, is_only_file=len(sources) == 1)
        codes = np.empty(len(order), np.intp)
        codes[order] = [numbers.setdefault(name, len(numbers)) for name in names]
        row_numbers.append(codes[file.systems.codes])
    return [*numbers], np.concatenate(row_numbers)


def _check_long_rows(
    files: Sequence[_LongFile], systems: Sequence[str], system_codes: Integers, items: Factor, groups: Sequence[Factor]
) -> None:
    """Raise an error for the first row with a second score of an item, or with other groups of it."""
    cells = system_codes * len(items.levels) + items.codes
    sorted_cells = np.sort(cells)
    item_rows = items.first_occurrences[1][items.codes]
    has_repeats = (sorted_cells[1:] == sorted_cells[:-1]).any()
    if not has_repeats and all((group.codes == group.codes[item_rows]).all() for group in groups):
        return
    first_rows = np.unique(cells, return_index=True)[1][np.unique(cells, return_inverse=True)[1].reshape(-1)]
    is_repeated = first_rows != np.arange(len(cells))
    row = int(np.argmax(np.any([is_repeated, *(group.codes != group.codes[item_rows] for group in groups)], axis=0)))
    places = [(file.table.path, line) for file in files for line in file.table.lines]
    (path, line), item = places[row], items[row]
    if is_repeated[row]:
        other_path, other_line = places[first_rows[row]]
        raise InputError(
            f"system {systems[system_codes[row]]!r}, item {item!r} has a score already, on line {other_line} of "
            f"{other_path}",
            file=path,
            line=line,
            remedy="remove one of them",
        )
    group, other_group = (tuple(column[int(k)] for column in groups) for k in (row, item_rows[row]))
    raise InputError(
        f"item {item!r} is in {group}, but in {other_group} elsewhere",
        file=path,
        line=line,
        remedy="give the item the same group everywhere",
    )


def _build_long_scores(systems: list[str], system_codes: Integers, items: Factor, values: list[Array]) -> LazyColumns:
    """Return the scores of each system in item order, NaN where it has none."""
    order = np.argsort(system_codes, kind="stable")
    bounds = np.searchsorted(system_codes[order], np.arange(len(systems) + 1))
    n_items = len(items.levels)
    positions = np.empty(n_items, np.intp)
    positions[items.first_occurrences[0]] = np.arange(n_items)
    positions = positions[items.codes[order]]
    ordered = np.concatenate(values)[order] if len(values) > 1 else values[0][order]
    file_numbers = np.repeat(np.arange(len(values)), [len(column) for column in values])
    first_rows = order[np.minimum(bounds[:-1], len(order) - 1)]  # another column's if a metric lacks a system
    kinds = [values[k].dtype for k in file_numbers[first_rows]]

    def get_scores(system: str) -> Array:
        k = systems.index(system)
        span = slice(bounds[k], bounds[k + 1])
        scores = np.full(n_items, np.nan, kinds[k])
        scores[positions[span]] = ordered[span]
        return scores

    return LazyColumns(systems, get_scores)
