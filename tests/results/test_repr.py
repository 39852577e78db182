"""Tests of what a prompt shows: a table of results, a result as a line, the package's public names."""

import pydoc

from builders import build_rng

import sigdask
from sigdask.report.terminal import render


def test_results_are_shown_as_a_short_table(yeh):
    assert repr(sigdask.compare_all(yeh)) == (
        "Results: 3 comparisons, alpha 0.05\n"
        "A  B   metric     score A  score B    A - B         p\n"
        "I  II  recall      0.4563   0.2427  +0.2136  0.000196  significant\n"
        "I  II  precision   0.4947   0.6410  -0.1463      0.04  significant\n"
        "I  II  f1          0.4747   0.3521  +0.1226    0.0296  significant"
    )


def test_a_result_is_shown_as_a_line(yeh):
    result = sigdask.compare_all(yeh, metrics="recall")[0]
    assert repr(result) == "Result(I - II, recall 0.4563 - 0.2427 = +0.2136, p = 0.000196)"


def test_the_cells_are_those_of_the_report():
    scores = build_rng(0).normal(size=(80, 4))
    groups = {"kind": ["x" * (k % 2) + "y" for k in range(80)]}
    results = sigdask.compare_all(scores, names="abcd", groups=groups, by="kind", trials=1000)
    report = [line.split() for line in render(results).splitlines()]
    rows = [line.split() for line in repr(results).splitlines()[2:-1]]
    assert len(rows) == 10
    for row in rows:  # the report has intervals besides, and a mark for the verdict
        assert [
            words
            for words in report
            if {*row[:9]} - {"mean"} <= {*words} and ("*" in words) == (row[9:] == ["significant"])
        ], row


def test_many_comparisons_are_the_first_and_how_many_more():
    lines = repr(sigdask.compare_all(build_rng(0).normal(size=(40, 40)), trials=10, adjust="none")).splitlines()
    assert len(lines) == 13
    assert lines[0] == "Results: 780 comparisons, alpha 0.05"
    assert lines[-1] == "and 770 more"


def test_no_comparison_is_said(yeh):
    assert repr(sigdask.compare_all(yeh, pairs=[])) == "Results: 0 comparisons, alpha 0.05"


def test_no_name_is_a_command_to_the_terminal():
    results = sigdask.compare_all({"a\x1b]0;title\x07": [1, 2, 3], "b\nc": [2, 2, 2]})
    for text in (repr(results), repr(results[0])):
        assert all(line.isprintable() for line in text.splitlines())
        assert "b\\nc" in text


def test_help_shows_the_public_names():
    assert sorted(dir(sigdask)) == sorted(sigdask.__all__)
    page = pydoc.plain(pydoc.render_doc(sigdask))
    for name in sigdask.__all__:
        assert f"class {name}(" in page or f"    {name}(" in page, name
