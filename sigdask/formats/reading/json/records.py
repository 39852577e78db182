"""Read records from JSON: one per line, in an array, in an object that holds the array, or in an object by id."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.averages_only import STEP, build_training_curve_error, check_document, check_not_averages
from sigdask.formats.reading.files import HEAD, build_empty_error, open_bytes, open_text
from sigdask.formats.reading.options import DEFAULTS, Options
from sigdask.formats.reading.rows import Row, build_repeated_id_error, format_cell

SHOWN = 3
IsRecord = Callable[[Mapping[str, Any]], bool]

DOCUMENT_NAMES = ("document_id", "documentid", "doc_id", "docid", "doc_key", "doc", "file_id", "file", "filename",
                  "file_name", "paper_id", "article_id", "pmid", "abstract_id")  # fmt: skip
PART_NAMES = ("section_id", "paragraph_id", "par_id", "sentence_id", "sent_id", "segment_id", "seg_id")
ITEM_ID_NAMES = ("id", "item", "item_id", "uid", "guid", "example_id", "uuid", "_id", "title_id", "topic", "query",
             "_input_hash")  # fmt: skip
"""Conventional names of ids, from the coarsest to the finest; compared without case."""


@dataclass(frozen=True, slots=True)
class JsonRecord:
    """One record of a JSON file.

    Attributes
    ----------
    place : str
        Where it stands, for errors: "line 3", "record 3" or "key 'x'".
    key : str or None
        Its id, where the file maps ids to records.
    value : object
        A mapping or a list; a single value where the file maps ids to these.
    number : int
        The line, or the count of records where these are no lines.
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
        Whether an object is a record itself, rather than what holds them.

    Raises
    ------
    InputError
        For what is no JSON, and for a document that holds no list of records.
    """
    if is_json_lines(path):
        with open_text(path) as text:
            for number, line in enumerate(text, start=1):
                if line.strip():
                    yield JsonRecord(f"line {number}", None, _parse_json(path, line, number), number)
        return
    yield from _iter_document(path, load_json(path), is_record)


def load_json(path: Path) -> Any:
    """Return the JSON value of a file that holds only one."""
    with open_text(path) as text:
        content = text.read()
    if not content.strip():
        raise build_empty_error(path)
    return _parse_json(path, content, 1, partial(_build_unique_object, path))


def read_scalars(path: Path) -> list[Any] | None:
    """Return the values of a file that is one JSON array of single values, or None.

    Raises
    ------
    InputError
        For an object or list among them.
    """
    start = read_head(path).lstrip()
    if not start.startswith("[") or start[1:].lstrip()[:1] in {"", "[", "{", "]"} or is_json_lines(path):
        return None
    values = load_json(path)
    for number, value in enumerate(values, start=1):
        if isinstance(value, dict | list):
            raise InputError(f"{path}, value {number}: found {str(value)[:40]}, expected a single value as before it")
    return list(values)


def get_object(path: Path, record: JsonRecord) -> dict[str, Any]:
    """Return the value of a record, which must be a JSON object with keys.

    Raises
    ------
    InputError
        For what is no object, or has no keys.
    """
    if not isinstance(record.value, dict) or not record.value:
        raise InputError(f"{path}, {record.place}: found {str(record.value)[:40]}, expected a JSON object with keys")
    return record.value


def read_record_rows(path: Path) -> Iterator[Row]:
    """Yield the records of a JSON file as table rows of text, each with its number; the first row is the header."""
    return ((number, list(map(format_cell, cells))) for number, cells in read_record_cells(path))


def read_record_cells(path: Path) -> Iterator[tuple[int, list[Any]]]:
    """Yield the records of a JSON file as table rows; the keys of the first record are the header.

    A key that a later record lacks gives an empty cell. An object of id to record, or to a single
    value, has the column "id" besides.

    Raises
    ------
    InputError
        For what is no object, and for a key that the first record does not have.
    """
    columns: dict[str, None] = {}
    for record in read_records(path, _is_row):
        if record.key is None:
            cells = get_object(path, record)
        else:
            cells = {"id": record.key, **(record.value if isinstance(record.value, dict) else {"value": record.value})}
        if not columns:
            columns = dict.fromkeys(cells)
            yield record.number, list(columns)
        for key in cells.keys() - columns.keys():
            if step := next(filter(STEP.fullmatch, columns), None):
                raise build_training_curve_error(path, step)
            raise InputError(
                f"{path}, {record.place}: key {key!r} is not in the first record, which has "
                f"{', '.join(columns)}; give every record the same keys"
            )
        yield record.number, [cells.get(column) for column in columns]


def _is_row(record: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is itself a record, because it has an id, and not a container of records."""
    return bool(find_id_keys(record, DEFAULTS))


