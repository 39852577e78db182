"""A plan is counted once, whatever happens, with the counts of `sigdask compare`."""

import csv
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np
import pytest
from command import call_sigdask
from nights import read_tallies, run_sigdask, write_plan, write_scores, write_slow_plan
from terminals import run_in_terminal

from sigdask.api import compare_all
from sigdask.errors import ClusterLostError, HeldError, InputError, StoreError, TaskError
from sigdask.execution.clusters import parse_description
from sigdask.formats import Options, read
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import count, run_plan
from sigdask.nightly.store import Store, open_store
from sigdask.nightly.store.status import build_report, list_runs, read_status
from sigdask.randomization.tallies import find_round
from sigdask.results.notes import Note
from sigdask.statistics import classical


@pytest.fixture
def plan(tmp_path):
    return load_plan(write_plan(tmp_path / "night"))


NO_ADJUSTMENT = 'adjust = "none"'


def list_counts(results):
    return [(r.a, r.b, r.metric, r.n_trials, r.n_extreme, r.second_run.n_extreme) for r in results]


def test_the_counts_are_those_of_compare_and_a_second_run_of_the_plan_counts_nothing(plan):
    outcome = run_plan(plan, cluster="none")
    assert (outcome.exit_status, outcome.stopped) == (0, "")
    for test_set in plan.test_sets:
        counts = read(test_set.sources[0].path, options=Options(name=test_set.name))
        options = {"method": test_set.method, "interval": "none"}  # plans have no intervals by default
        compared = compare_all(counts, seed=3, trials=20_000, cluster="none", **options)
        assert list(outcome.results[test_set.name]) == list(compared)
    second = run_plan(plan, cluster="none")
    assert (second.n_counted, second.n_changed) == (0, 0)
    assert second.results == outcome.results


@pytest.mark.parametrize("cluster", ["local", parse_description({"class": "local", "workers": 2}, source="c")])
def test_workers_are_not_started_for_work_that_takes_less_time(plan, monkeypatch, cluster):
    connected, connect = [], count.clusters.connect
    monkeypatch.setattr(
        count.clusters, "connect", lambda cluster, workers: connected.append(cluster) or connect("none")
    )
    assert run_plan(plan, cluster=cluster).exit_status == 0
    assert {*connected} == {"none"}
    monkeypatch.setattr(count.clusters, "SHORT_SECONDS", 0.0)
    assert run_plan(plan, cluster=cluster, store=str(plan.path.with_name("other.sqlite"))).exit_status == 0
    assert connected[-1] is cluster


def test_classical_tests_are_those_of_compare_and_are_kept_while_they_hold(tmp_path):
    without = load_plan(write_plan(tmp_path / "night", trials=4096))
    first = run_plan(without, cluster="none")
    assert all(r.tests == () for results in first.results.values() for r in results)
    plan = load_plan(write_plan(tmp_path / "night", trials=4096, settings='tests = ["t,sign", "wilcoxon"]'))
    outcome = run_plan(plan, cluster="none")  # what an earlier night found had none: asked for, they are new
    assert (outcome.n_counted, outcome.n_changed) == (0, 30)
    for test_set in plan.test_sets:
        counts = read(test_set.sources[0].path, options=Options(name=test_set.name))
        options = {"metrics": ["mean"], "trials": 4096, "seed": 3, "tests": ["t", "sign", "wilcoxon"]}
        compared = compare_all(counts, cluster="none", **options)
        assert [r.tests for r in outcome.results[test_set.name]] == [r.tests for r in compared]
    assert run_plan(plan, cluster="none").n_changed == 0
    stored = build_report(plan.store, plan.name).results
    assert {name: [r.tests for r in set_results] for name, set_results in stored.items()} == {
        name: [r.tests for r in set_results] for name, set_results in outcome.results.items()
    }


def test_a_night_reports_from_the_store_that_it_has_open(tmp_path, monkeypatch):
    path = write_plan(tmp_path / "night", trials=4096)
    with path.open("a") as file:
        file.write('[report]\njson = "r.json"\nhtml = "r.html"\n')
    opened = []
    monkeypatch.setattr("sigdask.nightly.store.open_to_read", opened.append)
    outcome = run_plan(load_plan(path), cluster="none")
    assert "set1" in (path.parent / "r.html").read_text()
    assert (opened, outcome.report.store) == ([], str(path.parent / "night.sqlite"))


