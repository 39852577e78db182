"""What systems are on a test set, by content: the same whatever files, formats, names or order of items they came in.

Where digests of pairs (`digests`) say whether counts may be used again, contents say of each system alone whether
it is the one that a result was of, so that a signature can name the one that is another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import Lattice
from sigdask.identity import identity_of
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets
from sigdask.metrics.forms import Form, Formula, MeanOf
from sigdask.randomization.panels.digests import content, factor, kind, mixed

AT_ONCE = 2**15
"""Numbers that are hashed at a time."""

Contents = NDArray[np.uint64]


def nothing() -> Contents:
    """Return the contents of panels of which none are asked for."""
    return np.empty(0, np.uint64)


def unit_hashes(addresses: NDArray[np.int64], sizes: NDArray[np.int64]) -> Contents:
    """Return a hash of each unit's address and number of items, shape (n_units,)."""
    found = np.empty(len(addresses), np.uint64)
    for start in range(0, len(found), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        found[some] = mixed(mixed(addresses[some].astype(np.uint64)) ^ sizes[some].astype(np.uint64))
    return found


def of_column(sums: NDArray[Any], hashes: Contents, lattice: Lattice) -> int:
    """Return what one system has in one field: a sum over units of hashes of what they contribute."""
    scale, total = np.uint64(factor(lattice)), 0
    for start in range(0, len(sums), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        total += int(mixed(hashes[some] ^ (sums[some].astype(np.uint64) * scale)).sum(dtype=np.uint64))
    return total % 2**64


def of_fields(contents: Contents, lattices: Sequence[Lattice], own: Sequence[int]) -> Contents:
    """Return what systems have in some fields, shape (n_systems,), of contents of shape (n_systems, n_fields)."""
    found = np.full(len(contents), content(tuple(kind(lattices[f]) for f in own)), np.uint64)
    for f in own:
        found = mixed(found ^ contents[:, f])
    return found


def of_terms(terms: Contents, units: NDArray[np.int64]) -> np.uint64:
    """Return what a system gave: hashes of terms, beside the addresses of the units that hold them."""
    return np.uint64(mixed(terms ^ mixed(units.astype(np.uint64))).sum(dtype=np.uint64))


def of_outputs(outputs: NDArray[Any], gold: NDArray[Any] | None, units: NDArray[np.int64]) -> np.uint64:
    """Return what a system put out, beside what was right and the addresses of the units, all shape (n_items,)."""
    right = [None] * len(outputs) if gold is None else gold.tolist()
    items = [content(own) for own in zip(outputs.tolist(), right, strict=True)]
    return of_terms(np.array(items, np.uint64), units)


def code_of(metric: BoundMetric | BoundSets | BlackBox) -> str:
    """Return what code of the user's own a metric is made of, by content; empty where it has none."""
    functions = [metric.function] if isinstance(metric, BlackBox) else _functions(metric.form)
    own = [function for function in functions if identity_of(function) is None]
    return text_of(content(tuple(own))) if own else ""


def _functions(form: Form) -> list[Any]:
    if isinstance(form, MeanOf):
        return [function for one in form.forms for function in _functions(one)]
    return [form.function] if isinstance(form, Formula) else []


def text_of(bits: int) -> str:
    """Return 48 of 64 bits in twelve digits, which chance makes alike once in 10**14.

    Examples
    --------
    >>> text_of(0x3F2A00000000FFFF)
    '3f2a00000000'
    """
    return f"{bits >> 16:012x}"
