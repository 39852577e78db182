"""What counts are made of, held to its shape: names, ids and groups, one for each item."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from sigdask.counts.factors import Factor
from sigdask.counts.texts import Texts
from sigdask.errors import InputError


def canonical(text: str) -> bytes:
    """Return the form by which ids are compared and sorted: NFC, UTF-8 (scheme 1)."""
    try:
        return unicodedata.normalize("NFC", text).encode()
    except UnicodeEncodeError:
        raise InputError(f"{text!r}: a name or id that cannot be written in UTF-8; change it") from None


def check_names(systems: Sequence[str], least: int = 2) -> None:
    """Refuse fewer than two systems, or than `least`, and names that are the same."""
    if len(systems) < least:
        found = f"only {systems[0]!r}" if systems else "none"
        raise InputError(f"a comparison needs two systems or more, found {found}")
    check_unique(systems, "system name")


def check_unique(names: Sequence[str], what: str) -> None:
    """Refuse names that are the same in their canonical form."""
    if canonical_column(names).are_unique:
        return
    seen: set[bytes] = set()
    for name in names:
        if (key := canonical(name)) in seen:
            raise InputError(f"{what} {name!r} occurs twice")
        seen.add(key)


def canonical_column(names: Sequence[str]) -> Texts:
    """Return the forms by which the ids of a column are compared and sorted."""
    column = Texts.of(names)
    try:
        return column.canonical()
    except UnicodeEncodeError:
        for name in column:
            canonical(name)
        raise


def item_ids(ids: Sequence[str] | None, n_items: int) -> Texts | None:
    """Return ids as texts, one an item."""
    if ids is None:
        return None
    if len(ids) != n_items:
        raise InputError(f"{len(ids)} ids for {n_items} items")
    return Texts.of(ids).compact()


def item_groups(groups: Mapping[str, Sequence[str]] | None, n_items: int) -> dict[str, Factor]:
    """Return grouping columns as texts, one an item."""
    for name, column in (groups or {}).items():
        if len(column) != n_items:
            raise InputError(f"column {name!r} has {len(column)} values for {n_items} items")
    return {name: Factor.of(column) for name, column in (groups or {}).items()}
