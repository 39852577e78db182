"""Error rates over several test sets: of mean differences and of the number of sets that differ."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.calibration.compared import MEAN, QUIET, build_score_counts, draw_seed, list_pairs
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.scenarios import SCENARIOS_BY_NAME, Rng, to_thousandths
from sigdask import compare_sets
from sigdask.metrics.base import BoundMetric

ALPHA, N_TRIALS = 0.05, 999
SET_SIZES = (10, 20, 50)
"""Units of each of three sets."""


def cases() -> list[Case]:
    """Return the cases of several test sets."""
    return [
        *(Case("across sets", f"{name}, three sets", partial(measure_equal, name), 10_000, 250)
          for name in ("normal", "lognormal", "0/1 at 8 %")),
        Case("across sets", "normal, one set of three differs", measure_one_different, 10_000, 250),
    ]  # fmt: skip


def measure_equal(name: str, rng: Rng, n_sets: int) -> Outcomes:
    """Compare pairs of equal systems over three sets."""
    return _compare_together(
        [SCENARIOS_BY_NAME[name].draw(rng, n, n_sets) for n in SET_SIZES], rng, min_sets=1, with_mean=True
    )


def measure_one_different(rng: Rng, n_sets: int) -> Outcomes:
    """Compare pairs that differ in only one set: two or more must not be found."""
    samples = [SCENARIOS_BY_NAME["normal"].draw(rng, n, n_sets) for n in SET_SIZES]
    a, b = samples[-1]
    samples[-1] = a + to_thousandths(np.array(2.0)), b
    return _compare_together(samples, rng, min_sets=2, with_mean=False)


def _compare_together(samples, rng: Rng, *, min_sets: int, with_mean: bool) -> Outcomes:
    sets = [replace(build_score_counts(a, b), name=f"set {k}") for k, (a, b) in enumerate(samples)]
    metric = BoundMetric("mean", tuple(sets[0].fields), MEAN)
    comparisons = compare_sets(
        sets, metrics=[metric], pairs=list_pairs(sets[0]), together=True, adjust="none", method="randomization",
        trials=N_TRIALS, seed=draw_seed(rng), **QUIET,
    ).together  # fmt: skip
    is_shown = np.array([max(r.greater_in, r.less_in) >= min_sets for r in comparisons])
    mean = {"mean of the differences": Outcome(np.array([r.p_value <= ALPHA for r in comparisons]))}
    return {**(mean if with_mean else {}), f"{min_sets} or more sets said to differ": Outcome(is_shown)}