def test_a_test_set_has_classical_tests_of_its_own(tmp_path):
    path = write_plan(tmp_path / "night", trials=4096, settings='tests = "all"')
    with path.open("a") as file:
        file.write('tests = "t"\n[report]\ncsv = "r.csv"\njson = "r.json"\nhtml = "r.html"\n')
    outcome = run_plan(load_plan(path), cluster="none")
    assert [len(results[0].tests) for results in outcome.results.values()] == [6, 1]
    stored = build_report(load_plan(path).store, "night").results
    assert [[t.name for t in results[0].tests] for results in stored.values()] == [[*classical.NAMES], ["t"]]
    header, *rows = (path.parent / "r.csv").read_text().splitlines()
    assert "binomial_statistic,binomial_p_value" in header
    assert {row.count(",") for row in rows} == {header.count(",")}
    assert [len(r["tests"]) for r in json.loads((path.parent / "r.json").read_text())["results"]] == [6] * 15 + [1] * 15
    assert "Classical tests" in (path.parent / "r.html").read_text()


def test_the_store_keeps_each_comparison_once(plan):
    run_plan(plan, cluster="threads", workers=2)
    rows = read_tallies(plan.path.parent / "night.sqlite")
    assert len(rows) == 2 * 15 * 2 + 2  # sets, pairs, runs; and a family a set
    assert {row[3] for row in rows} == {20_000}
    assert {row[-1] for row in rows if len(row) == 9} == {3}  # rounds: to 4,096, to 16,384, to 20,000


@pytest.mark.parametrize("adjust", ["max-t", "none"])
def test_lowered_trials_count_as_if_no_more_had_been_asked_for(tmp_path, adjust):
    def count_trials(folder, trials):
        text = (path := write_plan(folder, sets=1, systems=3, trials=trials)).read_text()
        path.write_text(f'adjust = "{adjust}"\n' + text)
        outcome = run_plan(load_plan(path), cluster="none")
        assert outcome.exit_status == 0
        return [replace(r, notes=()) for r in outcome.results["set0"]], outcome.n_counted

    expected = count_trials(tmp_path / "a", 20_000)
    rows = read_tallies(tmp_path / "a" / "night.sqlite")
    for fewer in (16_384, 10_000, 4096, 1000):
        cut, n_counted = count_trials(tmp_path / "a", fewer)
        assert cut == count_trials(tmp_path / str(fewer), fewer)[0]
        assert (n_counted == 0) == (fewer in {16_384, 4096})  # at the end of a round nothing is counted again
        assert read_tallies(tmp_path / "a" / "night.sqlite") == rows
    assert count_trials(tmp_path / "a", 20_000) == (expected[0], 0)
    assert count_trials(tmp_path / "a", 30_000)[0] == count_trials(tmp_path / "b", 30_000)[0]


def test_raised_trials_are_topped_up_to_the_same_counts_and_called_a_second_look(tmp_path):
    def load_with_trials(folder, trials):
        return load_plan(write_plan(folder, sets=1, trials=trials))

    before = run_plan(load_with_trials(tmp_path / "a", 2**16), cluster="none")
    topped = run_plan(load_with_trials(tmp_path / "a", 2**20), cluster="none")
    at_once = run_plan(load_with_trials(tmp_path / "b", 2**20), cluster="none")
    assert topped.n_counted == at_once.n_counted - before.n_counted
    assert list_counts(topped.results["set0"]) == list_counts(at_once.results["set0"])
    strip = [row[:-1] for row in read_tallies(tmp_path / "a" / "night.sqlite")]
    assert strip == [row[:-1] for row in read_tallies(tmp_path / "b" / "night.sqlite")]
    assert topped.second_looks == {"set0": 15}
    assert at_once.second_looks == {}
    note = Note("second-look", "second look: p was computed before, with 65,536 trials", {"n_trials": 65_536})
    assert note in topped.results["set0"][0].notes
    assert "second look: 15 comparisons" in call_sigdask("report", "night.toml", cwd=tmp_path / "a").stdout


def test_one_changed_file_among_twenty_counts_its_own_pairs_alone(tmp_path):
    folder = tmp_path / "night"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for k in range(20):
        np.savetxt(folder / f"system{k}.txt", rng.random(30).round(2), fmt="%.2f")
    (folder / "night.toml").write_text(
        'trials = 5000\nmethod = "randomization"\nadjust = "none"\n[[test_set]]\nname = "x"\nsystems = "system*.txt"\n'
    )
    first = run_plan(load_plan(folder / "night.toml"), cluster="none")
    assert first.n_counted == 190 * 2 * 5000
    np.savetxt(folder / "system7.txt", rng.random(30), fmt="%.7f")  # more digits: another lattice for all
    second = run_plan(load_plan(folder / "night.toml"), cluster="none")
    assert second.n_counted == 19 * 2 * 5000
    assert second.n_changed == 19
    changes = build_report(str(folder / "night.sqlite")).changes
    assert {"system7" in {c.now.a, c.now.b} for c in changes} == {True}
    assert {kinds[0] for kinds in changes.kinds} == {"scores"}


