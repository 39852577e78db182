"""What results come from beside what their columns say: data, stream and family, from which signatures are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.grouping import numbered, rows_of
from sigdask.randomization.panels.contents import code_of, text_of
from sigdask.randomization.panels.digests import content, mixed

if TYPE_CHECKING:
    from sigdask.comparison.exchange import Exchange
    from sigdask.comparison.table import Coded, Table

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Origins:
    """What p depends on that no other column says: columns of a table, empty texts where it is not known.

    Attributes
    ----------
    seed : int64
        Of the stream.
    method : Coded of str
        As it was asked for, behind a colon the limit in seconds that was given for exact p-values (`auto` and `both`).
    units : Coded of str
        The ids of the test set's units, by content.
    data_a, data_b : Coded of str
        What both systems contribute under the metric on the items compared, gold included, by content.
    code : Coded of str
        The user's own code that the metric is made of, by content.
    adjust, members, family : Coded of str
        How p was adjusted, over how many comparisons, and which these are, by content.
    version : Coded of str
        Of the program that found the result.
    """

    seed: NDArray[np.int64]
    method: Coded[str]
    units: Coded[str]
    data_a: Coded[str]
    data_b: Coded[str]
    code: Coded[str]
    adjust: Coded[str]
    members: Coded[str]
    family: Coded[str]
    version: Coded[str]

    @staticmethod
    def of(exchange: Exchange, seed: int, version: str) -> Origins:
        """Say where the results of an exchange come from; families are told later.

        Parameters
        ----------
        exchange : Exchange
            What is compared.
        seed : int
            Of the stream.
        version : str
            Of the program.
        """
        from sigdask.comparison.table import Coded

        asked, own = exchange.asked, exchange.comparisons
        n = len(own)
        data = np.zeros((n, 2), np.uint64)
        for rows in rows_of(numbered(own.panel, own.column)):
            panel = own.panels[int(own.panel[rows[0]])]
            data[rows] = panel.contents_of(int(own.column[rows[0]]))[own.row[rows]]
        data_a, data_b = (_texts(side) for side in data.T)
        return replace(
            no_origins(n),
            seed=np.full(n, seed, np.int64),
            method=Coded.same(asked.method_and_limit, n),
            units=Coded.same(text_of(asked.units.content), n),
            data_a=data_a,
            data_b=data_b,
            code=Coded(own.metric, tuple(map(code_of, own.metrics))),
            version=Coded.same(version, n),
        )


def no_origins(n: int) -> Origins:
    """Return the columns of rows of which it is not known what they come from."""
    from sigdask.comparison.table import Coded

    texts = {f.name: Coded.same("", n) for f in fields(Origins) if f.name != "seed"}
    return Origins(seed=np.zeros(n, np.int64), **texts)


def _texts(bits: Hashes) -> Coded[str]:
    from sigdask.comparison.table import Coded

    distinct, places = np.unique(bits, return_inverse=True)
    return Coded(places.astype(np.int32), tuple(map(text_of, distinct.tolist())))


def with_families(table: Table, families: Sequence[tuple[str, tuple[int, ...], NDArray[np.int64]]]) -> Table:
    """Return a table whose adjusted p-values say of which family they are.

    Parameters
    ----------
    table : Table
        All results.
    families : sequence of (str, tuple of int, int64 array)
        Of each how p was adjusted, the trials (and resamples) of the family as a whole, and its rows.
    """
    from sigdask.comparison.table import Coded

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


def _hashes(table: Table, own: Origins) -> Hashes:
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
