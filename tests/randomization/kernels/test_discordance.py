"""Tests that discordant units are counted alike by NumPy for few pairs and by kernels for many."""

import numpy as np
import pytest

from sigdask.randomization.kernels import discordance
from sigdask.randomization.kernels.discordance import FEW, sum_discordant_weights

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
