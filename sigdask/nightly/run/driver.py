"""Run a plan: count what the store lacks, breadth first, and judge; whatever happens, what is kept stays."""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.stopping.counted import MonitoredResults
from sigdask.analysis.comparison.stopping.early import EarlyStopping
from sigdask.errors import InputError, SigdaskError, UnfinishedError
from sigdask.execution import clusters
from sigdask.execution.clusters import Cluster, Where
from sigdask.execution.run import Progress
from sigdask.metrics.extraction import StatisticsSource
from sigdask.nightly.gate import GateVerdict
from sigdask.nightly.plan import Plan
from sigdask.nightly.report.text import write_files
from sigdask.nightly.run.candidate_rankings import PlanRankings, read_rankings
from sigdask.nightly.run.count import Counting, Note
from sigdask.nightly.run.details import opened_for
from sigdask.nightly.run.gate import judge_night
from sigdask.nightly.run.independence import PlanIndependence, read_tests
from sigdask.nightly.run.interrupt import DEADLINE, StopRequest, StopSignal
from sigdask.nightly.run.ledger import Ledger
from sigdask.nightly.run.progress import ProgressWatch
from sigdask.nightly.run.provenance import provenance
from sigdask.nightly.run.work import Batch, read_batches, source_of
from sigdask.nightly.store import Store, StoredResults, history, open_store, status
from sigdask.nightly.store.status import PlanReport
from sigdask.randomization.jobs import Job
from sigdask.randomization.tallies import Tally
from sigdask.report.presentable import Evaluation, Independences, Results, presented
from sigdask.results.table import Table

SECONDS_A_RESULT = 5e-5
"""What judging and recording a comparison takes, on a slow day."""

