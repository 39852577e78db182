"""Term lists: the terms that each system extracted per sentence or document, and gold lists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading import files, listings
from sigdask.formats.reading.json_records import JsonRecord, find_id_keys, get_id_parts, is_json, read_head, read_keys
from sigdask.formats.reading.listings import FileListing
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.types_of_gold import check_not_empty
from sigdask.formats.spans.matching import build_list_counts, count_terms
from sigdask.interface import spell

LIST_NAMES = ("term_list", "terms", "termlist", "predicted_terms", "extracted_terms", "gold_terms",
              "keyphrases", "keywords")  # fmt: skip
"""Keys and columns of lists of terms. A cell holds a list in JSON or Python syntax, or terms between `;` or `|`."""

TERM_NAMES = ("term", "predicted_term", "keyphrase", "keyword")
"""Columns of single terms."""

ENDINGS = (".key", ".keys", ".term", ".terms")
"""Endings of files in a folder of lists."""

COLUMN_NAMES = (*TERM_NAMES, *LIST_NAMES)
ACTER = re.compile(r"[^\t]+\t(Specific_Term|Common_Term|OOD_Term|Named_Entity)")
"""Line of ACTER's lists: a term and its label."""


def read_terms(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read one list of terms per sentence or document, or one flat list per system."""
    assert gold is not None
    paths = [gold, *(source.path for source in sources)]
    flat = [path for path in paths if _is_flat(path, options)]
    if flat and len(flat) < len(paths):
        other = next(path for path in paths if path not in flat)
        problem = f"a list of terms without items, but {other} has lists of items"
        raise InputError(problem, file=flat[0], remedy="give all files one layout")
    if flat:
        return _read_term_lists(sources, gold, options)
    gold_listing = _read_listing(options, options.gold_column, gold)
    systems = listings.read_by_system(sources, partial(_read_listing, options, options.prediction_column))
    aligned = listings.align_listings(gold_listing, systems, options, frozenset())
    sizes = {name: sum(map(len, column)) for name, column in aligned.systems.items()}
    check_not_empty(gold, sum(map(len, aligned.gold)), sizes, "terms")
    fields = count_terms(aligned.gold, list(aligned.systems.values()))
    return build_list_counts(aligned, fields, suggested=("f1", "type-f1"), warnings=aligned.warnings)


def sniff(sources: Sequence[Source], gold: Path | None, _: Options) -> bool:
    """Return whether the first is a folder of lists, has a key or column of terms, or gold is a list of ACTER."""
    path = sources[0].path
    assert gold is not None
    if path.is_dir():
        return any(file.suffix in ENDINGS for file in path.rglob("*"))
    names = [name.lower() for name in read_keys(path)]
    if any(name in TERM_NAMES or name.rpartition(".")[2] in LIST_NAMES for name in names):
        return True
    return not is_json(path) and _is_acter(gold)


def _is_acter(path: Path) -> bool:
    lines = [] if path.is_dir() else [line for line in files.read_head_lines(path) if line.strip()]
    return bool(lines) and all(ACTER.fullmatch(line.strip()) for line in lines)


def _is_flat(path: Path, options: Options) -> bool:
    """Return whether a file is one list of terms without items: single cells, or ACTER's lines."""
    if options.columns or "terms" in options.own or path.is_dir() or is_json(path):
        return False
    header = {name.strip().lower() for name in files.parse_header(read_head(path))}
    is_table = len(header) > 1 and not header.isdisjoint(COLUMN_NAMES)
    lines = [line for line in files.read_head_lines(path) if line.strip()]
    return bool(lines) and not is_table and (not any("\t" in line for line in lines) or _is_acter(path))


def _read_listing(options: Options, column: str | None, path: Path) -> FileListing:
    listing = FileListing(path, {}, {})
    if path.is_dir():
        for item, file in listings.iter_folder(path):
            lines = (line for _, line in files.enumerate_lines(file))
            listing.add(item, _clean_terms(lines, options), f"file {file.name}")
        return listing
    requested = column or options.own.get("terms")
    if not is_json(path):
        return _read_rows(listing, requested, options)
    names = (requested,) if requested is not None else LIST_NAMES
    records = listings.list_records(path, lambda record: any(key in names or key.lower() in names for key in record))
    keys = dict.fromkeys(key for record in records if isinstance(record.value, dict) for key in record.value)
    key = _get_only_name(path, keys, names)

    def get_value(record: dict[str, Any], place: str) -> Any:
        if key not in record or not isinstance(record[key], list | str | None):
            raise listings.build_key_error(path, JsonRecord(place, None, record, 0), "terms")
        return record[key]

    listing = listings.read_listing(path, records, key, "terms", options, get_value)
    return listing.convert_values(partial(_parse_terms, options))


def _get_only_name(path: Path, keys: Mapping[str, object], names: Sequence[str]) -> str | None:
    """Return the key or column of terms. Raise if several may be it."""
    found = [key for key in keys if key in names or key.lower() in names]
    if len(found) > 1:
        choices = " or ".join(spell("format", f"terms:terms={key}") for key in found)
        raise InputError(f"{' and '.join(found)} may hold the terms", file=path, remedy=f"choose: {choices}")
    return found[0] if found else None


def _clean_terms(terms: Iterable[Any], options: Options) -> frozenset[str]:
    is_lowercased = options.own.get("case") == "lower"
    texts = (str(term).strip() for term in terms)
    return frozenset(text.lower() if is_lowercased else text for text in texts if text)


def _parse_terms(options: Options, value: Any, where: str) -> frozenset[str]:
    terms = split_terms(value, where) if isinstance(value, str) else [] if value is None else value
    if not isinstance(terms, list):
        raise InputError(f"{where}: found {str(value)[:40]}, expected a list of terms")
    for term in terms:
        if not isinstance(term, str | int | float):
            raise InputError(f"{where}: found {str(term)[:40]} in the list, expected a term")
    return _clean_terms(terms, options)


def split_terms(text: str, where: str) -> list[Any]:
    """Split a cell that holds several terms.

    Examples
    --------
    >>> split_terms("waste bin; glass", "x"), split_terms("['waste bin', 'glass']", "x"), split_terms("", "x")
    (['waste bin', ' glass'], ['waste bin', 'glass'], [''])
    """
    if not text.strip().startswith("["):
        return re.split(r"[;|]", text)
    try:
        return list(ast.literal_eval(text.strip()))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise InputError(f"{where}: found {text[:40]!r}, expected a list of terms: ['bin', 'glass']") from None


def _read_rows(listing: FileListing, requested: str | None, options: Options) -> FileListing:
    """Read rows of ids and one term or a list of terms; a row without terms still adds its item."""
    path = listing.path
    rows = files.read_delimited_rows(path)
    names = [cell.strip() for cell in next(rows)[1]]
    choices = (requested,) if requested is not None else COLUMN_NAMES
    name = _get_only_name(path, dict.fromkeys(names), choices)
    if name is None:
        remedy = f"name it with {spell('format', 'terms:terms=COLUMN')}"
        raise InputError(f"which column holds the terms? Columns: {', '.join(names)}", file=path, remedy=remedy)
    ids = find_id_keys({column: None for column in names if column != name}, options)
    has_lists = name.lower() in LIST_NAMES
    terms_by_key: dict[tuple[str, ...], tuple[int, set[str]]] = {}
    is_complete = has_lists
    for line, cells in rows:
        record = dict(zip(names, cells, strict=False))
        where = f"line {line}"
        key = get_id_parts(path, where, record, ids) or (str(len(terms_by_key) + 1),)
        terms = _parse_terms(options, record[name] if has_lists else [record[name]], f"{path}, {where}")
        is_complete |= not terms
        terms_by_key.setdefault(key, (line, set()))[1].update(terms)
    for key, (line, item_terms) in terms_by_key.items():
        listing.add_parts(ids, key, frozenset(item_terms), f"line {line}")
    files.check_filled(path, terms_by_key)
    return replace(listing, has_ids=len(ids) > 0, complete=is_complete)


def _read_term_lists(sources: Sequence[Source], gold: Path, options: Options) -> Counts:
    """Read one list of terms per file; each term is an item."""

    def read(path: Path) -> frozenset[str]:
        cells = [line.split("\t", 1)[0].strip() for line in files.read_lines(path)]
        terms = _clean_terms(cells[cells[:1] != [] and cells[0].lower() in COLUMN_NAMES :], options)
        files.check_filled(path, terms)
        return terms

    notes = ["each system has one list without sentences, so single terms are swapped"]
    return listings.build_set_counts(read(gold), listings.read_by_system(sources, read), notes)
