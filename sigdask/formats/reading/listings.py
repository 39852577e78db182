"""Alignment of the lists that files give for each item (terms, spans) between gold standard and systems.

A record that its status rejects is left out, in all files. An item that a system does not have is an error unless the
user chooses what it counts as.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.checks import check_common_items, check_complete
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import describe_missing
from sigdask.formats.reading.files import build_repeated_id_error, check_filled, format_cell, get_stem, list_files
from sigdask.formats.reading.json_records import JsonRecord, find_id_keys, get_id_parts, read_records
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.roles import STATUS_VALUES
from sigdask.interface import spell
from sigdask.text import describe_items, format_count

T = TypeVar("T")
MUC_ID = re.compile(r"[A-Z]+(\d*)-MUC\d+-(\d+)")
ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Stands for the list of a record that does not count, and says why."""

    reason: str


@dataclass(frozen=True, slots=True)
class FileListing:
    """The lists, such as terms or spans, that one file gives for its items.

    Attributes
    ----------
    path : Path
        The file or folder.
    items : dict of str to object
        The list of each item, by id, or by "1", "2", ... if there are no ids.
    places : dict of str to str
        Position of each item for error messages.
    groups : dict of str to dict of str to str
        Further columns: name to id to value.
    texts : dict of str to str
        The text of each item whose record has one.
    has_ids : bool
        Whether items have ids of their own.
    complete : bool
        Whether items with nothing listed are written as well.
    """

    path: Path
    items: dict[str, Any]
    places: dict[str, str]
    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    has_ids: bool = True
    complete: bool = True

    def add(self, item: str, value: Any, location: str) -> None:
        """Add an item and its list; raise an error for a repeated id."""
        if item in self.items:
            earlier = f"{'on' if self.places[item].startswith('line ') else 'in'} {self.places[item]}"
            raise build_repeated_id_error(f"{self.path}, {location}", repr(item), earlier)
        self.items[item] = value
        self.places[item] = location

    def add_parts(self, names: Sequence[str], parts: Sequence[str], value: Any, location: str) -> str:
        """Add an item and return its id, which has several parts; the coarser parts become grouping columns."""
        item = "/".join(parts)
        self.add(item, value, location)
        for k, name in enumerate(names[:-1], start=1):
            self.groups.setdefault(name, {})[item] = "/".join(parts[:k])
        return item

    def rename(self, ids: Sequence[str]) -> FileListing:
        """Return the listing with other ids."""
        items = dict(zip(ids, self.items.values(), strict=True))
        return replace(self, items=items, places=dict(zip(ids, self.places.values(), strict=True)), groups={})

    def convert_values(self, convert: Callable[[Any, str], Any]) -> FileListing:
        """Convert the list of each item in place, and return the listing; `convert` takes the list and its location."""
        for item, value in self.items.items():
            if not isinstance(value, LeftOut):
                self.items[item] = convert(value, f"{self.path}, {self.places[item]}")
        return self


Listings = Mapping[str, FileListing]
"""Listings by system."""


@dataclass(frozen=True, slots=True, eq=False)
class AlignedListings:
    """The lists of gold standard and systems, item by item.

    Attributes
    ----------
    ids : tuple of str, or None
        None if items are matched by position.
    gold : list
        The gold list of each item.
    systems : dict of str to list
        The list of each item from each system.
    groups : dict of str to tuple of str
        Further columns.
    present : bool array, shape (n_items, n_systems), or None
        Whether each system has each item, if missing items are left out pair by pair.
    warnings : tuple of str
        Items that a file does not have, and records that are left out.
    """

    ids: tuple[str, ...] | None
    gold: list[Any]
    systems: dict[str, list[Any]]
    groups: dict[str, tuple[str, ...]]
    present: NDArray[np.bool_] | None
    warnings: tuple[str, ...]


def read_by_system(sources: Sequence[Source], reader: Callable[[Path], T]) -> dict[str, T]:
    """Read each source and return the results by system name."""
    return {name: reader(source.path) for name, source in zip(list_system_names(sources), sources, strict=True)}


def normalize_words(answer: str) -> list[str]:
    """Return the words of an answer, without case, punctuation and articles.

    Examples
    --------
    >>> normalize_words("The  Denver Broncos' (AFC)!")
    ['denver', 'broncos', 'afc']
    """
    return ARTICLES.sub(" ", answer.lower().translate(PUNCTUATION)).split()


def build_set_counts(
    gold: frozenset[str], systems: Mapping[str, frozenset[str]], warnings: Sequence[str] = ()
) -> Counts:
    """Return counts from one set of ids per system; every id in the gold set or in a system's set is an item."""
    ids = sorted(gold.union(*systems.values()))
    return Counts.from_responses(
        [item in gold for item in ids],
        {system: [item in members for item in ids] for system, members in systems.items()},
        ids=ids,
        warnings=warnings,
    )


