"""Checks of the items that systems have, and of what Python gives as their outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sigdask.counts.fields import Bools
from sigdask.counts.precision import list_values
from sigdask.counts.texts import Texts
from sigdask.errors import InputError, MissingItemsError
from sigdask.interface import spell
from sigdask.options import Missing

MIN_COMMON_SHARE = 0.05
"""Minimum share of items that two systems must have in common."""

BLOCK = 1 << 16
"""Number of items checked at a time."""


def check_texts(column: Any, name: str) -> list[str]:
    """Return the texts of a column; raise if it is a single text or has a value that is none."""
    texts = [*list_values(column, name)]
    for position, value in enumerate(texts, start=1):
        if not isinstance(value, str):
            raise InputError(f"{name}: item {position} is {value!r}, not a text", remedy="write '' for an empty output")
    return Texts.from_values(texts).tolist()  # which UTF-8 can hold


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
    present: Bools, systems: Sequence[str], ids: Sequence[str] | None, noun: str = "score", zero: str | None = ""
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
    zero : str or None
        What a missing item counts as under the option `zero`. None if this would be the best score.
    """
    if present.all():
        return
    item, system = (int(k) for k in np.argwhere(~present)[0])
    position = f"at position {item + 1}" if ids is None else repr(ids[item])
    other_way = "" if zero is None else f" or {spell('missing', 'zero')}{zero}"
    raise MissingItemsError(
        f"system {systems[system]!r} has no {noun} for item {position} ({np.count_nonzero(~present)} missing in "
        f"total); choose {spell('missing', 'pairwise')} (compares each pair on the items that both have){other_way}"
    )
