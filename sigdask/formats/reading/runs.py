"""Several files of one system: runs, which have the same items, or parts of one run, which share none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, islice
from pathlib import Path

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.checks import check_complete
from sigdask.counts.fields import Array, Bools, ComputedFields, Integers, LazyOutputs, get_rounding
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.declared import provide_tables
from sigdask.formats.reading.missing import describe_missing
from sigdask.formats.reading.options import Options, Source, distinguish_names
from sigdask.formats.reading.replicates import SamplesRead, collect_samples, describe_imbalance
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.options import Missing
from sigdask.text import describe_items, format_count

CHOICES = ("together", "paired")
"""Values of the option `replicates`. "paired": the runs of all systems share their seeds, in the order of the files."""

Items = frozenset[str | int]

TABLE_FORMATS = ("labels", "numbers", "responses", "wide", "long")
"""Formats of tables, whose parts are joined row by row."""

ReadFiles = Callable[[Sequence[Source], Options], Counts]
"""Reads files, one of each system, by the format's reader."""

SystemFiles = Mapping[str, Sequence[Source]]


def read_runs(
    read: ReadFiles,
    sources: Sequence[Source],
    options: Options,
    *,
    format_: str,
    convention: Missing = "error",
    replicates: str | None = None,
) -> Counts:
    """Read all files of all systems. A name that was given several times is one system.

    Its files are runs if they have the same items, and parts of one run if no item is in two of them. Parts are joined
    before missing items are looked for. Rows that repeat an item are samples of it.

    Parameters
    ----------
    read : callable
        Reads one file of each system, and honours `missing="pairwise"`.
    sources : sequence of Source
        The files.
    options : Options
        How to read.
    format_ : str
        Name of the format, for errors.
    convention : {"error", "zero"}
        How the format treats missing items if `options.missing` does not say.
    replicates : {"together", "paired"}, optional
        Value of the format's option of this name.

    Raises
    ------
    InputError
        Files of one name share some items and not others, or systems have different numbers of runs.
    """
    systems = group_by_name(distinguish_names(sources))
    have_one_file = all(len(files) == 1 for files in systems.values())
    with collect_samples(format_, may_differ=replicates is not None) as samples:
        items = {} if have_one_file else _list_all_items(read, systems, options, format_)
        runs = [systems] if have_one_file else _match_runs(systems, items)
        join = _read_joined_tables if format_ in TABLE_FORMATS else partial(_read_parts, items, convention=convention)
        read_run = partial(_read_run, read, options, join)
        counts = _read_samples(read_run, runs, samples)
    if counts.replicates:
        runs_of = samples.find_runs(len(runs))
        counts = replace(
            counts, runs=replace(runs_of, is_shared=True) if runs_of and replicates == "paired" else runs_of
        )
    return _describe_samples(counts, runs, samples) if samples.sizes else counts


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


def _read_samples(
    read_run: Callable[[SystemFiles], Counts], runs: Sequence[SystemFiles], samples: SamplesRead
) -> Counts:
    """Read every run, and once more for each further sample of the items."""
    replicates = []
    samples.current = 0
    while samples.current < samples.n_samples:  # one until the first reading finds repeated ids
        replicates += [read_run(run) for run in runs]
        samples.current += 1
    return Counts.of_replicates(replicates)


def _list_all_items(read: ReadFiles, systems: SystemFiles, options: Options, format_: str) -> dict[Source, Items]:
    """Return the items of each file, as its table or the format's reader tells."""
    if format_ in TABLE_FORMATS:
        return {source: _list_table_items(source, options) for files in systems.values() for source in files}
    lenient = replace(options, missing="pairwise", few_in_common=True)
    items: dict[Source, Items] = {}
    for k in range(max(map(len, systems.values()))):
        files = {name: sources[min(k, len(sources) - 1)] for name, sources in systems.items()}
        counts = read([*files.values()], lenient)
        items |= {source: _list_items(counts, _find_system(counts, name, source)) for name, source in files.items()}
    return items


