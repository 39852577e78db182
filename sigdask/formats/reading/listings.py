"""What a file lists for each item (terms, spans), brought together over gold and systems.

An item that a system's file does not have is an empty list, with a warning; one that the gold file
does not have is an error, unless the gold file names only items that have something.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.checks import check_common
from sigdask.errors import InputError
from sigdask.formats.reading.files import empty, files_below, stem
from sigdask.formats.reading.json.records import IsRecord, id_names, id_of, read_records
from sigdask.formats.reading.options import Options, Source, system_names
from sigdask.formats.reading.rows import as_text, repeated_id
from sigdask.text import count_noun, some

T = TypeVar("T")
KeyOf = Callable[[Mapping[str, Any]], str | None]
MUC_ID = re.compile(r"[A-Z]+(\d*)-MUC\d+-(\d+)")


@dataclass(frozen=True, slots=True)
class FileListing:
    """What one file lists.

    Attributes
    ----------
    path : Path
        The file or folder.
    items : dict of str to object
        What is listed for each item, by id; by "1", "2", ... where there are no ids.
    places : dict of str to str
        Where each item stands, for errors.
    groups : dict of str to dict of str to str
        Further columns: name to id to value.
    has_ids : bool
        Whether items have ids of their own.
    complete : bool
        Whether items with nothing listed are written as well.
    unscored : dict of str to list of int
        What else the file holds and no metric scores ("relations"): how many, for each place that has some.
    """

    path: Path
    items: dict[str, Any]
    places: dict[str, str]
    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    has_ids: bool = True
    complete: bool = True
    unscored: dict[str, list[int]] = field(default_factory=dict)

    def add_unscored(self, numbers: Mapping[str, int]) -> None:
        """Add what one place (a file, a record) holds and no metric scores."""
        for kind, number in numbers.items():
            if number:
                self.unscored.setdefault(kind, []).append(number)

    def add(self, item: str, value: Any, place: str) -> None:
        """Add an item that must be new."""
        if item in self.items:
            raise repeated_id(f"{self.path}, {place}", repr(item), f"in {self.places[item]}")
        self.items[item] = value
        self.places[item] = place

    def add_parts(self, names: Sequence[str], parts: Sequence[str], value: Any, place: str) -> None:
        """Add an item whose id has parts; the coarser ones are kept as columns to swap by."""
        item = "/".join(parts)
        self.add(item, value, place)
        for k, name in enumerate(names[:-1], start=1):
            self.groups.setdefault(name, {})[item] = "/".join(parts[:k])

    def mapped(self, read: Callable[[Any, str], Any]) -> FileListing:
        """Read each value anew, in place; `read` takes it and its place, for errors."""
        for item, value in self.items.items():
            self.items[item] = read(value, f"{self.path}, {self.places[item]}")
        return self


@dataclass(frozen=True, slots=True, eq=False)
class AlignedListings:
    """Gold and systems, item by item.

    Attributes
    ----------
    ids : tuple of str, or None
        None by position.
    gold : list
        What is right for each item.
    systems : dict of str to list
        What each system gave for each item.
    groups : dict of str to tuple of str
        Further columns.
    present : bool array, shape (n_items, n_systems), or None
        Where absent items are left out pair by pair.
    warnings : tuple of str
        Items that a file does not have.
    """

    ids: tuple[str, ...] | None
    gold: list[Any]
    systems: dict[str, list[Any]]
    groups: dict[str, tuple[str, ...]]
    present: NDArray[np.bool_] | None
    warnings: tuple[str, ...]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.gold)


def named(sources: Sequence[Source], reader: Callable[[Path], T]) -> dict[str, T]:
    """Read each source under its system's name."""
    return {name: reader(source.path) for name, source in zip(system_names(sources), sources, strict=True)}


def of_sets(
    gold: frozenset[str], systems: Mapping[str, frozenset[str]], name: str, warnings: Sequence[str] = ()
) -> Counts:
    """Return counts of one set a system: all that gold or a system has are items, there or not."""
    ids = sorted(gold.union(*systems.values()))
    return Counts.from_responses(
        [item in gold for item in ids],
        {system: [item in given for item in ids] for system, given in systems.items()},
        ids=ids,
        name=name,
        warnings=warnings,
    )


def of_records(
    path: Path,
    key_of: KeyOf,
    what: str,
    options: Options,
    *,
    by_label: bool = False,
    unscored_of: Callable[[Mapping[str, Any], str], Mapping[str, int]] | None = None,
) -> FileListing:
    """Read records of JSON: ids and what is listed, not yet taken apart; or an object of id to list.

    Parameters
    ----------
    path : Path
        The file.
    key_of : callable
        Record to the key of its list, None where it has none.
    what : str
        What is listed, for errors.
    options : Options
        Keys of ids and groups.
    by_label : bool
        Whether a file of id to object may hold objects of label to list.
    unscored_of : callable, optional
        Record and the key of its list to the numbers of what else it holds, as in `FileListing.unscored`.
    """
    listing = FileListing(path, {}, {})
    is_record: IsRecord = lambda record: key_of(record) is not None  # noqa: E731
    ids: tuple[str, ...] | None = None
    for number, record in enumerate(read_records(path, is_record), start=1):
        key = key_of(record.value) if isinstance(record.value, dict) else None
        if record.key is not None and key is None and (by_label or isinstance(record.value, list)):
            listing.add(record.key, record.value, record.place)
            continue
        if key is None:
            found = ", ".join(record.value) if isinstance(record.value, dict) else str(record.value)[:40]
            raise InputError(
                f"{path}, {record.place}: no list of {what}; found: {found}; name its key, --format {what}:{what}=KEY"
            )
        if unscored_of is not None:
            listing.add_unscored(unscored_of(record.value, key))
        if record.key is not None:
            listing.add(record.key, record.value[key], record.place)
            continue
        ids = id_names(record.value, options) if ids is None else ids
        parts = id_of(path, record.place, record.value, ids) or (str(number),)
        listing.add_parts(ids, parts, record.value[key], record.place)
        for name in options.groups:
            if name in record.value:
                listing.groups.setdefault(name, {})["/".join(parts)] = as_text(record.value[name])
    if not listing.items:
        raise empty(path)
    return replace(listing, has_ids=ids is None or len(ids) > 0)


