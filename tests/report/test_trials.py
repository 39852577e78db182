"""Tests of the share of trials that could not change a verdict: by enumeration, and in reports."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.report.page import render_page
from sigdask.report.terminal import render
from sigdask.statistics.stopping import compute_settled_after


def test_a_verdict_is_settled_where_the_curtailed_rule_says_in_the_mean_over_all_orders():
    # by enumeration of the places of k exceedances among n trials, in fractions
    for n, alpha in ((9, 0.3), (11, 0.25), (6, 0.05), (9, 0.5)):
        for k in range(n + 1):
            ends = [
                Fraction(find_decisive_trial(set(positions), n, alpha))
                for positions in itertools.combinations(range(n), k)
            ]
            assert compute_settled_after(k, n, alpha) == pytest.approx(float(sum(ends) / len(ends)), rel=1e-12)


def find_decisive_trial(positions, n, alpha):
    """Return after how many trials the verdict on (k + 1) / (n + 1) is fixed, whatever the rest."""
    for t in range(n + 1):
        k = len([position for position in positions if position < t])
        if ((k + 1) / (n + 1) <= alpha) == ((k + n - t + 1) / (n + 1) <= alpha):
            return t
    raise AssertionError


def test_thousands_of_comparisons_are_told_what_share_of_their_trials_decided_nothing():
    rng = np.random.default_rng(3)
    counts = Counts.from_scores({f"s{k}": rng.integers(0, 100, 40) for k in range(46)})
    options = {"metrics": ["mean"], "trials": 999, "second_run": False, "beside": False}
    results = compare_all(counts, adjust="none", **options)
    k = np.array([r.n_extreme for r in results])
    assert len(k) == 1035
    ends = np.where(k < 50, (999 - 50 + 1) * 1000 / (999 - k + 1), 50 * 1000 / (k + 1))
    sentence = (
        f"{1 - ends.sum() / (999 * len(k)):.1%} of the first run's trials were not needed, because the verdicts at 0.05"
    )
    assert sentence in render(results, verbose=True)
    assert sentence.replace("'", "&#39;") in render_page({"": results}, title="x")
    adjusted = compare_all(counts, adjust="holm", **options)
    ends = np.where(k < 50, 999, 50 * 1000 / (k + 1))
    share = 1 - ends.sum() / (999 * len(k))
    assert f"at least {share:.1%} of the first run's trials were not needed" in render(adjusted, verbose=True)
    assert "decided nothing" not in render(compare_all(counts, pairs=[("s0", "s1")], **options))
