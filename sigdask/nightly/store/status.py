"""Reading a store from outside: a plan's progress, runs, results, changes and nights."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sigdask.errors import DamagedError, InputError
from sigdask.nightly.store import COMPLETE, PlanRun, Store, is_running, open_for_reading, results, runs
from sigdask.nightly.store.database import describe_url, parse_url
from sigdask.nightly.store.results import NO_ROWS, Changes
from sigdask.nightly.store.runs import UNREADABLE
from sigdask.report.presentable import Results
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.record import list_dicts
from sigdask.results.table import Table
from sigdask.text import to_plain


class ResultsBySet(UserDict[str, Any]):
    """Results of test sets by name, each built when it is first used, because a night of thousands prints few."""

    def __getitem__(self, name: str) -> Results:
        value = self.data[name]
        results: Results = value if isinstance(value, Results) else value()
        self.data[name] = results
        return results


@dataclass(frozen=True, slots=True)
class PlanReport:
    """The results of a plan after a run.

    Attributes
    ----------
    run : PlanRun
        The run.
    table : Table
        The results of all test sets.
    results : mapping of str to Results
        By test set.
    n_incomplete : int
        Number of results that lack some of their trials.
    before : int or None
        Number of the latest earlier run that was not stopped.
    changes : Changes
        Changes since that run.
    store : str or Store
        Store from which it was read. During a run, the open store.
    """

    run: PlanRun
    table: Table
    results: Mapping[str, Results]
    n_incomplete: int
    before: int | None
    changes: Changes
    store: str | Store

    @property
    def alpha(self) -> float:
        """Level of the verdicts."""
        return float(self.run.details["settings"]["alpha"])

    @property
    def noted(self) -> dict[str, Results]:
        """Results without their rows, for test sets that have notes."""
        frames: dict[str, Any] = self.run.details.get("frames", {})
        return {
            name: apply_frame(frame, self.table.take(NO_ROWS), self.store)
            for name, frame in frames.items()
            if frame.get("notes")
        }


def build_frame(presentable: ComparisonResults) -> dict[str, Any]:
    """Return the contents of a test set's results other than the table, such as notes, as JSON values."""
    values = {name: getattr(presentable, name) for name in ("seed", "alpha", "family", "options")}
    return dict(to_plain(values | {"notes": list_dicts(presentable.notes)}, exact=True))


def apply_frame(frame: Mapping[str, Any], table: Table, store: str | Store) -> Results:
    """Return results made of a table and of the values that `build_frame` returned, which a store had."""
    try:
        return Results.from_document(table, frame)
    except UNREADABLE as error:
        where = store.where if isinstance(store, Store) else describe_url(parse_url(store))
        raise DamagedError(f"runs: results of a test set ({error})", where) from None


def read_status(store: str, plan: str | None = None) -> PlanRun:
    """Return a plan's latest run from stored summaries, which is fast for plans of any size."""
    return list_runs(store, plan, 1)[0]


def list_runs(store: str | Store, plan: str | None = None, limit: int | None = None) -> list[PlanRun]:
    """Return the runs of a plan, latest first, with the state "killed" if they have neither an end nor a driver."""
    with _connect(store) as connection:
        return [
            replace(run, state="killed") if run.state == "running" and not is_running(connection, run) else run
            for run in runs.list_runs(connection, runs.find_plan(connection, plan), limit)
        ]


def _connect(store: str | Store) -> AbstractContextManager[Connection]:
    """Return a connection to an open store, or to the one at a location."""
    return store.database.transaction() if isinstance(store, Store) else open_for_reading(store)


def build_report(store: str | Store, plan: str | None = None, number: int | None = None) -> PlanReport:
    """Return a plan's results after its latest run or a given one."""
    with _connect(store) as connection:
        name = runs.find_plan(connection, plan)
        run = next(iter(runs.list_runs(connection, name, 1, number)), None)
        if run is None:
            numbers = [str(plan_run.number) for plan_run in runs.list_runs(connection, name)]
            first_and_last = " to ".join(dict.fromkeys([numbers[-1], numbers[0]]))
            raise InputError(f"plan {name!r} has no run {number}; its runs: {first_and_last}")
        alpha = float(run.details["settings"]["alpha"])
        table = results.fetch_results(connection, name, run.number, alpha)
        previous = runs.find_previous_run(connection, run)
        changes = results.find_changes(connection, name, previous or run.number, run.number, alpha)
    return PlanReport(
        run=run,
        table=table,
        results=group_by_set(run.details, table, store),
        n_incomplete=int((~table[COMPLETE]).sum()),
        before=previous,
        changes=changes,
        store=store,
    )


def group_by_set(details: Mapping[str, Any], table: Table, store: str | Store) -> ResultsBySet:
    """Return the results of each test set, in the order of the table, with all values from a run's record."""
    names = table.test_set.levels.tolist()
    order = np.argsort(table.test_set.codes, kind="stable")
    ends = np.searchsorted(table.test_set.codes[order], np.arange(len(names) + 1))
    rows = {name: order[ends[code] : ends[code + 1]] for code, name in enumerate(names)}
    shown = dict.fromkeys(table.test_set.tolist())
    frames = details.get("frames", {})

    def build_results(name: str) -> Results:
        return apply_frame(frames.get(name, details["settings"]), table.take(rows[name]), store)

    return ResultsBySet({name: partial(build_results, name) for name in shown})


Nights = tuple[list[int], dict[str, NDArray[np.float64]]]
"""Numbers of runs, and values of comparisons after each: arrays of shape (n_comparisons, n_runs), NaN for no result."""


def read_nights(store: str | Store, run: PlanRun, table: Table, limit: int) -> Nights:
    """Return scores and p of comparisons after each run of a plan, up to a given one.

    Parameters
    ----------
    store : str or Store
        The store of the results.
    run : PlanRun
        The last run to include.
    table : Table
        Comparisons; those of earlier runs are found by test set, subset, unit, systems, metric and alternative.
    limit : int
        Maximum number of runs, the latest ones.

    Returns
    -------
    Nights
        Runs that recorded results, in ascending order; `score_a`, `score_b`, and `p`, adjusted if it is.
    """
    with _connect(store) as connection:
        listed = runs.list_runs(connection, run.plan)[::-1]
        numbers = [earlier.number for earlier in listed if earlier.number <= run.number and earlier.has_results]
        numbers = numbers[-limit:]
        names = ("score_a", "score_b", "p_value", "p_adjusted")
        series = results.fetch_series(connection, run.plan, numbers, table, names)
    p = np.where(np.isnan(series["p_adjusted"]), series["p_value"], series["p_adjusted"])
    return numbers, {"score_a": series["score_a"], "score_b": series["score_b"], "p": p}
