"""Digests of families, the results whose p-values are adjusted together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.panels.contents import format_hash
from sigdask.randomization.panels.digests import hash_content, mix_bits
from sigdask.results.columns.coded import CodedColumn
from sigdask.results.columns.inputs import Hashes, InputDigests

if TYPE_CHECKING:
    from sigdask.results.table import Table


def add_families(table: Table, families: Sequence[tuple[str, tuple[int, ...], NDArray[np.int64]]]) -> Table:
    """Return the table with the family of each adjusted row: its method, number of comparisons and digest.

    Parameters
    ----------
    table : Table
        All results.
    families : sequence of (str, tuple of int, int64 array)
        Of each how p was adjusted, the trials (and resamples) of the family as a whole, and its rows.
    """
    digests, n = table.origins, len(table)
    adjusted = [family for family in families if not np.isnan(table.p_adjusted[family[2]]).all()]
    if digests is None or not adjusted:
        return table
    hashes, codes = _hash_comparisons(table, digests), np.zeros(n, np.int32)
    families_text = [("", "", "")]
    for adjust, counts, rows in adjusted:
        codes[rows] = len(families_text)
        bits = int(hashes[rows].sum(dtype=np.uint64))
        families_text.append((adjust, str(len(rows)), format_hash(hash_content((adjust, *counts, len(rows), bits)))))
    adjust_column, sizes, contents = (CodedColumn(codes, values) for values in zip(*families_text, strict=True))
    return replace(table, origins=replace(digests, adjust=adjust_column, members=sizes, family=contents))


def _hash_comparisons(table: Table, digests: InputDigests) -> Hashes:
    """Return a hash of each comparison, leaving out its systems' names, for digests of families."""
    columns = (
        table.test_set,
        table.subset,
        table.unit,
        table.metric,
        table.alternative,
        digests.method,
        digests.units,
        digests.data_a,
        digests.data_b,
        digests.code,
    )
    hashes = mix_bits(digests.seed.astype(np.uint64))
    for column in columns:
        distinct = np.array([hash_content(_list_words(value)) for value in column.values], np.uint64)
        hashes = mix_bits(hashes ^ distinct[column.codes])
    for numbers in (table.n_trials, table.exact):
        hashes = mix_bits(hashes ^ numbers.astype(np.uint64))
    return hashes


def _list_words(value: object) -> tuple[str, ...]:
    """Return the texts to hash for a value of a coded column."""
    if value is None or isinstance(value, str):
        return (value or "",)
    name = getattr(value, "name", None)
    return (name,) if name is not None else (value.column, value.value)  # type: ignore[attr-defined]
