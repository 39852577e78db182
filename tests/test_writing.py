"""Tests of the common formats of JSON values and durations."""

import json
import logging
import math

import pytest

from sigdask.cli.streams import JsonLines
from sigdask.text import format_duration


def test_a_line_of_the_log_never_has_nan():
    record = logging.makeLogRecord({"name": "sigdask", "msg": "slow", "rate": math.nan, "of": {"top": math.inf}})
    data = json.loads(JsonLines().format(record), parse_constant=pytest.fail)
    assert (data["rate"], data["of"]) == (None, {"top": None})


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "< 1 s"), (59.6, "1 min 0 s"), (3599.7, "1 h 0 min"), (86399.9, "1 d 0 h"), (90061, "1 d 1 h")],
)
def test_durations_are_rounded_before_their_units_are_chosen(seconds, text):
    assert format_duration(seconds) == text
