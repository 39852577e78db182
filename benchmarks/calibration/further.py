"""Labellings, and powers that are foretold."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.calibration.compared import pairs, scores_of, seed_of
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.pairs import power_of_t
from benchmarks.calibration.scenarios import Rng, thousandths
from sigdask import independence_all, power
from sigdask.counts import Counts

ALPHA, N_TRIALS = 0.05, 999
LABELS = ("N", "V", "A")


def cases() -> list[Case]:
    """Return what is measured of these."""
    return [
        *(Case("labellings", f"{n} items, labels of 70, 20 and 10 %", partial(labellings, n), 5_000, 100)
          for n in (8, 50)),
        *(Case("foretold power", f"{n} normal units, better by {shift:g} sd", partial(foretold, n, shift), 400, 50)
          for n, shift in ((30, 0.5), (100, 0.3))),
    ]  # fmt: skip


def labellings(n_items: int, rng: Rng, n_sets: int) -> Outcomes:
    """Say which labellings that depend on nothing are found to depend on the gold labels."""
    drawn = rng.choice(LABELS, (n_sets + 1, n_items), p=(0.7, 0.2, 0.1))
    drawn[0, :3] = LABELS  # gold has each
    counts = Counts.from_labels(drawn[0].tolist(), {f"s{k}": own.tolist() for k, own in enumerate(drawn[1:])})
    found = independence_all(
        counts, metrics=["accuracy", "macro-f1"], seed=seed_of(rng), trials=N_TRIALS, method="randomization",
        second_run=False, cluster="none",
    )  # fmt: skip
    names = dict.fromkeys(one.metric for one in found)
    return {name: Outcome(np.array([one.p_value <= ALPHA for one in found if one.metric == name])) for name in names}


def foretold(n_units: int, shift: float, rng: Rng, n_sets: int) -> Outcomes:
    """Return the powers that samples foretell of a difference, which are true on average if they are beside the exact one."""
    a, b = thousandths(rng.standard_normal((2, n_units, n_sets)) / np.sqrt(2))
    counts = scores_of(a + round(1000 * shift), b)
    found = power(
        counts, difference=1000 * shift, metrics="mean", pairs=pairs(counts), samples=200, seed=seed_of(rng),
        cluster="none", cache=False,
    )  # fmt: skip
    told = np.array([np.nan if one.at_wanted is None else one.at_wanted.power for one in found])
    return {"power foretold": Outcome(told[~np.isnan(told)], power_of_t(n_units, shift), "nothing")}
