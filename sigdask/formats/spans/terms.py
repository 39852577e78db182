"""Term lists: the terms that each system extracted per sentence or document, and gold lists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading import files, listings
from sigdask.formats.reading.alignment import check_not_empty
from sigdask.formats.reading.json_records import JsonRecord, find_id_keys, get_id_parts, iter_records
from sigdask.formats.reading.listings import FileListing
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.signatures import LIST_NAMES, TERM_NAMES, is_acter
from sigdask.formats.spans.spans import build_list_counts, count_labelled
from sigdask.interface import spell

COLUMN_NAMES = (*TERM_NAMES, *LIST_NAMES)


def read_terms(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read one list of terms per sentence or document, or one flat list per system."""
    assert gold is not None
    paths = [gold, *(source.path for source in sources)]
    flat = [path for path in paths if not options.columns and _is_flat(path)]
    if flat and len(flat) < len(paths):
        other = next(path for path in paths if path not in flat)
        problem = f"a list of terms without items, but {other} has lists of items"
        raise InputError(problem, file=flat[0], remedy="give all files one layout")
    if flat:
        notes = ["each system has one list without sentences, so single terms are swapped"]
        return listings.build_set_counts(_read_flat(gold), listings.read_by_system(sources, _read_flat), notes)
    gold_listing = _read_listing(options, "gold", gold)
    systems = listings.read_by_system(sources, partial(_read_listing, options, "prediction"))
    aligned = listings.align_listings(gold_listing, systems, options, frozenset())
    sizes = {name: sum(map(len, column)) for name, column in aligned.systems.items()}
    check_not_empty(gold, sum(map(len, aligned.gold)), sizes, "terms")
    columns = list(aligned.systems.values())
    fields, _, _ = count_labelled(aligned.gold, columns, lambda terms, others: {"": len(terms & others)})
    return build_list_counts(aligned, fields, suggested=("f1", "type-f1"), warnings=aligned.warnings)


def _is_flat(path: Path) -> bool:
    """Return whether a file is one list of terms without items: single cells, or ACTER's lines."""
    if path.is_dir() or files.read_head(path).is_json:
        return False
    start = "\n".join(files.read_head(path).lines)
    header = {name.strip().lower() for name in files.parse_header(start)}
    is_table = len(header) > 1 and not header.isdisjoint(COLUMN_NAMES)
    return bool(start.strip()) and not is_table and ("\t" not in start or is_acter(path))


def _read_flat(path: Path) -> frozenset[str]:
    """Return the terms of a file without items; each is an item."""
    cells = [line.split("\t", 1)[0].strip() for line in files.read_lines(path)]
    terms = _clean_terms(cells[cells[:1] != [] and cells[0].lower() in COLUMN_NAMES :])
    files.check_filled(path, terms)
    return terms


def _read_listing(options: Options, role: str, path: Path) -> FileListing:
    listing = FileListing(path, {}, {})
    if path.is_dir():
        for item, file in listings.iter_folder(path):
            listing.add(item, _clean_terms(line for _, line in files.enumerate_lines(file)), f"file {file.name}")
        return listing
    names = (
        (options.columns[role],)
        if role in options.columns
        else LIST_NAMES
        if files.read_head(path).is_json
        else COLUMN_NAMES
    )
    if not files.read_head(path).is_json:
        return _read_rows(listing, names, role, options)
    records = listings.list_records(path, lambda record: any(key in names or key.lower() in names for key in record))
    keys = dict.fromkeys(key for record in records if isinstance(record.value, dict) for key in record.value)
    key = _get_only_name(path, keys, names, role)

    def get_value(record: dict[str, Any], place: str) -> Any:
        if key not in record:
            raise listings.build_key_error(path, JsonRecord(place, None, record, 0), "terms")
        return record[key]

    listing = listings.read_listing(path, records, key, "terms", options, get_value)
    return listing.convert_values(_parse_terms)


def _get_only_name(path: Path, keys: Iterable[str], names: Sequence[str], role: str) -> str | None:
    """Return the key or column of terms. Raise if several may be it."""
    found = [key for key in keys if key in names or key.lower() in names]
    if len(found) > 1:
        choices = " or ".join(spell("columns", f"{role}={key}") for key in found)
        raise InputError(f"{' and '.join(found)} may hold the terms", file=path, remedy=f"choose: {choices}")
    return found[0] if found else None


def _clean_terms(terms: Iterable[Any]) -> frozenset[str]:
    return frozenset(filter(None, (str(term).strip() for term in terms)))


def _parse_terms(value: Any, where: str) -> frozenset[str]:
    """Return the terms of a list or of a cell: in JSON or Python syntax, or between `;` or `|`."""
    terms = value or []
    if isinstance(value, str):
        try:
            terms = ast.literal_eval(value.strip()) if value.strip().startswith("[") else re.split(r"[;|]", value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            terms = None
    if not isinstance(terms, list):
        raise InputError(f"{where}: found {str(value)[:40]!r}, expected a list of terms: ['bin', 'glass']")
    for term in terms:
        if not isinstance(term, str | int | float):
            raise InputError(f"{where}: found {str(term)[:40]} in the list, expected a term")
    return _clean_terms(terms)


def _read_rows(listing: FileListing, names: Sequence[str], role: str, options: Options) -> FileListing:
    """Read rows of ids and one term or a list of terms; a row without terms still adds its item."""
    path, is_list, is_complete = listing.path, False, False
    ids: tuple[str, ...] = ()
    name: str | None = None
    for where, record in iter_records(path):
        if name is None:
            name = _get_only_name(path, record, names, role)
            if name is None:
                problem = f"which column holds the terms? Columns: {', '.join(record)}"
                raise InputError(problem, file=path, remedy=f"name it: {spell('columns', f'{role}=COLUMN')}")
            ids = find_id_keys({column: None for column in record if column != name}, options)
            is_complete = is_list = name.lower() in LIST_NAMES
        place = where.removeprefix(f"{path}, ")
        parts = get_id_parts(path, place, record, ids) or (str(len(listing.items) + 1),)
        terms = _parse_terms(record[name] if is_list else [record[name]], where)
        is_complete |= not terms
        if "/".join(parts) not in listing.items:
            listing.add_parts(ids, parts, frozenset(), place)
        listing.items["/".join(parts)] |= terms
    files.check_filled(path, listing.items)
    return replace(listing, has_ids=len(ids) > 0, complete=is_complete)
