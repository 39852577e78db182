"""Tests of how few units decide a comparison."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from builders import build_panel, build_rng

from sigdask.metrics.forms import Ratios
from sigdask.randomization.influence import ComparisonVerdicts, find_deciding

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
    return find_deciding(panel, 0, np.arange(n_sets), ComparisonVerdicts(*verdict_columns))


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
    for seed in range(5):
        rng = build_rng(seed)
        d = [*rng.integers(5, 15, 8).tolist(), -int(rng.integers(60, 160))]
        decision = int(enumerate_p(d, side) <= Fraction(1, 20))
        n_deciding, _ = diagnose(d, decision, side)
        assert n_deciding[0] == count_deciding_units(d, Fraction(1, 20), side)


def test_what_changes_is_the_sign_or_the_verdict():
    n_deciding, reverses = diagnose([*[10] * 18, -95, -96])  # 180 against 191: without either the other is ahead
    assert (n_deciding[0], reverses[0]) == (1, True)
    losing = [*[10] * 19, -120]
    n_deciding, reverses = diagnose(losing, decision=0)  # ahead already; without the loss it is significant
    assert (n_deciding[0], reverses[0]) == (1, False)
    n_deciding, _ = diagnose(losing, decision=-1)
    assert n_deciding[0] == 0


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
    n_deciding, reverses = find_deciding(panel, 0, np.arange(1), verdicts)
    assert n_deciding[0] == 1
    [a, b] = F1.score(panel.to_arguments(0, panel.totals - panel.values[0]))  # oracle: scored again without the unit
    assert reverses[0] == ((a > b) != (panel.differences[0, 0] > 0))
