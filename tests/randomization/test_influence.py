"""Tests of the diagnosis of single comparisons: skewed differences, few deciding units, one sign only."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from builders import build_panel, build_rng

from sigdask.metrics.forms import Ratios
from sigdask.randomization.influence import ComparisonVerdicts, compute_influence

MEAN = Ratios(((1, 0),), ((0, 1),))
F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))


def diagnose(d, decision=0, side=0, level=0.05):
    """Diagnose integer differences, shape (n_units, n_sets): each system against one of zeros."""
    d = np.asarray(d, int).reshape(len(d), -1)
    n_sets = d.shape[1]
    scores = np.concatenate([d, np.zeros((len(d), 1), int)], axis=1)
    pairs = [(k, n_sets) for k in range(n_sets)]
    panel = build_panel(np.stack([scores, np.ones_like(scores)], axis=-1), [MEAN], pairs=pairs)
    verdict_columns = np.full(n_sets, decision, np.int8), np.full(n_sets, level), np.full(n_sets, side, np.int8)
    return compute_influence(panel, 0, np.arange(n_sets), ComparisonVerdicts(*verdict_columns))


def draw_rare_losses(n_units, n_sets=400):
    rng = build_rng(n_units)
    d = np.where(rng.random((n_units, n_sets)) < 0.05, -19, 1)
    return d[:, (d < 0).any(axis=0)]


@pytest.mark.parametrize("n_units", [20, 30, 50, 100])
def test_rare_large_losses_are_noted_in_four_of_five_data_sets_that_have_one(n_units):
    assert diagnose(draw_rare_losses(n_units)).is_skewed.mean() >= 0.8


SYMMETRIC_DISTRIBUTIONS = {
    "normal": lambda rng, shape: rng.normal(0, 1000, shape),
    "uniform": lambda rng, shape: rng.uniform(-1000, 1000, shape),
    "logistic": lambda rng, shape: rng.logistic(0, 1000, shape),
    "ratings": lambda rng, shape: rng.integers(0, 6, shape) - rng.integers(0, 6, shape),
    "ratings that mostly agree": lambda rng, shape: np.rint(rng.normal(0.5, 0.5, shape)),
}


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("n_units", [20, 100])
@pytest.mark.parametrize("name", SYMMETRIC_DISTRIBUTIONS)
def test_symmetric_differences_are_noted_in_one_of_twenty_data_sets_at_most(name, n_units, shift):
    d = SYMMETRIC_DISTRIBUTIONS[name](build_rng(n_units), (n_units, 400))
    assert diagnose(np.rint(d + shift * round(d.std()))).is_skewed.mean() <= 0.05


def test_scores_of_0_and_1_are_exempt():
    d = np.zeros((40, 3), int)
    d[:12, 0], d[0, 1], d[:1, 2], d[1:9, 2] = 1, -1, -1, 1
    influence = diagnose(d)
    assert not influence.is_skewed.any()
    assert not influence.n_deciding.any()
    assert np.isnan(influence.skewness).all()


def enumerate_p(d, side):
    total = abs(sum(d)) if side == 0 else side * sum(d)
    sums = [sum(s * x for s, x in zip(signs, d, strict=True)) for signs in product((1, -1), repeat=len(d))]
    sums = [abs(t) if side == 0 else side * t for t in sums]
    return Fraction(sum(t >= total for t in sums), len(sums))


def count_deciding_units(d, alpha, side):
    """Return the fewest units whose removal changes the sign or the exact verdict."""
    sign, verdict = np.sign(sum(d)), enumerate_p(d, side) <= alpha
    for k in range(1, len(d) // 5 + 1):
        for removed in combinations(range(len(d)), k):
            remaining = [x for index, x in enumerate(d) if index not in removed]
            if np.sign(sum(remaining)) not in {0, sign} or (enumerate_p(remaining, side) <= alpha) != verdict:
                return k
    return 0


@pytest.mark.parametrize("side", [0, 1, -1])
def test_the_number_of_deciding_units_is_that_of_all_subsets_and_exact_p(side):
    # oracle: every subset left out, p of what is left by all arrangements in fractions
    n_right = n_noted = 0
    for seed in range(5):
        rng = build_rng(seed)
        d = [*rng.integers(5, 15, 8).tolist(), -int(rng.integers(60, 160))]
        decision = int(enumerate_p(d, side) <= Fraction(1, 20))
        influence = diagnose(d, decision, side)
        if influence.is_skewed[0]:
            n_noted += 1
            n_right += int(influence.n_deciding[0]) == count_deciding_units(d, Fraction(1, 20), side)
    assert n_noted == 5
    assert n_right == n_noted


def test_what_changes_is_the_sign_or_the_verdict():
    turned = diagnose([*[10] * 18, -95, -96])  # 180 against 191: without either the other is ahead
    assert (turned.n_deciding[0], turned.reverses[0]) == (1, True)
    influence = diagnose([*[10] * 19, -120], decision=0)  # ahead already; without the loss it is significant
    assert (influence.n_deciding[0], influence.reverses[0]) == (1, False)
    undecided = diagnose([*[10] * 19, -120], decision=-1)
    assert undecided.n_deciding[0] == 0


def test_contributions_to_f1_are_linearised():
    rng = build_rng(3)
    correct = rng.poisson(3, (40, 2))
    values = np.stack(
        [correct, correct + rng.poisson(1, (40, 2)), np.repeat(correct.max(axis=1)[:, None] + 1, 2, axis=1)], -1
    )
    values[:, 0] = values[:, 1] + (rng.random((40, 1)) < 0.7) * np.array([1, 1, 0])  # a little better, but for one
    values[0, 0] = values[0, 1] + [0, 40, 0]
    panel = build_panel(values, [F1])
    verdicts = ComparisonVerdicts(np.zeros(1, np.int8), np.full(1, 0.05), np.zeros(1, np.int8))
    influence = compute_influence(panel, 0, np.arange(1), verdicts)
    assert influence.is_skewed[0]
    assert influence.n_deciding[0] == 1
    [a, b] = F1.score(panel.to_arguments(0, panel.totals - panel.values[0]))  # oracle: scored again without the unit
    assert influence.reverses[0] == ((a > b) != (panel.differences[0, 0] > 0))
