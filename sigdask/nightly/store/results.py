"""What runs found, as long as it holds.

A block is what one run found new or otherwise; a row of it holds until a run finds otherwise, which then says
so beside the block (`ended`). So a night in which nothing changes adds one row of a run and nothing else, and
one in which fifty results of a hundred thousand change adds these fifty.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from sigdask.nightly.store import earlier
from sigdask.nightly.store.blocks import (
    COMPARISON,
    COMPLETE,
    HOLDS,
    OWN,
    POSITION,
    Integers,
    ResultBlock,
    blocks_of,
    end,
    keep,
    listed,
    seal_all,
)
from sigdask.nightly.store.columns import (
    ORIGINS,
    Columns,
    Name,
    columns_of,
    joined,
    matches,
    only,
    same,
    size_of,
    table_of,
    taken,
)
from sigdask.nightly.store.migrations import COLUMNAR, version_of
from sigdask.nightly.store.packing import packed, unpacked
from sigdask.results.columns.coded import Coded
from sigdask.results.rows import table_from_results
from sigdask.results.table import Table

Truths = NDArray[np.bool_]

LOOKS: tuple[Name, ...] = (COMPARISON, COMPLETE, ("exact",), ("n_trials",))

METRIC: Name = ("metric",)

IDENTITY: tuple[Name, ...] = tuple(
    (name,) for name in ("test_set", "subset", "unit", "a", "b", "metric", "alternative")
)
"""What makes a result the successor of another; of the metric its name."""

AROUND = ("adjust", "members", "family", "version")
"""What a result comes from beside its own data and stream: it holds as long as these alone are other ones."""

TOLD: tuple[Name, ...] = tuple(
    (name,)
    for name in (
        "complete", "score_a", "score_b", "difference", "n_items", "n_units", "n_discordant", "exact", "n_trials",
        "n_extreme", "p_value", "p_adjusted",
    )
)  # fmt: skip
"""By which results hold that versions kept whose notes were sentences."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredResults:
    """Results with what the store knows of them; arrays of shape (n,).

    Attributes
    ----------
    table : Table
        The results.
    comparison : int64
        What p was counted of, by its number in the store; -1 where that is not known.
    complete : bool
        Whether all trials asked for were counted.
    """

    table: Table
    comparison: Integers
    complete: Truths

    def __len__(self) -> int:
        return len(self.table)


@dataclass(frozen=True, slots=True, eq=False)
class ResultChanges:
    """Results that are otherwise than before: first those that there are now, in order, then those that are gone.

    Attributes
    ----------
    was, now : mapping of name to column
        Results of before, and of now.
    before, after : int64 array, shape (n,)
        Rows of `was` and `now` that are of one comparison; -1 where there is none.
    """

    was: Columns
    now: Columns
    before: Integers
    after: Integers


def record(connection: Connection, plan: str, number: int, found: Sequence[StoredResults]) -> int:
    """Keep what a run found: rows that hold stay, others end. Return how many are new, otherwise or gone."""
    now, live = _of_run(found), _LiveRows.of(list(kept_blocks(connection, plan, "AND until IS NULL")))
    before = matches(identity_of(live.columns), identity_of(now))  # of each row, the one that it succeeds
    rows = np.flatnonzero(before >= 0)
    old = before[rows]
    is_same = _same(live.columns, now, old, rows)
    is_retold = ~is_same & live.is_earlier[old] & same(live.columns, now, TOLD, old, rows)
    holds, otherwise = rows[is_same | is_retold], np.ones(size_of(now), np.bool_)
    otherwise[holds] = False
    ended = np.ones(size_of(live.columns), np.bool_)
    ended[before[holds]] = False
    gone = np.flatnonzero(ended)
    for block, which in _of_blocks(live, gone):
        end(connection, number, block, live.row[gone[which]])
    retold = _retell(connection, live, old[is_retold], taken(now, rows[is_retold]))
    keep(connection, plan, number, taken(now, np.flatnonzero(otherwise)))
    seal_all(connection, plan, number, retold)
    return int(otherwise.sum()) + size_of(live.columns) - len(rows)


