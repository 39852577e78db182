"""Run a plan: count what the store lacks, judge the results, and write reports."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sigdask.analysis.comparison.pairs import look_up_numbers
from sigdask.analysis.comparison.study import judge_studies
from sigdask.analysis.details import ComparisonDetails, iter_units
from sigdask.counts.fields import Integers
from sigdask.errors import DamagedError, InputError, SigdaskError, UnfinishedError
from sigdask.execution import clusters
from sigdask.execution.clusters import Cluster, ClusterLike
from sigdask.execution.run import ClusterExtraction, Progress
from sigdask.interface import use_interface
from sigdask.metrics.extraction import ExtractionLog, StatisticsSource, get_user_cache
from sigdask.nightly.gate.rules import GateVerdict
from sigdask.nightly.plan import Plan, load_plan
from sigdask.nightly.report.site import update_site
from sigdask.nightly.report.text import write_files
from sigdask.nightly.run.count import DEADLINE, CountRunner, MessageCallback, StopRequest, StopSignal
from sigdask.nightly.run.gate import judge_night, withdraw_verdict
from sigdask.nightly.run.ledger import Ledger
from sigdask.nightly.run.work import (
    Batch,
    build_provenance,
    digest_inputs,
    find_kept_sets,
    hash_inputs,
    open_details,
    read_batches,
)
from sigdask.nightly.store import COMPARISON, COMPLETE, Store, open_store, status
from sigdask.nightly.store.results import find_first_looks
from sigdask.nightly.store.runs import SECONDS_PER_RESULT
from sigdask.nightly.store.status import PlanReport
from sigdask.nightly.test_sets import TestSet
from sigdask.randomization.slabs import Job
from sigdask.randomization.tallies import Tally
from sigdask.report.page.frame import format_path
from sigdask.report.presentable import Results
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.table import Table

MAX_REPORTED = 100_000
"""Maximum number of results that are still judged and reported after a signal to stop."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run.

    Attributes
    ----------
    number : int
        Number of the run in the store.
    where : str
        The store, for messages.
    stopped : str
        Why the run stopped early. Empty if it is finished.
    n_counted : int
        Trials that this run counted, of all comparisons.
    n_changed : int
        Number of results that are new or changed.
    results : mapping of str to Results
        Results by test set, as stored. Empty if they could not be computed.
    problems : tuple of str
        Descriptions of what could not be counted.
    report : PlanReport or None
        The results in the store, and their changes. None if there are no results.
    gate : GateVerdict or None
        Verdict of the gate. None if the plan has no gate, or if it was not judged.
    unjudged : SigdaskError or None
        Why the gate could not be judged, although all trials were counted.
    untold : tuple of str
        Files of the gate that could not be written, and a web hook that failed.
    unwritten : tuple of UnfinishedError
        Files of the plan's report that could not be written.
    page : Path or None
        The page with the plan's report.
    site : Path or None
        The first page of the site that was updated.
    n_exact : int
        Exact values computed now.
    """

    number: int
    where: str
    stopped: str = ""
    n_counted: int = 0
    n_changed: int = 0
    results: Mapping[str, Results] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    report: PlanReport | None = None
    gate: GateVerdict | None = None
    unjudged: SigdaskError | None = None
    untold: tuple[str, ...] = ()
    unwritten: tuple[UnfinishedError, ...] = ()
    page: Path | None = None
    site: Path | None = None
    n_exact: int = 0

    @property
    def exit_status(self) -> int:
        """0 when all is counted, judged and written; 1 when the gate failed; else the error's status."""
        if self.stopped or self.problems:
            return UnfinishedError.exit_status
        if self.unjudged is not None:
            return self.unjudged.exit_status
        if self.gate is not None and not self.gate.passed:
            return 1
        return UnfinishedError.exit_status if self.unwritten or self.untold else 0


