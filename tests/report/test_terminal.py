"""Tests of what is printed about results on a terminal."""

import re

import numpy as np
from builders import build_result as fill_result
from builders import results_to_table

from sigdask.api import compare_all, compare_sets, read
from sigdask.counts import Counts
from sigdask.nightly.report.overview import format_overview
from sigdask.report import sentences as headline
from sigdask.report.page import render_page
from sigdask.report.screen import MAX_CLOSEST, render, select_warnings
from sigdask.report.text import format_table
from sigdask.results.fields import get_result
from sigdask.results.table import Table
from sigdask.statistics.bounds import clopper_pearson, compute_bound


def test_classical_tests_stand_below_the_table_those_for_contrast_with_their_cost(yeh):
    text = render(compare_all(yeh, metrics=["recall", "f1"], trials=99, tests="sign,two-sample-t"))
    assert re.search(r"I  II  recall  sign +28  0\.000196   34  exact; 69 units of equal scores left out\n", text)
    assert re.search(r"two-sample-t +3\.282 .* for contrast, as if independent; ", text)
    assert "f1: sign, two-sample-t: does not apply: the denominator depends on the system" in text
    assert "sign  " not in render(compare_all(yeh, metrics=["recall"], trials=99))


def test_all_that_is_shown_has_the_better_system_first():
    scores = {"low": [1, 2, 3, 1, 2, 2], "high": [2, 4, 3, 3, 3, 5]}
    for_order = [
        render(compare_all({name: scores[name] for name in names}, tests="t,sign,wilcoxon", margin=1), verbose=True)
        for names in (("low", "high"), ("high", "low"))
    ]
    shown = [re.findall(r"paired d \S+|^Margin .*|^high +low .*", text, re.MULTILINE) for text in for_order]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 6


def test_over_all_sets_a_result_is_contested_if_only_one_test_rejects():
    gains = [0.06, 0.64, -0.4, -0.4, -0.1, 2.26, 0.05, 0.17, 7.53, 36.3, 10.4, -0.4, 4.75, -0.39]
    counts = Counts.from_scores({"a": gains, "b": np.zeros(14)}, groups={"half": ["x", "y"] * 7})
    results = compare_all(counts, metrics=["mean"], by="half", together=True, trials=999, interval="none")
    assert results.together[0].p_value < 0.05 < results.together[0].equal_scores.p_value
    text = render(results)
    assert text.startswith("contested on mean")
    assert "§ contested" in text


ROW_PATTERN = re.compile(r"^s\d+ +s\d+ +-?\d", re.MULTILINE)


def build_result(**changes):
    """Build one comparison of Yeh's recall with 198 of 2^20 extreme trials, or with these changes."""
    values = {
        "test_set": "", "subset": None, "unit": "item", "a": "I", "b": "II", "metric": "recall", "higher_is_better": True,
        "score_a": 0.4563, "score_b": 0.2427, "difference": 0.2136, "alternative": "two-sided", "n_items": 160,
        "n_units": 160, "n_discordant": 34, "method": "approximate", "n_trials": 2**20, "n_extreme": 198,
        "p_value": float(compute_bound(198, 2**20)), "p_interval": tuple(map(float, clopper_pearson(198, 2**20))),
    }  # fmt: skip
    return fill_result(**values | changes)


def test_what_is_undecided_of_the_unadjusted_p_is_said_of_it():
    sampled = {"n_trials": 1000, "n_extreme": 50, "p_value": 51 / 1001, "p_interval": (0.04, 0.06)}
    kept = results_to_table([build_result(**sampled, n_discordant=0)], 0.05)
    table = Table(kept.data.drop_columns(["kept_notes"]), 0.05)
    assert [note.kind for note in get_result(table, 0).notes] == ["identical", "undecided"]
    paths = "p_adjusted", "p_adjusted_interval.0", "p_adjusted_interval.1"
    result = get_result(table.replace(**dict(zip(paths, np.array([[0.2], [0.19], [0.21]]), strict=True))), 0)
    assert [note.kind for note in result.notes] == ["identical", "unadjusted-undecided"]
    words = "undecided at 0.05: the 99 % interval of p is 0.04 to 0.06; "
    assert get_result(table, 0).warnings[1].startswith(words)
    assert result.warnings[1].startswith(f"unadjusted p {words}")
    assert result.notes[1].numbers["low"] == 0.04


def test_nothing_that_is_printed_bounds_p():
    rng = np.random.default_rng(0)
    scores = {name: np.round(rng.normal(k / 5, 1, 60), 2) for k, name in enumerate("abc")}
    for adjust in ("none", "max-t"):
        results = compare_all(Counts.from_scores(scores), metrics=["mean"], trials=4096, adjust=adjust)
        for text in (render(results), render_page({"": results}, title="t")):
            assert not re.search(r"p(?:</\w+>)? *(?:<=|≤|&lt;=)", text)
            assert ("adjusted p" in text.replace("unadjusted p", "")) == (adjust == "max-t")


def test_no_cell_of_a_narrow_table_loses_its_end():
    names = ["test set", "comparisons", "with p", "finished", "trials counted"]
    row = ["harness", "14", "15", "16", "100 %"]
    for width in range(30, 80):
        lines = format_table(names, [row], width).split("\n")
        assert max(map(len, lines)) <= width
        letters = sorted("".join(lines).replace(" ", "").replace("─", ""))
        assert letters == sorted("".join([*names, *row]).replace(" ", ""))


