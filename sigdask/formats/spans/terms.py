"""Term lists: the terms that each system extracted per sentence or document, and gold lists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.errors import InputError, MissingColumnError
from sigdask.formats.reading import files, listings
from sigdask.formats.reading.json_records import find_id_keys, get_id_parts, is_json, read_head
from sigdask.formats.reading.listings import FileListing
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.spans.matching import build_list_counts, count_terms
from sigdask.interface import spell

LIST_NAMES = ("term_list", "terms", "termlist", "predicted_terms", "extracted_terms", "keyphrases", "keywords")
TERM_NAMES = ("term", "predicted_term", "keyphrase", "keyword")
COLUMN_NAMES = (*TERM_NAMES, *LIST_NAMES)
GOLD_NAMES = ("gold_terms", "gold_term")
SUFFIXES = (".key", ".keys", ".term", ".terms")
"""Endings of files with the terms of one document."""

ACTER_KINDS = frozenset({"Specific_Term", "Common_Term", "OOD_Term", "Named_Entity"})
"""Labels of terms in ACTER's lists."""

QUOTED = re.compile(r"""(?<!\\)"((?:[^"\\]|\\.)*+)"|(?<!\\)'((?:[^'\\]|\\.)*+)'""")
LABEL = re.compile(r"[^\W\d][\w./-]*")
MAX_LABELS = 20

NO_TERMS: frozenset[str] = frozenset()


