"""Results of runs. Each is stored once, for as many consecutive runs as it stays the same.

A block has the results that are new or different in one run. A row of it holds until a later run finds a different
result and records so (`ended`). So a night in which nothing changes adds only the row of its run, and a night in which
50 of 100,000 results change adds these 50.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from sigdask.nightly.store.columns import (
    COMPARISON,
    COMPLETE,
    NEVER_ENDED,
    ORIGINS,
    POSITION,
    STORE_COLUMNS,
    Columns,
    Integers,
    ResultBlock,
    are_equal,
    end_rows,
    iter_blocks,
    iter_packed_blocks,
    match_rows,
    save_blocks,
    seal_blocks,
    select_rows,
    unpack_block,
)
from sigdask.nightly.store.limits import expect_readable
from sigdask.results.columns import take_rows
from sigdask.results.table import Name, Table, count_rows, join_columns

Truths = NDArray[np.bool_]

LOOK_COLUMNS: tuple[Name, ...] = (COMPARISON, COMPLETE, ("exact",), ("n_trials",))

METRIC: Name = ("metric",)

IDENTITY: tuple[Name, ...] = (
    ("test_set",), ("subset",), ("unit",), ("a",), ("b",), ("metric",), ("alternative",)
)  # fmt: skip
"""Fields that identify a result from run to run. For the metric, this is its name."""

INDIRECT_INPUTS = ("adjust", "members", "family", "version")
"""Inputs of a result other than its own data and stream. A result remains valid if only these change."""

OUTCOME_COLUMNS: tuple[Name, ...] = tuple((name,) for name in (
    "complete", "score_a", "score_b", "difference", "n_items", "n_units", "n_discordant", "exact", "n_trials",
    "n_extreme", "p_value", "p_adjusted",
))  # fmt: skip
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


ResultChanges = tuple[Columns, Columns, Integers, Integers]
"""Results that differ between two runs: columns before, columns now, and the rows of each comparison in both.

A row is -1 if there is none. New or changed results come first, in order, then removed ones.
"""


def save_results(connection: Connection, plan: str, number: int, run_results: Sequence[StoredResults]) -> int:
    """Save a run's results; unchanged rows are kept. Return how many results are new, changed or gone."""
    current = join_columns(
        [{**r.table.columns_by_path(), COMPARISON: r.comparison, COMPLETE: r.complete} for r in run_results]
    )
    current[POSITION] = np.arange(count_rows(current))
    live = _LiveRows.from_blocks(list(iter_blocks(connection, plan, "AND until IS NULL")))
    # the earlier row that each row replaces
    predecessors = match_rows(select_identity(live.columns), select_identity(current))
    rows = np.flatnonzero(predecessors >= 0)
    unchanged_rows = rows[_is_unchanged(live.columns, current, predecessors[rows], rows)]
    is_changed = np.ones(count_rows(current), np.bool_)
    is_changed[unchanged_rows] = False
    is_ended = np.ones(count_rows(live.columns), np.bool_)
    is_ended[predecessors[unchanged_rows]] = False
    gone = np.flatnonzero(is_ended)
    for block, indices in _group_by_block(live, gone):
        end_rows(connection, number, block, live.row[gone[indices]])
    save_blocks(connection, plan, number, take_rows(current, np.flatnonzero(is_changed)))
    seal_blocks(connection, plan, number)
    return int(is_changed.sum()) + count_rows(live.columns) - len(rows)


def fetch_results_at(connection: Connection, plan: str, number: int | None) -> Columns:
    """Return the columns of results that were current after a run (None: those that are now), in order."""
    last_run = NEVER_ENDED - 1 if number is None else number
    condition = f"AND since <= {last_run} AND (until IS NULL OR until > {last_run})"
    return _join_in_order(
        select_rows(block.columns, block.until > last_run) for block in iter_blocks(connection, plan, condition)
    )


def fetch_current(connection: Connection, plan: str, alpha: float) -> StoredResults:
    """Return the current results, with their comparisons' numbers and whether they are complete."""
    columns = fetch_results_at(connection, plan, None)
    store_columns = [np.asarray(columns[name]) if columns else np.zeros(0, np.int64) for name in (COMPARISON, COMPLETE)]
    return StoredResults(build_results_table(columns, alpha), store_columns[0], store_columns[1].astype(np.bool_))


