"""Looking at a store from outside: how far a plan is, its runs, its results, what changed, and nights."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sigdask.errors import InputError
from sigdask.nightly.store import PlanRun, history, reading
from sigdask.nightly.store.blocks import COMPLETE, ResultBlock
from sigdask.nightly.store.columns import Name, columns_of, matches
from sigdask.nightly.store.lease import sign_of_life
from sigdask.nightly.store.results import (
    IDENTITY,
    ResultChanges,
    changes,
    identity_of,
    kept_blocks,
    n_changed,
    results_at,
    results_of,
)
from sigdask.report.presentable import Evaluation, Independences, Results
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.results.views import result_view


@dataclass(frozen=True, slots=True)
class Status:
    """How far the latest run of a plan is.

    Attributes
    ----------
    run : PlanRun
        As recorded, with the progress of each test set.
    is_alive : bool
        Whether its driver is at work.
    seconds_ago : float
        When the run last went on, before it was looked at.
    """

    run: PlanRun
    is_alive: bool
    seconds_ago: float = 0.0

    @property
    def state(self) -> str:
        """running, finished, stopped, failed, or killed: no end recorded and no sign of life."""
        return "killed" if self.run.state == "running" and not self.is_alive else self.run.state

    @property
    def have(self) -> int:
        """Trials that are kept, of those wanted."""
        return sum(p.kept + p.counted for p in self.run.progress)

    @property
    def wanted(self) -> int:
        """Trials that the plan wants."""
        return sum(p.wanted for p in self.run.progress)

    @property
    def rate(self) -> float:
        """Trials a second, of this run."""
        seconds = self.run.updated - self.run.started
        return sum(p.counted for p in self.run.progress) / seconds if seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds until all is counted, as the driver estimates; else at this rate; None where that is not known."""
        left = self.wanted - self.have
        if left <= 0:
            return 0.0
        if self.run.seconds_left is not None:
            return max(self.run.seconds_left - self.seconds_ago, 0.0)
        return left / self.rate if self.rate > 0 else None


@dataclass(frozen=True, slots=True)
class Change:
    """A result that is otherwise than before; None where there was or is none."""

    before: Result | None
    now: Result | None


KINDS = ("new", "gone", "scores", "gained", "lost", "p")
"""What may be otherwise: of what there was before scores, a significance gained or lost, p; else details."""


@dataclass(frozen=True, eq=False)
class Changes(Sequence[Change]):
    """Results that are otherwise than before: first those that there are now, in order, then those that are gone.

    Attributes
    ----------
    was, now : Table
        Results of before, and of now.
    before, after : int64 array, shape (n,)
        Rows of `was` and `now` that are of one comparison; -1 where there is none.
    """

    was: Table
    now: Table
    before: NDArray[np.int64]
    after: NDArray[np.int64]

    @staticmethod
    def of(changed: ResultChanges, alpha: float) -> Changes:
        """Judge what changed at a level."""
        was, now = (results_of(columns, alpha) for columns in (changed.was, changed.now))
        return Changes(was, now, changed.before, changed.after)

    def __len__(self) -> int:
        return len(self.before)

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Change]: ...
    def __getitem__(self, index: int | slice) -> Change | Sequence[Change]:
        if isinstance(index, slice):
            return [self[k] for k in range(len(self))[index]]
        row, after = int(self.before[index]), int(self.after[index])
        return Change(
            result_view(self.was, row) if row >= 0 else None, result_view(self.now, after) if after >= 0 else None
        )

    @property
    def sides(self) -> tuple[tuple[Table, NDArray[np.int64]], tuple[Table, NDArray[np.int64]]]:
        """The results of before and of now, each with the row of every change."""
        return (self.was, self.before), (self.now, self.after)

    @cached_property
    def marks(self) -> NDArray[np.bool_]:
        """Which of `KINDS` each is, shape (n, n_kinds)."""
        is_new, is_gone = self.before < 0, self.after < 0
        otherwise = ~is_new & ~is_gone
        was = is_significant(self.was)[self.before] & ~is_new if len(self.was) else np.zeros(len(self), np.bool_)
        now = is_significant(self.now)[self.after] & ~is_gone if len(self.now) else np.zeros(len(self), np.bool_)
        scores, p = (otherwise & self._differ(names) for names in (("score_a", "score_b"), COUNTED))
        gained, lost = now & ~was & ~is_gone, was & ~now & otherwise
        return np.column_stack([is_new, is_gone, scores, gained, lost, p])

    def _differ(self, names: Iterable[str]) -> NDArray[np.bool_]:
        differs = np.zeros(len(self), np.bool_)
        both = np.flatnonzero((self.before >= 0) & (self.after >= 0))
        for name in names:
            was, now = getattr(self.was, name)[self.before[both]], getattr(self.now, name)[self.after[both]]
            differs[both] |= (was != now) & ~(np.isnan(was) & np.isnan(now))
        return differs

    @cached_property
    def kinds(self) -> list[tuple[str, ...]]:
        """What is otherwise: new, gone, scores, gained, lost, p; else details."""
        distinct, place = np.unique(self.marks, axis=0, return_inverse=True)
        words = [tuple(kind for kind, is_so in zip(KINDS, row, strict=True) if is_so) for row in distinct]
        return [words[k] or ("details",) for k in place.ravel().tolist()]


COUNTED = ("p_value", "p_adjusted", "n_trials")
"""What was found of p; a rule that gives a decision gives none."""