def is_json_lines(path: Path) -> bool:
    """Return whether the first line is a complete JSON value and more lines follow."""
    with open_text(path) as text:
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
    return read_head(path).lstrip().startswith(("{", "["))


def read_head(path: Path) -> str:
    """Return the beginning of a file, for format detection; empty if it cannot be read."""
    try:
        with open_bytes(path) as stream:
            return stream.read(HEAD).decode("utf-8-sig", errors="replace")
    except InputError:
        return ""


def find_id_keys(record: Mapping[str, Any], options: Options) -> tuple[str, ...]:
    """Return the keys that together form a record's id, the coarsest first; empty if none."""
    if options.id_column is not None:
        return tuple(options.id_column.split("+"))
    lowered = {name.strip().lower(): name for name in reversed(list(record))}
    levels = (DOCUMENT_NAMES, *((name,) for name in PART_NAMES), ITEM_ID_NAMES)
    names = (next((lowered[name] for name in level if name in lowered), None) for level in levels)
    return tuple(name for name in names if name is not None)


def get_id_parts(path: Path, location: str, record: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """Return the parts of a record's id; raise an error if one is missing."""
    parts = []
    for name in names:
        value = record.get(name)
        text = format_cell(value).strip()
        if not text or isinstance(value, dict | list):
            raise InputError(f"{path}, {location}: no id in {name!r}, which other records have; every record needs one")
        parts.append(text)
    return tuple(parts)


def _build_unique_object(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; raise an error for a repeated key, which `json` would drop silently."""
    result = dict(pairs)
    if len(result) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise build_repeated_id_error(f"{path}", repr(key), "in the same JSON object")
    return result


def _parse_json(
    path: Path, text: str, first_line: int, hook: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    try:
        return json.loads(text, object_pairs_hook=hook)
    except ValueError as error:
        line = first_line + getattr(error, "lineno", 1) - 1
        raise InputError(f"{path}, line {line}: invalid JSON ({error})") from None
    except RecursionError:
        raise InputError(f"{path}, line {first_line}: JSON nested too deeply") from None


def _iter_document(path: Path, document: Any, is_record: IsRecord) -> Iterator[JsonRecord]:
    check_document(path, document)
    if isinstance(document, list):
        yield from _iter_list(path, document)
        return
    if not isinstance(document, dict) or not document:
        raise InputError(f"{path}: found {str(document)[:40]}, expected records: a JSON array, or one object a line")
    if is_record(document):
        yield JsonRecord("line 1", None, document, 1)
        return
    lists = [value for value in document.values() if isinstance(value, list) and _has_only_objects(value)]
    if len(lists) == 1:
        yield from _iter_list(path, lists[0])
        return
    check_not_averages(path, document)
    if _is_by_columns(document):
        raise InputError(
            f"{path}: holds columns ({', '.join(map(repr, list(document)[:SHOWN]))}), each of row numbers to cells, as "
            'pandas writes a data frame unless told otherwise; write it with to_json(orient="records")'
        )
    for number, (key, value) in enumerate(document.items(), start=1):
        yield JsonRecord(f"key {key!r}", key, value, number)


def _is_by_columns(document: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is a table by columns, in which each value maps row numbers, from 0, to cells."""
    rows = [list(value) for value in document.values() if isinstance(value, dict)]
    has_same_rows = len(rows) == len(document) and all(row == rows[0] for row in rows)
    return has_same_rows and rows[0] == [str(k) for k in range(len(rows[0]))] and len(rows[0]) > 1


def _iter_list(path: Path, values: list[Any]) -> Iterator[JsonRecord]:
    if not values:
        raise build_empty_error(path)
    for number, value in enumerate(values, start=1):
        yield JsonRecord(f"record {number}", None, value, number)


def _has_only_objects(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(value, dict) for value in values)


def check_folder(path: Path) -> None:
    """Raise an error for a folder of averages, judged by its first JSON file."""
    for file in sorted(path.rglob("*.json"))[:1]:
        if is_json(file):
            check_document(file, load_json(file))
