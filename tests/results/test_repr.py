"""Tests of what a prompt shows: a table of results, a result as a line, the package's public names."""

from builders import build_rng

import sigdask


def test_results_are_shown_as_a_short_table(yeh):
    assert repr(sigdask.compare_all(yeh)) == (
        "Results: 3 comparisons, alpha 0.05\n"
        "A  B   metric     score A  score B    A - B  unadjusted p\n"
        "I  II  recall      0.4563   0.2427  +0.2136      0.000196  significant\n"
        "I  II  precision   0.4947   0.6410  -0.1463          0.04  contested\n"
        "I  II  f1          0.4747   0.3521  +0.1226        0.0296  significant"
    )


def test_a_result_is_shown_as_a_line(yeh):
    result = sigdask.compare_all(yeh, metrics="recall")[0]
    assert repr(result) == "Result(I - II, recall 0.4563 - 0.2427 = +0.2136, p = 0.000196)"


def test_many_comparisons_are_the_first_and_how_many_more():
    lines = repr(sigdask.compare_all(build_rng(0).normal(size=(40, 40)), trials=10, adjust="none")).splitlines()
    assert len(lines) == 13
    assert lines[0] == "Results: 780 comparisons, alpha 0.05"
    assert lines[-1] == "and 770 more"


def test_no_name_is_a_command_to_the_terminal():
    results = sigdask.compare_all({"a\x1b]0;title\x07": [1, 2, 3], "b\nc": [2, 2, 2]})
    for text in (repr(results), repr(results[0])):
        assert all(line.isprintable() for line in text.splitlines())
        assert "b\\nc" in text
