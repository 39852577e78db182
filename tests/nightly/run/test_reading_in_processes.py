"""Many test sets are read in worker processes, with the results, warnings and errors of reading them in this one."""

import gzip
import json
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest
from nights import read_tallies

from sigdask.errors import InputError, UnfinishedError
from sigdask.metrics.extraction import StatisticsSource
from sigdask.metrics.extraction.parts import ProcessExtraction, _Process
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import count, run_plan, work
from sigdask.nightly.store import tallies
from sigdask.randomization.families.max_t import MaxTFamily

CSV = "item,x,y,z\n" + "".join(f"i{k},{k * k % 7},{k * 3 % 5},{k % 3}\n" for k in range(12))
FILES = {
    "scores": CSV,
    "swapped": CSV.replace("item,x,y,z", "item,z,y,x"),
    "alike": "item,x,y,z\n" + "".join(f"i{k + 3},{k % 4},{k * 3 % 5},{k * k % 3}\n" for k in range(12)),
    "summed": CSV + "mean,2.5,2,1\n",
    "counted": CSV.replace("item,x,y,z", "row,x,y,z").replace("\ni", "\n"),
    "constant": "item,x,y,z\n" + "".join(f"i{k},0.5,{k % 5},{k % 3}\n" for k in range(12)),
    "grouped": "item,kind,x,y\n" + "".join(f"i{k},k{k % 3},{k * k % 7},{k % 5}\n" for k in range(12)),
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


def describe_sets(path, workers):
    """Read a plan; return all that its test sets hold, and the jobs to count."""
    batches, extracted = work.read_batches(load_plan(path), StatisticsSource(), (), states := {}, workers)
    sets = {
        name: (counts.systems, list(counts.ids or ()), counts.notices, counts.suggested, counts.n_items, counts.unit,
               {field: counts.field(field).tolist() for field in counts.fields}, sorted(counts.groups))
        for batch in batches
        for name, counts in batch.counts.items()
    }  # fmt: skip
    jobs = [(job.panel.shape, job.n_trials, job.run, job.label) for batch in batches for job in batch.jobs]
    digests = [job.panel.compute_digests().tolist() for batch in batches for job in batch.jobs
               if hasattr(job.panel, "compute_digests")]  # fmt: skip
    return sets, jobs, digests, extracted, list(states)


def test_test_sets_read_in_processes_are_those_read_in_one(night, in_processes):
    alone = describe_sets(night, 1)
    assert in_processes == []
    assert describe_sets(night, 2) == alone
    assert len(in_processes) == len(FILES) + 2 - 2 - 1  # without the first two, and that with code of the user's own
    assert sum(p.study is None for p in in_processes) == 1  # whose statistics are extracted from outputs


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


def test_what_processes_do_not_return_is_read_here(night, in_processes, monkeypatch):
    def fail(parts, seconds):
        yield from ProcessExtraction(1)(parts[:1], seconds)
        raise UnfinishedError("a worker process was ended twice")

    alone = describe_sets(night, 1)
    monkeypatch.setattr(work, "ProcessExtraction", lambda *_: fail)
    assert describe_sets(night, 2) == alone


@pytest.mark.parametrize("n", [2, 3])
def test_this_process_reads_too_and_no_test_set_is_read_twice(night, monkeypatch, n):
    alone, read = describe_sets(night, 1), []
    monkeypatch.setattr(work, "PROBED_SETS", 2)
    monkeypatch.setattr(work, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(work, "count_cores", lambda: n)
    prepare, load = work.PlanPart.read, work.pickle.loads

    def prepare_part(part):
        if not read:
            waiting_for_process.wait(60)
        read.extend(test_set.name for test_set in part.test_sets)
        return prepare(part)

    def load_sets(content):
        loaded = load(content)
        read.extend(p.counts.name for p in loaded if isinstance(p, work.PreparedSet))
        return loaded

    waiting_for_process, receive = Event(), _Process.receive_result

    def receive_result(process):
        result = receive(process)
        waiting_for_process.set()
        return result

    monkeypatch.setattr(work.PlanPart, "read", prepare_part)
    monkeypatch.setattr(_Process, "receive_result", receive_result)
    monkeypatch.setattr(work, "pickle", SimpleNamespace(loads=load_sets, dumps=work.pickle.dumps))
    assert describe_sets(night, n) == alone
    assert len(read) == len(set(read)) == len(FILES) + 2 - 2 - 1


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


def test_small_families_that_look_alike_are_timed_once_and_written_together(tmp_path, monkeypatch):
    rng, text = np.random.default_rng(1), "trials = 512\n"
    for k in range(6):
        rows = "".join(f"i{i},{','.join(map(str, row))}\n" for i, row in enumerate(rng.permuted(SCORES, axis=0)))
        (tmp_path / f"s{k}.csv").write_text("item,x,y,z\n" + rows)
        text += f'[[test_set]]\nname = "s{k}"\nsystems = "s{k}.csv"\n'
    (tmp_path / "plan.toml").write_text(text)
    timed, written = [], []
    measure, write = count.measure_trial_seconds, tallies._write_families
    monkeypatch.setattr(
        count,
        "measure_trial_seconds",
        lambda panel, *_, **__: timed.append(type(panel)) or measure(panel, 512, share=1),
    )
    monkeypatch.setattr(tallies, "_write_families", lambda c, f: written.append(len(f)) or write(c, f))
    assert run_plan(tmp_path / "plan.toml").exit_status == 0
    assert timed.count(MaxTFamily) <= 2  # one for each size of the panels
    assert written == [6]


SCORES = np.column_stack([np.arange(40) % 2, np.arange(40) // 2 % 2, np.arange(40) // 4 % 2])