def test_a_new_metric_or_system_counts_what_is_new(tmp_path):
    folder = tmp_path / "night"
    path = write_plan(folder, sets=1, systems=4, settings=NO_ADJUSTMENT)
    run_plan(load_plan(path), cluster="none")
    lines = (folder / "set0.csv").read_text().splitlines()
    wider = [f"{line},{'new' if k == 0 else k % 7 / 10}" for k, line in enumerate(lines)]
    (folder / "set0.csv").write_text("\n".join(wider) + "\n")
    assert run_plan(load_plan(path), cluster="none").n_counted == 4 * 2 * 20_000


def test_the_same_comparison_under_two_names_is_counted_once(tmp_path):
    folder = tmp_path / "night"
    path = write_plan(folder, sets=1, systems=3, settings=NO_ADJUSTMENT)
    rows = [line.split(",") for line in (folder / "set0.csv").read_text().splitlines()]
    twin = [",".join([*row, "twin" if k == 0 else row[2]]) for k, row in enumerate(rows)]
    (folder / "set0.csv").write_text("\n".join(twin) + "\n")
    outcome = run_plan(load_plan(path), cluster="none")
    assert outcome.n_counted == (3 + 1) * 2 * 20_000  # three distinct pairs, and the twins
    by_pair = {(r.a, r.b): r.n_extreme for r in outcome.results["set0"]}
    data = read(folder / "set0.csv", options=Options(name="set0"))
    compared = compare_all(data, metrics=["mean"], seed=3, trials=20_000, method="randomization")
    assert by_pair == {(r.a, r.b): r.n_extreme for r in compared}


def test_breadth_first_gives_every_comparison_a_bound_before_any_has_its_last(plan, monkeypatch):
    commits = []
    commit = Store.commit

    def record_commit(self, tallies, *arguments):
        commits.append([(k.run, k.first) for k in tallies])
        commit(self, tallies, *arguments)

    monkeypatch.setattr(Store, "commit", record_commit)
    monkeypatch.setattr(count, "FLUSH_SECONDS", 0.0)
    monkeypatch.setattr(count, "FLUSH_SHARE", 0.0)
    monkeypatch.setattr(count, "compute_task_seconds", lambda *_: 1e-9)
    run_plan(plan, cluster="none")
    firsts = [find_round(first)[0] for tallies in commits for _, first in tallies]
    assert firsts == sorted(firsts)


def test_enumerated_pairs_are_kept_and_resumed_like_the_others(tmp_path):
    folder = tmp_path / "night"
    folder.mkdir()
    write_scores(folder / "set0.csv", 3, n_items=10)
    path = write_plan(folder, sets=1, method="auto")
    outcome = run_plan(load_plan(path), cluster="none")
    assert {r.method for r in outcome.results["set0"]} == {"exact"}
    assert run_plan(load_plan(path), cluster="none").n_counted == 0


@pytest.mark.slow
def test_a_metric_that_fails_on_one_set_leaves_the_others_counted(tmp_path):
    folder = tmp_path / "night"
    path = write_plan(folder, sets=2)
    (folder / "my.py").write_text("def fails(outputs, gold):\n    raise ValueError('no score today')\n")
    path.write_text(
        path.read_text().replace('["mean"]', '["mean", "my:fails"]', 1).replace("20000", "20000\nsecond_run = false")
    )
    result = run_sigdask("run", path, "--json", "-", cwd=folder)
    assert result.returncode == 3
    assert result.stderr.count("no score today") == 2  # when it is left out, and at the end
    assert "Traceback" not in result.stderr
    rows = json.loads(result.stdout)["results"]
    assert {(r["test_set"], r["metric"], r["n_trials"]) for r in rows} == {(f"set{k}", "mean", 20_000) for k in (0, 1)}
    assert len(rows) == 30
    state = read_status(str(folder / "night.sqlite"))
    assert (state.state, [p.finished for p in state.run.progress]) == ("failed", [15, 15])
    assert "no score today" in state.run.message
    compared = run_sigdask("compare", "set0.csv", "--metric", "mean", "--metric", "my:fails", cwd=folder)
    assert (compared.returncode, compared.stdout) == (2, "")
    assert "no score today" in compared.stderr


FAILS_WHEN_ASKED = """
import os


def fails_when_asked(outputs, gold):
    if "FAILS_WHEN_ASKED" in os.environ:
        raise ValueError("the service is down")
    return float(sum(outputs))
"""


