"""Several values of an item of one system: in several files of one name, or in rows of a table that repeat an item.

Files of one name are runs if they have the same items, and parts of one run if they share none. Rows that repeat an
item are runs if a column names them, else samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from sigdask.counts import Counts, Runs
from sigdask.counts.factors import Factor
from sigdask.counts.fields import Integers
from sigdask.counts.texts import ScopeNote, Texts
from sigdask.errors import InputError
from sigdask.formats.reading.declared import provide_tables
from sigdask.formats.reading.files import read_content
from sigdask.formats.reading.options import Options, Source, distinguish_names
from sigdask.formats.reading.replicates import describe_imbalance
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.roles import ROLES, FileKind, Roles, build_roles_error, resolve_roles
from sigdask.interface import spell
from sigdask.text import format_count

CHOICES = ("together", "paired")
"""Values of the option `replicates`. "paired": the runs of all systems share their seeds, in the order of the files."""

TABLE_FORMATS = ("labels", "numbers", "responses", "wide", "long")
"""Formats whose files are tables."""

SHARED_ROLES = ("gold", "unit", "subset", "text")
"""Roles of columns that have one value in all rows of an item."""

MAX_SAMPLES = 5040
"""Largest least common multiple of the numbers of samples."""

Items = frozenset[str | int]
ReadFiles = Callable[[Sequence[Source], Options], Counts]
"""Reads files, one of each system, by the format's reader."""

SystemFiles = Mapping[str, Sequence[Source]]


def read_runs(
    read: ReadFiles,
    sources: Sequence[Source],
    options: Options,
    *,
    format_: str,
    replicates: str | None = None,
    has_gold: bool = False,
) -> Counts:
    """Read all files of all systems. A name that was given several times is one system.

    Parameters
    ----------
    read : callable
        Reads one file of each system, and honours `missing="pairwise"`.
    sources : sequence of Source
        The files.
    options : Options
        How to read.
    format_ : str
        Name of the format.
    replicates : {"together", "paired"}, optional
        Value of the format's option of this name.
    has_gold : bool
        Whether there is a gold-standard file.

    Raises
    ------
    InputError
        Files of one name share some items and not others, or systems have different numbers of runs.
    """
    systems = group_by_name(distinguish_names(sources))
    if any(len(files) > 1 for files in systems.values()):
        return _read_named_files(read, systems, options, format_, is_paired=replicates == "paired")
    files = [source for files in systems.values() for source in files]
    is_table = format_ in TABLE_FORMATS and options.align != "position" and options.own.get("list") != "yes"
    tables = _find_repeats(files, options, "system" if has_gold else None) if is_table else {}
    if not tables:
        return read(files, options)
    if replicates is None:
        for table in tables.values():
            table.check_even(format_)
    columns = {"run", *(table.run_column for table in tables.values())}
    return _read_samples(
        read, files, replace(options, groups=tuple(name for name in options.groups if name not in columns)), tables
    )


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


def _read_named_files(
    read: ReadFiles, systems: SystemFiles, options: Options, format_: str, *, is_paired: bool
) -> Counts:
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
    n_runs = len(matched[longest])
    if n_runs > 1:  # `run` names the runs, and no column
        options = replace(options, groups=tuple(name for name in options.groups if name != "run"))
    runs = [{name: files[k] for name, files in matched.items()} for k in range(n_runs)]
    counts = Counts.of_replicates([_read_run(read, run, options, format_) for run in runs])
    return replace(counts, runs=replace(counts.runs, is_shared=is_paired)) if counts.runs else counts


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


def _read_run(read: ReadFiles, run: SystemFiles, options: Options, format_: str) -> Counts:
    """Read one run of each system. The parts of a run are joined row by row."""
    files = {name: sources[0] for name, sources in run.items()}
    parts = {name: sources for name, sources in run.items() if len(sources) > 1}
    if not parts:
        return read([*files.values()], options)
    if format_ not in {*TABLE_FORMATS, "trec"}:
        raise InputError(
            f"files of {next(iter(parts))!r} have different items",
            remedy="write the parts of a run into one file. Runs of a system need the same items",
        )
    notes = [
        ScopeNote(f"{name}: {len(own)} files are parts of one run, and were joined") for name, own in parts.items()
    ]
    with TemporaryDirectory() as folder:
        if format_ == "trec":
            for k, (name, sources) in enumerate(parts.items()):
                path = Path(folder) / f"{k}.run"
                path.write_bytes(b"".join(read_content(source.path).rstrip() + b"\n" for source in sources))
                files[name] = Source(path, name)
        tables = {own[0].path: _join_tables(own, options) for own in parts.values() if format_ != "trec"}
        with provide_tables(tables):
            counts = read([*files.values()], options)
    return replace(counts, scope=(*notes, *counts.scope))


