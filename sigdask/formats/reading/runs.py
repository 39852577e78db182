"""Several values of an item of one system: in several files of one name, or in rows of a table that repeat an item.

Files of one name are runs if they have the same items, and parts of one run if they share none. Rows that repeat an
item are runs if a column names them, else samples. Each run or sample is read by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts import Counts, Runs
from sigdask.counts.fields import Integers
from sigdask.counts.texts import ScopeNote, Texts
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import tell_types_once
from sigdask.formats.reading.options import Options, Source, distinguish_names
from sigdask.formats.reading.tables import TABLE_FORMATS, FileTable, provide_tables, read_table
from sigdask.formats.roles import ROLES, FileKind, Roles, build_roles_error, resolve_roles
from sigdask.interface import spell
from sigdask.text import format_count

SHARED_ROLES = ("gold", "unit", "subset", "text")
"""Roles of columns that have one value in all rows of an item."""

Items = frozenset[str | int]
ReadFiles = Callable[[Sequence[Source], Options], Counts]
"""Reads files, one of each system, by the format's reader."""

Run = tuple[Sequence[Source], Mapping[Path, FileTable]]
"""The file of each system, and the tables that are read in place of some files."""

SystemFiles = Mapping[str, Sequence[Source]]


def read_runs(
    read: ReadFiles, sources: Sequence[Source], options: Options, *, format_: str, has_gold: bool = False
) -> Counts:
    """Read all files of all systems. A name that was given several times is one system.

    Parameters
    ----------
    read : callable
        Reads one file of each system, and honours `missing="pairwise"`.
    sources : sequence of Source
        The files.
    options : Options
        How to read. With the format's option `replicates=paired`, the runs of all systems share their seeds, in the
        order of the files.
    format_ : str
        Name of the format.
    has_gold : bool
        Whether there is a gold-standard file.

    Raises
    ------
    InputError
        Files of one name share some items and not others, or systems have different numbers of runs.
    """
    systems = group_by_name(distinguish_names(sources))
    files = [source for own in systems.values() for source in own]
    if len(files) > len(systems):
        return _read_named_files(read, systems, options, format_)
    if format_ not in TABLE_FORMATS or options.align == "position":
        return read(files, options)
    return _read_samples(read, files, options, "system" if has_gold else None)


def group_by_name(sources: Sequence[Source]) -> dict[str, list[Source]]:
    """Return the files of each system, by its name. Files without a name are systems of their own.

    Raises
    ------
    InputError
        A file is given twice under one name, or files without a name would have the same one.
    """
    systems: dict[str, list[Source]] = {}
    for source in sources:
        files = systems.setdefault(source.system, [])
        if files and None in {source.name, files[0].name}:
            problem = f"{files[0].path} and {source.path} would both be system {source.system!r}"
            raise InputError(problem, remedy="name them NAME=FILE")
        if any((source.path, source.parts) == (other.path, other.parts) for other in files):
            remedy = "give each run its own file"
            raise InputError(f"is given twice for system {source.name!r}", file=source.path, remedy=remedy)
        files.append(source)
    return systems


def _read_each(read: ReadFiles, runs: Iterable[Run], options: Options, groups: Sequence[str | None]) -> Counts:
    """Read each run or sample by itself. Groups that name the runs are none of the items."""
    options = replace(options, groups=tuple(name for name in options.groups if name not in groups))
    replicates = []
    with tell_types_once():
        for files, tables in runs:
            with provide_tables(tables):
                replicates.append(read(files, options))
    return Counts.of_replicates(replicates)


def _read_named_files(read: ReadFiles, systems: SystemFiles, options: Options, format_: str) -> Counts:
    """Read systems of which some have several files: runs of the same items, or parts of a run."""
    if format_ in TABLE_FORMATS:
        items = {source: _list_table_items(source, options) for files in systems.values() for source in files}
    else:
        items = _list_items(read, systems, replace(options, missing="pairwise", few_in_common=True))
    matched = {name: _match_files(name, files, items) for name, files in systems.items()}
    longest, shortest = (end(matched, key=lambda name: len(matched[name])) for end in (max, min))
    if len(matched[longest]) != len(matched[shortest]):
        raise InputError(
            f"system {longest!r} has {len(matched[longest])} runs, but {shortest!r} has {len(matched[shortest])}",
            remedy="give each system equally many files (NAME=FILE NAME=FILE), or give each file its own name",
        )
    runs: list[Run] = []
    for run in zip(*matched.values(), strict=True):
        tables: dict[Path, FileTable] = {}
        runs.append(([_join_parts(parts, tables, options, format_) for parts in run], tables))
    notes = [
        ScopeNote(f"{name}: {len(own[0])} files are parts of one run, and were joined")
        for name, own in matched.items()
        if len(own[0]) > 1
    ]
    counts = _read_each(read, runs, options, ["run"] if len(runs) > 1 else [])
    named = replace(counts.runs, is_shared=options.own.get("replicates") == "paired") if counts.runs else None
    return replace(counts, runs=named, scope=(*notes, *counts.scope))


