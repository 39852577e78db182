"""Tests of the studentised bootstrap of families against plain NumPy, and all n^n resamples of tiny data."""

from itertools import product

import numpy as np
import pytest
from builders import build_rng

from sigdask.counts import Counts
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Bleu, Formula, Ratios
from sigdask.randomization.families import MaxTFamily
from sigdask.randomization.families.bootstrap_t import (
    OWN,
    STEP_DOWN,
    StudentisedBootstrap,
    compute_lower_edges,
    find_critical_value,
)
from sigdask.randomization.panels.build import FamilyMember, PanelGroups
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.stream import draw_units

MEAN = Ratios(((1, 0),), ((0, 1),))
F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))
N_TRIALS = 3000


def build_bootstrap(values, form=MEAN, *, side=0, seed=3, subset=None, n_units=None, name=""):
    """Build the bootstrap of all pairs of systems; contributions have shape (n_units, n_systems, n_fields)."""
    n, n_systems, n_fields = values.shape
    counts = Counts(
        tuple(f"s{k}" for k in range(n_systems)), {f"f{k}": values[..., k] for k in range(n_fields)}, n, name=name
    )
    pairs = np.array([(i, j) for i in range(n_systems) for j in range(i + 1, n_systems)])
    bound = BoundMetric("m", tuple(counts.fields), form)
    [placed] = PanelGroups.from_metrics(counts, [bound], pairs).build(
        SwapUnits.from_counts(counts, seed), subset, every_unit=True
    )
    parts = np.array([[[0, row]] for row in range(len(pairs))])
    return StudentisedBootstrap(MaxTFamily((FamilyMember(placed.panel, 0),), parts, side), (n,), has_cells=True), pairs


def draw_scores(n=12, n_systems=4, seed=1, highest=50):
    values = build_rng(seed).integers(0, highest, (n, n_systems))
    return np.stack([values, np.ones_like(values)], axis=-1)


def count_plainly(contributions, observed, indices, side):
    """How often each one's statistic, and the largest of those no more extreme, is at least the observed one.

    `contributions` are what units add to differences about their observed values, shape (n_units, n_pairs).
    """
    n = len(contributions)
    fold = np.abs if side == 0 else lambda x: side * x
    resampled = contributions[indices]  # (n_trials, n_units, n_pairs)
    error = contributions.std(axis=0, ddof=1) * np.sqrt(n)
    resample_errors = resampled.std(axis=1, ddof=1) * np.sqrt(n)
    shift = fold(resampled.sum(axis=1) - contributions.sum(axis=0))
    with np.errstate(all="ignore"):
        t = np.where(error > 1e-9, fold(observed) / error, -np.inf)
        is_own = np.where(resample_errors < 1e-9, shift > 1e-9, shift / resample_errors >= t - 1e-9)
        statistics = shift / np.maximum(resample_errors, error / 2)  # a quarter of the variance
    statistics[(resample_errors < 1e-9) | (error < 1e-9)] = -np.inf
    order, step_down = np.argsort(t, kind="stable"), np.zeros(len(t), int)
    for k, h in enumerate(order):
        step_down[h] = ((statistics[:, order[: k + 1]].max(axis=1) >= t[h] - 1e-9) | is_own[:, h]).sum()
    own = is_own.sum(axis=0)
    own[np.isneginf(t)] = step_down[np.isneginf(t)] = len(indices)
    return own, step_down, statistics


def draw_resamples(bootstrap, n_trials=N_TRIALS):
    [test_set] = bootstrap.test_sets
    return draw_units(test_set.key, run=0, first=0, n_trials=n_trials, n_units=len(test_set.kinds))


@pytest.mark.parametrize("side", [0, 1, -1])
def test_counts_are_those_of_plain_numpy_with_the_same_resamples(side):
    values = draw_scores()
    values[:, 3] = values[:, 2]  # no unit varies: p = 1
    bootstrap, pairs = build_bootstrap(values, side=side)
    tally = bootstrap.tally(run=0, first=0, n_trials=N_TRIALS)
    d = (values[:, pairs[:, 0], 0] - values[:, pairs[:, 1], 0]).astype(float)
    own, step_down, statistics = count_plainly(d, d.sum(axis=0), draw_resamples(bootstrap), side)
    assert tally.counts[: len(pairs), 0, OWN].tolist() == own.tolist()
    assert tally.counts[: len(pairs), 0, STEP_DOWN].tolist() == step_down.tolist()
    assert tally.counts[len(pairs) - 1, 0].tolist() == [N_TRIALS, N_TRIALS]
    largest = np.sort(statistics.max(axis=1)) * np.sqrt(12 / 11)  # errors here divide by n, there by n - 1
    edge = np.searchsorted(compute_lower_edges(), largest[-149], side="right")  # 150 of 3,001 may reach it
    assert find_critical_value(tally, 0.05) == pytest.approx(compute_lower_edges()[edge], abs=0.02)


