"""The studentised bootstrap of families against plain NumPy with the same resamples, and all n^n resamples of tiny data."""

from itertools import product

import numpy as np
import pytest
from panel_of import rng_of

from sigdask.counts import Counts
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Bleu, Formula, Ratios
from sigdask.randomization.families.bootstrap_t import (
    SINGLE_STEP,
    STEP_DOWN,
    StudentisedBootstrap,
    compute_lower_edges,
    find_cells,
    find_critical_value,
)
from sigdask.randomization.families.max_t import MaxTFamily
from sigdask.randomization.panels.build import PanelGroups
from sigdask.randomization.panels.families import FamilyMember
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.stream.shuffles import draw_units

MEAN = Ratios(((1, 0),), ((0, 1),))
F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))
N_TRIALS = 3000


def bootstrap_of(values, form=MEAN, *, side=0, seed=3, subset=None, n_units=None, name=""):
    """All pairs of systems, of contributions of shape (n_units, n_systems, n_fields)."""
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
    return StudentisedBootstrap(
        MaxTFamily((FamilyMember(placed.panel, 0),), parts, side, studentised=True), (n,)
    ), pairs


def scores(n=12, n_systems=4, seed=1, most=50):
    values = rng_of(seed).integers(0, most, (n, n_systems))
    return np.stack([values, np.ones_like(values)], axis=-1)


def plain_counts(contributions, observed, indices, side):
    """How often the largest statistic of all, and of those no more extreme, is at least each one's own.

    `contributions` are what units add to differences about their observed values, shape (n_units, n_pairs).
    """
    n = len(contributions)
    fold = np.abs if side == 0 else lambda x: side * x
    drawn = contributions[indices]  # (n_trials, n_units, n_pairs)
    error = contributions.std(axis=0, ddof=1) * np.sqrt(n)
    error_of_each = drawn.std(axis=1, ddof=1) * np.sqrt(n)
    with np.errstate(all="ignore"):
        t = np.where(error > 1e-9, fold(observed) / error, -np.inf)
        found = fold(drawn.sum(axis=1) - contributions.sum(axis=0)) / error_of_each
    found[(error_of_each < 1e-9) | (error < 1e-9)] = -np.inf
    order, down = np.argsort(t, kind="stable"), np.zeros(len(t), int)
    for k, h in enumerate(order):
        down[h] = (found[:, order[: k + 1]].max(axis=1) >= t[h] - 1e-9).sum()
    single = (found.max(axis=1)[:, None] >= t - 1e-9).sum(axis=0)
    single[np.isneginf(t)] = down[np.isneginf(t)] = len(indices)
    return single, down, found


def resamples(made, n_trials=N_TRIALS):
    [own] = made.test_sets
    return draw_units(own.key, run=0, first=0, n_trials=n_trials, n_units=own.n_units)


@pytest.mark.parametrize("side", [0, 1, -1])
def test_counts_are_those_of_plain_numpy_with_the_same_resamples(side):
    values = scores()
    values[:, 3] = values[:, 2]  # no unit varies: p = 1
    made, pairs = bootstrap_of(values, side=side)
    tally = made.tally(run=0, first=0, n_trials=N_TRIALS)
    d = (values[:, pairs[:, 0], 0] - values[:, pairs[:, 1], 0]).astype(float)
    single, down, found = plain_counts(d, d.sum(axis=0), resamples(made), side)
    assert tally.counts[: len(pairs), 0, SINGLE_STEP].tolist() == single.tolist()
    assert tally.counts[: len(pairs), 0, STEP_DOWN].tolist() == down.tolist()
    assert tally.counts[len(pairs) - 1, 0].tolist() == [N_TRIALS, N_TRIALS]
    largest = np.sort(found.max(axis=1)) * np.sqrt(12 / 11)  # errors here divide by n, there by n - 1
    at = np.searchsorted(compute_lower_edges(), largest[-149], side="right")  # 150 of 3,001 may reach it
    assert find_critical_value(tally, 0.05) == pytest.approx(compute_lower_edges()[at], abs=0.02)


