"""Term lists: what each system extracted from each sentence or document, against gold lists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import objects
from sigdask.errors import InputError
from sigdask.formats.reading.files import empty, head_lines, open_text
from sigdask.formats.reading.json.records import head, id_names, id_of, is_json
from sigdask.formats.reading.listings import (
    FileListing,
    first_files,
    folder,
    gather,
    named,
    of_records,
    of_sets,
)
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.rows import delimited_rows, header_of

LIST_NAMES = ("term_list", "terms", "termlist", "predicted_terms", "extracted_terms", "keyphrases", "keywords")
TERM_NAMES = ("term", "predicted_term", "keyphrase", "keyword")
GOLD_NAMES = ("gold_terms", "gold_term")
SUFFIXES = (".key", ".keys", ".term", ".terms")
"""Of files with the terms of one document."""

KINDS = frozenset({"Specific_Term", "Common_Term", "OOD_Term", "Named_Entity"})
"""Labels of terms in ACTER's lists."""

QUOTED = re.compile(r"""(?<!\\)"((?:[^"\\]|\\.)*+)"|(?<!\\)'((?:[^'\\]|\\.)*+)'""")
LABEL = re.compile(r"[^\W\d][\w./-]*")
MOST_LABELS = 20

NOTHING: frozenset[str] = frozenset()


def read_terms(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read one list of terms a sentence or document; or one flat list a system."""
    options.only("terms", terms=(), case=("keep", "lower"))
    if gold is None:
        raise InputError("format terms: no gold terms; give --gold FILE")
    if _are_flat(sources[0].path, gold, options):
        return _flat(sources, gold, options)
    right = _listing(options, options.gold_column, GOLD_NAMES, gold)
    systems = named(sources, partial(_listing, options, options.prediction_column, ()))
    aligned = gather(right, systems, options, NOTHING)
    columns = [objects(aligned.gold), *(objects(column) for column in aligned.systems.values())]
    given = np.column_stack([[len(terms) for terms in column] for column in columns[1:]])
    shared = [[len(a & b) for a, b in zip(column, columns[0], strict=True)] for column in columns[1:]]
    return Counts(
        systems=tuple(systems),
        fields={
            "tp": np.column_stack(shared).astype(np.int32),
            "predicted": given.astype(np.int32),
            "gold": np.array([len(terms) for terms in columns[0]], np.int32)[:, None],
        },
        n_items=aligned.n_items,
        name=options.name,
        ids=aligned.ids,
        groups=aligned.groups,
        present=aligned.present,
        outputs=Outputs(tuple(columns[1:]), columns[0]),
        suggested=("f1", "type-f1"),
        warnings=aligned.warnings,
    )


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Whether the first file holds terms: by the name of its key or column, or a folder of .key files."""
    path = sources[0].path
    if gold is None:
        return False
    if path.is_dir():
        return any(file.name.removesuffix(".gz").endswith(SUFFIXES) for file in first_files(path))
    start = head(path)
    if start.lstrip().startswith(("{", "[")):
        names = (options.own.get("terms"), options.prediction_column, *LIST_NAMES)
        return any(name and re.search(rf'"{re.escape(name)}"\s*:\s*(\[|null)', start, re.IGNORECASE) for name in names)
    cells = _cells(start)
    if _are_lists_of_kinds(path, gold):
        return True
    return len(cells) > 1 and any(cell in (*TERM_NAMES, *LIST_NAMES) for cell in cells)


def _cells(start: str) -> list[str]:
    return [cell.lower() for cell in header_of(start)]


def _listing(options: Options, column: str | None, others: tuple[str, ...], path: Path) -> FileListing:
    listing = FileListing(path, {}, {})
    if path.is_dir():
        for item, file in folder(path):
            listing.add(item, _clean(_lines(file), options), f"file {file.name}")
        return listing
    wanted = column or options.own.get("terms")
    if is_json(path):
        names = (*others, *LIST_NAMES)
        records = of_records(path, lambda record: _list_key(record, wanted, names), "terms", options)
        return records.mapped(partial(_terms, options))
    return _of_rows(listing, wanted, others, options)


def _clean(terms: Iterator[Any] | Sequence[Any], options: Options) -> frozenset[str]:
    lower = options.own.get("case") == "lower"
    texts = (str(term).strip() for term in terms)
    return frozenset(text.lower() if lower else text for text in texts if text)


def _lines(path: Path) -> list[str]:
    with open_text(path) as text:
        return [line.strip() for line in text]


def _list_key(record: Mapping[str, Any], wanted: str | None, names: Sequence[str]) -> str | None:
    """Return the key of the terms: the one asked for, a conventional one, or the only list."""
    if wanted is not None and wanted in record:
        return wanted
    lowered = {key.lower(): key for key in record}
    for name in names:
        if name in lowered and isinstance(record[lowered[name]], list | str | None):
            return lowered[name]
    lists = [key for key, value in record.items() if _is_list_of_texts(value)]
    return lists[0] if len(lists) == 1 else None


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(term, str) for term in value)


