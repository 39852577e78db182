"""Looking at a store from outside: how far a plan is, its runs, its results and what changed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from sigdask.comparison.found.result import Result
from sigdask.comparison.results import Results
from sigdask.errors import InputError
from sigdask.store import Recorded, Run, history, reading
from sigdask.store.lease import sign_of_life


@dataclass(frozen=True, slots=True)
class Status:
    """How far the latest run of a plan is.

    Attributes
    ----------
    run : Run
        As recorded, with the progress of each test set.
    is_alive : bool
        Whether its driver is at work.
    """

    run: Run
    is_alive: bool

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
        """Seconds until all is counted, at this rate; None where that cannot be told."""
        left = self.wanted - self.have
        return 0.0 if left <= 0 else left / self.rate if self.rate > 0 else None


@dataclass(frozen=True, slots=True)
class Change:
    """A result that is otherwise than before; None where there was or is none."""

    before: Recorded | None
    now: Recorded | None

    @property
    def result(self) -> Result:
        """The later one of the two."""
        found = self.now or self.before
        assert found is not None
        return found.result

    def kinds(self, alpha: float) -> tuple[str, ...]:
        """Say what is otherwise: new, gone, scores, gained, lost, p."""
        if self.before is None:
            return ("new", *(["gained"] if is_significant(self.result, alpha) else []))
        if self.now is None:
            return ("gone",)
        old, new = self.before.result, self.now.result
        found = []
        if (old.score_a, old.score_b) != (new.score_a, new.score_b):
            found.append("scores")
        was, is_ = (is_significant(r, alpha) for r in (old, new))
        if was != is_:
            found.append("gained" if is_ else "lost")
        if _counted(old) != _counted(new):
            found.append("p")
        return tuple(found) or ("details",)


@dataclass(frozen=True, slots=True)
class Report:
    """What a plan has found.

    Attributes
    ----------
    run : Run
        After which.
    results : dict of str to Results
        By test set.
    n_incomplete : int
        Results that lack some of their trials.
    before : int or None
        The run before.
    changes : tuple of Change
        Since then.
    """

    run: Run
    results: dict[str, Results]
    n_incomplete: int
    before: int | None
    changes: tuple[Change, ...]

    @property
    def alpha(self) -> float:
        """Level of the verdicts."""
        return float(self.run.details["settings"]["alpha"])


def _counted(r: Result) -> tuple[float | None, float | None, int]:
    """Return what was found of p; None of a rule that gives a decision and no p."""
    return None if math.isnan(r.p_value) else r.p_value, r.p_adjusted, r.n_trials


def is_significant(result: Result, alpha: float) -> bool:
    """Say whether p, adjusted where it is, is at most alpha."""
    if result.stopped is not None and result.p_adjusted is None:
        return bool(result.decision(alpha))
    p = result.p_value if result.p_adjusted is None else result.p_adjusted
    return bool(p <= alpha)


def status(store: str, plan: str | None = None) -> Status:
    """Return how far a plan is, from kept summaries: at once, however large it is."""
    with reading(store) as connection:
        name = history.plan_of(connection, plan)
        [run] = history.runs_of(connection, name, 1)
        return Status(run, _is_alive(connection, name, run))


def _is_alive(connection: Connection, name: str, latest: Run) -> bool:
    return latest.ended is None and sign_of_life(connection, ("", name), latest.host, latest.pid)


def runs(store: str, plan: str | None = None, most: int | None = None) -> list[tuple[Run, int]]:
    """Return the runs of a plan, the latest first, with the number of results that each changed."""
    with reading(store) as connection:
        name = history.plan_of(connection, plan)
        changed = history.n_changed(connection, name)
        found = history.runs_of(connection, name, most)
        alive = [k == 0 and _is_alive(connection, name, run) for k, run in enumerate(found)]
        told = [replace(run, state=Status(run, is_alive).state) for run, is_alive in zip(found, alive, strict=True)]
        return [(run, int(run.details.get("changed", changed.get(run.number, 0)))) for run in told]


def report(store: str, plan: str | None = None, number: int | None = None) -> Report:
    """Return what a plan has found, after its latest run or a given one."""
    with reading(store) as connection:
        name = history.plan_of(connection, plan)
        found = history.runs_of(connection, name)
        run = next((run for run in found if number in {None, run.number}), None)
        if run is None:
            raise InputError(f"plan {name!r} has no run {number}; its runs: {_listed(found)}")
        recorded = history.results_at(connection, name, run.number)
        before = history.run_before(connection, run)
        changed = [] if before is None else history.changes(connection, name, before, run.number)
    frames: dict[str, Any] = run.details.get("frames", {})
    by_set: dict[str, list[Result]] = {p.test_set: [] for p in run.progress}
    for one in recorded:
        by_set.setdefault(one.result.test_set, []).append(one.result)
    settings = run.details["settings"]
    empty = {"seed": settings["seed"], "alpha": settings["alpha"]}
    results = {k: history.framed(frames.get(k, empty), found) for k, found in by_set.items() if found}
    return Report(
        run, results, sum(not one.complete for one in recorded), before, tuple(Change(*pair) for pair in changed)
    )


def _listed(found: list[Run]) -> str:
    return f"{found[-1].number} to {found[0].number}" if len(found) > 1 else str(found[0].number)
