"""Tests of tasks in flight with a stub client: enough for all threads, lost ones sent again."""

from collections import deque

import distributed
import pytest

from sigdask.execution import run
from sigdask.execution.clusters import Cluster
from sigdask.execution.run import FETCH_SIZE, TASKS_PER_THREAD, TaskWindow


class StubTask:
    job = 0


class StubFuture:
    """A future that is finished, or failed with an error."""

    def __init__(self, number, error=None):
        self.key, self.number, self.error, self.released = f"task-{number}-{id(self)}", number, error, False
        self.status = "error" if error else "finished"

    def exception(self, timeout):
        return self.error

    def release(self):
        self.released = True


class StubClient:
    """A client of a cluster of `n_threads` threads, without processes."""

    status = "running"
    loop = None

    def __init__(self, n_threads, lost=()):
        self.n_threads, self.lost, self.fetched, self.aloft = n_threads, set(lost), [], []

    def nthreads(self):
        return {"tcp://127.0.0.1:1": self.n_threads}

    def gather(self, futures, *, errors, direct):
        if lost := [f.number for f in futures if f.number in self.lost]:
            self.lost -= set(lost) if len(futures) == 1 else set()
            raise RuntimeError(f"lost with its worker: {lost}")
        self.fetched.append(len(futures))
        return [f.number for f in futures]


class StubCompleted:
    """A stand-in for `as_completed`, whose tasks finish `at_once` together."""

    at_once = 50

    def __init__(self, loop):
        self.futures, self.most = deque(), 0

    def add(self, future):
        self.futures.append(future)
        self.most = max(self.most, len(self.futures))

    def batches(self):
        while self.futures:
            yield [self.futures.popleft() for _ in range(min(self.at_once, len(self.futures)))]


@pytest.fixture
def flown(monkeypatch):
    """Return a function that starts a flight of `n_tasks` tasks over a cluster of `n_threads`."""
    monkeypatch.setattr(distributed, "as_completed", StubCompleted)

    def fly(n_tasks, client, n_threads):
        numbers = iter(range(10**9))
        return TaskWindow(
            Cluster("dask", n_threads, client), [(StubTask(),)] * n_tasks, lambda _: StubFuture(next(numbers))
        )

    return fly


@pytest.mark.slow
def test_a_thousand_threads_have_tasks_waiting_as_long_as_there_are_any(flown):
    under_way = flown(10_000, StubClient(1000), 1000)
    for n_done, _ in enumerate(under_way, 1):
        n_left = 10_000 - n_done
        assert len(under_way._completed.futures) >= min(n_left - StubCompleted.at_once, (TASKS_PER_THREAD - 1) * 1000)
    assert n_done == 10_000
    assert under_way._completed.most <= TASKS_PER_THREAD * 1000


def test_results_are_fetched_together_but_not_all_of_them(flown):
    client = StubClient(1000)
    assert len(list(flown(1000, client, 1000))) == 1000
    assert max(client.fetched) == FETCH_SIZE
    assert len(client.fetched) <= 2 * 1000 / FETCH_SIZE


def test_a_result_that_is_lost_with_its_worker_costs_those_that_came_with_it_nothing(flown):
    client = StubClient(10, lost={3, 17})
    results = list(flown(100, client, 10))
    assert len(results) == 100
    assert not {3, 17} & set(results)
    assert {0, 1, 2, 4, 5} <= set(results)


def test_a_scheduler_that_does_not_say_how_many_threads_there_are_stops_nothing(flown, monkeypatch):
    monkeypatch.setattr(run, "CHECK_SECONDS", -1.0)
    client = StubClient(2)
    monkeypatch.setattr(client, "nthreads", lambda: (_ for _ in ()).throw(OSError("closed")))
    assert len(list(flown(30, client, 2))) == 30