def read_terms(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read one list of terms per sentence or document, or one flat list per system."""
    assert gold is not None
    if _are_flat(sources[0].path, gold, options):
        return _read_term_lists(sources, gold, options)
    gold_listing = _read_listing(options, options.gold_column, GOLD_NAMES, gold)
    systems = listings.read_by_system(sources, partial(_read_listing, options, options.prediction_column, ()))
    aligned = listings.align_listings(gold_listing, systems, options, NO_TERMS)
    fields = count_terms(aligned.gold, list(aligned.systems.values()))
    return build_list_counts(aligned, fields, suggested=("f1", "type-f1"), warnings=aligned.warnings)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Return whether the first file holds terms, by its key or column names, or is a folder of .key files."""
    path = sources[0].path
    assert gold is not None
    if path.is_dir():
        return any(file.name.removesuffix(".gz").endswith(SUFFIXES) for file in listings.list_first_files(path))
    start = read_head(path)
    if start.lstrip().startswith(("{", "[")):
        names = (options.own.get("terms"), options.prediction_column, *LIST_NAMES)
        return any(name and re.search(rf'"{re.escape(name)}"\s*:\s*(\[|null)', start, re.IGNORECASE) for name in names)
    cells = _read_header(start)
    return _are_lists_of_kinds(path, gold) or (len(cells) > 1 and not set(cells).isdisjoint(COLUMN_NAMES))


def _read_header(start: str) -> list[str]:
    return [cell.lower() for cell in files.parse_header(start)]


def _read_listing(options: Options, column: str | None, extra_names: tuple[str, ...], path: Path) -> FileListing:
    listing = FileListing(path, {}, {})
    if path.is_dir():
        for item, file in listings.iter_folder(path):
            listing.add(item, _clean_terms(_read_lines(file), options), f"file {file.name}")
        return listing
    requested = column or options.own.get("terms")
    if is_json(path):
        find_key = partial(_find_list_key, requested=requested, names=(*extra_names, *LIST_NAMES))
        return listings.read_listing(path, find_key, "terms", options).convert_values(partial(_parse_terms, options))
    return _read_rows(listing, requested, extra_names, options)


def _clean_terms(terms: Iterator[Any] | Sequence[Any], options: Options) -> frozenset[str]:
    is_lowercased = options.own.get("case") == "lower"
    texts = (str(term).strip() for term in terms)
    return frozenset(text.lower() if is_lowercased else text for text in texts if text)


def _read_lines(path: Path) -> list[str]:
    with files.open_text(path) as text:
        return [line.strip() for line in text]


def _find_list_key(record: Mapping[str, Any], requested: str | None, names: Sequence[str]) -> str | None:
    """Return the key of the terms: the requested key, a conventional key, or the only list."""
    if requested is not None and requested in record:
        return requested
    lowered = {key.lower(): key for key in record}
    for name in names:
        if name in lowered and isinstance(record[lowered[name]], list | str | None):
            return lowered[name]
    candidates = ((key, value) for key, value in record.items() if isinstance(value, list))
    lists = [key for key, value in candidates if all(isinstance(term, str) for term in value)]
    return lists[0] if len(lists) == 1 else None


def _parse_terms(options: Options, value: Any, where: str) -> frozenset[str]:
    terms = [] if value is None else split_terms(value) if isinstance(value, str) else value
    if not isinstance(terms, list):
        raise InputError(f"{where}: found {str(value)[:40]}, expected a list of terms")
    texts = []
    for term in terms:
        text = term.get("term", term.get("text")) if isinstance(term, dict) else term
        if not isinstance(text, str | int | float):
            raise InputError(f"{where}: found {str(term)[:40]} in the list, expected a term")
        texts.append(text)
    return _clean_terms(texts, options)


def split_terms(text: str) -> list[str]:
    """Split a cell that holds several terms.

    Examples
    --------
    >>> split_terms("waste bin; glass"), split_terms("['waste bin', 'glass']"), split_terms("")
    (['waste bin', ' glass'], ['waste bin', 'glass'], [])
    """
    stripped = text.strip()
    if stripped.startswith("[") and stripped.endswith("]"):
        return [double or single for double, single in QUOTED.findall(stripped)]
    mark = next((mark for mark in ";|" if mark in stripped), None)
    return text.split(mark) if mark else [text] if stripped else []


def _read_rows(listing: FileListing, requested: str | None, extras: tuple[str, ...], options: Options) -> FileListing:
    """Read rows of ids and one term or a list of terms; a row without terms still adds its item."""
    path = listing.path
    rows = files.read_delimited_rows(path)
    first_row = next(rows)
    header = [cell.strip() for cell in first_row[1]]
    names, column, has_header = _find_columns(path, header, requested, extras, options)
    if not has_header:
        rows = chain((first_row,), rows)
    has_lists = names[column].lower() in LIST_NAMES
    ids = find_id_keys(dict.fromkeys(names[:column] + names[column + 1 :]), options)
    terms_by_key: dict[tuple[str, ...], tuple[int, set[str]]] = {}
    is_complete = False
    for line, cells in rows:
        record = dict(zip(names, cells, strict=False))
        key = get_id_parts(path, f"line {line}", record, ids) or (str(len(terms_by_key) + 1),)
        terms = _clean_terms(split_terms(cells[column]) if has_lists else [cells[column]], options)
        is_complete |= not terms
        terms_by_key.setdefault(key, (line, set()))[1].update(terms)
    for key, (line, item_terms) in terms_by_key.items():
        listing.add_parts(ids, key, frozenset(item_terms), f"line {line}")
    files.check_filled(path, terms_by_key)
    return replace(listing, has_ids=len(ids) > 0, complete=is_complete or has_lists)


def _find_columns(
    path: Path, names: list[str], requested: str | None, extra_names: tuple[str, ...], options: Options
) -> tuple[list[str], int, bool]:
    """Return the column names, the index of the terms, and whether the first row is a header."""
    lowered = [name.lower() for name in names]
    id_names = find_id_keys(dict.fromkeys(names), options.with_columns(item=None))
    has_header = bool(id_names) or not set(lowered).isdisjoint(COLUMN_NAMES)
    if requested is not None and requested in names:
        return names, names.index(requested), True
    if not has_header and requested is not None and requested.isdecimal() and 0 < int(requested) <= len(names):
        numbers = [str(k) for k in range(1, len(names) + 1)]
        if requested != "1" and options.id_column is None:
            numbers[0] = "item"
        return numbers, int(requested) - 1, False
    for name in (*extra_names, *COLUMN_NAMES):
        if name in lowered:
            return names, lowered.index(name), True
    if len(names) == 2 and requested is None:
        return ["item", "term"], 1, False
    remedy = f"name it with {spell('format', 'terms:terms=COLUMN')}"
    raise InputError(f"which column holds the terms? Columns: {', '.join(names)}; {remedy}", file=path)


def find_kinds(path: Path) -> frozenset[str]:
    """Return the labels in the second column of a term list without a header, if it holds labels.

    Labels are few words that recur next to terms that do not; ids (with digits) are not terms.
    """
    lines = [line.split("\t") for line in files.read_head_lines(path) if line.strip()]
    if not lines or any(len(cells) != 2 for cells in lines):
        return NO_TERMS
    terms, labels = ({cells[k].strip() for cells in lines} for k in (0, 1))
    if any(name.lower() in COLUMN_NAMES for name in lines[0]):
        return NO_TERMS
    are_few = len(labels) <= min(MAX_LABELS, len(lines) / 4) and all(map(LABEL.fullmatch, labels))
    without_digits = sum(not any(map(str.isdigit, term)) for term in terms)
    are_terms = 10 * len(terms) >= 9 * len(lines) and 2 * without_digits > len(terms)
    return frozenset(labels) if labels <= ACTER_KINDS or (are_few and are_terms) else NO_TERMS


def _are_lists_of_kinds(path: Path, gold: Path) -> bool:
    """Return whether the gold file is a list of labelled terms, and a system's file is a different list of terms."""
    kinds = find_kinds(gold)
    if not kinds or not (kinds <= ACTER_KINDS or "term" in gold.name.lower()):
        return False
    gold_terms, terms = ({line.split("\t")[0].strip() for line in files.read_head_lines(file)} for file in (gold, path))
    is_list = bool(find_kinds(path)) or not any("\t" in line for line in files.read_head_lines(path))
    return is_list and gold_terms != terms and not gold_terms.isdisjoint(terms - {""})


def _are_flat(path: Path, gold: Path, options: Options) -> bool:
    """Return whether the files are lists of terms without items, judged by the first file."""
    column = options.own.get("terms", "")
    if path.is_dir() or is_json(path) or (column.isdecimal() and column != "1"):
        return False
    if _is_flat(path):
        return True
    if column:
        return column == "1" and options.id_column is None and "1" not in _read_header(read_head(path))
    return bool(find_kinds(gold)) or (bool(find_kinds(path)) and _is_flat(gold))


def _is_flat(path: Path) -> bool:
    """Return whether a file is one list of terms without items, with one term per line."""
    if is_json(path):
        return False
    with files.open_text(path) as text:
        lines = [line for line in islice(text, 50) if line.strip()]
    header = _read_header("".join(lines))
    has_names = len(header) > 1 and not set(header).isdisjoint(COLUMN_NAMES)
    return not any("\t" in line for line in lines) and not has_names


def _read_term_lists(sources: Sequence[Source], gold: Path, options: Options) -> Counts:
    """Read one list of terms per file; each term is an item."""
    if options.groups:
        remedy = "give the terms of each sentence or document"
        name = options.groups[0]
        raise MissingColumnError(f"flat lists of terms have no column {name!r}; {remedy}", name)
    gold_terms = _read_flat_terms(options, gold)
    system_terms = listings.read_by_system(sources, partial(_read_flat_terms, options))
    notes = ["each system has one list without sentences, so single terms are swapped"]
    paths = (gold, *(source.path for source in sources))
    path, kinds = next(((path, kinds) for path in paths if (kinds := find_kinds(path))), (gold, NO_TERMS))
    if kinds and "terms" not in options.own:
        shown = ", ".join(sorted(kinds)[:4])
        notes.append(
            f"{path}: column 1 is read as terms, and column 2 ({shown}) as their labels "
            f"({spell('format', 'terms:terms=2')} reads column 2 as terms)"
        )
    return listings.build_set_counts(gold_terms, system_terms, notes)


def _read_flat_terms(options: Options, path: Path) -> frozenset[str]:
    """Read the first column of a list of terms; further columns are ignored."""
    cells = [line.split("\t", 1)[0].strip() for line in _read_lines(path)]
    if cells and cells[0].lower() in COLUMN_NAMES:
        cells = cells[1:]
    terms = _clean_terms(cells, options)
    files.check_filled(path, terms)
    return terms
