"""Tests of simulated power: addressed samples, judged like the test, against all arrangements."""

import itertools

import numpy as np
import pytest
from scipy import stats

from sigdask.counts import Counts
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.randomization.panels.build import PanelGroups
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.power import ObservedPair, PowerSamples, count_rejected, draw_samples
from sigdask.statistics.power import compute_weights

KEY = (1, 2)
RATIO = Ratios(((2, 0, 0),), ((0, 1, 1),))
MEAN = Ratios(((1, 0),), ((0, 1),))


def build_pairs(values, form=MEAN):
    """Build pairs of systems with integer contributions, shape (n_items, n_systems, n_fields)."""
    fields = {f"f{k}": values[:, :, k] for k in range(values.shape[2])}
    counts = Counts(tuple("abcdef"[: values.shape[1]]), fields, len(values))
    systems = np.array([*itertools.combinations(range(values.shape[1]), 2)])
    [placed] = PanelGroups.from_metrics(counts, [BoundMetric("m", tuple(fields), form)], systems).build(
        SwapUnits.from_counts(counts, 0), every_unit=True
    )
    return [ObservedPair(placed.panel.select([row])) for row in range(len(systems))]


def build_mean_pairs(scores):
    """Build pairs whose items have these integer scores, shape (n_items, n_systems)."""
    scores = np.asarray(scores)
    return build_pairs(np.stack([scores, np.ones_like(scores)], axis=2))


def test_a_sample_is_the_same_in_any_partition_and_the_beginning_of_a_larger_one():
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    whole = draw_samples(KEY, weights, first=0, n_samples=50, size=11)
    parts = [draw_samples(KEY, weights, first=first, n_samples=25, size=11) for first in (0, 25)]
    assert (whole == np.concatenate(parts)).all()
    assert (draw_samples(KEY, weights, first=0, n_samples=50, size=30)[:, :11] == whole).all()


def test_units_are_drawn_as_often_as_their_weights_say():
    weights = np.array([0.05, 0.0, 0.25, 0.6, 0.1])
    frequencies = np.bincount(draw_samples(KEY, weights, first=7, n_samples=2000, size=50).ravel(), minlength=5)
    assert frequencies[1] == 0
    assert stats.chisquare(frequencies[weights > 0], 100_000 * weights[weights > 0]).pvalue > 1e-4


def compute_exact_p(score, a, b, alternative):
    """Return p over all arrangements of a sample of units; contributions have shape (n_units, n_fields)."""
    swaps = np.array([*itertools.product([0, 1], repeat=len(a))])
    moved = swaps @ (b - a)
    shuffled = score(a.sum(0) + moved) - score(b.sum(0) - moved)
    t = score(a.sum(0)) - score(b.sum(0))
    extreme = {"greater": shuffled >= t - 1e-12, "less": shuffled <= t + 1e-12}
    return extreme.get(alternative, np.abs(shuffled) >= abs(t) - 1e-12).mean()


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("form", [MEAN, RATIO], ids=["mean", "ratio"])
@pytest.mark.slow
def test_each_sample_is_judged_as_all_its_arrangements_would_judge_it(form, alternative):
    rng = np.random.default_rng(5)
    values = rng.integers(0, 6, (30, 2, 3)) if form is RATIO else rng.integers(0, 50, (30, 2, 2))
    if form is RATIO:
        values[:, :, 0] = np.minimum(values[:, :, 0], values[:, :, 1:].min(axis=2))
        values[:, 0, 0] += 1
        values[:, 0, 1] += 1
    else:
        values[:, :, 1], values[:, 0, 0] = 1, values[:, 0, 0] + 12
    observed, size, alpha = build_pairs(values, form)[0], 11, 0.05
    sampled_values = observed.panel.values[observed.order][
        draw_samples(KEY, compute_weights(observed.influences, 0.0), first=0, n_samples=150, size=size)
    ]
    agreed = 0
    for k, sample in enumerate(sampled_values.astype(int)):
        p = compute_exact_p(form.score, sample[:, 0], sample[:, 1], alternative)
        n_rejected = count_rejected(observed, KEY, 0.0, alternative, alpha, size=size, first=k, n=1)
        agreed += n_rejected == (p <= alpha) or abs(p - alpha) < 4 * np.sqrt(alpha / 4096)
    assert agreed == 150  # but for what lies within the error of the last round


def test_the_power_of_a_point_is_the_same_in_any_partition_of_its_samples():
    rng = np.random.default_rng(8)
    pairs = build_mean_pairs(rng.integers(0, 100, (40, 3)) + np.array([6, 0, 3]))
    for pair, strength, size in zip(pairs, (0.0, 0.01, -0.01), (30, 60, 90), strict=True):
        panel = PowerSamples(pair, "two-sided", 0.05, strength, size)
        whole = panel.tally(run=0, first=0, n_trials=200).counts
        parts = [panel.tally(run=0, first=first, n_trials=n).counts for first, n in ((0, 77), (77, 123))]
        assert (whole == sum(parts)).all()


def test_too_few_units_reject_nothing():
    pairs = build_mean_pairs([[3, 1]] * 5 + [[9, 1]] * 5)
    assert count_rejected(pairs[0], KEY, 0.0, "two-sided", 0.05, size=5, first=0, n=100) == 0
    assert count_rejected(pairs[0], KEY, 0.0, "two-sided", 0.05, size=6, first=0, n=100) == 100
