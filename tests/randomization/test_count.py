"""Tests of the randomization test itself: Yeh's example, ties, validity, alternatives."""

import numpy as np
import pytest
from builders import build_panel, build_panels, build_rng
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sigdask.api import compare
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.metrics import black_box, find_metric
from sigdask.metrics.forms import Ratios
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.statistics.bounds import clopper_pearson, estimate_trials_to_decide


def test_identical_systems_have_p_1_sampled_and_enumerated():
    scores = build_rng(0).random(50)
    for method in ("auto", "randomization"):
        for alternative in ("two-sided", "greater", "less"):
            r = compare(scores, scores, method=method, alternative=alternative, trials=999)
            assert r.p_value == 1.0
            assert "identical" in r.warnings[0]


def test_swapping_a_and_b_mirrors_everything():
    gold, a, b = build_rng(6).choice(list("ABC"), (3, 90)).tolist()
    for metric in ("accuracy", "macro-f1", "f1[A]", "mcc"):
        for side, mirror in (("greater", "less"), ("less", "greater"), ("two-sided", "two-sided")):
            original = compare(a, b, gold=gold, metric=metric, alternative=side, trials=2000)
            swapped = compare(b, a, gold=gold, metric=metric, alternative=mirror, trials=2000)
            assert original.n_extreme == swapped.n_extreme
            assert original.second_run.n_extreme == swapped.second_run.n_extreme
            assert original.difference == -swapped.difference


def test_no_number_of_trials_decides_a_p_at_alpha():
    assert estimate_trials_to_decide(0.05, 0.05) is None
    assert estimate_trials_to_decide(0.05, 0.05 + 1e-9) is None  # more than there are in a stream


@pytest.mark.parametrize(
    ("p", "alpha"), [(0.7, 0.75), (0.8, 0.75), (0.3, 0.2), (0.048, 0.05), (1e-4, 0.05), (0.9, 0.001)]
)
def test_trials_to_decide_are_not_many_more_than_it_takes(p, alpha):
    n = estimate_trials_to_decide(p, alpha)

    def decides(trials):
        low, high = clopper_pearson(round(p * trials), trials)
        return not low <= alpha < high

    assert decides(n)
    assert n < 400 or not decides(n // 2)


def draw_responses(seed, n_items):
    """Draw contributions of two systems with tp <= predicted and gold, shape (n_items, 2, 3)."""
    rng = build_rng(seed)
    gold = rng.integers(1, 3, (n_items, 1)) + np.zeros((1, 2), int)
    tp = np.minimum(rng.integers(0, 3, (n_items, 2)), gold)
    return np.stack([tp, tp + rng.integers(0, 2, tp.shape), gold], axis=-1)


def test_the_smallest_p_of_n_units_is_2_to_the_1_minus_n():
    for n in (1, 2, 5, 20):
        assert compare(np.ones(n), np.zeros(n)).p_value == 2.0 ** (1 - n)
        assert compare(np.ones(n), np.zeros(n), alternative="greater").p_value == 2.0**-n
        assert compare(np.ones(n), np.zeros(n), alternative="less").p_value == 1.0


def test_twenty_discordant_units_are_enumerated_and_21_sampled():
    twenty = compare([1] * 20 + [0] * 500, [0] * 520)
    sampled = compare([1] * 21 + [0] * 500, [0] * 521, second_run=False)
    assert (twenty.exact.method, twenty.n_trials, twenty.n_extreme, twenty.n_discordant) == (
        "enumeration",
        2**20,
        2,
        20,
    )
    assert (sampled.exact.method, sampled.n_trials, sampled.n_discordant) == ("binomial", 2**20, 21)
    assert sampled.p_value == 2 / 2**21


@pytest.mark.parametrize("trials", [{"first": -1, "n_trials": 5}, {"n_trials": 0}, {"first": 2**48 - 1, "n_trials": 2}])
def test_trials_outside_the_stream_are_refused(trials):
    with pytest.raises(InputError, match="must lie in 0 to"):
        build_panel(draw_responses(0, 5), [Ratios(((2, 0, 0),), ((0, 1, 1),))]).tally(**trials)


@pytest.mark.parametrize("run", [0, 1])
@pytest.mark.parametrize(("first", "n_trials"), [(0, 1), (0, 700), (300, 513)])
def test_a_black_box_is_counted_in_the_trials_and_run_asked_for(run, first, n_trials):
    scores = build_rng(7).integers(0, 9, (2, 30))
    counts = Counts.from_scores({"a": scores[0], "b": scores[1]})
    units = SwapUnits.from_counts(counts, 3)
    box = black_box(lambda outputs, _: float(sum(outputs)), name="total")
    [placed] = build_panels(counts, units, [find_metric("mean").bind(counts)], [(0, 1)])
    tally = OutputsPanel.from_counts(counts, units, box, (0, 1)).tally(run=run, first=first, n_trials=n_trials)
    assert tally.n_trials == n_trials
    assert (tally.counts == placed.panel.tally(run=run, first=first, n_trials=n_trials).counts).all()


@settings(max_examples=100, deadline=None)
@given(n=st.integers(1, 10**7), level=st.sampled_from([0.95, 0.99]), data=st.data())
def test_the_interval_solves_the_equations_of_clopper_and_pearson(n, level, data):
    # P(X >= k | low) = P(X <= k | high) = (1 - level) / 2. Not against SciPy's proportion_ci: its root is within an absolute
    # tolerance, so that at k = 1 of 1.8 million these tails come out 7e-5 off, relatively
    k = data.draw(st.one_of(st.integers(0, n), st.integers(0, min(n, 50))))
    low, high = clopper_pearson(k, n, level)
    assert low <= k / n <= high
    assert low == 0.0 if k == 0 else stats.binom.sf(k - 1, n, low) == pytest.approx((1 - level) / 2, rel=1e-7)
    assert high == 1.0 if k == n else stats.binom.cdf(k, n, high) == pytest.approx((1 - level) / 2, rel=1e-7)