def results_at(connection: Connection, plan: str, number: int | None) -> Columns:
    """Return the results that held after a run (None: that hold now), in order: the columns of a table, and `OWN`."""
    after = HOLDS - 1 if number is None else number
    holding = f"AND since <= {after} AND (until IS NULL OR until > {after})"
    return _in_order(only(block.columns, block.until > after) for block in kept_blocks(connection, plan, holding))


def found_at(connection: Connection, plan: str, alpha: float) -> StoredResults:
    """Return the results that hold now, with what the store knows of them."""
    columns = results_at(connection, plan, None)
    beside = [np.asarray(columns[name]) if columns else np.zeros(0, np.int64) for name in (COMPARISON, COMPLETE)]
    return StoredResults(results_of(columns, alpha), beside[0], beside[1].astype(np.bool_))


def changes(connection: Connection, plan: str, after: int, upto: int) -> ResultChanges:
    """Return the results that are otherwise after run `upto` than after run `after`."""
    ended = f"SELECT block FROM ended WHERE run > {after} AND run <= {upto}"  # noqa: S608  # integers
    touched = f"AND (since > {after} AND since <= {upto} OR id IN ({ended}))"
    blocks = list(kept_blocks(connection, plan, touched))
    was = _in_order(only(b.columns, (b.until > after) & (b.until <= upto)) for b in blocks if b.since <= after)
    now = _in_order(only(b.columns, b.until > upto) for b in blocks if after < b.since <= upto)
    before = matches(identity_of(was), identity_of(now))
    rows = np.flatnonzero(before >= 0)
    alike = rows[_same(was, now, before[rows], rows)]  # changed, and back
    gone = np.setdiff1d(np.arange(size_of(was)), before)
    new = np.setdiff1d(np.arange(size_of(now)), alike)
    return ResultChanges(was, now, np.concatenate([before[new], gone]), np.concatenate([new, np.full(len(gone), -1)]))


def unchanged(connection: Connection, plan: str, before: int) -> Columns:
    """Return the results that hold now whose p is of the same outputs as after run `before`, in order.

    The outputs are known by the digest of what was counted; where there is none, by all numbers that were found.
    """
    was, now = (results_at(connection, plan, number) for number in (before, None))
    if not was or not now:
        return {}
    of_now = matches(identity_of(was), identity_of(now))
    rows = np.flatnonzero(of_now >= 0)
    old = of_now[rows]
    comparison = np.asarray(now[COMPARISON])[rows]
    is_same = comparison == np.asarray(was[COMPARISON])[old]
    is_same &= (comparison >= 0) | same(was, now, TOLD, old, rows)
    return taken(now, rows[is_same])


def n_changed(connection: Connection, plan: str) -> dict[int, int]:
    """Return how many results each run found new or otherwise."""
    query = text("SELECT since, sum(n) FROM found WHERE plan = :plan GROUP BY since")
    return {int(row[0]): int(row[1]) for row in connection.execute(query, {"plan": plan})}


def first_looks(connection: Connection, plan: str, comparisons: Integers) -> Integers:
    """Return the smallest number of trials that a complete result of each comparison was had with, 0 where none was."""
    asked, place = np.unique(comparisons, return_inverse=True)
    least = np.full(len(asked) + 1, HOLDS)  # the last is that of all others
    for row in listed(connection, plan):
        own = unpacked(row["columns"], LOOKS)
        comparison, complete, exact, n_trials = (np.asarray(own[name]) for name in LOOKS)
        at = np.searchsorted(asked, comparison)
        is_look = complete & ~exact & np.isin(comparison, asked)
        np.minimum.at(least, np.where(is_look, at, len(asked)), n_trials)
    return np.where(least == HOLDS, 0, least)[place]


def results_of(columns: Columns, alpha: float) -> Table:
    """Return the table of results, without what stands beside it."""
    if not columns:
        return table_from_results([], alpha)
    return table_of({name: column for name, column in columns.items() if name not in OWN}, alpha)


