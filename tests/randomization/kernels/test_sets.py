"""Tests of bit-parallel counts of terms against sets built trial by trial."""

from fractions import Fraction

import numpy as np
import pytest

from sigdask.metrics.base import BoundSets
from sigdask.metrics.forms import Ratios
from sigdask.randomization.panels.sets import PresencePanel, iter_distinct_terms
from sigdask.randomization.stream import draw_swap_bits

F1 = BoundSets("type-f1", Ratios(((2, 0, 0),), ((0, 1, 1),)))


def build_panel(rng, n_units, n_terms, density, *, n_systems=3, addresses=None):
    presence = rng.random((n_systems, n_terms, n_units)) < density
    return PresencePanel(
        key=(5, 6),
        addresses=np.arange(n_units) if addresses is None else addresses,
        holdings=tuple(np.flatnonzero(h.ravel()) for h in presence),
        golden=rng.random(n_terms) < 0.5,
        pairs=np.array([[i, j] for i in range(n_systems) for j in range(n_systems) if i != j]),
        metrics=(F1,),
        n_items=n_units,
    ), presence


def count_terms(panel, presence, pair, swapped):
    """Return the counts of correct and of all terms for both pseudo-systems, shape (2, 2)."""
    i, j = panel.pairs[pair]
    counts = []
    for system, other_system in ((i, j), (j, i)):
        is_present = np.where(swapped, presence[other_system], presence[system]).any(axis=1)
        counts.append([np.count_nonzero(is_present & panel.golden), np.count_nonzero(is_present)])
    return np.array(counts)


def test_enumeration_counts_every_arrangement_once():
    panel, presence = build_panel(np.random.default_rng(1), 9, 12, 0.15)
    units = panel.find_discordant_units(1)
    small = panel.build_enumeration(1, 0)
    [(_, counts)] = iter_distinct_terms(small, run=0, first=0, n_trials=2 ** len(units))
    for t in range(2 ** len(units)):
        swapped = np.zeros(9, bool)
        swapped[units] = (t >> np.arange(len(units))) & 1
        assert np.array_equal(counts[:, :, t], count_terms(panel, presence, 1, swapped))


@pytest.mark.parametrize(
    ("n_units", "n_terms", "density"),
    [(1, 1, 1.0), (2, 3, 0.5), (31, 40, 0.02), (129, 300, 0.005), (200, 20, 0.3), (400, 300, 0.003), (40, 500, 0.03)],
)
@pytest.mark.parametrize(("run", "first", "n_trials"), [(0, 0, 1), (1, 2**32 - 7, 45), (0, 5000, 100)])
def test_scores_of_sets_are_counted_as_sets_built_trial_by_trial(n_units, n_terms, density, run, first, n_trials):
    rng = np.random.default_rng(n_units)
    addresses = np.sort(rng.choice(3 * n_units, n_units, replace=False))
    panel, presence = build_panel(rng, n_units, n_terms, density, addresses=addresses)
    bits = draw_swap_bits(panel.key, run=run, first=first, n_trials=n_trials, n_units=3 * n_units)[:, addresses]
    counts = panel.tally(run=run, first=first, n_trials=n_trials).counts[:, 0]
    for pair in range(0, len(panel.pairs), 2):
        observed, *trials = (
            compute_difference(panel, presence, pair, swapped) for swapped in [np.zeros(n_units, bool), *bits]
        )
        tails = [[d >= observed, d <= observed, abs(d) >= abs(observed)] for d in trials]
        assert counts[pair].tolist() == np.sum(tails, axis=0).tolist()


def compute_difference(panel, presence, pair, swapped):
    """Return the difference of both pseudo-systems in type-f1, as a fraction."""
    a, b = (
        Fraction(2 * int(n_correct), max(int(n_terms + panel.golden.sum()), 1))
        for n_correct, n_terms in count_terms(panel, presence, pair, swapped)
    )
    return a - b
