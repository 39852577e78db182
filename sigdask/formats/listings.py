"""What a file lists for each item (terms, spans), brought together over gold and systems.

An item that a system's file does not have is an empty list, with a warning; one that the gold file
does not have is an error, unless the gold file names only items that have something.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.errors import InputError
from sigdask.formats.files import stem
from sigdask.formats.options import Options, Source

SHOWN = 3
MUC_ID = re.compile(r"[A-Z]+(\d*)-MUC\d+-(\d+)")


@dataclass(frozen=True, slots=True)
class Listing:
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
    """

    path: Path
    items: dict[str, Any]
    places: dict[str, str]
    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    has_ids: bool = True
    complete: bool = True

    def add(self, item: str, value: Any, place: str) -> None:
        """Add an item that must be new."""
        if item in self.items:
            raise InputError(f"{self.path}, {place}: id {item!r} stands in {self.places[item]} already; ids are unique")
        self.items[item] = value
        self.places[item] = place


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
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


def named(sources: Sequence[Source], reader: Callable[[Path], Listing]) -> dict[str, Listing]:
    """Read each source's listing under its system's name."""
    listings: dict[str, Listing] = {}
    for source in sources:
        name = source.name or stem(source.path)
        if name in listings:
            raise InputError(f"{source.path}: two systems are called {name!r}; name them NAME=FILE")
        listings[name] = reader(source.path)
    return listings


def gather(gold: Listing, systems: Mapping[str, Listing], options: Options, nothing: Any) -> Aligned:
    """Match what systems list to the gold items.

    Parameters
    ----------
    gold : Listing
        What is right.
    systems : mapping of str to Listing
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
            raise InputError(f"{listing.path}, {listing.places[extra[0]]}: {_some(extra)} not in {gold.path}")
        every.update(dict.fromkeys(extra))
        absent = [item for item in gold.items if item not in listing.items]
        if absent and listing.complete:
            how = "left out of its pairs" if options.missing == "pairwise" else "taken as empty"
            warnings.append(f"{listing.path} ({name}): {_some(absent)} missing, {how}")
    ids = list(every)
    present = np.array([[item in listing.items for listing in translated.values()] for item in ids])
    return Aligned(
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
    for file in sorted(path.rglob("*")):
        name = file.name.removesuffix(".gz")
        hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
        if file.is_file() and not hidden and (not suffixes or name.endswith(tuple(suffixes))):
            found = True
            yield (file.relative_to(path).parent / stem(file)).as_posix(), file
    if not found:
        raise InputError(f"{path}: no files{' ending in ' + ' or '.join(suffixes) if suffixes else ''} in this folder")


def first_files(path: Path, n: int = 20) -> list[Path]:
    """Return some files of a folder, to know it by."""
    return list(islice((file for file in path.rglob("*") if file.is_file()), n))


def _by_position(gold: Listing, systems: Mapping[str, Listing]) -> Aligned:
    ids = list(gold.items)
    for listing in systems.values():
        if len(listing.items) != len(ids):
            raise InputError(
                f"{listing.path}: {len(listing.items)} items, but {gold.path} has {len(ids)}; without ids in every "
                "file they are aligned by position"
            )
    return Aligned(
        ids=tuple(ids) if gold.has_ids else None,
        gold=list(gold.items.values()),
        systems={name: list(listing.items.values()) for name, listing in systems.items()},
        groups=_groups(gold, {}, ids),
        present=None,
        warnings=(),
    )


def _translated(gold: Listing, listing: Listing) -> Listing:
    """Give a listing the gold file's ids where it numbers MUC documents (TST3-MUC4-0001 as 30001)."""
    if any(item in gold.items for item in listing.items):
        return listing
    by_number = {muc_number(item): item for item in gold.items}
    ids = {item: by_number.get(item.lstrip("0")) for item in listing.items}
    if None in by_number or len(by_number) < len(gold.items) or None in ids.values():
        return listing
    items = {str(ids[item]): value for item, value in listing.items.items()}
    return Listing(listing.path, items, {str(ids[item]): place for item, place in listing.places.items()})


def muc_number(item: str) -> str | None:
    """Return the number by which systems call a MUC document.

    Examples
    --------
    >>> muc_number("TST3-MUC4-0001"), muc_number("DEV-MUC3-0042"), muc_number("30001")
    ('30001', '42', None)
    """
    match = MUC_ID.fullmatch(item)
    return (match[1] + match[2]).lstrip("0") if match else None


def _groups(gold: Listing, systems: Mapping[str, Listing], ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    groups = {}
    for name, of_gold in gold.groups.items():
        known = dict(of_gold)
        for listing in systems.values():
            known = {**listing.groups.get(name, {}), **known}
        groups[name] = tuple(known.get(item, "") for item in ids)
    return groups


def _some(items: Sequence[str]) -> str:
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return f"{len(items)} item{'s' * (len(items) > 1)} ({', '.join(map(repr, items[:SHOWN]))}{more})"
