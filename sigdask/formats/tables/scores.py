"""Tables of scores in three shapes, and tables of responses.

A wide table has a column for each system. A long table has a row for each system and item, in one or several files.
Otherwise each file is one system, with columns of its scores, and is read as the rows of that system. Which column has
which role is decided by the columns' names (`sigdask.formats.roles`). Tables of responses say in each row whether a
response is of interest, and which systems gave it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import Array, LazyColumns
from sigdask.counts.precision import ScoreMatrix
from sigdask.counts.texts import ScopeNote, Texts, join_columns
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import align, describe_missing
from sigdask.formats.reading.options import Options, Source, list_row_systems, list_system_names
from sigdask.formats.reading.replicates import build_score_counts
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.roles import Roles, build_roles_error, name_role, resolve_roles
from sigdask.interface import spell
from sigdask.metrics import is_lower_better
from sigdask.statistics.numbering import find_first_rows

Integers = NDArray[np.intp]

TABLE_ROLES = ("score", "system", "metric", "gold", "prediction", "run", "text")
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
    groups : mapping of str to Texts
        Columns of units and subsets.
    systems, metrics : Texts or None
        The system of each row, unless the table is wide, and the metric, if a column names it.
    items : Texts or None
        The item of each row, unless the table is wide.
    """

    table: FileTable
    roles: Roles
    item: str | None
    scores: tuple[str, ...]
    groups: Mapping[str, Texts]
    systems: Texts | None = None
    items: Texts | None = None
    metrics: Texts | None = None

    def get_numbers(self, column: str) -> Array:
        """Return a column of scores as numbers; raise an error if it is empty, or holds anything else."""
        remedy = f"leave it out: {spell('ignore', column)}"
        try:
            numbers = np.asarray(self.table.get_numbers(column))
        except InputError as error:
            if column not in self.table.columns or len(self.table.columns) < 3:
                raise
            raise InputError(f"{error}. If {column!r} holds no scores, {remedy}") from None
        if len(numbers) and np.isnan(numbers).all():
            problem = f"column {column!r} has no score in any of {len(numbers):,} rows"
            raise InputError(problem, file=self.table.path, remedy=remedy)
        return numbers


def list_systems(table: FileTable, roles: Roles, options: Options) -> tuple[str, ...]:
    """Return the columns of a wide table that are systems: those that the user names, or those without a role.

    Raises
    ------
    InputError
        No column is left, or the roles of other columns show that the table is not wide.
    """
    if requested := options.own.get("systems"):
        return table.list_columns(requested)
    named = {*options.groups, *options.columns.values()}
    others = [column for column in roles.list_all(*TABLE_ROLES) if column not in named]
    if roles.unknown and not others:
        return roles.unknown
    raise _build_shape_error(table, roles, others)


def _build_shape_error(table: FileTable, roles: Roles, others: Sequence[str]) -> InputError:
    """Return the error for one table that is neither wide nor long, with the ways to read it."""
    unknown, scores, ways = roles.unknown, roles.list_all("score"), []
    problem = "has no column of scores"
    if unknown:
        problem = f"{_join(unknown)} may be systems, but columns {_join(others)} have other roles"
        leave_out = spell("ignore", *others)
        ways = [f"{leave_out} (if {_join(unknown)} are systems)"] if len(unknown) > 1 and "metric" not in roles else []
    elif scores:
        problem = f"columns {_join(scores)} are scores of one system; a comparison needs two"
    joint = "+".join((*unknown, *scores))
    if scores and "+" in joint and not any(map(table.describe_fault, unknown)):
        ways.append(f"{spell('format', f'wide:systems={joint}')} (if all are systems)")
    if scores and "system" not in roles and len(unknown) < 2:
        names = unknown or roles.list_all("unit", "subset", "run")
        ways += [f"{spell('columns', f'system={name}')} (if it names the system of each row)" for name in names]
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
    named = table.list_columns(options.columns["score"]) if "score" in options.columns else ()
    asked = tuple(name for name in dict.fromkeys(options.metrics) if name in roles.unknown)
    scores = named or (*roles.list_all("score"), *asked)
    unknown = [column for column in roles.unknown if column not in scores]
    if not scores and len(unknown) == 1 and unknown[0] not in table.nested:
        return (unknown[0],)
    if scores and (named or asked or not unknown):
        return scores
    numeric = [column for column in unknown if not table.describe_fault(column)]
    plain = numeric or [column for column in unknown if not (scores or column in table.nested)]
    if not (scores or plain):
        raise build_roles_error(table, "has no column of scores", [spell("columns", "score=COLUMN")])
    ways = [f"{spell('columns', f'score={column}')} (if it is the score)" for column in (*scores, *plain)]
    if scores:
        all_scores = "score=" + "+".join((*scores, *plain))
        ways = [*[f"{spell('columns', all_scores)} (if all are scores)"] * bool(plain), spell("ignore", *unknown)]
    raise build_roles_error(table, f"{_join(unknown)} may be scores or not", ways)


