"""Tests of sampled against exact p over many data sets, and of the true size of the test."""

import numpy as np
import pytest
from builders import build_rng
from scipy import stats

from sigdask.api import compare
from sigdask.statistics.bounds import compute_bound

pytestmark = pytest.mark.slow


def test_counts_over_many_data_sets_are_binomial_about_the_exact_p():
    z2, cases = 0.0, 0
    for k in range(50):
        a, b = build_rng(k).integers(0, 4, (2, 16))
        exact = compare(a, b).p_value
        n = 2**16
        if not 10 < n * exact < n - 10:
            continue
        sampled = compare(a, b, method="randomization", trials=n, seed=k, second_run=False, cluster="none")
        z2 += (sampled.n_extreme - n * exact) ** 2 / (n * exact * (1 - exact))
        cases += 1
    assert cases > 30
    assert 1e-4 < stats.chi2.sf(z2, cases) < 1 - 1e-4


def test_the_true_size_is_the_attainable_one():
    # 18,579 replications detect 0.06 against 0.05 at level 1e-4 with power 0.99 (STATISTICS section 13)
    from builders import build_panel

    from sigdask.metrics.forms import Ratios

    rng, n, rejected = build_rng(1), 18_579, 0
    mean = Ratios(((1, 0),), ((0, 1),))
    for k in range(n):
        score = rng.integers(-1000, 1001, (25, 2))
        panel = build_panel(np.stack([score, np.ones_like(score)], axis=-1), [mean], seed=k)
        tally = panel.tally(n_trials=199)
        rejected += compute_bound(int(tally.counts[0, 0, 2]), 199) <= 0.05
    assert stats.binomtest(rejected, n, 0.05).pvalue > 1e-4