def _list_table_items(source: Source, options: Options) -> Items:
    table = read_table(source.path, options.ignore)
    name = table.find_id_column(options)
    return frozenset(range(table.n_rows) if name is None else table.get_column(name))


def _list_items(read: ReadFiles, systems: SystemFiles, options: Options) -> dict[Source, Items]:
    """Return the items of each file, as the format's reader tells: their ids, or their positions without ids."""
    items: dict[Source, Items] = {}
    for k in range(max(map(len, systems.values()))):
        files = {name: sources[min(k, len(sources) - 1)] for name, sources in systems.items()}
        counts = read([*files.values()], options)
        for name, source in files.items():
            if name not in counts.systems:
                raise InputError(f"{name}=: expected one system", file=source.path, remedy="leave out the name")
            ids = np.array([*(range(counts.n_items) if counts.ids is None else counts.ids)], object)
            present = None if counts.present is None else counts.present[:, counts.systems.index(name)]
            items[source] = frozenset(ids if present is None else ids[present])
    return items


def _match_files(name: str, files: Sequence[Source], items: Mapping[Source, Items]) -> list[list[Source]]:
    """Return the files of each run of a system: files with the same items are runs, files without common ones parts."""
    parts: dict[Items, list[Source]] = {}
    for source in files:
        parts.setdefault(items[source], []).append(source)
    for own, other in combinations(parts, 2):
        if shared := own & other:
            paths = f"{parts[own][0].path} and {parts[other][0].path}"
            examples = f"{min(shared, key=str)!r} is, {min(own ^ other, key=str)!r} is not"
            raise InputError(
                f"files of {name!r}: {len(shared):,} of {len(own | other):,} items are in both {paths} ({examples})",
                remedy="give runs of a system the same items. If the files are parts of one run, write them into one "
                "file, each item once",
            )
    if len({*map(len, parts.values())}) > 1:
        raise InputError(
            f"{name!r}: the parts of its runs have different numbers of files",
            remedy=f"give the files of all parts of each run ({', '.join(str(source.path) for source in files)})",
        )
    return [list(run) for run in zip(*parts.values(), strict=True)]


def _join_parts(parts: Sequence[Source], tables: dict[Path, FileTable], options: Options, format_: str) -> Source:
    """Return the parts of a run as one source, whose table is added to `tables` if there are several."""
    if len(parts) == 1:
        return parts[0]
    if format_ == "trec":
        return replace(parts[0], parts=tuple(source.path for source in parts))
    if format_ not in TABLE_FORMATS:
        raise InputError(
            f"files of {parts[0].name!r} have different items",
            remedy="write the parts of a run into one file. Runs of a system need the same items",
        )
    import pyarrow as pa

    first, *others = opened = [read_table(source.path, options.ignore) for source in parts]
    for table in others:
        if {*table.columns} ^ {*first.columns}:
            expected = f"the columns of {first.path}: {', '.join(first.columns)}"
            raise InputError(file=table.path, found=", ".join(table.columns), expected=expected)
    nested = [name for name in first.nested if all(name in table.nested for table in others)]
    path = Path(" + ".join(str(table.path) for table in opened))  # for errors
    columns: dict[str, Any] = {}
    for name in first.columns:
        arrays = [table.arrays[name] for table in opened]
        if len({array.type for array in arrays}) == 1:
            columns[name] = pa.chunked_array([chunk for array in arrays for chunk in array.chunks])
        else:
            columns[name] = [cell for table in opened for cell in table.columns[name]]
    tables[path] = replace(
        first,
        path=path,
        columns=columns,
        lines=[line for table in opened for line in table.lines],
        nested={name: [cell for table in opened for cell in table.nested[name]] for name in nested},
    )
    return replace(parts[0], path=path)


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """A table with several rows of each item.

    Attributes
    ----------
    tables : list of FileTable
        One row of each item, in each of them.
    note : str
        How many there are.
    column : str
        The column of runs, "" if rows are samples.
    names : frozenset of tuple of str
        Names of the runs of each system.
    """

    tables: list[FileTable]
    note: str
    column: str = ""
    names: frozenset[tuple[str, ...]] = frozenset()