def _terms(options: Options, value: Any, where: str) -> frozenset[str]:
    terms = [] if value is None else split_terms(value) if isinstance(value, str) else value
    if not isinstance(terms, list):
        raise InputError(f"{where}: found {str(value)[:40]}, expected a list of terms")
    texts = []
    for term in terms:
        text = term.get("term", term.get("text")) if isinstance(term, dict) else term
        if not isinstance(text, str | int | float):
            raise InputError(f"{where}: found {str(term)[:40]} in the list, expected a term")
        texts.append(text)
    return _clean(texts, options)


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


def _of_rows(listing: FileListing, wanted: str | None, others: tuple[str, ...], options: Options) -> FileListing:
    """Read rows of ids and one term, or a cell of terms; a row without term says that the item is there."""
    path = listing.path
    rows = delimited_rows(path)
    first = next(rows)
    names, column, headed = _columns(path, [cell.strip() for cell in first[1]], wanted, others, options)
    if not headed:
        rows = chain((first,), rows)
    several = names[column].lower() in LIST_NAMES
    ids = id_names(dict.fromkeys(names[:column] + names[column + 1 :]), options)
    found: dict[tuple[str, ...], tuple[int, set[str]]] = {}
    complete = False
    for line, cells in rows:
        record = dict(zip(names, cells, strict=False))
        key = id_of(path, f"line {line}", record, ids) or (str(len(found) + 1),)
        terms = _clean(split_terms(cells[column]) if several else [cells[column]], options)
        complete |= not terms
        found.setdefault(key, (line, set()))[1].update(terms)
    for key, (line, known) in found.items():
        listing.add_parts(ids, key, frozenset(known), f"line {line}")
    if not found:
        raise empty(path)
    return replace(listing, has_ids=len(ids) > 0, complete=complete or several)


def _columns(
    path: Path, names: list[str], wanted: str | None, others: tuple[str, ...], options: Options
) -> tuple[list[str], int, bool]:
    """Return the columns' names, the place of the terms, and whether the first row is a header."""
    headed = any(name.lower() in (*TERM_NAMES, *LIST_NAMES) for name in names) or id_names(
        dict.fromkeys(names), replace(options, id_column=None)
    )
    if (
        not headed
        and wanted is not None
        and wanted.isdecimal()
        and 0 < int(wanted) <= len(names)
        and wanted not in names
    ):
        numbers = [str(k) for k in range(1, len(names) + 1)]
        if wanted != "1" and options.id_column is None:
            numbers[0] = "item"
        return numbers, int(wanted) - 1, False
    column = _term_column(path, names, wanted, others)
    return (["item", "term"], 1, False) if column is None else (names, column, True)


def _term_column(path: Path, names: list[str], wanted: str | None, others: tuple[str, ...]) -> int | None:
    """Return the place of the column of terms; None for two columns without header."""
    lowered = [name.lower() for name in names]
    if wanted is not None and wanted in names:
        return names.index(wanted)
    for name in (*others, *TERM_NAMES, *LIST_NAMES):
        if name in lowered:
            return lowered.index(name)
    if len(names) == 2 and wanted is None:
        return None
    raise InputError(
        f"{path}: which column holds the terms? Columns: {', '.join(names)}; name it with --format terms:terms=COLUMN"
    )


