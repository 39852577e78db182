"""Read tables of any supported kind of file as columns of text, with the line of each row."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Factor
from sigdask.counts.texts import Texts
from sigdask.errors import InputError, MissingColumnError
from sigdask.formats.reading import files, json_records
from sigdask.formats.reading.averages_only import check_text
from sigdask.formats.reading.columns import (
    NO_VALUE,
    NotANumberError,
    ParquetColumns,
    TypedColumn,
    find_numbers,
    is_number,
    read_plain_columns,
    to_numbers,
)
from sigdask.formats.reading.converted import get_sheet
from sigdask.formats.reading.declared import get_provided, read_declared
from sigdask.formats.reading.options import DEFAULTS, Options
from sigdask.interface import spell
from sigdask.io.compression import set_variable
from sigdask.text import capitalize_first, format_list, suggest_name

Value = TypeVar("Value")

INDEX_NAME = "index"
"""Name given to a first column without one, as pandas writes its index."""

ID_NAMES = ("item", "id", "topic", "query", "segment", "item_id", "pairid", "pair_id", "uid", "example", "relation",
            "seg_id", INDEX_NAME, "idx", "guid", "uuid", "example_id", "sample_id", "instance_id",
            "question_id", "qid", "tweet_id", "tweetid", "task_id", "problem_id", "prompt_id", "case_id", "test_id",
            "query_id", "queryid", "query-id", "topic_id",
            "seg", "segid", "segment_id", "segmentid", "sentence_id", "sent_id", "sentid", "utt_id", "utterance_id",
            "question", "problem", "prompt", "task", "response")  # fmt: skip
"""Conventional names of an id column, compared without case."""

INPUT_IDS = frozenset({"question", "problem", "prompt", "task", "response"})
"""Those of these names that are ids only if there is no other id column and their cells are no scores."""

SAMPLE_NAMES = frozenset({"sample_id", "sample", "sample_index", "sample_idx", "completion_id", "completion_index",
                          "sample_no", "sample_num", "sample_number", "completion_idx", "attempt", "attempt_id",
                          "attempt_idx", "attempt_index", "attempt_number", "generation", "generation_id", "repeat",
                          "repetition", "trial", "trial_id", "trial_idx", "trial_index", "trial_number", "rollout",
                          "rollout_id", "rep", "seed", "epoch", "run"})  # fmt: skip
"""Names of columns that number the samples of an item, if another column names the item."""

MACHINE_NAMES = frozenset({"uid", "uuid", "guid", "idx", INDEX_NAME})
"""Names of ids of rows, which do not identify items if another column does."""

ROW_NAMES = re.compile(
    r"unnamed: 0(\.\d+)*|__index_level_\d+__|level_\d+|row_?(nr|numbers?|names?|num|idx|index|id)|\.\.\.1",
    re.IGNORECASE,
)
"""Names that pandas, polars, R and Arrow give to the row numbers of a data frame."""

MAX_LABELS = 20
"""Maximum number of distinct cells for which a first column without a name may be labels."""

MIN_COUNTED = 10
"""Minimum number of rows for which a first column that counts them is a row number, whatever its name."""

HEADER_NAMES = frozenset({*ID_NAMES, "gold", "gold_label", "label", "labels", "prediction", "pred", "score", "system",
                          "text", "sentence"}) - (INPUT_IDS - {"response"})  # fmt: skip
"""Names that occur only in headers."""

LIST_HEADERS = frozenset({"gold_label", "labels", "true_label", "truth", "target", "y_true", "pred", "pred_label",
                          "predicted", "predicted_label", "predictions", "y_pred"})  # fmt: skip
"""Names of the only column of a file, unless they occur below as labels."""

COMMA_NUMBER = re.compile(r"[+-]?([0-9]+(,[0-9]+)?|,[0-9]+)([eE][+-]?[0-9]+)?")
"""Pattern of a number with a decimal comma."""

MARKUP = re.compile(r"<(!doctype|html|\?xml)\b", re.IGNORECASE)
SMALL_FLOATS = {"float": "float32", "halffloat": "float16"}
"""Names of floating-point types smaller than float64 in Arrow and NumPy."""

HEADER_CHECK_ROWS = 10_000
"""Rows read to find out whether the first row is a header."""

FEW_CELLS = 2**16
"""Maximum number of cells of a table whose numbers are cached."""

SYSTEM_NAMES = ("system", "model", "run", "system_name", "system_id", "systemid", "sys", "model_name", "model_id")

SCORE_NAMES = ("score", "value", "rating")


@dataclass(frozen=True, slots=True, eq=False)
class FileTable:
    """A file read as columns of text, with the line number of each row.

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
        Notes on how it was read.
    kinds : mapping of str to str
        Type of columns with fewer bits than float64: "float32" or "float16".
    nested : mapping of str to sequence
        Columns with objects or lists in them, whose text is not to be compared; a name with dots leads inside.
    removed : mapping of str to sequence of str
        Columns that were left out as no scores. They may show that rows of files correspond otherwise.
    """

    path: Path
    columns: Mapping[str, Sequence[str]]
    lines: Sequence[int]
    header: bool = True
    notes: Sequence[str] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    nested: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    removed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _numbers: dict[str, tuple[Sequence[str], NDArray[Any] | NotANumberError]] = field(default_factory=dict, repr=False)
    _verdicts: dict[str, tuple[Sequence[str], bool]] = field(default_factory=dict, repr=False)
    _answers: dict[str, list[tuple[Options, Any]]] = field(init=False, default_factory=dict, repr=False)

    @staticmethod
    def from_arrow(path: Path, table: Any, ignore: Collection[str] = ()) -> FileTable:
        """Build a table from an Arrow table."""
        names = table.column_names
        files.check_header(path, names, ignore)
        columns = {name: [files.format_cell(cell) for cell in table[name].to_pylist()] for name in names}
        return FileTable(path, columns, range(1, table.num_rows + 1))

    @property
    def n_rows(self) -> int:
        """Number of rows without the header."""
        return len(self.lines)

    def get_column(self, name: str) -> Sequence[str]:
        """Return a column, a field `a.b` of a column of objects, or the joined ids of `a+b`.

        Raises
        ------
        InputError
            There is no such column, or it holds objects or lists: their fields are named.
        """
        if name in self.nested:
            raise json_records.build_nested_error(self.path, name, self.lines, self.nested[name])
        if name not in self.columns:
            if (inner := json_records.get_field(self.nested, name)) is not None:
                return inner
            if parts := self._split_joint_name(name):
                return Texts.from_values(map("/".join, zip(*(self.columns[part] for part in parts), strict=True)))
            names = f"{format_list([*self.columns], 20)}{suggest_name(name, self.columns)}"
            raise MissingColumnError(f"{self.path}: no column {name[:1000]!r}; columns: {names}", name)
        return self.columns[name]

    def build_column_error(self, problem: str, option: str) -> InputError:
        """Return the error for a column that cannot be determined, with all columns and the option that names it."""
        if not any(self.columns):
            return InputError(f"{problem}; it has no header line with names between commas or tabs", file=self.path)
        end = "" if problem.endswith("?") else ";"
        return InputError(
            f"{problem}{end} columns: {', '.join(self.columns)}", file=self.path, remedy=f"name it with {option}"
        )

    def require_column(self, requested: str | None, names: Sequence[str], what: str, option: str) -> str:
        """Return the requested column, or the first with one of the given names; raise if there is none."""
        name = requested or self.find_column(names)
        if name is None:
            raise self.build_column_error(f"no {what}", option)
        self.get_column(name)
        return name

    def recall(self, question: str, options: Options, answer: Callable[[], Value]) -> Value:
        """Return the answer to a question about this table under some options; it is computed once."""
        known = self._answers.setdefault(question, [])
        for asked, value in known:
            if asked == options:
                return value  # type: ignore[no-any-return]
        value = answer()
        if value is not self:  # else large tables would wait for the garbage collector
            known.append((options, value))
        return value  # type: ignore[no-any-return]

    def _convert_column(self, name: str) -> NDArray[Any]:
        """Return a column as float64 numbers; those of small tables are converted once."""
        cells = self.get_column(name)
        if self.n_rows * len(self.columns) > FEW_CELLS:
            return to_numbers(cells)
        column, numbers = self._numbers.get(name, ((), None))
        if column is not cells or numbers is None:
            try:
                numbers = to_numbers(cells)
            except NotANumberError as error:
                numbers = error
            self._numbers[name] = cells, numbers
        if isinstance(numbers, NotANumberError):
            raise numbers.with_index(numbers.index)
        return numbers.copy()

    def get_numbers(self, name: str) -> NDArray[Any]:
        """Return a column as numbers, float64 unless the table names another type; a missing cell is NaN."""
        try:
            return self._convert_column(name).astype(self.kinds.get(name, "float64"), copy=False)
        except NotANumberError as error:
            raise InputError(f"{self._format_place(name, error.index)}: {error}") from None

    def _format_place(self, name: str, index: int) -> str:
        """Return the file, line and column of a cell, for errors."""
        column_text = f", column {name!r}" if name else ""
        return f"{self.path}, line {self.lines[index]}{column_text}"

    def get_complete_numbers(self, name: str, problem: str) -> NDArray[np.float64]:
        """Return a column as numbers; raise an error that names the problem and its remedy if a number is missing."""
        try:
            numbers = np.asarray(self._convert_column(name), np.float64)
        except NotANumberError as error:
            remedy = capitalize_first(problem.partition("; ")[2]) if error.is_gap else ""
            message = f"{error.problem}. {remedy}" if remedy else str(error)
            raise InputError(f"{self._format_place(name, error.index)}: {message}") from None
        numbers = np.asarray(numbers.astype(self.kinds.get(name, "float64"), copy=False), np.float64)
        if (is_missing := np.isnan(numbers)).any():
            raise InputError(f"{self._format_place(name, int(np.argmax(is_missing)))}: {problem}")
        return numbers

    def is_numeric(self, name: str) -> bool:
        """Return whether every cell of a column is a number or missing."""
        if name in self.nested:
            return False
        if isinstance(column := self.get_column(name), TypedColumn) and column.is_numeric:
            return True
        cells, is_numeric = self._verdicts.get(name, ((), False))
        if cells is not column:
            try:
                self._convert_column(name)
                is_numeric = True
            except NotANumberError as error:
                is_numeric = error.is_float
            self._verdicts[name] = column, is_numeric
        return is_numeric

    def find_column(self, names: Sequence[str]) -> str | None:
        """Return the first column with one of the given names, compared without case."""
        lowered = {column.lower(): column for column in reversed(list(self.columns))}
        return next((lowered[name] for name in names if name in lowered), None)

    def find_id_column(self, options: Options) -> str | None:
        """Return the requested id column, or the first one with a conventional name."""
        return self.recall("id column", options, lambda: self._find_id_column(options))

    def _find_id_column(self, options: Options) -> str | None:
        if options.id_column is not None:
            self.get_column(options.id_column)
            return options.id_column
        if not self.header and len(self.columns) > 1:
            return "1" if "1" in self.columns and self._are_ids(self.columns["1"]) else None
        names = self.list_id_columns(options)
        if len(names) > 1 and not self._are_unique(names[0]):  # one with unique ids, if there is one
            finer = (name for name in names[1:] if name.lower() not in MACHINE_NAMES and self._are_unique(name))
            return next(finer, names[0])
        return next(iter((*names, *self.list_row_columns())), None)

    def find_system_column(self, options: Options) -> str | None:
        """Return the requested column of system names, or one with a conventional name.

        Columns of real numbers are scores of a system with this name, and so are numbers in `run` next to `run2`.
        """
        if options.system_column in self.columns:
            return options.system_column
        name = self.find_column(SYSTEM_NAMES)
        if name is None or not self.is_numeric(name):
            return name
        values, numbered = self.get_numbers(name), re.compile(rf"{re.escape(name)}[ _-]?\d+", re.IGNORECASE)
        is_score = (values != np.floor(values)).any() or any(map(numbered.fullmatch, self.columns))
        return None if is_score else name

    def list_id_columns(self, options: Options) -> list[str]:
        """Return the columns with conventional id names, without those that number rows or samples."""
        aside = {*options.ignore, *self.list_row_columns()}
        names = [name for name in self.columns if name.lower() in ID_NAMES and name not in aside]
        names = [name for name in names if name not in options.groups or self._are_unique(name)]
        names = [name for name in names if name.lower() not in SAMPLE_NAMES] or names
        input_columns = [name for name in names if name.lower() in INPUT_IDS]
        inputs = [*filter(self._can_be_ids, input_columns)]
        questions = [name for name in inputs if name.lower() != "response"]
        others = [name for name in names if name not in input_columns] or questions
        responses = [name for name in inputs if name not in questions and self._are_names(name)]
        if responses and not any(map(self._are_unique, others)):
            others = [*others, *responses]
        return others or inputs

    def _can_be_ids(self, name: str) -> bool:
        """Return whether cells can be ids: not constant, no decimals, and not only 0 and 1."""
        if name in self.nested or len(Factor.from_values(self.columns[name]).levels) < 2:
            return False
        if not self.is_numeric(name):
            return True
        values = self.get_numbers(name)
        return bool((values == np.floor(values)).all() and not np.isin(values, (0, 1)).all())

    def _are_unique(self, name: str) -> bool:
        return Texts.from_values(self.columns[name]).are_unique

    def _are_names(self, name: str) -> bool:
        """Return whether cells are unique and not several words, as the first ones show."""
        return self._are_unique(name) and not any(" " in str(cell) for cell in self.columns[name][:MIN_COUNTED])

    def _split_joint_name(self, name: str | None) -> list[str]:
        """Return the columns in a name such as `task+id`, whose joined cells are an id, or nothing for other names."""
        parts = name.split("+") if name and name not in self.columns else []
        return parts if len(parts) > 1 and {*parts} <= self.columns.keys() else []

    def list_row_columns(self) -> list[str]:
        """Return the columns of row numbers or row names that data frames write, which are never systems.

        They are known by their names; or the first one by counting the rows, from 0 or 1.
        """
        return [*self.recall("row columns", DEFAULTS, self._find_row_columns)]

    def _find_row_columns(self) -> list[str]:
        if not self.header:
            return []
        first_column = next(iter(self.columns))
        row_names = [name for name in self.columns if name == INDEX_NAME or ROW_NAMES.fullmatch(name)]
        if first_column not in row_names and len(self.columns) > 1 and self._is_row_counter(first_column):
            row_names.insert(0, first_column)
        return row_names

    def _is_row_counter(self, name: str) -> bool:
        cells = self.columns[name]
        if self.n_rows < MIN_COUNTED or cells[0] not in {"0", "1"}:
            return False
        start = int(cells[0])
        if [*cells[:MIN_COUNTED]] != [*map(str, range(start, start + MIN_COUNTED))]:
            return False
        texts = Texts.from_values(cells)
        if (values := find_numbers(texts)) is None:
            return False
        sizes = np.floor(np.log10(np.maximum(values, 1))) + 1  # as `str` writes them
        return bool((values == np.arange(start, start + len(texts))).all() and (texts.sizes == sizes).all())

    @staticmethod
    def _are_ids(cells: Sequence[str]) -> bool:
        """Return whether cells of an unnamed column look like ids: single words that are unique or contain digits.

        Words that come again are a text's, and labels are few.
        """
        words = Factor.from_values(cells).levels
        has_spaces = any(" " in word for word in words)
        if has_spaces or len(words) == len(cells):
            return len(words) == len(cells) and not has_spaces
        if 2 * len(words) <= len(cells) and len(words) <= MAX_LABELS:
            return False
        return all(any(c.isdigit() for c in word) for word in words)

    def get_ids(self, options: Options) -> Texts | None:
        """Return the checked ids of the rows, or None if there are none."""
        name = self.find_id_column(options)
        if name is None or options.align == "position":
            return None
        cells = Texts.from_values(self.get_column(name))
        if not cells.sizes.all() or not cells.are_unique:
            raise self._build_id_error(name, cells)
        return cells

    def _build_id_error(self, name: str, cells: Sequence[str]) -> InputError:
        """Return the error for the first empty or repeated id."""
        line_by_id: dict[str, int] = {}
        for line, item in zip(self.lines, cells, strict=True):
            if not item:
                return InputError(f"column {name!r} is empty, expected an item id", file=self.path, line=line)
            if item in line_by_id:
                break
            line_by_id[item] = line
        return files.build_repeated_id_error(
            f"{self.path}, line {line}",
            repr(item),
            f"on line {line_by_id[item]}",
            f"ids of column {name!r} must be unique. Do rows correspond as they stand? Then "
            f"{spell('align', 'position')}",
        )

    def replace_column(self, name: str, cells: Sequence[str], note: str) -> FileTable:
        """Return the table with new cells in a column, and a note on the change."""
        return replace(self, columns={**self.columns, name: cells}, notes=[*self.notes, note])

    def select_rows(self, is_selected: NDArray[np.bool_]) -> FileTable:
        """Return the table with the rows that a mask selects."""
        return replace(
            self,
            columns={name: _select_cells(column, is_selected) for name, column in self.columns.items()},
            lines=_select_cells(self.lines, is_selected),
            nested={name: _select_cells(column, is_selected) for name, column in self.nested.items()},
            removed={name: _select_cells(column, is_selected) for name, column in self.removed.items()},
        )

    def list_other_columns(self, *excluded: str | None) -> list[str]:
        """Return all columns except the excluded columns and those of row numbers or row names."""
        holders = (column for column in self.nested for name in excluded if name and name.startswith(f"{column}."))
        joint = (column_name for name in excluded for column_name in self._split_joint_name(name))
        all_excluded = {*excluded, *self.list_row_columns(), *holders, *joint}
        return [column for column in self.columns if column not in all_excluded]

    def list_system_columns(self, options: Options, *excluded: str | None) -> list[str]:
        """Return the columns that may be systems: all but ids, groups, ignored and excluded columns, and row names."""
        return self.list_other_columns(self.find_id_column(options), *options.groups, *options.ignore, *excluded)


def _select_cells(column: Sequence[Any], is_selected: NDArray[np.bool_]) -> Any:
    return column[is_selected] if isinstance(column, Texts) else list(compress(column, is_selected))


_table_cache: ContextVar[dict[tuple[Path, frozenset[str], str | None, str | None], FileTable] | None] = ContextVar(
    "tables at hand", default=None
)


@contextmanager
def cache_tables() -> Iterator[None]:
    """Read each table only once inside the `with` block, for detection and for reading."""
    outer_cache = _table_cache.get()
    with set_variable(_table_cache, {} if outer_cache is None else outer_cache), files.cache_small_files():
        yield


@contextmanager
def provide_table(table: FileTable) -> Iterator[None]:
    """Make `read_table` return a table in memory for its path, inside the `with` block."""
    with cache_tables():
        tables = _table_cache.get()
        assert tables is not None
        tables[table.path, frozenset(), None, get_sheet()] = table
        yield


def describe_unknown_columns(ignored: Collection[str], known: Collection[str]) -> list[str]:
    """Return notes on columns to leave out that no file has."""
    return [
        f"{spell('ignore', name)} has no effect: there is no such column{suggest_name(name, known, '; leave it out')}"
        for name in ignored
        if name not in known
    ]


def read_table(path: Path, ignore: Collection[str] = (), decimal: str | None = None) -> FileTable:
    """Return the table in a file of delimited text, JSON or Parquet, from the cache inside `cache_tables`."""
    if (provided := get_provided(path)) is not None:
        return cast("FileTable", provided)
    if (declared := read_declared(path)) is not None:
        return FileTable.from_arrow(path, declared, ignore)
    cache, key = _table_cache.get(), (path, frozenset(ignore), decimal, get_sheet())
    if cache is None:
        return read_table_file(path, ignore, decimal)
    if key not in cache:
        cache[key] = read_table_file(path, ignore, decimal)
    return cache[key]


def read_table_file(path: Path, ignore: Collection[str] = (), decimal: str | None = None) -> FileTable:
    """Read delimited text, JSON or Parquet as a table; a list of values without a name becomes one column "".

    Parameters
    ----------
    path : Path
        The file.
    ignore : collection of str
        Columns that will be left out: they may occur twice.
    decimal : {",", "."}, or None
        Decimal separator, if specified. A decimal comma cannot separate columns.

    Raises
    ------
    InputError
        The file is not a valid table. The message names file and line.
    """
    if files.is_parquet(path):
        return _read_parquet(path, ignore)
    with files.open_bytes(path) as stream:
        start = stream.read(4096)
    head = start.decode("utf-8-sig", errors="replace").lstrip()
    if json_records.is_json(path):
        return _read_json(path)
    check_text(path, first_line := head.split("\n", 1)[0].strip())
    delimiter = files.find_delimiter(first_line, decimal)
    if head and (delimiter is None or (delimiter == "," and not decimal and _has_decimal_commas(path, first_line))):
        return _read_one_column(path, first_line)
    columns: Sequence[Sequence[str]] | None = read_plain_columns(path, delimiter)
    lines: Sequence[int]
    notes = []
    if columns is None or len(columns[0]) < 2:
        quotes = files.quotes_are_text(path)
        rows = list(files.read_delimited_rows(path, quotes=quotes, delimiter=delimiter))
        files.check_n_columns(path, len(rows[0][1]))
        columns = [list(map(str.strip, column)) for column in zip(*(cells for _, cells in rows), strict=True)]
        lines = [line for line, _ in rows]
        if quotes:
            notes = [f"{path}: quotation marks do not enclose whole cells everywhere; taken as part of the text"]
    else:
        lines = range(1, len(columns[0]) + 1)
    if _has_header([column[0] for column in columns], [column[1:HEADER_CHECK_ROWS] for column in columns]):
        table = _build_headed_table(path, columns, lines, ignore)
    else:
        table = FileTable(path, {str(k): column for k, column in enumerate(columns, start=1)}, lines, header=False)
    return replace(table, notes=notes, nested=json_records.parse_nested_columns(table.columns))


def _read_json(path: Path) -> FileTable:
    document = None if json_records.is_json_lines(path) else json_records.load_json(path)
    if isinstance(document, list) and document and not isinstance(document[0], dict | list):
        for k, value in enumerate(document, start=1):
            if isinstance(value, dict | list):
                raise InputError(f"{path}, value {k}: found {str(value)[:40]}, expected a single value as before it")
        cells = [files.format_cell(cell).strip() for cell in document]
        return FileTable(path, {"": cells}, range(1, len(cells) + 1), header=False)
    if (columns := json_records.get_list_columns(path, document)) is not None:
        return FileTable(path, columns, range(1, len(next(iter(columns.values()))) + 1))
    rows = list(json_records.read_record_cells(path, document))
    table = build_table(path, [(line, list(map(files.format_cell, cells))) for line, cells in rows])
    holders = {k for _, cells in rows[1:] for k, cell in enumerate(cells) if isinstance(cell, dict | list)}
    nested = {name: [cells[k] for _, cells in rows[1:]] for k, name in enumerate(table.columns) if k in holders}
    return replace(table, nested=nested)


def _has_header(names: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row is a header: none or all of its cells recur below in their columns.

    A label recurs in its column, the name of a system does not. In joined files, whole headers recur. A number next to
    a label is not a name either.
    """
    if not HEADER_NAMES.isdisjoint(name.lower() for name in names):
        return True
    if len(names) == 2 and is_number(names[0]) and names[0]:
        return False  # number and label
    filled = [(column, name) for column, name in zip(below, names, strict=False) if name]
    n_rows = len(below[0]) if below else 0
    n_repeats = np.zeros(n_rows, np.int64)
    if len(filled) > n_rows:  # rows are few: each is compared as a whole
        filled_names = [name for _, name in filled]
        cells_of_rows = zip(*(column for column, _ in filled), strict=True)
        n_repeats[:] = [sum(map(str.__eq__, filled_names, cells)) for cells in cells_of_rows]
    else:
        for column, name in filled:
            n_repeats += Texts.from_values(column).equals_text(name)
    return not ((n_repeats > 0) & (n_repeats < len(filled))).any()


