"""Results of runs. Each is stored once, for as many consecutive runs as it stays the same.

A block has the results that are new or different in one run. A row of it holds until a later run finds a different
result and records so (`ended`). So a night in which nothing changes adds only the row of its run, and a night in which
50 of 100,000 results change adds these 50.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from sigdask.nightly.store.columns import (
    COMPARISON,
    COMPLETE,
    NEVER_ENDED,
    POSITION,
    Integers,
    ResultBlock,
    are_equal,
    end_rows,
    iter_blocks,
    iter_packed_blocks,
    match_rows,
    save_blocks,
    seal_blocks,
    unpack_block,
)
from sigdask.nightly.store.limits import expect_readable
from sigdask.results.table import Table

Truths = NDArray[np.bool_]

INDIRECT = (POSITION, *(f"origins.{name}" for name in ("adjust", "members", "family", "version")))
"""Columns other than a result's own data and stream. A result remains valid if only these change."""

OUTCOME_COLUMNS = (
    COMPLETE, "score_a", "score_b", "difference", "n_items", "n_units", "n_discordant", "is_exact", "n_trials",
    "n_extreme", "p_value", "p_adjusted",
)  # fmt: skip
"""Columns that decide whether the outputs of results without digests changed."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredResults:
    """Results with their comparisons' numbers in the store and whether they are complete; arrays of shape (n,).

    Attributes
    ----------
    table : Table
        The results.
    comparison : int64
        Number in the store of the comparison that gives p, or -1 if unknown.
    complete : bool
        Whether all requested trials were counted.
    """

    table: Table
    comparison: Integers
    complete: Truths

    def __len__(self) -> int:
        return len(self.table)

    def take(self, rows: Integers) -> StoredResults:
        """Return some of the results."""
        return StoredResults(self.table.take(rows), self.comparison[rows], self.complete[rows])


ResultChanges = tuple[Table, Table, Integers, Integers]
"""Results that differ between two runs: those before, those now, and the rows of each comparison in both.

A row is -1 if there is none. New or changed results come first, in order, then removed ones.
"""


def save_results(connection: Connection, plan: str, number: int, run_results: Sequence[StoredResults]) -> int:
    """Save a run's results; unchanged rows are kept. Return how many results are new, changed or gone."""
    tables = [r.table.replace(**{COMPARISON: r.comparison, COMPLETE: r.complete}) for r in run_results]
    current = _join(tables)
    current = current.replace(**{POSITION: np.arange(len(current))})
    live = _LiveRows.from_blocks(list(iter_blocks(connection, plan, "AND until IS NULL")))
    predecessors = match_rows(live.table, current)  # the earlier row that each row replaces
    rows = np.flatnonzero(predecessors >= 0)
    unchanged_rows = rows[_is_unchanged(live.table, current, predecessors[rows], rows)]
    is_changed = np.ones(len(current), np.bool_)
    is_changed[unchanged_rows] = False
    is_ended = np.ones(len(live.table), np.bool_)
    is_ended[predecessors[unchanged_rows]] = False
    gone = np.flatnonzero(is_ended)
    for block, indices in _group_by_block(live, gone):
        end_rows(connection, number, block, live.row[gone[indices]])
    save_blocks(connection, plan, number, current.take(np.flatnonzero(is_changed)))
    seal_blocks(connection, plan, number)
    return int(is_changed.sum()) + len(live.table) - len(rows)


def fetch_results_at(connection: Connection, plan: str, number: int | None, alpha: float = np.nan) -> Table:
    """Return the results that were current after a run (None: those that are now), in order, with a level."""
    last_run = NEVER_ENDED - 1 if number is None else number
    condition = f"AND since <= {last_run} AND (until IS NULL OR until > {last_run})"
    blocks = iter_blocks(connection, plan, condition)
    return _join_in_order((_select(block.table, block.until > last_run) for block in blocks), alpha)


def fetch_current(connection: Connection, plan: str, alpha: float) -> StoredResults:
    """Return the current results, with their comparisons' numbers and whether they are complete."""
    table = fetch_results_at(connection, plan, None, alpha)
    return StoredResults(table, table[COMPARISON], table[COMPLETE])


