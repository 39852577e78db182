"""Measure how often non-inferiority tests pass a system that is worse by exactly the margin.

    python docs/make_noninferiority.py     # writes the tables of docs/statistics/margins.md, in about a minute

0/1 scores by item are enumerated; clusters and graded scores are simulated, with fixed seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.calibration.margins import CLUSTERS, ITEMS, SHAPES, compute_item_sizes, simulate_graded, simulate_pass  # noqa: E402
from sigdask.statistics.matched_proportions import EXACT_UP_TO  # noqa: E402

PAGE = HERE / "statistics" / "margins.md"
BEGIN, END = "<!-- made by docs/make_noninferiority.py: begin -->", "<!-- made by docs/make_noninferiority.py: end -->"
N_SETS = 4000


def main() -> None:
    """Write the tables between the page's markers."""
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    tables = [*iter_item_lines(), "", *iter_cluster_lines(), "", *iter_graded_lines()]
    PAGE.write_text("\n".join([before + BEGIN, *tables, END]) + rest.split(END)[1])


def iter_item_lines() -> Iterator[str]:
    """Enumerate 0/1 scores and yield the lines of their table."""
    yield "| 0/1 scores by item | expected to differ | shifted shuffle | here | which test |"
    yield "|---|---|---|---|---|"
    for n, margin, won in ITEMS:
        shuffled, gate_size = compute_item_sizes(n, margin, won)
        test = "exact" if n <= EXACT_UP_TO else "score"
        yield (
            f"| {n:,} items, margin {margin:g}, wins {100 * won:g} % | {n * (2 * won + margin):g} | {shuffled:.3f} | "
            f"{gate_size:.3f} | {test} |"
        )


def iter_cluster_lines() -> Iterator[str]:
    """Simulate 0/1 scores that are correlated within units, and yield the lines of their table."""
    dependences = (0.0, 0.1, 0.3, 0.6, 1.0)
    yield "| 0/1 scores in units | " + " | ".join(f"dependence {d:g}" for d in dependences) + " |"
    yield "|---" * (1 + len(dependences)) + "|"
    for n, within, margin, won in CLUSTERS:
        sizes = [measure_cluster_size(n, within, margin, won, d) for d in dependences]
        cells = " | ".join(f"{size:.3f}" for size in sizes)
        yield f"| {n} units of {within}, margin {margin:g}, wins {100 * won:g} % | {cells} |"


def measure_cluster_size(n: int, within: int, margin: float, won: float, dependence: float) -> float:
    """Return the share of sets whose system passes."""
    rng = np.random.default_rng([1, n, int(10 * dependence)])
    return sum(simulate_pass(rng, n, within, margin, won, dependence) for _ in range(N_SETS)) / N_SETS


def iter_graded_lines() -> Iterator[str]:
    """Simulate graded scores of which few differ, and yield the lines of their table."""
    yield "| graded scores, 300 units | expected to differ | shifted shuffle | marked | shown unmarked |"
    yield "|---|---|---|---|---|"
    for name, draw in SHAPES.items():
        for differ in (3, 5, 10, 20, 40, 80, 300):
            is_passed, is_doubtful = simulate_graded(draw, differ, np.random.default_rng([2, differ]), N_SETS)
            unmarked = (is_passed & ~is_doubtful).mean()
            yield f"| {name} | {differ} | {is_passed.mean():.3f} | {100 * is_doubtful.mean():.0f} % | {unmarked:.3f} |"


if __name__ == "__main__":
    main()
