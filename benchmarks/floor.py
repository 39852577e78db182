"""Lower bounds of the running time: cost of the bare steps, measured in the same run."""

from __future__ import annotations

import time

import numpy as np

from sigdask.randomization.kernels.scored import count_linear
from sigdask.randomization.kernels.sums import add_plane, add_tables
from sigdask.randomization.stream import fill_swap_words

N_TRIALS = 4096


def _time_best(call, repeats=300):
    call()
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        best = min(best, (time.perf_counter() - start) / repeats)
    return best


def measure_floor() -> dict:
    """Return seconds per trial of a Philox call, a look-up, a plane word and a pair comparison."""
    words = np.zeros((4, N_TRIALS), np.uint32)
    rng = np.random.default_rng(0)
    seconds = {"philox": _time_best(lambda: fill_swap_words((1, 2), 0, 0, 0, words)) / N_TRIALS}
    for name, dtype in (("64", np.int64), ("32", np.int32)):
        sums, table = np.zeros(N_TRIALS, dtype), np.zeros((16, 256), dtype)
        values = rng.integers(-9, 9, 128).astype(dtype)
        seconds[f"look-up {name}"] = (
            _time_best(lambda s=sums, t=table, v=values: add_tables(words, v, t, s)) / N_TRIALS / 16
        )
        masks, weight = rng.integers(0, 2**32, (2, 4), dtype=np.uint32), dtype(4)
        seconds[f"plane word {name}"] = (
            _time_best(lambda s=sums, m=masks, w=weight: add_plane(words, m, w, s)) / N_TRIALS / 4
        )
    moved = rng.integers(-10_000, 10_000, (50, N_TRIALS)).astype(np.int32)
    pairs = np.array([(i, j) for i in range(50) for j in range(i + 1, 50)])
    zeros, counts = np.zeros(len(pairs), np.int64), np.zeros((len(pairs), 3), np.int64)
    timed = _time_best(lambda: count_linear(moved, pairs, zeros + 500, zeros, counts), 5)
    seconds["pair comparison"] = timed / N_TRIALS / len(pairs)
    return seconds


def measure_scheduler_cost() -> float:
    """Return the seconds per empty task on two local workers."""
    from sigdask.execution.clusters import connect

    with connect("local", workers=2) as cluster:
        cluster.client.gather(cluster.client.map(_do_nothing, range(100), pure=False))
        start = time.perf_counter()
        cluster.client.gather(cluster.client.map(_do_nothing, range(2000), pure=False))
        return (time.perf_counter() - start) / 2000


def _do_nothing(x):
    return x