def find_status(record: Mapping[str, Any]) -> str | None:
    """Return why a record does not count, such as "answer reject"; None if it counts.

    Examples
    --------
    >>> find_status({"answer": "reject"}), find_status({"answer": "Paris"})
    ('answer reject', None)
    """
    marks = ((key, str(record[key]).lower()) for key in STATUS_VALUES if key in record)
    return next((f"{key} {text}" for key, text in marks if text in STATUS_VALUES[key]), None)


def read_listing(
    path: Path,
    records: Sequence[JsonRecord],
    key: str | None,
    noun: str,
    options: Options,
    get_value: Callable[[dict[str, Any], str], Any],
) -> FileListing:
    """Return the unparsed list of each item of JSON records, or of one JSON object of id to list.

    Parameters
    ----------
    path : Path
        The file.
    records : sequence of JsonRecord
        Its records.
    key : str or None
        Key of the lists. None if the values of an object by id are the lists.
    noun : str
        Name of the listed things, for errors.
    options : Options
        Keys of ids and groups.
    get_value : callable
        Function from a record and its place to its value.
    """
    listing = FileListing(path, {}, {})
    ids: tuple[str, ...] | None = None
    for number, record in enumerate(records, start=1):
        value = record.value
        if key is None and record.key is not None:
            listing.add(record.key, value, record.place)
            continue
        if key is None or not isinstance(value, dict):
            raise build_key_error(path, record, noun)
        reason = find_status(value)
        content = get_value(value, record.place) if reason is None else LeftOut(reason)
        if record.key is None:
            ids = find_id_keys(value, options) if ids is None else ids
            parts = get_id_parts(path, record.place, value, ids) or (str(number),)
        else:
            parts = (record.key,)
        item = listing.add_parts(ids or (), parts, content, record.place)
        if isinstance(text := value.get("text"), str):
            listing.texts[item] = text
        for name in options.groups:
            if name in value:
                listing.groups.setdefault(name, {})[item] = format_cell(value[name])
    check_filled(path, listing.items)
    return replace(listing, has_ids=ids is None or len(ids) > 0)


def build_key_error(path: Path, record: JsonRecord, noun: str) -> InputError:
    """Return the error for a record without a known key of a list."""
    content, remedy = str(record.value)[:40], f"write an object with a key of {noun} for each item"
    if isinstance(record.value, dict):
        ways = " or ".join(spell("columns", f"{role}=KEY") for role in ("gold", "prediction"))
        content = ", ".join(record.value)
        remedy = "write a list relations of head, tail and type" if noun == "relations" else f"name its key: {ways}"
    return InputError(f"no list of {noun}; found: {content}", file=path, place=record.place, remedy=remedy)


def list_records(path: Path, is_record: Callable[[Mapping[str, Any]], bool]) -> list[JsonRecord]:
    """Return the records of a JSON file; `[text, {"entities": ...}]`, spaCy's training data, becomes an object."""
    records = []
    for record in read_records(path, is_record):
        match record.value:
            case [str(text), dict(annotations), *_]:
                record = record._replace(value={"text": text, **annotations})  # noqa: PLW2901
        records.append(record)
    return records


def align_listings(gold: FileListing, systems: Listings, options: Options, nothing: Any) -> AlignedListings:
    """Match the lists of the systems to the gold items.

    Parameters
    ----------
    gold : FileListing
        The gold lists.
    systems : mapping of str to FileListing
        By name.
    options : Options
        `align` and `missing` ("pairwise" leaves absent items out, "zero" takes them as empty).
    nothing : object
        Value of a missing item.

    Raises
    ------
    InputError
        The files do not match.
    """
    unnamed = [listing.path for listing in (gold, *systems.values()) if not listing.has_ids]
    if options.align == "id" and unnamed:
        remedy = f"name their column or key with {spell('columns', 'item=COLUMN')}"
        raise InputError("no ids to align by", file=unnamed[0], remedy=remedy)
    rename = _match_positions if unnamed or options.align == "position" else _translate_muc_ids
    systems = {name: rename(gold, listing) for name, listing in systems.items()}
    for listing in systems.values():
        _check_known(gold, listing)
    left_out = {item for item, value in gold.items.items() if isinstance(value, LeftOut)}
    listings = (gold, *systems.values())
    every = dict.fromkeys(chain.from_iterable(listing.items for listing in listings))
    ids = [item for item in every if item not in left_out]
    present = np.array([[item in listing.items for listing in systems.values()] for item in ids])
    warnings = _describe_left_out(gold, left_out)
    if all(listing.complete for listing in systems.values()):
        is_listed = np.column_stack([present, [item in gold.items for item in ids]])
        if not options.few_in_common:
            check_common_items(is_listed, (*systems, str(gold.path)), options.missing, ids)
        if options.missing_policy == "error":
            check_complete(present, tuple(systems), ids, "list", " (takes it as empty)")
    if options.missing_policy != "error":  # rows alone do not tell an empty list from a missing one
        warnings += describe_missing(present, [*systems], options)
    return AlignedListings(
        ids=tuple(ids) if gold.has_ids else None,
        gold=[gold.items.get(item, nothing) for item in ids],
        systems={name: [listing.items.get(item, nothing) for item in ids] for name, listing in systems.items()},
        groups={name: tuple(map(_join_groups(listings, name).get, ids, repeat(""))) for name in gold.groups},
        present=None if options.missing != "pairwise" or present.all() else present,
        warnings=tuple(warnings),
    )


