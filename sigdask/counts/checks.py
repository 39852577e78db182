"""What counts are made of, held to its shape: names, ids and groups, one for each item."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np

from sigdask.counts.factors import Factor
from sigdask.counts.texts import Texts
from sigdask.errors import InputError


class Notice(str):
    """A warning that stands in the first lines of the output: without it the result says something else."""

    __slots__ = ()


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


def foreign_labels(gold: Factor, predictions: Mapping[str, Factor]) -> list[str]:
    """Warn of systems whose labels lie outside the gold label set: all, or most where gold labels come again."""
    known = {*gold.levels}
    found: list[str] = []
    for name, column in predictions.items():
        outside = np.array([level not in known for level in column.levels], np.bool_)
        n_outside = int(np.count_nonzero(outside[column.codes])) if len(outside) else 0
        if not n_outside or (n_outside < len(column) and (2 * n_outside <= len(column) or 2 * len(known) > len(gold))):
            continue
        example = column[int(np.argmax(outside[column.codes]))]
        beside = gold[int(np.argmax(outside[column.codes]))]
        if n_outside == len(column):
            what = f"{name}: no label is a gold one: {example!r} where gold has {beside!r}, so none is right"
        else:
            what = f"{name}: {n_outside:,} of {len(column):,} labels are no gold ones (such as {example!r})"
        remedy = "are options written out instead of numbered? Read labels as others with --map, or choose the columns"
        if {level.strip().casefold() for level in column.levels} & {level.casefold() for level in known}:
            remedy = "some differ in case alone; read them as gold labels with --map"
        found.append(Notice(f"{what}; {remedy}"))
    return found