def test_a_metric_that_fails_later_is_left_out_and_comes_back(tmp_path, monkeypatch):
    folder = tmp_path / "night"
    path = write_plan(folder, sets=1, systems=3, trials=300, settings="second_run = false")
    path.write_text(path.read_text().replace('["mean"]', '["mean", "fails_when_asked:fails_when_asked"]'))
    (folder / "fails_when_asked.py").write_text(FAILS_WHEN_ASKED)
    plan = load_plan(path)
    first = run_plan(plan, cluster="none")
    assert (first.exit_status, len(first.results["set0"])) == (0, 6)
    monkeypatch.setenv("FAILS_WHEN_ASKED", "1")
    failed = run_plan(plan, cluster="none")  # all is counted, and nothing can be scored
    assert (failed.exit_status, failed.n_counted) == (3, 0)
    [problem] = map(str, failed.problems)
    assert "metric 'fails_when_asked:fails_when_asked' failed: ValueError: the service is down" in problem
    assert "fails_when_asked.py, line 7)" in problem
    assert list(failed.results["set0"]) == [r for r in first.results["set0"] if r.metric == "mean"]
    monkeypatch.delenv("FAILS_WHEN_ASKED")
    assert run_plan(plan, cluster="none").results == first.results


def test_a_plan_of_nothing_but_a_failing_metric_starts_no_cluster_and_ends_in_words(tmp_path, monkeypatch):
    folder = tmp_path / "night"
    path = write_plan(folder, sets=1)
    (folder / "never_scores.py").write_text("def never_scores(outputs, gold):\n    raise ValueError('never')\n")
    path.write_text(
        path.read_text().replace("mean", "never_scores:never_scores")
        + '[report]\njson = "a.json"\ntext = "a.txt"\nhtml = "a.html"\n'
    )
    monkeypatch.setattr(count.clusters, "connect", None)
    outcome = run_plan(load_plan(path))
    assert (outcome.exit_status, len(outcome.results["set0"])) == (3, 0)
    result = call_sigdask("run", path, cwd=folder)
    assert result.returncode == 3, result.stderr
    assert "failed: ValueError: never" in result.stderr
    assert json.loads((folder / "a.json").read_text())["results"] == []
    assert (folder / "a.html").exists()


class BreakingEngine:
    """A stand-in for the engine that loses the cluster now and then."""

    def __init__(self, real, times, error):
        self.real, self.times, self.error = real, times, error

    def __call__(self, cluster, jobs, tasks):
        for counted_now in self.real(cluster, jobs, tasks):
            yield counted_now
            if self.times:
                self.times -= 1
                raise self.error


def test_a_lost_cluster_is_looked_for_and_the_run_goes_on_from_the_store(plan, monkeypatch):
    expected = run_plan(replace(plan, store=str(plan.path.parent / "calm.sqlite")), cluster="none")
    monkeypatch.setattr(count, "run_tasks", BreakingEngine(count.run_tasks, 3, ClusterLostError("gone")))
    monkeypatch.setattr(count.StopSignal, "sleep", lambda *_: None)
    monkeypatch.setattr(count, "compute_task_seconds", lambda *_: 1e-9)
    notes = []
    outcome = run_plan(plan, cluster="none", note=notes.append)
    assert outcome.results == expected.results
    assert sum("gone; continuing from the store" in note for note in notes) == 3


@pytest.mark.parametrize("cluster", ["none", "threads"])
def test_an_unforeseen_error_of_counting_here_is_no_lost_cluster(plan, monkeypatch, cluster):
    monkeypatch.setattr(count, "run_tasks", BreakingEngine(count.run_tasks, 1, ZeroDivisionError("a defect")))
    notes = []
    with pytest.raises(ZeroDivisionError, match="a defect"):
        run_plan(plan, cluster=cluster, note=notes.append)
    assert not any("continuing" in note for note in notes)


def test_what_kills_every_worker_is_left_out_and_the_rest_is_counted(plan, monkeypatch):
    monkeypatch.setattr(count, "run_tasks", BreakingEngine(count.run_tasks, 1, TaskError("counting x failed", (0,))))
    outcome = run_plan(plan, cluster="none")
    assert outcome.exit_status == 3
    assert outcome.problems == ("counting x failed",)
    assert {r.n_trials for r in outcome.results["set1"]} == {20_000}


@pytest.mark.parametrize("cluster", ["bogus", "none.toml", "tcp:/nowhere"])
def test_a_cluster_that_is_none_is_refused_before_anything_is_read(plan, cluster):
    run_plan(plan, cluster="none")
    for number in (0, 1):
        (plan.path.parent / f"set{number}.csv").unlink()
    with pytest.raises(InputError, match=r"cluster .*(bogus|none\.toml|nowhere)"):
        run_plan(plan, cluster=cluster)
    assert len(list_runs(plan.store)) == 1


def test_a_second_driver_is_refused_with_status_2(plan):
    with open_store(plan.store, plan.name):
        with pytest.raises(HeldError, match="is being run by process"):
            run_plan(plan)
        result = call_sigdask("run", plan.path, cwd=plan.path.parent)
    assert result.returncode == 2
    assert f"process {os.getpid()}" in result.stderr