def _read_samples(read: ReadFiles, files: Sequence[Source], options: Options, part: FileKind | None) -> Counts:
    """Read tables, once for each sample of their items if rows repeat them."""
    tables = {source.path: read_table(source.path, options.ignore) for source in files}
    found = {path: split_samples(table, options, part) for path, table in tables.items() if table.header}
    samples = {path: own for path, own in found.items() if own is not None}
    if not samples:
        return read(files, options)
    first, sizes = next(iter(samples.values())), {path: len(own.tables) for path, own in samples.items()}
    _check_runs({str(path): own.names for path, own in samples.items() if own.column})
    for path, table in tables.items():
        if sizes.get(path, 1) != len(first.tables):
            n_rows = format_count(sizes.get(path, 1), "row")
            problem = f"has {n_rows} of each item, but {next(iter(samples))} has {len(first.tables)}"
            average = _suggest_average(resolve_roles(table, options, part), options, part)
            raise InputError(problem, file=path, remedy=f"if rows are samples of one item, {average}")
    runs = [(files, {path: own.tables[k] for path, own in samples.items()}) for k in range(len(first.tables))]
    counts = _read_each(read, runs, options, ["run", *(own.column for own in samples.values())])
    names = frozenset[tuple[str, ...]]().union(*(own.names for own in samples.values()))
    named = None
    if all(own.column for own in samples.values()):
        shared = min(names) if len(names) == 1 else tuple(map(str, range(1, len(runs) + 1)))
        named = Runs(first.column, shared, len(names) == 1)
    more = f"; {len(samples) - 1:,} more files repeat ids too" if len(samples) > 1 else ""
    return replace(counts, runs=named, warnings=(ScopeNote(first.note + more), *counts.warnings))


def split_samples(table: FileTable, options: Options, part: FileKind | None = None) -> Samples | None:
    """Return a table whose rows repeat items as one of samples, or None if each row is an item.

    Raises
    ------
    InputError
        Rows of one item differ in a column that samples share, items have different numbers of rows, or the column of
        runs lacks some of them.
    """
    run_names = {*ROLES["run"], options.columns.get("run")}
    groups = tuple(name for name in options.groups if name not in run_names)
    roles = resolve_roles(table, replace(options, groups=groups), part)
    item = options.id_column or roles.get("item")
    if item is None or (cells := Texts.from_values(table.get_column(item))).has_empty or cells.are_unique:
        return None  # an empty id is refused where ids are checked
    items = Texts.from_values(cells).encode()
    columns = [table.get_column(name) for name in roles.list_all("system", "metric")]
    systems = Texts.from_values(map("/".join, zip(*columns, strict=True)) if columns else [""] * len(items)).encode()
    codes = systems.codes.astype(np.int64) * len(items.levels) + items.codes
    _, first_rows, cell, n_rows = np.unique(codes, return_index=True, return_inverse=True, return_counts=True)
    if len(n_rows) == len(items):
        return None
    varying, n = _list_varying(table, roles, item, first_rows[cell], options), int(n_rows[0])
    is_repeated = np.ones(len(cell), np.bool_)
    is_repeated[first_rows] = False
    if len(items.levels) == 1 or (n_rows != n).any():
        for name in roles.list_all("run"):
            named = np.array([*table.get_column(name)], object)
            own = {f"{table.path}: {system!r}": {(*named[systems.equals(system)],)} for system in systems.levels}
            _check_runs(own)
        average = _suggest_average(roles, options, part)
        raise _build_uneven_error(table, item, int(np.argmax(is_repeated)), average)
    column, runs = _find_runs(table, [name for name in roles.list_all("run") if name != item], systems, cell, item)
    table = replace(table, columns={k: v for k, v in table.arrays.items() if k not in {*varying, column}})
    numbers = np.empty(len(cell), np.int64)
    numbers[np.lexsort((runs.ranks, cell))] = np.tile(np.arange(n), len(n_rows))  # of each row of an item, by run
    tables = [table.select_rows(numbers == k) for k in range(n)]
    if not column:
        n_items = format_count(len(items.levels), "item")
        note = f"{table.path}: {n:,} replicates of each of {n_items} ({len(cell):,} rows), averaged as one unit"
        return Samples(tables, note)
    codes_by_system = (np.unique(runs.codes[systems.codes == code]) for code in range(len(systems.levels)))
    names = frozenset(tuple(sorted(runs.levels[own])) for own in codes_by_system)
    return Samples(tables, f"{table.path}: {n:,} runs of each system (column {column!r})", column, names)


