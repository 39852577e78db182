"""Intervals in plans: those of `compare`, kept while they hold, and topped up like counts."""

import json
from dataclasses import replace

from nights import write_plan

from sigdask.api import compare_all
from sigdask.formats import Options, read
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan
from sigdask.nightly.store.status import build_report

DONE = {"trials": 4096, "sets": 1, "systems": 3}


def plan_of(folder, **more):
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in more.items())
    return load_plan(write_plan(folder / "night", **DONE, more=lines))


def intervals(results):
    return [(r.interval, r.score_a_interval, r.score_b_interval, r.paired_d, r.interval_simultaneous) for r in results]


def test_intervals_are_those_of_compare_and_only_what_is_lacking_is_counted(tmp_path):
    first = run_plan(plan_of(tmp_path), cluster="none")
    assert intervals(first.results["set0"]) == [(None,) * 5] * 3
    more = run_plan(plan_of(tmp_path, interval="bootstrap", resamples=3000), cluster="none")
    assert (more.n_counted, more.n_changed) == (6000, 3)  # of the pairs, and of the family for simultaneous ones
    plan = plan_of(tmp_path, interval="bootstrap", resamples=7000, confidence=0.9)
    outcome = run_plan(plan, cluster="none")
    assert outcome.n_counted == 8000
    counts = read(plan.test_sets[0].sources[0].path, options=Options(name="set0"))
    asked = {"interval": "bootstrap", "resamples": 7000, "confidence": 0.9}
    compared = compare_all(counts, metrics=["mean"], trials=100, seed=3, cluster="none", **asked)
    assert intervals(outcome.results["set0"]) == intervals(compared)
    assert run_plan(plan, cluster="none").n_counted == 0
    held = build_report(plan.store, plan.name).results["set0"]
    assert intervals(held) == intervals(compared)
    fewer = run_plan(plan_of(tmp_path, interval="bootstrap", resamples=3000), cluster="none")
    assert intervals(fewer.results["set0"]) == intervals(more.results["set0"])  # a prefix of what is kept


def test_the_inverted_test_and_intervals_of_one_test_set_alone_are_kept_too(tmp_path):
    path = write_plan(tmp_path / "night", **{**DONE, "sets": 2})
    with path.open("a") as file:
        file.write('interval = "inversion"\nresamples = 5000\n')
    plan = load_plan(path)
    outcome = run_plan(plan, cluster="none")
    assert [r.interval for r in outcome.results["set0"]] == [None] * 3
    assert [r.interval.n_resamples for r in outcome.results["set1"]] == [5000] * 3
    assert run_plan(plan, cluster="none").n_counted == 0


def test_a_store_keeps_cells_by_the_content_of_what_is_resampled(tmp_path):
    plan = plan_of(tmp_path, interval="bootstrap", resamples=2000)
    run_plan(plan, cluster="none")
    other = replace(plan, seed=4)
    assert run_plan(other, cluster="none").n_counted > 2000