def _join_tables(files: Sequence[Source], options: Options) -> FileTable:
    first, *others = tables = [read_table(source.path, options.ignore) for source in files]
    for table in others:
        if {*table.columns} ^ {*first.columns}:
            expected = f"the columns of {first.path}: {', '.join(first.columns)}"
            raise InputError(file=table.path, found=", ".join(table.columns), expected=expected)
    nested = [name for name in first.nested if all(name in table.nested for table in others)]
    return replace(
        first,
        path=Path(" + ".join(str(table.path) for table in tables)),  # for errors
        columns={name: [cell for table in tables for cell in table.columns[name]] for name in first.columns},
        lines=[line for table in tables for line in table.lines],
        nested={name: [cell for table in tables for cell in table.nested[name]] for name in nested},
    )


@dataclass(frozen=True, slots=True, eq=False)
class SampledTable:
    """A table with several rows of an item.

    Attributes
    ----------
    table : FileTable
        The table without the column of runs.
    item : str
        The column of items.
    numbers : int64 array, shape (n_rows,)
        The number of each row among the rows of its item.
    n_samples : int64 array, shape (n_rows,)
        How many rows each row's item has.
    sizes : mapping of str to (mapping of str to int)
        The number of rows of each system's items; the system is "" without a column of systems.
    run_column : str or None
        The column of runs. None if rows are samples.
    runs : frozenset of tuple of str
        Names of the runs of each system.
    """

    table: FileTable
    item: str
    numbers: Integers
    n_samples: Integers
    sizes: Mapping[str, Mapping[str, int]]
    run_column: str | None = None
    runs: frozenset[tuple[str, ...]] = frozenset()

    def select_sample(self, k: int) -> FileTable:
        """Return the table with sample k of each item; an item with fewer samples repeats them in turn."""
        return self.table.select_rows(self.numbers == k % self.n_samples)

    def describe(self) -> str:
        """Return a note on the replicates of the items."""
        least, most = int(self.n_samples.min()), int(self.n_samples.max())
        n_samples = f"{self.table.path}: {least:,}{f' to {most:,}' if most > least else ''}"
        if self.run_column is not None:
            return f"{n_samples} runs of each system (column {self.run_column!r})"
        n_items = format_count(len({item for sizes in self.sizes.values() for item in sizes}), "item")
        return f"{n_samples} replicates of each of {n_items} ({len(self.numbers):,} rows), averaged as one unit"

    def check_even(self, format_: str) -> None:
        """Raise an error if items of a system have unlike numbers of samples, or if there is only one item."""
        n_items = max(map(len, self.sizes.values()))
        if n_items > 1 and all(len({*sizes.values()}) == 1 for sizes in self.sizes.values()):
            return
        row = int(np.argmax(self.numbers > 0))
        raise InputError(
            f"id {self.table.get_column(self.item)[row]!r} is repeated, and not all ids are repeated equally often",
            file=self.table.path,
            line=self.table.lines[row],
            remedy=f"if another column belongs to the id, {spell('columns', f'item={self.item}+COLUMN')}. If rows are "
            f"samples of one item, {spell('format', f'{format_}:replicates=together')} averages them. If each row is "
            f"an item, {spell('align', 'position')}",
        )


def _find_repeats(files: Sequence[Source], options: Options, part: FileKind | None) -> dict[Path, SampledTable]:
    """Return the tables whose rows repeat items, by path."""
    run_names = {*ROLES["run"], options.columns.get("run")}
    own = replace(options, groups=tuple(name for name in options.groups if name not in run_names))
    tables = {source.path: read_table(source.path, options.ignore) for source in files}
    numbered = {
        path: number_samples(table, options, resolve_roles(table, own, part))
        for path, table in tables.items()
        if table.header
    }
    return {path: table for path, table in numbered.items() if table is not None}


