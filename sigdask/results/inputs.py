"""What results come from beside what their columns say: data, stream and family, from which signatures are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.panels.contents import text_of
from sigdask.randomization.panels.digests import content, mixed
from sigdask.results.columns.coded import Coded
from sigdask.results.columns.inputs import Hashes, InputDigests

if TYPE_CHECKING:
    from sigdask.results.table import Table


def with_families(table: Table, families: Sequence[tuple[str, tuple[int, ...], NDArray[np.int64]]]) -> Table:
    """Return a table whose adjusted p-values say of which family they are.

    Parameters
    ----------
    table : Table
        All results.
    families : sequence of (str, tuple of int, int64 array)
        Of each how p was adjusted, the trials (and resamples) of the family as a whole, and its rows.
    """
    own, n = table.origins, len(table)
    adjusted = [each for each in families if not np.isnan(table.p_adjusted[each[2]]).all()]
    if own is None or not adjusted:
        return table
    hashes, codes = _hashes(table, own), np.zeros(n, np.int32)
    told = [("", "", "")]
    for adjust, counts, rows in adjusted:
        codes[rows] = len(told)
        bits = int(hashes[rows].sum(dtype=np.uint64))
        told.append((adjust, str(len(rows)), text_of(content((adjust, *counts, len(rows), bits)))))
    by, sizes, contents = (Coded(codes, values) for values in zip(*told, strict=True))
    return replace(table, origins=replace(own, adjust=by, members=sizes, family=contents))


def _hashes(table: Table, own: InputDigests) -> Hashes:
    """Return what each comparison is, whatever its systems are called, shape (n,): a family is their sum."""
    columns = (
        table.test_set, table.subset, table.unit, table.metric, table.alternative, own.method, own.units, own.data_a,
        own.data_b, own.code,
    )  # fmt: skip
    found = mixed(own.seed.astype(np.uint64))
    for column in columns:
        distinct = np.array([content(_plain(value)) for value in column.values], np.uint64)
        found = mixed(found ^ distinct[column.codes])
    for numbers in (table.n_trials, table.exact):
        found = mixed(found ^ numbers.astype(np.uint64))
    return found


def _plain(value: object) -> tuple[str, ...]:
    """Return the words of a value of a column."""
    if value is None or isinstance(value, str):
        return (value or "",)
    name = getattr(value, "name", None)
    return (name,) if name is not None else (value.column, value.value)  # type: ignore[attr-defined]