@dataclass(frozen=True, slots=True, eq=False)
class _LiveRows:
    """Rows that hold, with where each stands: shape (n,)."""

    blocks: list[ResultBlock]
    columns: Columns
    block: Integers
    row: Integers
    is_earlier: Truths

    @staticmethod
    def of(blocks: list[ResultBlock]) -> _LiveRows:
        holds = [block.until == HOLDS for block in blocks]
        sizes = [int(own.sum()) for own in holds]
        return _LiveRows(
            blocks,
            joined([only(block.columns, own) for block, own in zip(blocks, holds, strict=True)]),
            np.repeat(np.arange(len(blocks)), sizes),
            np.concatenate([np.zeros(0, np.int64), *map(np.flatnonzero, holds)]),
            np.repeat(np.array([block.is_earlier for block in blocks], np.bool_), sizes),
        )


def _of_run(found: Sequence[StoredResults]) -> Columns:
    """Return the columns of all that a run found."""
    whole = joined([{**columns_of(one.table), COMPARISON: one.comparison, COMPLETE: one.complete} for one in found])
    return {**whole, POSITION: np.arange(size_of(whole))}


def _same(was: Columns, now: Columns, rows: Integers, others: Integers) -> Truths:
    """Say of results of before, and as many of now, whether they are the same.

    Others in its family, and another version that finds the same, leave a result as it is; so does that it is now
    known what it comes from, which earlier versions did not keep.
    """
    names = {*was, *now} - {POSITION} - {(*ORIGINS, name) for name in AROUND}
    of_origins = {name for name in names if name[: len(ORIGINS)] == ORIGINS}
    is_same = same(was, now, names - of_origins, rows, others)
    units: Any = was.get((*ORIGINS, "units"))
    if not of_origins or units is None:
        return is_same
    is_unknown = np.array([value == "" for value in units.values], np.bool_)[units.codes[rows]]
    return np.asarray(is_same & (is_unknown | same(was, now, of_origins, rows, others)))


def identity_of(columns: Columns) -> Columns:
    """Return what makes a result the successor of another."""
    found = {name: column for name, column in columns.items() if name in IDENTITY}
    metric: Any = found.get(METRIC)
    return (
        found
        if metric is None
        else {**found, METRIC: Coded(metric.codes, tuple(score.name for score in metric.values))}
    )


def _in_order(parts: Iterable[Columns]) -> Columns:
    whole = joined(list(parts))
    return taken(whole, np.argsort(np.asarray(whole[POSITION]), kind="stable")) if whole else {}


def kept_blocks(
    connection: Connection, plan: str, where: str, names: Container[Name] | None = None
) -> Iterator[ResultBlock]:
    """Return the blocks of a plan's results that a condition holds of, whichever version kept them."""
    if version_of(connection) < COLUMNAR:
        return earlier.blocks_of(connection, plan)
    return blocks_of(connection, plan, where, names)


def _of_blocks(live: _LiveRows, rows: Integers) -> Iterator[tuple[ResultBlock, Integers]]:
    """Yield the blocks that rows are of, with which of `rows` are."""
    of_rows = live.block[rows]
    for k in np.unique(of_rows).tolist():
        yield live.blocks[k], np.flatnonzero(of_rows == k)


def _retell(connection: Connection, live: _LiveRows, rows: Integers, columns: Columns) -> list[int]:
    """Put into blocks of an earlier version what is now found of rows that hold; return their numbers."""
    change = text("UPDATE found SET columns = :columns, earlier = :earlier WHERE id = :block")
    changed = []
    for block, which in _of_blocks(live, rows):
        changed.append(block.number)
        n, places = len(block.until), live.row[rows[which]]
        at = np.arange(n)
        at[places] = n + np.arange(len(places))
        whole = taken(joined([block.columns, taken(columns, which)]), at)
        is_earlier = (block.until == HOLDS).sum() > len(places)
        row = {"columns": packed(whole), "earlier": int(is_earlier), "block": block.number}
        connection.execute(change, row)
    return changed
