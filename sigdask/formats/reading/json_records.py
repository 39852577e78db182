"""Records and nested values of JSON files; records of Parquet and delimited files.

JSON records stand one per line, in an array (perhaps under the key "data"), or in an object by id. A table may also be
an object of equally long lists, one for each column. Fields of objects and lists in cells are columns named `a.b`.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading import files
from sigdask.formats.reading.cache import cache_result
from sigdask.formats.reading.columns import ArrowColumns, iterate
from sigdask.formats.reading.converted import read_arrow_table
from sigdask.formats.reading.options import Options
from sigdask.formats.roles import ROLES, name_role
from sigdask.interface import spell
from sigdask.io.compression import check_unpacked_size
from sigdask.text import format_list

SHOWN_KINDS = 6
ABSENT = object()


def parse_nested_columns(columns: Mapping[str, Sequence[str]]) -> dict[str, list[Any]]:
    """Return the parsed cells of text columns whose filled cells are all objects or lists in JSON or Python syntax."""
    parsed = {}
    for name, array in ArrowColumns.from_mapping(columns).arrays.items():
        first_cell = next((cell for cell in iterate(array) if cell), "")
        if first_cell[:1] in {"{", "["} and _parse_cell(first_cell) is not None:
            cells = [*iterate(array)]
            values = [_parse_cell(cell) for cell in cells]
            if all(value is not None or not cell for cell, value in zip(cells, values, strict=True)):
                parsed[name] = values
    return parsed


def _parse_cell(cell: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, dict | list) else None
    return None


def get_field(nested: Mapping[str, Sequence[Any]], name: str) -> list[str] | None:
    """Return a field inside the objects of a column as text; None if absent or itself an object.

    Examples
    --------
    >>> get_field({"prediction": [{"label": "A", "p": [0.1, 0.9]}, None]}, "prediction.label")
    ['A', '']
    >>> get_field({"prediction": [{"label": "A", "p": [0.1, 0.9]}]}, "prediction.p.1")
    ['0.9']
    """
    for column in (name[:k] for k, mark in enumerate(name) if mark == "."):
        if column in nested:
            values = [_follow_path(cell, name[len(column) + 1 :]) for cell in nested[column]]
            if any(cell is not ABSENT for cell in values) and not any(isinstance(cell, dict | list) for cell in values):
                return ["" if cell is ABSENT else files.format_cell(cell).strip() for cell in values]
    return None


def _follow_path(value: Any, path: str) -> Any:
    """Follow a dotted path of keys and list indices (from 0) into a value."""
    if isinstance(value, dict) and path in value:
        return value[path]
    for key in path.split("."):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return ABSENT
    return value


def build_nested_error(path: Path, name: str, lines: Sequence[int], cells: Sequence[Any]) -> InputError:
    """Return the error for a column of objects or lists that was used as a whole."""
    row = next(k for k, cell in enumerate(cells) if isinstance(cell, dict | list))
    kind = "an object" if isinstance(cells[row], dict) else "a list"
    inner = list_fields(name, cells[row])
    remedy = f"name one of its fields instead: {format_list(inner, SHOWN_KINDS)}" if inner else "it has no fields"
    leave = f"if it is not a system's, leave it out with {spell('ignore', name)}"
    return InputError(f"{name!r} is {kind}, which is not compared whole; {remedy}; {leave}", file=path, line=lines[row])


def list_fields(name: str, value: Any) -> list[str]:
    """Return the dotted names of all single values inside a value."""
    if not isinstance(value, dict | list):
        return [name]
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    return [inner for key, item in entries for inner in list_fields(f"{name}.{key}", item)]


IsRecord = Callable[[Mapping[str, Any]], bool]

RECORDS = "data"
"""Key of an object that holds an array of records."""

DOCUMENT_NAMES = ("document_id", "documentid", "doc_id", "docid", "doc_key", "doc", "file_id", "file", "filename",
                  "file_name")  # fmt: skip
PART_NAMES = ("section_id", "paragraph_id", "par_id", "sentence_id", "sent_id", "segment_id", "seg_id")
"""Names of the coarser levels of ids, compared without case. The names of the finest level are those of the items."""

PRODIGY_ID = "_input_hash"
"""Key of the id in records of Prodigy, if they have no other."""


@dataclass(frozen=True, slots=True)
class JsonRecord:
    """One record of a JSON file.

    Attributes
    ----------
    place : str
        Position for error messages: "line 3", "record 3" or "key 'x'".
    key : str or None
        Id of the record, if the file maps ids to records.
    value : object
        A mapping or a list, or a single value if the file maps ids to values.
    number : int
        Number of the line, or of the record if records are not lines.
    """

    place: str
    key: str | None
    value: Any
    number: int


def read_records(path: Path, is_record: IsRecord) -> Iterator[JsonRecord]:
    """Yield the records of a JSON file in any of the usual layouts.

    Parameters
    ----------
    path : Path
        JSON lines, or one JSON document.
    is_record : callable
        Whether an object is a record, rather than a container of records.

    Raises
    ------
    InputError
        The file is not JSON, or has no list of records.
    """
    import orjson

    if is_json_lines(path):
        cost, checked = 0, 0
        for number, line in files.enumerate_lines(path):
            if line.strip():
                cost += _estimate_bytes(line)
                if cost > checked + CHECKED_BYTES:
                    _check_size(path, checked := cost)
                try:
                    value = orjson.loads(line)
                except ValueError:  # also of NaN and of numbers that 64 bits cannot hold, which `json` reads
                    value = _parse_json(path, line.rstrip("\r\n"), number)
                yield JsonRecord(f"line {number}", None, value, number)
        return
    yield from iter_document(path, load_json(path), is_record)


def _build_unique_object(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; raise an error for a repeated key, which `json` would drop silently."""
    result = dict(pairs)
    if len(result) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise files.build_repeated_id_error(f"{path}", repr(key), "in the same JSON object")
    return result


