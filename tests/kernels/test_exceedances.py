"""Tallies against Fractions: every form, ties, 0/0, three tails and the joint one."""

from fractions import Fraction

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from panel_of import panel_of, rng_of

from sigdask.metrics.forms import Formula, Ratios
from sigdask.randomization import tally
from sigdask.shuffles import swap_bits

F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))
PRECISION = Ratios(((1, 0, 0),), ((0, 1, 0),), zero_division=1.0)
LINEAR = Ratios(((2, 0, 3),), ((0, 0, 0),))
MACRO = Ratios(((2, 0, 0), (1, 0, 0)), ((0, 1, 1), (0, 1, 0)))
N_TRIALS = 64


def values_of(seed, n_items, n_systems=2):
    """Contributions of tp <= predicted and gold, many of them tied or 0."""
    rng = rng_of(seed)
    tp = rng.integers(0, 3, (n_items, n_systems)) * (rng.random((n_items, n_systems)) < 0.4)
    predicted = tp + rng.integers(0, 2, tp.shape)
    gold = np.broadcast_to(rng.integers(0, 3, (n_items, 1)), tp.shape)
    return np.stack([tp, predicted, gold], axis=-1)


def expected(values, score, key, pair=(0, 1)):
    bits = swap_bits(key, run=0, first=0, n_trials=N_TRIALS, n_units=len(values))
    return reference.exceedances(score, values[:, pair[0]], values[:, pair[1]], bits)


@pytest.mark.parametrize("form", [F1, PRECISION, MACRO], ids=["f1", "precision", "macro"])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31), n_items=st.integers(1, 40))
def test_ratios_are_counted_as_fractions_count_them(form, seed, n_items):
    values = values_of(seed, n_items)
    panel = panel_of(values, [form])

    def score(sums):
        rows = zip(form.numerators, form.denominators, strict=True)
        parts = [reference.ratio(sums, n, d, int(form.zero_division)) for n, d in rows]
        return sum(parts) / len(parts)

    assert tally(panel, n_trials=N_TRIALS).counts[0, 0, :3].tolist() == expected(values, score, panel.key)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31), n_items=st.integers(1, 60), size=st.sampled_from([1, 4, 10**12]))
def test_means_are_counted_in_integers(seed, n_items, size):
    score = rng_of(seed).integers(-size, size + 1, (n_items, 3))
    values = np.stack([score, np.ones_like(score)], axis=-1)
    panel = panel_of(values, [Ratios(((1, 0),), ((0, 1),))])
    assert panel.linear == (True,)
    counted = tally(panel, n_trials=N_TRIALS).counts[:, 0, :3].tolist()
    want = [expected(values, lambda s: Fraction(int(s[0]), n_items), panel.key, p) for p in ((0, 1), (0, 2), (1, 2))]
    assert counted == want


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_a_formula_is_counted_as_its_ratio(seed):
    values = values_of(seed, 30)
    formula = Formula("f1", lambda tp, predicted, gold: 2 * tp / np.maximum(predicted + gold, 1))
    counted = tally(panel_of(values, [F1, formula]), n_trials=N_TRIALS).counts
    assert counted[0, 0].tolist() == counted[0, 1].tolist()


@pytest.mark.parametrize("form", [F1, Ratios(((1, 0, 0),), ((0, 0, 1),))], ids=["ratio", "linear"])
def test_the_joint_tail_is_that_of_the_largest_difference(form):
    values = values_of(5, 50, n_systems=4)
    panel = panel_of(values, [form])
    counts = tally(panel, n_trials=N_TRIALS, joint=True).counts[:, 0, 3]
    bits = swap_bits(panel.key, run=0, first=0, n_trials=N_TRIALS, n_units=50)
    n, d = form.numerators[0], form.denominators[0]
    differences = []
    for i, j in panel.pairs:
        pseudo = reference.pseudo_sums(values[:, i], values[:, j], bits)
        differences.append(
            [abs(reference.ratio(x, n, d) - reference.ratio(y, n, d)) for x, y in zip(*pseudo, strict=True)]
        )
    largest = [max(column) for column in zip(*differences, strict=True)]
    observed = [
        abs(reference.ratio(values[:, i].sum(0), n, d) - reference.ratio(values[:, j].sum(0), n, d))
        for i, j in panel.pairs
    ]
    assert counts.tolist() == [sum(m >= t for m in largest) for t in observed]


def test_splitting_trials_anywhere_adds_up():
    panel = panel_of(values_of(1, 200), [F1])
    whole = tally(panel, n_trials=10_000)
    parts = tally(panel, n_trials=1) + tally(panel, first=1, n_trials=4095) + tally(panel, first=4096, n_trials=5904)
    assert parts.n_trials == whole.n_trials
    assert (parts.counts == whole.counts).all()
