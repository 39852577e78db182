"""Find how often tests of non-inferiority pass a system that is worse by just the margin, at level 0.05.

    python docs/make_noninferiority.py     # writes the tables of docs/statistics.md, in about a minute

0/1 scores by item are enumerated; clusters and graded scores are simulated, with fixed seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.calibration.margins import CLUSTERS, ITEMS, SHAPES, graded, passes, sizes_of_items  # noqa: E402
from sigdask.statistics.matched_proportions import EXACT_UP_TO  # noqa: E402

PAGE = HERE / "statistics.md"
BEGIN, END = "<!-- made by docs/make_noninferiority.py: begin -->", "<!-- made by docs/make_noninferiority.py: end -->"
N_SETS = 4000


def main() -> None:
    """Write the tables between the marks."""
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    tables = [*of_items(), "", *of_clusters(), "", *of_graded()]
    PAGE.write_text("\n".join([before + BEGIN, *tables, END]) + rest.split(END)[1])


def of_items() -> Iterator[str]:
    """Enumerate 0/1 scores."""
    yield "| 0/1 scores by item | expected to differ | shifted shuffle | here | which test |"
    yield "|---|---|---|---|---|"
    for n, margin, won in ITEMS:
        shuffled, here = sizes_of_items(n, margin, won)
        what = "exact" if n <= EXACT_UP_TO else "score"
        yield (
            f"| {n:,} items, margin {margin:g}, wins {100 * won:g} % | {n * (2 * won + margin):g} | {shuffled:.3f} | "
            f"{here:.3f} | {what} |"
        )


def of_clusters() -> Iterator[str]:
    """Simulate 0/1 scores that hang together within units."""
    dependences = (0.0, 0.1, 0.3, 0.6, 1.0)
    yield "| 0/1 scores in units | " + " | ".join(f"dependence {d:g}" for d in dependences) + " |"
    yield "|---" * (1 + len(dependences)) + "|"
    for n, within, margin, won in CLUSTERS:
        sizes = [cluster_size(n, within, margin, won, d) for d in dependences]
        cells = " | ".join(f"{size:.3f}" for size in sizes)
        yield f"| {n} units of {within}, margin {margin:g}, wins {100 * won:g} % | {cells} |"


def cluster_size(n: int, within: int, margin: float, won: float, dependence: float) -> float:
    """Return the share of sets whose system is shown."""
    rng = np.random.default_rng([1, n, int(10 * dependence)])
    return sum(passes(rng, n, within, margin, won, dependence) for _ in range(N_SETS)) / N_SETS


def of_graded() -> Iterator[str]:
    """Simulate graded scores of which few differ."""
    yield "| graded scores, 300 units | expected to differ | shifted shuffle | marked | shown unmarked |"
    yield "|---|---|---|---|---|"
    for name, draw in SHAPES.items():
        for differ in (3, 5, 10, 20, 40, 80, 300):
            shown, marked = graded(draw, differ, np.random.default_rng([2, differ]), N_SETS)
            unmarked = (shown & ~marked).mean()
            yield f"| {name} | {differ} | {shown.mean():.3f} | {100 * marked.mean():.0f} % | {unmarked:.3f} |"


if __name__ == "__main__":
    main()
