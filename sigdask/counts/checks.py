"""What counts are made of, held to its shape: names, ids, scores and groups, one for each item."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np

from sigdask.counts.fields import Array
from sigdask.counts.precision import BITS
from sigdask.counts.texts import Factor, Texts
from sigdask.errors import InputError


def canonical(text: str) -> bytes:
    """Return the form by which ids are compared and sorted: NFC, UTF-8 (scheme 1)."""
    try:
        return unicodedata.normalize("NFC", text).encode()
    except UnicodeEncodeError:
        raise InputError(f"{text!r}: a name or id that cannot be written in UTF-8; change it") from None


def check_names(systems: Sequence[str]) -> None:
    """Refuse fewer than two systems, and names that are the same."""
    if len(systems) < 2:
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


def item_scores(values: Sequence[float] | Array, system: str) -> Array:
    """Return numbers in float64, or in what less exact type they came."""
    try:
        numbers = np.asarray(values)
        if numbers.dtype.name not in BITS:
            numbers = np.asarray(values, dtype=_held_in(values) if numbers.ndim == 1 else "float64")
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"scores of {system!r}: {error}") from None
    if numbers.ndim != 1:
        raise InputError(f"scores of {system!r}: {numbers.ndim} dimensions, expected one number per item")
    if np.isinf(numbers).any():
        raise InputError(
            f"scores of {system!r}: the item at position {int(np.argmax(np.isinf(numbers))) + 1} is infinite"
        )
    return numbers


def _held_in(values: Sequence[float] | Array) -> str:
    """Return the type of single numbers held in a list or as objects, gaps aside; float64 where they differ."""
    if getattr(values, "dtype", None) not in (None, np.dtype(object)):
        return "float64"
    gaps = (value is None or (isinstance(value, float) and math.isnan(value)) for value in values)
    kinds = {type(value).__name__ for value, gap in zip(values, gaps, strict=True) if not gap}
    return kinds.pop() if len(kinds) == 1 and kinds <= BITS.keys() else "float64"


def one_length(lengths: Mapping[str, int]) -> int:
    """Return the number of items, the same of all."""
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name}: {n}" for name, n in lengths.items())
        raise InputError(f"different numbers of items ({listed})")
    return next(iter(lengths.values()), 0)


def item_ids(ids: Sequence[str] | None, n_items: int) -> Texts | None:
    """Return ids as texts, one an item."""
    if ids is None:
        return None
    if len(ids) != n_items:
        raise InputError(f"{len(ids)} ids for {n_items} items")
    return Texts.of(ids)


def item_groups(groups: Mapping[str, Sequence[str]] | None, n_items: int) -> dict[str, Factor]:
    """Return grouping columns as texts, one an item."""
    for name, column in (groups or {}).items():
        if len(column) != n_items:
            raise InputError(f"column {name!r} has {len(column)} values for {n_items} items")
    return {name: Factor.of(column) for name, column in (groups or {}).items()}