def find_changes(connection: Connection, plan: str, from_run: int, to_run: int) -> ResultChanges:
    """Return the results that differ after run `to_run` from those after `from_run`."""
    ended_blocks = f"SELECT block FROM ended WHERE run > {from_run} AND run <= {to_run}"  # noqa: S608  # integers
    condition = f"AND (since > {from_run} AND since <= {to_run} OR id IN ({ended_blocks}))"
    blocks = list(iter_blocks(connection, plan, condition))
    old_columns = _join_in_order(
        select_rows(b.columns, (b.until > from_run) & (b.until <= to_run)) for b in blocks if b.since <= from_run
    )
    new_columns = _join_in_order(
        select_rows(b.columns, b.until > to_run) for b in blocks if from_run < b.since <= to_run
    )
    predecessors = match_rows(select_identity(old_columns), select_identity(new_columns))
    rows = np.flatnonzero(predecessors >= 0)
    unchanged_rows = rows[_is_unchanged(old_columns, new_columns, predecessors[rows], rows)]  # may differ in between
    gone = np.setdiff1d(np.arange(count_rows(old_columns)), predecessors)
    changed_rows = np.setdiff1d(np.arange(count_rows(new_columns)), unchanged_rows)
    old_rows = np.concatenate([predecessors[changed_rows], gone])
    new_rows = np.concatenate([changed_rows, np.full(len(gone), -1)])
    return old_columns, new_columns, old_rows, new_rows


def find_unchanged(connection: Connection, plan: str, earlier_run: int) -> Columns:
    """Return the current results whose system outputs are the same as after an earlier run, in order.

    Outputs are identified by the digest of the counts' inputs, or by all numbers of the result if there is no digest.
    """
    old_columns, new_columns = (fetch_results_at(connection, plan, number) for number in (earlier_run, None))
    if not old_columns or not new_columns:
        return {}
    predecessors = match_rows(select_identity(old_columns), select_identity(new_columns))
    rows = np.flatnonzero(predecessors >= 0)
    old_rows = predecessors[rows]
    comparison = np.asarray(new_columns[COMPARISON])[rows]
    is_same = comparison == np.asarray(old_columns[COMPARISON])[old_rows]
    is_same &= (comparison >= 0) | are_equal(old_columns, new_columns, OUTCOME_COLUMNS, old_rows, rows)
    return take_rows(new_columns, rows[is_same])


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
            columns = unpack_block(row, LOOK_COLUMNS)
        comparison, complete, exact, n_trials = (np.asarray(columns[name]) for name in LOOK_COLUMNS)
        positions = np.searchsorted(distinct, comparison)
        is_look = complete & ~exact & np.isin(comparison, distinct)
        np.minimum.at(smallest, np.where(is_look, positions, len(distinct)), n_trials)
    return np.where(smallest == NEVER_ENDED, 0, smallest)[inverse]


def build_results_table(columns: Columns, alpha: float) -> Table:
    """Return results as a table, without the columns that only the store uses."""
    if not columns:
        return Table.build_empty(0, alpha=alpha)
    shown = {name: column for name, column in columns.items() if name not in STORE_COLUMNS}
    with expect_readable("found: columns of results"):
        return Table.from_paths(shown, alpha)


@dataclass(frozen=True, slots=True, eq=False)
class _LiveRows:
    """The current rows of a plan, with the block and the row in it of each: arrays of shape (n,)."""

    blocks: list[ResultBlock]
    columns: Columns
    block: Integers
    row: Integers

    @staticmethod
    def from_blocks(blocks: list[ResultBlock]) -> _LiveRows:
        masks = [block.until == NEVER_ENDED for block in blocks]
        sizes = [int(mask.sum()) for mask in masks]
        return _LiveRows(
            blocks,
            join_columns([select_rows(block.columns, mask) for block, mask in zip(blocks, masks, strict=True)]),
            np.repeat(np.arange(len(blocks)), sizes),
            np.concatenate([np.zeros(0, np.int64), *map(np.flatnonzero, masks)]),
        )


def _is_unchanged(old: Columns, new: Columns, old_rows: Integers, new_rows: Integers) -> Truths:
    """Return a mask of row pairs, an old and a new result each, that are the same.

    A result is the same if only its family or the program's version changed.
    """
    names = {*old, *new} - {POSITION} - {(*ORIGINS, name) for name in INDIRECT_INPUTS}
    return are_equal(old, new, names, old_rows, new_rows)


def select_identity(columns: Columns) -> Columns:
    """Return the columns that identify a comparison and match new results with old ones."""
    identity = {name: column for name, column in columns.items() if name in IDENTITY}
    metric: Any = identity.get(METRIC)
    return identity if metric is None else {**identity, METRIC: metric.map(lambda score: score.name)}


def _join_in_order(parts: Iterable[Columns]) -> Columns:
    columns = join_columns(list(parts))
    return take_rows(columns, np.argsort(np.asarray(columns[POSITION]), kind="stable")) if columns else {}


def _group_by_block(live: _LiveRows, rows: Integers) -> Iterator[tuple[ResultBlock, Integers]]:
    """Yield each block that holds some of the rows, with the indices in `rows` of those rows."""
    block_indices = live.block[rows]
    for k in np.unique(block_indices).tolist():
        yield live.blocks[k], np.flatnonzero(block_indices == k)
