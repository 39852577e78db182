"""Count what a ledger lacks, breadth first, and commit it as it comes, through lost clusters and failing tasks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from sigdask.analysis.comparison.stopping.early import EarlyStopping
from sigdask.errors import ClusterLostError, InputError, SigdaskError, StoreError, TaskError, UnfinishedError
from sigdask.execution import clusters, prefetch
from sigdask.execution.clusters import Cluster, Where
from sigdask.execution.run import Counted, Progress, chosen, run_tasks
from sigdask.execution.tasks import partition, seconds_per_trial, task_seconds
from sigdask.nightly.run.interrupt import StopSignal
from sigdask.nightly.run.ledger import CommitQueue, Ledger, LedgerEntry, breadth_first, trials_of
from sigdask.nightly.run.progress import ProgressWatch
from sigdask.randomization.jobs import Job

Note = Callable[[str], None]

FLUSH_SECONDS = 0.5
FLUSH_SHARE = 30
"""Keeping takes at most one part in this of the time, however many comparisons there are."""

RECONNECT_SECONDS = 600.0
"""How long to look for a lost scheduler."""

START_SECONDS = 60.0
"""How long to try to start a cluster that has not worked yet in this run."""


class Counting:
    """The counting of a ledger: how much was counted, and what could not be.

    Attributes
    ----------
    ledger : Ledger
        What is wanted, and what its store has.
    stop : StopSignal
        Raises where it is time to stop.
    early : EarlyStopping, optional
        A rule that stops comparisons before their trials are counted.
    watches : sequence of ProgressWatch
        Kept in the store with each commit.
    n_counted : int
        Trials committed, of all comparisons.
    problems : list of str
        What could not be counted.
    """

    def __init__(
        self,
        ledger: Ledger,
        stop: StopSignal,
        note: Note,
        *,
        progress: Progress | None = None,
        early: EarlyStopping | None = None,
        watches: Sequence[ProgressWatch] = (),
    ) -> None:
        self.ledger, self.stop, self.note, self.progress = ledger, stop, note, progress
        self.early, self.watches = early, watches
        self.n_counted = self.n_done = self.n_all = 0
        self._pace: prefetch.CountingPace | None = None
        self.problems: list[str] = []

    def count(self, cluster: Where, workers: int | None) -> None:
        """Count what is missing: all at once, or with a rule to stop early one round after the other."""
        while True:
            if self.early is not None:
                self.early.look()
            lines = self.ledger.missing()
            if not lines:
                break
            self.n_all = self.n_done + trials_of(lines)
            self._count_lines(lines, cluster, workers)
            if not self.ledger.take_beyond_gaps() and self.early is None:
                return
        if self.early is not None:
            self.early.recall(*self.ledger.earlier(self.ledger.store.results()))
            with self.stop.waiting():
                self.early.find()

    def _count_lines(self, lines: list[LedgerEntry], cluster: Where, workers: int | None) -> None:
        costs: dict[int, float] = {}
        lost_since = 0.0
        while lines := [line for line in lines if line.first < line.stop and not line.left_out]:
            self._measure(lines, costs)
            jobs, lines_of_jobs = breadth_first(lines)
            if not jobs:  # all were left out: nothing to start a cluster for
                return
            before = self.n_done
            try:
                self._count_on(cluster, workers, jobs, lines_of_jobs, [costs[id(job.panel)] for job in jobs])
            except ClusterLostError as error:
                if clusters.is_gone(cluster):
                    raise UnfinishedError(f"{error}; what was counted is kept") from None
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

    def _measure(self, lines: Sequence[LedgerEntry], costs: dict[int, float]) -> None:
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
        cluster: Where,
        workers: int | None,
        jobs: Sequence[Job],
        lines: Sequence[LedgerEntry],
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
        self, cluster: Cluster, jobs: Sequence[Job], lines: Sequence[LedgerEntry], costs: Sequence[float], work: float
    ) -> None:
        """Take what is counted as it comes, and keep it twice a second or, where keeping takes long, less often."""
        pace = prefetch.tell(self.progress, jobs, costs, cluster.n_threads)
        if self.early is None:  # else it is of one round alone
            self._pace = pace
            self.ledger.store.commit((), (), pace.seconds_left)
        tasks = partition(jobs, costs, task_seconds(work, cluster.n_threads))
        queue, found = CommitQueue(lines), run_tasks(cluster, jobs, tasks)
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

    def _take(self, queue: CommitQueue, counted: Counted, lines: Sequence[LedgerEntry]) -> None:
        for trials, tally in counted:
            if isinstance(tally, SigdaskError):
                self._leave_out([lines[trials.job]], str(tally))
            elif not lines[trials.job].left_out:
                queue.offer(trials, tally)
                if self._pace is not None:
                    self._pace.count(trials.job, trials.n_trials)

    def _leave_out(self, lines: Sequence[LedgerEntry], why: str) -> None:
        """Go on without what cannot be counted."""
        for line in lines:
            line.left_out = True
            self.ledger.give_up(line)
        self.miss(why)

    def miss(self, why: str) -> None:
        """Note, once, what cannot be counted or scored."""
        if why not in self.problems:
            self.problems.append(why)
            self.note(f"{why}; going on without it")

    def _keep(self, queue: CommitQueue) -> None:
        """Commit what follows on what is kept."""
        taken = queue.take()
        if not taken:
            return
        kept = [each for found in taken for each in self.ledger.add(*found)]
        touched = [(k, watch.now(self.ledger)) for k, watch in enumerate(self.watches)]
        self.ledger.store.commit(kept, touched, None if self._pace is None else self._pace.seconds_left)
        n = sum(tally.n_trials * len(line.places) for line, _, _, tally in taken)
        self.n_done += n
        self.n_counted += n
        prefetch.report(self.progress, self.n_done, self.n_all, self._pace)

    def _wait_for_cluster(self, error: ClusterLostError, since: float) -> None:
        patience = RECONNECT_SECONDS if self.n_counted else START_SECONDS
        if time.monotonic() - since > patience:
            raise UnfinishedError(f"{error}; looked for it for {patience:.0f} s; what was counted is kept")
        self.note(f"{error}; going on from the store as soon as there is a cluster")
        self.stop.sleep(2.0)


@contextmanager
def _connected(cluster: Where, workers: int | None) -> Iterator[Cluster]:
    """Start or reach a cluster; one that fails to start, or to close, is a lost one."""
    try:
        with clusters.connect(cluster, workers=workers) as connected:
            yield connected
    except SigdaskError:
        raise
    except Exception as error:  # dask raises many kinds when its processes are killed as they start
        name = cluster if isinstance(cluster, str) else "described"
        raise ClusterLostError(f"the cluster {name} failed: {type(error).__name__}: {error}") from error
