"""Each trial for itself: of every kind of kernel, the counts that `tally` adds."""

import numpy as np
import pytest
from panel_of import panel_of, rng_of

from sigdask.metrics.forms import Bleu, Formula, Ratios
from sigdask.randomization.stream import trial_by_trial as module
from sigdask.randomization.stream.trial_by_trial import count_by_trial

LINEAR = Ratios(((1, 0, 0),), ((0, 0, 1),))
FORMS = {
    "linear": LINEAR,
    "ratio": Ratios(((2, 0, 0),), ((0, 1, 1),)),
    "macro": Ratios(((2, 0, 0), (1, 0, 0)), ((0, 1, 1), (0, 1, 0))),
    "formula": Formula("own", lambda tp, predicted, gold: tp * tp / (predicted + gold + 1)),
}


def values_of(seed, n_items, n_systems):
    """Items of tp <= predicted and gold, shape (n_items, n_systems, 3)."""
    rng = rng_of(seed)
    tp = rng.integers(0, 3, (n_items, n_systems))
    predicted = tp + rng.integers(0, 2, tp.shape)
    return np.stack([tp, predicted, np.broadcast_to(rng.integers(1, 4, (n_items, 1)), tp.shape)], axis=-1)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_trials_one_by_one_are_those_counted_alone_and_add_to_the_tally(form):
    check(panel_of(values_of(5, 12, 4), [form, LINEAR]))


def test_scores_of_many_fields_are_counted_one_by_one_as_well():
    check(panel_of(rng_of(7).integers(1, 9, (15, 3, 10)), [Bleu()]))


def check(panel):
    each = count_by_trial(panel, run=1, first=250, n_trials=100).astype(np.int64)
    assert 0 < each.sum() < each.size
    assert each.sum(axis=0).tolist() == panel.tally(run=1, first=250, n_trials=100).counts.tolist()
    for k in range(0, 100, 7):
        assert each[k].tolist() == panel.tally(run=1, first=250 + k, n_trials=1).counts.tolist()


def test_it_does_not_matter_how_many_pairs_are_looked_at_together(monkeypatch):
    panel = panel_of(values_of(6, 40, 6), [FORMS["ratio"]])
    at_once = count_by_trial(panel, run=0, first=0, n_trials=64)
    monkeypatch.setattr(module, "AT_ONCE", 40)
    assert count_by_trial(panel, run=0, first=0, n_trials=64).tolist() == at_once.tolist()
