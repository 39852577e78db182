"""Tests that a panel of sums describes all pairs at once as each pair of columns would alone."""

import numpy as np
import pytest
from builders import build_panels

from sigdask.analysis.comparison.pairs import bind_metric
from sigdask.counts import Counts
from sigdask.metrics import find_metric
from sigdask.randomization.panels.sums import SwapUnits


def iter_panels(counts, metric=None):
    systems = range(counts.n_systems)
    pairs = [(i, j) for i in systems for j in systems if i < j]
    bound = bind_metric(find_metric(metric or counts.suggested[0], counts.of_one), counts)
    for placed in build_panels(counts, SwapUnits.from_counts(counts, 0), [bound], pairs):
        yield placed.panel, [pairs[k] for k in placed.pair_indices]


def count_wins_losses(differences):
    """Return one pair's wins and losses by other code; -1 if its differences have several sizes."""
    sizes = set(np.abs(differences[differences != 0]).tolist())
    return [-1, -1] if len(sizes) > 1 else [int((differences > 0).sum()), int((differences < 0).sum())]


@pytest.mark.parametrize("reach", [1, 2, 3, 200, 70_000, 2**40])
def test_discordant_units_and_signs_are_those_of_each_pair_alone(reach):
    rng = np.random.default_rng(reach)
    values = rng.integers(0, reach, (150, 7), endpoint=True)
    values[:, 1] = values[:, 0]  # no difference
    values[:, 2] = values[:, 0] + (rng.random(150) < 0.2) * reach  # differences of one size
    values[:40, 3:5] = values[:40, :1]  # alike at first
    [(panel, pairs)] = iter_panels(Counts.from_scores({f"s{k}": values[:, k] for k in range(7)}))
    for row, (i, j) in enumerate(pairs):
        differences = values[:, i] - values[:, j]
        assert panel.n_discordant[row, 0] == np.count_nonzero(differences)
        assert panel.sign_counts[row, 0].tolist() == count_wins_losses(differences)


def test_a_unit_differs_where_any_field_of_the_metric_does():
    rng = np.random.default_rng(1)
    gold, predictions = rng.random(90) < 0.5, {name: rng.random(90) < 0.4 for name in "abcd"}
    grouped = Counts.from_responses(gold, predictions, groups={"text": [str(k // 3) for k in range(90)]}).with_unit(
        "text"
    )
    columns = {name: predicted.reshape(30, 3).sum(axis=1) for name, predicted in predictions.items()}
    hits = {name: (predicted & gold).reshape(30, 3).sum(axis=1) for name, predicted in predictions.items()}
    for metric, metric_fields in (("recall", [hits]), ("precision", [hits, columns]), ("f1", [hits, columns])):
        [(panel, pairs)] = iter_panels(grouped, metric)
        for row, (i, j) in enumerate(pairs):
            a, b = "abcd"[i], "abcd"[j]
            differs = np.logical_or.reduce([field[a] != field[b] for field in metric_fields])
            assert panel.n_discordant[row, 0] == np.count_nonzero(differs)