def open_table(source: Source, options: Options, shape: str) -> ScoreTable:
    """Read a table of scores in one of the shapes "wide", "long" and "files" (a file is one system)."""
    table = read_table(source.path, options.ignore)
    if [*table.columns] == [""]:
        return ScoreTable(table, Roles(), None, ("",), {})
    roles = resolve_roles(table, options)
    item, system = options.id_column or roles.get("item"), options.columns.get("system") or roles.get("system")
    if shape == "long" and (system is None or (item is None and options.align != "position")):
        raise _build_rows_error(table, roles, system)
    scores = list_systems(table, roles, options) if shape == "wide" else list_scores(table, roles, options)
    aside = {*scores, item, *([system] if shape == "long" else [])}
    names = dict.fromkeys((*options.groups, *roles.list_all("unit", "subset")))
    groups = {name: Texts.from_values(table.get_column(name)).encode() for name in names if name not in aside}
    return ScoreTable(table, roles, item, scores, groups)


def _build_rows_error(table: FileTable, roles: Roles, system: str | None) -> InputError:
    """Return the error for rows of systems and items without a column of one of these."""
    if system is not None and Texts.from_values(table.get_column(system)).are_unique:
        problem = f"has one row for each {system!r}, but needs one for each item"
        return build_roles_error(table, problem, ["a row for each system and item, or for each item"])
    role = "system" if system is None else "item"
    ways = [spell("columns", f"{role}={name}") for name in (*roles.list_all("unit", "subset", "run"), *roles.unknown)]
    if system is not None:
        ways.append(f"{spell('align', 'position')} (if the rows of each system are the same items in the same order)")
    problem = f"rows of system, item and score need a column of the role {role}"
    return build_roles_error(table, problem, ways or [spell("columns", f"{role}=COLUMN")])


