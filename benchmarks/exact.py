"""Exact p-values: what each takes from integer contributions to p, on one thread.

`python -m benchmarks.exact` writes `benchmarks/results-exact.md` and `.json`; `python -m benchmarks exact` runs
the same cases beside all others.
"""

from __future__ import annotations

import json
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks import data
from benchmarks.measure import measure

HERE = Path(__file__).parent

PUBLISHED = {
    "exact: F1 of 100 sentences": "4.3 s, 1.3 GB",
    "exact: F1 of 1,000 sentences": "out of memory",
}
"""What the code of Zmigrod, Vieira & Cotterell 2022 took where it was measured; it is on no index of packages."""

GOALS = {
    "exact: Yeh's three metrics": "1 ms",
    "exact: accuracy of 10^6 items": "0.2 s",
    "exact: F1 of 3,000 sentences": "0.5 s",
    "exact: 50 topics, real-valued": "3 s, 600 MB",
    "exact: 50 topics, four decimals": "30 ms",
    "exact: 8,256 pairs of 129 x 50, four decimals": "60 s on 2 cores",
    "exact: F1 of 100 sentences": "4.3 ms",
}


def prepare_solver(problems, times=1):
    """Return a call that solves newly built problems each time, so that nothing is cached.

    What takes milliseconds is done many times, so that looking at the clock is no part of it.
    """
    from sigdask.statistics.exact import solve

    def run(times=times):
        for _ in range(times):
            for problem in problems():
                solve(problem)

    run(1)
    return run, float(times)