@use_interface("plan")
def run_plan(
    plan: Plan | Path | str,
    *,
    store: str | None = None,
    cluster: ClusterLike | None = None,
    workers: int | None = None,
    deadline: float | None = None,
    progress: Progress | None = None,
    note: MessageCallback = lambda _: None,
    reread: bool = False,
) -> Outcome:
    """Run a plan: count the missing trials, compute the results, judge them by the gate and write the reports.

    If a run is interrupted and started again, the counts are the same as those of one run.

    Parameters
    ----------
    plan : Plan, Path or str
        A plan from `load_plan`, or its file.
    store : str, optional
        Path of a SQLite file, or URL of a database, to use instead of the plan's.
    cluster : str, distributed.Client or cluster object, optional
        Where trials are counted, as in `compare_all`. By default the plan's cluster.
    workers : int, optional
        Number of threads or processes to start. By default the plan's number.
    deadline : float, optional
        Time at which to stop, in seconds since 1970. The next run continues. By default all is counted.
    progress : callable, optional
        Called with the number of finished trials and the number of all trials. If it has a method `extracting`, this
        method is called with the progress of extraction.
    note : callable
        Called with each message for the user, a str. By default messages are not shown.
    reread : bool
        Read all files. By default test sets are not read if the sizes and times of their files are the same as in the
        latest run.

    Returns
    -------
    Outcome
        `results` has the `Results` of each test set, `gate` the verdict, and `exit_status` that of `sigdask run`.

    Raises
    ------
    InputError
        The plan has errors, the name of the cluster is unknown, or the data do not allow a requested analysis.
    HeldError
        Another run uses this store.
    StoreError
        The store cannot be reached or written. Data that were committed are intact.

    Examples
    --------
    >>> run_plan("night.toml").exit_status  # doctest: +SKIP
    0
    """
    if isinstance(plan, Path | str):
        plan = load_plan(plan)
    if not isinstance(plan, Plan):
        raise InputError(f"plan = {plan!r}: expected a plan or its file")
    target = cluster if cluster is not None else plan.cluster
    if not isinstance(target, Cluster):
        clusters.check_cluster(target)
    settings = _Settings(target, workers or plan.comparison["workers"], deadline, progress, note, reread)
    try:
        return _run_once(plan, store or plan.store, settings)
    except DamagedError as error:
        if not error.aside:
            raise
        note(str(error))
        return _run_once(plan, store or plan.store, settings)


class _Settings(NamedTuple):
    """How a plan is run, as in `run_plan`."""

    cluster: ClusterLike
    workers: int | None
    deadline: float | None
    progress: Progress | None
    note: MessageCallback
    reread: bool


def _run_once(plan: Plan, location: str, settings: _Settings) -> Outcome:
    """Run a plan with a store, unless that is damaged."""
    stop = StopSignal(settings.deadline)
    opened = open_store(
        location, plan.name, str(plan.path), details=build_provenance(plan), patient=lambda: not stop.is_due()
    )
    with stop.catch_signals(), opened as store:
        withdraw_verdict(plan)
        tell = getattr(settings.progress, "show_extraction", None) or ExtractionLog(settings.note)
        source = StatisticsSource(get_user_cache(), ClusterExtraction(settings.cluster, settings.workers), tell)
        try:
            with stop.interruptible():
                driver = _PlanRunner(plan, store, stop, source, settings)
            outcome = driver.run()
        except StopRequest:  # before anything was counted
            store.commit(state="stopped", message=stop.reason, ended=time.time())
            return Outcome(store.run.number, store.where, stop.reason)
        except SigdaskError as error:
            with suppress(SigdaskError):
                store.commit(state="failed", message=" ".join(str(error).split()), ended=time.time())
            raise
        if driver.table is not None:
            stop = StopSignal(settings.deadline)  # counting left some time before the deadline
            with stop.catch_signals():
                outcome = driver.judge_gate(outcome, driver.table, stop)
            outcome = write_reports(plan, store, outcome, driver.batches)
        failures = map(str, filter(None, (*outcome.untold, *outcome.unwritten, outcome.unjudged)))
        details = store.run.details | {"status": outcome.exit_status}
        store.commit(message=store.run.message or "; ".join(failures), details=details)
        return outcome


