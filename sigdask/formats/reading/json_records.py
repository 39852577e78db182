"""Records, rows and nested values of JSON files; records of Parquet and delimited files.

JSON records stand one per line, in an array, in an object that holds the array, or in an object by id. Fields of
objects and lists in cells are used as columns named `a.b`.
"""

from __future__ import annotations

import ast
import csv
import io
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
from sigdask.formats.reading.columns import ArrowColumns, iterate
from sigdask.formats.reading.converted import read_arrow_table
from sigdask.formats.reading.options import DEFAULTS, Options
from sigdask.formats.roles import name_role
from sigdask.interface import spell
from sigdask.io.compression import check_unpacked_size, get_option
from sigdask.text import describe_items, format_list

SHOWN_KINDS = 6
ABSENT = object()
DEEPEST = 1000
"""Maximum number of parts of a nested field's name."""


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
    if name.count(".") > DEEPEST:
        return None
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


MIN_ITEMS = 10
"""Minimum number of items for telling them from systems in an object of objects."""

IsRecord = Callable[[Mapping[str, Any]], bool]

DOCUMENT_NAMES = ("document_id", "documentid", "doc_id", "docid", "doc_key", "doc", "file_id", "file", "filename",
                  "file_name", "paper_id", "article_id", "pmid", "abstract_id")  # fmt: skip
PART_NAMES = ("section_id", "paragraph_id", "par_id", "sentence_id", "sent_id", "segment_id", "seg_id")
ITEM_ID_NAMES = ("id", "item", "item_id", "uid", "guid", "example_id", "uuid", "_id", "title_id", "topic", "query",
             "_input_hash")  # fmt: skip
"""Conventional names of ids, from the coarsest to the finest, compared without case."""


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
    if is_json_lines(path):
        cost, checked = 0, 0
        for number, line in files.enumerate_lines(path):
            if line.strip():
                cost += _estimate_bytes(line)
                if cost > checked + CHECKED_BYTES:
                    _check_size(path, checked := cost)
                yield JsonRecord(f"line {number}", None, parse_line(path, line, number), number)
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


def parse_line(path: Path, line: str, number: int) -> Any:
    """Return the value of a line of JSON lines."""
    import orjson

    try:
        return orjson.loads(line)
    except ValueError:  # also of NaN and of numbers that 64 bits cannot hold, which `json` reads
        return _parse_json(path, line.rstrip("\r\n"), number)


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


def read_record_cells(path: Path, document: Any = None) -> Iterator[tuple[int, list[Any]]]:
    """Yield the records of a JSON file as table rows; the keys of the first record are the header.

    A key that a later record lacks gives an empty cell. An object of id to record, or to a single value, also has the
    column "id". The document is read from the file unless it is given.

    Raises
    ------
    InputError
        A record is not an object, or has a key that the first record lacks.
    """
    columns: dict[str, None] = {}
    is_row: IsRecord = lambda record: bool(find_id_keys(record, DEFAULTS))  # noqa: E731
    if document is None and not is_json_lines(path):
        document = load_json(path)
    document = _orient(path, document)
    for record in read_records(path, is_row) if document is None else iter_document(path, document, is_row):
        if record.key is not None and not isinstance(record.value, dict) and "score" in name_role(record.key):
            raise InputError(
                f"{record.key!r} is the name of a metric, so the file may hold one value of each metric",
                file=path,
                remedy="give the scores of the items",
            )
        if record.key is None:
            cells = get_object(path, record)
        else:
            cells = {"id": record.key, **(record.value if isinstance(record.value, dict) else {"value": record.value})}
        if not columns:
            columns = dict.fromkeys(cells)
            yield record.number, list(columns)
        for key in (key for key in cells if key not in columns):
            raise InputError(
                f"key {key!r} is not in the first record, which has {', '.join(columns)}",
                file=path,
                place=record.place,
                remedy="give every record the same keys",
            )
        yield record.number, [cells.get(column) for column in columns]


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
    levels = (DOCUMENT_NAMES, *((name,) for name in PART_NAMES), ITEM_ID_NAMES)
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
    document = _build_frame_records(document)
    if isinstance(document, dict) and document:
        if is_record(document):
            yield JsonRecord("line 1", None, document, 1)
            return
        lists = [value for value in document.values() if isinstance(value, list) and value]
        lists = [values for values in lists if all(isinstance(value, dict) for value in values)]
        inner = [value for value in document.values() if isinstance(value, dict | list)]
        if len(inner) == 1 < len(document) and _is_by_id(inner[0]):
            document = inner[0]
        document = lists[0] if len(lists) == 1 else document
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