def test_intervals_have_a_column_and_an_interval_that_nothing_bounds_says_so():
    """Of 3 units no two-sided p is below 1/4: no difference is rejected at 0.05."""
    rng = np.random.default_rng(0)
    scores = {f"s{k}": rng.normal(0, 1, 30).round(2) for k in range(6)}
    many, without = (compare_all(scores, trials=99, resamples=99, interval=kind) for kind in ("auto", "none"))
    assert len(re.findall(r"^s\d .* \[-?\d\.\d+, -?\d\.\d+\] ", render(many, everything=True), re.MULTILINE)) == 15
    assert "95 % interval" not in render(without, everything=True) + render_page({"": without}, title="t")
    few = render(compare_all({"a": [1, 2, 3], "b": [1, 2, 4]}, metrics=["mean"]), verbose=True)
    assert "95 % interval [no bounds] (the test inverted by item)" in few
    assert "inf" not in few


def test_of_many_systems_the_ranking_stands_below_the_answer_then_contested_results_and_a_count_of_the_rest():
    rng = np.random.default_rng(4)
    base = rng.normal(size=60)
    scores = {f"s{k}": base + rng.normal(size=60) * 0.5 + 0.05 * k for k in range(24)}
    many = compare_all(Counts.from_scores(scores), trials=999, interval="none")
    text = render(many)
    summary = headline.build_verdict(many)
    assert text.startswith(summary.headline)
    n, outcome = len(many), many.table.outcome
    n_significant, n_contested, n_not = (int((outcome == code).sum()) for code in (1, 2, 0))
    contested = f", {n_contested} contested" * bool(n_contested)
    parts = (
        "ranking by mean; ",
        f"{n} comparisons: {n_significant} significant at 0.05{contested}, {n_not} not significant (",
        "test: stratified shuffling by item, two-sided; p adjusted by step-down max-T ",
    )
    positions = [text.index(part) for part in parts]
    assert positions == sorted(positions), text
    assert len(ROW_PATTERN.findall(text)) == min(len(summary.doubtful), MAX_CLOSEST)
    for detail in ("checks: second run ", "\nsigdask "):
        assert (detail in text, detail in render(many, verbose=True)) == (False, True)
    assert len(ROW_PATTERN.findall(render(many, everything=True))) == n


def test_notes_that_warn_are_selected():
    few = ["few-units"]
    for a, kinds in (
        ([0, 1, 2], few),
        ([*range(9)], few),
        ([3, 4, 5] * 3, []),
    ):  # only the last pair differs significantly
        few_units = compare_all({"a": a, "b": [2] * len(a)}, interval="none")
        assert [note.kind for note in few_units.notes] == ["few-units"]
        assert [note.kind for note in select_warnings(few_units)] == kinds


def test_a_row_that_is_turned_to_the_better_system_claims_the_same():
    a, b = np.r_[np.zeros(4), np.ones(396)], np.r_[np.ones(370), np.zeros(30)]
    claims = []
    for pair in (("a", "b"), ("b", "a")):
        results = compare_all({"a": a, "b": b}, gold=np.ones(400), metrics=["accuracy"], margin=0.01, pairs=[pair])
        text = render(results, verbose=True)
        claims.append([line for line in text.splitlines() if line.startswith((" " * 4 + "margin", "a  b"))])
    assert claims[0] == claims[1]
    assert "margin 0.01: a not worse" in claims[0][1]
    assert "not worse" in claims[0][0]


def test_a_margin_is_told_of_all_subsets():
    n = 200
    scores = {"a": np.tile([0.5, 0.6], n), "b": np.tile([0.6, 0.5], n)}
    groups = {"domain": ["news"] * n + ["web"] * n}
    results = compare_all(scores, groups=groups, by="domain", margin=0.1, pairs=[("a", "b")])
    assert "Margin 0.1 on mean: a against b is equivalent in all 2 subsets." in render(results)
    scores["b"][n:] += 0.5
    results = compare_all(scores, groups=groups, by="domain", margin=0.1, pairs=[("a", "b")])
    assert "equivalent in news; not better in web." in render(results)


def test_margins_of_further_pairs_are_counted():
    rng = np.random.default_rng(5)
    text = render(compare_all({s: rng.integers(0, 9, 30) for s in "abcd"}, margin=1, interval="none"))
    assert text.count("Margin 1 on mean:") == 3
    assert 'The column "within margin" has 3 more.' in text
    counts = [Counts.from_numbers([0, 1, 2] * 9, {"a": [0, 1] * 13 + [0], "b": [1] * 27}, name=name) for name in "xy"]
    results = compare_sets(counts, metrics=["MAE", "RMSE"], margin=9, interval="none")
    assert headline.build_verdict(results).headline.count(" in all 2 test sets.") == 2


def test_the_overview_names_no_best_system_at_a_tie():
    sets = {"tie": [0, 1, 0, 1], "win": [0, 0, 0, 1]}
    counts = [read({"a": [1, 0, 1, 0], "b": b, "c": [0, 0, 0, 0]}, name=name) for name, b in sets.items()]
    for options in ({}, {"pairs": [("a", "b")]}):
        lines = format_overview(compare_sets(counts, interval="none", **options).table).splitlines()
        assert [line.split()[:2] for line in lines[2:4]] == [["tie", "0"], ["win", "a"]]