def kinds_of(path: Path) -> frozenset[str]:
    """Return the labels in the second column of a list of terms without a header; none where it holds no labels.

    Labels are few words that come again and again beside terms that do not; ids (with digits) are no terms.
    """
    lines = [line.split("\t") for line in head_lines(path) if line.strip()]
    if not lines or any(len(cells) != 2 for cells in lines):
        return NOTHING
    terms, labels = ({cells[k].strip() for cells in lines} for k in (0, 1))
    if any(name.lower() in (*TERM_NAMES, *LIST_NAMES) for name in lines[0]):
        return NOTHING
    few = len(labels) <= min(MOST_LABELS, len(lines) / 4) and all(map(LABEL.fullmatch, labels))
    without_digits = sum(not any(map(str.isdigit, term)) for term in terms)
    own = 10 * len(terms) >= 9 * len(lines) and 2 * without_digits > len(terms)
    return frozenset(labels) if labels <= KINDS or (few and own) else NOTHING


def _are_lists_of_kinds(path: Path, gold: Path) -> bool:
    """Whether gold surely is a list of terms with their kinds, and a system's file lists other ones."""
    kinds = kinds_of(gold)
    if not kinds or not (kinds <= KINDS or "term" in gold.name.lower()):
        return False
    gold_terms, terms = ({line.split("\t")[0].strip() for line in head_lines(file)} for file in (gold, path))
    listed = bool(kinds_of(path)) or not any("\t" in line for line in head_lines(path))
    return listed and gold_terms != terms and not gold_terms.isdisjoint(terms - {""})


def _are_flat(path: Path, gold: Path, options: Options) -> bool:
    """Whether files are lists of terms without items, as the first of them shows."""
    chosen = options.own.get("terms", "")
    if path.is_dir() or is_json(path) or (chosen.isdecimal() and chosen != "1"):
        return False
    if _is_flat(path):
        return True
    if chosen:
        return chosen == "1" and options.id_column is None and "1" not in _cells(head(path))
    return bool(kinds_of(gold)) or (bool(kinds_of(path)) and _is_flat(gold))


def _is_flat(path: Path) -> bool:
    """Whether a file is one list of terms, without items: a term a line."""
    if is_json(path):
        return False
    with open_text(path) as text:
        lines = [line for line in islice(text, 50) if line.strip()]
    return not any("\t" in line for line in lines) and not any(
        cell in (*TERM_NAMES, *LIST_NAMES) for cell in _cells("".join(lines))[1:] + _cells("".join(lines))[:-1]
    )


def _flat(sources: Sequence[Source], gold: Path, options: Options) -> Counts:
    """Read one list of terms a file: each term is an item, found or not."""
    if options.groups:
        raise InputError(
            f"flat lists of terms have no column {options.groups[0]!r}; give terms by sentence or document"
        )
    right = _flat_terms(options, gold)
    given = named(sources, partial(_flat_terms, options))
    notes = ["one flat list a system: each term is exchanged on its own"]
    labelled = {path: kinds for path in (gold, *(source.path for source in sources)) if (kinds := kinds_of(path))}
    if labelled and "terms" not in options.own:
        path, kinds = next(iter(labelled.items()))
        shown = ", ".join(sorted(kinds)[:4])
        notes.append(f"{path}: column 1 is taken for terms, column 2 ({shown}) for their labels (else: terms:terms=2)")
    return of_sets(right, given, options.name, notes)


def _flat_terms(options: Options, path: Path) -> frozenset[str]:
    """Read the first column of a list of terms; further ones (their kind) say nothing."""
    cells = [line.split("\t", 1)[0].strip() for line in _lines(path)]
    if cells and cells[0].lower() in (*TERM_NAMES, *LIST_NAMES):
        cells = cells[1:]
    terms = _clean(cells, options)
    if not terms:
        raise empty(path)
    return terms