def gather(gold: FileListing, systems: Mapping[str, FileListing], options: Options, nothing: Any) -> AlignedListings:
    """Match what systems list to the gold items.

    Parameters
    ----------
    gold : FileListing
        What is right.
    systems : mapping of str to FileListing
        By name.
    options : Options
        `align` and `missing` ("pairwise" leaves absent items out, else they hold nothing).
    nothing : object
        What an absent item holds.
    """
    by_id = all(listing.has_ids for listing in (gold, *systems.values()))
    if options.align == "id" and not by_id:
        path = next(listing.path for listing in (gold, *systems.values()) if not listing.has_ids)
        raise InputError(f"{path}: no ids to align by; name their column or key with --id")
    if not by_id or options.align == "position":
        return _by_position(gold, systems)
    translated = {name: _translated(gold, listing) for name, listing in systems.items()}
    every = dict.fromkeys(gold.items)
    warnings = []
    for name, listing in translated.items():
        extra = [item for item in listing.items if item not in gold.items]
        if extra and (gold.complete or len(extra) == len(listing.items)):
            place = f"{listing.path}, {listing.places[extra[0]]}"
            raise InputError(f"{place}: {some(extra)} not in {gold.path}; other ids are named by --id KEY or KEY+KEY")
        every.update(dict.fromkeys(extra))
        absent = [item for item in gold.items if item not in listing.items]
        if absent and listing.complete:
            how = "left out of its pairs" if options.missing == "pairwise" else "taken as empty"
            warnings.append(f"{listing.path} ({name}): {some(absent)} missing, {how}")
    ids = list(every)
    present = np.array([[item in listing.items for listing in translated.values()] for item in ids])
    if all(listing.complete for listing in translated.values()):
        names = (*translated, str(gold.path))
        has = np.column_stack([present, [item in gold.items for item in ids]])
        check_common(has, names, options.min_items, options.missing, ids)
    return AlignedListings(
        ids=tuple(ids),
        gold=[gold.items.get(item, nothing) for item in ids],
        systems={name: [listing.items.get(item, nothing) for item in ids] for name, listing in translated.items()},
        groups=_groups(gold, translated, ids),
        present=None if options.missing != "pairwise" or present.all() else present,
        warnings=tuple(warnings),
    )


def folder(path: Path, suffixes: Sequence[str] = ()) -> Iterator[tuple[str, Path]]:
    """Yield (id, file) of the files in a folder; the id is the relative path without suffix."""
    found = False
    for file in files_below(path):
        name = file.name.removesuffix(".gz")
        if not suffixes or name.endswith(tuple(suffixes)):
            found = True
            yield (file.relative_to(path).parent / stem(file)).as_posix(), file
    if not found:
        raise InputError(f"{path}: no files{' ending in ' + ' or '.join(suffixes) if suffixes else ''} in this folder")


def first_files(path: Path, n: int = 20) -> list[Path]:
    """Return some files of a folder, to know it by."""
    return list(islice((file for file in path.rglob("*") if file.is_file()), n))


def _by_position(gold: FileListing, systems: Mapping[str, FileListing]) -> AlignedListings:
    ids = list(gold.items)
    for listing in systems.values():
        if len(listing.items) != len(ids):
            raise InputError(
                f"{listing.path}: {count_noun(len(listing.items), 'item')}, but {gold.path} has {len(ids)}; "
                "without ids in every "
                "file they are aligned by position"
            )
    return AlignedListings(
        ids=tuple(ids) if gold.has_ids else None,
        gold=list(gold.items.values()),
        systems={name: list(listing.items.values()) for name, listing in systems.items()},
        groups=_groups(gold, {}, ids),
        present=None,
        warnings=(),
    )


def _translated(gold: FileListing, listing: FileListing) -> FileListing:
    """Give a listing the gold file's ids where it numbers MUC documents (TST3-MUC4-0001 as 30001)."""
    if any(item in gold.items for item in listing.items):
        return listing
    by_number = {muc_number(item): item for item in gold.items}
    ids = {item: by_number.get(item.lstrip("0")) for item in listing.items}
    if None in by_number or len(by_number) < len(gold.items) or None in ids.values():
        return listing
    items = {str(ids[item]): value for item, value in listing.items.items()}
    places = {str(ids[item]): place for item, place in listing.places.items()}
    return FileListing(listing.path, items, places, unscored=listing.unscored)


def muc_number(item: str) -> str | None:
    """Return the number by which systems call a MUC document.

    Examples
    --------
    >>> muc_number("TST3-MUC4-0001"), muc_number("DEV-MUC3-0042"), muc_number("30001")
    ('30001', '42', None)
    """
    match = MUC_ID.fullmatch(item)
    return (match[1] + match[2]).lstrip("0") if match else None


def _groups(gold: FileListing, systems: Mapping[str, FileListing], ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    groups = {}
    for name, of_gold in gold.groups.items():
        known = dict(of_gold)
        for listing in systems.values():
            known = {**listing.groups.get(name, {}), **known}
        groups[name] = tuple(known.get(item, "") for item in ids)
    return groups
