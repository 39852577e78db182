"""Find how often tests of non-inferiority pass a system that is worse by just the margin, at level 0.05.

    python docs/make_noninferiority.py     # writes the tables of docs/statistics.md, in about a minute

0/1 scores by item are enumerated; clusters and graded scores are simulated, with fixed seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sigdask.comparison.adjustment import FEW_UNITS
from sigdask.gate.margin_tests import SKEWED
from sigdask.statistics.matched_proportions import EXACT_UP_TO, Matched

PAGE = Path(__file__).parent / "statistics.md"
BEGIN, END = "<!-- made by docs/make_noninferiority.py: begin -->", "<!-- made by docs/make_noninferiority.py: end -->"
ALPHA, N_SHUFFLES, N_SETS, N_UNITS = 0.05, 999, 4000, 300
Array = NDArray[np.float64]


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
    for n, margin, won in (
        (300, 0.01, 0.0), (300, 0.02, 0.0), (300, 0.05, 0.0), (300, 0.01, 0.01), (300, 0.05, 0.1),
        (1000, 0.01, 0.0), (1000, 0.01, 0.02), (100, 0.05, 0.0), (100, 0.05, 0.02), (100, 0.05, 0.1),
    ):  # fmt: skip
        wins, losses = np.indices((n + 1, n + 1)).reshape(2, -1)
        wins, losses = wins[wins + losses <= n], losses[wins + losses <= n]
        chance = stats.multinomial.pmf(
            np.c_[wins, losses, n - wins - losses], n, [won, won + margin, 1 - margin - 2 * won]
        )
        likely = chance > 1e-7
        tables = list(zip(wins[likely], losses[likely], chance[likely], strict=True))
        shuffled = sum(p for w, x, p in tables if shuffled_p(int(w), int(x), n, margin) <= ALPHA)
        here = sum(p for w, x, p in tables if Matched(int(w), int(x), n).p_value(margin, ALPHA) <= ALPHA)
        what = "exact" if n <= EXACT_UP_TO else "score"
        yield (
            f"| {n:,} items, margin {margin:g}, wins {100 * won:g} % | {n * (2 * won + margin):g} | {shuffled:.3f} | "
            f"{here:.3f} | {what} |"
        )


def shuffled_p(wins: int, losses: int, n: int, margin: float) -> float:
    """Return the p that all shuffles of the shifted scores give: what is moved by a swap must not be a gain."""
    x, y = np.arange(losses + 1)[:, None], np.arange(wins + 1)
    rest = np.floor((x * (1 - margin) - y * (1 + margin)) / margin + 1e-9)
    chance = stats.binom.pmf(x, losses, 0.5) * stats.binom.pmf(y, wins, 0.5)
    return float((chance * stats.binom.cdf(rest, n - wins - losses, 0.5)).sum())


def of_clusters() -> Iterator[str]:
    """Simulate 0/1 scores that hang together within units."""
    dependences = (0.0, 0.1, 0.3, 0.6, 1.0)
    yield "| 0/1 scores in units | " + " | ".join(f"dependence {d:g}" for d in dependences) + " |"
    yield "|---" * (1 + len(dependences)) + "|"
    for n, within, margin, won in ((30, 10, 0.1, 0.1), (50, 10, 0.05, 0.05), (200, 10, 0.02, 0.0), (400, 5, 0.02, 0.0)):
        sizes = [cluster_size(n, within, margin, won, d) for d in dependences]
        cells = " | ".join(f"{size:.3f}" for size in sizes)
        yield f"| {n} units of {within}, margin {margin:g}, wins {100 * won:g} % | {cells} |"


def cluster_size(n: int, within: int, margin: float, won: float, dependence: float) -> float:
    """Return the share of sets whose system is shown; each unit has a probability of losses of its own."""
    rng = np.random.default_rng([1, n, int(10 * dependence)])
    units, shown, mean = np.repeat(np.arange(n), within), 0, margin + won
    for _ in range(N_SETS):
        u = np.repeat(rng.random(n), within) if dependence == 1 else rng.random(n * within)
        strength = (1 - dependence) / dependence if 0 < dependence < 1 else np.inf
        lost = rng.beta(mean * strength, (1 - mean) * strength, n) if np.isfinite(strength * mean) else np.full(n, mean)
        losses = u < lost[units]
        wins = ~losses & (u < lost[units] + won / (1 - mean) * (1 - lost[units]))
        matched = Matched.of(wins.astype(float) - losses, units)
        shown += matched.p_value(margin, ALPHA) <= ALPHA
    return shown / N_SETS


def of_graded() -> Iterator[str]:
    """Simulate graded scores of which few differ."""
    shapes: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
        "losses of 0 to 1": lambda rng, shape: -rng.random(shape),
        "losses, exponential": lambda rng, shape: -rng.exponential(size=shape),
        "wins and losses, normal": lambda rng, shape: rng.normal(size=shape) - 0.5,
    }
    yield "| graded scores, 300 units | expected to differ | shifted shuffle | marked | shown unmarked |"
    yield "|---|---|---|---|---|"
    for name, draw in shapes.items():
        for differ in (3, 5, 10, 20, 40, 80, 300):
            shown, marked = graded(draw, differ)
            unmarked = (shown & ~marked).mean()
            yield f"| {name} | {differ} | {shown.mean():.3f} | {100 * marked.mean():.0f} % | {unmarked:.3f} |"


def graded(draw: Callable[[np.random.Generator, tuple[int, int]], Array], differ: int) -> tuple[Array, Array]:
    """Return which sets pass, and which the gate marks as doubtful."""
    rng = np.random.default_rng([2, differ])
    margin = -float(draw(np.random.default_rng(0), (1, 10**6)).mean()) * differ / N_UNITS
    d = draw(rng, (N_SETS, N_UNITS)) * (rng.random((N_SETS, N_UNITS)) < differ / N_UNITS)
    signs = rng.choice([-1.0, 1.0], (N_SHUFFLES, N_UNITS))
    moved = d + margin
    extreme = sum((moved @ part.T >= moved.sum(axis=1, keepdims=True)).sum(axis=1) for part in np.array_split(signs, 9))
    marked = ((d != 0).sum(axis=1) < FEW_UNITS) | (-stats.skew(d, axis=1) / np.sqrt(N_UNITS) > SKEWED)
    return (extreme + 1) / (N_SHUFFLES + 1) <= ALPHA, marked


if __name__ == "__main__":
    main()