def test_counts_of_documents_are_those_of_a_ratio_linearised_by_hand():
    rng = rng_of(5)
    below = rng.integers(2, 30, 15)
    above = rng.binomial(below[:, None], [0.5, 0.6, 0.7])
    made, pairs = bootstrap_of(np.stack([above, np.broadcast_to(below[:, None], above.shape)], axis=-1))
    means = above.sum(axis=0) / below.sum()
    added = (above - means * below[:, None]) / below.sum()
    d = added[:, pairs[:, 0]] - added[:, pairs[:, 1]]
    single, down, _ = plain_counts(d, means[pairs[:, 0]] - means[pairs[:, 1]], resamples(made), 0)
    counts = made.tally(run=0, first=0, n_trials=N_TRIALS).counts[: len(pairs), 0]
    assert np.abs(counts - np.column_stack([single, down])).max() <= 1  # squares are of numbers rounded to 24 bits
    assert made.errors == pytest.approx(d.std(axis=0) * np.sqrt(15))


def test_counts_of_f1_are_those_of_its_derivative():
    rng = rng_of(6)
    found, gold = rng.integers(0, 6, (20, 3)), rng.integers(1, 6, 20)
    right = rng.binomial(np.minimum(found, gold[:, None]), [0.5, 0.6, 0.9])
    values = np.stack([right, found, np.broadcast_to(gold[:, None], found.shape)], axis=-1)
    made, pairs = bootstrap_of(values, F1)
    r, below = right.sum(axis=0), (found + gold[:, None]).sum(axis=0)
    added = 2 * right / below - 2 * r / below**2 * (found + gold[:, None])
    f1 = 2 * r / below
    d = added[:, pairs[:, 0]] - added[:, pairs[:, 1]]
    single, down, _ = plain_counts(d, f1[pairs[:, 0]] - f1[pairs[:, 1]], resamples(made), 0)
    counts = made.tally(run=0, first=0, n_trials=N_TRIALS).counts[: len(pairs), 0]
    assert np.abs(counts - np.column_stack([single, down])).max() <= 1


@pytest.mark.parametrize("n", [3, 4, 5])
def test_shares_of_all_resamples_of_tiny_data(n):
    values = scores(n, 3, seed=n, most=9)
    made, pairs = bootstrap_of(values)
    d = (values[:, pairs[:, 0], 0] - values[:, pairs[:, 1], 0]).astype(float)
    every = np.array(list(product(range(n), repeat=n)))
    single, down, _ = plain_counts(d, d.sum(axis=0), every, 0)
    counts = made.tally(run=0, first=0, n_trials=20_000).counts[: len(pairs), 0]
    expected = np.column_stack([single, down]) / len(every)
    assert np.abs(counts / 20_000 - expected).max() < 4.5 * np.sqrt(0.25 / 20_000)


def test_counts_add_up_whatever_the_partition():
    made, _ = bootstrap_of(scores())
    whole = made.tally(run=0, first=0, n_trials=3000).counts
    parts = [(0, 700), (700, 1), (701, 2000), (2701, 299)]
    assert (sum(made.tally(run=0, first=f, n_trials=n).counts for f, n in parts) == whole).all()
    assert (made.tally(run=1, first=0, n_trials=3000).counts != whole).any()


def test_units_of_one_kind_and_an_order_of_systems_change_no_count():
    rng = rng_of(8)
    correct = (rng.random((300, 3)) < [0.5, 0.6, 0.65]).astype(int)
    values = np.stack([correct, np.ones_like(correct)], axis=-1)
    made, pairs = bootstrap_of(values)
    [own] = made.test_sets
    assert len(own.multiplicity) == 8  # of 300 units
    d = (correct[:, pairs[:, 0]] - correct[:, pairs[:, 1]]).astype(float)
    single, down, _ = plain_counts(d, d.sum(axis=0), resamples(made, 500), 0)
    counts = made.tally(run=0, first=0, n_trials=500).counts[:3, 0]
    assert counts.tolist() == np.column_stack([single, down]).tolist()


