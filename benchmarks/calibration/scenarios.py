"""Scores of two systems of one mean, where tests are weakest: few units, skewness, ties, sparse 0/1, heavy tails.

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
    """

    name: str
    draw: Callable[[Rng, int, int], tuple[Scores, Scores]]
    exchangeable: bool = True

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


def opposite(rng: Rng, shape: tuple[int, ...]) -> NDArray[Any]:
    """Exponentials, one of them turned round."""
    return (rng.exponential(1, shape) - 1) * np.array([1.0, -1.0])[:, None, None]


def one_sided(rng: Rng, shape: tuple[int, ...]) -> NDArray[Any]:
    """Differences of mean 0: a tenth of the units lose 0.9, all others win 0.1."""
    found = np.zeros(shape)
    found[0] = np.where(rng.random(shape[1:]) < 0.1, -0.9, 0.1)
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
    Scenario("t, 2.5 degrees", _beside(lambda rng, shape: rng.standard_t(2.5, shape))),
    Scenario("grades 0 to 3", graded),
    Scenario("0/1 at 8 %", sparse),
    Scenario("0/1 at 60 %, r = 0.8", alike),
    Scenario("exponential, opposite", _beside(opposite), exchangeable=False),
    Scenario("rare large losses", _beside(one_sided), exchangeable=False),
)
OF = {scenario.name: scenario for scenario in SCENARIOS}
SIZES = (5, 6, 10, 20, 50)
"""Units."""
