"""Nights over texts extract what changed, in processes; nights of intervals store and show them."""

import json
import re

import pytest
from counters import build_texts
from nights import write_plan

from sigdask.api import compare_all, compare_sets
from sigdask.execution import run as execution
from sigdask.formats import Options, read
from sigdask.metrics import extraction
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan
from sigdask.nightly.run.check import check_plan_data
from sigdask.nightly.store.status import build_report

PLAN = """
trials = 300
second_run = false
cluster = "{cluster}"
workers = 2
metrics = ["BLEU", "chrF"]
store = "night.sqlite"
[[test_set]]
name = "news"
systems = "*.out"
gold = "gold"
format = "segments"
"""


@pytest.fixture
def night(tmp_path, monkeypatch):
    """Return a function that runs a plan of three systems and extracts in processes."""
    monkeypatch.setenv("SIGDASK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(execution, "SHORT_SECONDS", 0.0)
    monkeypatch.setattr(extraction, "PART_SECONDS", 1e-2)
    counts = build_texts(60, 3)
    for name, outputs in zip(counts.systems, counts.outputs.systems, strict=True):
        (tmp_path / f"{name}.out").write_text("\n".join(outputs) + "\n", encoding="utf-8")
    (tmp_path / "gold").write_text("\n".join(text for (text,) in counts.outputs.gold) + "\n", encoding="utf-8")

    def run(cluster="threads", **options):
        (tmp_path / "p.toml").write_text(PLAN.format(cluster=cluster))
        plan = load_plan(tmp_path / "p.toml")
        outcome = run_plan(plan, **options)
        return outcome, outcome.report.run.details["extracted"]

    return run


def list_scores(outcome):
    return [(r.a, r.b, r.metric, r.score_a, r.score_b, r.n_extreme) for r in outcome.results["news"]]


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["threads", "local"])
def test_one_changed_file_costs_its_own_extraction(night, tmp_path, cluster):
    first, record = night(cluster)
    names = sorted({r.a for r in first.results["news"]} | {r.b for r in first.results["news"]})
    assert record == {"news": {"made": {"BLEU": names, "chrF": names}, "kept": 0}}
    assert len(names) == 3
    second, record = night(cluster)
    assert record == {"news": {"made": {}, "kept": 6}}
    assert (second.n_counted, list_scores(second)) == (0, list_scores(first))
    file = tmp_path / "s1.out"
    file.write_text(file.read_text(encoding="utf-8").replace("cat", "dog"), encoding="utf-8")
    third, record = night(cluster)
    assert record == {"news": {"made": {"BLEU": [names[1]], "chrF": [names[1]]}, "kept": 4}}
    fresh, _ = night(cluster, store=str(tmp_path / "fresh.sqlite"))
    assert list_scores(third) == list_scores(fresh) != list_scores(first)


@pytest.mark.slow
def test_what_check_has_extracted_a_run_finds(night, tmp_path):
    (tmp_path / "p.toml").write_text(PLAN.format(cluster="none"))
    check_plan_data(load_plan(tmp_path / "p.toml"))
    assert night()[1] == {"news": {"made": {}, "kept": 6}}


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


def test_a_test_set_with_runs_changes_no_other(tmp_path):
    settings = 'interval = "auto"\nadjust = "max-t"\n[report]\ntext = "night.txt"'

    def run(sets):
        run_plan(load_plan(write_plan(tmp_path, sets=sets, systems=3, trials=5000, settings=settings)))
        return (tmp_path / "night.txt").read_text().partition("== set0 ==")[2].split("== set1 ==")

    alone = run(1)[0]
    rows = [f"i{k},{r},{k % 3},{(k + r) % 5},{k % 7}" for k in range(20) for r in range(3)]
    (tmp_path / "set1.csv").write_text("\n".join(["item,run,s0,s1,s2", *rows]) + "\n")
    first, second = run(2)
    assert "simultaneous 95 % interval" in alone
    assert first.split("\n\ntest:")[0] == alone.split("\n\ntest:")[0]
    assert "For new runs of the systems (the recipes; " in second
    paths = [tmp_path / f"set{k}.csv" for k in range(2)]
    counts = [read(path, options=Options(name=path.stem)) for path in paths]
    results = compare_sets(counts, metrics=["mean"], interval="auto", adjust="max-t", trials=5000)
    assert [r.interval_simultaneous is None for r in results] == [False] * 3 + [True] * 3
    assert re.search(r"the recipes; paired runs\), \d of 3 differences are significant", str(results))
