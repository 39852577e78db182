"""Compare estimated with measured CPU seconds of exact p-values and plans: `python -m benchmarks.exact_estimates`.

A line a method and problem: the estimate, the time that the process took, and their ratio. The constants of
`sigdask.statistics.exact.problems.COSTS` come from these. Only ways of 0.02 to `MAX_SECONDS` estimated seconds are tried.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

YEH = Path(__file__).parents[1] / "sigdask" / "examples" / "yeh2000.tsv"
MIN_SECONDS, MAX_SECONDS, MAX_BYTES = 0.02, 30.0, 2 * 10**9


def iter_problems():
    """Yield problems of all kinds with their names."""
    from sigdask.statistics.exact import EnumeratedScore, QuotientProblem, SumProblem

    rng = np.random.default_rng(3)
    for n in (38, 42, 46, 48, 50, 200, 1000):
        yield f"{n} real scores", SumProblem(rng.integers(-(2**45), 2**45, n), slack=4 * n)
    for n, max_value in ((200, 9999), (1000, 300), (3000, 9999), (10_000, 100), (60, 10**6), (300, 10**5), (10**6, 10)):
        values = rng.integers(-max_value, max_value + 1, n)
        yield f"{n} integers up to {max_value}", SumProblem(values[values != 0])
    for n, max_value in ((300, 4), (900, 12), (200, 30), (3000, 4)):
        sums = rng.integers(0, max_value, (2, n, 2))
        yield f"precision of {n} sentences", QuotientProblem.from_counts(*sums, sums.sum(axis=1), [[1, 0]], [[1, 1]])
    for n in (100, 400):
        values = rng.integers(-1, 2, (n, 4))
        differences = values[values.any(axis=1)]
        yield (
            f"macro average of {n} items",
            EnumeratedScore(differences, np.full((2, 4), n), lambda s: s[..., 0] / (s[..., 1] + n)),
        )


def main() -> None:
    """Print a line for each problem and method, and for each plan."""
    from sigdask.statistics.exact import iter_methods, solve

    compiled = set()
    for name, problem in iter_problems():
        for method in iter_methods(problem):
            if not MIN_SECONDS <= method.seconds <= MAX_SECONDS or method.n_bytes > MAX_BYTES:
                continue
            if method.method not in compiled:
                compiled.add(method.method)
                solve(problem, method)
            start = time.process_time()
            solve(problem, method)
            seconds = time.process_time() - start
            print_line(method.method, name, method.seconds, seconds)


def print_line(method: str, problem: str, estimated: float, measured: float) -> None:
    """Print the estimated and the measured seconds and their ratio."""
    print(f"{method:20} {problem:32} {estimated:8.2f} s {measured:8.2f} s  x {estimated / measured:.2f}")


if __name__ == "__main__":
    main()
