"""Groups of items out of a file of their own, for every format: a table of item and group, or a group a line.

Items with ids are found by them, wherever they stand in the table; it may hold more. Items without ids have a row
each, in their order. Whether the first row names the columns is told by the ids, or by the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sigdask.counts import Counts
from sigdask.counts.factors import Factor
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import ID_NAMES, FileTable, read_table
from sigdask.text import count_noun, some

GROUP, DOCUMENT = "group", "document"
"""What a column without a name is called, of --groups and of --documents."""


@dataclass(frozen=True, slots=True)
class GroupFile:
    """A table of items and the groups they are in.

    Attributes
    ----------
    path : Path
        Where it lies.
    unnamed : str
        What a column without a name is called.
    """

    path: Path
    unnamed: str

    @property
    def table(self) -> FileTable:
        """The file, its first row taken for a header as it is anywhere."""
        return read_table(self.path)

    @property
    def names(self) -> set[str]:
        """What its columns may be called."""
        if self.unnamed == DOCUMENT:
            return {DOCUMENT, "domain"}
        return {*self.table.columns, self.unnamed, *(f"{self.unnamed} {name}" for name in self.table.columns)}

    def groups(self, counts: Counts, options: Options) -> dict[str, Factor]:
        """Return the groups of each item.

        Raises
        ------
        InputError
            An item is not in the table, stands twice in it, or has no group.
        """
        if counts.ids is None:
            return self._by_position(counts.n_items)
        wanted = Texts.of(counts.ids)
        for table in (self.table, self._headless):
            if (name := self._ids_in(table, wanted, options)) is not None:
                return self._named(table, name, self._rows(table, name, wanted))
        raise self._without(wanted)

    @property
    def _headless(self) -> FileTable:
        """The table, its first row taken for one of items."""
        if not self.table.header or self.table.lines[0] <= 1:
            return self.table
        columns = {str(k): [name, *cells] for k, (name, cells) in enumerate(self.table.columns.items(), start=1)}
        return replace(self.table, columns=columns, lines=[1, *self.table.lines], header=False, nested={})

    def _ids_in(self, table: FileTable, wanted: Texts, options: Options) -> str | None:
        """Return the first column that has all ids, the named one before others."""
        if len(table.columns) < 2:
            return None
        usual = [name for name in table.columns if name == options.id_column or name.lower() in ID_NAMES]
        needed = set(wanted)
        columns = dict.fromkeys((*usual, *table.columns))
        if table.header and not needed.isdisjoint(table.columns):
            return None  # what would be its header is an item
        return next((name for name in columns if name not in table.nested and needed <= set(table.columns[name])), None)

    def _rows(self, table: FileTable, name: str, wanted: Texts) -> list[int]:
        place: dict[str, int] = {}
        needed = set(wanted)
        for row, item in enumerate(table.columns[name]):
            if item in needed and place.setdefault(item, row) != row:
                raise InputError(
                    f"{self.path}, line {table.lines[row]}: item {item!r} stands on line {table.lines[place[item]]} "
                    "already; an item is in one group of a column"
                )
        return [place[item] for item in wanted]

    def _named(self, table: FileTable, id_name: str | None, rows: Sequence[int]) -> dict[str, Factor]:
        names = [name for name in table.columns if name != id_name and name not in table.nested]
        found = {}
        for k, name in enumerate(names, start=1):
            cells = table.columns[name]
            for row in rows:
                if not cells[row]:
                    raise InputError(
                        f"{self.path}, line {table.lines[row]}: no group of column {k}; every item needs one"
                    )
            called = name if table.header and name != "value" else self.unnamed + (f" {k}" if len(names) > 1 else "")
            found[called] = Factor.of([cells[row] for row in rows])
        return found

    def _by_position(self, n_items: int) -> dict[str, Factor]:
        for table in (self.table, self._headless, self._named_above):
            if table.n_rows == n_items:
                id_name = table.id_name(Options()) if table.header and len(table.columns) > 1 else None
                found = self._named(table, id_name, range(n_items))
                if self.unnamed == DOCUMENT and not table.header and len(found) == 2:  # domain and document
                    first, second = found.values()
                    both = Factor.of([f"{a}\t{b}" for a, b in zip(first, second, strict=True)])
                    return {DOCUMENT: both, "domain": first}
                return found
        raise InputError(
            f"{self.path}: {count_noun(self.table.n_rows, 'row')} for {count_noun(n_items, 'item')}; "
            "without ids each has a row, in "
            "their order"
        )

    @property
    def _named_above(self) -> FileTable:
        """The table, its first row taken for the names of the columns."""
        if self.table.header or self.table.n_rows < 2:
            return self.table
        columns = {cells[0]: cells[1:] for cells in self.table.columns.values()}
        return replace(self.table, columns=columns, lines=self.table.lines[1:], header=True, nested={})

    def _without(self, wanted: Texts) -> InputError:
        """Return the error for ids that no column has all of."""
        if len(self.table.columns) < 2:
            return InputError(
                f"{self.path}: one column, but items have ids ({wanted[0]!r}); give a table with a column of ids and "
                "one of groups"
            )
        columns = {name: set(cells) for name, cells in self._headless.columns.items()}
        best = max(columns.values(), key=lambda cells: sum(item in cells for item in wanted))
        missing = [item for item in wanted if item not in best]
        return InputError(f"{self.path}: {some(missing)} not in this table; every item needs a group")


def group_files(options: Options) -> list[GroupFile]:
    """Return the files of groups that are given."""
    given = ((options.group_file, GROUP), (options.documents, DOCUMENT))
    return [GroupFile(path, unnamed) for path, unnamed in given if path is not None]


def without_names(options: Options, files: Sequence[GroupFile]) -> Options:
    """Return options that ask the reader for no column that a file of groups has."""
    known = set[str]().union(*(file.names for file in files))
    return replace(options, groups=tuple(name for name in options.groups if name not in known))


def grouped(counts: Counts, files: Sequence[GroupFile], options: Options) -> Counts:
    """Put items into the groups of files; documents that a reader has found itself stay."""
    found = dict(counts.groups)
    for file in files:
        if file.unnamed == GROUP or DOCUMENT not in counts.groups:
            found |= file.groups(counts, options)
    return replace(counts, groups=found) if files else counts
