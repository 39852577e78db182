"""Groups of items from a separate file, for every format: a table of items, or one group per line.

Items with ids are found by their ids, in any order, and the table may have more items. Without ids, items and rows have
the same order. Ids, or else the number of rows, show whether the first row is a header.
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
from sigdask.interface import spell
from sigdask.text import describe_items, format_count

GROUP, DOCUMENT = "group", "document"
"""Names of columns of --groups and of --documents that have none."""


@dataclass(frozen=True, slots=True)
class GroupFile:
    """A table of items and their groups.

    Attributes
    ----------
    path : Path
        Path of the file.
    unnamed : str
        Name of a column without one.
    """

    path: Path
    unnamed: str

    @property
    def table(self) -> FileTable:
        """The file, with its header detected in the same way as in other tables."""
        return read_table(self.path)

    @property
    def names(self) -> set[str]:
        """All names that the grouping columns of this file may get."""
        if self.unnamed == DOCUMENT:
            return {DOCUMENT, "domain"}
        first_row = [] if self.table.header else [cells[0] for cells in self.table.columns.values() if len(cells)]
        numbered = (f"{self.unnamed} {name}" for name in self.table.columns)
        return {*self.table.columns, *first_row, self.unnamed, *numbered}

    def describe_columns(self) -> str:
        """Return a sentence with the names of the columns."""
        if self.table.header:
            return f"{self.path} has the columns {', '.join(self.table.columns)}."
        return (
            f"{self.path} has no header, so its column is called {self.unnamed!r}: write {spell('unit', self.unnamed)}."
        )

    def find_groups(self, counts: Counts, options: Options) -> dict[str, Factor]:
        """Return the groups of each item.

        Raises
        ------
        InputError
            An item is not in the table, is in it twice, or has no group.
        """
        if counts.ids is None:
            return self._group_by_position(counts.n_items)
        ids = Texts.from_values(counts.ids)
        needed = set(ids)
        for table in (self.table, self._headerless_table):
            if len(table.columns) < 2 or (table.header and not needed.isdisjoint(table.columns)):
                continue  # its first row is an item, not a header
            usual = [name for name in table.columns if name == options.id_column or name.lower() in ID_NAMES]
            names = [name for name in dict.fromkeys((*usual, *table.columns)) if name not in table.nested]
            id_name = next((name for name in names if needed <= set(table.columns[name])), None)
            if id_name is not None:
                return self._build_factors(table, id_name, self._find_rows(table, id_name, ids))
        if len(self.table.columns) < 2:
            remedy = "give a table with a column of ids and one of groups"
            raise InputError(f"one column, but items have ids ({ids[0]!r}); {remedy}", file=self.path)
        columns = [set(cells) for cells in self._headerless_table.columns.values()]
        best = max(columns, key=lambda cells: sum(item in cells for item in ids))
        missing = [item for item in ids if item not in best]
        raise InputError(
            f"{describe_items(missing)} not in this table",
            file=self.path,
            remedy="add a row with the group of each item",
        )

    @property
    def _headerless_table(self) -> FileTable:
        """The table with its first row read as an item, not as a header."""
        if not self.table.header or self.table.lines[0] <= 1:
            return self.table
        columns = {str(k): [name, *cells] for k, (name, cells) in enumerate(self.table.columns.items(), start=1)}
        return replace(self.table, columns=columns, lines=[1, *self.table.lines], header=False, nested={})

    def _find_rows(self, table: FileTable, name: str, ids: Texts) -> list[int]:
        rows_by_id: dict[str, int] = {}
        needed = set(ids)
        for row, item in enumerate(table.columns[name]):
            if item in needed and rows_by_id.setdefault(item, row) != row:
                raise InputError(
                    f"item {item!r} is on line {table.lines[rows_by_id[item]]} already; an item is in one group of "
                    "a column",
                    file=self.path,
                    line=table.lines[row],
                )
        return [rows_by_id[item] for item in ids]

    def _group_by_position(self, n_items: int) -> dict[str, Factor]:
        tables = [self.table, self._headerless_table]
        if not self.table.header and self.table.n_rows > 1:  # the first row may name the columns
            columns = {cells[0]: cells[1:] for cells in self.table.columns.values()}
            tables.append(replace(self.table, columns=columns, lines=self.table.lines[1:], header=True, nested={}))
        table = next((table for table in tables if table.n_rows == n_items), None)
        if table is None:
            raise InputError(
                f"{format_count(self.table.n_rows, 'row')} for {format_count(n_items, 'item')}; without ids, write "
                "one row per item in the order of the items",
                file=self.path,
            )
        id_name = table.find_id_column(Options()) if table.header and len(table.columns) > 1 else None
        factors = self._build_factors(table, id_name, range(n_items))
        if self.unnamed == DOCUMENT and not table.header and len(factors) == 2:  # domain and document
            domains, documents = factors.values()
            combined = Factor.from_values([f"{a}\t{b}" for a, b in zip(domains, documents, strict=True)])
            return {DOCUMENT: combined, "domain": domains}
        return factors

    def _build_factors(self, table: FileTable, id_name: str | None, rows: Sequence[int]) -> dict[str, Factor]:
        names = [name for name in table.columns if name != id_name and name not in table.nested]
        factors = {}
        for k, name in enumerate(names, start=1):
            cells = table.columns[name]
            for row in rows:
                if not cells[row]:
                    line = table.lines[row]
                    raise InputError(f"no group of column {k}; every item needs one", file=self.path, line=line)
            title = name if table.header and name != "value" else self.unnamed + (f" {k}" if len(names) > 1 else "")
            factors[title] = Factor.from_values([cells[row] for row in rows])
        return factors


def list_group_files(options: Options) -> list[GroupFile]:
    """Return the group files that the options name."""
    named_paths = ((options.group_file, GROUP), (options.documents, DOCUMENT))
    return [GroupFile(path, unnamed) for path, unnamed in named_paths if path is not None]


def remove_file_groups(options: Options, files: Sequence[GroupFile]) -> Options:
    """Return options without the group columns that come from group files."""
    file_names = set[str]().union(*(file.names for file in files))
    return replace(options, groups=tuple(name for name in options.groups if name not in file_names))


def add_file_groups(counts: Counts, files: Sequence[GroupFile], options: Options) -> Counts:
    """Add the groups from files; documents that the reader found itself take precedence."""
    groups = dict(counts.groups)
    for file in files:
        if file.unnamed == GROUP or DOCUMENT not in counts.groups:
            groups |= file.find_groups(counts, options)
    return replace(counts, groups=groups) if files else counts