def _join_groups(listings: Sequence[FileListing], name: str) -> dict[str, str]:
    """Return the group of each item that some file has, in one column; gold comes first."""
    return {item: group for listing in reversed(listings) for item, group in listing.groups.get(name, {}).items()}


def _check_known(gold: FileListing, listing: FileListing) -> None:
    """Raise an error for items that gold lacks, and for records that count in gold alone."""
    extra = [item for item in listing.items if item not in gold.items]
    if extra and (gold.complete or len(extra) == len(listing.items)):
        problem = f"{describe_items(extra)} not in {gold.path}"
        remedy = f"give both files the same ids, or name their key: {spell('columns', 'item=KEY')}"
        raise InputError(problem, file=listing.path, place=listing.places[extra[0]], remedy=remedy)
    counted = [value for item, value in listing.items.items() if not isinstance(gold.items.get(item), LeftOut)]
    if reasons := _describe_reasons(counted):
        problem = f"records do not count ({reasons}), but {gold.path} has these items"
        remedy = "give this system's output for every gold item, or remove these items from the gold file"
        raise InputError(problem, file=listing.path, remedy=remedy)


def _describe_left_out(gold: FileListing, left_out: Collection[str]) -> list[ScopeNote]:
    """Return a note on the gold records that do not count."""
    if not left_out:
        return []
    reasons = _describe_reasons(gold.items.values())
    if len(left_out) == len(gold.items):
        raise InputError(f"no record counts ({reasons})", file=gold.path)
    numbers = f"{len(left_out):,} of {format_count(len(gold.items), 'record')}"
    return [ScopeNote(f"{gold.path}: {numbers} are left out of all files: {reasons}")]


def _describe_reasons(values: Iterable[Any]) -> str:
    reasons = Counter(value.reason for value in values if isinstance(value, LeftOut))
    return ", ".join(f"{number:,} with {reason}" for reason, number in reasons.items())


def _match_positions(gold: FileListing, listing: FileListing) -> FileListing:
    """Return the listing with the gold file's ids by position, if it has as many items, and their texts if any."""
    if len(listing.items) != len(gold.items):
        raise InputError(
            f"{format_count(len(listing.items), 'item')}, but {gold.path} has {len(gold.items)}; items without ids are "
            "aligned by position, so give one for each gold item",
            file=listing.path,
        )
    for item, gold_item in zip(listing.items, gold.items, strict=True):
        text, gold_text = listing.texts.get(item), gold.texts.get(gold_item)
        if None not in {text, gold_text} and text != gold_text:
            problem = f"the text {text!r} is not {gold_text!r}, that of {gold.path}, {gold.places[gold_item]}"
            remedy = "bring the files into the same order, or give every record an id"
            raise InputError(problem, file=listing.path, place=listing.places[item], remedy=remedy)
    return listing.rename([*gold.items])


def _translate_muc_ids(gold: FileListing, listing: FileListing) -> FileListing:
    """Return the listing with MUC document numbers replaced by the gold file's ids (30001 becomes TST3-MUC4-0001)."""
    matches = {item: MUC_ID.fullmatch(item) for item in gold.items}
    by_number = {"".join(match.groups()).lstrip("0"): item for item, match in matches.items() if match}
    ids = [by_number.get(item.lstrip("0"), "") for item in listing.items]
    return listing.rename(ids) if all(ids) and len(by_number) == len(gold.items) else listing


def iter_folder(path: Path, suffixes: Sequence[str] = ()) -> Iterator[tuple[str, Path]]:
    """Yield (id, file) for the files in a folder; the id is the relative path without suffix."""
    ends = tuple(suffixes) or ""
    files = [file for file in list_files(path) if file.name.removesuffix(".gz").endswith(ends)]
    if not files:
        raise InputError(f"no files ending in {' or '.join(suffixes)} in this folder", file=path)
    for file in files:
        yield (file.relative_to(path).parent / get_stem(file)).as_posix(), file