def _list_table_items(source: Source, options: Options) -> Items:
    table = read_table(source.path, options.ignore)
    name = table.find_id_column(options)
    return frozenset(range(table.n_rows) if name is None else table.get_column(name))


def _match_runs(systems: SystemFiles, items: Mapping[Source, Items]) -> list[dict[str, list[Source]]]:
    """Return the files of each run, by system, as their items tell."""
    matched = {name: _match_files(name, sources, items) for name, sources in systems.items()}
    longest = max(matched, key=lambda name: len(matched[name]))
    shortest = min(matched, key=lambda name: len(matched[name]))
    n_runs, n_least = len(matched[longest]), len(matched[shortest])
    if n_runs != n_least:
        raise InputError(
            f"system {longest!r} has {format_count(n_runs, 'run')}, but {shortest!r} has {n_least}",
            remedy="give each system equally many files (NAME=FILE NAME=FILE), or give each file its own name",
        )
    return [{name: files[k] for name, files in matched.items()} for k in range(n_runs)]


def _find_system(counts: Counts, name: str, source: Source) -> int:
    if name not in counts.systems:
        found = describe_items([*counts.systems], "system")
        raise InputError(f"{name}=: expected one system, found {found}", file=source.path, remedy="leave out the name")
    return counts.systems.index(name)


def _list_items(counts: Counts, system: int) -> Items:
    """Return the items that a system has: their ids, or their positions without ids."""
    items: Sequence[str | int] = range(counts.n_items) if counts.ids is None else counts.ids
    if counts.present is None:
        return frozenset(items)
    return frozenset(item for item, is_present in zip(items, counts.present[:, system], strict=True) if is_present)


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
            f"{name!r}: {', '.join(str(source.path) for source in files)} are parts of unlike numbers of runs",
            remedy="give the files of all parts of each run",
        )
    return [list(run) for run in zip(*parts.values(), strict=True)]


JoinParts = Callable[[ReadFiles, SystemFiles, Options], Counts]


def _read_run(read: ReadFiles, options: Options, join: JoinParts, run: SystemFiles) -> Counts:
    """Read one run of each system, and join its parts."""
    if all(len(files) == 1 for files in run.values()):
        return read([source for files in run.values() for source in files], options)
    counts = join(read, run, options)
    notes = [
        ScopeNote(f"{name}: {len(files)} files are parts of one run, and were joined")
        for name, files in run.items()
        if len(files) > 1
    ]
    return replace(counts, scope=(*notes, *counts.scope))


def _read_joined_tables(read: ReadFiles, run: SystemFiles, options: Options) -> Counts:
    """Read tables whose parts are joined row by row."""
    tables = {files[0].path: _join_tables(files, options) for files in run.values() if len(files) > 1}
    with provide_tables(tables):
        return read([files[0] for files in run.values()], options)


def _join_tables(files: Sequence[Source], options: Options) -> FileTable:
    first, *others = tables = [read_table(source.path, options.ignore) for source in files]
    for table in others:
        if {*table.columns} ^ {*first.columns}:
            expected = f"the columns of {first.path}: {', '.join(first.columns)}"
            raise InputError(file=table.path, found=", ".join(table.columns), expected=expected)
    return replace(
        first,
        path=Path(" + ".join(str(table.path) for table in tables)),  # for errors
        columns={name: [cell for table in tables for cell in table.columns[name]] for name in first.columns},
        lines=[line for table in tables for line in table.lines],
        nested={name: [cell for table in tables for cell in table.nested[name]] for name in first.nested},
    )


def _read_parts(
    items: Mapping[Source, Items], read: ReadFiles, run: SystemFiles, options: Options, *, convention: Missing
) -> Counts:
    """Read each part as a system of its own, and take each item's values from the part that has it."""
    files = {
        replace(source, name=f"{name} (part {k})"): items[source]
        for name, sources in run.items()
        for k, source in enumerate(sources, 1)
    }
    parts = dict(zip(run, _split([*files], [*map(len, run.values())]), strict=True))
    counts = read([*files], replace(options, missing="pairwise", few_in_common=True))
    chosen, present = _choose_parts(counts, parts, files)
    missing = options.missing or convention
    notes: list[ScopeNote] = []
    if not present.all():
        if missing == "error":
            check_complete(present, [*parts], counts.ids)
        if missing == "zero":
            counts = read([*files], replace(options, missing="zero", few_in_common=True))
        notes += describe_missing(present, [*parts], options, convention)
    return _join_parts(counts, parts, chosen, None if missing == "zero" or present.all() else present, notes)


