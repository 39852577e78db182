"""Tables of any of the file kinds, columns of text with the line each row began on."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Factor
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.formats.reading.aggregated import check_text
from sigdask.formats.reading.columns.lists import by_column
from sigdask.formats.reading.columns.plain import plain_columns
from sigdask.formats.reading.columns.typed import ParquetColumns, TypedColumn
from sigdask.formats.reading.files import is_parquet, keeping, open_bytes, read_lines
from sigdask.formats.reading.json import nested
from sigdask.formats.reading.json.records import is_json, record_cells, scalars
from sigdask.formats.reading.numbers import NotANumberError, is_number, to_numbers
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.rows import Row, as_text, delimited_rows, delimiter_of, quotes_are_text, repeated_id

INDEX = "index"
"""What a first column without a name is called: pandas writes its index so."""

ID_NAMES = ("item", "id", "topic", "query", "segment", "item_id", "pairid", "pair_id", "uid", "example", "relation",
            "response", "seg_id", INDEX, "idx", "guid", "uuid", "example_id", "sample_id", "instance_id", "question_id",
            "qid", "tweet_id", "tweetid", "task_id", "problem_id", "prompt_id", "case_id", "test_id",
            "seg", "segid", "segment_id", "segmentid", "sentence_id", "sent_id", "sentid", "utt_id", "utterance_id",
            "question", "problem", "prompt", "task")  # fmt: skip
"""Conventional names of an id column, compared without case."""

INPUT_IDS = frozenset({"question", "problem", "prompt", "task"})
"""Names of these that are ids only where no other id column is there, and where the cells are no scores."""

SAMPLE_NAMES = frozenset({"sample_id", "sample", "sample_index", "sample_idx", "completion_id", "completion_index",
                          "attempt", "generation", "repeat", "trial", "rep", "seed", "epoch", "run"})  # fmt: skip
"""What numbers the samples of an item, where another column names the item."""

MACHINE_NAMES = frozenset({"uid", "uuid", "guid", "idx", INDEX})
"""Ids of rows, which say nothing of the items in them where another column does."""

ROW_NAMES = re.compile(
    r"unnamed: 0(\.\d+)*|__index_level_\d+__|level_\d+|row_?(nr|numbers?|names?|num|idx|index|id)|\.\.\.1",
    re.IGNORECASE,
)
"""What pandas, polars, R and Arrow call the rows of a data frame, when they write them as a column."""

MOST_LABELS = 20
"""Different cells of a first column without a name that may be labels."""

FEWEST_COUNTED = 10
"""Rows from which on a first column that counts them holds their numbers, whatever its name."""

HEADER_NAMES = frozenset({*ID_NAMES, "gold", "gold_label", "label", "labels", "prediction", "pred", "score", "system",
                          "text", "sentence"}) - INPUT_IDS  # fmt: skip
"""Names that stand in headers alone."""

NUMBER = re.compile(r"[+-]?([0-9]+(,[0-9]+)?|,[0-9]+)([eE][+-]?[0-9]+)?")
"""A number as it is written where commas part decimals."""

MARKUP = re.compile(r"<(!doctype|html|\?xml)\b", re.IGNORECASE)
KINDS = {"float": "float32", "halffloat": "float16"}
"""Arrow's names of numbers in less than float64, and NumPy's."""

LOOKED_AT = 10_000
"""Rows looked at to tell whether the first is a header."""

SYSTEM_NAMES = ("system", "model", "run", "system_name", "system_id", "systemid", "sys", "model_name", "model_id")

SCORE_NAMES = ("score", "value", "rating")


@dataclass(frozen=True, slots=True, eq=False)
class FileTable:
    """A file's columns.

    Attributes
    ----------
    path : Path
        The file.
    columns : mapping of str to sequence of str
        Stripped cells of each column, in the order of the file; `Texts` where the file is a plain one.
    lines : sequence of int
        The line each row began on.
    header : bool
        Whether the file named its columns itself; if not, they are called 1, 2, ..., or "" where it has one.
    notes : sequence of str
        What to tell of how it was read.
    kinds : mapping of str to str
        Of columns that hold numbers in less than float64: "float32" or "float16".
    nested : mapping of str to sequence
        Columns with objects or lists in them, whose text is not to be compared; a name with dots leads inside.
    """

    path: Path
    columns: Mapping[str, Sequence[str]]
    lines: Sequence[int]
    header: bool = True
    notes: Sequence[str] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    nested: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Rows without the header."""
        return len(self.lines)

    def column(self, name: str) -> Sequence[str]:
        """Return a column, or say which there are; `prediction.label` is the field of an object in another.

        Raises
        ------
        InputError
            There is no such column, or it holds objects or lists: their fields are named.
        """
        if name in self.nested:
            raise nested.refused(self.path, name, self.lines, self.nested[name])
        if name not in self.columns:
            if (inner := nested.field(self.nested, name)) is not None:
                return inner
            if parts := self._parts_of(name):
                return Texts.of("/".join(cells) for cells in zip(*(self.columns[part] for part in parts), strict=True))
            close = difflib.get_close_matches(name[:200], [column for column in self.columns if len(column) < 200], 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(f"{self.path}: no column {name[:1000]!r}; columns: {', '.join(self.columns)}{hint}")
        return self.columns[name]

    def numbers(self, name: str) -> NDArray[Any]:
        """Return a column of numbers, in the type in which the file has them, NaN where a cell is missing."""
        try:
            return to_numbers(self.column(name)).astype(self.kinds.get(name, "float64"), copy=False)
        except NotANumberError as error:
            raise InputError(f"{self.path}, line {self.lines[error.index]}, column {name!r}: {error}") from None

    def is_numeric(self, name: str) -> bool:
        """Whether every cell of a column is a number or missing."""
        if name in self.nested:
            return False
        if isinstance(column := self.column(name), TypedColumn) and column.is_numeric:
            return True
        try:
            to_numbers(self.column(name))
        except NotANumberError as error:
            return str(error).startswith(("found nan", "found inf", "found -inf"))
        return True

    def conventional(self, names: Sequence[str]) -> str | None:
        """Return the first column that has one of the conventional names."""
        lowered = {column.lower(): column for column in reversed(list(self.columns))}
        return next((lowered[name] for name in names if name in lowered), None)

    def id_name(self, options: Options) -> str | None:
        """Return the id column: the one asked for, or a first column with a conventional name."""
        if options.id_column is not None:
            self.column(options.id_column)
            return options.id_column
        if not self.header and len(self.columns) > 1:
            return "1" if self._are_ids(self.columns["1"]) else None
        known = self.id_names(options)
        return next(iter((*self._finest(known), *self.row_columns())), None)

    def system_name(self, options: Options) -> str | None:
        """Return the column of the systems' names: the one asked for, or one with a conventional name.

        Real numbers are scores of a system that is called so, and so are numbers in `run` beside `run2`.
        """
        if options.system_column in self.columns:
            return options.system_column
        name = self.conventional(SYSTEM_NAMES)
        if name is None or not self.is_numeric(name):
            return name
        values, numbered = self.numbers(name), re.compile(rf"{re.escape(name)}[ _-]?\d+", re.IGNORECASE)
        is_score = (values != np.floor(values)).any() or any(map(numbered.fullmatch, self.columns))
        return None if is_score else name

    def id_names(self, options: Options) -> list[str]:
        """Return the columns with conventional names of ids; numbers of rows and of samples are none."""
        aside = {*options.ignore, *self.row_columns()}
        names = [name for name in self.columns if name.lower() in ID_NAMES and name not in aside]
        names = [name for name in names if name not in options.groups or self._are_unique(name)]
        names = [name for name in names if name.lower() not in SAMPLE_NAMES] or names
        of_inputs = [name for name in names if name.lower() in INPUT_IDS]
        return [name for name in names if name not in of_inputs] or [*filter(self._may_be_ids, of_inputs)]

    def _may_be_ids(self, name: str) -> bool:
        """Whether cells tell items apart and are no scores: neither numbers with decimals nor 0 and 1 alone."""
        if name in self.nested or len(Factor.of(self.columns[name]).levels) < 2:
            return False
        if not self.is_numeric(name):
            return True
        values = self.numbers(name)
        return bool((values == np.floor(values)).all() and not np.isin(values, (0, 1)).all())

    def _are_unique(self, name: str) -> bool:
        return Texts.of(self.columns[name]).are_unique

    def _finest(self, names: Sequence[str]) -> Sequence[str]:
        """Put the first column whose ids are unique before one whose ids are not."""
        if len(names) < 2 or self._are_unique(names[0]):
            return names
        finer = (name for name in names[1:] if name.lower() not in MACHINE_NAMES and self._are_unique(name))
        return [next(finer, names[0])]

    def _parts_of(self, name: str | None) -> list[str]:
        """Return the columns of a name such as `task+id`, whose cells together are an id."""
        parts = name.split("+") if name and name not in self.columns else []
        return parts if len(parts) > 1 and all(part in self.columns for part in parts) else []

    def row_columns(self) -> list[str]:
        """Return the columns that number or name the rows, as data frames write them: never systems.

        They are known by their names; or the first one by counting the rows, from 0 or 1.
        """
        if not self.header:
            return []
        first = next(iter(self.columns))
        found = [name for name in self.columns if name == INDEX or ROW_NAMES.fullmatch(name)]
        if first not in found and len(self.columns) > 1 and self._counts_rows(first):
            found.insert(0, first)
        return found

    def _counts_rows(self, name: str) -> bool:
        cells = self.columns[name]
        if self.n_rows < FEWEST_COUNTED or cells[0] not in {"0", "1"}:
            return False
        first = int(cells[0])
        counted = map(str, range(first, first + FEWEST_COUNTED))
        return list(cells[:FEWEST_COUNTED]) == [*counted] and _count(Texts.of(cells), first)

    @staticmethod
    def _are_ids(cells: Sequence[str]) -> bool:
        """Whether cells without a name look like ids: single words, each once; with digits they may be repeated.

        Words that come again are a text's, and labels are few.
        """
        words = Factor.of(cells).levels
        if ord(" ") in words.buffer or len(words) == len(cells):
            return len(words) == len(cells) and ord(" ") not in words.buffer
        if 2 * len(words) <= len(cells) and len(words) <= MOST_LABELS:
            return False
        return all(any(c.isdigit() for c in word) for word in words)

    def ids(self, options: Options) -> Texts | None:
        """Return the checked ids of the rows, None where there are none."""
        name = self.id_name(options)
        if name is None or options.align == "position":
            return None
        cells = Texts.of(self.column(name))
        if not cells.sizes.all() or not cells.are_unique:
            raise self._no_ids(name, cells)
        return cells

    def _no_ids(self, name: str, cells: Sequence[str]) -> InputError:
        """Return the error for the first cell that is empty, or stands on another line already."""
        seen: dict[str, int] = {}
        for line, item in zip(self.lines, cells, strict=True):
            if not item:
                return InputError(f"{self.path}, line {line}: column {name!r} is empty, expected an item id")
            if item in seen:
                break
            seen[item] = line
        return repeated_id(
            f"{self.path}, line {line}",
            repr(item),
            f"on line {seen[item]}",
            f"ids of column {name!r} must be unique. Do rows correspond as they stand? Then --align position",
        )

    def without(self, dropped: Collection[int]) -> FileTable:
        """Return the table without some rows."""
        if not dropped:
            return self
        kept = np.ones(self.n_rows, np.bool_)
        kept[list(dropped)] = False
        return self.where(kept)

    def with_column(self, name: str, cells: Sequence[str], note: str) -> FileTable:
        """Return the table with other cells in a column, and what is to be told of it."""
        return replace(self, columns={**self.columns, name: cells}, notes=[*self.notes, note])

    def where(self, kept: NDArray[np.bool_]) -> FileTable:
        """Return the table with some of its rows."""
        return replace(
            self,
            columns={name: _taken(column, kept) for name, column in self.columns.items()},
            lines=_taken(self.lines, kept),
            nested={name: _taken(column, kept) for name, column in self.nested.items()},
        )

    def others(self, *set_aside: str | None) -> list[str]:
        """Return the columns besides some, and besides those of the rows' own names."""
        holders = (column for column in self.nested for name in set_aside if name and name.startswith(f"{column}."))
        joint = (part for name in set_aside for part in self._parts_of(name))
        aside = {*set_aside, *self.row_columns(), *holders, *joint}
        return [column for column in self.columns if column not in aside]


def _taken(column: Sequence[Any], kept: NDArray[np.bool_]) -> Any:
    return column[kept] if isinstance(column, Texts) else list(compress(column, kept))


def _count(cells: Texts, first: int) -> bool:
    """Whether cells count on from a number, as `str` writes it."""
    try:
        values = to_numbers(cells)
    except NotANumberError:
        return False
    digits = np.floor(np.log10(np.maximum(values, 1))) + 1
    return bool((values == np.arange(first, first + len(cells))).all() and (cells.sizes == digits).all())


_at_hand: ContextVar[dict[tuple[Path, frozenset[str], str | None], FileTable] | None] = ContextVar(
    "tables at hand", default=None
)


@contextmanager
def reading_once() -> Iterator[None]:
    """Read each table once within: to tell its format, and to take its columns."""
    token = _at_hand.set({} if (outer := _at_hand.get()) is None else outer)
    try:
        with keeping():
            yield
    finally:
        _at_hand.reset(token)


@contextmanager
def table_at_hand(table: FileTable) -> Iterator[None]:
    """Have `read_table` return a table that is no file, by its path."""
    with reading_once():
        tables = _at_hand.get()
        assert tables is not None
        tables[table.path, frozenset(), None] = table
        yield


def read_table(path: Path, ignore: Collection[str] = (), decimal: str | None = None) -> FileTable:
    """Read a table, or take it as it was read before (`reading_once`); see `read_anew`."""
    at_hand, key = _at_hand.get(), (path, frozenset(ignore), decimal)
    if at_hand is None:
        return read_anew(path, ignore, decimal)
    if key not in at_hand:
        at_hand[key] = read_anew(path, ignore, decimal)
    return at_hand[key]


def read_anew(path: Path, ignore: Collection[str] = (), decimal: str | None = None) -> FileTable:
    """Read delimited text, JSON lines or Parquet; a file of one unnamed value a line has one column "".

    Parameters
    ----------
    path : Path
        The file.
    ignore : collection of str
        Columns that will be left out: they may occur twice.
    decimal : {",", "."}, or None
        What parts decimals, where that was said: a comma then parts no columns.

    Raises
    ------
    InputError
        For whatever makes the file no table; it names file and line.
    """
    if is_parquet(path):
        return _parquet(path, ignore)
    with open_bytes(path) as stream:
        start = stream.read(4096)
    head = start.decode("utf-8-sig", errors="replace").lstrip()
    if is_json(path):
        return _of_json(path)
    check_text(path, first := head.split("\n", 1)[0].strip())
    mark = delimiter_of(first, decimal)
    if head and (mark is None or (mark == "," and not decimal and _are_decimals(path, first))):
        return _one_column(path, first)
    if (columns := plain_columns(path, mark)) is not None and len(columns[0]) > 1:
        return _of_columns(path, columns, ignore)
    quotes = quotes_are_text(path)
    rows = list(delimited_rows(path, quotes=quotes, delimiter=mark))
    notes = [f"{path}: quotation marks do not enclose whole cells everywhere; taken as part of the text"] * quotes
    below = [
        Texts.of(map(str.strip, column)) for column in zip(*(cells for _, cells in rows[1:LOOKED_AT]), strict=True)
    ]
    if _has_header([name.strip() for name in rows[0][1]], below):
        table = table_of(path, rows, ignore=ignore)
    else:
        names = [str(k) for k in range(1, len(rows[0][1]) + 1)]
        table = table_of(path, [(0, names), *rows], header=False)
    return replace(table, notes=notes, nested=nested.written_in(table.columns))


def _of_columns(path: Path, columns: Sequence[Texts], ignore: Collection[str]) -> FileTable:
    """Return the cells of a plain file, those of its first line first, as a table."""
    names, lines = [column[0] for column in columns], range(1, len(columns[0]) + 1)
    below = [column[1:] for column in columns]
    header = _has_header(names, [column[: LOOKED_AT - 1] for column in below])
    if header:
        names, columns, lines = _named(path, names, 1, ignore), below, lines[1:]
    else:
        names = [str(k) for k in range(1, len(names) + 1)]
    named = dict(zip(names, columns, strict=True))
    return FileTable(path, named, lines, header, nested=nested.written_in(named))


def _of_json(path: Path) -> FileTable:
    if (cells := scalars(path)) is not None:
        return FileTable(path, {"": [as_text(cell).strip() for cell in cells]}, range(1, len(cells) + 1), header=False)
    if (columns := by_column(path)) is not None:
        return FileTable(path, columns, range(1, len(next(iter(columns.values()))) + 1))
    rows = list(record_cells(path))
    table = table_of(path, [(line, list(map(as_text, cells))) for line, cells in rows])
    holders = nested.columns_of(rows)
    return replace(table, nested={list(table.columns)[k]: cells for k, cells in holders.items()})


def _has_header(names: Sequence[str], below: Sequence[Texts]) -> bool:
    """Whether the first row names the columns: none of its cells, unless all, stand below in their columns.

    A label comes again in its column, the name of a system does not; where files were joined, whole
    headers do. A number is no name either, beside a label.
    """
    if not HEADER_NAMES.isdisjoint(name.lower() for name in names):
        return True
    if len(names) == 2 and is_number(names[0]) and names[0]:
        return False  # number and label
    filled = [(column, name) for column, name in zip(below, names, strict=False) if name]
    again = np.zeros(len(below[0]) if below else 0, np.int64)
    for column, name in filled:
        again += column.are(name)
    return not ((again > 0) & (again < len(filled))).any()


def _one_column(path: Path, first: str) -> FileTable:
    if MARKUP.match(first):
        raise InputError(f"{path}: found {first[:40]!r}, a page or document of HTML or XML, expected one row an item")
    named = first.lower() in {*ID_NAMES, "gold", "score", "label", "prediction"} - INPUT_IDS
    if (columns := plain_columns(path, None)) is not None and len(columns[0]) > 1:
        lines: Sequence[str] = columns[0]
        if named:
            return FileTable(path, {_named(path, [lines[0]], 1)[0]: columns[0][1:]}, range(2, len(lines) + 1))
    else:
        lines = read_lines(path)
        if named:
            return table_of(path, [(k, (line,)) for k, line in enumerate(lines, start=1)])
    return FileTable(path, {"": lines}, range(1, len(lines) + 1), header=False)


def _are_decimals(path: Path, first: str) -> bool:
    """Whether lines are numbers of which some hold a comma, and others none: no two columns."""
    if not NUMBER.fullmatch(first):
        return False
    lines = read_lines(path)
    return all(map(NUMBER.fullmatch, lines)) and not all("," in line for line in lines)


def table_of(path: Path, rows: list[Row], *, header: bool = True, ignore: Collection[str] = ()) -> FileTable:
    """Return rows of cells, the names of the columns first, as a table."""
    if len(rows) < 2:
        raise InputError(f"{path}: has a header and no rows, expected one row an item")
    names = _named(path, rows[0][1], rows[0][0], ignore, header=header)
    lines = [line for line, _ in rows[1:]]
    cells = list(map(str.strip, chain.from_iterable(row for _, row in rows[1:])))
    return FileTable(path, {name: cells[k :: len(names)] for k, name in enumerate(names)}, lines, header)


def _named(
    path: Path, cells: Sequence[str], line: int, ignore: Collection[str] = (), *, header: bool = True
) -> list[str]:
    """Return the names of the columns, checked."""
    names = [name.strip() for name in cells]
    if names[0] == "" and len(names) > 1 and INDEX not in names:
        names[0] = INDEX
    if header and all(is_number(name) and name for name in names):
        raise no_header(path, line)
    check_header(path, names, ignore)
    return names


def no_header(path: Path, line: int, more: str = "") -> InputError:
    """Return the error for a table that is to name its columns and does not."""
    return InputError(f"{path}, line {line}: found data, expected a header that names the columns; add one{more}")


def check_header(path: Path, names: Sequence[str], ignore: Collection[str] = ()) -> None:
    """Refuse columns without a name, and two of one name unless they are left out."""
    seen: set[str] = set()
    for k, name in enumerate(names):
        if not name:
            raise InputError(f"{path}: column {k + 1} has no name in the header")
        if name in seen and name not in ignore:
            raise InputError(
                f"{path}: column {name!r} occurs twice in the header; name each system once, or leave these out with "
                f"--ignore {name!r}"
            )
        seen.add(name)


def _parquet(path: Path, ignore: Collection[str]) -> FileTable:
    stored = ParquetColumns(path)
    check_header(path, stored.schema.names, ignore)
    if not stored.n_rows:
        raise InputError(f"{path}: has no rows, expected one row an item")
    kinds = {f.name: KINDS[str(f.type)] for f in stored.schema if str(f.type) in KINDS}
    return FileTable(path, dict(stored), range(1, stored.n_rows + 1), kinds=kinds, nested=stored.nested())