MOST_REPORTED = 100_000
"""Results that are judged and reported when a signal says to stop: more would take too long."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes
    ----------
    results : dict of str to Results
        By test set; empty where they could not be had.
    number : int
        Of the run in the store.
    where : str
        The store, for messages.
    location : str
        What opens it again; may hold a password.
    stopped : str
        Why it stopped before its end; empty when it is finished.
    n_counted : int
        Trials counted now, of all comparisons.
    n_changed : int
        Results that are new, or otherwise than before.
    second_looks : dict of str to int
        By test set: comparisons whose trials were raised after a result was had.
    problems : tuple of str
        What could not be counted.
    report : PlanReport or None
        The results and what changed, as the store has them; None where there are none.
    gate : GateVerdict or None
        How the plan's rules ended; None without a gate, or where it was not judged.
    unjudged : SigdaskError or None
        Why the gate of a run that counted all could not be judged.
    untold : tuple of str
        Files of the gate that could not be written, and who could not be told.
    unwritten : tuple of UnfinishedError
        Files of the plan's report that could not be written.
    evaluations : dict of str to Evaluation or Independences
        By name, of the plan's lists of candidates and tests of independence.
    """

    results: dict[str, Results]
    number: int
    where: str
    location: str = field(repr=False)
    stopped: str
    n_counted: int
    n_changed: int
    second_looks: dict[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    report: PlanReport | None = None
    gate: GateVerdict | None = None
    unjudged: SigdaskError | None = None
    untold: tuple[str, ...] = ()
    unwritten: tuple[UnfinishedError, ...] = ()
    evaluations: dict[str, Evaluation | Independences] = field(default_factory=dict)

    @property
    def exit_status(self) -> int:
        """0 when all is counted, judged and written; 1 when the gate failed; else as errors say."""
        if self.stopped or self.problems:
            return UnfinishedError.exit_status
        if self.unjudged is not None:
            return self.unjudged.exit_status
        if self.gate is not None and not self.gate.passed:
            return 1
        return UnfinishedError.exit_status if self.unwritten else 0


def run_plan(
    plan: Plan,
    *,
    store: str | None = None,
    cluster: Where | None = None,
    workers: int | None = None,
    deadline: float | None = None,
    progress: Progress | None = None,
    note: Note = lambda _: None,
) -> Outcome:
    """Count what a plan lacks, judge it, hold it against the plan's gate and write its reports, under one lease.

    Again and again: the same counts as in one go.

    Parameters
    ----------
    plan : Plan
        As `load_plan` returns it.
    store : str, optional
        Path of a SQLite file or URL, instead of the plan's.
    cluster, workers
        Instead of the plan's.
    deadline : float, optional
        When to stop, in seconds since 1970.
    progress : callable, optional
        Called with trials done and trials in all; its `extracting`, where it has one, with how far extraction is.
    note : callable
        Told what the user should know while it runs.

    Raises
    ------
    InputError
        The cluster is not understood, or something asked for cannot be had from the data.
    HeldError
        Another driver is at work on this store.
    StoreError
        The store cannot be reached or written; what it has committed is intact.
    """
    if not isinstance(plan, Plan):
        raise InputError(f"plan = {plan!r}: expected a plan, which load_plan makes of a file")
    where = cluster if cluster is not None else plan.cluster
    if not isinstance(where, Cluster):
        clusters.check(where)
    stop = StopSignal(deadline)
    with stop.watching(), open_store(store or plan.store, plan.name, lambda: not stop.due()) as opened:
        for text in opened.notes:
            note(text)
        try:
            with stop.waiting():
                source = source_of(opened, where, workers or plan.workers, progress, note)
                driver = _PlanRunner.of(plan, opened, stop, source)
        except StopRequest:
            return Outcome({}, 0, opened.where, opened.location, stop.reason, 0, 0)
        outcome = driver.run(where, workers or plan.workers, progress, note)
        if not outcome.results and not outcome.evaluations:
            return outcome
        stop = StopSignal(deadline)  # counting left some time before it
        with stop.watching():
            outcome = driver.held(outcome, stop, where, workers or plan.workers, progress)
        return driver.reported(outcome)


@dataclass(frozen=True, slots=True, eq=False)
class _PlanRunner:
    """One run of one plan: what it has read and wants, what the store has of it, and where a rule stops."""

    plan: Plan
    store: Store
    stop: StopSignal
    batches: list[Batch]
    beside: list[PlanRankings | PlanIndependence]
    ledger: Ledger
    early: EarlyStopping | None
    watches: list[ProgressWatch]
    extracted: dict[str, Any]

    @staticmethod
    def of(plan: Plan, store: Store, stop: StopSignal, source: StatisticsSource) -> _PlanRunner:
        batches, extracted = read_batches(plan, source)
        beside: list[PlanRankings | PlanIndependence] = [*read_rankings(plan), *read_tests(plan)]
        further = [job for one in beside for job in one.jobs]
        ledger = Ledger(store, [*(job for batch in batches for job in batch.study.jobs), *further])
        early = _early(plan, batches, ledger)
        watches = [ProgressWatch.of(ledger, batch, k) for batch in batches for k in range(len(batch.names))]
        watches += [one.watch(ledger) for one in beside]
        return _PlanRunner(
            plan, store, stop, batches, beside, ledger, early, ProgressWatch.all_of(watches, ledger), extracted
        )

    def run(self, cluster: Where, workers: int | None, progress: Progress | None, note: Note) -> Outcome:
        details = provenance(self.plan, {name: files for batch in self.batches for name, files in batch.files})
        if self.extracted:
            details["extracted"] = self.extracted
        number = self.store.begin(str(self.plan.path), details, [watch.now(self.ledger) for watch in self.watches])
        self.stop.leave(1 + SECONDS_A_RESULT * self.n_results)
        counting = Counting(self.ledger, self.stop, note, progress=progress, early=self.early, watches=self.watches)
        try:
            counting.count(cluster, workers)
        except StopRequest:
            note(f"stopping: {self.stop.reason}; what was counted is kept")
        except SigdaskError as error:
            self._fail(error, details)
            raise
        try:
            return self._finish(number, details, counting, (cluster, workers))
        except SigdaskError as error:
            self._fail(error, details)
            raise

    def held(
        self, outcome: Outcome, stop: StopSignal, cluster: Where, workers: int | None, progress: Progress | None
    ) -> Outcome:
        """Hold a run that counted all against the plan's gate; what that counts is kept as all else is."""
        if self.plan.gate is None or not outcome.results:
            return outcome
        if outcome.stopped or outcome.problems:
            why = f"stopped by {outcome.stopped}" if outcome.stopped else "; ".join(outcome.problems)
            return replace(outcome, unjudged=UnfinishedError(f"the gate was NOT JUDGED: {why}"))

        def count(jobs: Sequence[Job]) -> list[Tally]:
            ledger = Ledger(self.store, jobs)
            counting = Counting(ledger, stop, lambda _: None, progress=progress)
            counting.count(cluster, workers)
            if counting.problems:
                raise UnfinishedError("; ".join(counting.problems))
            return [ledger.tally(job) for job in jobs]

        found = Table.joined([results.table for results in outcome.results.values()])
        counts = {name: read for batch in self.batches for name, read in batch.counts.items()}
        try:
            verdict, untold = judge_night(
                self.plan, self.store, outcome.number, found, counts, count=count, waiting=stop.waiting
            )
        except StopRequest:
            why = f"stopped by {stop.reason} before the gate was judged; run it again: all results are kept"
            return replace(outcome, unjudged=UnfinishedError(why))
        except SigdaskError as error:
            return replace(outcome, unjudged=error)
        return replace(outcome, gate=verdict, untold=tuple(untold))

    def reported(self, outcome: Outcome) -> Outcome:
        """Write the plan's reports of a run."""
        found = status.report(self.store.location, self.plan.name, outcome.number)
        files = self.plan.report.at(datetime.fromtimestamp(found.run.started).astimezone())
        is_opened = (files.html is not None or files.figures is not None) and not outcome.stopped
        looked_into = opened_for(self.batches, found, outcome.gate) if is_opened else ()
        unwritten = tuple(
            write_files(
                found,
                **files.files,
                printed=files.printed,
                figures=files.figures,
                figure_format=files.figure_format,
                opened=looked_into,
            )
        )
        return replace(outcome, report=found, unwritten=unwritten)

    def _fail(self, error: SigdaskError, details: dict[str, Any]) -> None:
        with suppress(SigdaskError):
            self.store.end("failed", str(error), details)

    def _finish(
        self, number: int, details: dict[str, Any], counting: Counting, where: tuple[Where, int | None]
    ) -> Outcome:
        """Judge what there is, and record it."""
        signalled = bool(self.stop.reason) and self.stop.reason != DEADLINE
        by_set: dict[str, Results] = {}
        recorded: list[StoredResults] = []
        evaluations: dict[str, Evaluation | Independences] = {}
        if self.n_results <= MOST_REPORTED or not signalled:
            if self.early is not None:
                self.early.look()
                self.early.recall(*self.ledger.earlier(self.store.results(self.plan.alpha)))
            looks = self.store.first_looks(self.ledger.ids)
            for batch in self.batches:
                results, found = self._judged(batch, looks, counting)
                recorded.append(found)
                by_set |= _by_set(batch.names, results, found.table)
            evaluations = {one.asked.name: one.evaluation(self.ledger, *where) for one in self.beside}
        n_changed = self.store.record(recorded) if recorded else 0
        again = {name: n for name, own in by_set.items() if (n := int(np.count_nonzero(own.table.seen_with)))}
        stopped = self.stop.reason if not self._is_complete() else ""
        state = "stopped" if stopped else "failed" if counting.problems else "finished"
        frames = {name: history.frame(results) for name, results in by_set.items()}
        details = {**details, "second_looks": again, "frames": frames, "savings": self._savings(), "changed": n_changed}
        if evaluations:
            details |= self.store.evaluations(evaluations)
        progress = [watch.now(self.ledger) for watch in self.watches]
        self.store.end(state, stopped or "; ".join(counting.problems), details, progress)
        return Outcome(
            by_set, number, self.store.where, self.store.location, stopped, counting.n_counted, n_changed, again,
            tuple(counting.problems), evaluations=evaluations,
        )  # fmt: skip

    def _savings(self) -> dict[str, float]:
        """Return the share of the first run's trials, by test set, that stopping early left out."""
        early = self.early
        if early is None:
            return {}
        found: dict[str, float] = {}
        for batch in self.batches:
            number = early.numbers(self.ledger.spots(batch.study.jobs, batch.of_p).place)
            for k, name in enumerate(batch.names):
                some = np.unique(number[(batch.set_of == k) & (number >= 0)])
                if len(some):
                    found[name] = early.saving_of(some)
        return found

    @property
    def n_results(self) -> int:
        """Comparisons of all test sets."""
        return sum(len(batch) for batch in self.batches)

    def _is_complete(self) -> bool:
        counted = all(p.finished == p.comparisons for p in (watch.now(self.ledger) for watch in self.watches))
        return counted and (self.early is None or self.early.is_settled)

    def _judged(self, batch: Batch, looks: NDArray[np.int64], counting: Counting) -> tuple[Results, StoredResults]:
        """Return the results of a batch, and what the store is to keep of them.

        `looks` are the fewest trials that each comparison of the ledger had a complete result with before.
        Those by a metric that fails are left out; in their family they count as all do, with p = 1 or its bound.
        """
        failing: dict[str, str] = {}
        jobs, early = batch.study.jobs, self.early
        of_p = self.ledger.spots(jobs, batch.of_p)
        tallies = [self.ledger.tally(job) for job in jobs]
        revised = (lambda table: table) if early is None else (lambda table: early.revised(table, of_p.place))
        results = presented(batch.study.results(tallies, revised, failing.setdefault), Results)
        for why in failing.values():
            counting.miss(why)
        complete = np.logical_and.reduce(
            [self.ledger.is_complete(self.ledger.spots(jobs, standing)) for standing in batch.standings]
        )
        if early is not None:
            complete &= early.is_found(of_p.place)
        comparison, seen = (np.append(own, none)[of_p.place] for own, none in ((self.ledger.ids, -1), (looks, 0)))
        table = _with_looks(results.table, seen)
        scored = np.flatnonzero(~(np.isnan(table.score_a) & _of_metrics(table, failing)))
        return results, StoredResults(table.take(scored), comparison[scored], complete[scored])


def _by_set(names: Sequence[str], results: Results, table: Table) -> dict[str, Results]:
    """Return the results of each test set."""
    of_set = table.test_set
    codes = {name: code for code, name in enumerate(of_set.values)}
    return {
        name: replace(results, table=table.take(np.flatnonzero(of_set.codes == codes.get(name, -1)))) for name in names
    }


def _of_metrics(table: Table, names: Container[str]) -> NDArray[np.bool_]:
    """Say which rows are by some metrics."""
    return np.array([score.name in names for score in table.metric.values], np.bool_)[table.metric.codes]


def _early(plan: Plan, batches: Sequence[Batch], ledger: Ledger) -> EarlyStopping | None:
    """Return where the plan's rule stops, if it has one."""
    if plan.stopping is None:
        return None
    return EarlyStopping(ledger, plan.stopping, MonitoredResults.of(batch.study for batch in batches))


def _with_looks(table: Table, seen: NDArray[np.int64]) -> Table:
    """Say where a p was had before with fewer trials."""
    is_again = (seen > 0) & (seen < table.n_trials) & ~table.exact
    for stops in table.stops:
        is_again &= stops.n_asked == 0
    return replace(table, seen_with=np.where(is_again, seen, 0))
