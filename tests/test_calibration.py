"""Test of the true size of the test."""

import numpy as np
import pytest
from builders import build_panel, build_rng
from scipy import stats

from sigdask.metrics.forms import Ratios
from sigdask.statistics.bounds import compute_bound

pytestmark = pytest.mark.slow


def test_the_true_size_is_the_attainable_one():
    # 18,579 replications detect 0.06 against 0.05 at level 1e-4 with power 0.99 (STATISTICS section 13)
    rng, n, rejected = build_rng(1), 18_579, 0
    mean = Ratios(((1, 0),), ((0, 1),))
    for k in range(n):
        score = rng.integers(-1000, 1001, (25, 2))
        panel = build_panel(np.stack([score, np.ones_like(score)], axis=-1), [mean], seed=k)
        tally = panel.tally(n_trials=199)
        rejected += compute_bound(int(tally.counts[0, 0, 2]), 199) <= 0.05
    assert stats.binomtest(rejected, n, 0.05).pvalue > 1e-4
