"""Tests that trial-by-trial counts add up to the tally, for every kind of kernel."""

import numpy as np
import pytest
from builders import build_panel, build_rng

from sigdask.metrics.forms import Bleu, Formula, Ratios
from sigdask.randomization import trials as module
from sigdask.randomization.trials import count_by_trial

LINEAR = Ratios(((1, 0, 0),), ((0, 0, 1),))
FORMS = {
    "linear": LINEAR,
    "ratio": Ratios(((2, 0, 0),), ((0, 1, 1),)),
    "macro": Ratios(((2, 0, 0), (1, 0, 0)), ((0, 1, 1), (0, 1, 0))),
    "formula": Formula("own", lambda tp, predicted, gold: tp * tp / (predicted + gold + 1)),
}


def draw_values(seed, n_items, n_systems):
    """Draw items with tp <= predicted and gold, shape (n_items, n_systems, 3)."""
    rng = build_rng(seed)
    tp = rng.integers(0, 3, (n_items, n_systems))
    predicted = tp + rng.integers(0, 2, tp.shape)
    return np.stack([tp, predicted, np.broadcast_to(rng.integers(1, 4, (n_items, 1)), tp.shape)], axis=-1)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_trials_one_by_one_are_those_counted_alone_and_add_to_the_tally(form):
    check_trials(build_panel(draw_values(5, 12, 4), [form, LINEAR]))


def test_scores_of_many_fields_are_counted_one_by_one_as_well():
    check_trials(build_panel(build_rng(7).integers(1, 9, (15, 3, 10)), [Bleu()]))


def check_trials(panel):
    by_trial = count_by_trial(panel, run=1, first=250, n_trials=100).astype(np.int64)
    assert 0 < by_trial.sum() < by_trial.size
    assert by_trial.sum(axis=0).tolist() == panel.tally(run=1, first=250, n_trials=100).counts.tolist()
    for k in range(0, 100, 7):
        assert by_trial[k].tolist() == panel.tally(run=1, first=250 + k, n_trials=1).counts.tolist()


def test_it_does_not_matter_how_many_pairs_are_looked_at_together(monkeypatch):
    panel = build_panel(draw_values(6, 40, 6), [FORMS["ratio"]])
    at_once = count_by_trial(panel, run=0, first=0, n_trials=64)
    monkeypatch.setattr(module, "AT_ONCE", 40)
    assert count_by_trial(panel, run=0, first=0, n_trials=64).tolist() == at_once.tolist()