@pytest.mark.slow
def test_a_store_that_cannot_be_written_loses_nothing(tmp_path):
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root writes anything, and there is no setpriv to be someone else")
    folder = tmp_path / "night"
    path = write_plan(folder, trials=5000)
    run_plan(load_plan(path), cluster="none")
    before = read_tallies(folder / "night.sqlite")
    path.write_text(path.read_text().replace("5000", "9000").replace('store = "night.sqlite"', ""))
    (folder / "night.sqlite").chmod(0o444)
    folder.chmod(0o555)
    try:
        result = run_as_nobody(folder, tmp_path, "run", path, "--store", folder / "night.sqlite")
        assert result.returncode == 3
        assert "read-only" in result.stderr
        assert "Traceback" not in result.stderr
        assert run_as_nobody(folder, tmp_path, "status", folder / "night.sqlite").returncode == 0
        folder.chmod(0o700 if os.geteuid() == 0 else 0o000)
        result = run_as_nobody(tmp_path, tmp_path, "status", folder / "night.sqlite")
        assert (result.returncode, result.stdout) == (2, "")
        assert "night.sqlite: cannot be read (Permission denied)" in result.stderr
    finally:
        folder.chmod(0o755)
    assert read_tallies(folder / "night.sqlite") == before


def run_as_nobody(folder, tmp_path, *arguments):
    if os.geteuid():
        return run_sigdask(*arguments, cwd=folder)
    for parent in (tmp_path, *tmp_path.parents[:-2]):
        parent.chmod(parent.stat().st_mode | 0o755)
    import sys

    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-m", "sigdask"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": "/tmp/sigdask-numba-nobody", "HOME": "/tmp"}
    return subprocess.run(
        [*command, *map(str, arguments)], cwd="/", env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_full_disk_loses_nothing_committed_and_the_run_goes_on_when_there_is_room(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", disk], capture_output=True, check=False
    ).returncode:
        pytest.skip("no rights to mount a small file system")
    try:
        plan = load_plan(write_plan(tmp_path / "night", sets=1, systems=40, trials=300_000))
        plan = replace(plan, store=str(disk / "night.sqlite"))
        with pytest.raises(StoreError, match="the disk is full; free some space"):
            run_plan(plan, cluster="none")
        partial = read_tallies(disk / "night.sqlite")
        result = run_sigdask("run", plan.path, "--store", plan.store, cwd=tmp_path)
        assert (result.returncode, "Traceback" in result.stderr) == (3, False)
        assert "the disk is full" in result.stderr
        after = read_tallies(disk / "night.sqlite")
        assert [row[:2] for row in partial] <= [row[:2] for row in after]
        subprocess.run(["mount", "-o", "remount,size=50m", disk], check=True)
        assert run_plan(plan, cluster="none").exit_status == 0
        complete = read_tallies(disk / "night.sqlite")
    finally:
        subprocess.run(["umount", disk], check=False)
    calm = replace(plan, store=str(tmp_path / "calm.sqlite"))
    run_plan(calm, cluster="none")
    assert complete == read_tallies(tmp_path / "calm.sqlite")


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", pytest.param("deadline", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "cluster",
    ["none", pytest.param("threads", marks=pytest.mark.slow), pytest.param("local", marks=pytest.mark.cluster)],
)
def test_a_deadline_or_signal_ends_the_run_in_time_with_valid_bounds(tmp_path, how, cluster):
    folder = tmp_path / "night"
    path = write_slow_plan(folder, trials=1_000_000)
    deadline = {"local": 30}.get(cluster, 8) if how == "deadline" else 0  # processes take their time to start
    options = ["--deadline", f"{deadline}s"] if deadline else []
    process = run_sigdask(
        "run",
        path,
        "--cluster",
        cluster,
        *options,
        cwd=folder,
        start=True,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    wait_for_run(folder)
    if how != "deadline":
        wait_for_tallies(folder)
        process.send_signal(getattr(signal, how))
    start = time.monotonic()
    out, err = process.communicate(timeout=30 + deadline)
    assert time.monotonic() - start < 10 + deadline
    assert process.returncode == 3, err
    assert "stopp" in err
    assert "Traceback" not in err
    assert "== slow ==" in out
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert re.search(rf"^s{a} +s{b} +[\d.]", out, re.MULTILINE)
    assert read_tallies(folder / "night.sqlite")  # contiguous from trial 0
    assert read_status(str(folder / "night.sqlite")).state == "stopped"


def wait_for_run(folder, table="runs"):
    for _ in range(1200):  # imports take long on a busy machine
        if (folder / "night.sqlite").exists():
            with closing(sqlite3.connect(folder / "night.sqlite")) as connection, suppress(sqlite3.OperationalError):
                if connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]:
                    return
        time.sleep(0.1)
    pytest.fail("the run did not begin")


