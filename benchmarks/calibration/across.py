"""Pairs over several test sets: the mean of their differences, and in how many sets they are said to differ."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.calibration.compared import MEAN, QUIET, pairs, scores_of, seed_of
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.scenarios import OF, Rng, thousandths
from sigdask import compare_sets
from sigdask.metrics.base import BoundMetric

ALPHA, N_TRIALS = 0.05, 999
SIZES = (10, 20, 50)
"""Units of each of three sets."""


def cases() -> list[Case]:
    """Return what is measured over several sets."""
    return [
        *(Case("across sets", f"{name}, three sets", partial(equal, name), 10_000, 250)
          for name in ("normal", "lognormal", "0/1 at 8 %")),
        Case("across sets", "normal, one set of three differs", one_differs, 10_000, 250),
    ]  # fmt: skip


def equal(name: str, rng: Rng, n_sets: int) -> Outcomes:
    """Take pairs of equal systems together over three sets."""
    return _together([OF[name].draw(rng, n, n_sets) for n in SIZES], rng, least=1, with_mean=True)


def one_differs(rng: Rng, n_sets: int) -> Outcomes:
    """Take pairs together that differ in one set alone: two or more must not be found."""
    drawn = [OF["normal"].draw(rng, n, n_sets) for n in SIZES]
    a, b = drawn[-1]
    drawn[-1] = a + thousandths(np.array(2.0)), b
    return _together(drawn, rng, least=2, with_mean=False)


def _together(drawn, rng: Rng, *, least: int, with_mean: bool) -> Outcomes:
    sets = [replace(scores_of(a, b), name=f"set {k}") for k, (a, b) in enumerate(drawn)]
    metric = BoundMetric("mean", tuple(sets[0].fields), MEAN)
    found = compare_sets(
        sets, metrics=[metric], pairs=pairs(sets[0]), together=True, adjust="none", method="randomization",
        trials=N_TRIALS, seed=seed_of(rng), **QUIET,
    ).together  # fmt: skip
    shown = np.array([max(r.greater_in, r.less_in) >= least for r in found])
    mean = {"mean of the differences": Outcome(np.array([r.p_value <= ALPHA for r in found]))}
    return {**(mean if with_mean else {}), f"{least} or more sets said to differ": Outcome(shown)}
