"""Content hashes of systems on a test set, which depend on no file, format, name or order of items.

Digests of pairs (`digests`) say whether counts may be used again. Content hashes say of each system alone whether it
is the one that a result was computed from, so that a signature can name the system that has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import Lattice
from sigdask.identity import get_identity
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets
from sigdask.metrics.forms import Form, Formula, MeanOf
from sigdask.randomization.panels.digests import get_factor, hash_content, identify_lattice, mix_bits

AT_ONCE = 2**15
"""Numbers that are hashed at a time."""

Contents = NDArray[np.uint64]


def build_empty() -> Contents:
    """Return an empty array of content hashes, for panels whose hashes are not needed."""
    return np.empty(0, np.uint64)


def hash_units(addresses: NDArray[np.int64], sizes: NDArray[np.int64]) -> Contents:
    """Return a hash of each unit's address and number of items, shape (n_units,)."""
    hashes = np.empty(len(addresses), np.uint64)
    for start in range(0, len(hashes), AT_ONCE):
        block = slice(start, start + AT_ONCE)
        hashes[block] = mix_bits(mix_bits(addresses[block].astype(np.uint64)) ^ sizes[block].astype(np.uint64))
    return hashes


def hash_column(sums: NDArray[Any], hashes: Contents, lattice: Lattice) -> int:
    """Return a hash of one system's values in one field: a sum over units of hashes of their values."""
    scale, total = np.uint64(get_factor(lattice)), 0
    for start in range(0, len(sums), AT_ONCE):
        block = slice(start, start + AT_ONCE)
        total += int(mix_bits(hashes[block] ^ (sums[block].astype(np.uint64) * scale)).sum(dtype=np.uint64))
    return total % 2**64


def hash_fields(contents: Contents, lattices: Sequence[Lattice], fields: Sequence[int]) -> Contents:
    """Combine content hashes, shape (n_systems, n_fields), into one hash of some fields, shape (n_systems,)."""
    hashes = np.full(len(contents), hash_content(tuple(identify_lattice(lattices[f]) for f in fields)), np.uint64)
    for f in fields:
        hashes = mix_bits(hashes ^ contents[:, f])
    return hashes


def hash_terms(terms: Contents, units: NDArray[np.int64]) -> np.uint64:
    """Return a hash of a system's terms and the addresses of the units that hold them."""
    return np.uint64(mix_bits(terms ^ mix_bits(units.astype(np.uint64))).sum(dtype=np.uint64))


def hash_outputs(outputs: NDArray[Any], gold: NDArray[Any] | None, units: NDArray[np.int64]) -> np.uint64:
    """Return a hash of a system's outputs, the gold standard and the units' addresses, (n_items,) each."""
    gold_items = [None] * len(outputs) if gold is None else gold.tolist()
    items = [hash_content(output_and_gold) for output_and_gold in zip(outputs.tolist(), gold_items, strict=True)]
    return hash_terms(np.array(items, np.uint64), units)


def hash_code(metric: BoundMetric | BoundSets | BlackBox) -> str:
    """Return a hash of the user's own code that a metric calls; empty if it has none."""
    functions = [metric.function] if isinstance(metric, BlackBox) else _list_functions(metric.form)
    user_functions = [function for function in functions if get_identity(function) is None]
    return format_hash(hash_content(tuple(user_functions))) if user_functions else ""


def _list_functions(form: Form) -> list[Any]:
    if isinstance(form, MeanOf):
        return [function for part in form.forms for function in _list_functions(part)]
    return [form.function] if isinstance(form, Formula) else []


def format_hash(bits: int) -> str:
    """Return 48 of 64 bits as twelve hexadecimal digits; two agree by chance once in 10**14.

    Examples
    --------
    >>> format_hash(0x3F2A00000000FFFF)
    '3f2a00000000'
    """
    return f"{bits >> 16:012x}"
