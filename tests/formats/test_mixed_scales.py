"""Scores of one system as shares and of another as percentages: the first lines ask, as the comparison means nothing."""

from __future__ import annotations

import numpy as np
import pytest

from sigdask.counts import Counts


@pytest.mark.parametrize(
    ("low", "factor", "is_doubted"),
    [
        ((0.02, 0.05, 0.01, 0.04), 100, True),  # percentages below 10
        ((0.2, 0.5, 1.25, 0.75), 100, True),  # a word error rate above 1
        ((0.7, 1.5, 2.5, 1.25), 1000, True),  # seconds and milliseconds
        ((2.5, 9.5, 12.5, 7.25), 100, False),  # perplexities of a good and a bad model
        ((0, 1, 1, 0), 100, True),
        ((0.02, 0.05, 0.01, 0.04), 20, False),
        ((1, 2, 0, 3), 1000, False),  # counts
    ],
)
def test_scores_in_other_units(low: tuple[float, ...], factor: float, is_doubted: bool) -> None:
    scope = Counts.from_scores({"A": np.array(low), "B": factor * np.array(low[::-1]), "C": low}).scope
    assert bool(scope) == is_doubted


def make_correlated(seed: int, n: int, correlation: float, n_systems: int = 2) -> np.ndarray:
    rng = np.random.default_rng(seed)
    ease = rng.normal(size=(n, 1))
    return np.sqrt(correlation) * ease + np.sqrt(1 - correlation) * rng.normal(size=(n, n_systems))


@pytest.mark.parametrize("missing", ["error", "pairwise"])
def test_errors_beside_scores(missing: str) -> None:
    scores = make_correlated(1, 200, 0.6, 3)
    scores[:, 1] *= -1
    if missing == "pairwise":
        scores[::7, 0] = np.nan
    (note,) = Counts.from_scores(dict(zip("ABC", scores.T, strict=True)), missing=missing).scope
    assert note.startswith("scores of B are high where other systems' are low")


def test_gaps_ranks_and_preferences_are_not_opposed() -> None:
    rng = np.random.default_rng(1)
    scores = 5 + make_correlated(2, 200, 0.3)
    is_absent = rng.random(200) < 0.4
    gaps = np.where(np.column_stack([is_absent, ~is_absent & (rng.random(200) < 0.6)]), np.nan, scores)
    assert not Counts.from_scores({"A": gaps[:, 0], "B": gaps[:, 1]}, missing="pairwise").scope
    wins = rng.integers(0, 2, 200)
    assert not Counts.from_scores({"A": wins, "B": 1 - wins}).scope
    ranks = rng.permuted(np.tile([1, 2, 3], (200, 1)), axis=1)
    assert not Counts.from_scores(dict(zip("ABC", ranks.T, strict=True))).scope
