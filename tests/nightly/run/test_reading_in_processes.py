"""Many test sets are read in worker processes, with the results, warnings and errors of reading them in this one."""

import gzip
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from nights import read_tallies

from sigdask.errors import InputError
from sigdask.metrics.extraction import StatisticsSource
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan, work

CSV = "item,x,y,z\n" + "".join(f"i{k},{k * k % 7},{k * 3 % 5},{k % 3}\n" for k in range(12))
FILES = {
    "scores": CSV,
    "swapped": CSV.replace("item,x,y,z", "item,z,y,x"),
    "alike": "item,x,y,z\n" + "".join(f"i{k + 3},{k % 4},{k * 3 % 5},{k * k % 3}\n" for k in range(12)),
    "counted": CSV.replace("item,x,y,z", "row,x,y,z").replace("\ni", "\n"),
    "constant": "item,x,y,z\n" + "".join(f"i{k},0.5,{k % 5},{k % 3}\n" for k in range(12)),
    "grouped": "item,genre,x,y\n" + "".join(f"i{k},k{k % 3},{k * k % 7},{k % 5}\n" for k in range(12)),
    "long": "system,item,score\n" + "".join(f"s{s},i{k},{(k + 1) * (s + 3) % 7}\n" for s in (0, 1) for k in range(12)),
    "gold": "id,gold,x,y\n" + "".join(f"i{k},{'ab'[k % 2]},{'ab'[k % 3 % 2]},a\n" for k in range(12)),
    "own": CSV.replace("\ni", "\nj"),
}
OWN = """
def widest(outputs, gold):
    return float(max(outputs)) - float(min(outputs)) / 2
"""


@pytest.fixture
def night(tmp_path):
    for name, text in FILES.items():
        (tmp_path / f"{name}.csv").write_text(text)
    (tmp_path / "packed.csv").write_bytes(gzip.compress(FILES["alike"].encode()))
    for name in ("ref", "a", "b"):
        lines = (f"the {['cat', 'dog', 'cow'][k % 3]} sat on {name if k % 2 else 'a'} mat {k}" for k in range(8))
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "spread_of_scores.py").write_text(OWN)
    text = 'trials = 512\nseed = 2\n[report]\njson = "report.json"\n'
    for name in (*FILES, "packed"):
        metrics = {"own": 'metrics = ["spread_of_scores:widest"]\n', "gold": 'metrics = ["accuracy"]\n'}.get(name, "")
        text += f'[[test_set]]\nname = "{name}"\nsystems = "{name}.csv"\n{metrics}'
    text += (
        '[[test_set]]\nname = "words"\ngold = "ref.txt"\nmetrics = ["bleu"]\nsystems = { a = "a.txt", b = "b.txt" }\n'
    )
    (tmp_path / "night.toml").write_text(text)
    return tmp_path / "night.toml"


@pytest.fixture
def in_processes(monkeypatch):
    """Read all test sets but the first two in a worker process, and return those that it prepared."""
    prepared, load = [], work.pickle.loads
    monkeypatch.setattr(work, "PROBED_SETS", 2)
    monkeypatch.setattr(work, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(work, "count_cores", lambda: 2)

    def load_sets(content):
        loaded = load(content)
        prepared.extend(p for p in loaded if isinstance(p, work.PreparedSet))
        return loaded

    monkeypatch.setattr(work, "_prepare_waiting", lambda *_: {})  # this process would read all while another starts
    monkeypatch.setattr(work, "pickle", SimpleNamespace(loads=load_sets, dumps=work.pickle.dumps))
    return prepared


@pytest.mark.slow
def test_a_run_that_reads_in_processes_writes_the_same_report_and_counts(night, in_processes):
    reports, tallies = [], []
    for workers in (1, 2):
        plan = replace(load_plan(night), store=str(night.parent / f"{workers}.sqlite"))
        assert run_plan(plan, cluster="none", workers=workers).exit_status == 0
        report = json.loads((night.parent / "report.json").read_text())
        reports.append({key: report[key] for key in ("results", "test_sets", "notes") if key in report})
        tallies.append(sorted(map(repr, read_tallies(night.parent / f"{workers}.sqlite"))))
    assert in_processes
    assert reports[0] == reports[1]
    assert reports[0]["results"]
    assert tallies[0] == tallies[1]


@pytest.mark.slow
@pytest.mark.parametrize("broken", [("long", "alike"), ("scores", "gold")])
def test_the_first_error_is_that_of_reading_in_one_process(night, in_processes, broken):
    for name in broken:
        (night.parent / f"{name}.csv").write_text("item,x,y\ni1,1,high\ni2,2,low\ni3,2\n")
    errors = []
    for workers in (1, 2):
        with pytest.raises(InputError) as caught:
            work.read_batches(load_plan(night), StatisticsSource(), (), {}, workers)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert f"{next(name for name in FILES if name in broken)}.csv" in errors[0]


@pytest.mark.parametrize("n_probed", [50, 0])
@pytest.mark.parametrize("metric", ["maen", "f1"])
def test_a_metric_that_a_test_set_lacks_is_reported_before_further_files_are_read(night, monkeypatch, n_probed, metric):
    night.write_text(night.read_text().replace('name = "alike"\n', f'name = "alike"\nmetrics = ["{metric}"]\n'))
    read, read_set = [], work.TestSet.read
    monkeypatch.setattr(work.TestSet, "read", lambda test_set: read.append(test_set.name) or read_set(test_set))
    monkeypatch.setattr(work, "PROBED_SETS", n_probed)
    monkeypatch.setattr(work, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(work, "count_cores", lambda: 2)
    monkeypatch.setattr(work, "ProcessExtraction", lambda *_: lambda *_: iter(()))
    with pytest.raises(InputError, match=f"metric '{metric}'"):
        work.read_batches(load_plan(night), StatisticsSource(), (), {}, 2)
    assert set(read) == {"scores", "swapped", "alike"}