def test_a_subset_is_a_ratio_over_resamples_of_all_units():
    values, subset = scores(20, 3, seed=9), np.arange(20) % 2 == 0
    made, pairs = bootstrap_of(values, subset=subset)
    means = values[subset, :, 0].mean(axis=0)
    added = np.where(subset[:, None], (values[..., 0] - means) / 10, 0.0)
    d = added[:, pairs[:, 0]] - added[:, pairs[:, 1]]
    single, down, _ = plain_counts(d, means[pairs[:, 0]] - means[pairs[:, 1]], resamples(made), 0)
    counts = made.tally(run=0, first=0, n_trials=N_TRIALS).counts[: len(pairs), 0]
    assert np.abs(counts - np.column_stack([single, down])).max() <= 1


def test_two_test_sets_are_resampled_apart_and_judged_by_one_maximum():
    one, pairs = bootstrap_of(scores(10, 2, seed=1), name="one")
    two, _ = bootstrap_of(scores(14, 2, seed=2), name="two")
    members = (*one.family.members, *two.family.members)
    family = MaxTFamily(members, np.array([[[0, 0]], [[1, 0]]]), studentised=True)
    both = StudentisedBootstrap(family, (10, 14))
    found = []
    for n, seed, made in ((10, 1, one), (14, 2, two)):
        values = scores(n, 2, seed=seed)
        d = (values[:, pairs[:, 0], 0] - values[:, pairs[:, 1], 0]).astype(float)
        found.append((d.sum() / (d.std(ddof=1) * np.sqrt(n)), plain_counts(d, d.sum(axis=0), resamples(made), 0)[2]))
    largest = np.maximum(found[0][1], found[1][1]).ravel()
    counts = both.tally(run=0, first=0, n_trials=N_TRIALS).counts[:2, 0, SINGLE_STEP]
    # the factor n / (n - 1) is each set's own, as errors divide by n
    factor = np.sqrt([10 / 9, 14 / 13])
    largest = np.maximum(found[0][1] * factor[0], found[1][1] * factor[1]).ravel()
    expected = [(largest >= abs(t) * f - 1e-9).sum() for (t, _), f in zip(found, factor, strict=True)]
    assert counts.tolist() == expected


def test_a_critical_value_is_passed_by_just_those_whose_single_step_p_is_at_most_alpha():
    values = scores(30, 6, seed=4, most=20)
    values[:, 0, 0] += 12
    made, pairs = bootstrap_of(values)
    tally = made.tally(run=0, first=0, n_trials=4000)
    p = (tally.counts[: len(pairs), 0, SINGLE_STEP] + 1) / 4001
    for alpha in (0.01, 0.05, 0.3):
        passed = made.statistics > find_critical_value(tally, alpha)
        assert passed.any()
        assert (p[passed] <= alpha).all()
        assert (p[made.statistics > 1.01 * find_critical_value(tally, alpha)] <= alpha).all()
        assert (p[made.statistics < 0.99 * find_critical_value(tally, alpha)] > alpha).all()
    assert find_critical_value(made.tally(run=0, first=0, n_trials=18), 0.05) == np.inf  # 1 / 19 is above


def test_cells_begin_where_they_say():
    edges = compute_lower_edges()
    assert (find_cells(edges) == np.arange(len(edges))).all()
    assert (find_cells(np.nextafter(edges[1:], 0)) <= np.arange(1, len(edges))).all()
    assert find_cells(np.array([-np.inf, -1.0, np.inf])).tolist() == [0, 0, len(edges) - 1]


@pytest.mark.parametrize("form", [Bleu(), Formula("jumps", lambda a, b: a // (b + 1))])
def test_scores_of_whole_sums_have_errors(form):
    rng = rng_of(3)
    if isinstance(form, Bleu):
        n_fields = 2 * 4 + 2
        values = np.sort(rng.integers(1, 30, (12, 2, n_fields)), axis=-1)
    else:
        values = rng.integers(1, 30, (12, 2, 2))
    made, _ = bootstrap_of(values, form)
    assert made.errors.shape == (1,)
    assert np.isfinite(made.errors).all()
    counts = made.tally(run=0, first=0, n_trials=100).counts
    assert (counts[:1] <= 100).all()