def test_f1_and_its_derivative_are_computed_again_in_each_resample():
    rng = build_rng(6)
    predicted, gold = rng.integers(0, 6, (20, 3)), rng.integers(1, 6, 20)
    correct = rng.binomial(np.minimum(predicted, gold[:, None]), [0.5, 0.6, 0.9])
    values = np.stack([correct, predicted, np.broadcast_to(gold[:, None], predicted.shape)], axis=-1)
    bootstrap, pairs = build_bootstrap(values, F1)

    def compute_statistics(units):
        above, below = 2 * correct[units], predicted[units] + gold[units, None]
        f1 = above.sum(axis=0) / below.sum(axis=0)
        c = (above - f1 * below) / below.sum(axis=0)
        i, j = pairs.T
        return f1[i] - f1[j], ((c[:, i] - c[:, j]) ** 2).sum(axis=0)

    observed, variance = compute_statistics(np.arange(20))
    t = np.abs(observed) / np.sqrt(variance)
    moved, variances = map(np.array, zip(*map(compute_statistics, draw_resamples(bootstrap)), strict=True))
    own = np.abs(moved - observed) / np.sqrt(variances) >= t
    floored = np.abs(moved - observed) / np.sqrt(np.maximum(variances, variance / 4))
    order = np.argsort(t)
    joint = [(own[:, h] | (floored[:, order[: k + 1]].max(axis=1) >= t[h])).sum() for k, h in enumerate(order)]
    counts = bootstrap.tally(run=0, first=0, n_trials=N_TRIALS).counts[: len(pairs), 0]
    assert np.abs(counts[:, OWN] - own.sum(axis=0)).max() <= 1
    assert np.abs(counts[order, STEP_DOWN] - joint).max() <= 1


@pytest.mark.parametrize("n", [3, 4, 5])
def test_shares_of_all_resamples_of_tiny_data(n):
    values = draw_scores(n, 3, seed=n, highest=9)
    bootstrap, pairs = build_bootstrap(values)
    d = (values[:, pairs[:, 0], 0] - values[:, pairs[:, 1], 0]).astype(float)
    every = np.array(list(product(range(n), repeat=n)))
    own, step_down, _ = count_plainly(d, d.sum(axis=0), every, 0)
    counts = bootstrap.tally(run=0, first=0, n_trials=20_000).counts[: len(pairs), 0]
    expected = np.column_stack([own, step_down]) / len(every)
    assert np.abs(counts / 20_000 - expected).max() < 4.5 * np.sqrt(0.25 / 20_000)


@pytest.mark.parametrize("subset", [None, np.arange(12) < 4])
def test_counts_add_up_whatever_the_partition(subset):
    bootstrap, _ = build_bootstrap(draw_scores(), subset=subset)
    whole = bootstrap.tally(run=0, first=0, n_trials=3000).counts
    parts = [(0, 700), (700, 1), (701, 2000), (2701, 299)]
    assert (sum(bootstrap.tally(run=0, first=f, n_trials=n).counts for f, n in parts) == whole).all()
    assert (bootstrap.tally(run=1, first=0, n_trials=3000).counts != whole).any()


def test_units_of_one_kind_and_an_order_of_systems_change_no_count():
    rng = build_rng(8)
    correct = (rng.random((300, 3)) < [0.5, 0.6, 0.65]).astype(int)
    values = np.stack([correct, np.ones_like(correct)], axis=-1)
    bootstrap, pairs = build_bootstrap(values)
    [test_set] = bootstrap.test_sets
    assert len(test_set.multiplicity) == 8  # of 300 units
    d = (correct[:, pairs[:, 0]] - correct[:, pairs[:, 1]]).astype(float)
    own, step_down, _ = count_plainly(d, d.sum(axis=0), draw_resamples(bootstrap, 500), 0)
    counts = bootstrap.tally(run=0, first=0, n_trials=500).counts[:3, 0]
    assert counts.tolist() == np.column_stack([own, step_down]).tolist()