def _read_one_column(path: Path, first_line: str) -> FileTable:
    if MARKUP.match(first_line):
        raise InputError(
            file=path, found=f"{first_line[:40]!r}, a page or document of HTML or XML", expected="one row per item"
        )
    columns = read_plain_columns(path, None)
    cells: Sequence[str] = columns[0] if columns is not None and len(columns[0]) > 1 else files.read_lines(path)
    lines = range(1, len(cells) + 1)
    is_quoted = first_line[:1] == '"' and all(len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in cells)
    if is_quoted and _is_list_header(first_line[1:-1], []):
        cells = [cell[1:-1].replace('""', '"') for cell in cells]
    if _is_list_header(cells[0], cells[1:]):
        return _build_headed_table(path, [cells], lines)
    return FileTable(path, {"": cells}, lines, header=False)


def _is_list_header(name: str, below: Sequence[str]) -> bool:
    """Return whether the first cell of a file of one column names the column."""
    name = name.lower()
    if name in {*ID_NAMES, "gold", "score", "label", "prediction"} - (INPUT_IDS - {"response"}):
        return True
    if name in LIST_HEADERS:
        return all(cell.lower() != name for cell in below)
    is_name = name[:1].isalpha() and name not in {*NO_VALUE, "nan", "inf", "infinity"}
    return is_name and not is_number(name) and len(below) > 1 and find_numbers(below) is not None


