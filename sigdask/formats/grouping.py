"""Groups of items from a separate file, for every format: a table of items, or one group per line.

Items with ids are found by the column of the role item, in any order, and the table may have more items. Without ids,
items and rows have the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sigdask.counts import Counts
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.formats.reading.files import Row, build_width_error, enumerate_lines, parse_header, read_head
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import FileTable, build_table, read_table
from sigdask.formats.roles import build_roles_error, name_role, resolve_roles
from sigdask.text import describe_items, format_count

GROUP, DOCUMENT, DOMAIN = "group", "document", "domain"
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
        """The file. A list has a header if its first line is the name of a role; else its column is `unnamed`.

        A file of documents without names has a document, or domain and document, on each line, as WMT writes them.
        """
        first = next(iter(read_head(self.path).lines), "")
        is_named = not first or first[0] in "{[" or any(map(name_role, parse_header(first)))
        if self.unnamed == DOCUMENT and not is_named:
            rows: list[Row] = [(number, line.rstrip("\r\n").split("\t")) for number, line in enumerate_lines(self.path)]
            names = [DOMAIN, DOCUMENT] if len(rows[0][1]) == 2 else [DOCUMENT]
            for number, cells in rows:
                if len(cells) != len(names):
                    raise build_width_error(self.path, number, len(cells), len(names))
            return build_table(self.path, [(0, names), *rows])
        table = read_table(self.path)
        if table.header or len(table.columns) > 1:
            return table
        [column] = map(list, table.columns.values())
        name = column[0] if is_named else self.unnamed
        return FileTable(self.path, {name: column[is_named:]}, table.lines[is_named:], header=is_named)

    @property
    def names(self) -> set[str]:
        """All names that the grouping columns of this file may get."""
        return {DOCUMENT, DOMAIN} if self.unnamed == DOCUMENT else {*self.table.columns}

    def describe_columns(self) -> str:
        """Return a sentence with the names of the columns."""
        return f"{self.path} has the columns {', '.join(self.table.columns)}."

    def find_groups(self, counts: Counts, options: Options) -> dict[str, Texts]:
        """Return the groups of each item.

        Raises
        ------
        InputError
            An item is not in the table, is in it twice, or has no group.
        """
        table = self.table
        item = {"item": name} if (name := options.id_column) and name in table.columns else {}
        units = tuple(name for name in options.groups if name in table.columns)
        id_name = resolve_roles(table, Options(columns=item, groups=units)).get("item")
        rows: Sequence[int] = range(counts.n_items)
        if counts.ids is not None:
            rows = self._find_rows(table, id_name, Texts.from_values(counts.ids))
        elif table.n_rows != counts.n_items:
            raise InputError(
                f"{format_count(table.n_rows, 'row')} for {format_count(counts.n_items, 'item')}",
                file=self.path,
                remedy="without ids, write a row per item, in their order, below a line with the name of the column",
            )
        groups = {}
        for name in (name for name in table.columns if name != id_name and name not in table.nested):
            cells = [table.columns[name][row] for row in rows]
            if "" in cells:
                problem = f"no group in column {name!r}; every item needs one"
                raise InputError(problem, file=self.path, line=table.lines[rows[cells.index("")]])
            groups[name] = Texts.from_values(cells).encode()
        if self.unnamed == DOCUMENT and [*groups] == [DOMAIN, DOCUMENT]:  # documents of two domains may share a name
            pairs = zip(groups[DOMAIN], groups[DOCUMENT], strict=True)
            groups[DOCUMENT] = Texts.from_values(map("\t".join, pairs)).encode()
        return groups

    def _find_rows(self, table: FileTable, id_name: str | None, ids: Texts) -> list[int]:
        """Return the row of each item."""
        if id_name is None or len(table.columns) < 2:
            problem = f"no column of items, but items have ids ({ids[0]!r})"
            raise build_roles_error(table, problem, ["a column of ids called `item`, and a column for each group"])
        needed, rows_by_id = set(ids), dict[str, int]()
        for row, item in enumerate(table.columns[id_name]):
            if item in needed and rows_by_id.setdefault(item, row) != row:
                problem = f"item {item!r} is on line {table.lines[rows_by_id[item]]} already"
                raise InputError(problem, file=self.path, line=table.lines[row], remedy="give it one row")
        if missing := [item for item in ids if item not in rows_by_id]:
            remedy = "add a row with the group of each item"
            raise InputError(f"{describe_items(missing)} not in this table", file=self.path, remedy=remedy)
        return [rows_by_id[item] for item in ids]


def list_group_files(options: Options) -> list[GroupFile]:
    """Return the group files that the options name."""
    named_paths = ((options.group_file, GROUP), (options.documents, DOCUMENT))
    return [GroupFile(path, unnamed) for path, unnamed in named_paths if path is not None]


def read_with_groups(read: Callable[[Options], Counts], options: Options) -> Counts:
    """Read data, and add the groups from files; documents that the reader found itself take precedence."""
    if not (files := list_group_files(options)):
        return read(options)
    file_names = set[str]().union(*(file.names for file in files))
    counts = read(replace(options, groups=tuple(name for name in options.groups if name not in file_names)))
    groups = dict(counts.groups)
    for file in files:
        if file.unnamed == GROUP or DOCUMENT not in counts.groups:
            groups |= file.find_groups(counts, options)
    return replace(counts, groups=groups)