@pytest.mark.parametrize(("n_own", "side"), [(4, 0), (4, 1), (10, 0), (10, -1)])
def test_a_subset_is_resampled_as_a_set_of_its_own_of_as_many_units_as_are_drawn(n_own, side):
    values = draw_scores(20, 3, seed=9)
    bootstrap, pairs = build_bootstrap(values, subset=np.arange(20) < n_own, side=side)
    d = (values[:n_own, pairs[:, 0], 0] - values[:n_own, pairs[:, 1], 0]).astype(float)
    fold = np.abs if side == 0 else lambda x: side * x
    t = fold(d.mean(axis=0)) / d.std(axis=0, ddof=1) * np.sqrt(n_own)
    reached = np.zeros(len(pairs), int)
    for units in draw_resamples(bootstrap):
        drawn = d[units[units < n_own]]
        if len(drawn) < 2:
            reached += 1  # no standard error
            continue
        with np.errstate(divide="ignore"):
            statistic = fold(drawn.mean(axis=0) - d.mean(axis=0)) / drawn.std(axis=0, ddof=1) * np.sqrt(len(drawn))
        reached += statistic >= t - 1e-9
    counts = bootstrap.tally(run=0, first=0, n_trials=N_TRIALS).counts[: len(pairs), 0, OWN]
    assert np.abs(counts - reached).max() <= 1


def test_two_test_sets_are_resampled_apart_and_judged_by_one_maximum():
    one, pairs = build_bootstrap(draw_scores(10, 2, seed=1), name="one")
    two, _ = build_bootstrap(draw_scores(14, 2, seed=2), name="two")
    members = (*one.family.members, *two.family.members)
    family = MaxTFamily(members, np.array([[[0, 0]], [[1, 0]]]))
    joint = StudentisedBootstrap(family, (10, 14))
    statistics = []
    for n, seed, bootstrap in ((10, 1, one), (14, 2, two)):
        values = draw_scores(n, 2, seed=seed)
        d = (values[:, pairs[:, 0], 0] - values[:, pairs[:, 1], 0]).astype(float)
        statistics.append(
            (d.sum() / (d.std(ddof=1) * np.sqrt(n)), count_plainly(d, d.sum(axis=0), draw_resamples(bootstrap), 0)[2])
        )
    counts = joint.tally(run=0, first=0, n_trials=N_TRIALS).counts[:2, 0, STEP_DOWN]
    # the factor n / (n - 1) is each set's own, as errors divide by n
    factor = np.sqrt([10 / 9, 14 / 13])
    t = np.array([abs(t) for t, _ in statistics]) * factor
    by_set = [x.ravel() * f for (_, x), f in zip(statistics, factor, strict=True)]
    lower, higher = np.argsort(t)
    own = joint.tally(run=0, first=0, n_trials=N_TRIALS).counts[:2, 0, OWN]
    assert own[lower] == counts[lower]  # the first of the step-down
    largest = np.maximum(*by_set) >= t[higher] - 1e-9
    assert abs(counts[higher] - largest.sum()) <= own[higher] - (by_set[higher] >= t[higher] - 1e-9).sum()


def test_a_critical_value_is_passed_by_just_those_whose_single_step_p_is_at_most_alpha():
    values = draw_scores(30, 6, seed=4, highest=20)
    values[:, 0, 0] += 12
    bootstrap, pairs = build_bootstrap(values)
    tally = bootstrap.tally(run=0, first=0, n_trials=4000)
    d = (values[:, pairs[:, 0], 0] - values[:, pairs[:, 1], 0]).astype(float)
    _, _, statistics = count_plainly(d, d.sum(axis=0), draw_resamples(bootstrap, 4000), 0)
    largest = statistics.max(axis=1)[:, None] * np.sqrt(30 / 29)  # errors here divide by n, there by n - 1
    p = ((largest >= bootstrap.statistics - 1e-9).sum(axis=0) + 1) / 4001
    for alpha in (0.01, 0.05, 0.3):
        passed = bootstrap.statistics > find_critical_value(tally, alpha)
        assert passed.any()
        assert (p[passed] <= alpha).all()
        assert (p[bootstrap.statistics > 1.01 * find_critical_value(tally, alpha)] <= alpha).all()
        assert (p[bootstrap.statistics < 0.99 * find_critical_value(tally, alpha)] > alpha).all()
    assert find_critical_value(bootstrap.tally(run=0, first=0, n_trials=18), 0.05) == np.inf  # 1 / 19 is above


@pytest.mark.parametrize("form", [Bleu(), Formula("jumps", lambda a, b: a // (b + 1))])
def test_scores_of_whole_sums_have_errors(form):
    rng = build_rng(3)
    if isinstance(form, Bleu):
        n_fields = 2 * 4 + 2
        values = np.sort(rng.integers(1, 30, (12, 2, n_fields)), axis=-1)
    else:
        values = rng.integers(1, 30, (12, 2, 2))
    bootstrap, _ = build_bootstrap(values, form)
    assert bootstrap.errors.shape == (1,)
    assert np.isfinite(bootstrap.errors).all()
    counts = bootstrap.tally(run=0, first=0, n_trials=100).counts
    assert (counts[:1] <= 100).all()
