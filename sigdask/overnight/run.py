"""Run a plan: count what the store lacks, breadth first, and judge; whatever happens, what is kept stays."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask import addresses, clusters
from sigdask.api import Work, prepare
from sigdask.clusters import Cluster
from sigdask.counts import Counts
from sigdask.engine import Counted, Job, Progress, chosen, partition, run_tasks, seconds_per_trial, task_seconds
from sigdask.errors import ClusterLostError, InputError, SigdaskError, StoreError, TaskError, UnfinishedError
from sigdask.overnight.early import Early
from sigdask.overnight.ledger import Ledger, Line, Queue, breadth_first, trials_of
from sigdask.overnight.stop import DEADLINE, Stop, Stopped
from sigdask.plan import Plan, TestSet
from sigdask.questions import Cell, Wanted
from sigdask.results import Result, Results
from sigdask.shuffles import SCHEME
from sigdask.store import Progress as SetProgress
from sigdask.store import Recorded, Store, history, open_store
from sigdask.tallies import Tally

Note = Callable[[str], None]

FLUSH_SECONDS = 0.5
FLUSH_SHARE = 30
"""Keeping takes at most one part in this of the time, however many comparisons there are."""

SECONDS_A_RESULT = 2e-4
"""What judging and recording a comparison takes, on a slow day."""

MOST_REPORTED = 20_000
"""Results that are judged and reported when a signal says to stop: more would take too long."""

SECOND_LOOK = "second look:"

RECONNECT_SECONDS = 600.0
"""How long to look for a lost scheduler."""

START_SECONDS = 60.0
"""How long to try to start a cluster that has not worked yet in this run."""


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
        The store.
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
    """

    results: dict[str, Results]
    number: int
    where: str
    stopped: str
    n_counted: int
    n_changed: int
    second_looks: dict[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def exit_status(self) -> int:
        """0 when all is counted, else 3."""
        return UnfinishedError.exit_status if self.stopped or self.problems else 0


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Test sets that are judged together, and where their jobs stand among all.

    Attributes
    ----------
    names : tuple of str
        The test sets.
    work : Work
        What is counted and judged.
    set_of : int64 array, shape (n_results,)
        The test set of each result, a place in `names`.
    cells : list of tuple of (int, int, int)
        (job, row, column) of each result's counts, among all jobs.
    first_job : int
        Its first job.
    """

    names: tuple[str, ...]
    work: Work
    set_of: NDArray[np.int64]
    cells: list[tuple[Cell, ...]]
    first_job: int

    @staticmethod
    def of(names: tuple[str, ...], work: Work, first_job: int) -> _Part:
        sizes = [len(question.asking) for question in work.questions]
        cells = [tuple((first_job + job, row, column) for job, row, column in own) for own in work.cells]
        return _Part(names, work, np.repeat(np.arange(len(names)), sizes), cells, first_job)


def run_plan(
    plan: Plan,
    *,
    store: str | None = None,
    cluster: str | Cluster | Mapping[str, Any] | None = None,
    workers: int | None = None,
    deadline: float | None = None,
    progress: Progress | None = None,
    note: Note = lambda _: None,
) -> Outcome:
    """Count what a plan lacks and return its results. Again and again: the same counts as in one go.

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
        Called with trials done and trials in all.
    note : callable
        Told what the user should know while it runs.

    Raises
    ------
    HeldError
        Another driver is at work on this store.
    StoreError
        The store cannot be reached or written; what it has committed is intact.
    """
    stop = Stop(deadline)
    with stop.watching(), open_store(store or plan.store, plan.name, lambda: not stop.due()) as opened:
        for text in opened.notes:
            note(text)
        driver = _Driver(plan, opened, stop, progress, note)
        return driver.run(cluster if cluster is not None else plan.cluster, workers or plan.workers)


def kept(
    plan: Plan,
    store: Store,
    stop: Stop,
    cluster: str | Cluster | Mapping[str, Any] | None,
    workers: int | None,
) -> Callable[[Sequence[Job]], list[Tally]]:
    """Return what counts further jobs of a plan as its run does: what the store has is not counted again."""

    def count(jobs: Sequence[Job]) -> list[Tally]:
        driver = _Driver(plan, store, stop, None, lambda _: None)
        return driver.tallies(jobs, cluster if cluster is not None else plan.cluster, workers or plan.workers)

    return count


class _Driver:
    """One run of one plan."""

    early: Early | None = None
    watches: Sequence[_Watch] = ()

    def __init__(self, plan: Plan, store: Store, stop: Stop, progress: Progress | None, note: Note) -> None:
        self.plan, self.store, self.stop, self.progress, self.note = plan, store, stop, progress, note
        self.problems: list[str] = []
        self.n_counted = 0

    def run(self, cluster: str | Cluster | Mapping[str, Any], workers: int | None) -> Outcome:
        try:
            with self.stop.waiting():
                self.parts = self._read()
                self.ledger = Ledger(self.store, [job for part in self.parts for job in part.work.jobs])
                self.early = self._early()
        except Stopped:
            return Outcome({}, 0, self.store.where, self.stop.reason, 0, 0)
        self.watches = [_Watch.of(self.ledger, part, k) for part in self.parts for k in range(len(part.names))]
        details = {"versions": _versions(), "settings": _settings(self.plan), "inputs": _inputs(self.plan.test_sets)}
        number = self.store.begin(str(self.plan.path), details, [watch.now(self.ledger) for watch in self.watches])
        self.stop.leave(1 + SECONDS_A_RESULT * self.n_results)
        try:
            self._count(cluster, workers)
        except Stopped:
            self.note(f"stopping: {self.stop.reason}; what was counted is kept")
        except SigdaskError as error:
            with suppress(SigdaskError):
                self.store.end("failed", str(error), details)
            raise
        return self._finish(number, details)

    def tallies(
        self, jobs: Sequence[Job], cluster: str | Cluster | Mapping[str, Any], workers: int | None
    ) -> list[Tally]:
        """Count jobs that are no part of the plan's results."""
        self.ledger = Ledger(self.store, jobs)
        self._count(cluster, workers)
        if self.problems:
            raise UnfinishedError("; ".join(self.problems))
        return [self.ledger.tally(number) for number in range(len(jobs))]

    def _read(self) -> list[_Part]:
        """Read the test sets and list what they want counted; one part a family of test sets."""
        plan = self.plan
        addresses.look_in(plan.path.parent)
        asked = [(t.name, (counts, _wanted(plan, t, counts), t.alternative)) for t, counts in self._counts()]
        whole = plan.family == "plan" and plan.adjust != "none"
        groups = [asked] if whole else [[each] for each in asked]
        parts: list[_Part] = []
        n_jobs = 0
        for group in groups:
            work = prepare(
                [each for _, each in group],
                alpha=plan.alpha,
                adjust=plan.adjust,
                by_metric=plan.family == "metric",
                second_run=plan.second_run,
            )
            parts.append(_Part.of(tuple(name for name, _ in group), work, n_jobs))
            n_jobs += len(work.jobs)
        return parts

    def _early(self) -> Early | None:
        """Return where the plan's rule stops, if it has one."""
        if self.plan.stopping is None:
            return None
        cells = [
            (own[0], part.work.alternatives[number])
            for part in self.parts
            for own, number in zip(part.cells, part.set_of, strict=True)
            if not _enumerated(self.ledger, own[0])
        ]
        return Early(self.ledger, self.plan.stopping, cells)

    def _counts(self) -> Iterator[tuple[TestSet, Counts]]:
        for test_set in self.plan.test_sets:
            yield test_set, test_set.read()

    def _count(self, cluster: str | Cluster | Mapping[str, Any], workers: int | None) -> None:
        """Count what is missing: all at once, or with a rule to stop early one round after the other."""
        self.n_done = 0
        while True:
            if self.early is not None:
                self.early.look()
            lines = self.ledger.missing()
            if not lines:
                break
            self.n_all = self.n_done + trials_of(lines)
            self._count_lines(lines, cluster, workers)
            if self.early is None:
                return
        if self.early is not None:
            self.early.recall(self.store.results())
            with self.stop.waiting():
                self.early.find()

    def _count_lines(self, lines: list[Line], cluster: str | Cluster | Mapping[str, Any], workers: int | None) -> None:
        costs: dict[int, float] = {}
        lost_since = 0.0
        while lines := [line for line in lines if line.first < line.stop and not line.left_out]:
            self._measure(lines, costs)
            jobs, lines_of_jobs = breadth_first(lines)
            before = self.n_done
            try:
                self._count_on(cluster, workers, jobs, lines_of_jobs, [costs[id(job.panel)] for job in jobs])
            except ClusterLostError as error:
                lost_since = time.monotonic() if self.n_done > before or not lost_since else lost_since
                self._wait_for_cluster(error, lost_since)
            except TaskError as error:
                self._leave_out([lines_of_jobs[k] for k in error.jobs], str(error))
            except InputError:
                if not lost_since:
                    raise
                self._wait_for_cluster(ClusterLostError("the scheduler is not back yet"), lost_since)
            for line in lines:
                line.waiting.clear()

    def _measure(self, lines: Sequence[Line], costs: dict[int, float]) -> None:
        """Time a trial of each panel."""
        for line in lines:
            if id(line.panel) in costs:
                continue
            try:
                with self.stop.waiting():
                    costs[id(line.panel)] = seconds_per_trial(line.panel)
            except SigdaskError as error:
                costs[id(line.panel)] = math.inf
                self._leave_out([other for other in lines if other.panel is line.panel], str(error))

    def _count_on(
        self,
        cluster: str | Cluster | Mapping[str, Any],
        workers: int | None,
        jobs: Sequence[Job],
        lines: Sequence[Line],
        costs: Sequence[float],
    ) -> None:
        work = sum(cost * job.n_trials for cost, job in zip(costs, jobs, strict=True))
        if isinstance(cluster, Cluster):
            self._drain(cluster, jobs, lines, costs, work)
            return
        with ExitStack() as stack:
            with self.stop.waiting():  # a queue may let us wait for long
                connected = stack.enter_context(_connected(chosen(cluster, jobs, work), workers))
            self._drain(connected, jobs, lines, costs, work)

    def _drain(
        self, cluster: Cluster, jobs: Sequence[Job], lines: Sequence[Line], costs: Sequence[float], work: float
    ) -> None:
        """Take what is counted as it comes, and keep it twice a second or, where keeping takes long, less often."""
        tasks = partition(jobs, costs, task_seconds(work, cluster.n_threads))
        queue, found = Queue(lines), run_tasks(cluster, jobs, tasks)
        last, pause = time.monotonic(), FLUSH_SECONDS
        try:
            while True:
                with self.stop.waiting():
                    counted = next(found, None)
                if counted is None:
                    break
                self._take(queue, counted, lines)
                if time.monotonic() - last >= pause:
                    start = time.monotonic()
                    self._keep(queue)
                    last = time.monotonic()
                    pause = max(FLUSH_SECONDS, FLUSH_SHARE * (last - start))
        except StoreError:
            raise
        except BaseException:
            self._keep(queue)
            raise
        finally:
            found.close()  # type: ignore[attr-defined]
        self._keep(queue)

    def _take(self, queue: Queue, counted: Counted, lines: Sequence[Line]) -> None:
        for piece, tally in counted:
            if isinstance(tally, SigdaskError):
                self._leave_out([lines[piece.job]], str(tally))
            elif not lines[piece.job].left_out:
                queue.offer(piece, tally)

    def _leave_out(self, lines: Sequence[Line], why: str) -> None:
        """Go on without what cannot be counted."""
        for line in lines:
            line.left_out = True
            self.ledger.give_up(line)
        if why not in self.problems:
            self.problems.append(why)
            self.note(f"{why}; going on without it")

    def _keep(self, queue: Queue) -> None:
        """Commit what follows on what is kept."""
        taken = queue.take()
        if not taken:
            return
        for line, _, stop, tally in taken:
            self.ledger.add(line, stop, tally)
        touched = [(k, watch.now(self.ledger)) for k, watch in enumerate(self.watches)]
        self.store.commit([kept for each in taken for kept in self.ledger.take(*each)], touched)
        n = sum(tally.n_trials * len(line.places) for line, _, _, tally in taken)
        self.n_done += n
        self.n_counted += n
        if self.progress is not None:
            self.progress(self.n_done, self.n_all)

    def _wait_for_cluster(self, error: ClusterLostError, since: float) -> None:
        patience = RECONNECT_SECONDS if self.n_counted else START_SECONDS
        if time.monotonic() - since > patience:
            raise UnfinishedError(f"{error}; looked for it for {patience:.0f} s; what was counted is kept")
        self.note(f"{error}; going on from the store as soon as there is a cluster")
        self.stop.sleep(2.0)

    def _finish(self, number: int, details: dict[str, Any]) -> Outcome:
        """Judge what there is, and record it."""
        signalled = bool(self.stop.reason) and self.stop.reason != DEADLINE
        found: dict[str, tuple[Results, list[Recorded]]] = {}
        if self.n_results <= MOST_REPORTED or not signalled:
            if self.early is not None:
                self.early.look()
                self.early.recall(self.store.results())
            looks = self.store.first_looks()
            for part in self.parts:
                found |= self._judged(part, looks)
        recorded = [one for _, of_set in found.values() for one in of_set]
        n_changed = self.store.record(recorded) if found else 0
        again = {name: n for name, (_, own) in found.items() if (n := sum(map(_is_second_look, own)))}
        stopped = self.stop.reason if not self._is_complete() else ""
        state = "stopped" if stopped else "failed" if self.problems else "finished"
        by_set = {name: results for name, (results, _) in found.items()}
        frames = {name: history.frame(results) for name, results in by_set.items()}
        details = {**details, "second_looks": again, "frames": frames, "savings": self._savings()}
        self.store.end(state, stopped or "; ".join(self.problems), details)
        return Outcome(
            by_set, number, self.store.where, stopped, self.n_counted, n_changed, again, tuple(self.problems),
        )  # fmt: skip

    def _savings(self) -> dict[str, float]:
        """Return the share of the first run's trials, by test set, that stopping early left out."""
        early = self.early
        if early is None:
            return {}
        found: dict[str, set[int]] = {}
        for part in self.parts:
            for own, number in zip(part.cells, part.set_of, strict=True):
                if (k := early.number_of(own[0])) is not None:
                    found.setdefault(part.names[number], set()).add(k)
        return {name: early.saving_of(sorted(some)) for name, some in found.items()}

    @property
    def n_results(self) -> int:
        """Comparisons of all test sets."""
        return sum(len(part.cells) for part in self.parts)

    def _is_complete(self) -> bool:
        counted = all(p.finished == p.comparisons for p in (watch.now(self.ledger) for watch in self.watches))
        return counted and (self.early is None or self.early.is_settled)

    def _is_found(self, cell: Cell) -> bool:
        return self.early is None or self.early.is_found(cell)

    def _revision(self, part: _Part) -> Callable[[int, Result], Result]:
        """Return what the rule to stop early makes of a result."""
        early = self.early
        if early is None:
            return lambda _, result: result
        return lambda k, result: early.revised(result, part.cells[k][0])

    def _judged(self, part: _Part, looks: Mapping[str, int]) -> dict[str, tuple[Results, list[Recorded]]]:
        """Return the results of each test set, with what the store is to keep of them."""
        tallies = [self.ledger.tally(part.first_job + k) for k in range(len(part.work.jobs))]
        results = part.work.results(tallies, self._revision(part))
        by_set: list[list[Recorded]] = [[] for _ in part.names]
        for result, cells, number in zip(results, part.cells, part.set_of, strict=True):
            digest = self.ledger.digest(*cells[0])
            complete = all(self.ledger.is_complete(*place) for place in cells) and self._is_found(cells[0])
            by_set[number].append(Recorded(_with_look(result, looks.get(digest)), digest, complete))
        return {
            name: (replace(results, results=tuple(one.result for one in own)), own)
            for name, own in zip(part.names, by_set, strict=True)
        }


@contextmanager
def _connected(cluster: str | Mapping[str, Any], workers: int | None) -> Iterator[Cluster]:
    """Start or reach a cluster; one that fails to start, or to close, is a lost one."""
    try:
        with clusters.connect(cluster, workers=workers) as connected:
            yield connected
    except SigdaskError:
        raise
    except Exception as error:  # dask raises many kinds when its processes are killed as they start
        raise ClusterLostError(f"the cluster {cluster} failed: {type(error).__name__}: {error}") from error


def _with_look(result: Result, seen: int | None) -> Result:
    """Say where a p was had before with fewer trials."""
    if seen is None or seen >= result.n_trials or result.method == "exact" or result.stopped is not None:
        return result
    return replace(result, warnings=(*result.warnings, f"{SECOND_LOOK} p was first had with {seen:,} trials"))


def _enumerated(ledger: Ledger, cell: Cell) -> bool:
    return bool(getattr(ledger.jobs[cell[0]].panel, "enumerated", False))


def _is_second_look(one: Recorded) -> bool:
    return any(text.startswith(SECOND_LOOK) for text in one.result.warnings)


def _wanted(plan: Plan, test_set: TestSet, counts: Counts) -> Wanted:
    return Wanted(
        metrics=test_set.metrics or counts.suggested,
        pairs=test_set.pairs,
        baseline=test_set.baseline,
        levels=(test_set.unit,),
        by=test_set.by,
        method=test_set.method,
        trials=test_set.trials,
        seed=plan.seed,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Watch:
    """What a test set's progress is told by: the cells of its results, flat.

    Attributes
    ----------
    name : str
        The test set.
    n_results : int
        Comparisons.
    cells : mapping of run to (int64 arrays of comparisons, of trials wanted, of results)
        Where their counts stand in the ledger.
    first : int64 arrays
        Run, comparison of each result's p.
    kept : int
        Trials that the store had.
    """

    name: str
    n_results: int
    cells: dict[int, tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]
    first: tuple[NDArray[np.int64], NDArray[np.int64]]
    kept: int

    @staticmethod
    def of(ledger: Ledger, part: _Part, of_set: int) -> _Watch:
        own = np.flatnonzero(part.set_of == of_set)
        listed: dict[int, list[tuple[int, int, int]]] = {}
        first = []
        for number, k in enumerate(own):
            for job, row, column in part.cells[k]:
                place = int(ledger.at[job][row, column])
                listed.setdefault(ledger.jobs[job].run, []).append((place, ledger.jobs[job].n_trials, number))
            job, row, column = part.cells[k][0]
            first.append((ledger.jobs[job].run, int(ledger.at[job][row, column])))
        arrays = {run: np.array(rows, np.int64).T for run, rows in listed.items()}
        flat = {run: (rows[0], rows[1], rows[2]) for run, rows in arrays.items()}
        at = np.array(first, np.int64).reshape(-1, 2).T
        made = _Watch(part.names[of_set], len(own), flat, (at[0], at[1]), 0)
        return replace(made, kept=made.now(ledger).counted)

    def now(self, ledger: Ledger) -> SetProgress:
        done = wanted_all = 0
        finished = np.ones(self.n_results, np.bool_)
        for run, (places, wanted, results) in self.cells.items():
            wanted = np.minimum(wanted, ledger.limit[run][places])  # noqa: PLW2901  # less where a rule stopped
            have = np.minimum(ledger.n_trials[run][places], wanted)
            once = np.unique(places, return_index=True)[1]
            done, wanted_all = done + int(have[once].sum()), wanted_all + int(wanted[once].sum())
            finished[results[have < wanted]] = False
        runs, places = self.first
        reached = sum(int((ledger.n_trials[run][places[runs == run]] > 0).sum()) for run in self.cells)
        return SetProgress(
            self.name, self.n_results, reached, int(finished.sum()), self.kept, done - self.kept, wanted_all
        )


def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import version

    packages = {name: version(name) for name in ("sigdask", "numpy", "scipy", "numba", "dask", "distributed")}
    return {**packages, "python": platform.python_version(), "scheme": str(SCHEME)}


def _settings(plan: Plan) -> dict[str, Any]:
    return {"seed": plan.seed, "alpha": plan.alpha, "adjust": plan.adjust, "second_run": plan.second_run,
            "trials": {t.name: t.trials for t in plan.test_sets}}  # fmt: skip


def _inputs(test_sets: Sequence[TestSet]) -> dict[str, dict[str, str]]:
    """Return the digest of every file that was read."""
    return {t.name: {str(path): _sha256(path) for path in t.files()} for t in test_sets}


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