def find_changes(connection: Connection, plan: str, from_run: int, to_run: int, alpha: float = np.nan) -> ResultChanges:
    """Return the results that differ after run `to_run` from those after `from_run`."""
    ended_blocks = f"SELECT block FROM ended WHERE run > {from_run} AND run <= {to_run}"  # noqa: S608  # integers
    condition = f"AND (since > {from_run} AND since <= {to_run} OR id IN ({ended_blocks}))"
    blocks = list(iter_blocks(connection, plan, condition))
    former = (_select(b.table, (b.until > from_run) & (b.until <= to_run)) for b in blocks if b.since <= from_run)
    latter = (_select(b.table, b.until > to_run) for b in blocks if from_run < b.since <= to_run)
    old, new = _join_in_order(former, alpha), _join_in_order(latter, alpha)
    predecessors = match_rows(old, new)
    rows = np.flatnonzero(predecessors >= 0)
    unchanged_rows = rows[_is_unchanged(old, new, predecessors[rows], rows)]  # may differ in between
    gone = np.setdiff1d(np.arange(len(old)), predecessors)
    changed_rows = np.setdiff1d(np.arange(len(new)), unchanged_rows)
    old_rows = np.concatenate([predecessors[changed_rows], gone])
    new_rows = np.concatenate([changed_rows, np.full(len(gone), -1)])
    return old, new, old_rows, new_rows


def find_unchanged(connection: Connection, plan: str, earlier_run: int) -> Table:
    """Return the current results whose system outputs are the same as after an earlier run, in order.

    Outputs are identified by the digest of the counts' inputs, or by all numbers of the result if there is no digest.
    """
    old, new = (fetch_results_at(connection, plan, number) for number in (earlier_run, None))
    predecessors = match_rows(old, new)
    rows = np.flatnonzero(predecessors >= 0)
    old_rows, comparison = predecessors[rows], new[COMPARISON][rows]
    is_same = comparison == old[COMPARISON][old_rows]
    is_same &= (comparison >= 0) | are_equal(old, new, OUTCOME_COLUMNS, old_rows, rows)
    return new.take(rows[is_same])


def count_changed(connection: Connection, plan: str) -> dict[int, int]:
    """Return, for each run, how many results were new or changed."""
    query = text("SELECT since, sum(n) FROM found WHERE plan = :plan GROUP BY since")
    return {int(row[0]): int(row[1]) for row in connection.execute(query, {"plan": plan})}


def find_first_looks(connection: Connection, plan: str, comparisons: Integers) -> Integers:
    """Return, for each comparison, the fewest trials at which a complete result was recorded, or 0."""
    distinct, inverse = np.unique(comparisons, return_inverse=True)
    smallest = np.full(len(distinct) + 1, NEVER_ENDED)  # the last is for all others
    for row in iter_packed_blocks(connection, plan):
        with expect_readable(f"found: block {row['id']} of results"):
            table = unpack_block(row)
        positions = np.searchsorted(distinct, table[COMPARISON])
        is_look = table[COMPLETE] & ~table.exact & np.isin(table[COMPARISON], distinct)
        np.minimum.at(smallest, np.where(is_look, positions, len(distinct)), table.n_trials)
    return np.where(smallest == NEVER_ENDED, 0, smallest)[inverse]


@dataclass(frozen=True, slots=True, eq=False)
class _LiveRows:
    """The current rows of a plan, with the block and the row in it of each: arrays of shape (n,)."""

    blocks: list[ResultBlock]
    table: Table
    block: Integers
    row: Integers

    @staticmethod
    def from_blocks(blocks: list[ResultBlock]) -> _LiveRows:
        masks = [block.until == NEVER_ENDED for block in blocks]
        sizes = [int(mask.sum()) for mask in masks]
        return _LiveRows(
            blocks,
            _join([_select(block.table, mask) for block, mask in zip(blocks, masks, strict=True)]),
            np.repeat(np.arange(len(blocks)), sizes),
            np.concatenate([np.zeros(0, np.int64), *map(np.flatnonzero, masks)]),
        )


def _is_unchanged(old: Table, new: Table, old_rows: Integers, new_rows: Integers) -> Truths:
    """Return a mask of row pairs, an old and a new result each, that are the same.

    A result is the same if only its family or the program's version changed.
    """
    names = {*old.data.column_names, *new.data.column_names}.difference(INDIRECT)
    return are_equal(old, new, names, old_rows, new_rows)


def _select(table: Table, mask: Truths) -> Table:
    return table if mask.all() else table.take(np.flatnonzero(mask))


def _join(tables: list[Table]) -> Table:
    return Table.join(tables or [Table.build_empty()])


def _join_in_order(parts: Iterable[Table], alpha: float) -> Table:
    table = _join(list(parts))
    return table.take(np.argsort(table[POSITION], kind="stable")).replace(alpha=alpha)


def _group_by_block(live: _LiveRows, rows: Integers) -> Iterator[tuple[ResultBlock, Integers]]:
    """Yield each block that holds some of the rows, with the indices in `rows` of those rows."""
    block_indices = live.block[rows]
    for k in np.unique(block_indices).tolist():
        yield live.blocks[k], np.flatnonzero(block_indices == k)
