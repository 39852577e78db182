"""Error rates of mean differences over several test sets."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.calibration.compared import MEAN, QUIET, build_score_counts, draw_seed, list_pairs
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.scenarios import SCENARIOS_BY_NAME, Rng
from sigdask import compare_sets
from sigdask.metrics.base import BoundMetric

ALPHA, N_TRIALS = 0.05, 999
SET_SIZES = (10, 20, 50)
"""Units of each of three sets."""


def cases() -> list[Case]:
    """Return the cases of several test sets."""
    return [
        Case("across sets", f"{name}, three sets", partial(measure_equal, name), 10_000, 250)
        for name in ("normal", "lognormal", "0/1 at 8 %")
    ]


def measure_equal(name: str, rng: Rng, n_sets: int) -> Outcomes:
    """Compare pairs of equal systems over three sets."""
    samples = [SCENARIOS_BY_NAME[name].draw(rng, n, n_sets) for n in SET_SIZES]
    sets = [replace(build_score_counts(a, b), name=f"set {k}") for k, (a, b) in enumerate(samples)]
    metric = BoundMetric("mean", tuple(sets[0].fields), MEAN)
    comparisons = compare_sets(
        sets, metrics=[metric], pairs=list_pairs(sets[0]), together=True, adjust="none", method="randomization",
        trials=N_TRIALS, seed=draw_seed(rng), **QUIET,
    ).together  # fmt: skip
    return {"mean of the differences": Outcome(np.array([r.p_value <= ALPHA for r in comparisons]))}
