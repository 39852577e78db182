"""Count the trials that a ledger lacks, and commit them, despite lost clusters and failing tasks.

A deadline or signal stops a run. Neither depends on exceedances, so that counted trials stay valid.
"""

from __future__ import annotations

import math
import re
import signal
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from types import FrameType
from typing import Any

from sigdask.errors import ClusterLostError, InputError, SigdaskError, StoreError, TaskError, UnfinishedError
from sigdask.execution import clusters, run
from sigdask.execution.clusters import Cluster, ClusterLike
from sigdask.execution.run import (
    MAX_TIMED_SHARE,
    Progress,
    TrialRange,
    compute_task_seconds,
    measure_trial_seconds,
    resolve_cluster,
    run_tasks,
    split_jobs,
)
from sigdask.nightly.run.ledger import Ledger, LedgerEntry, count_trials, schedule_jobs
from sigdask.randomization.families import MaxTFamily
from sigdask.randomization.panels import AnyPanel
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.slabs import Job
from sigdask.randomization.tallies import Tally

DEADLINE = "the deadline"
SECONDS_PER_UNIT = {"h": 3600, "m": 60, "s": 1}


class StopRequest(BaseException):  # not an Exception, so that no handler of errors catches it
    """Exception that ends an interruptible section when the run should stop."""


class StopSignal:
    """A deadline or signal that stops a run, with the reason.

    Attributes
    ----------
    deadline : float or None
        Seconds since 1970.
    reason : str
        Empty until the run should stop.
    """

    def __init__(self, deadline: float | None = None) -> None:
        self.deadline = deadline
        self.reason = ""
        self._waiting = False

    def is_due(self) -> bool:
        """Return whether the run should stop, because of a signal or its deadline."""
        if not self.reason and self.deadline is not None and time.time() >= self.deadline:
            self.reason = DEADLINE
        return bool(self.reason)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let a signal or the deadline interrupt the body; elsewhere it only sets the reason to stop."""
        self._waiting = True
        try:
            if self.is_due():
                raise StopRequest
            yield
        finally:
            self._waiting = False

    def reserve_time(self, seconds: float) -> None:
        """Move the deadline earlier by at most half of the remaining time, which leaves time to judge the results."""
        if self.deadline is None:
            return
        self.deadline -= min(seconds, max(self.deadline - time.time(), 0) / 2)
        self._set_alarm()

    def _set_alarm(self) -> None:
        if self.deadline is not None and threading.current_thread() is threading.main_thread():
            # repeats each second, because the first signal may come when nothing waits
            signal.setitimer(signal.ITIMER_REAL, max(self.deadline - time.time(), 1e-3), 1.0)

    @contextmanager
    def catch_signals(self) -> Iterator[None]:
        """Treat SIGTERM, SIGINT and the deadline as requests to stop in the body; a second signal ends the program."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread gets signals; other threads check the deadline between tasks
            return
        previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)}

        def on_signal(number: int, frame: FrameType | None) -> None:
            if number == signal.SIGALRM:
                self.is_due()
            else:
                self.reason = self.reason or signal.Signals(number).name
                signal.signal(number, previous[signal.Signals(number)])
            if self._waiting and self.reason:
                if _is_loading(frame):  # soon again, since a module left half done breaks what follows
                    signal.setitimer(signal.ITIMER_REAL, 0.1, 1.0)
                    return
                self._waiting = False
                raise StopRequest

        for number in previous:
            signal.signal(number, on_signal)
        self._set_alarm()
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in previous.items():
                signal.signal(number, handler)


