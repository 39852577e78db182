"""Error rates of non-inferiority tests, for a system that is worse by exactly the margin.

0/1 scores by item are enumerated; clusters and graded scores are simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.calibration.measuring import Case, Outcome, Outcomes, as_measure
from sigdask.analysis.comparison.families import FEW_UNITS
from sigdask.analysis.comparison.margins import MAX_SKEWNESS
from sigdask.statistics.classical import MatchedProportions

ALPHA, N_SHUFFLES, N_UNITS = 0.05, 999, 300
Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]

ITEMS = (
    (300, 0.01, 0.0), (300, 0.02, 0.0), (300, 0.05, 0.0), (300, 0.01, 0.01), (300, 0.05, 0.1),
    (1000, 0.01, 0.0), (1000, 0.01, 0.02), (100, 0.05, 0.0), (100, 0.05, 0.02), (100, 0.05, 0.1),
)  # fmt: skip
"""Items, margin, share of wins."""

CLUSTERS = ((30, 10, 0.1, 0.1), (50, 10, 0.05, 0.05), (200, 10, 0.02, 0.0), (400, 5, 0.02, 0.0))
"""Units, items in each, margin, share of wins."""

SHAPES: dict[str, Draw] = {
    "losses of 0 to 1": lambda rng, shape: -rng.random(shape),
    "losses, exponential": lambda rng, shape: -rng.exponential(size=shape),
    "wins and losses, normal": lambda rng, shape: rng.normal(size=shape) - 0.5,
}


def cases() -> list[Case]:
    """Return the cases of non-inferiority."""
    return [
        *(Case("margins", f"{n:,} items, worse by {margin:g}, wins {100 * won:g} %",
               as_measure(partial(_measure_items, n, margin, won)), 1, 1) for n, margin, won in ITEMS),
        *(Case("margins", f"{n} units of {within}, margin {margin:g}, dependence {dependence:g}",
               partial(_measure_clusters, (n, within, margin, won), dependence), 10_000, 500)
          for n, within, margin, won in CLUSTERS for dependence in (0.0, 0.1, 0.6)),
        *(Case("margins", f"{name}, {differ} of 300 units differ", partial(_measure_graded, draw, differ), 10_000, 500)
          for name, draw in SHAPES.items() for differ in (10, 80)),
    ]  # fmt: skip


def _measure_items(n: int, margin: float, won: float) -> Outcomes:
    shuffled, gate_size = compute_item_sizes(n, margin, won)
    return {"the gate's test": Outcome(np.array([gate_size])), "shifted shuffle": Outcome(np.array([shuffled]))}


def _measure_clusters(
    shape: tuple[int, int, float, float], dependence: float, rng: np.random.Generator, n_sets: int
) -> Outcomes:
    return {"the gate's test": Outcome(np.array([simulate_pass(rng, *shape, dependence) for _ in range(n_sets)]))}


def _measure_graded(draw: Draw, differ: int, rng: np.random.Generator, n_sets: int) -> Outcomes:
    passed, is_doubtful = simulate_graded(draw, differ, rng, n_sets)
    return {"the gate's test": Outcome(passed), "and not marked as doubtful": Outcome(passed & ~is_doubtful)}


def compute_item_sizes(n: int, margin: float, won: float) -> tuple[float, float]:
    """Return the sizes of the shifted shuffle and of the gate's test, at the margin."""
    wins, losses = np.indices((n + 1, n + 1)).reshape(2, -1)
    wins, losses = wins[wins + losses <= n], losses[wins + losses <= n]
    chance = stats.multinomial.pmf(np.c_[wins, losses, n - wins - losses], n, [won, won + margin, 1 - margin - 2 * won])
    likely = chance > 1e-7
    tables = list(zip(wins[likely], losses[likely], chance[likely], strict=True))
    shuffled = sum(p for w, x, p in tables if compute_shuffled_p(int(w), int(x), n, margin) <= ALPHA)
    gate_size = sum(
        p for w, x, p in tables if MatchedProportions(int(w), int(x), n).compute_p_value(margin, ALPHA) <= ALPHA
    )
    return shuffled, gate_size


def compute_shuffled_p(wins: int, losses: int, n: int, margin: float) -> float:
    """Return the exact p-value of the shifted scores, enumerated over all swaps."""
    x, y = np.arange(losses + 1)[:, None], np.arange(wins + 1)
    rest = np.floor((x * (1 - margin) - y * (1 + margin)) / margin + 1e-9)
    chance = stats.binom.pmf(x, losses, 0.5) * stats.binom.pmf(y, wins, 0.5)
    return float((chance * stats.binom.cdf(rest, n - wins - losses, 0.5)).sum())


def simulate_pass(rng: np.random.Generator, n: int, within: int, margin: float, won: float, dependence: float) -> bool:
    """Draw 0/1 scores of units, each with its own loss probability; return whether the system passes."""
    units, mean = np.repeat(np.arange(n), within), margin + won
    u = np.repeat(rng.random(n), within) if dependence == 1 else rng.random(n * within)
    strength = (1 - dependence) / dependence if 0 < dependence < 1 else np.inf
    loss_probability = (
        rng.beta(mean * strength, (1 - mean) * strength, n) if np.isfinite(strength * mean) else np.full(n, mean)
    )
    losses = u < loss_probability[units]
    wins = ~losses & (u < loss_probability[units] + won / (1 - mean) * (1 - loss_probability[units]))
    proportions = MatchedProportions.from_differences(wins.astype(float) - losses, units)
    return proportions.compute_p_value(margin, ALPHA) <= ALPHA


def simulate_graded(draw: Draw, differ: int, rng: np.random.Generator, n_sets: int) -> tuple[NDArray[np.bool_], Array]:
    """Return which sets pass, and which the gate marks as doubtful."""
    margin = -float(draw(np.random.default_rng(0), (1, 10**6)).mean()) * differ / N_UNITS
    d = draw(rng, (n_sets, N_UNITS)) * (rng.random((n_sets, N_UNITS)) < differ / N_UNITS)
    signs = rng.choice([-1.0, 1.0], (N_SHUFFLES, N_UNITS))
    shifted = d + margin
    extreme = sum(
        (shifted @ chunk.T >= shifted.sum(axis=1, keepdims=True)).sum(axis=1) for chunk in np.array_split(signs, 9)
    )
    is_doubtful = ((d != 0).sum(axis=1) < FEW_UNITS) | (-stats.skew(d, axis=1) / np.sqrt(N_UNITS) > MAX_SKEWNESS)
    return (extreme + 1) / (N_SHUFFLES + 1) <= ALPHA, is_doubtful