def write_reports(plan: Plan, store: Store, outcome: Outcome, batches: Sequence[Batch]) -> Outcome:
    """Write the plan's reports of a run; the batches have the data for pages and units."""
    report = status.build_report(store.location, plan.name, outcome.number)
    files = plan.report.fill_dates(datetime.fromtimestamp(report.run.started).astimezone())
    opened_details: tuple[ComparisonDetails, ...] = ()
    if ("html" in files.files or files.site is not None) and not outcome.stopped:
        opened_details = open_details(plan, batches, report, outcome.gate)
    analyses = [analysis for batch in batches for study in batch.studies for analysis in study.analyses]
    units = iter_units(analysis.main for analysis in analyses)
    problems = [*write_files(report, files, opened_details, units)]
    site: Path | None = None
    if files.site is not None:
        try:
            update_site(files.site, report, opened_details)
            site = files.site / "index.html"
        except (InputError, UnfinishedError) as error:
            problems.append(UnfinishedError(str(error)))
    return replace(
        outcome,
        results=report.results,
        report=report,
        unwritten=tuple(problems),
        page=page if (page := files.files.get("html")) is not None and page.exists() else None,
        site=site,
    )


class _PlanRunner:
    """One run of one plan, with its data, ledger, store and cluster."""

    def __init__(
        self, plan: Plan, store: Store, stop: StopSignal, source: StatisticsSource, settings: _Settings
    ) -> None:
        self.plan, self.store, self.stop, self.settings = plan, store, stop, settings
        self.states = digest_inputs(plan)  # before they are read
        self.kept = find_kept_sets(plan, store, {} if settings.reread else self.states)
        wanted = [test_set for test_set in plan.test_sets if test_set.name not in self.kept.inputs]
        self.batches, self.extracted = read_batches(plan, wanted, source)
        self.inputs = hash_inputs(plan, self.batches, self.kept.inputs)
        self.table: Table | None = None  # all results, once they are judged
        self.ledger = Ledger(store, [job for batch in self.batches for job in batch.jobs])

    @property
    def n_results(self) -> int:
        """Number of comparisons of all test sets."""
        return len(self.kept.table) + sum(map(len, self.batches))

    def run(self) -> Outcome:
        n_kept, n_wanted = self.ledger.sum_trials()
        self.store.commit(comparisons=self.n_results, kept=n_kept, wanted=n_wanted)
        self.stop.reserve_time(1 + SECONDS_PER_RESULT * self.n_results)
        counting = CountRunner(self.ledger, self.stop, self.settings.note, progress=self.settings.progress)
        try:
            counting.count(self.settings.cluster, self.settings.workers)
        except StopRequest:
            self.settings.note(f"stopping: {self.stop.reason}; all counts so far are stored")
        return self._finish(counting)

    def judge_gate(self, outcome: Outcome, table: Table, stop: StopSignal) -> Outcome:
        """Return the outcome with the verdict of the plan's gate, or with the reason why it was not judged."""
        if self.plan.gate is None:
            return outcome
        if outcome.stopped or outcome.problems:
            reason = f"stopped by {outcome.stopped}" if outcome.stopped else "; ".join(outcome.problems)
            return replace(outcome, unjudged=UnfinishedError(f"the gate was NOT JUDGED: {reason}"))

        def count(jobs: Sequence[Job]) -> list[Tally]:
            ledger = Ledger(self.store, jobs)
            counting = CountRunner(ledger, stop, lambda _: None, progress=self.settings.progress)
            counting.count(self.settings.cluster, self.settings.workers)
            if counting.problems:
                raise UnfinishedError("; ".join(counting.problems))
            return [ledger.build_tally(job) for job in jobs]

        counts = {name: set_counts for batch in self.batches for name, set_counts in batch.counts.items()}
        try:
            verdict, untold = judge_night(
                self.plan, self.store, table, counts, count=count, interruptible=stop.interruptible
            )
        except StopRequest:
            reason = f"stopped by {stop.reason} before the gate was judged; run it again: all results are stored"
            return replace(outcome, unjudged=UnfinishedError(reason))
        except SigdaskError as error:
            return replace(outcome, unjudged=error)
        return replace(outcome, gate=verdict, untold=tuple(untold))

    def _finish(self, counting: CountRunner) -> Outcome:
        """Compute results from the counted trials, and record them and how the run ended in the store."""
        is_counted = all((self.ledger.n_trials[run] >= n).all() for run, n in self.ledger.wanted.items())
        has_some = not self.stop.reason or is_counted or any(n.any() for n in self.ledger.n_trials.values())
        is_quick = self.n_results <= MAX_REPORTED or self.stop.reason in {"", DEADLINE}
        is_judged = has_some and (is_counted or is_quick)
        n_changed, frames, second_looks = 0, dict[str, Any](), dict[str, int]()
        if is_judged:
            looks = self.store.read(find_first_looks, self.plan.name, self.ledger.ids)
            frames, tables = {**self.kept.frames}, [self.kept.table]
            for batch in self.batches:
                table, results = self._judge_batch(batch, looks, counting)
                tables.append(table)
                frames |= zip(batch.counts, map(status.build_frame, results), strict=True)
            self.table = table = self._order_rows(Table.join(tables))
            n_changed = self.store.save_results(table)
            names = table.test_set.tolist()
            second_looks = dict(Counter(names[row] for row in np.flatnonzero(table.seen_with).tolist()))
        stopped = "" if is_counted else self.stop.reason
        state = "stopped" if stopped else "failed" if counting.problems else "finished"
        self.store.commit(
            state=state,
            message=stopped or "; ".join(counting.problems),
            ended=time.time(),
            details={
                **self.store.run.details,
                "inputs": self.inputs,
                "extracted": self.extracted,
                "second_looks": second_looks,
                "frames": {t.name: frames[t.name] for t in self.plan.test_sets if t.name in frames},
                "changed": n_changed,
                "states": {t.name: self.states[t.name] for t in self.plan.test_sets if self._is_known(t)},
            },
        )
        return Outcome(
            self.store.run.number, self.store.where, stopped, counting.n_counted, n_changed,
            problems=tuple(counting.problems), n_exact=counting.n_exact,
        )  # fmt: skip

    def _is_known(self, test_set: TestSet) -> bool:
        """Return whether results depend only on the files of the plan: then a later run need not read these."""
        files = self.inputs[test_set.name].keys()
        is_whole = test_set.name in self.states and files == {*map(format_path, test_set.list_files())}
        return is_whole and test_set.name not in self.extracted

    def _order_rows(self, table: Table) -> Table:
        """Return results in the order of the plan's test sets."""
        order = {test_set.name: k for k, test_set in enumerate(self.plan.test_sets)}
        numbers = np.array([order[name] for name in table.test_set.levels], np.int64)
        return table.take(np.argsort(numbers[table.test_set.codes], kind="stable"))

    def _judge_batch(
        self, batch: Batch, looks: Integers, counting: CountRunner
    ) -> tuple[Table, list[ComparisonResults]]:
        """Return the results of a batch in the form in which the store saves them, and those of each test set.

        `looks` are the fewest trials at which each comparison of the ledger had a complete result before. Results by a
        metric that fails are omitted. They still count in their family, with p = 1 or its bound.
        """
        failing: dict[str, str] = {}
        p_numbers = look_up_numbers(batch.cells, self.ledger.at, len(batch))
        tallies = {job: self.ledger.build_tally(job) for job in batch.jobs}
        table, results = judge_studies(batch.studies, tallies, failing.setdefault)
        for reason in failing.values():
            counting.add_problem(reason)
        complete = self.ledger.is_complete(batch.cells, len(batch))
        seen_trials = np.append(looks, 0)[p_numbers]
        is_again = (seen_trials > 0) & (seen_trials < table.n_trials) & ~table.is_exact
        table = table.replace(seen_with=np.where(is_again, seen_trials, 0))  # p was computed with fewer trials before
        table = table.replace(**{COMPARISON: np.append(self.ledger.ids, -1)[p_numbers], COMPLETE: complete})
        is_scored = ~(np.isnan(table.score_a) & table.metric.find(failing.__contains__))
        return table.take(np.flatnonzero(is_scored)), results
