"""Scores of one system as shares and of another as percentages: the first lines ask, as the comparison means nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from sigdask import formats
from sigdask.counts import Counts, checks

SHARES = (0.25, 0.5, 0.75, 1.0)


def read(folder: Path, text: str) -> Counts:
    path = folder / "scores.csv"
    path.write_text(text)
    return formats.read(path)


def test_frames_and_arrays_are_asked_too() -> None:
    assert Counts.from_scores({"A": SHARES, "B": 100 * np.array(SHARES)}).scope


@pytest.mark.parametrize(
    ("predictions", "metric", "n_notes"),
    [
        ((0, 0.2, 0.5, 0.8), "MAE", 1),
        ((0, 0.2, 0.5, 0.8), "pearson", 0),  # no scale matters
        ((0, 2, 2, 4), "MAE", 0),
        ((60, 20, 70, 50), "MAE", 0),  # it does not follow gold
        ((3, 3, 3, 3), "MAE", 0),
    ],
)
def test_predictions_that_follow_gold_on_another_scale(
    predictions: tuple[float, ...], metric: str, n_notes: int, tmp_path: Path
) -> None:
    path = tmp_path / "numbers.csv"
    rows = zip((1, 2, 3, 5), predictions, strict=True)
    path.write_text("id,gold,A,B\n" + "".join(f"i{k}x,{gold},{gold - 0.125},{x}\n" for k, (gold, x) in enumerate(rows)))
    scope = formats.read(path, options=formats.Options(metrics=(metric,))).scope
    assert len([note for note in scope if "predictions of B" in note]) == n_notes


@pytest.mark.parametrize(("order", "n_notes"), [("same", 0), ("other", 1)])
def test_files_without_ids_whose_scores_are_not_correlated(order: str, n_notes: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    ease = rng.random(200)
    other = ease if order == "same" else rng.permutation(ease)
    for name, scores in (("a", ease), ("b", other + 0.1 * rng.random(200))):
        (tmp_path / f"{name}.txt").write_text("".join(f"{score:.4f}\n" for score in scores))
    scope = formats.read(tmp_path / "a.txt", tmp_path / "b.txt").scope
    assert len([note for note in scope if "scores of a, b are not correlated" in note]) == n_notes


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


@pytest.mark.parametrize("digits", [0, 6])
def test_correlations_are_spearmans(digits: int) -> None:
    values = np.round(make_correlated(3, 60, 0.4, 4), digits)
    correlations, _ = checks._correlate(values)
    expected = scipy.stats.spearmanr(values).statistic
    off_diagonal = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(correlations[off_diagonal], expected[off_diagonal], atol=1e-12)


def test_rates_of_doubts_about_the_order_of_items() -> None:
    n_false = n_found = 0
    for seed in range(100):
        scores = make_correlated(seed, 100, 0.4)
        n_false += bool(checks.find_uncorrelated(scores))
        n_found += bool(checks.find_uncorrelated(np.column_stack([scores[:, 0], np.roll(scores[:, 1], 1)])))
    assert n_false <= 2
    assert n_found >= 70
    items = np.arange(100)[:, None]
    assert not checks.find_uncorrelated((items // 3 == [3, 7]).astype(int))  # three correct items tell nothing
    assert checks.find_uncorrelated((items // 25 == [0, 3]).astype(int))


def test_column_sorted_without_its_row(tmp_path: Path) -> None:
    scores = make_correlated(1, 200, 0.5)
    for name, table, n_notes in (
        ("alone", np.column_stack([scores[:, 0], np.sort(scores[:, 1])]), 1),
        ("row", scores[np.argsort(scores[:, 1])], 0),
    ):
        path = tmp_path / f"{name}.csv"
        path.write_text("id,A,B\n" + "".join(f"q{k}x,{a:.4f},{b:.4f}\n" for k, (a, b) in enumerate(table)))
        assert len([note for note in formats.read(path).scope if "scores of B are sorted" in note]) == n_notes
