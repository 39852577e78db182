"""Tests that a slab's memory stays within its budget and that slab sizes change no count."""

import numpy as np
import pytest
from builders import build_panel, build_rng

from sigdask.metrics.forms import Bleu, ChrF, Ratios
from sigdask.randomization import slabs

F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))


@pytest.mark.parametrize("budget", [1, 2**14, 2**20])
def test_no_budget_changes_a_count(budget, monkeypatch):
    panel = build_panel(build_rng(2).integers(0, 3, (150, 4, 3)), [F1])
    want = panel.tally(n_trials=3000).counts.tolist()
    monkeypatch.setattr(slabs, "ROOM_BYTES", budget)
    assert slabs.compute_slab_size(panel) >= slabs.MIN_TRIALS
    assert panel.tally(n_trials=3000).counts.tolist() == want


def draw_contributions(n_items, *, n_systems=3):
    """Draw contributions for F1, macro averages, BLEU and chrF, shape (n_items, n_systems, 18)."""
    values = build_rng(3).integers(1, 9, (n_items, n_systems, 18))
    values[:, :, 2::3] = np.minimum(values[:, :, 2::3], np.minimum(values[:, :, ::3], values[:, :, 1::3]))
    return values


@pytest.mark.parametrize(
    ("form", "n_fields"),
    [
        (Ratios(((0, 0, 2),), ((1, 1, 0),)), 3),
        (Ratios(((0, 0, 1, 0, 0, 0), (0, 0, 0, 0, 0, 1)), ((1, 1, 0, 0, 0, 0), (0, 0, 0, 1, 1, 0))), 6),
        (Bleu(), 10),
        (ChrF(), 18),
    ],
    ids=["ratio", "macro", "bleu", "chrf"],
)
def test_the_arrangement_without_a_swap_is_as_extreme_as_what_was_observed(form, n_fields):
    panel = build_panel(draw_contributions(11)[:, :, :n_fields], [form])
    for pair in range(len(panel.pairs)):
        assert panel.build_enumeration(pair, 0).tally(n_trials=1).counts.tolist() == [[[1, 1, 1]]]
