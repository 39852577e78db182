"""Scores of one system as shares and of another as percentages: the first lines ask, as the comparison means nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sigdask import formats
from sigdask.counts import Counts

SHARES = (0.25, 0.5, 0.75, 1.0)


def read(folder: Path, text: str) -> Counts:
    path = folder / "scores.csv"
    path.write_text(text)
    return formats.read(path)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (SHARES, tuple(100 * score for score in SHARES)),
        ((0, 1, 1, 0), (0, 100, 100, 0)),
        ((0, 1, 1, 0), (12.5, 80, 99, 3)),
        ((-0.5, -0.25, -0.125, -1), (12.5, 80, 99, 3)),
    ],
)
def test_shares_beside_percentages(a: tuple[float, ...], b: tuple[float, ...], tmp_path: Path) -> None:
    rows = "".join(f"s{k}x,{x},{y}\n" for k, (x, y) in enumerate(zip(a, b, strict=True)))
    counts = read(tmp_path, f"id,A,B\n{rows}")
    assert [note for note in counts.scope if "scores of A are at most 1, those of B go up to" in note]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (SHARES, SHARES[::-1]),
        ((0, 1, 1, 0), (0, 12, 3, 40)),  # numbers of errors
        ((0.2, 0.9, 0.4, 0.3), (0.5, 2.5, 11.0, 1.0)),  # losses
        ((12.5, 80, 99, 3), (17.5, 70, 99, 3)),
        ((-70.5, -20.25, -3, -11), (12.5, 80, 99, 3)),
    ],
)
def test_scores_that_may_be_of_one_scale(a: tuple[float, ...], b: tuple[float, ...], tmp_path: Path) -> None:
    rows = "".join(f"s{k}x,{x},{y}\n" for k, (x, y) in enumerate(zip(a, b, strict=True)))
    assert not read(tmp_path, f"id,A,B\n{rows}").scope


def test_metric_is_named(tmp_path: Path) -> None:
    paths = [tmp_path / "A.jsonl", tmp_path / "B.jsonl"]
    for path, factor in zip(paths, (1, 100), strict=True):
        path.write_text("".join(f'{{"id": "s{k}x", "acc": {x * factor}, "f1": {x}}}\n' for k, x in enumerate(SHARES)))
    (note,) = formats.read(*paths).scope
    assert "scores of A on acc are at most 1" in note


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