def _split(files: Sequence[Source], sizes: Sequence[int]) -> list[list[Source]]:
    remaining = iter(files)
    return [list(islice(remaining, size)) for size in sizes]


def _choose_parts(counts: Counts, parts: SystemFiles, items: Mapping[Source, Items]) -> tuple[Integers, Bools]:
    """Return for each item and system the column of the part that has the item, and whether one has it."""
    ids: Sequence[str | int] = range(counts.n_items) if counts.ids is None else counts.ids
    chosen, present = [], []
    for files in parts.values():
        columns = np.array([_find_system(counts, str(source.name), source) for source in files])
        has = np.array([[item in items[source] for source in files] for item in ids])
        chosen.append(columns[has.argmax(axis=1)])
        present.append(has.any(axis=1))
    return np.column_stack(chosen), np.column_stack(present)


def _join_parts(
    counts: Counts, parts: SystemFiles, chosen: Integers, present: Bools | None, notes: Sequence[str]
) -> Counts:
    """Return counts in which each system has the values of those of its parts that have the items."""
    names = [str(source.name) for files in parts.values() for source in files if len(files) > 1]
    outputs = counts.outputs and Outputs(
        LazyOutputs(len(parts), partial(_join_outputs, counts.outputs.systems, chosen)),
        counts.outputs.gold,
        counts.outputs.asked,
    )
    return replace(
        counts,
        systems=tuple(parts),
        fields=JoinedFields(counts.fields, chosen),
        present=present,
        held={name: np.take_along_axis(mask, chosen, 1) for name, mask in counts.held.items()},
        outputs=outputs,
        extracted={key: np.take_along_axis(values, chosen[:, :, None], 1) for key, values in counts.extracted.items()},
        scope=(*notes, *(text for text in counts.scope if not any(name in text for name in names))),
        warnings=tuple(text for text in counts.warnings if not any(name in text for name in names)),
    )


def _join_outputs(columns: Sequence[Array], chosen: Integers, system: int) -> Array:
    joined = np.empty(len(chosen), object)
    for column in np.unique(chosen[:, system]).tolist():
        rows = chosen[:, system] == column
        joined[rows] = columns[column][rows]
    return joined


@dataclass(frozen=True, slots=True, eq=False)
class JoinedFields(ComputedFields):
    """Fields in which a column of each system is put together from the columns of its parts."""

    fields: Mapping[str, Array]
    chosen: Integers  # (n_items, n_systems), column of the part that has the item

    def __getitem__(self, name: str) -> Array:
        values = np.asarray(self.fields[name])
        return values if values.shape[1] == 1 else np.take_along_axis(values, self.chosen, 1)

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    @property
    def rounding(self) -> Mapping[str, tuple[float, ...]]:
        """Maximum error of the numbers of a field, that of its worst part."""
        return {name: (max(errors),) for name, errors in get_rounding(self.fields).items()}


def _describe_samples(counts: Counts, runs: Sequence[SystemFiles], samples: SamplesRead) -> Counts:
    """Return counts with the numbers of samples of the items, and notes on them."""
    files = [source.path for files in runs[0].values() for source in files]
    notes = samples.first_lines
    if len(runs) > 1 or not samples.is_uniform or samples.sizes.keys() < {*files}:
        numbers = samples.count_samples(counts, files)
        fields = {**counts.fields, "samples": numbers if len(runs) == 1 else np.full_like(numbers, -1)}
        counts = replace(counts, fields=fields)
        notes += describe_imbalance(dict(zip(counts.systems, numbers.mean(axis=0).tolist(), strict=True)))
    return replace(counts, warnings=(*notes, *counts.warnings))