def _is_by_id(value: Any) -> bool:
    """Return whether a value is an object of id to record, with many records."""
    is_large = isinstance(value, dict) and len(value) >= MIN_ITEMS
    return is_large and all(isinstance(record, dict) for record in value.values())


SYSTEM_LISTS = frozenset({"precisions", "counts", "totals", "p_hist", "q_hist", "divergence_curve", "confusion_matrix"})
"""Names of lists in the outputs of `evaluate` that describe one system as a whole: bleu, sacrebleu, mauve."""


ANSWER_LISTS = frozenset({"predictions", "references"})
"""Names of lists of labels or texts that users of `evaluate` keep."""

GOLD_LISTS = frozenset({"gold", "gold_label", "label", "labels", "truth", "target", "y_true"})
"""Names of lists of gold labels. The other lists hold the systems' labels."""


def _build_texts_error(path: Path) -> InputError:
    """Return the error for lists of texts with several references each."""
    line = 'gsub("\\\\s+"; " ")'
    return InputError(
        f"'predictions' and 'references' are texts: write one a line, with jq -r '.predictions[] | {line}' {path} > "
        f"A.txt and jq -r '.references[][0] | {line}' {path} > ref.txt (likewise [1] and so on for further references, "
        f"each with {spell('references')}). Then sigdask compare A.txt B.txt "
        f"{spell('gold', 'ref.txt')} {spell('format', 'segments')} {spell('metrics', 'chrF')}",
        file=path,
    )


def get_list_columns(path: Path, document: Any) -> dict[str, list[str]] | None:
    """Return the columns of a JSON object of lists of numbers, answers or labels; None for any other document.

    Single values next to the lists (a hash, a mean, the version of a tool) are left out. So are lists that describe a
    whole system and not its items (the precisions of BLEU).

    Raises
    ------
    InputError
        The lists are not of one length, or none is of items.
    """
    if not isinstance(document, dict) or any(isinstance(value, dict) for value in document.values()):
        return None
    lists = {name: value for name, value in document.items() if isinstance(value, list)}
    columns = {name: cells for name, cells in lists.items() if name not in SYSTEM_LISTS}
    first_list = next(iter(lists.values()), [])
    are_answers = lists.keys() >= ANSWER_LISTS and bool(lists["predictions"]) and _are_texts(lists["predictions"])
    if are_answers and any(isinstance(cell, list) and _are_texts(cell) for cell in lists["references"]):
        raise _build_texts_error(path)
    if isinstance(next(iter(first_list), []), dict | list):
        return None
    has_labels = not GOLD_LISTS.isdisjoint(columns) and all(map(_are_texts, columns.values()))
    if not (are_answers or has_labels or any(map(_are_numbers, lists.values()))):
        return None
    if any(isinstance(cell, dict | list) for cells in columns.values() for cell in cells):
        return None
    if not columns:
        raise InputError(
            f"{describe_items([*lists], 'list')} with scores of whole systems, but no score of each item",
            file=path,
            remedy=f"compare the outputs themselves ({spell('gold', 'REFERENCE')} {spell('metrics', 'BLEU')}), "
            "or write the metric's score of each segment",
        )
    first, n = next((name, len(cells)) for name, cells in columns.items())
    for name, cells in columns.items():
        if len(cells) != n:
            raise InputError(
                f"{name!r} has {len(cells):,} values, but {first!r} has {n:,}; expected one per item", file=path
            )
    return {name: [files.format_cell(cell).strip() for cell in cells] for name, cells in columns.items()}


def _are_texts(cells: list[Any]) -> bool:
    return all(isinstance(cell, str) for cell in cells)


def _are_numbers(cells: list[Any]) -> bool:
    return bool(cells) and all(cell is None or isinstance(cell, int | float) for cell in cells)


def _build_frame_records(document: Any) -> Any:
    """Return the records of a data frame by columns, or with its rows in `data`; any other document unchanged.

    By columns, each value maps row numbers from 0 to cells. pandas writes both, Weights & Biases and MLflow `data`.
    """
    match document:
        case {"columns": [str(), *_] as names, "data": [[*_], *_] as rows} if {*map(len, rows)} == {len(names)}:
            labels = [{"index": label} for label in document.get("index", range(len(rows)))]
            is_named = labels != [{"index": k} for k in range(len(rows))]
            records = [dict(zip(names, row, strict=True)) for row in rows]
            return [label | record for label, record in zip(labels, records, strict=True)] if is_named else records
        case dict() if (keys := _get_common_keys(document)) and keys == [*map(str, range(len(keys)))] != ["0"]:
            are_items = len(document) >= len(keys) and all(re.search(r"\d", name) for name in document)
            return document if are_items else _swap_keys(document, keys)
    return document


