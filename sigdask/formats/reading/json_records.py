"""Records and nested values of JSON files; records of Parquet and delimited files.

JSON records stand one per line, in an array (perhaps under the key "data"), or in an object by id. A table may also be
an object of equally long lists, one for each column. Fields of objects and lists in cells are columns named `a.b`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from sigdask.errors import InputError
from sigdask.formats.reading import files
from sigdask.formats.reading.options import Options
from sigdask.formats.roles import ROLES, name_role
from sigdask.interface import spell
from sigdask.io import check_unpacked_size
from sigdask.text import format_list

SHOWN_KINDS = 6
ABSENT = object()


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
"""Names of the coarser levels of ids, compared without case."""

ITEM_NAMES = tuple(name for name in (*ROLES["item"], "_input_hash") if name not in {*DOCUMENT_NAMES, *PART_NAMES})
"""Names of the finest level of ids. The last is that of Prodigy, in records that have no other."""

ID_LEVELS = (DOCUMENT_NAMES, *((name,) for name in PART_NAMES), ITEM_NAMES)


class JsonRecord(NamedTuple):
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
        JSON lines, or one JSON document: a list of records, an object by id, or a record itself.
    is_record : callable
        Whether an object is a record, rather than a container of records.

    Raises
    ------
    InputError
        The file is not JSON, or has no list of records.
    """
    if is_json_lines(path):
        n_bytes, stored = 0, path.stat().st_size
        for number, line in files.enumerate_lines(path):
            if line.strip():
                n_bytes += _estimate_bytes(line)
                check_unpacked_size(path, n_bytes // SHARE, stored)
                yield JsonRecord(f"line {number}", None, parse_json(path, line.rstrip("\r\n"), number), number)
        return
    document = load_json(path)
    if isinstance(document, dict) and document and is_record(document):
        yield JsonRecord("line 1", None, document, 1)
        return
    if isinstance(document, dict) and isinstance(document.get(RECORDS), list):
        document = document[RECORDS]
    if document == {} or not isinstance(document, dict | list):
        raise InputError(
            file=path, found=f"{str(document)[:40]}", expected="records: a JSON array, or one object per line"
        )
    files.check_filled(path, document)
    if isinstance(document, list):
        yield from (JsonRecord(f"record {k}", None, value, k) for k, value in enumerate(document, start=1))
    else:
        yield from (JsonRecord(f"key {key!r}", key, document[key], k) for k, key in enumerate(document, start=1))


def load_json(path: Path) -> Any:
    """Return the JSON value of a file that holds only one."""
    with files.open_text(path) as text:
        content = text.read()
    files.check_filled(path, content.strip())
    check_unpacked_size(path, _estimate_bytes(content) // SHARE, path.stat().st_size)
    return parse_json(path, content)


SHARE = 10
"""Memory of values compared with the limit on texts."""


def _estimate_bytes(text: str) -> int:
    """Return the memory that the values of a JSON text need, about; records also take time."""
    return 2 * len(text) + 500 * text.count("{") + 80 * text.count("[") + 60 * text.count(",")


MAX_WHOLE = 2**63
"""Larger whole numbers are rounded by orjson."""


def parse_json(path: object, text: str, line: int | None = None) -> Any:
    """Return the value of a JSON text.

    Parameters
    ----------
    path : object
        The file, for errors.
    text : str
        The text.
    line : int, optional
        The line that it is, if it is one of JSON lines.

    Raises
    ------
    InputError
        It is not JSON, or one of its objects has a key twice, or a text holds half of a surrogate pair.
    """
    import orjson

    with suppress(ValueError, RecursionError):  # of NaN and of very large numbers, which `json` reads
        value = orjson.loads(text)
        if text.count('":') + text.count('" :') - text.count('\\":') == _count_keys(value):
            return value
    try:
        value = json.loads(text, object_pairs_hook=partial(_build_object, path, line))
        json.dumps(value, ensure_ascii=False).encode()  # orjson refuses what this does
    except UnicodeEncodeError as error:
        problem = f"half of a character, {error.object[error.start]!r}, which UTF-8 cannot hold"
        raise InputError(problem, file=path, line=line, remedy="write the whole character") from None
    except ValueError as error:
        reason = f"{str(getattr(error, 'msg', error)).removesuffix(' at')} at column {getattr(error, 'colno', 1)}"
        line = (line or 1) + getattr(error, "lineno", 1) - 1
        raise InputError(f"invalid JSON ({reason})", file=path, line=line, remedy="correct or complete it") from None
    except RecursionError:
        raise InputError("JSON nested too deeply", file=path, line=line or 1) from None
    return value


def _count_keys(value: Any) -> float:
    """Return the number of keys in a value; NaN if a whole number may have been rounded."""
    if isinstance(value, dict):
        return len(value) + sum(map(_count_keys, value.values()))
    if isinstance(value, list):
        return sum(map(_count_keys, value))
    return math.nan if isinstance(value, float) and abs(value) >= MAX_WHOLE else 0


def _build_object(path: object, line: int | None, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; raise an error for a repeated key, of which parsers silently take the last value."""
    result = dict(pairs)
    if len(result) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        problem = f"key {key!r} occurs twice in one JSON object"
        raise InputError(problem, file=path, line=line, remedy="remove one")
    return result


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


Columns = Mapping[str, list[Any]]


def read_columns(path: Path, ignore: Collection[str]) -> tuple[Columns, Sequence[int]]:
    """Return the columns of the records of a JSON file, and the line or number of each record.

    The keys of the first record are the columns. A key that a later record lacks gives an empty cell. An object of id
    to record, or to a single value, also has the column "id". An object of equally long lists holds the columns. Those
    that are ignored may have any content.

    Raises
    ------
    InputError
        A record is not an object, or has a key that the first record lacks and that is not ignored.
    """
    records = read_records(path, lambda _: False)
    first = next(records)
    if first.key is None:
        return _join_records(path, chain([first], records), ignore)
    document = {str(record.key): record.value for record in (first, *records)}
    if any(isinstance(value, list) for key, value in document.items() if key not in ignore):
        return _get_lists(path, document, ignore)
    _check_rows(path, document)
    rows = [{"id": key, **(row if isinstance(row, dict) else {"value": row})} for key, row in document.items()]
    numbered = (JsonRecord(f"key {row['id']!r}", None, row, k) for k, row in enumerate(rows, start=1))
    return _join_records(path, numbered, ignore)


def _join_records(path: Path, records: Iterator[JsonRecord], ignore: Collection[str]) -> tuple[Columns, Sequence[int]]:
    columns: dict[str, list[Any]] = {}
    numbers: list[int] = []
    for record in records:
        row = get_object(path, record)
        columns = columns or {key: [] for key in row}
        columns |= {key: [None] * len(numbers) for key in ignore if key in row and key not in columns}
        for key in (key for key in row if key not in columns):
            problem = f"key {key!r} is not in the first record, which has {', '.join(columns)}"
            remedy = f"give every record the same keys, or leave it out with {spell('ignore', key)}"
            raise InputError(problem, file=path, place=record.place, remedy=remedy)
        for key, cells in columns.items():
            cells.append(row.get(key))
        numbers.append(record.number)
    return columns, numbers


def _get_lists(path: Path, document: Mapping[str, Any], ignore: Collection[str]) -> tuple[Columns, Sequence[int]]:
    """Return the columns of an object of equally long lists; those that are ignored are empty."""
    lists = {name: cells for name, cells in document.items() if name not in ignore}
    sizes = {name: f"{len(cells):,}" if isinstance(cells, list) else "no list" for name, cells in lists.items()}
    if len({*sizes.values()}) > 1:
        numbers = format_list([f"{n} in {name!r}" for name, n in sizes.items()], SHOWN_KINDS)
        found = f"lists of different lengths ({numbers})"
        remedy = f"remove what is none, or leave it out with {spell('ignore', 'KEY')}"
        raise InputError(file=path, found=found, expected="one value per item", remedy=remedy)
    first = next(iter(lists.values()))
    files.check_filled(path, first)
    return {name: lists.get(name, [None] * len(first)) for name in document}, range(1, 1 + len(first))


def _check_rows(path: Path, document: Mapping[str, Any]) -> None:
    """Raise an error for an object whose keys may name columns, or whose inner keys may be items or systems."""
    inner = {key for record in document.values() if isinstance(record, dict) for key in record}
    values = [value for row in document.values() for value in (row.values() if isinstance(row, dict) else [""])]
    are_numbers = all(isinstance(value, int | float | None) for value in values)
    if any(map(name_role, document)) or (are_numbers and not any(map(name_role, inner))):
        found = f"an object with {format_list([*document], SHOWN_KINDS)}"
        remedy = 'write one on each line, such as {"id": "item 1", "score": 0.5}'
        raise InputError(file=path, found=found, expected="an object for each item", remedy=remedy)


def is_json_lines(path: Path) -> bool:
    """Return whether the first line is a complete JSON value and more lines follow."""
    with files.open_text(path) as text:
        first, *others = *islice((line for line in text if line.strip()), 2), ""
    try:
        return any(others) and first.lstrip()[:1] in {"{", "["} and json.loads(first) is not None
    except (ValueError, RecursionError):
        return False


def find_id_keys(record: Mapping[str, Any], options: Options) -> tuple[str, ...]:
    """Return the keys that together form a record's id, the coarsest first; empty if none."""
    if options.id_column is not None:
        return tuple(options.id_column.split("+"))
    lowered = {name.strip().lower(): name for name in reversed(list(record))}
    found = (next((lowered[name] for name in names if name in lowered), None) for names in ID_LEVELS)
    return tuple(filter(None, found))


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
    head = files.read_head(path)
    if head.is_json:
        for record in read_records(path, lambda _: True):
            yield f"{path}, {record.place}", get_object(path, record)
        return
    unit, number = "row", 0
    if head.is_arrow:
        batches = files.read_arrow_table(path).to_batches(BATCH)
        rows: Iterator[tuple[int, Record]] = enumerate(chain.from_iterable(b.to_pylist() for b in batches), start=1)
    else:
        unit, lines = "line", files.read_delimited_rows(path)
        names = [name.strip() for name in next(lines)[1]]
        files.check_header(path, names)
        rows = ((line, dict(zip(names, cells, strict=True))) for line, cells in lines)
    for number, row in rows:
        yield f"{path}, {unit} {number}", row
    if not number:
        raise InputError("has a header and no rows, expected one row per item", file=path)


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
    if isinstance(value, float):
        return value  # also NaN and infinity
    try:
        text = str(value).lower() if isinstance(value, bool | int | str) else ""
        number = {"true": 1.0, "false": 0.0}[text] if text in {"true", "false"} else float(text)
    except ValueError:  # also of a whole number of thousands of digits
        return None
    return number if math.isfinite(number) and "_" not in text else None  # Python reads 1_0 as 10
