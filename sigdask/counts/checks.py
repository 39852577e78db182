"""Checks of the names, ids and groups that counts are built from."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence, ValuesView
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts.fields import Bools
from sigdask.counts.texts import Texts
from sigdask.errors import InputError, MissingItemsError
from sigdask.interface import spell
from sigdask.options import Missing

MIN_COMMON_SHARE = 0.05
"""Minimum share of items that two systems must have in common."""

BLOCK = 1 << 16
"""Number of items checked at a time."""


def canonicalize(text: str) -> bytes:
    """Return the form of a name or id that is compared and sorted: UTF-8 bytes in Unicode's form NFC (scheme 1)."""
    return text.encode() if text.isascii() else canonicalize_column([text])[0].encode()


def check_names(systems: Sequence[str], minimum: int = 2) -> None:
    """Raise if there are fewer than `minimum` systems, or if two names are the same."""
    if len(systems) < minimum:
        names = f"only {systems[0]!r}" if systems else "none"
        raise InputError(
            f"a comparison needs two systems or more, found {names}", remedy="give the outputs of another system"
        )
    check_unique(systems, "system name")


def check_texts(column: Any, name: str) -> list[str]:
    """Return the texts of a column; raise if it is a single text or has a value that is none."""
    texts = [*list_values(column, name)]
    for position, value in enumerate(texts, start=1):
        if not isinstance(value, str):
            raise InputError(f"{name}: item {position} is {value!r}, not a text", remedy="write '' for an empty output")
    return Texts.from_values(texts).tolist()  # which UTF-8 can hold


def list_values(values: Any, name: str) -> Any:
    """Return the values of items in their order: generators as lists, masked values as NaN.

    Raises
    ------
    InputError
        For a mapping or set, and an array of another shape.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        return np.ma.filled(values.astype(np.float64), np.nan)
    if isinstance(values, Iterator | ValuesView):
        return list(values)
    n_dimensions = getattr(values, "ndim", 1)
    if isinstance(values, Mapping | set | frozenset | str | Path) or n_dimensions != 1:
        found = f"a {type(values).__name__}" if n_dimensions == 1 else f"an array of {n_dimensions} dimensions"
        raise InputError(
            f"{name}: found {found}, expected a sequence of one number or label per item",
            remedy="give a list or one column. Files are read by sigdask.compare_all(sigdask.read(FILE, FILE)), data "
            "frames by sigdask.compare_all(frame)",
        )
    return values.astype(str) if isinstance(values, np.ndarray) and values.dtype.kind == "S" else values


def check_indices(columns: Mapping[str, Any]) -> None:
    """Raise if two series of pandas have the same labels in different places, since items are matched by position."""
    indices = {n: column.index for n, column in columns.items() if hasattr(getattr(column, "index", None), "equals")}
    first, *others = indices or [""]
    for name in others:
        own, expected = indices[name], indices[first]
        if len(own) == len(expected) and not own.equals(expected) and own.isin(expected).any():
            raise InputError(
                f"{first!r} and {name!r}: the series have the same index labels in different places",
                remedy="bring both into one order (series.reindex), or give series.to_numpy()",
            )


def check_unique(names: Sequence[str], what: str) -> None:
    """Raise if two names have the same canonical form."""
    forms = [] if isinstance(names, Texts) else [unicodedata.normalize("NFC", str(name)) for name in names]
    if forms and len({*forms}) == len(forms):  # of a few names, sooner than by sorting in Arrow
        return
    order, are_repeated = canonicalize_column(names).sorted
    if are_repeated.any():
        raise InputError(f"{what} {names[int(order[are_repeated].min())]!r} occurs twice")


def canonicalize_column(names: Sequence[str]) -> Texts:
    """Return the canonical forms of a column of names or ids, which are compared and sorted instead of them."""
    return Texts.from_values(names).canonical


def check_common_items(
    has: Bools,
    systems: Sequence[str],
    missing: Missing | None = None,
    ids: Sequence[str] | None = None,
) -> None:
    """Raise if two systems share so few items that their ids probably name different ones.

    Parameters
    ----------
    has : bool array, shape (n_items, n_systems)
        Whether each system has each item.
    systems : sequence of str
        Names.
    missing : {"error", "pairwise", "zero"}, or None
        How missing items are handled. Under "pairwise", two systems without a common item are left out with a note.
    ids : sequence of str, optional
        Ids of the items. The error shows one for each system.

    Raises
    ------
    InputError
        Two systems have less than `MIN_COMMON_SHARE` of their items in common.
    """
    common = np.zeros((len(systems), len(systems)))
    for k in range(0, len(has), BLOCK):
        rows = has[k : k + BLOCK].astype(np.float64)
        common += rows.T @ rows
    has_any = common.diagonal() > 0  # systems without any item are reported by the check for missing items
    either = common.diagonal() + common.diagonal()[:, None] - common
    is_too_few = np.triu((common < MIN_COMMON_SHARE * either) & has_any & has_any[:, None], 1)
    if missing == "pairwise" and np.triu(common, 1).any():
        is_too_few &= common > 0
    if not is_too_few.any():
        return
    a, b = (int(k) for k in np.argwhere(is_too_few)[0])
    item = int(np.argmax(has[:, a] != has[:, b]))
    example = "" if ids is None else f" (only {systems[a if has[item, a] else b]!r} has {ids[item]!r})"
    raise MissingItemsError(
        f"systems {systems[a]!r} and {systems[b]!r} have {int(common[a, b]):,} of {int(either[a, b]):,} items in "
        f"common, fewer than {100 * MIN_COMMON_SHARE:.0f} %{example}. Do the ids of both name the same items? If not, "
        "correct the ids. If so, leave out items that only one has"
    )


def check_complete(
    present: Bools, systems: Sequence[str], ids: Sequence[str] | None, noun: str = "score", zero: str = ""
) -> None:
    """Raise unless systems have all items; the error names the first gap, and the options that allow gaps.

    Parameters
    ----------
    present : bool array, shape (n_items, n_systems)
        Whether each system has each item.
    systems, ids : sequence of str
        Names of the systems, and ids of the items.
    noun : str
        What a system has for each item, for messages.
    zero : str
        What a missing item counts as under the option `zero`.
    """
    if present.all():
        return
    item, system = (int(k) for k in np.argwhere(~present)[0])
    position = f"at position {item + 1}" if ids is None else repr(ids[item])
    raise MissingItemsError(
        f"system {systems[system]!r} has no {noun} for item {position} ({np.count_nonzero(~present)} missing in "
        f"total); choose {spell('missing', 'pairwise')} (compares each pair on the items that both have) or "
        f"{spell('missing', 'zero')}{zero}"
    )