def prepare_yeh():
    from sigdask.statistics.exact import QuotientProblem

    system_a = np.repeat([[1, 0, 0], [0, 1, 0], [0, 0, 0]], [28, 43, 15], axis=0)
    system_b = np.repeat([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [71, 6, 9], axis=0)
    totals = np.array([[47, 48, 103], [25, 14, 103]])
    forms = [([[1, 0, 0]], [[0, 0, 1]]), ([[2, 0, 0]], [[1, 1, 1]]), ([[1, 0, 0]], [[1, 1, 0]])]
    return prepare_solver(
        lambda: (QuotientProblem.from_counts(system_a, system_b, totals, *form) for form in forms), 100
    )


def prepare_accuracy(n_items):
    from sigdask.statistics.exact import SumProblem

    rng = np.random.default_rng(1)
    a = rng.random(n_items) < 0.81
    b = np.where(rng.random(n_items) < 0.7, a, rng.random(n_items) < 0.8)
    return prepare_solver(lambda: [SumProblem(a.astype(np.int64) - b)])


def prepare_f1(n_sentences):
    from sigdask.statistics.exact import QuotientProblem

    rng = np.random.default_rng(2)
    gold = rng.integers(0, 5, n_sentences)
    hits_b = rng.binomial(gold, 0.7)
    hits_a = np.where(rng.random(n_sentences) < 0.6, hits_b, rng.binomial(gold, 0.73))
    spurious = rng.poisson(0.4, (2, n_sentences))
    spurious[1] = np.where(rng.random(n_sentences) < 0.7, spurious[0], spurious[1])
    a, b = np.column_stack([hits_a, spurious[0], gold]), np.column_stack([hits_b, spurious[1], gold])
    totals = np.array([a.sum(axis=0), b.sum(axis=0)])
    return prepare_solver(
        lambda: [QuotientProblem.from_counts(a, b, totals, [[2, 0, 0]], [[1, 1, 1]])], max(10_000 // n_sentences, 1)
    )


def prepare_responses(n):
    from sigdask.statistics.exact import QuotientProblem

    rng = np.random.default_rng(3)
    kinds = np.array([[1, 0, 0], [0, 1, 0]])[rng.integers(0, 2, n)]
    is_first = (rng.random(n) < 0.501)[:, None]
    a, b = np.where(is_first, kinds, 0), np.where(is_first, 0, kinds)
    totals = np.array([a.sum(axis=0), b.sum(axis=0)]) + n // 2 * np.array([1, 0, 3])
    return prepare_solver(lambda: [QuotientProblem.from_counts(a, b, totals, [[2, 0, 0]], [[1, 1, 1]])])


def prepare_real():
    from sigdask.statistics.exact import SumProblem
    from sigdask.statistics.lattice import ScoreScale, choose_lattice

    a, b = data.draw_scores(50).T
    lattice = choose_lattice(ScoreScale.from_scores(a), ScoreScale.from_scores(b), 50)
    d = lattice.to_integers(a) - lattice.to_integers(b)
    return prepare_solver(lambda: [SumProblem(d, 2 * lattice.slack * len(d))])


def prepare_decimals():
    from sigdask.statistics.exact import SumProblem

    a, b = np.rint(data.draw_scores(50, digits=4) * 1e4).astype(np.int64).T
    return prepare_solver(lambda: [SumProblem(a - b)], 100)


def prepare_word_errors(n):
    from sigdask.statistics.exact import SumProblem

    d = np.random.default_rng(4).integers(-10, 11, n)
    d[: n // 60] = np.abs(d[: n // 60])
    return prepare_solver(lambda: [SumProblem(d)])


def prepare_all_pairs(n_threads):
    from sigdask.statistics.exact import SumProblem, solve

    scores = np.rint(data.load_trec()[0] * 1e4).astype(np.int64).T
    pairs = [(i, j) for i in range(len(scores)) for j in range(i + 1, len(scores))]

    def solve_pairs(chunk):
        for i, j in chunk:
            solve(SumProblem(scores[i] - scores[j]))

    def run():
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(solve_pairs, [pairs[k::n_threads] for k in range(n_threads)]))

    solve_pairs(pairs[:2])
    return run, 1.0


CASES = {
    "exact: Yeh's three metrics": {"sigdask": prepare_yeh},
    "exact: accuracy of 10^6 items": {"sigdask": lambda: prepare_accuracy(10**6)},
    "exact: F1 of 100 sentences": {"sigdask": lambda: prepare_f1(100)},
    "exact: F1 of 1,000 sentences": {"sigdask": lambda: prepare_f1(1000)},
    "exact: F1 of 3,000 sentences": {"sigdask": lambda: prepare_f1(3000)},
    "exact: F1 of 860,000 discordant responses": {"sigdask": lambda: prepare_responses(860_000)},
    "exact: 10,000 word errors": {"sigdask": lambda: prepare_word_errors(10**4)},
    "exact: 10^6 word errors": {"sigdask": lambda: prepare_word_errors(10**6)},
    "exact: 50 topics, real-valued": {"sigdask": prepare_real},
    "exact: 50 topics, four decimals": {"sigdask": prepare_decimals},
    "exact: 8,256 pairs of 129 x 50, four decimals": {
        "sigdask, 1 thread": lambda: prepare_all_pairs(1),
        "sigdask, 2 threads": lambda: prepare_all_pairs(2),
    },
}


def format_table(results: dict) -> str:
    lines = ["# Exact p-values", "", __doc__.splitlines()[0], ""]
    lines += ["| work | | CPU s | wall s | memory | to reach | published code |", "|---|---|---|---|---|---|---|"]
    for work, tools in results["cases"].items():
        for tool, result in tools.items():
            numbers = f"{result['cpu']:.4f} | {result['wall']:.4f} | {result['memory'] / 2**20:,.0f} MiB"
            goal, published = GOALS.get(work, ""), PUBLISHED.get(work, "")
            lines.append(f"| {work.removeprefix('exact: ')} | {tool} | {numbers} | {goal} | {published} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    results: dict = {"machine": platform.processor() or platform.machine(), "cases": {}}
    for work, tools in CASES.items():
        print(work, file=sys.stderr)
        results["cases"][work] = {tool: measure(work, tool) for tool in tools}
    (HERE / "results-exact.json").write_text(json.dumps(results, indent=1) + "\n")
    (HERE / "results-exact.md").write_text(format_table(results))
    print(format_table(results))


if __name__ == "__main__":
    main()
