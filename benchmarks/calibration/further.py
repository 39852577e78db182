"""Rankings of candidates, labellings, and powers that are foretold."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.calibration.compared import pairs, scores_of, seed_of
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.pairs import power_of_t
from benchmarks.calibration.scenarios import Rng, thousandths
from sigdask import independence_all, power
from sigdask.counts import Counts
from sigdask.rankings import Candidates, evaluate

ALPHA, N_TRIALS = 0.05, 999
LABELS = ("N", "V", "A")
N_BEST = (25, 50, 100, 200)


def cases() -> list[Case]:
    """Return what is measured of these."""
    return [
        *(Case("labellings", f"{n} items, labels of 70, 20 and 10 %", partial(labellings, n), 5_000, 100)
          for n in (8, 50)),
        Case("rankings", "500 candidates, 20 % true, two measures of one quality", rankings, 4_000, 50),
        *(Case("foretold power", f"{n} normal units, better by {shift:g} sd", partial(foretold, n, shift), 400, 50)
          for n, shift in ((30, 0.5), (100, 0.3))),
    ]  # fmt: skip


def labellings(n_items: int, rng: Rng, n_sets: int) -> Outcomes:
    """Say which labellings that hang on nothing are found to hang together with the gold labels."""
    drawn = rng.choice(LABELS, (n_sets + 1, n_items), p=(0.7, 0.2, 0.1))
    drawn[0, :3] = LABELS  # gold has each
    counts = Counts.from_labels(drawn[0].tolist(), {f"s{k}": own.tolist() for k, own in enumerate(drawn[1:])})
    found = independence_all(
        counts, metrics=["accuracy", "macro-f1"], seed=seed_of(rng), trials=N_TRIALS, method="randomization",
        second_run=False, cluster="none",
    )  # fmt: skip
    names = dict.fromkeys(one.metric for one in found)
    return {name: Outcome(np.array([one.p_value <= ALPHA for one in found if one.metric == name])) for name in names}


def rankings(rng: Rng, n_sets: int) -> Outcomes:
    """Say how often two measures of one quality are found to differ: at one n by Fisher's test, at any n together."""
    fisher, together, average = (np.zeros(n_sets, np.bool_) for _ in range(3))
    for k in range(n_sets):
        gold = rng.random(500) < 0.2
        scores = gold + rng.standard_normal(500) + rng.standard_normal((2, 500))
        found = evaluate(
            Candidates.of(gold.astype(int), {"x": scores[0], "y": scores[1]}), n=list(N_BEST), seed=seed_of(rng),
            trials=N_TRIALS, cluster="none",
        )  # fmt: skip
        fisher[k] = next(one.p_fisher for one in found.differences if one.n == N_BEST[2]) <= ALPHA
        together[k] = min(one.p_adjusted for one in found.differences) <= ALPHA
        average[k] = found.average_precision[0].p_value <= ALPHA
    return {
        "100 best, Fisher": Outcome(fisher),
        "any n, max-T": Outcome(together),
        "average precision": Outcome(average),
    }


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
