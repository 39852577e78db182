"""Scores of two systems of one mean, where tests are weakest: few units, skewness, ties, sparse 0/1, heavy tails.

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

FAILING = (10, 20, 30, 50, 100)
"""Units of scenarios in which tests fail: how fast that wears off."""

COVERED = (10, 25, 50, 200)
"""Units of which intervals are measured in every scenario."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Two systems.

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
    covered: tuple[int, ...] = COVERED
    is_graded: bool = False

    def draw_better(self, rng: Rng, n_units: int, n_sets: int, by: float = 0.5) -> tuple[Scores, Scores]:
        """Draw a first system that is better.

        Its scores are shifted by `by` standard deviations of the difference. Where they are grades or 0 and 1, it has
        in 30 % of the units the better one of two answers.
        """
        a, b = self.draw(rng, n_units, n_sets)
        if self.is_graded:
            again = np.maximum(a, self.draw(rng, n_units, n_sets)[0])
            return np.where(rng.random(a.shape) < 0.3, again, a), b
        wide = np.subtract(*self.draw(rng, 100_000, 1)).std()
        return a + round(by * float(wide)), b

    @property
    def row(self) -> str:
        """What a table calls it."""
        return self.name if self.exchangeable else f"{self.name} *"


def thousandths(scores: NDArray[Any]) -> Scores:
    """Read real scores to three decimals, in whole numbers."""
    return np.rint(THOUSAND * scores).astype(np.int64)


def _beside(noise: Callable[[Rng, tuple[int, ...]], NDArray[Any]]) -> Callable[[Rng, int, int], tuple[Scores, Scores]]:
    """Draw two systems' noise around how hard each unit is."""

    def draw(rng: Rng, n_units: int, n_sets: int) -> tuple[Scores, Scores]:
        a, b = thousandths(noise(rng, (2, n_units, n_sets)) + rng.standard_normal((n_units, n_sets)))
        return a, b

    return draw


def unequal(rng: Rng, shape: tuple[int, ...]) -> NDArray[Any]:
    """Normals of standard deviation 1 and 4."""
    return rng.standard_normal(shape) * np.array([1.0, 4.0])[:, None, None]


def lognormals(rng: Rng, shape: tuple[int, ...]) -> NDArray[Any]:
    """Lognormals, both skewed to the right."""
    return np.exp(rng.standard_normal(shape))


def opposite(noise: NDArray[Any]) -> NDArray[Any]:
    """Turn the noise of the second system round, so that differences are skewed."""
    return noise * np.array([1.0, -1.0])[:, None, None]


def gamma(rng: Rng, shape: tuple[int, ...], skewness: float = 3) -> NDArray[Any]:
    """Gammas of mean 0, standard deviation 1 and a skewness."""
    k = 4 / skewness**2
    return (rng.gamma(k, 1, shape) - k) / np.sqrt(k)


def one_sided(rng: Rng, shape: tuple[int, ...]) -> NDArray[Any]:
    """Differences of mean 0: one unit in twenty loses 1.9, all others win 0.1."""
    found = np.zeros(shape)
    found[0] = np.where(rng.random(shape[1:]) < 0.05, -1.9, 0.1)
    return found


def graded(rng: Rng, n_units: int, n_sets: int) -> tuple[Scores, Scores]:
    """Grades from 0 to 3, with many ties."""
    a, b = rng.integers(0, 4, (2, n_units, n_sets))
    return a, b


def sparse(rng: Rng, n_units: int, n_sets: int, share: float = 0.08) -> tuple[Scores, Scores]:
    """0/1 scores, 1 at 8 %."""
    a, b = (rng.random((2, n_units, n_sets)) < share).astype(np.int64)
    return a, b


def alike(rng: Rng, n_units: int, n_sets: int, same: float = 0.8) -> tuple[Scores, Scores]:
    """0/1 scores, 1 at 60 %, of systems that share four fifths of their answers: correlation 0.8."""
    a, b = (rng.random((2, n_units, n_sets)) < 0.6).astype(np.int64)
    return a, np.where(rng.random((n_units, n_sets)) < same, a, b)


SCENARIOS = (
    Scenario("normal", _beside(lambda rng, shape: rng.standard_normal(shape))),
    Scenario("normal, sd 1 and 4", _beside(unequal)),
    Scenario("lognormal", _beside(lognormals)),
    Scenario("uniform", _beside(lambda rng, shape: rng.uniform(-1, 1, shape)), sizes=(10, 20, 50)),
    Scenario("logistic", _beside(lambda rng, shape: rng.logistic(size=shape)), sizes=(10, 20, 50)),
    Scenario("t, 2.5 degrees", _beside(lambda rng, shape: rng.standard_t(2.5, shape))),
    Scenario("grades 0 to 3", graded, is_graded=True),
    Scenario("0/1 at 8 %", sparse, is_graded=True),
    Scenario("0/1 at 60 %, r = 0.8", alike, is_graded=True),
    Scenario("exponential, opposite", _beside(lambda rng, shape: opposite(rng.exponential(1, shape) - 1)),
             exchangeable=False, sizes=(5, 6, *FAILING)),
    Scenario("lognormal, opposite", _beside(lambda rng, shape: opposite(lognormals(rng, shape) - np.exp(0.5))),
             exchangeable=False, sizes=FAILING, covered=(30, 50, 100)),
    Scenario("gamma of skewness 3, opposite", _beside(lambda rng, shape: opposite(gamma(rng, shape))),
             exchangeable=False, sizes=FAILING, covered=(30, 50, 100)),
    Scenario("rare large losses", _beside(one_sided), exchangeable=False, sizes=(5, 6, *FAILING), covered=FAILING[1:]),
)  # fmt: skip
OF = {scenario.name: scenario for scenario in SCENARIOS}
