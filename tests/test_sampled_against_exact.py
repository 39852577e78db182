"""Tests of counts of 2^20 trials against exact p, over data sets and metrics, by a chi-squared sum.

Exact values are held against rationals elsewhere (tests/statistics/exact); here they judge the trials, and
the trials them.
"""

import numpy as np
import pytest
from builders import build_rng
from scipy import stats

from sigdask.api import compare_all
from sigdask.counts import Counts

N_TRIALS = 2**20
MIN_EXPECTED = 50


def draw_answers(rng, n):
    """Draw gold labels of two classes, and three systems that are correct with different chances."""
    gold = rng.integers(0, 2, n)
    systems = {f"s{k}": np.where(rng.random(n) < chance, gold, 1 - gold) for k, chance in enumerate((0.7, 0.74, 0.72))}
    return Counts.from_labels(
        ["NP"[g] for g in gold], {name: ["NP"[x] for x in labels] for name, labels in systems.items()}
    )


def iter_data_sets():
    """Yield fifty data sets of several kinds, each with its metrics; seeds are fixed."""
    for k in range(50):
        rng = build_rng(k)
        n = int(rng.integers(30, 400))
        kind = k % 5
        if kind == 0:
            yield Counts.from_scores({f"s{j}": rng.integers(0, 2, n) for j in range(3)}), ["mean"]
        elif kind == 1:
            yield Counts.from_scores({f"s{j}": rng.normal(j / 20, 1, n).round(2) for j in range(3)}), ["mean"]
        elif kind == 2:
            yield Counts.from_scores({f"s{j}": rng.integers(0, 6, n) for j in range(3)}), ["mean"]
        elif kind == 3:
            yield draw_answers(rng, n), ["accuracy", "precision[P]", "recall[P]", "f1[P]"]
        else:
            yield Counts.from_scores({f"s{j}": rng.normal(j / 9, 1, 36) for j in range(3)}), ["mean"]


@pytest.mark.slow
def test_squares_of_the_deviations_of_sampled_counts_add_up_to_chi_squared():
    deviations, methods = [], set()
    for seed, (counts, metrics) in enumerate(iter_data_sets()):
        # the first pair of each alone: those of one set share their shuffles, and so do metrics
        metric = metrics[seed // 5 % len(metrics)]
        [r] = compare_all(
            counts, metrics=[metric], pairs=[("s0", "s1")], method="both", trials=N_TRIALS, seed=seed, interval="none"
        )
        assert not r.disagreements()
        methods.add(r.exact.method)
        p = r.exact.p_hi
        for k, n in ((r.n_extreme, r.n_trials), (r.second_run.n_extreme, r.second_run.n_trials)):
            if min(p, 1 - p) * n >= MIN_EXPECTED:
                deviations.append((k - n * p) / np.sqrt(n * p * (1 - p)))
    assert len(deviations) >= 80
    assert {"binomial", "polynomial", "meet-in-the-middle"} <= methods
    assert 1e-4 < stats.chi2.sf(np.sum(np.square(deviations)), len(deviations)) < 1 - 1e-4
    assert abs(np.sum(deviations)) < 4 * np.sqrt(len(deviations))
