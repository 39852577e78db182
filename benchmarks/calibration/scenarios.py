"""Scores of two systems with equal means, where tests are weakest: few units, skewness, ties, sparse 0/1.

The tables of sizes, coverage, power and the diagnosis all use this one list, scenarios in which methods fail among it.
Each draws whole numbers (thousandths, counts, or 0 and 1) of many data sets at once, shape (n_units, n_sets) a system.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.int64]
Rng = np.random.Generator

THOUSAND = 1000
"""Real scores are read to three decimals."""

SIZES = (5, 6, 10, 20, 50)
"""Units of most scenarios."""

FAILING_SIZES = (10, 20, 30, 50, 100)
"""Units of scenarios in which tests fail: how fast that wears off."""

INTERVAL_SIZES = (10, 25, 50, 200)
"""Units of which intervals are measured in every scenario."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Scores of two systems, drawn at random.

    Attributes
    ----------
    name : str
    draw : callable
        `(rng, n_units, n_sets)` to the scores of both.
    exchangeable : bool
        Whether the two outputs of a unit may be exchanged, as the null says; or only their means are equal.
    sizes : tuple of int
        Units of which sizes of tests are measured.
    covered : tuple of int
        Units of which the coverage of intervals is measured.
    is_graded : bool
        Scores are grades or 0 and 1: a better system cannot have its scores shifted.
    """

    name: str
    draw: Callable[[Rng, int, int], tuple[Scores, Scores]]
    exchangeable: bool = True
    sizes: tuple[int, ...] = SIZES
    covered: tuple[int, ...] = INTERVAL_SIZES
    is_graded: bool = False

    def draw_better(self, rng: Rng, n_units: int, n_sets: int, shift: float = 0.5) -> tuple[Scores, Scores]:
        """Draw scores with a better first system.

        Its scores are shifted by `shift` standard deviations of the difference. Where they are grades or 0 and 1, it has
        in 30 % of the units the better one of two answers.
        """
        a, b = self.draw(rng, n_units, n_sets)
        if self.is_graded:
            better = np.maximum(a, self.draw(rng, n_units, n_sets)[0])
            return np.where(rng.random(a.shape) < 0.3, better, a), b
        wide = np.subtract(*self.draw(rng, 100_000, 1)).std()
        return a + round(shift * float(wide)), b

    @property
    def row(self) -> str:
        """Name in tables; an asterisk marks systems that are not exchangeable."""
        return self.name if self.exchangeable else f"{self.name} *"


def to_thousandths(scores: NDArray[Any]) -> Scores:
    """Round real scores to three decimals, as integers in thousandths."""
    return np.rint(THOUSAND * scores).astype(np.int64)


def _add_difficulty(
    noise: Callable[[Rng, tuple[int, ...]], NDArray[Any]],
) -> Callable[[Rng, int, int], tuple[Scores, Scores]]:
    """Return a function that draws both systems' noise plus a common difficulty of each unit."""

    def draw(rng: Rng, n_units: int, n_sets: int) -> tuple[Scores, Scores]:
        a, b = to_thousandths(noise(rng, (2, n_units, n_sets)) + rng.standard_normal((n_units, n_sets)))
        return a, b

    return draw


def draw_unequal(rng: Rng, shape: tuple[int, ...]) -> NDArray[Any]:
    """Draw normals of standard deviation 1 and 4."""
    return rng.standard_normal(shape) * np.array([1.0, 4.0])[:, None, None]


def draw_lognormals(rng: Rng, shape: tuple[int, ...]) -> NDArray[Any]:
    """Draw lognormals, both skewed to the right."""
    return np.exp(rng.standard_normal(shape))


def flip_second(noise: NDArray[Any]) -> NDArray[Any]:
    """Flip the sign of the second system's noise, so that differences are skewed."""
    return noise * np.array([1.0, -1.0])[:, None, None]


def draw_gamma(rng: Rng, shape: tuple[int, ...], skewness: float = 3) -> NDArray[Any]:
    """Draw gammas of mean 0, standard deviation 1 and a given skewness."""
    k = 4 / skewness**2
    return (rng.gamma(k, 1, shape) - k) / np.sqrt(k)


def draw_rare_losses(rng: Rng, shape: tuple[int, ...]) -> NDArray[Any]:
    """Draw differences of mean 0: a loss of 1.9 on one unit in twenty, else a win of 0.1."""
    noise = np.zeros(shape)
    noise[0] = np.where(rng.random(shape[1:]) < 0.05, -1.9, 0.1)
    return noise


def draw_grades(rng: Rng, n_units: int, n_sets: int) -> tuple[Scores, Scores]:
    """Draw grades from 0 to 3, with many ties."""
    a, b = rng.integers(0, 4, (2, n_units, n_sets))
    return a, b


def draw_sparse(rng: Rng, n_units: int, n_sets: int, share: float = 0.08) -> tuple[Scores, Scores]:
    """Draw 0/1 scores, 8 % of them 1."""
    a, b = (rng.random((2, n_units, n_sets)) < share).astype(np.int64)
    return a, b


def draw_similar(rng: Rng, n_units: int, n_sets: int, shared_rate: float = 0.8) -> tuple[Scores, Scores]:
    """Draw 0/1 scores, 60 % of them 1, of two systems that share 80 % of their answers."""
    a, b = (rng.random((2, n_units, n_sets)) < 0.6).astype(np.int64)
    return a, np.where(rng.random((n_units, n_sets)) < shared_rate, a, b)


SCENARIOS = (
    Scenario("normal", _add_difficulty(lambda rng, shape: rng.standard_normal(shape))),
    Scenario("normal, sd 1 and 4", _add_difficulty(draw_unequal)),
    Scenario("lognormal", _add_difficulty(draw_lognormals)),
    Scenario("uniform", _add_difficulty(lambda rng, shape: rng.uniform(-1, 1, shape)), sizes=(10, 20, 50)),
    Scenario("logistic", _add_difficulty(lambda rng, shape: rng.logistic(size=shape)), sizes=(10, 20, 50)),
    Scenario("t, 2.5 degrees", _add_difficulty(lambda rng, shape: rng.standard_t(2.5, shape))),
    Scenario("grades 0 to 3", draw_grades, is_graded=True),
    Scenario("0/1 at 8 %", draw_sparse, is_graded=True),
    Scenario("0/1 at 60 %, r = 0.8", draw_similar, is_graded=True),
    Scenario("exponential, opposite", _add_difficulty(lambda rng, shape: flip_second(rng.exponential(1, shape) - 1)),
             exchangeable=False, sizes=(5, 6, *FAILING_SIZES)),
    Scenario("lognormal, opposite", _add_difficulty(lambda rng, shape: flip_second(draw_lognormals(rng, shape) - np.exp(0.5))),
             exchangeable=False, sizes=FAILING_SIZES, covered=(30, 50, 100)),
    Scenario("gamma of skewness 3, opposite", _add_difficulty(lambda rng, shape: flip_second(draw_gamma(rng, shape))),
             exchangeable=False, sizes=FAILING_SIZES, covered=(30, 50, 100)),
    Scenario("rare large losses", _add_difficulty(draw_rare_losses), exchangeable=False, sizes=(5, 6, *FAILING_SIZES), covered=FAILING_SIZES[1:]),
)  # fmt: skip
SCENARIOS_BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
