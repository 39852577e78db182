"""Tests of task lengths: whatever the work and the number of threads, the scheduler can bear them."""

import itertools
import math

import pytest

from sigdask.execution.run import SHORTEST_SECONDS, SUSTAINED, TASKS_PER_SECOND, compute_task_seconds

THREADS = [1, 2, 16, 100, 1000, 4000]
WORK = [1e-3, 1.0, 60.0, 3600.0, 1e5, 1e7, 1e9]


@pytest.mark.parametrize("n_threads", THREADS)
def test_long_work_asks_the_scheduler_for_at_most_a_hundred_tasks_a_second(n_threads):
    assert n_threads / compute_task_seconds(1e9, n_threads) <= TASKS_PER_SECOND
    assert compute_task_seconds(1e9, n_threads) > n_threads / 300


def test_short_work_is_not_split_into_more_tasks_than_a_scheduler_passes_on_while_it_is_counted():
    """Compare with all lengths from a hundredth of a second to 100 s: none ends in much less time."""

    def compute_end(work, n_threads, seconds):  # the workers' own time, a task at the end, a saturated scheduler's lack
        return max(work / n_threads, work / (seconds * SUSTAINED)) + seconds

    for work, n_threads in itertools.product(WORK, THREADS):
        best = min(compute_end(work, n_threads, 10 ** (k / 50)) for k in range(-100, 101))
        chosen = compute_end(work, n_threads, compute_task_seconds(work, n_threads))
        assert chosen <= max(1.6 * best, best + 1.0), (work, n_threads)


@pytest.mark.parametrize("n_threads", [1, 2, 16])
def test_each_thread_has_several_tasks_so_that_none_waits_long_for_the_last(n_threads):
    for work in (100.0, 1e4, 1e6):
        assert work / compute_task_seconds(work, n_threads) >= min(8 * n_threads, math.sqrt(work * SUSTAINED)) * (
            1 - 1e-9
        )


def test_no_task_is_shorter_than_its_own_sending():
    assert compute_task_seconds(1e-9, 1) == SHORTEST_SECONDS
