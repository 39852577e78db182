"""Scores and p of some comparisons over the runs of a plan, read as columns from what each run kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sigdask.comparison.table import Table
from sigdask.store import history, reading
from sigdask.store.blocks import Block
from sigdask.store.columns import Name, columns_of, matches
from sigdask.store.history import Run
from sigdask.store.results import IDENTITY, identity_of, kept_blocks

MOST_RUNS = 30
"""Runs that are looked at; of more, the latest."""

NUMBERS: tuple[Name, ...] = tuple((name,) for name in ("score_a", "score_b", "p_value", "p_adjusted"))


@dataclass(frozen=True, slots=True, eq=False)
class Nights:
    """What runs found of some comparisons; arrays of shape (n_comparisons, n_runs), NaN where a run had none.

    Attributes
    ----------
    runs : tuple of Run
        The first one first; those that kept results.
    n_before : int
        Runs before these, which are left out.
    score_a, score_b, p_value, p_adjusted : float64 array
        As in `Table`.
    """

    runs: tuple[Run, ...]
    n_before: int
    score_a: NDArray[np.float64]
    score_b: NDArray[np.float64]
    p_value: NDArray[np.float64]
    p_adjusted: NDArray[np.float64]

    @property
    def p(self) -> NDArray[np.float64]:
        """The p of verdicts: adjusted, where it was."""
        return np.where(np.isnan(self.p_adjusted), self.p_value, self.p_adjusted)

    def take(self, rows: slice) -> Nights:
        """Return some comparisons."""
        return replace(self, **{name: getattr(self, name)[rows] for (name,) in NUMBERS})


def nights(store: str, run: Run, table: Table, most: int = MOST_RUNS) -> Nights:
    """Return what the runs of a plan, up to one of them, found of these comparisons.

    Parameters
    ----------
    store : str
        Where they are kept.
    run : Run
        The last one.
    table : Table
        Comparisons; those of earlier runs are found by test set, subset, unit, systems, metric and alternative.
    most : int
        Runs that are looked at.
    """
    with reading(store) as connection:
        every = [own for own in history.runs_of(connection, run.plan)[::-1] if own.number <= run.number and _kept(own)]
        shown = every[-most:]
        found = {name: np.full((len(table), len(shown)), np.nan) for (name,) in NUMBERS}
        if len(table) and shown:
            _fill(found, connection, run.plan, [own.number for own in shown], table)
    return Nights(tuple(shown), len(every) - len(shown), **found)


def _kept(run: Run) -> bool:
    """Say whether a run recorded what it found."""
    return "frames" in run.details


def _fill(
    found: dict[str, NDArray[np.float64]], connection: Connection, plan: str, runs: Sequence[int], table: Table
) -> None:
    asked = identity_of(columns_of(table))
    numbers = np.array(runs)
    held = f"AND since <= {runs[-1]} AND (until IS NULL OR until > {runs[0]})"
    for block in kept_blocks(connection, plan, held, {*IDENTITY, *NUMBERS}):
        row = matches(identity_of(block.columns), asked)
        own = np.flatnonzero(row >= 0)
        holds = _holds(block, row[own], numbers)
        for (name,) in NUMBERS:
            values = np.asarray(block.columns[name,], np.float64)[row[own], None]
            found[name][own] = np.where(holds, values, found[name][own])


def _holds(block: Block, rows: NDArray[np.int64], runs: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say after which runs some rows of a block held, shape (n_rows, n_runs)."""
    return np.asarray((block.since <= runs) & (runs < block.until[rows, None]))
