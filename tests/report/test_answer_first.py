"""Tests of the terminal report's order: the answer first, then its basis, then notes and warnings."""

import re

import numpy as np
import pytest

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.report.summary import headline
from sigdask.report.terminal import MAX_CLOSEST, render, select_warnings

ROW_PATTERN = re.compile(r"^s\d+ +s\d+ +-?\d", re.MULTILINE)


def compare_random(n, **options):
    rng = np.random.default_rng(4)
    base = rng.normal(size=60)
    scores = {f"s{k}": base + rng.normal(size=60) * 0.5 + 0.05 * k for k in range(n)}
    return compare_all(Counts.from_scores(scores), **{"trials": 999, "interval": "none"} | options)


@pytest.fixture(scope="module")
def many():
    return compare_random(24)


def find_positions(text, *parts):
    positions = [text.index(part) for part in parts]
    assert positions == sorted(positions), text
    return positions


@pytest.mark.parametrize(
    ("systems", "text"),
    [
        (("all_x", "other"), "The metrics disagree: no system is better on both metrics."),
        (("all_x", "other", "bad"), "The metrics disagree: no system is best, or tied with the best, on both metrics."),
        (("all_x", "bad"), ""),
    ],
)
def test_metrics_by_which_different_systems_are_best_are_said_to_disagree(systems, text):
    gold = ["x"] * 450 + ["y"] * 50
    # accuracy 0.9 and macro-F1 0.47, 0.82 and 0.7, 0.5 and 0.4
    outputs = {"all_x": ["x"] * 500, "other": ["x"] * 360 + ["y"] * 140, "bad": ["x", "y"] * 250}
    counts = Counts.from_labels(gold, {name: outputs[name] for name in systems})
    results = compare_all(counts, metrics=["accuracy", "macro-f1"], trials=999, interval="none")
    verdict = headline.build_verdict(results)
    assert ("disagree" in verdict.headline) == bool(text)
    assert text in verdict.sentences or not text
    single = compare_all(counts, metrics=["accuracy"], trials=999, interval="none")
    assert "disagree" not in headline.build_verdict(single).headline


def test_of_many_systems_the_ranking_stands_below_the_answer_then_contested_results_and_a_count_of_the_rest(many):
    text = render(many)
    summary = headline.build_verdict(many)
    assert text.startswith(summary.headline)
    n, n_contested = len(many), summary.n_contested
    n_not = n - summary.n_significant - n_contested
    contested = f", {n_contested} contested" * bool(n_contested)
    find_positions(
        text,
        "ranking by mean; ",
        f"{n} comparisons: {summary.n_significant} significant at 0.05{contested}, {n_not} not significant (",
        "test: stratified shuffling by item, two-sided; p adjusted by step-down max-T ",
    )
    assert len(ROW_PATTERN.findall(text)) == min(len(summary.doubtful), MAX_CLOSEST)
    for detail in ("checks: second run ", "\nsigdask "):
        assert (detail in text, detail in render(many, verbose=True)) == (False, True)
    assert len(ROW_PATTERN.findall(render(many, everything=True))) == n
    assert "discriminative power" in render(many, verbose=True)
    assert "discriminative power" not in text


def test_notes_that_warn_are_selected():
    for n, kinds in ((3, ["few-units"]), (9, [])):  # of 3 items no p is as small as 0.05
        few_units = compare_all({"a": [*range(n)], "b": [2] * n}, interval="none")
        assert [note.kind for note in few_units.notes] == ["few-units"]
        assert [note.kind for note in select_warnings(few_units)] == kinds