def _get_common_keys(document: Mapping[str, Any]) -> list[str]:
    """Return the keys that all values of an object have; empty if they differ, or if a value is no object."""
    keys = [sorted(value) if isinstance(value, dict) else [] for value in document.values()]
    return list(next(iter(document.values()))) if keys and all(names == keys[0] != [] for names in keys) else []


def _orient(path: Path, document: Any) -> Any:
    """Return an object by item for an object of objects of numbers, whose keys may be the items or the systems.

    Raises
    ------
    InputError
        The user has not said which, and no inner key is the name of a role or metric.
    """
    keys = _get_common_keys(document) if isinstance(document, dict) else []
    if len(keys) < 2 or not all(_are_numbers([*scores.values()]) for scores in document.values()):
        return document
    stated = get_option("keys")
    if stated == "systems":
        return dict(zip(keys, _swap_keys(document, keys), strict=True))
    if stated is None and not any(map(name_role, keys)):
        outer, inner = (format_list([*names], 3) for names in (document, keys))
        choices = [spell("format", f"table:keys={choice}") for choice in ("items", "systems")]
        raise InputError(
            f"holds an object for each of {outer} with numbers by {inner}",
            file=path,
            remedy=f"are {outer} items? {choices[0]}. Are they systems, and {inner} the items? {choices[1]}",
        )
    return document


def _swap_keys(document: Mapping[str, Mapping[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return a record for each inner key, with a field for each outer key."""
    return [{name: column[key] for name, column in document.items()} for key in keys]


Record = Mapping[str, Any]

BATCH = 1024
"""Rows of Parquet in memory at a time."""

ROWS_HEAD = 1 << 22
"""The first record is inspected if it ends within so many characters."""


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


def read_first_record(path: Path, *, tables: bool = False) -> Record | None:
    """Return the first record of a file without reading the rest, or None if there is none.

    Of a delimited table, where these are asked for, it is the header, with empty cells.
    """
    head = files.read_head(path)
    if head.is_arrow:
        return next((record for _, record in iter_records(path)), None)
    if not head.is_json:
        return _read_header_record(head.text) if tables else None
    if (record := _parse_first(head.text)) is None and len(head.start) == files.HEAD:
        with files.open_text(path) as text:
            record = _parse_first(text.read(ROWS_HEAD))
    return record


def _parse_first(text: str) -> Record | None:
    """Return the object that a text of JSON, or its list, begins with; None if it is cut off."""
    text = text.lstrip()
    try:
        record, _ = json.JSONDecoder().raw_decode(text.removeprefix("[").lstrip() if text.startswith("[") else text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def find_field(record: Record, name: str, *containers: str) -> str | None:
    """Return a field of a record as text, looked up also inside `containers` and as a dotted path; None if absent."""
    for holder in (record, *(record.get(key) for key in containers)):
        if isinstance(holder, dict) and name in holder:
            return _format_value(holder[name])
    value = _follow_path(record, name)
    return None if value is ABSENT else _format_value(value)


def _format_value(value: Any) -> str:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else files.format_cell(value)


def _read_header_record(head: str) -> Record | None:
    header_line = "".join(islice(io.StringIO(head), 1)).strip()
    mark = files.find_delimiter(header_line)
    if mark is None or head.startswith("PK"):
        return None
    try:
        return dict.fromkeys((name.strip() for name in next(csv.reader([header_line], delimiter=mark))), "")
    except csv.Error:
        return None


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
    return result if math.isfinite(result) else None


SYMBOL = re.compile(r'(?s)"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\]:]')  # a string that is cut off ends with the text


def list_key_paths(head: str) -> set[str]:
    """Return the dotted keys of the first JSON value in the beginning of a file, which may be cut off.

    Lists add nothing to the keys of the objects in them. Of a list of objects, only the first object counts.

    Examples
    --------
    >>> sorted(list_key_paths('[{"id": 1, "stats": [{"name": {"split": "te'))
    ['id', 'stats', 'stats.name', 'stats.name.split']
    """
    paths: set[str] = set()
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
            paths.add(prefixes[-1] + key)
        else:
            text = symbol[1:-1]
    return paths