def is_significant(table: Table) -> NDArray[np.bool_]:
    """Say of each row whether p, adjusted where it is, is at most alpha; of rules what they decide."""
    p = np.where(np.isnan(table.p_adjusted), table.p_value, table.p_adjusted)
    found = p <= table.alpha
    for stops in table.stops:
        ruled = (stops.n_asked > 0) & np.isnan(table.p_adjusted)
        found = np.where(ruled, table.decision == 1, found)
    return np.asarray(found)


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What a plan has found.

    Attributes
    ----------
    run : PlanRun
        After which.
    results : dict of str to Results
        By test set.
    n_incomplete : int
        Results that lack some of their trials.
    before : int or None
        The run before.
    changes : Changes
        Since then.
    evaluations : dict of str to Evaluation or Independences
        Of the plan's rankings of candidates and tests of independence, by name.
    store : str
        Where it was read.
    """

    run: PlanRun
    results: dict[str, Results]
    n_incomplete: int
    before: int | None
    changes: Changes
    evaluations: dict[str, Evaluation | Independences]
    store: str

    @property
    def alpha(self) -> float:
        """Level of the verdicts."""
        return float(self.run.details["settings"]["alpha"])


def status(store: str, plan: str | None = None) -> Status:
    """Return how far a plan is, from kept summaries: at once, however large it is."""
    with reading(store) as connection:
        name = history.plan_of(connection, plan)
        [run] = history.runs_of(connection, name, 1)
        return Status(run, _is_alive(connection, name, run), max(time.time() - run.updated, 0.0))


def _is_alive(connection: Connection, name: str, latest: PlanRun) -> bool:
    return latest.ended is None and sign_of_life(connection, ("", name), latest.host, latest.pid)


def runs(store: str, plan: str | None = None, most: int | None = None) -> list[tuple[PlanRun, int]]:
    """Return the runs of a plan, the latest first, with the number of results that each changed."""
    with reading(store) as connection:
        name = history.plan_of(connection, plan)
        changed = n_changed(connection, name)
        found = history.runs_of(connection, name, most)
        alive = [k == 0 and _is_alive(connection, name, run) for k, run in enumerate(found)]
        told = [replace(run, state=Status(run, is_alive).state) for run, is_alive in zip(found, alive, strict=True)]
        return [(run, int(run.details.get("changed", changed.get(run.number, 0)))) for run in told]


def report(store: str, plan: str | None = None, number: int | None = None) -> PlanReport:
    """Return what a plan has found, after its latest run or a given one."""
    with reading(store) as connection:
        name = history.plan_of(connection, plan)
        runs = history.runs_of(connection, name)
        run = next((run for run in runs if number in {None, run.number}), None)
        if run is None:
            raise InputError(f"plan {name!r} has no run {number}; its runs: {_listed(runs)}")
        if "settings" not in run.details:
            raise InputError(f"run {run.number} of plan {name!r}: its record was damaged; what it found cannot be told")
        columns = results_at(connection, name, run.number)
        before = history.run_before(connection, run)
        changed = ResultChanges({}, {}, NONE, NONE) if before is None else changes(connection, name, before, run.number)
    settings = run.details["settings"]
    alpha = float(settings["alpha"])
    found = results_of(columns, alpha)
    n_incomplete = int((~np.asarray(columns[COMPLETE])).sum()) if columns else 0
    beside = history.evaluations(runs, run.number)
    return PlanReport(run, _by_set(run, found), n_incomplete, before, Changes.of(changed, alpha), beside, store)


NONE = np.zeros(0, np.int64)


def _by_set(run: PlanRun, found: Table) -> dict[str, Results]:
    """Return the results of each test set, in the order in which the run had them."""
    frames: dict[str, Any] = run.details.get("frames", {})
    settings = run.details["settings"]
    empty = {"seed": settings["seed"], "alpha": settings["alpha"]}
    names = found.test_set.values
    listed = dict.fromkeys([*(p.test_set for p in run.progress), *names])
    rows = {name: np.flatnonzero(found.test_set.codes == names.index(name)) for name in listed if name in names}
    return {name: history.framed(frames.get(name, empty), found.take(own)) for name, own in rows.items() if len(own)}


def _listed(found: list[PlanRun]) -> str:
    return f"{found[-1].number} to {found[0].number}" if len(found) > 1 else str(found[0].number)


MOST_RUNS = 30
"""Runs that are looked at; of more, the latest."""

NUMBERS: tuple[Name, ...] = tuple((name,) for name in ("score_a", "score_b", "p_value", "p_adjusted"))


@dataclass(frozen=True, slots=True, eq=False)
class Nights:
    """What runs found of some comparisons; arrays of shape (n_comparisons, n_runs), NaN where a run had none.

    Attributes
    ----------
    runs : tuple of PlanRun
        The first one first; those that kept results.
    n_before : int
        Runs before these, which are left out.
    score_a, score_b, p_value, p_adjusted : float64 array
        As in `Table`.
    """

    runs: tuple[PlanRun, ...]
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


def nights(store: str, run: PlanRun, table: Table, most: int = MOST_RUNS) -> Nights:
    """Return what the runs of a plan, up to one of them, found of these comparisons.

    Parameters
    ----------
    store : str
        Where they are kept.
    run : PlanRun
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


def _kept(run: PlanRun) -> bool:
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


def _holds(block: ResultBlock, rows: NDArray[np.int64], runs: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say after which runs some rows of a block held, shape (n_rows, n_runs)."""
    return np.asarray((block.since <= runs) & (runs < block.until[rows, None]))
