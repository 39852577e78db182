"""Estimates of what exact p-values take, held against the CPU time: `python -m benchmarks.exact_estimates`.

A line a method and problem: the estimate, the time that the process took, and their ratio. The constants of
`sigdask.statistics.exact.result.COSTS` come from these. Only ways of 0.02 to `MOST` estimated seconds are tried.
"""

from __future__ import annotations

import time

import numpy as np

LEAST, MOST, MEMORY = 0.02, 30.0, 2 * 10**9


def problems():
    """Yield problems of all kinds, by name."""
    from sigdask.statistics.exact import EnumeratedScore, QuotientProblem, SumProblem

    rng = np.random.default_rng(3)
    for n in (38, 42, 46, 48, 50, 200, 1000):
        yield f"{n} real scores", SumProblem(rng.integers(-(2**45), 2**45, n), slack=4 * n)
    for n, most in ((200, 9999), (1000, 300), (3000, 9999), (10_000, 100), (60, 10**6), (300, 10**5), (10**6, 10)):
        moved = rng.integers(-most, most + 1, n)
        yield f"{n} integers up to {most}", SumProblem(moved[moved != 0])
    for n, most in ((300, 4), (900, 12), (200, 30), (3000, 4)):
        sums = rng.integers(0, most, (2, n, 2))
        yield f"precision of {n} sentences", QuotientProblem.from_counts(*sums, sums.sum(axis=1), [[1, 0]], [[1, 1]])
    for n in (100, 400):
        moved = rng.integers(-1, 2, (n, 4))
        own = moved[moved.any(axis=1)]
        yield (
            f"macro average of {n} items",
            EnumeratedScore(own, np.full((2, 4), n), lambda s: s[..., 0] / (s[..., 1] + n)),
        )


def main() -> None:
    """Print a line a problem and method."""
    from sigdask.statistics.exact import iter_methods, solve

    compiled = set()
    for name, problem in problems():
        for way in iter_methods(problem):
            if not LEAST <= way.seconds <= MOST or way.n_bytes > MEMORY or way.n_parts > 1:
                continue
            if way.method not in compiled:
                compiled.add(way.method)
                solve(problem, way)
            start = time.process_time()
            solve(problem, way)
            taken = time.process_time() - start
            print(f"{way.method:20} {name:32} {way.seconds:8.2f} s {taken:8.2f} s  x {way.seconds / taken:.2f}")


if __name__ == "__main__":
    main()
