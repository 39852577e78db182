"""Error rates and power of comparisons of systems with several runs each: over items, over runs, and of recipes."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy
from numpy.typing import NDArray

from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.scenarios import Rng
from sigdask.statistics.dependence import compare_runs

ALPHA, GAIN = 0.05, 0.03
DIFFICULTY = 0.725
"""Both parameters of the beta distribution of items' chances. It gives the item variance of usual 0/1 scores."""

LIMIT = 0.06
"""Largest size of the test of recipes that is promised."""


def cases() -> list[Case]:
    """Return the cases of recipes: run sd in points, items, and runs of each system."""
    return [
        *(Case("recipes", f"run sd {sd} point{'s' * (sd > 1)}, {n:,} items, {n_runs} runs",
               partial(measure_outcomes, sd / 100, n, n_runs), 1_000, 50)
          for sd in (1, 2) for n in (1_000, 5_000) for n_runs in (3, 5, 10)),
        *(Case("recipes", f"equal variances, {n_runs} runs", partial(measure_equal_components, n_runs), n_sets, 500)
          for n_runs, n_sets in ((3, 20_000), (5, 20_000), (10, 5_000))),
    ]  # fmt: skip


def measure_outcomes(sd: float, n_items: int, n_runs: int, rng: Rng, n_sets: int) -> Outcomes:
    """Return what is rejected for right or wrong answers of equal recipes; runs shift all chances of their system."""
    chances = rng.beta(DIFFICULTY, DIFFICULTY, (n_sets, 1, 1, n_items))
    shifts = rng.normal(0, sd, (n_sets, 2, n_runs, 1))
    draws = rng.random((n_sets, 2, n_runs, n_items), np.float32)
    outcomes = {}
    for gain in (0.0, GAIN):
        right = draws < chances + shifts + np.array([gain, 0]).reshape(2, 1, 1)
        by_item = right.mean(axis=2)
        errors = np.std(by_item[:, 0] - by_item[:, 1], axis=1, ddof=1) / np.sqrt(n_items)
        outcomes[gain] = right.mean(axis=3), errors
    return _list_outcomes(*outcomes[0.0], *outcomes[GAIN], n_items)


def measure_equal_components(n_runs: int, rng: Rng, n_sets: int) -> Outcomes:
    """Return what is rejected if the variance of the difference over items equals that over runs."""
    n_items = 1_000
    item_error = 0.01
    errors = item_error * np.sqrt(rng.chisquare(n_items - 1, n_sets) / (n_items - 1))
    scores = rng.normal(0, item_error * np.sqrt(n_runs / 2), (n_sets, 2, n_runs))
    scores[:, 0] += rng.normal(0, item_error, (n_sets, 1))
    better = scores + np.array([GAIN, 0]).reshape(2, 1)
    return _list_outcomes(scores, errors, better, errors, n_items)


def _list_outcomes(
    scores: NDArray[np.float64], errors: NDArray[np.float64], better: NDArray[np.float64],
    better_errors: NDArray[np.float64], n_items: int,
) -> Outcomes:  # fmt: skip
    """Return which data sets each p rejects; the normal p over items is that of swaps with so many items."""
    unpaired, paired = (compare_runs(scores, errors, n_items, is_paired=is_paired) for is_paired in (False, True))
    power = compare_runs(better, better_errors, n_items, is_paired=True)  # whose permutations are few
    difference = scores[:, 0].mean(axis=1) - scores[:, 1].mean(axis=1)
    over_items = 2 * scipy.special.ndtr(-np.abs(difference) / errors)
    return {
        "over items": Outcome(over_items <= ALPHA, should="nothing"),
        "over runs": Outcome(unpaired.p_runs <= ALPHA, should="nothing"),
        "both": Outcome((over_items <= ALPHA) & (unpaired.p_runs <= ALPHA), should="nothing"),
        "recipes": Outcome(unpaired.p_value <= ALPHA, LIMIT),
        "recipes, paired": Outcome(paired.p_value <= ALPHA, LIMIT),
        "paired, better by 3 points": Outcome(power.p_value <= ALPHA, 0.0, "nothing"),
    }
