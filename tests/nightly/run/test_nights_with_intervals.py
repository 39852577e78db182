"""Intervals in plans: as `compare` computes them, stored while valid, topped up like counts."""

import json

import pytest
from nights import write_plan

from sigdask.api import compare_all
from sigdask.formats import Options, read
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan
from sigdask.nightly.store.status import build_report

PLAN_OPTIONS = {"trials": 4096, "sets": 1, "systems": 3}


def load_night_plan(folder, **keys):
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())
    return load_plan(write_plan(folder / "night", **PLAN_OPTIONS, settings=lines))


def list_intervals(results):
    return [(r.interval, r.score_a_interval, r.score_b_interval, r.paired_d, r.interval_simultaneous) for r in results]


@pytest.mark.slow
def test_intervals_are_those_of_compare_and_only_what_is_lacking_is_counted(tmp_path):
    first = run_plan(load_night_plan(tmp_path), cluster="none")
    assert list_intervals(first.results["set0"]) == [(None,) * 5] * 3
    second = run_plan(load_night_plan(tmp_path, interval="bootstrap", resamples=3000), cluster="none")
    assert (second.n_counted, second.n_changed) == (3000 + 2**14, 3)  # the pairs, and the family with simultaneous ones
    plan = load_night_plan(tmp_path, interval="bootstrap", resamples=7000, confidence=0.9)
    outcome = run_plan(plan, cluster="none")
    assert outcome.n_counted == 4000
    counts = read(plan.test_sets[0].sources[0].path, options=Options(name="set0"))
    options = {"interval": "bootstrap", "resamples": 7000, "confidence": 0.9}
    compared = compare_all(counts, metrics=["mean"], trials=100, seed=3, cluster="none", **options)
    assert list_intervals(outcome.results["set0"]) == list_intervals(compared)
    assert run_plan(plan, cluster="none").n_counted == 0
    stored = build_report(plan.store, plan.name).results["set0"]
    assert list_intervals(stored) == list_intervals(compared)
    fewer = run_plan(load_night_plan(tmp_path, interval="bootstrap", resamples=3000), cluster="none")
    assert list_intervals(fewer.results["set0"]) == list_intervals(second.results["set0"])  # a prefix of what is kept


def test_the_inverted_test_and_intervals_of_one_test_set_alone_are_kept_too(tmp_path):
    path = write_plan(tmp_path / "night", **{**PLAN_OPTIONS, "sets": 2})
    with path.open("a") as file:
        file.write('interval = "inversion"\nresamples = 5000\n')
    plan = load_plan(path)
    outcome = run_plan(plan, cluster="none")
    assert [r.interval for r in outcome.results["set0"]] == [None] * 3
    assert [r.interval.n_resamples for r in outcome.results["set1"]] == [5000] * 3
    assert run_plan(plan, cluster="none").n_counted == 0