def _has_decimal_commas(path: Path, first_line: str) -> bool:
    """Return whether commas in a file of numbers are decimal commas, because only some lines have a comma."""
    if not COMMA_NUMBER.fullmatch(first_line):
        return False
    lines = files.read_lines(path)
    return all(map(COMMA_NUMBER.fullmatch, lines)) and not all("," in line for line in lines)


def build_table(path: Path, rows: list[files.Row]) -> FileTable:
    """Build a table from rows of cells, of which the first holds the column names."""
    columns = [list(map(str.strip, column)) for column in zip(*(cells for _, cells in rows), strict=True)]
    return _build_headed_table(path, columns, [line for line, _ in rows])


def _build_headed_table(
    path: Path, columns: Sequence[Sequence[str]], lines: Sequence[int], ignore: Collection[str] = ()
) -> FileTable:
    """Build a table from columns of stripped cells, of which the first is the name."""
    if len(lines) < 2:
        raise InputError("has a header and no rows, expected one row per item", file=path)
    names = [column[0] for column in columns]
    if names[0] == "" and len(names) > 1 and INDEX_NAME not in names:
        names[0] = INDEX_NAME
    if all(is_number(name) and name for name in names):
        raise build_header_error(path, lines[0])
    files.check_header(path, names, ignore)
    return FileTable(path, {name: column[1:] for name, column in zip(names, columns, strict=True)}, lines[1:])


def build_header_error(path: Path, line: int, end: str = "") -> InputError:
    """Return the error for a table without the header that it needs."""
    return InputError(
        file=path, line=line, found="data", expected="a header with the names of the columns", remedy=f"add one{end}"
    )


def _read_parquet(path: Path, ignore: Collection[str]) -> FileTable:
    parquet = ParquetColumns(path)
    files.check_header(path, parquet.schema.names, ignore)
    if not parquet.n_rows:
        raise InputError("has no rows, expected one row per item", file=path)
    kinds = {f.name: SMALL_FLOATS[str(f.type)] for f in parquet.schema if str(f.type) in SMALL_FLOATS}
    return FileTable(path, dict(parquet), range(1, parquet.n_rows + 1), kinds=kinds, nested=parquet.read_nested())