def read_wide(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read one table with a column for each system, or a file of scores for each system."""
    if len(sources) > 1:
        return _read_files(sources, options)
    opened = open_table(sources[0], options, "wide")
    table, names = opened.table, opened.scores
    if len(names) < 2:
        columns = (*opened.groups, *opened.roles.left_out)
        ways = [f"{spell('columns', f'system={name}')} (if it names the system of each row)" for name in columns]
        found = repr(names[0]) if names[0] else "one column, as no tab, comma or semicolon divides the lines"
        problem = f"a comparison needs two systems or more, found only {found}"
        raise build_roles_error(table, problem, [*ways, "scores of at least two systems, in columns or in files"])
    ids = table.get_ids(options.with_columns(item=opened.item))
    _check_no_summary(table.path, ids)
    return _build_counts(table.path, LazyColumns(names, opened.get_numbers), ids, opened.groups, options, ())


SUMMARY_NAMES = frozenset({"mean", "average", "avg", "all", "overall", "total"})
"""Names of rows that sum up all others, which are no items."""


def _check_no_summary(path: Path, ids: Texts | None) -> None:
    """Raise an error for an item with the name of a mean or total, which would count as one item more."""
    names = [] if ids is None else [*ids.array[:8].to_pylist(), *ids.array[-8:].to_pylist()]
    if name := next((name for name in names if name.lower() in SUMMARY_NAMES), None):
        raise InputError(
            f"item {name!r} may sum up the others",
            file=path,
            remedy=f"remove its row. If it is an item like the others, give it another name, or say "
            f"{spell('align', 'position')}",
        )


PLAIN_NAMES = frozenset({"score", "scores", "value", "rating"})
"""Names of columns of scores that do not say which metric it is."""


def _names_metric(column: str, options: Options) -> bool:
    """Return whether the name of the only column of scores is that of a metric."""
    is_metric = is_lower_better(column) or column in options.metrics or name_role(column) == ("score",)
    return is_metric and column.lower() not in PLAIN_NAMES


def _build_counts(
    path: Path,
    columns: Mapping[str, Array],
    ids: Texts | None,
    groups: Mapping[str, Texts],
    options: Options,
    notes: Sequence[str],
) -> Counts:
    """Return counts of one score of each system, whose columns are read when they are needed."""
    scores, notes = ScoreMatrix.from_scores(columns), [*notes]
    is_stated = any(":better=" in name for name in options.metrics)
    if not is_stated and (is_lower_better(path.name) or all(map(is_lower_better, columns))):
        note = "higher is taken as better. Is lower better, as the names say? Then -m mean:better=lower"
        notes.append(ScopeNote(f"{path}: {note}"))
    missing = [] if scores.present is None else describe_missing(scores.present, [*columns], options)
    return Counts.from_scores(
        scores,
        ids=ids,
        groups=groups,
        missing=options.missing_policy,
        few_in_common=options.few_in_common,
        warnings=[*notes, *missing],
    )


def read_long(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read rows of system, item and scores: a column for each metric, or a column that names the metric of a row."""
    tables, homes = [], dict[str, Path]()
    for source in sources:
        opened = open_table(source, options, "long")
        system, metric = options.columns.get("system") or opened.roles.get("system"), opened.roles.get("metric")
        if metric is not None and len(opened.scores) > 1:
            problem = f"{metric!r} names the metric of each row, but {_join(opened.scores)} are scores"
            ways = [spell("columns", f"score={name}") for name in opened.scores]
            raise build_roles_error(opened.table, problem, [*ways, spell("ignore", metric)])
        systems = opened.table.get_names(str(system), "the name of a system").encode()
        row_systems = list_row_systems(source, systems.levels.tolist(), homes, is_only_file=len(sources) == 1)
        systems = systems.rename_levels(dict(zip(systems.levels, row_systems, strict=True)))
        items = None if options.align == "position" else opened.table.get_names(str(opened.item), "an item id")
        metrics = None if metric is None else opened.table.get_names(metric, "the name of a metric").encode()
        tables.append(replace(opened, systems=systems, items=items, metrics=metrics))
    return _build_row_counts(tables, options)


def _read_files(sources: Sequence[Source], options: Options) -> Counts:
    """Read a file of scores for each system; without items, all must have equally many rows."""
    tables = [open_table(source, options, "files") for source in sources]
    are_names = all(len(table.scores) == 1 and table.scores[0] in table.roles.unknown for table in tables)
    if are_names and len({table.scores for table in tables}) > 1:  # columns that are named after systems
        renamed = [replace(t.table, columns={**t.table.arrays, "score": t.table.arrays[t.scores[0]]}) for t in tables]
        tables = [replace(t, table=own, scores=("score",)) for t, own in zip(tables, renamed, strict=True)]
    notes: list[str] = []
    if by_position := any(table.item is None for table in tables):
        first, *others = (table.table for table in tables)
        _, _, notes = align(first, others, options)
    rows = []
    for table, name in zip(tables, list_system_names(sources), strict=True):
        ids = None if by_position else table.table.get_ids(options.with_columns(item=table.item))
        rows.append(replace(table, systems=_repeat_text(name, table.table.n_rows), items=ids))
    return _build_row_counts(rows, options, notes)


def _build_row_counts(tables: Sequence[ScoreTable], options: Options, notes: Sequence[str] = ()) -> Counts:
    """Return counts of the rows of all tables."""
    path = tables[0].table.path
    all_systems = join_columns([table.systems for table in tables if table.systems is not None])
    groups = {
        name: join_columns([t.groups.get(name) or Texts.from_values(t.table.get_column(name)).encode() for t in tables])
        for name in dict.fromkeys(name for table in tables for name in table.groups)
    }
    columns = metrics = [*dict.fromkeys(name for table in tables for name in table.scores)]
    systems, codes = all_systems.levels.tolist(), all_systems.codes.astype(np.intp)
    if has_metrics := any(table.metrics is not None for table in tables):
        row_metrics = join_columns([t.metrics or _repeat_text(t.scores[0], t.table.n_rows) for t in tables])
        metrics = sorted(row_metrics.levels)
        codes = row_metrics.ranks * len(systems) + codes
    named_items = [table.items for table in tables if table.items is not None]
    items = join_columns(named_items).encode() if named_items else _number_rows(codes)
    _check_rows(tables, systems * len(metrics), codes, items, groups)
    ids = items.levels if named_items else None
    _check_no_summary(path, ids)
    first_rows = find_first_rows(items.codes)
    item_groups = {name: column[first_rows] for name, column in groups.items()}

    def build_matrix(column: str) -> Array:
        """Return a column of scores by item, metric and system, NaN where there is none."""
        numbers = np.concatenate([table.get_numbers(column) for table in tables])
        shape = len(items.levels), len(systems) * (len(metrics) if has_metrics else 1)
        matrix = np.full(shape, np.nan, numbers.dtype)
        matrix[items.codes, codes] = numbers
        return matrix

    blocks = [build_matrix(column) for column in (columns[:1] if has_metrics else columns)]
    if len(metrics) == 1 and not has_metrics and not _names_metric(columns[0], options):
        scores = dict(zip(systems, blocks[0].T, strict=True))
        return _build_counts(path, scores, ids, item_groups, options, notes)
    matrix = np.column_stack(blocks).astype(np.float64)
    matrices = dict(zip(metrics, np.split(matrix, len(metrics), axis=1), strict=True))
    return build_score_counts(matrices, systems, ids, groups=item_groups, options=options, warnings=notes)


def _number_rows(codes: Integers) -> Texts:
    """Return the position of each row among those of its system and metric."""
    _, sizes = np.unique(codes, return_counts=True)
    positions = np.empty(len(codes), np.intp)
    positions[np.argsort(codes, kind="stable")] = np.concatenate([np.arange(size) for size in sizes])
    return Texts.from_values(map(str, 1 + positions)).encode()


def _repeat_text(text: str, n: int) -> Texts:
    return Texts.from_values([text]).encode()[np.zeros(n, np.intp)]


def _check_rows(
    tables: Sequence[ScoreTable], systems: Sequence[str], codes: Integers, items: Texts, groups: Mapping[str, Texts]
) -> None:
    """Raise an error for the first row with a second score of an item, or with other groups of it."""
    cells = codes * len(items.levels) + items.codes
    sorted_cells = np.sort(cells)
    item_rows = find_first_rows(items.codes)[items.codes]
    differing = {name: column.codes != column.codes[item_rows] for name, column in groups.items()}
    if not (sorted_cells[1:] == sorted_cells[:-1]).any() and not any(mask.any() for mask in differing.values()):
        return
    _, first_rows, numbers = np.unique(cells, return_index=True, return_inverse=True)
    is_repeated = first_rows[numbers.reshape(-1)] != np.arange(len(cells))
    row = int(np.argmax(np.any([is_repeated, *differing.values()], axis=0)))
    path, line = next(itertools.islice(((t.table.path, n) for t in tables for n in t.table.lines), row, None))
    item, remedy = repr(items[row]), "give the item the same group everywhere"
    if is_repeated[row]:
        problem, remedy = f"system {systems[codes[row]]!r}, item {item} has a score already", "remove one of them"
    else:
        name = next(name for name, mask in differing.items() if mask[row])
        other = groups[name][int(item_rows[row])]
        problem = f"item {item} has {name} {groups[name][row]!r}, but {other!r} elsewhere"
    raise InputError(problem, file=path, line=line, remedy=remedy)


TRUTHS = {"1": True, "true": True, "yes": True, "x": True, "1.0": True}
TRUTHS |= {"0": False, "false": False, "no": False, "": False, "0.0": False}


def read_responses(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read one table of responses."""
    if len(sources) > 1:
        raise InputError("format responses: several files", remedy="give one table with a column for each system")
    table = read_table(sources[0].path, options.ignore)
    roles = resolve_roles(table, options)
    if (name := roles.get("gold")) is None:
        problem = "no column says which responses are of interest"
        raise build_roles_error(table, problem, [spell("columns", "gold=COLUMN")])
    systems = roles.list_all("prediction") or roles.unknown
    groups = dict.fromkeys((*options.groups, *roles.list_all("unit", "subset")))
    return Counts.from_responses(
        _parse_truths(table, name),
        {system: _parse_truths(table, system) for system in systems},
        ids=table.get_ids(options),
        groups={group: Texts.from_values(table.get_column(group)).encode() for group in groups},
    )


def _parse_truths(table: FileTable, name: str) -> list[bool]:
    """Return a column of truth values (1/0, true/false, yes/no) as booleans."""
    cells = [cell.lower() for cell in table.get_column(name)]
    for line, cell in zip(table.lines, cells, strict=True):
        if cell not in TRUTHS:
            problem = f"column {name!r}: found {cell!r}, expected 1 or 0 (true/false, yes/no, x)"
            remedy = f"if the column is none of responses, leave it out with {spell('ignore', name)}"
            raise InputError(problem, file=table.path, line=line, remedy=remedy)
    return [TRUTHS[cell] for cell in cells]
