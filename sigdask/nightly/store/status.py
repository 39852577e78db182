"""Reading a store from outside: a plan's progress, runs, results, changes and nights."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.errors import DamagedError, InputError
from sigdask.nightly.store import COMPLETE, PlanRun, open_for_reading, results, runs
from sigdask.nightly.store.results import NO_ROWS, Changes
from sigdask.nightly.store.runs import UNREADABLE
from sigdask.report.presentable import Results
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.record import list_dicts
from sigdask.results.table import Table
from sigdask.text import redact, to_plain


class ResultsBySet(UserDict[str, Any]):
    """Results of test sets by name, each built when it is first used, because a night of thousands prints few."""

    def __getitem__(self, name: str) -> Any:
        return self.data[name]()


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
    store : str
        Store from which it was read.
    """

    run: PlanRun
    table: Table
    results: Mapping[str, Results]
    n_incomplete: int
    before: int | None
    changes: Changes
    store: str

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


def apply_frame(frame: Mapping[str, Any], table: Table, store: str) -> Results:
    """Return results made of a table and of the values that `build_frame` returned, which a store had."""
    try:
        return Results.from_document(table, frame)
    except UNREADABLE as error:
        raise DamagedError(f"runs: results of a test set ({error})", redact(store)) from None


def list_runs(store: str, plan: str | None = None, limit: int | None = None) -> list[PlanRun]:
    """Return the runs of a plan, latest first, with the state "killed" if they are not over and have no driver."""
    with open_for_reading(store) as connection:
        return [
            run if run.is_over or runs.is_running(connection, run) else replace(run, state="killed")
            for run in islice(runs.iter_runs(connection, runs.find_plan(connection, plan)), limit)
        ]


def build_report(store: str, plan: str | None = None, number: int | None = None) -> PlanReport:
    """Return a plan's results after a given run or the latest that recorded results."""
    with open_for_reading(store) as connection:
        name = runs.find_plan(connection, plan)
        run = next(runs.iter_runs(connection, name, number), None)
        if number is None:
            run = next((recorded for recorded in runs.iter_runs(connection, name) if recorded.has_results), run)
        if run is None or number not in {None, run.number}:
            raise InputError(f"plan {name!r} has no run {number}", remedy="`sigdask history` lists its runs")
        previous = runs.find_previous_run(connection, run)
        before = None if previous is None else previous.number
        stored, find_held = results.read_history(connection, name, before or run.number, run.number)
        stored, held = stored.replace(alpha=run.details["settings"]["alpha"]), find_held(run.number)
        changes = results.find_changes(stored, find_held(before or run.number), held)
    table = stored.take(held)
    return PlanReport(
        run=run,
        table=table,
        results=group_by_set(run.details, table, store),
        n_incomplete=int((~table[COMPLETE]).sum()),
        before=before,
        changes=changes,
        store=store,
    )


def group_by_set(details: Mapping[str, Any], table: Table, store: str) -> ResultsBySet:
    """Return the results of each test set, in the order of the table, with all values from a run's record."""
    names = table.test_set.levels.tolist()
    order = np.argsort(table.test_set.codes, kind="stable")
    ends = np.searchsorted(table.test_set.codes[order], np.arange(len(names) + 1))
    rows = {name: order[ends[code] : ends[code + 1]] for code, name in enumerate(names)}
    shown = dict.fromkeys(table.test_set.tolist())
    frames = details.get("frames", {})

    def build_results(name: str) -> Results:
        return apply_frame(frames.get(name, details["settings"]), table.take(rows[name]), store)

    return ResultsBySet({name: cache(partial(build_results, name)) for name in shown})


Nights = tuple[list[int], dict[str, NDArray[np.float64]]]
"""Numbers of runs, and values of comparisons after each: arrays of shape (n_comparisons, n_runs), NaN for no result."""


def read_nights(store: str, run: PlanRun, table: Table, limit: int) -> Nights:
    """Return scores and p of comparisons after each run of a plan, up to a given one.

    Parameters
    ----------
    store : str
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
    with open_for_reading(store) as connection:
        earlier_runs = (earlier for earlier in runs.iter_runs(connection, run.plan, run.number) if earlier.has_results)
        numbers = [earlier.number for earlier in islice(earlier_runs, limit)][::-1]
        stored, find_held = results.read_history(connection, run.plan, numbers[0] if numbers else 0, run.number)
        p = np.where(np.isnan(stored.p_adjusted), stored.p_value, stored.p_adjusted)
        columns = {"score_a": stored.score_a, "score_b": stored.score_b, "p": p}
        series = {name: np.full((len(table), len(numbers)), np.nan) for name in columns}
        row_of_stored = results.find_rows(table, stored)
        for k, number in enumerate(numbers):
            held = find_held(number)
            held = held[row_of_stored[held] >= 0]
            for name, values in series.items():
                values[row_of_stored[held], k] = columns[name][held]
    return numbers, series
