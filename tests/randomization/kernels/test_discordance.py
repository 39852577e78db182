"""Tests that discordant units are counted alike by NumPy for few pairs and by kernels for many."""

import numpy as np
import pytest

from sigdask.randomization.kernels import discordance
from sigdask.randomization.kernels.discordance import FEW, add_signs, sum_discordant_weights

N_UNITS, N_SYSTEMS = 1000, 5
PAIRS = np.array([(a, b) for a in range(N_SYSTEMS) for b in range(a)], np.int64)
HIGHEST_VALUES = pytest.mark.parametrize("highest", [0, 1, 2, 1000])


def draw_values(highest, dtype=np.int32):
    return np.random.default_rng(highest).integers(-highest, highest + 1, (N_UNITS, N_SYSTEMS, 3)).astype(dtype)


@HIGHEST_VALUES
@pytest.mark.parametrize("fields", [(1,), (0, 2)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("agreement_cost", [0, discordance.AGREEMENT_COST])  # at 0, systems of one value are grouped
def test_the_units_in_which_pairs_differ(highest, fields, weighted, agreement_cost, monkeypatch):
    monkeypatch.setattr(discordance, "AGREEMENT_COST", agreement_cost)
    values = draw_values(highest)
    weights = np.random.default_rng(1).integers(0, 9, N_UNITS) if weighted else np.empty(0, np.int64)
    together = [
        sum(
            int(weights[u]) if weighted else 1
            for u in range(N_UNITS)
            if any(values[u, a, f] != values[u, b, f] for f in fields)
        )
        for a, b in PAIRS.tolist()
    ]
    assert sum_discordant_weights(values, fields, PAIRS, weights).tolist() == together
    in_chunks = [sum_discordant_weights(values, fields, PAIRS[k : k + FEW], weights) for k in range(0, len(PAIRS), FEW)]
    assert np.concatenate(in_chunks).tolist() == together


@HIGHEST_VALUES
def test_wins_losses_and_how_far_they_are_apart(highest):
    values = draw_values(highest)[:, :, 0].astype(np.int64)
    for pairs in (PAIRS, PAIRS[:FEW]):
        least, most = np.full(len(pairs), 2**62), np.zeros(len(pairs), np.int64)
        wins, losses = np.zeros((2, len(pairs)), np.int64)
        add_signs(values, pairs, least, most, wins, losses)
        for p, (a, b) in enumerate(pairs.tolist()):
            d = [int(x) - int(y) for x, y in zip(values[:, a], values[:, b], strict=True)]
            assert (wins[p], losses[p]) == (sum(x > 0 for x in d), sum(x < 0 for x in d))
            sizes = [abs(x) for x in d if x]
            assert (least[p], most[p]) == (min(sizes, default=2**62), max(sizes, default=0))


def test_systems_of_many_values_are_grouped_by_them_and_those_of_few_values_are_not(monkeypatch):
    rng, n_grouped = np.random.default_rng(2), []
    pairs = np.array([(a, b) for a in range(200) for b in range(a)], np.int64)
    pack = discordance._pack_bits
    monkeypatch.setattr(discordance, "_pack_bits", lambda *a: n_grouped.append(0) or pack(*a))
    for highest in (2000, 2):
        values = rng.integers(-highest, highest, (100, 200, 2)).astype(np.int16)
        values[:, :, 1] = 1  # as the number of items of a mean
        counts = sum_discordant_weights(values, (0, 1), pairs, np.empty(0, np.int64))
        expected = (values[:, pairs[:, 0], 0] != values[:, pairs[:, 1], 0]).sum(axis=0)
        assert counts.tolist() == expected.tolist()
        assert bool(n_grouped) == (highest == 2)
