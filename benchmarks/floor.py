"""The floor, measured in the same run: what the steps cost when nothing else is done."""

from __future__ import annotations

import time

import numpy as np

from sigdask.randomization.kernels.exceedances import count_linear
from sigdask.randomization.kernels.sums import add_planes, add_tables
from sigdask.randomization.stream.shuffles import fill_swap_words

N = 4096


def _best(call, repeats=300):
    call()
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        best = min(best, (time.perf_counter() - start) / repeats)
    return best


def floor() -> dict:
    """Seconds for one Philox call, look-up, plane word and pair comparison of one trial."""
    words = np.zeros((4, N), np.uint32)
    rng = np.random.default_rng(0)
    found = {"philox": _best(lambda: fill_swap_words((1, 2), 0, 0, 0, words)) / N}
    for name, dtype in (("64", np.int64), ("32", np.int32)):
        sums, table = np.zeros(N, dtype), np.zeros((16, 256), dtype)
        values = rng.integers(-9, 9, 128).astype(dtype)
        found[f"look-up {name}"] = _best(lambda s=sums, t=table, v=values: add_tables(words, v, t, s)) / N / 16
        masks, weights = rng.integers(0, 2**32, (8, 4), dtype=np.uint32), (1 << np.arange(8)).astype(dtype)
        found[f"plane word {name}"] = _best(lambda s=sums, m=masks, w=weights: add_planes(words, m, w, s)) / N / 32
    moved = rng.integers(-10_000, 10_000, (50, N)).astype(np.int32)
    pairs = np.array([(i, j) for i in range(50) for j in range(i + 1, 50)])
    zeros, counts = np.zeros(len(pairs), np.int64), np.zeros((len(pairs), 3), np.int64)
    timed = _best(lambda: count_linear(moved, pairs, zeros + 500, zeros, counts), 5)
    found["pair comparison"] = timed / N / len(pairs)
    return found


def scheduler_cost() -> float:
    """Seconds of the scheduler for one task that does nothing, two workers on loopback."""
    from sigdask.execution.clusters import connect

    with connect("local", workers=2) as cluster:
        cluster.client.gather(cluster.client.map(_nothing, range(100), pure=False))
        start = time.perf_counter()
        cluster.client.gather(cluster.client.map(_nothing, range(2000), pure=False))
        return (time.perf_counter() - start) / 2000


def _nothing(x):
    return x