def number_samples(table: FileTable, options: Options, roles: Roles) -> SampledTable | None:
    """Return a table whose rows repeat items as one of samples, or None if each row is an item.

    Raises
    ------
    InputError
        Rows of one item differ in a column that samples share, or the column of runs lacks some of them.
    """
    item = options.id_column or roles.get("item")
    if item is None or not (cells := Texts.from_values(table.get_column(item))).sizes.all() or cells.are_unique:
        return None  # an empty id is refused where ids are checked
    items = Factor.from_values(cells)
    systems = _join_columns([table.get_column(name) for name in roles.list_all("system", "metric")], len(items))
    codes = systems.codes.astype(np.int64) * len(items.levels) + items.codes
    _, first_rows, cell, n_rows = np.unique(codes, return_index=True, return_inverse=True, return_counts=True)
    if len(n_rows) == len(items):
        return None
    runs = _find_runs(table, [name for name in roles.list_all("run") if name != item], systems, cell, options)
    shared = {*roles.list_all(*SHARED_ROLES), *options.groups} - {item, runs and runs[0]}
    varying = [name for name in table.columns if name in shared and _varies(table, name, first_rows[cell])]
    accepted = {*roles.list_all("unit", "subset", "text")} - {*options.groups} if options.id_column else set()
    if refused := [name for name in varying if name not in accepted]:
        ways = [
            f"{spell('columns', f'item={refused[0]}+{item}')} (if both name the items)",
            f"{spell('columns', f'item={item}')} (if rows of one {item!r} are samples of it)",
            f"{spell('align', 'position')} (if each row is an item)",
        ]
        raise build_roles_error(table, f"rows of one {item!r} differ in {refused[0]!r}", ways)
    left_out = {*varying, runs and runs[0]}
    table = replace(table, columns={name: table.columns[name] for name in table.columns if name not in left_out})
    numbers = np.empty(len(cell), np.int64)
    order = np.lexsort((np.zeros(len(cell)) if runs is None else runs[1].codes, cell))
    numbers[order] = np.arange(len(cell)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    sizes: dict[str, dict[str, int]] = {}
    for system, name, n in zip(systems[first_rows], items[first_rows], n_rows.tolist(), strict=True):
        sizes.setdefault(system, {})[name] = n
    if runs is None:
        return SampledTable(table, item, numbers, n_rows[cell], sizes)
    codes_by_system = (np.unique(runs[1].codes[systems.codes == code]) for code in range(len(systems.levels)))
    names = frozenset(tuple(runs[1].levels[own].tolist()) for own in codes_by_system)
    return SampledTable(table, item, numbers, n_rows[cell], sizes, runs[0], names)


def _join_columns(columns: Sequence[Sequence[str]], n_rows: int) -> Factor:
    """Return the cells of columns joined row by row, empty without columns."""
    return Factor.from_values(map("/".join, zip(*columns, strict=True)) if columns else [""] * n_rows)


def _varies(table: FileTable, name: str, first_rows: Integers) -> bool:
    """Return whether a column differs between a row and the first row of its item."""
    codes = Factor.from_values(table.columns[name]).codes
    return bool((codes != codes[first_rows]).any())


def _find_runs(
    table: FileTable, names: Sequence[str], systems: Factor, cell: Integers, options: Options
) -> tuple[str, Factor] | None:
    """Return the column of runs, in which each item has a row for each run of its system. None without one."""
    for name in names:
        runs = Factor.from_values(table.get_column(name))
        n_runs, n_items = (
            np.bincount(np.unique(np.stack([systems.codes, codes], axis=1), axis=0)[:, 0])
            for codes in (runs.codes, cell)
        )
        rows = np.unique(cell * len(runs.levels) + runs.codes)
        if len(rows) == len(cell) and (np.bincount(systems.codes) == n_runs * n_items).all():
            return name, runs
    if "run" in options.columns:
        problem = f"column {options.columns['run']!r} does not name runs: some items lack a run or have two rows of it"
        raise InputError(problem, file=table.path)
    return None


def _read_samples(
    read: ReadFiles, files: Sequence[Source], options: Options, tables: Mapping[Path, SampledTable]
) -> Counts:
    """Read the files once for each sample of their items."""
    n_samples = math.lcm(*{int(n) for table in tables.values() for n in np.unique(table.n_samples)})
    if n_samples > MAX_SAMPLES:
        remedy = "average the scores of each item, or give all items equally many samples"
        raise InputError("items have many different numbers of samples", file=next(iter(tables)), remedy=remedy)
    replicates = []
    for k in range(n_samples):
        with provide_tables({path: table.select_sample(k) for path, table in tables.items()}):
            replicates.append(read(files, options))
    counts, first = Counts.of_replicates(replicates), next(iter(tables.values()))
    more = f"; {len(tables) - 1:,} more files repeat ids too" if len(tables) > 1 else ""
    notes = [ScopeNote(first.describe() + more)]
    sizes = {n for table in tables.values() for n in np.unique(table.n_samples).tolist()}
    is_uniform = len(sizes) == 1 and len(tables) == len(files)
    runs = frozenset[tuple[str, ...]]().union(*(table.runs for table in tables.values()))
    if is_uniform and all(table.runs for table in tables.values()):
        names = min(runs) if len(runs) == 1 else tuple(map(str, range(1, n_samples + 1)))
        counts = replace(counts, runs=Runs(str(first.run_column), names, len(runs) == 1))
    else:
        counts = replace(counts, runs=None)
    if not is_uniform:
        sizes_by_system = {name: own for table in tables.values() for name, own in table.sizes.items() if name}
        if not sizes_by_system and len(files) == counts.n_systems:
            files_sizes = [tables[source.path].sizes[""] if source.path in tables else None for source in files]
        else:
            files_sizes = [sizes_by_system.get(name, first.sizes.get("", {})) for name in counts.systems]
        numbers = np.column_stack([_count_samples(own, counts) for own in files_sizes])
        counts = replace(counts, fields={**counts.fields, "samples": numbers})
        notes += describe_imbalance(dict(zip(counts.systems, numbers.mean(axis=0).tolist(), strict=True)))
    return replace(counts, warnings=(*notes, *counts.warnings))


def _count_samples(sizes: Mapping[str, int] | None, counts: Counts) -> list[int]:
    """Return the number of samples of each item of a system: 1 without repeated items, -1 if it is not known."""
    if sizes is None:
        return [1] * counts.n_items
    return [sizes.get(item, 0) if sizes else -1 for item in counts.ids or ()]