def _list_varying(table: FileTable, roles: Roles, item: str, first_rows: Integers, options: Options) -> list[str]:
    """Return the columns of inputs and units in which rows of one item differ; raise unless the user named the item."""
    shared = {*roles.list_all(*SHARED_ROLES), *options.groups} - {item, *roles.list_all("run")}
    factors = {name: Texts.from_values(table.columns[name]).encode() for name in table.columns if name in shared}
    varying = [name for name, own in factors.items() if (own.codes != own.codes[first_rows]).any()]
    free = {*roles.list_all("unit", "subset", "text")} - {*options.groups}
    if refused := [name for name in varying if not (options.id_column and name in free)]:
        ways = [f"{spell('align', 'position')} (if each row is an item)"]
        if {*refused} <= free:
            ways.insert(0, f"{spell('columns', f'item={item}')} (if rows of one {item!r} are samples of it)")
        if refused[0] not in roles.list_all("gold"):
            ways.insert(0, f"{spell('columns', f'item={refused[0]}+{item}')} (if both name the items)")
        elif not (roles.unknown or "prediction" in roles):
            ways = [f"one file for each {roles.get('run') or 'annotator'}, with one row for each item"]
        raise build_roles_error(table, f"rows of one {item!r} differ in {refused[0]!r}", ways)
    return varying


def _find_runs(table: FileTable, names: Sequence[str], systems: Texts, cell: Integers, item: str) -> tuple[str, Texts]:
    """Return the column of runs, in which each item has a row for each run of its system; "" if none has the role."""
    for name in names:
        runs = Texts.from_values(table.get_column(name)).encode()
        pairs, own = (np.unique(codes * len(runs.levels) + runs.codes) for codes in (cell, systems.codes.astype(int)))
        if len(pairs) == len(cell) and len(own) * len(np.unique(cell)) == len(cell) * len(systems.levels):
            return name, runs
    if names:
        problem = f"no column of runs ({', '.join(names)}) has one row of each item for each run"
        joined = spell("columns", f"item={item}+{'+'.join(names[1:]) or 'COLUMN'}")
        remedy = (
            f"if another column belongs to the id, {joined} with {spell('unit', item)}. To average all rows of an id, "
        )
        raise InputError(problem, file=table.path, remedy=remedy + spell("ignore", *names))
    return "", Texts.from_values([""] * len(cell)).encode()


def _check_runs(names_by_system: Mapping[str, Collection[tuple[str, ...]]]) -> None:
    """Raise if a system has only some runs of another, given the names of the runs of each in a tuple."""
    runs_by_system = {system: {*chain.from_iterable(names)} for system, names in names_by_system.items()}
    most = max(runs_by_system.values(), key=len, default=set())
    for system, runs in runs_by_system.items():
        if runs < most:
            problem = f"{system} has no run {min(most - runs)!r}, which another system has"
            raise InputError(problem, remedy="add its rows, leave out this run of all systems, or leave out the system")


def _build_uneven_error(table: FileTable, item: str, row: int, average: str) -> InputError:
    """Return the error for items with different numbers of rows, or for a single item."""
    return InputError(
        f"id {table.get_column(item)[row]!r} is repeated, and not all ids are repeated equally often",
        file=table.path,
        line=table.lines[row],
        remedy=f"if another column belongs to the id, {spell('columns', f'item={item}+COLUMN')}. If rows are samples "
        f"of one item, {average}. If each row is an item, {spell('align', 'position')}",
    )


def _suggest_average(roles: Roles, options: Options, part: FileKind | None) -> str:
    """Return how to average different numbers of scores of an item."""
    if part is not None or "score" not in roles or "metric" in roles or "gold" in roles:
        return "give each item equally many"
    named = {role: options.columns.get(role) or roles.get(role) for role in ("item", "system", "score")}
    columns = ",".join(f"{role}={name}" for role, name in named.items() if name)
    return f"{spell('columns', columns)} {spell('format', 'ratings:raters=mean')} averages them"
