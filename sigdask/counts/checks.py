"""What counts are made of, held to its shape: names, ids and groups, one for each item."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Factor
from sigdask.counts.shown import FirstLine
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.options import Missing
from sigdask.text import count_noun

LEAST_COMMON = 0.05
"""Share of the items of two systems that both must have."""

BLOCK = 1 << 16
"""Items looked at at a time."""


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


def check_common(
    has: NDArray[np.bool_],
    systems: Sequence[str],
    min_items: int | None,
    missing: Missing | None = None,
    ids: Sequence[str] | None = None,
) -> None:
    """Refuse systems that hardly have an item in common: their ids are then hardly those of the same items.

    Parameters
    ----------
    has : bool array, shape (n_items, n_systems)
        Which items each system has.
    systems : sequence of str
        Names.
    min_items : int or None
        Items in common that are enough, whatever their share.
    missing : {"error", "pairwise", "zero"}, or None
        What an absent item means. Under "pairwise" two systems without any common item are left out by a note.
    ids : sequence of str, optional
        Of the items; the error shows one of each system.

    Raises
    ------
    InputError
        Two systems have fewer of their items in common than `LEAST_COMMON`.
    """
    if has.all():
        return
    common = np.zeros((len(systems), len(systems)))
    for k in range(0, len(has), BLOCK):
        rows = has[k : k + BLOCK].astype(np.float64)
        common += rows.T @ rows
    has_any = common.diagonal() > 0  # a system without any item is named by whoever looks for missing ones
    either = common.diagonal() + common.diagonal()[:, None] - common
    few = np.triu(
        (common < LEAST_COMMON * either)
        & has_any
        & has_any[:, None]
        & (common < (np.inf if min_items is None else min_items)),
        1,
    )
    if missing == "pairwise" and np.triu(common, 1).any():
        few &= common > 0
    if not few.any():
        return
    a, b = (int(k) for k in np.argwhere(few)[0])
    n, n_pairs = int(common[a, b]), int(np.count_nonzero(few))
    more = f" (and so {n_pairs - 1:,} more pairs)" if n_pairs > 1 else ""
    least = int(common[few].min())
    remedy = f" Then --min-items {least} compares them on so few" if least else ""
    fewest = f"{100 * LEAST_COMMON:.0f} %" + (
        "" if min_items is None else f" and than the {min_items:,} of --min-items"
    )
    raise InputError(
        f"systems {systems[a]!r} and {systems[b]!r} have {n:,} of {int(either[a, b]):,} items in common, fewer than "
        f"{fewest}{more}{_examples(has, ids, a, b, systems)}: are the ids of both those of the same items?{remedy}"
    )


def _examples(has: NDArray[np.bool_], ids: Sequence[str] | None, a: int, b: int, systems: Sequence[str]) -> str:
    """Name an item that one of two systems alone has, for each."""
    alone = [(has[:, k] & ~has[:, other], systems[k]) for k, other in ((a, b), (b, a))]
    shown = [f"{ids[int(np.argmax(own))]!r} of {name!r}" for own, name in alone if ids is not None and own.any()]
    return f" (such as {' and '.join(shown)} alone)" if shown else ""


def item_ids(ids: Sequence[str] | None, n_items: int) -> Texts | None:
    """Return ids as texts, one an item."""
    if ids is None:
        return None
    if len(ids) != n_items:
        raise InputError(f"{count_noun(len(ids), 'id')} for {count_noun(n_items, 'item')}")
    return Texts.of(ids).compact()


def item_groups(groups: Mapping[str, Sequence[str]] | None, n_items: int) -> dict[str, Factor]:
    """Return grouping columns as texts, one an item."""
    for name, column in (groups or {}).items():
        if len(column) != n_items:
            raise InputError(
                f"column {name!r} has {count_noun(len(column), 'value')} for {count_noun(n_items, 'item')}"
            )
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
        found.append(FirstLine(f"{what}; {remedy}"))
    return found