def wait_for_tallies(folder):
    wait_for_run(folder, "tallies")


@pytest.mark.slow
def test_status_is_had_from_outside_while_the_plan_runs(tmp_path):
    folder = tmp_path / "night"
    path = write_slow_plan(folder, trials=1_000_000)
    process = run_sigdask(
        "run", path, "--cluster", "none", cwd=folder, start=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    wait_for_run(folder)
    time.sleep(3)
    state = json.loads(call_sigdask("status", path, "--json", cwd=folder).stdout)
    text = call_sigdask("status", folder / "night.sqlite", cwd=folder).stdout
    process.kill()
    process.wait()
    assert state["state"] == "running"
    assert 0 < state["trials"] < state["wanted"]
    assert state["seconds_left"] > 0
    assert "trials a second" in text
    assert read_status(str(folder / "night.sqlite")).state == "killed"


def test_a_run_is_followed_until_it_ends(tmp_path):
    folder = tmp_path / "night"
    path = write_slow_plan(folder, trials=3_000)
    options = {"cwd": folder, "start": True, "stderr": subprocess.DEVNULL}
    process = run_sigdask("run", path, "--cluster", "none", stdout=subprocess.DEVNULL, **options)
    wait_for_run(folder)
    followed = call_sigdask("status", path, "--follow", cwd=folder)
    process.wait()
    assert followed.returncode == 0
    *_, last = [line for line in followed.stdout.splitlines() if line.startswith("plan ")]
    assert "finished" in last
    shown = run_in_terminal("status", str(path), "--follow", columns=100)
    assert shown.written.startswith("\x1b[H\x1b[2J")
    assert shown.screen[0] == last  # nothing of the control sequence is printed


def test_following_ends_as_the_run_ended(tmp_path):
    folder = tmp_path / "night"
    path = write_slow_plan(folder, trials=1_000_000)
    options = {"cwd": folder, "start": True, "stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    process = run_sigdask("run", path, "--cluster", "none", **options)
    wait_for_run(folder)
    process.kill()
    process.wait()
    followed = call_sigdask("status", path, "--follow", cwd=folder)
    assert followed.returncode == 3
    assert "run 1 of plan night was not finished: it is killed" in followed.stderr
    assert call_sigdask("status", path, cwd=folder).returncode == 0


def test_following_a_run_ends_with_1_if_its_gate_failed(tmp_path):
    path = write_plan(tmp_path / "night", sets=1)
    settings = '[pairs]\nbaseline = "s0"\n[gate]\nrules = [{ rule = "equivalent", margin = 1e-9 }]\n'
    path.write_text(f"{path.read_text()}{settings}")
    assert call_sigdask("run", path, "--cluster", "none", cwd=tmp_path).returncode == 1
    assert call_sigdask("status", path, "--follow", cwd=tmp_path).returncode == 1


def test_an_estimate_that_has_run_out_is_no_estimate(tmp_path):
    path = write_plan(tmp_path / "night", sets=1)
    run_plan(load_plan(path), cluster="none")
    status = read_status(str(tmp_path / "night" / "night.sqlite"))
    progress = tuple(replace(p, counted=0, kept=0, finished=0) for p in status.run.progress)
    for seconds, expected in ((9.0, 4.0), (4.0, None)):
        run = replace(status.run, progress=progress, seconds_left=seconds)
        assert replace(status, run=run, seconds_ago=5.0).seconds_left == expected


def test_a_report_is_written_as_its_ending_says(tmp_path):
    folder = tmp_path / "night"
    path = write_plan(folder, sets=1)
    run_plan(load_plan(path), cluster="none")
    for command in ("report", "run"):
        files = [f"{command}.{ending}" for ending in ("json", "csv", "tex", "txt", "html")]
        written = call_sigdask(command, path, *(word for file in files for word in ("-o", file)), cwd=folder)
        assert written.returncode == 0, written.stderr
        as_json, as_csv, as_latex, as_text, page = [(folder / file).read_text() for file in files]
        p_values = [result["p_value"] for result in json.loads(as_json)["results"]]
        assert len(p_values) == 15
        assert [float(row["p_value"]) for row in csv.DictReader(as_csv.splitlines())] == p_values
        assert "\\begin{tabular}" in as_latex
        assert "== set0 ==" in as_text
        assert "<html" in page
    refused = call_sigdask("report", path, "-o", "r.docx", cwd=folder)
    assert refused.returncode == 2
    assert "-o r.docx: expected a file that ends in .json, .csv, .parquet, .md" in refused.stderr


GATE_WITH_JSON = """pairs = { baseline = "s0" }
[gate]
json = "gate.json"
rules = [{ rule = "not-worse" }]
"""


def test_no_output_overwrites_what_a_plan_reads_or_its_gate_writes(tmp_path):
    folder = tmp_path / "night"
    path = write_plan(folder, sets=1, settings=GATE_WITH_JSON)
    scores = (folder / "set0.csv").read_bytes()
    for command, file, reason in (
        ("run", "set0.csv", 'is an input of test set "set0"'),
        ("report", "set0.csv", 'is an input of test set "set0"'),
        ("run", "gate.json", "is what gate.json of the plan writes"),
        ("run", "night-{date}.html", "{date} and {time} are for html in [report] of the plan"),
    ):
        refused = call_sigdask(command, path, "-o", file, cwd=folder)
        assert (refused.returncode, reason in refused.stderr) == (2, True), refused.stderr
    refused = call_sigdask("compare", "set0.csv", "-o", "set0.csv", cwd=folder)
    assert "set0.csv: is a file that is read" in refused.stderr
    assert (folder / "set0.csv").read_bytes() == scores
    assert [*folder.glob("*.html"), *folder.glob("gate.json")] == []


def test_history_lists_runs_and_a_report_says_what_changed(tmp_path):
    folder = tmp_path / "night"
    path = write_plan(folder, sets=1)
    run_plan(load_plan(path), cluster="none")
    write_scores(folder / "set0.csv", 6, seed=77)
    run_plan(load_plan(path), cluster="none")
    run_plan(load_plan(path), cluster="none")
    assert [(record.state, changed) for record, changed in list_runs(str(folder / "night.sqlite"))] == [
        ("finished", 0), ("finished", 15), ("finished", 15)
    ]  # fmt: skip
    text = call_sigdask("history", path, cwd=folder).stdout
    assert text.count("finished") == 1 + 3  # the line above the table, and its rows
    second = call_sigdask("report", path, "--run", "2", "--json", "-", cwd=folder)
    record = json.loads(second.stdout)
    assert len(record["results"]) == len(record["changes"]) == 15
    assert record["run"]["number"] == 2
    assert {"sigdask", "scheme", "seed", "alpha", "warnings", "notes"} <= set(record)
    assert "Nothing changed" in call_sigdask("report", path, cwd=folder).stdout
    assert "15 with other scores" in call_sigdask("report", path, "--run", "2", cwd=folder).stdout


def test_history_counts_what_changed_as_the_run_did_what_is_gone_included(tmp_path):
    folder = tmp_path / "night"
    path = write_plan(folder, sets=1, settings=NO_ADJUSTMENT)
    first = run_plan(load_plan(path), cluster="none")
    rows = [line.rpartition(",")[0] for line in (folder / "set0.csv").read_text().splitlines()]
    (folder / "set0.csv").write_text("\n".join(rows) + "\n")
    second = run_plan(load_plan(path), cluster="none")
    assert (first.n_changed, second.n_changed) == (15, 5)
    assert [changed for _, changed in list_runs(str(folder / "night.sqlite"))] == [5, 15]
    assert "5 gone" in call_sigdask("report", path, cwd=folder).stdout


def test_a_change_that_no_number_shows_is_told_as_one_of_details(tmp_path):
    folder = tmp_path / "night"
    path = write_plan(folder, sets=1, settings=NO_ADJUSTMENT)
    run_plan(load_plan(path), cluster="none")
    path.write_text(path.read_text().replace("seed", "second_run = false\nseed", 1))
    assert run_plan(load_plan(path), cluster="none").n_changed == 15
    assert "Changed since the previous run: 15 with other details." in call_sigdask("report", path, cwd=folder).stdout
    output = call_sigdask("report", path, "--all", cwd=folder).stdout
    assert output.count(": other details\n") == 15


def test_a_report_gives_the_warnings_of_reading_once(tmp_path):
    folder = tmp_path / "night"
    folder.mkdir()
    (folder / "gold.csv").write_text("id,label\n" + "".join(f"{k},{k % 2}\n" for k in range(30)))
    for name, order in (("a", range(30)), ("b", range(29, -1, -1))):
        (folder / f"{name}.csv").write_text("id,label\n" + "".join(f"{k},{k % 3 % 2}\n" for k in order))
    sets = "".join(
        f'[[test_set]]\nname = "{name}"\nsystems = ["a.csv", "b.csv"]\ngold = "gold.csv"\n' for name in ("one", "two")
    )
    (folder / "night.toml").write_text(f"trials = 100\nadjust = 'holm'\nfamily = 'plan'\n{sets}")
    text = call_sigdask("run", "night.toml", cwd=folder).stdout
    assert text.count("ids stand in another order") == 1
    assert "warning: " in text.partition("== one ==")[2].partition("== two ==")[0]


def test_run_writes_the_json_of_compare(tmp_path):
    folder = tmp_path / "night"
    path = write_plan(folder, sets=1, method="auto")
    result = call_sigdask("run", path, "--json", "-", cwd=folder)
    options = ("--name", "set0", "--seed", "3", "--trials", "20000", "--interval", "none")
    compared = call_sigdask("compare", folder / "set0.csv", *options, "--json", "-", cwd=folder)
    plan_json, compare_json = json.loads(result.stdout), json.loads(compared.stdout)
    assert plan_json["results"] == compare_json["results"]
    assert plan_json["families"] == {"set0": compare_json["family"]}
    assert plan_json["family"] == compare_json["family"]


def test_json_tells_the_family_of_each_test_set(tmp_path):
    test_sets = []
    for number, n_systems in enumerate((3, 4)):
        header = ",".join(f"s{k}" for k in range(n_systems))
        rows = [",".join(str((7 * i + 3 * k) % 5) for k in range(n_systems)) for i in range(30)]
        (tmp_path / f"{number}.csv").write_text(f"id,{header}\n" + "".join(f"{i},{r}\n" for i, r in enumerate(rows)))
        test_sets.append(f'[[test_set]]\nname = "set{number}"\nsystems = "{number}.csv"\n')
    (tmp_path / "night.toml").write_text("trials = 5000\n" + "".join(test_sets))
    document = json.loads(call_sigdask("run", "night.toml", "--json", "-", cwd=tmp_path).stdout)
    assert {name: family["n_comparisons"] for name, family in document["families"].items()} == {"set0": 3, "set1": 6}
    assert document["family"] is None


@pytest.mark.slow
def test_run_plan_outside_the_main_thread_stops_at_its_deadline(plan):
    outcomes = []
    slow = replace(
        plan, test_sets=tuple(replace(t, comparison={**t.comparison, "trials": 2**40}) for t in plan.test_sets)
    )
    worker = threading.Thread(target=lambda: outcomes.append(run_plan(slow, cluster="none", deadline=time.time() + 2)))
    worker.start()
    worker.join(120)  # of days
    assert outcomes[0].stopped == "the deadline"


def test_an_unknown_plan_or_run_in_a_store_is_an_error(plan):
    run_plan(plan, cluster="none")
    with pytest.raises(InputError, match="no run of a plan 'other'"):
        read_status(plan.store, "other")
    with pytest.raises(InputError, match="has no run 7"):
        build_report(plan.store, plan.name, 7)


@pytest.mark.slow
def test_a_plan_over_the_trec_matrices_counts_as_compare_does(tmp_path, shared_data):
    folder = shared_data / "matrix_trec_urbano"
    classical = sorted(path.stem for path in folder.glob("*.csv"))
    sets = [f'[[test_set]]\nname = "{name}"\nsystems = "{folder / name}.csv"\n' for name in classical]
    (tmp_path / "night.toml").write_text("trials = 4096\n" + "".join(sets))
    result = run_sigdask("run", "night.toml", "--json", "all.json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / "all.json").read_text())["results"]
    assert len(rows) == 34_254
    for name in classical:
        run_sigdask(
            "compare", folder / f"{name}.csv", "--name", name, "--trials", "4096", "--json", "one.json", cwd=tmp_path
        )
        assert json.loads((tmp_path / "one.json").read_text())["results"] == [r for r in rows if r["test_set"] == name]
    second = run_sigdask("run", "night.toml", cwd=tmp_path)
    assert "0 trials counted, 0 results new" in second.stderr


def test_results_that_hold_from_earlier_nights_name_the_family_of_this_night(tmp_path):
    """`compare`, which knows no nights, is the oracle of the signatures."""
    settings = 'trials = 500\nmethod = "randomization"\n'
    (tmp_path / "night.toml").write_text(f'{settings}[[test_set]]\nname = "t"\nsystems = ["t.csv"]\n')
    for shift in (2, 3):  # the second night changes system c alone
        rows = [f"{k % 5},{k % 5 + k % 2 - k % 3 / 2},{k % 5 - shift - k % 2}" for k in range(19)]
        (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *rows]) + "\n")
        call_sigdask("run", "night.toml", "--json", "night.json", cwd=tmp_path)
    options = ("--name", "t", "--trials", "500", "--method", "randomization", "--json", "compared.json")
    call_sigdask("compare", "t.csv", *options, cwd=tmp_path)
    texts = [(tmp_path / name).read_text() for name in ("night.json", "compared.json")]
    nightly, compared = ([r["test_signature"] for r in json.loads(text)["results"]] for text in texts)
    assert nightly == compared
    assert call_sigdask("reproduce", "night.json", "t.csv", "--name", "t", cwd=tmp_path).returncode == 0
