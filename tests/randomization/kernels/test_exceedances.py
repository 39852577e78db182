"""Tests of tallies against Fractions: every form, ties, 0/0 and three tails."""

from fractions import Fraction

import numpy as np
import pytest
import reference
from builders import build_panel, build_rng
from hypothesis import given, settings
from hypothesis import strategies as st

from sigdask.metrics.forms import Formula, Ratios
from sigdask.randomization.kernels.scored import BLEU, TILE, count_linear, score_pair
from sigdask.randomization.kernels.sums import get_layout
from sigdask.randomization.stream import draw_swap_bits

F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))
PRECISION = Ratios(((1, 0, 0),), ((0, 1, 0),), zero_division=1.0)
MACRO = Ratios(((2, 0, 0), (1, 0, 0)), ((0, 1, 1), (0, 1, 0)))
RECALL = Ratios(((1, 0, 0),), ((0, 0, 1),))
MACRO_FORMULA = Formula(
    "macro", lambda tp, predicted, gold: (2 * tp / np.maximum(predicted + gold, 1) + tp / np.maximum(predicted, 1)) / 2
)
N_TRIALS = 64


def draw_values(seed, n_items, n_systems=2):
    """Draw contributions with tp <= predicted and gold, many of them tied or 0."""
    rng = build_rng(seed)
    tp = rng.integers(0, 3, (n_items, n_systems)) * (rng.random((n_items, n_systems)) < 0.4)
    predicted = tp + rng.integers(0, 2, tp.shape)
    gold = np.broadcast_to(rng.integers(0, 3, (n_items, 1)), tp.shape)
    return np.stack([tp, predicted, gold], axis=-1)


def count_expected(values, score, key, pair=(0, 1)):
    bits = draw_swap_bits(key, run=0, first=0, n_trials=N_TRIALS, n_units=len(values))
    return reference.count_exceedances(score, values[:, pair[0]], values[:, pair[1]], bits)


@pytest.mark.parametrize("form", [F1, PRECISION, MACRO], ids=["f1", "precision", "macro"])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31), n_items=st.integers(1, 40))
def test_ratios_are_counted_as_fractions_count_them(form, seed, n_items):
    values = draw_values(seed, n_items)
    panel = build_panel(values, [form])

    def score(sums):
        rows = zip(form.numerators, form.denominators, strict=True)
        parts = [reference.compute_ratio(sums, n, d, int(form.zero_division)) for n, d in rows]
        return sum(parts) / len(parts)

    assert panel.tally(n_trials=N_TRIALS).counts[0, 0, :3].tolist() == count_expected(values, score, panel.key)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31), n_items=st.integers(1, 60), size=st.sampled_from([1, 4, 10**12]))
def test_means_are_counted_in_integers(seed, n_items, size):
    score = build_rng(seed).integers(-size, size + 1, (n_items, 3))
    values = np.stack([score, np.ones_like(score)], axis=-1)
    panel = build_panel(values, [Ratios(((1, 0),), ((0, 1),))])
    assert panel.linear == (True,)
    counts = panel.tally(n_trials=N_TRIALS).counts[:, 0, :3].tolist()
    want = [
        count_expected(values, lambda s: Fraction(int(s[0]), n_items), panel.key, p) for p in ((0, 1), (0, 2), (1, 2))
    ]
    assert counts == want


def test_several_metrics_share_memory_over_slabs_and_a_partial_last_one():
    values = draw_values(2, 300, n_systems=3)
    forms = [F1, RECALL, MACRO, PRECISION, MACRO_FORMULA]
    together = build_panel(values, forms)
    n = 2 * get_layout(together).slab_size + 17
    counts = together.tally(n_trials=n).counts
    for m, form in enumerate(forms):
        assert build_panel(values, [form]).tally(n_trials=n).counts[:, 0].tolist() == counts[:, m].tolist()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_totals_are_counted_by_the_definition_at_every_slack(dtype):
    # T = t + 2 D within 2 slack steps of a tie counts as one, in each tail once
    moved = build_rng(5).integers(-9, 10, (2, 400)).astype(dtype)
    for t in range(-12, 13):
        shuffled = t + 2 * (moved[1] - moved[0]).astype(np.int64)
        for slack in range(5):
            counts = np.zeros((1, 3), np.int64)
            count_linear(moved, np.array([[0, 1]]), np.array([t], dtype), np.array([slack], dtype), counts)
            near = 2 * slack
            tails = (shuffled >= t - near, shuffled <= t + near, np.abs(shuffled) >= abs(t) - near)
            assert counts[0].tolist() == [int(tail.sum()) for tail in tails]


@pytest.mark.slow
def test_bleu_is_nothing_without_a_common_word_and_smoothed_without_longer_ones():
    # lengths 13 and 14; mteval's smoothing: 100 / (2^k n) for the k-th order without a match, as in sacrebleu's "exp"
    sums = np.array(
        [[13, 14, *c, 13, 12, 11, 10] for c in ((0, 0, 0, 0), (5, 0, 0, 0), (5, 2, 0, 0), (7, 4, 2, 1))], float
    )
    out, other = np.empty((2, len(sums)))
    total, x = 50 + 7 * np.arange(10.0), build_rng(1).integers(0, 50, sums.T.shape).astype(float)
    moved = np.stack([x, sums.T - total[:, None] + x])
    score_pair(BLEU, 0.0, moved, np.stack([total, total]), np.array([0, 1]), out, other, np.empty((2, TILE)))
    shortness = np.exp(1 - 14 / 13)
    parts = ((5 / 13, 1 / 24, 1 / 44, 1 / 80), (5 / 13, 2 / 12, 1 / 22, 1 / 40), (7 / 13, 4 / 12, 2 / 11, 1 / 10))
    assert out == pytest.approx([0.0, *(100 * shortness * np.prod(p) ** 0.25 for p in parts)], rel=1e-12)