CHECKED_BYTES = 1 << 26
"""Memory of records after which the limit is checked again."""


def _estimate_bytes(text: str) -> int:
    """Return the memory that the values of a JSON text need, about; records also take time."""
    return 2 * len(text) + 500 * text.count("{") + 80 * text.count("[") + 60 * text.count(",")


def _check_size(path: Path, n_bytes: int) -> None:
    """Raise an error for records that need ten times the memory of what may be unpacked."""
    check_unpacked_size(path, n_bytes // 10, path.stat().st_size)


def load_json(path: Path, build: Callable[[Path, list[tuple[str, Any]]], Any] = _build_unique_object) -> Any:
    """Return the JSON value of a file that holds only one."""
    with files.open_text(path) as text:
        content = text.read()
    files.check_filled(path, content.strip())
    _check_size(path, _estimate_bytes(content))
    return _parse_json(path, content, 1, partial(build, path))


def get_object(path: Path, record: JsonRecord) -> dict[str, Any]:
    """Return the value of a record, which must be a JSON object with keys.

    Raises
    ------
    InputError
        The value is not an object, or has no keys.
    """
    if not isinstance(record.value, dict) or not record.value:
        raise InputError(
            file=path, place=record.place, found=f"{str(record.value)[:40]}", expected="a JSON object with keys"
        )
    return record.value


def read_columns(path: Path, notes: list[str]) -> tuple[dict[str, list[Any]], list[int]]:
    """Return the columns of the records of a JSON file, and the line or number of each record.

    The keys of the first record are the columns. A key that a later record lacks gives an empty cell. An object of id
    to record, or to a single value, also has the column "id". What is left out is added to `notes`.

    Raises
    ------
    InputError
        A record is not an object, or has a key that the first record lacks.
    """
    columns: dict[str, list[Any]] = {}
    numbers = []
    for record in _iter_rows(path, notes):
        row = get_object(path, record)
        columns = columns or {key: [] for key in row}
        for key in (key for key in row if key not in columns):
            raise InputError(
                f"key {key!r} is not in the first record, which has {', '.join(columns)}",
                file=path,
                place=record.place,
                remedy="give every record the same keys",
            )
        for key, cells in columns.items():
            cells.append(row.get(key))
        numbers.append(record.number)
    return columns, numbers


def _iter_rows(path: Path, notes: list[str]) -> Iterator[JsonRecord]:
    if is_json_lines(path):
        return read_records(path, lambda _: True)
    document = load_json(path)
    if isinstance(document, dict) and document and not isinstance(document.get(RECORDS), list):
        document = _list_rows(path, document, notes)
    return iter_document(path, document, lambda _: False)


def _list_rows(path: Path, document: Mapping[str, Any], notes: list[str]) -> list[dict[str, Any]]:
    """Return the rows of an object of equally long lists, or of an object by id.

    Raises
    ------
    InputError
        The keys may name columns, or the keys inside may be items as well as systems.
    """
    lists = {name: cells for name, cells in document.items() if isinstance(cells, list)}
    if len(lists) == len(document) or any(map(name_role, lists)):
        sizes = {name: len(cells) for name, cells in lists.items()}
        if len({*sizes.values()}) > 1:
            numbers = ", ".join(f"{n:,} in {name!r}" for name, n in sizes.items())
            raise InputError(file=path, found=f"lists of different lengths ({numbers})", expected="one value per item")
        if single := [name for name in document if name not in lists]:
            notes.append(f"left out, as they are not one value per item: {format_list(single)}")
        return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    inner = {key for record in document.values() if isinstance(record, dict) for key in record}
    values = [value for row in document.values() for value in (row.values() if isinstance(row, dict) else [""])]
    are_numbers = all(isinstance(value, int | float | None) for value in values)
    if any(map(name_role, document)) or (are_numbers and not any(map(name_role, inner))):
        raise InputError(
            file=path,
            found=f"an object with {format_list([*document], SHOWN_KINDS)}",
            expected="an object for each item",
            remedy='write one on each line, such as {"id": "item 1", "score": 0.5}',
        )
    return [{"id": key, **(row if isinstance(row, dict) else {"value": row})} for key, row in document.items()]


def is_json_lines(path: Path) -> bool:
    """Return whether the first line is a complete JSON value and more lines follow."""
    with files.open_text(path) as text:
        filled = list(islice((line for line in text if line.strip()), 2))
    if len(filled) < 2 or not filled[0].lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(filled[0])
    except (ValueError, RecursionError):
        return False
    return True


def is_json(path: Path) -> bool:
    """Return whether a file begins like JSON."""
    return files.read_head(path).is_json


def read_head(path: Path) -> str:
    """Return the beginning of a file, for format detection; empty if it cannot be read."""
    return files.read_head(path).text


def find_id_keys(record: Mapping[str, Any], options: Options) -> tuple[str, ...]:
    """Return the keys that together form a record's id, the coarsest first; empty if none."""
    if options.id_column is not None:
        return tuple(options.id_column.split("+"))
    lowered = {name.strip().lower(): name for name in reversed(list(record))}
    coarse = (DOCUMENT_NAMES, *((name,) for name in PART_NAMES))
    finest = [name for name in (*ROLES["item"], PRODIGY_ID) if not any(name in level for level in coarse)]
    levels = (*coarse, finest)
    names = (next((lowered[name] for name in level if name in lowered), None) for level in levels)
    return tuple(name for name in names if name is not None)


def get_id_parts(path: Path, location: str, record: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """Return the parts of a record's id; raise an error if one is missing."""
    parts = []
    for name in names:
        value = record.get(name)
        text = files.format_cell(value).strip()
        if not text or isinstance(value, dict | list):
            raise InputError(
                f"no id in {name!r}, which other records have; every record needs one", file=path, place=location
            )
        parts.append(text)
    return tuple(parts)


def _parse_json(path: Path, text: str, start: int, hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    try:
        return json.loads(text, object_pairs_hook=hook)
    except ValueError as error:
        line = start + getattr(error, "lineno", 1) - 1
        reason = f"{str(getattr(error, 'msg', error)).removesuffix(' at')} at column {getattr(error, 'colno', 1)}"
        raise InputError(f"invalid JSON ({reason})", file=path, line=line, remedy="correct or complete it") from None
    except RecursionError:
        raise InputError("JSON nested too deeply", file=path, line=start) from None


def iter_document(path: Path, document: Any, is_record: IsRecord) -> Iterator[JsonRecord]:
    """Yield the records of a JSON document; it is a record itself, a list, or an object by id."""
    if isinstance(document, dict) and document:
        if is_record(document):
            yield JsonRecord("line 1", None, document, 1)
            return
        document = document[RECORDS] if isinstance(document.get(RECORDS), list) else document
    if isinstance(document, list):
        files.check_filled(path, document)
        for number, value in enumerate(document, start=1):
            yield JsonRecord(f"record {number}", None, value, number)
        return
    if not isinstance(document, dict) or not document:
        raise InputError(
            file=path, found=f"{str(document)[:40]}", expected="records: a JSON array, or one object per line"
        )
    for number, (key, value) in enumerate(document.items(), start=1):
        yield JsonRecord(f"key {key!r}", key, value, number)


Record = Mapping[str, Any]

BATCH = 1024
"""Rows of Parquet in memory at a time."""


def iter_records(path: Path) -> Iterator[tuple[str, Record]]:
    """Yield each record of a file with its location: JSON lines, JSON array, Parquet or a table.

    Raises
    ------
    InputError
        Naming file and line or record.
    """
    if is_json(path):
        for record in read_records(path, lambda _: True):
            yield f"{path}, {record.place}", get_object(path, record)
        return
    number = 0
    if files.is_parquet(path):
        rows_of_batches = (batch.to_pylist() for batch in read_arrow_table(path).to_batches(BATCH))
        for number, row in enumerate(chain.from_iterable(rows_of_batches), start=1):
            yield f"{path}, row {number}", row
        if not number:
            raise InputError("has no rows, expected one row per item", file=path)
        return
    rows = files.read_delimited_rows(path)
    _, header = next(rows)
    names = [name.strip() for name in header]
    files.check_header(path, names)
    for number, cells in rows:
        yield f"{path}, line {number}", dict(zip(names, cells, strict=True))
    if not number:
        raise InputError("has a header and no rows, expected one row per item", file=path)


@cache_result
def read_keys(path: Path) -> tuple[str, ...]:
    """Return the columns of a table, or the dotted keys of the first record of other files, for format detection."""
    head = files.read_head(path)
    if head.is_arrow:
        record = next((record for _, record in iter_records(path)), {})
        return list_key_paths(json.dumps(record, default=str))
    if head.is_json:
        return list_key_paths(head.text)
    return tuple(name.strip() for line in head.filled_lines[:1] for name in files.parse_header(line))


def find_field(record: Record, name: str, *containers: str) -> str | None:
    """Return a field of a record as text, looked up also inside `containers` and as a dotted path; None if absent."""
    for holder in (record, *(record.get(key) for key in containers)):
        if isinstance(holder, dict) and name in holder:
            return _format_value(holder[name])
    value = _follow_path(record, name)
    return None if value is ABSENT else _format_value(value)


def _format_value(value: Any) -> str:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else files.format_cell(value)


def parse_number(value: Any) -> float | None:
    """Convert a number, a truth value, or text of either to float; None for anything else.

    Examples
    --------
    >>> parse_number(True), parse_number("False"), parse_number("0.25"), parse_number("C"), parse_number([1])
    (1.0, 0.0, 0.25, None, None)
    """
    if isinstance(value, bool | int | float):
        try:
            return float(value)
        except OverflowError:  # a whole number of hundreds of digits
            return None
    if not isinstance(value, str):
        return None
    if value.lower() in {"true", "false"}:
        return float(value.lower() == "true")
    try:
        result = float(value)
    except ValueError:
        return None
    return result if math.isfinite(result) and "_" not in value else None  # Python reads 1_0 as 10


SYMBOL = re.compile(r'(?s)"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\]:]')  # a string that is cut off ends with the text


def list_key_paths(head: str) -> tuple[str, ...]:
    """Return the dotted keys of the first JSON value in the beginning of a file, which may be cut off.

    Lists add nothing to the keys of the objects in them. Of a list of objects, only the first object counts.

    Examples
    --------
    >>> sorted(list_key_paths('[{"id": 1, "stats": [{"name": {"split": "te'))
    ['id', 'stats', 'stats.name', 'stats.name.split']
    """
    paths: dict[str, None] = {}
    prefixes: list[str] = []
    is_list = head.lstrip().startswith("[")
    text = key = ""
    for match in SYMBOL.finditer(head):
        symbol = match[0]
        if symbol in "{[":
            prefixes.append(f"{prefixes[-1] if prefixes else ''}{key}{'.' * bool(key)}")
            key = ""
        elif symbol in "}]":
            prefixes.pop()
            key = ""
            if len(prefixes) <= is_list:
                break
        elif symbol == ":":
            key = text
            paths[prefixes[-1] + key] = None
        else:
            text = symbol[1:-1]
    return tuple(paths)
