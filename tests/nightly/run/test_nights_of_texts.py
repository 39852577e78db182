"""A plan of translations: each night extracts what changed, in processes, and stores it."""

import pytest
from counters import build_texts

from sigdask.execution import extract
from sigdask.metrics.extraction import parts
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan
from sigdask.nightly.run.check import check_plan_data
from sigdask.nightly.store import open_store

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
    monkeypatch.setattr(extract, "SHORT_SECONDS", 0.0)
    monkeypatch.setattr(parts, "PART_SECONDS", 1e-2)
    counts = build_texts(60, 3)
    for name, outputs in zip(counts.systems, counts.outputs.systems, strict=True):
        (tmp_path / f"{name}.out").write_text("\n".join(outputs) + "\n", encoding="utf-8")
    (tmp_path / "gold").write_text("\n".join(text for (text,) in counts.outputs.gold) + "\n", encoding="utf-8")

    def run(cluster="threads", **options):
        (tmp_path / "p.toml").write_text(PLAN.format(cluster=cluster))
        outcome = run_plan(load_plan(tmp_path / "p.toml"), **options)
        with open_store(outcome.location, "p") as store:
            return outcome, store.list_runs()[-1].details.get("extracted")

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
def test_what_check_has_extracted_a_run_finds(night, tmp_path, monkeypatch):
    monkeypatch.setenv("SIGDASK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "p.toml").write_text(PLAN.format(cluster="none"))
    check_plan_data(load_plan(tmp_path / "p.toml"))
    assert night()[1] == {"news": {"made": {}, "kept": 6}}
    monkeypatch.setenv("SIGDASK_CACHE", "off")
    assert night()[1] == {"news": {"made": {}, "kept": 6}}
