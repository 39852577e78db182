"""Tests of the text of the HTML page: what it contains, and that names cannot inject markup."""

import re

import numpy as np
import pytest
from builders import build_rng
from paper_tables import ParsedPage

import sigdask
from sigdask.api import compare_all, compare_sets
from sigdask.counts import Counts
from sigdask.report.comparisons import format_p_cell
from sigdask.report.page import grids, render_page

HOSTILE_NAMES = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "a & b</td>"]


def compare_names(names=("x", "y", "z"), **options):
    rng = build_rng(1)
    scores = {n: np.round(rng.standard_normal(40) + k, 2) for k, n in enumerate(names)}
    return compare_all(Counts.from_scores(scores, **options), metrics=["mean"], trials=999)


def test_commands_to_terminals_and_marks_of_direction_are_replaced():
    names = ["a\x1b[31m", "b\x85c", "d\u202ee"]
    page = render_page({"": compare_names(names)}, title=names[2], command=names[0])
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert not re.search(r"\\u00[019]|\\u202", page)  # in the data of scripts


def test_names_are_text_and_nothing_else():
    page = ParsedPage(render_page({"": compare_names(HOSTILE_NAMES)}, title=HOSTILE_NAMES[0]))
    assert "img" not in page.tags
    assert page.tags.count("script") == 2  # the data and the page's own
    assert not [a for a, _ in page.attributes if a.startswith("on") or a == "style"]
    assert set(HOSTILE_NAMES) <= set(page.texts)
    assert "49" not in page.texts


def test_classical_tests_stand_on_the_page_beside_what_independence_costs(yeh):
    compared = compare_all(yeh, metrics=["recall", "f1"], trials=99, tests="all", unit="item")
    text = render_page({"": compared}, title="t")
    cells = ParsedPage(text).texts
    assert cells.count("mcnemar") == 1
    assert any(cell.startswith("for contrast, as if independent") for cell in cells)
    assert any(cell.startswith("f1: t, sign, wilcoxon,") and "does not apply" in cell for cell in cells)
    assert "Classical tests" not in render_page({"": compare_names()}, title="t")


def test_the_page_asks_for_nothing():
    text = render_page({"": compare_names()}, title="t")
    assert re.findall(r'(?:src|href)="(?!data:|#)', text) == []
    assert re.findall(r"https?:(?!//www.w3.org/2000/svg)", text) == []
    assert "default-src 'none'" in text


def test_every_comparison_ranking_and_warning_stands_in_it():
    compared = compare_names(name="news")
    page = ParsedPage(render_page({"news": compared}, title="night", created="today"))
    for r in compared:
        assert {r.a, r.b, f"{abs(r.difference):+.4f}"} <= set(page.texts)
    assert {"night", "sigdask · today"} <= set(page.texts)
    assert any("step-down max-T" in text for text in page.texts)
    few_units = compare_all(Counts.from_scores({"a": [1, 2, 3], "b": [2, 2, 2]}), metrics=["mean"])
    assert any("only 3 units" in text for text in ParsedPage(render_page({"": few_units}, title="t")).texts)


def test_many_systems_have_no_matrix_and_no_results_make_a_page(monkeypatch):
    rng = build_rng(2)
    monkeypatch.setattr(grids, "MAX_IN_MATRIX", 12)
    sets = Counts.from_scores({f"s{k}": rng.integers(0, 9, 25) for k in range(13)})
    text = render_page(
        {"": compare_sets([sets], metrics=["mean"], trials=99, second_run=False, adjust="none")}, title="t"
    )
    assert 'class="matrix"' not in text
    assert "0 comparisons" in render_page({}, title="t")


@sigdask.metric(higher_is_better=False, name="errors")
def errors(score, items):
    return score / items


@pytest.mark.parametrize("metric", ["mean", errors])
def test_a_ranking_draws_each_difference_from_the_best_with_its_interval(metric):
    """Against each comparison's own numbers, whichever of the two is A, and for a score of which less is better too."""
    scores = {f"s{k}": np.round(build_rng(k).normal(k % 3, 1, 40), 2) for k in range(5)}
    results = compare_all(Counts.from_scores(scores), metrics=[metric], trials=99, interval="auto", resamples=200)
    section = grids.draw_ranking(results.table, all_listed=True)
    best, *others = section["rows"]
    for entry in others:
        [r] = [r for r in results if {r.a, r.b} == {best["system"], entry["system"]}]
        sign = -1 if r.a == best["system"] else 1
        low, high = r.interval_simultaneous
        ends = sorted([sign * low, sign * high])
        assert entry["difference"] == f"{sign * r.difference:+.4f}"
        assert [*map(float, entry["interval"][1:-1].split(", "))] == pytest.approx(ends, abs=0.05)
        p = format_p_cell(r.p_adjusted, 0.05, is_bound=r.is_adjusted_bound)
        assert (entry["p"], entry["verdict"]) == (p, r.verdict)
        positions = [entry["low"], entry["at"], entry["high"], section["zero"]]
        numbers = [ends[0], sign * r.difference, ends[1], 0.0]
        assert np.corrcoef(positions, numbers)[0, 1] == pytest.approx(1, abs=1e-5)  # places are rounded to tenths


def test_a_ranking_calls_an_interval_among_simultaneous_ones_unadjusted():
    results = compare_all({"a": [0, 1] * 15, "b": [0, 1] * 15, "c": [0, 1, *[0] * 28]})
    [_, same, other] = grids.draw_ranking(results.table, all_listed=True)["rows"]
    assert same["difference"] == "+0.0000"
    assert (same["interval"].endswith("] unadjusted"), other["interval"].endswith("]")) == (True, True)


def test_the_page_says_of_verdicts_over_sets_what_its_table_has():
    counts = Counts.from_scores({"x": [*range(20)], "y": [*range(1, 21)]}, groups={"task": [*"ab" * 10]})
    page = compare_all(counts, metrics=["mean"], by="task", together=True, trials=99).to_html()
    assert "The mean of the differences of all sets." in page
    assert '"head":"verdict","values":["contested"]' in page[page.index("data-together-0") :]
