"""Test sets whose files have not changed are not read again, and each change is noticed."""

import json
import os

import pytest
from command import call_sigdask
from nights import write_plan

from sigdask.errors import InputError
from sigdask.nightly.plan import load_plan
from sigdask.nightly.report.text import render_json
from sigdask.nightly.run import run_plan, work
from sigdask.nightly.store.status import list_runs
from sigdask.nightly.test_sets import TestSet


@pytest.fixture
def read_names(monkeypatch):
    """Names of the test sets that are read; files count as settled at once."""
    names, read = [], TestSet.read
    monkeypatch.setattr(work, "SETTLED_NS", 0)
    monkeypatch.setattr(TestSet, "read", lambda test_set: [names.append(test_set.name), read(test_set)][1])
    return names


def run_again(path, names, **options):
    """Run a plan and return its outcome, with the names of the test sets that it read."""
    names.clear()
    outcome = run_plan(load_plan(path), cluster="none", **options)
    assert (outcome.stopped, outcome.problems) == ("", ())
    return outcome, [*names]


def test_a_night_without_changes_reads_nothing_and_has_the_results_of_one_that_reads_all(tmp_path, read_names):
    path = write_plan(tmp_path / "night")
    store = str(path.with_suffix(".sqlite"))
    first, names = run_again(path, read_names)
    assert len(names) == len(first.results) > 1
    second, read_again = run_again(path, read_names)
    assert (read_again, second.n_counted, second.n_changed) == ([], 0, 0)
    assert list_runs(store)[0].comparisons == sum(map(len, first.results.values()))
    third, all_names = run_again(path, read_names, reread=True)
    assert (all_names, third.n_changed) == (names, 0)
    assert dict(first.results) == dict(second.results) == dict(third.results)
    documents = [
        json.loads(call_sigdask("report", store, "--run", n, "--json", "-", cwd=tmp_path).stdout) for n in "123"
    ]
    for document in documents:
        del document["run"]["number"], document["run"]["started"], document["run"]["ended"]
    assert documents[0] == documents[1] == documents[2]
    head, _, *others = path.read_text().split("[[test_set]]")
    path.write_text("[[test_set]]".join([head, *others]))
    fourth, read_again = run_again(path, read_names)
    assert (read_again, [*fourth.results], fourth.n_changed) == ([], [*first.results][1:], len(first.results["set0"]))


@pytest.mark.slow
def test_a_changed_file_is_noticed_though_its_size_and_time_are_the_same(tmp_path, read_names):
    path = write_plan(tmp_path / "night", sets=3, settings="margin = 0.5")
    _, names = run_again(path, read_names)
    [source] = load_plan(path).test_sets[-2].sources
    times, text = source.path.stat(), source.path.read_text()
    header, *rows = text.splitlines(keepends=True)
    with source.path.open("r+") as file:
        file.writelines([header, *rows[::-1]])
    os.utime(source.path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (source.path.stat().st_size, source.path.stat().st_mtime_ns) == (times.st_size, times.st_mtime_ns)
    second, read_again = run_again(path, read_names)
    assert (len(names), read_again, second.n_changed > 0) == (3, ["set1"], True)
    third, _ = run_again(path, read_names, store=str(tmp_path / "from-scratch.sqlite"))
    documents = [json.loads("".join(render_json(outcome.report))) for outcome in (second, third)]
    for document in documents:
        del document["run"], document["changes"]
    assert documents[0] == documents[1]
    assert second.report.run.details["inputs"] == third.report.run.details["inputs"]
    assert all(r.margin.margin == 0.5 for results in third.results.values() for r in results)


@pytest.mark.slow
def test_files_that_changed_just_now_other_settings_and_pages_are_read(tmp_path, read_names, monkeypatch):
    path = write_plan(tmp_path / "night")
    text = path.read_text()
    _, names = run_again(path, read_names)
    for changed in (text.replace("seed = 3", "seed = 4"), f'{text}[report]\nhtml = "page.html"\n', GATED + text):
        path.write_text(text)
        run_again(path, read_names)
        assert run_again(path, read_names)[1] == []
        path.write_text(changed)
        assert run_again(path, read_names)[1] == names
    path.write_text(text)
    run_again(path, read_names)
    monkeypatch.setattr(work, "SETTLED_NS", 10**15)
    assert run_again(path, read_names)[1] == names
    monkeypatch.setattr(work, "SETTLED_NS", 0)
    assert run_again(path, read_names)[1] == names  # the run before knew nothing of their states
    assert run_again(path, read_names)[1] == []


GATED = 'gate = { rules = [{ rule = "not-worse", baseline = "s0" }] }\n'


def test_a_night_that_cannot_be_read_is_recorded_and_hides_no_results(tmp_path, read_names):
    path = write_plan(tmp_path / "night")
    store, scores = str(path.with_suffix(".sqlite")), (tmp_path / "night" / "set1.csv").read_text()
    first, _ = run_again(path, read_names)
    (tmp_path / "night" / "set1.csv").write_text("s0,s1\n1,x\n")
    with pytest.raises(InputError) as caught:
        run_plan(load_plan(path), cluster="none")
    failed, finished = list_runs(store)
    assert (failed.state, failed.message, finished.number) == ("failed", str(caught.value), first.number)
    shown = call_sigdask("report", store, "--json", "-", cwd=tmp_path).stdout
    assert json.loads(shown)["run"]["number"] == first.number
    (tmp_path / "night" / "set1.csv").write_text(scores)
    third, read_again = run_again(path, read_names)
    assert (read_again, third.n_counted, third.n_changed, third.report.before) == (["set1"], 0, 0, first.number)
