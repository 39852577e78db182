"""Tests of intervals in reports: sentences for few comparisons, a column for many, the page."""

import re

from builders import build_rng

from sigdask import compare_all
from sigdask.report.page import render_page
from sigdask.report.terminal import render


def compare_random(n_systems, **options):
    scores = {f"s{k}": build_rng(k).normal(0, 1, 30).round(2) for k in range(n_systems)}
    return compare_all(scores, trials=200, resamples=200, **options)


def test_intervals_have_a_column_and_details_say_how_they_were_had():
    few, many = render(compare_random(2), verbose=True), render(compare_random(6), everything=True)
    ends = r"\[[+-]\d\.\d{4}, [+-]\d\.\d{4}\]"
    assert re.search(rf"s0 - s1 = \S+, 95 % interval {ends} \(the test inverted by item, 200 trials\); paired d", few)
    assert "the test inverted" not in render(compare_random(2))
    assert re.search("A - B +95 % interval +p", few)
    assert re.search("A - B +simultaneous 95 % interval +unadjusted p", many)
    assert len(re.findall(r"^s\d .* \[-?\d\.\d+, -?\d\.\d+\] ", many, re.MULTILINE)) == 15
    assert "95 % interval" not in render(compare_random(6, interval="none"))


def test_the_page_has_intervals_where_they_were_asked_for():
    with_them, without = (render_page({"": compare_random(3, interval=kind)}, title="t") for kind in ("auto", "none"))
    plain = with_them.split("<noscript>")[-1].split("</noscript>")[0]
    assert (
        len(re.findall(r"\[[+-]\d\.\d{4}, [+-]\d\.\d{4}\]", plain)) == 2 * plain.count("95 %, the test inverted") == 6
    )
    assert "95 % interval" not in without


def test_an_interval_that_nothing_bounds_says_so():
    """Of 3 units no two-sided p is below 1/4: no difference is rejected at 0.05."""
    few = compare_all({"a": [1, 2, 3], "b": [1, 2, 4]}, metrics=["mean"])
    assert "95 % interval without bound (the test inverted by item)" in render(few, verbose=True)
    assert (
        "a and b are not significantly different on mean: b is ahead by 0.33 (interval without bounds); p = 1 (exact)."
        in render(few)
    )
    assert "inf" not in render(few, verbose=True)
