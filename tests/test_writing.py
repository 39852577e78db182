"""Tests of the common formats of JSON values, durations and lists of names."""

import json
import logging
import math
from dataclasses import dataclass

import numpy as np
import pytest

from sigdask.cli.streams import JsonLines
from sigdask.nightly.plan.model import Cost
from sigdask.nightly.report import cost
from sigdask.nightly.report import text as plans
from sigdask.nightly.store import PlanRun
from sigdask.text import as_json, describe_items, format_duration, format_list, to_plain


@dataclass(frozen=True)
class Inner:
    limits: tuple[float, float]


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner | None
    more: dict[str, object]


VALUE = Outer("ä", Inner((0.5, math.inf)), {"p": math.nan, "all": [Inner((-math.inf, 1.0))], "n": 3, "yes": True})


def test_values_become_plain_and_what_json_lacks_null():
    assert to_plain(VALUE) == {
        "name": "ä", "inner": {"limits": [0.5, None]},
        "more": {"p": None, "all": [{"limits": [None, 1.0]}], "n": 3, "yes": True},
    }  # fmt: skip


def test_what_this_program_reads_back_keeps_every_float():
    assert math.isnan(json.loads(json.dumps(to_plain(VALUE, exact=True)))["more"]["p"])


def test_floats_of_numpy_become_floats():
    assert type(to_plain(np.float64(0.5))) is float
    assert to_plain((np.float64("nan"),)) == [None]


def test_json_text_is_strict_and_refuses_what_it_does_not_know():
    text = as_json(VALUE)
    assert json.loads(text, parse_constant=pytest.fail) == to_plain(VALUE)
    assert "ä" in text
    with pytest.raises(TypeError):
        as_json({"path": object()})


def test_a_line_of_the_log_never_has_nan():
    record = logging.makeLogRecord({"name": "sigdask", "msg": "slow", "rate": math.nan, "of": {"top": math.inf}})
    data = json.loads(JsonLines().format(record), parse_constant=pytest.fail)
    assert (data["rate"], data["of"]) == (None, {"top": None})


def test_a_duration_reads_alike_before_and_after_it_was_spent():
    text = cost.render("night", [Cost("mine", "table", "item", 2, 10, 10, 1, 0, 100, 200, 7265.0, ())], 1)
    run = PlanRun(1, "night", "night.toml", 0.0, 7265.0, 7265.0, "finished", "here", 1, {}, "")
    assert "2 h 1 min" in text
    assert "2 h 1 min" in plans.format_history([(run, 0)])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "< 1 s"), (59.6, "1 min 0 s"), (3599.7, "1 h 0 min"), (86399.9, "1 d 0 h"), (90061, "1 d 1 h")],
)
def test_durations_are_rounded_before_their_units_are_chosen(seconds, text):
    assert format_duration(seconds) == text


def test_the_first_of_many_names_stand_for_all():
    names = [f"i{k}" for k in range(1203)]
    assert format_list([]) == ""
    assert format_list(names) == "i0, i1, i2 and 1,200 more"
    assert describe_items(["a"], "id") == "1 id ('a')"
    assert describe_items(names, "id") == "1,203 ids ('i0', 'i1', 'i2' and 1,200 more)"
