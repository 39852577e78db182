"""Replicates: several files under one name (optimizer runs, seeds), or several samples of an item in one file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Factor
from sigdask.counts.shown import FirstLine
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.formats.reading.numbers import NotANumberError, to_numbers
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.rows import repeated_id
from sigdask.text import count_noun, some

if TYPE_CHECKING:
    from sigdask.formats.reading.tables import FileTable

CHOICES = ("together", "each")
"""What the option `replicates` of any format takes: how the replicates of an item are swapped."""

PART_NAMES = frozenset({"task", "task_name", "dataset", "data_set", "subset", "testset", "test_set", "benchmark",
                        "collection", "corpus", "lp", "langpair", "language_pair", "doc", "document", "docid", "doc_id",
                        "document_id", "file", "filename", "file_name", "turn"})  # fmt: skip
"""Columns of what ids are numbered within: an id in two of these names two items."""

LABEL_OR_PART_NAMES = frozenset({"subject", "category", "domain", "lang", "language", "split", "section"})
"""Columns that may be so too, or hold labels: they are where ids are unique within them."""

INPUT_NAMES = frozenset({"input", "prompt", "question", "source", "src", "premise", "context", "instruction"})
"""Columns of what an item is: replicates of an item agree in them."""

ROW_IDS = frozenset({"index", "idx"})
"""Names of ids that may be numbers of rows."""

GROUP_IDS = frozenset({"task", "prompt", "question", "problem"})
"""Names of ids that may be groups of items as well."""


MOST_SAMPLES = 5040
"""The largest common multiple of the numbers of samples."""


def by_replicate(sources: Sequence[Source]) -> list[list[Source]]:
    """Return the files of each replicate: the first of each name, the second of each, and so on.

    Without a name that was given twice there is one.

    Raises
    ------
    InputError
        For a file given twice under one name, and for systems that have different numbers of files.
    """
    systems: dict[str | int, list[Source]] = {}
    for k, source in enumerate(sources):
        before = systems.setdefault(k if source.name is None else source.name, [])
        if (source.path, source.parts) in [(other.path, other.parts) for other in before]:
            raise InputError(f"{source.path}: is given twice for system {source.name!r}; give each replicate its file")
        before.append(source)
    files = list(systems.values())
    most, fewest = max(files, key=len, default=[]), min(files, key=len, default=[])
    if len(most) != len(fewest):
        other = fewest[0].name or fewest[0].path
        raise InputError(
            f"system {most[0].name!r} has {len(most)} files, replicates of it, but {other} has {len(fewest)}; "
            "give every system as many (NAME=FILE NAME=FILE), or another name to each file"
        )
    return [list(replicate) for replicate in zip(*files, strict=True)]


@dataclass(slots=True)
class SamplesRead:
    """Samples of items that tables repeat: which one is read, and how many each table has.

    Attributes
    ----------
    format_ : str
        The format that is read, for errors.
    may_differ : bool
        Whether items may have unlike numbers of samples: it was said that repeated ids are replicates.
    current : int
        The number of the sample that readers take of each item.
    sizes : dict of Path to list of int
        The numbers of samples that items of a table have.
    notes : dict of Path to str
        What to tell of each table.
    places : dict of Path to (FileTable, array of int, array of int)
        Tables whose ids were looked at, for each row the number of its sample, and how many its item has.
    """

    format_: str
    may_differ: bool
    current: int = 0
    sizes: dict[Path, list[int]] = field(default_factory=dict)
    notes: dict[Path, str] = field(default_factory=dict)
    places: dict[Path, tuple[FileTable, NDArray[np.int64], NDArray[np.int64]]] = field(default_factory=dict)

    def rows_of(self, path: Path) -> FileTable:
        """Return the rows of a table in the sample that is read; where an item has fewer, they come again in turn."""
        table, place, n_rows = self.places[path]
        return table.where(place == self.current % n_rows)

    @property
    def n_samples(self) -> int:
        """How often tables are read, each time another sample: a multiple of the numbers of samples of all items."""
        n = math.lcm(*(size for sizes in self.sizes.values() for size in sizes))
        if n > MOST_SAMPLES:
            path, sizes = max(self.sizes.items(), key=lambda item: len(item[1]))
            raise InputError(
                f"{path}: items have {some(list(map(str, sizes)), 'unlike number')} of samples; average the scores of "
                "each item, or give all items equally many samples"
            )
        return n

    @property
    def are_alike(self) -> bool:
        """Whether all items of all tables have as many samples."""
        return len({tuple(sizes) for sizes in self.sizes.values()}) == 1 and len(next(iter(self.sizes.values()))) == 1

    @property
    def told(self) -> list[str]:
        """What the first lines say: of tables that are alike once."""
        paths = [*self.notes]
        if len(paths) <= 2:
            return [FirstLine(note) for note in self.notes.values()]
        return [FirstLine(f"{self.notes[paths[0]]}; {len(paths) - 1:,} more files repeat ids too")]


_reading: ContextVar[SamplesRead | None] = ContextVar("samples that are read", default=None)


@contextmanager
def reading_samples(format_: str, *, may_differ: bool) -> Iterator[SamplesRead]:
    """Take repeated ids of tables for samples of one item within, and note how many there are."""
    samples = SamplesRead(format_, may_differ)
    token = _reading.set(samples)
    try:
        yield samples
    finally:
        _reading.reset(token)


def one_sample(
    table: FileTable,
    id_name: str | None,
    options: Options,
    *,
    system: str | None = None,
    gold: str | None = None,
) -> FileTable:
    """Return one row of each item, where a table has several samples of items; the table where ids are unique.

    Parameters
    ----------
    table : FileTable
        As it was read, without rows that sum up others.
    id_name : str or None
        Its column of ids.
    options : Options
        How to read.
    system : str, optional
        The column of systems, each of which has items of its own.
    gold : str, optional
        The column of gold labels, which samples of an item share.

    Raises
    ------
    InputError
        Ids are repeated, and the rows of one are no samples of an item, or too unlike in number.
    """
    if id_name is None or options.align == "position":
        return table
    samples = _reading.get()
    if samples is not None and samples.current and table.path in samples.places:
        return samples.rows_of(table.path)
    cells = Texts.of(table.column(id_name))
    if not cells.sizes.all() or cells.are_unique:
        return table  # an empty id is refused where ids are checked
    items = Factor.of(cells)
    within = None if system is None else Factor.of(table.column(system))
    if len(np.unique(_cells(items, within))) == len(items):
        return table
    if options.id_column is None and (parts := _parts(table, id_name, items, within, gold)):
        apart, named = _told_apart(table, id_name, parts), replace(options, id_column=id_name)
        return one_sample(apart, id_name, named, system=system, gold=gold)
    _check_samples(table, id_name, items, options, gold)
    return _numbered(table, id_name, items, within).rows_of(table.path)


def _cells(items: Factor, within: Factor | None) -> NDArray[np.int64]:
    """Return a number for each row: of its item, and of its cell in another column."""
    codes = items.codes.astype(np.int64)
    return codes if within is None else within.codes.astype(np.int64) * len(items.levels) + codes


def _parts(table: FileTable, id_name: str, items: Factor, within: Factor | None, gold: str | None) -> list[str]:
    """Return the columns of what ids are numbered within; ids that were named stand for themselves."""
    names = [name for name in table.columns if name not in {id_name, gold, *table.nested}]
    parts = [name for name in names if name.lower() in PART_NAMES and _varies(table, name, items)]
    for name in (name for name in names if not parts and name.lower() in LABEL_OR_PART_NAMES):
        column = Factor.of(table.columns[name])
        both = _cells(items, within) * len(column.levels) + column.codes
        parts = [name] if len(np.unique(both)) == len(items) else []
    return parts


def _varies(table: FileTable, name: str, items: Factor) -> bool:
    """Whether a column differs between rows of one id."""
    return len(np.unique(_cells(items, Factor.of(table.columns[name])))) > len(items.levels)


def _told_apart(table: FileTable, id_name: str, parts: Sequence[str]) -> FileTable:
    """Put what ids are numbered within before them."""
    columns = [*(table.columns[name] for name in parts), table.column(id_name)]
    ids = Texts.of("/".join(cells) for cells in zip(*columns, strict=True))
    note = (
        f"{table.path}: ids are numbered within {' and '.join(map(repr, parts))}: items are known by "
        f"{'+'.join((*parts, id_name))}"
    )
    return table.with_column(id_name, ids, FirstLine(note))


def _check_samples(table: FileTable, id_name: str, items: Factor, options: Options, gold: str | None) -> None:
    """Refuse rows of one id that differ in what an item is, and ids of which others may be meant."""
    aside = {id_name, *table.nested}
    what = [name for name in table.columns if (name.lower() in INPUT_NAMES or name == gold) and name not in aside]
    for name in filter(lambda name: _varies(table, name, items), what):
        column = Factor.of(table.columns[name])
        row = int(np.argmax(column.codes != column.codes[items.met[1][items.codes]]))
        raise _refused(table, id_name, items, row, f"the rows differ in {name!r}, so they are no samples of an item")
    row = int(np.argmax(items.met[1][items.codes] != np.arange(len(items))))  # the first whose id stands above it
    if id_name in table.row_columns() or (id_name.lower() in ROW_IDS and _start_again(items)):
        raise _refused(table, id_name, items, row, "row numbers that start again are no ids")
    others = [] if options.id_column else [name for name in table.id_names(options) if name != id_name]
    for name in filter(lambda name: _varies(table, name, items), others):
        why = f"{name!r} differs in its rows. Are they samples of one item? Then --id {id_name}"
        raise _refused(table, id_name, items, row, why)


def _start_again(items: Factor) -> bool:
    """Whether numbers go down somewhere, as those of rows do where files were joined."""
    try:
        return bool((np.diff(to_numbers(items.levels)[items.codes]) < 0).any())
    except NotANumberError:
        return False


def _refused(
    table: FileTable, id_name: str, items: Factor, row: int, why: str, within: Factor | None = None
) -> InputError:
    """Return the error for a row whose id stands above it."""
    cells = _cells(items, within)
    first = int(np.argmax(cells == cells[row]))
    position = "" if within is not None else " Is each row an item of its own? Then --align position."
    if position and id_name.lower() in GROUP_IDS:
        position = f" Is it a group of items? Then --unit {id_name}.{position}"
    item = repr(items[row]) if within is None else f"{items[row]!r} of system {within[row]!r}"
    return repeated_id(
        f"{table.path}, line {table.lines[row]}",
        item,
        f"on line {table.lines[first]}",
        f"{why}. Are ids of column {id_name!r} unique beside another? Then --id {id_name}+COLUMN.{position}",
    )


def _numbered(table: FileTable, id_name: str, items: Factor, within: Factor | None) -> SamplesRead:
    """Find the number of each row among the samples of its item."""
    cells = _cells(items, within)
    values, cell, n_rows = np.unique(cells, return_inverse=True, return_counts=True)
    cell = cell.reshape(-1)
    samples, n_items = _reading.get(), len(items.levels)
    of_system = np.split(n_rows, np.flatnonzero(np.diff(values // n_items)) + 1) if within is not None else [n_rows]
    are_even = n_items > 1 and all((own == own[0]).all() for own in of_system)
    if samples is None or not (are_even or samples.may_differ):
        row = int(np.argmax(n_rows[cell] > 1))
        row = int(np.flatnonzero(cells == cells[row])[1])
        name = "NAME" if samples is None else samples.format_
        how = f"{np.count_nonzero(n_rows > 1):,} of {len(n_rows):,} ids are repeated, not all equally often"
        why = f"{how}. Are their rows samples of one item? Then --format {name}:replicates=together averages them"
        raise _refused(table, id_name, items, row, why, within)
    sizes = sorted({*n_rows.tolist()})
    many = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    samples.sizes[table.path] = sizes
    samples.notes[table.path] = (
        f"{table.path}: {many} replicates of each of {count_noun(n_items, 'item')} ({table.n_rows:,} rows), "
        "averaged as one unit"
    )
    place = np.empty(len(cells), np.int64)
    place[np.argsort(cell, kind="stable")] = np.arange(len(cells)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    samples.places[table.path] = table, place, n_rows[cell]
    return samples