def _is_loading(frame: FrameType | None) -> bool:
    """Return whether a module is being imported, or a function compiled by numba."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in {"importlib", "numba"}:
            return True
        frame = frame.f_back
    return False


def parse_deadline(text: str, now: datetime | None = None) -> float:
    """Return seconds since 1970 of a time of day (the next one), a date and time, or a duration.

    Examples
    --------
    >>> evening = datetime(2026, 1, 31, 22, 0)
    >>> datetime.fromtimestamp(parse_deadline("06:00", evening)).isoformat()
    '2026-02-01T06:00:00'
    >>> datetime.fromtimestamp(parse_deadline("1h30m", evening)).isoformat()
    '2026-01-31T23:30:00'
    """
    now = now or datetime.now()  # noqa: DTZ005  # local time is meant
    parts = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text.strip())
    try:
        if parts is not None and any(parts.groups()):
            seconds = sum(int(n) * unit for n, unit in zip(parts.groups("0"), SECONDS_PER_UNIT.values(), strict=True))
            return (now + timedelta(seconds=min(seconds, 10 * 365 * 86400))).timestamp()
        if re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", text.strip()):
            hours, minutes, *rest = (int(part) for part in text.split(":"))
            time_today = now.replace(hour=hours, minute=minutes, second=rest[0] if rest else 0, microsecond=0)
            return (time_today if time_today > now else time_today + timedelta(days=1)).timestamp()
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"deadline {text!r}: expected a time such as 06:00, a duration such as 90m or 1h30m, or a date and time"
        ) from None


MessageCallback = Callable[[str], None]

FLUSH_SECONDS = 0.5
FLUSH_SHARE = 30
"""Writing to the store takes at most 1 / FLUSH_SHARE of the time, however many comparisons there are."""

RECONNECT_SECONDS = 600.0
"""Seconds for which a lost scheduler is searched."""

START_SECONDS = 60.0
"""Seconds for which starting a cluster is retried, if none has worked in this run."""


class CountRunner:
    """Counter of the trials that a ledger lacks, with totals and the problems that occurred.

    Attributes
    ----------
    ledger : Ledger
        The requested and the stored trials.
    stop : StopSignal
        Signal to stop the run.
    n_counted, n_exact : int
        Committed trials of all comparisons, and exact values.
    problems : list of str
        Descriptions of what could not be counted.
    """

    def __init__(
        self,
        ledger: Ledger,
        stop: StopSignal,
        note: MessageCallback,
        *,
        progress: Progress | None = None,
    ) -> None:
        self.ledger, self.stop, self.note, self.progress = ledger, stop, note, progress
        self.n_kept = ledger.sum_trials()[0]
        self.n_counted = self.n_exact = self.n_done = self.n_all = 0
        self._pace: run.CountingPace | None = None
        self._touched: dict[int, LedgerEntry] = {}
        self.problems: list[str] = []

    def count(self, cluster: ClusterLike, workers: int | None) -> None:
        """Count all missing trials."""
        entries = self.ledger.list_missing()
        self.n_all = count_trials(entries)
        self._count_entries(entries, cluster, workers)

    def _count_entries(self, entries: list[LedgerEntry], cluster: ClusterLike, workers: int | None) -> None:
        costs: dict[int, float] = {}
        lost_since = 0.0
        while entries := [entry for entry in entries if entry.first < entry.stop and not entry.left_out]:
            self._measure_costs(entries, costs)
            jobs, entries_of_jobs = schedule_jobs(entries)
            if not jobs:  # all entries were left out: no cluster is needed
                return
            n_before = self.n_done
            try:
                self._run_jobs(cluster, workers, jobs, entries_of_jobs, [costs[id(job.panel)] for job in jobs])
            except ClusterLostError as error:
                if clusters.is_closed(cluster):
                    raise UnfinishedError(f"{error}; all counts so far are stored") from None
                lost_since = time.monotonic() if self.n_done > n_before or not lost_since else lost_since
                self._wait_for_cluster(error, lost_since)
            except TaskError as error:
                self._leave_out([entries_of_jobs[k] for k in error.jobs], str(error))
            except InputError:
                if not lost_since:
                    raise
                self._wait_for_cluster(ClusterLostError("the scheduler is not back yet"), lost_since)
            for entry in entries:
                entry.pending.clear()

    def _measure_costs(self, entries: Sequence[LedgerEntry], costs: dict[int, float]) -> None:
        """Measure the seconds per trial of each panel; small ones that look alike are measured once."""
        speeds: Speeds = {}
        for entry in entries:
            panel = entry.panel
            if id(panel) in costs:
                continue
            try:
                with self.stop.interruptible():
                    costs[id(panel)] = measure_similar(panel, entry.stop - entry.first, speeds)
            except SigdaskError as error:
                costs[id(entry.panel)] = math.inf
                self._leave_out([other for other in entries if other.panel is entry.panel], str(error))

    def _run_jobs(
        self,
        cluster: ClusterLike,
        workers: int | None,
        jobs: Sequence[Job],
        entries: Sequence[LedgerEntry],
        costs: Sequence[float],
    ) -> None:
        work = sum(cost * job.n_trials for cost, job in zip(costs, jobs, strict=True))
        with ExitStack() as stack:
            if not isinstance(cluster, Cluster):
                with self.stop.interruptible():  # a batch queue may take long
                    cluster = stack.enter_context(_connect(_choose_cluster(cluster, jobs, work), workers))
            self._run_tasks(cluster, jobs, entries, costs, work)

    def _run_tasks(
        self, cluster: Cluster, jobs: Sequence[Job], entries: Sequence[LedgerEntry], costs: Sequence[float], work: float
    ) -> None:
        """Run jobs and commit their tallies to the store every half second, or less often if commits are slow."""
        self._pace = run.start_pace(self.progress, jobs, costs, cluster.n_threads)
        tasks = split_jobs(jobs, costs, compute_task_seconds(work, cluster.n_threads))
        completed = run_tasks(cluster, jobs, tasks)
        last_commit, pause = time.monotonic(), FLUSH_SECONDS
        try:
            while True:
                with self.stop.interruptible():
                    task_results = next(completed, None)
                if task_results is None:
                    break
                for trials, tally in task_results:
                    self._add_tally(trials, tally, entries[trials.job])
                if time.monotonic() - last_commit >= pause:
                    start = time.monotonic()
                    self._commit()
                    last_commit = time.monotonic()
                    pause = max(FLUSH_SECONDS, FLUSH_SHARE * (last_commit - start))
        except StoreError:
            raise
        except BaseException:
            self._commit()
            raise
        finally:
            completed.close()  # type: ignore[attr-defined]
        self._commit()

    def _add_tally(self, trials: TrialRange, tally: Tally | SigdaskError, entry: LedgerEntry) -> None:
        if isinstance(tally, SigdaskError):
            self._leave_out([entry], str(tally))
        elif not entry.left_out:
            entry.pending[trials.first] = trials.first + tally.n_trials, tally
            self._touched[id(entry)] = entry
            if self._pace is not None:
                self._pace.add_trials(trials.job, trials.n_trials)

    def _leave_out(self, entries: Sequence[LedgerEntry], reason: str) -> None:
        """Exclude entries that cannot be counted, and note the reason."""
        for entry in entries:
            entry.left_out = True
            self.ledger.wanted[entry.run][entry.numbers] = 0  # none of these comparisons can be counted
        self.add_problem(reason)

    def add_problem(self, reason: str) -> None:
        """Report, once, a reason why something cannot be counted or scored."""
        if reason not in self.problems:
            self.problems.append(reason)
            self.note(f"{reason}; continuing without it")

    def _commit(self) -> None:
        """Save the tallies that continue what the store has without a gap, and report progress."""
        ready = [(entry, *tallied) for entry in self._touched.values() for tallied in entry.pop_ready()]
        self._touched.clear()
        if not ready:
            return
        for tallied in ready:
            self.ledger.add(*tallied)
        new = self.ledger.list_new({id(entry): entry for entry, *_ in ready}.values())
        left = None if self._pace is None else self._pace.seconds_left
        n_counted = max(self.ledger.sum_trials()[0] - self.n_kept, 0)
        is_ended = self.ledger.store.run.ended is not None  # and its gate counts
        self.ledger.store.commit(new, **({} if is_ended else {"counted": n_counted, "left": left}))
        for entry, _, stop, tally in ready:
            n = tally.n_trials * len(entry.numbers)
            self.n_done += n
            if not entry.panel.enumerated:
                self.n_counted += n
            elif stop == entry.stop:
                self.n_exact += len(entry.numbers)
        run.report_progress(self.progress, self.n_done, self.n_all, self._pace)

    def _wait_for_cluster(self, error: ClusterLostError, since: float) -> None:
        max_seconds = RECONNECT_SECONDS if self.n_done else START_SECONDS
        if time.monotonic() - since > max_seconds:
            raise UnfinishedError(f"{error}; tried to reconnect for {max_seconds:.0f} s; all counts so far are stored")
        self.note(f"{error}; continuing from the store as soon as a cluster is available")
        with self.stop.interruptible():
            time.sleep(2.0)


SMALL_PANEL = 2**16
"""Panels with fewer unit sums than this are assumed to be as fast as others of their size."""


Speeds = dict[Hashable, float]
"""Measured seconds per trial of small panels, by their kind and size."""


def measure_similar(panel: AnyPanel, n_trials: int, speeds: Speeds) -> float:
    """Return the seconds per trial of a panel; small panels of sums that look alike are measured once."""
    look = _describe_size(panel)
    if look not in speeds:
        seconds = measure_trial_seconds(panel, n_trials, share=1 if look else MAX_TIMED_SHARE)
        if not look:
            return seconds
        speeds[look] = seconds
    return speeds[look]


def _describe_size(panel: AnyPanel) -> tuple[Any, ...]:
    """Return the values that determine the time of a trial of small sums and their families; nothing for others."""
    if isinstance(panel, MaxTFamily):
        sizes = tuple(map(_describe_size, panel.panels))
        is_small = all(sizes) and sum(member.values.size for member in panel.panels) <= SMALL_PANEL
        traits = panel.enumerated, panel.is_linear, panel.parts.shape, len(panel.members)
        return (*traits, sizes) if is_small else ()
    if not isinstance(panel, Panel) or panel.values.size > SMALL_PANEL:
        return ()
    forms = tuple(type(metric.form) for metric in panel.metrics)
    return panel.enumerated, panel.shape, panel.linear, forms, len(panel.addresses).bit_length()


def _choose_cluster(cluster: ClusterLike, jobs: Sequence[Job], work: float) -> ClusterLike:
    """Return the cluster to use for jobs: this process if starting others on this machine would take longer."""
    cluster = resolve_cluster(cluster, jobs, work)
    is_local = getattr(cluster, "kind", cluster) in ("local", "local+tcp")
    if is_local and work <= clusters.PROCESS_SECONDS and all(job.panel.manner.vectorised for job in jobs):
        return clusters.choose_cluster(work, vectorised=True)
    return cluster


@contextmanager
def _connect(cluster: ClusterLike, workers: int | None) -> Iterator[Cluster]:
    """Yield a connected cluster, and raise ClusterLostError if dask fails as it starts, counts or closes."""
    connected: Cluster | None = None
    try:
        with clusters.connect(cluster, workers=workers) as connected:
            yield connected
    except SigdaskError:
        raise
    except Exception as error:  # dask raises many kinds when its processes are killed as they start
        if connected is not None and connected.client is None:  # this process counts: no cluster was lost
            raise
        name = cluster if isinstance(cluster, str) else "described"
        raise ClusterLostError(f"the cluster {name} failed: {type(error).__name__}: {error}") from error
