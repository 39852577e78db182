"""Tests that printed numbers never flatter, against Fractions, and printed names hold no commands."""

import json
import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sigdask.statistics.bounds import clopper_pearson
from sigdask.statistics.rounding import format_limits, format_lower_limit, format_p, format_p_equals, format_upper_limit
from sigdask.text import escape_json, format_duration, make_printable

P_VALUES = st.floats(1e-12, 1.0)
LEVELS = st.sampled_from([0.05, 0.01, 0.001, 0.1, 0.05 / 3, 0.01 / 7])


@given(P_VALUES, LEVELS)
@example(205 / 4096, 0.05)
@example(0.0500000001, 0.05)
@example(math.nextafter(0.05, 1), 0.05)
@example(0.05, 0.05)
@example(0.0166666, 0.05 / 3)
def test_p_is_printed_rounded_up_and_on_its_side_of_the_level(p, level):
    text = format_p(p, level)
    assert Fraction(text) >= Fraction(repr(p))
    assert Fraction(format_p(p)) <= Fraction(repr(p)) * Fraction(101, 100)  # three digits
    assert (float(text) <= level) == (p <= level)
    if p > level:  # and whoever knows no level is not misled either
        assert float(format_p(p)) > level


@given(st.integers(0, 5000), st.integers(1, 10**6), LEVELS)
def test_limits_are_printed_outwards_and_on_their_side_of_the_level(k, n, level):
    low, high = map(float, clopper_pearson(min(k, n), n))
    limits = [Fraction(text) for text in format_limits(low, high, level).split(" to ")]
    assert limits[0] <= Fraction(repr(low))
    assert Fraction(repr(high)) <= limits[1]
    assert limits[1] - limits[0] <= (Fraction(high) - Fraction(low)) * Fraction(3, 2)
    assert [float(limit) <= level for limit in limits] == [low <= level, high <= level]


@given(st.floats(1e-9, 1e9))
def test_lower_limits_are_rounded_down_and_upper_ones_up(value):
    assert Fraction(format_lower_limit(value)) <= Fraction(repr(value)) <= Fraction(format_upper_limit(value))


def test_a_p_too_small_for_a_float_is_not_printed_as_0():
    assert format_p_equals(0.0) == "p < 1e-300"
    assert format_p_equals(5e-324).startswith("p = ")


@pytest.mark.parametrize("text", ["翻訳　モデル", "a\xa0b", "Größe – 1\u2009%"])
def test_letters_and_blanks_of_any_language_stay(text):
    assert make_printable(text) == text


@pytest.mark.parametrize("text", ["a\x1b[31m", "a\nb", "a\x9b1m", "a\x7f", "a\u2028b", "a\u202eb", "a\tb"])
def test_commands_are_replaced_in_texts_and_escaped_in_json(text):
    assert make_printable(text).isprintable()
    escaped = escape_json(json.dumps({"name": text}, ensure_ascii=False))
    assert escaped.isprintable()
    assert json.loads(escaped) == {"name": text}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "< 1 s"), (59.6, "1 min 0 s"), (3599.7, "1 h 0 min"), (86399.9, "1 d 0 h"), (90061, "1 d 1 h")],
)
def test_durations_are_rounded_before_their_units_are_chosen(seconds, text):
    assert format_duration(seconds) == text
