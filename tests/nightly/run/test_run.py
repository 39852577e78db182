"""A plan is counted once, whatever happens, with the counts of `sigdask compare`."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import replace

import numpy as np
import pytest
from command import call_sigdask
from nights import read_tallies, run_sigdask, wait_for_rows, write_plan, write_scores, write_slow_plan
from terminals import run_in_terminal

from sigdask.api import compare_all
from sigdask.errors import ClusterLostError, InputError, TaskError
from sigdask.formats import Options, read
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import count, run_plan
from sigdask.nightly.store.status import build_report, list_runs
from sigdask.results.record import Note


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
        options = {"method": test_set.comparison["method"], "interval": "none"}  # plans have no intervals by default
        compared = compare_all(counts, seed=3, trials=20_000, cluster="none", **options)
        assert list(outcome.results[test_set.name]) == list(compared)
    second = run_plan(plan, cluster="none")
    assert (second.n_counted, second.n_changed) == (0, 0)
    assert second.results == outcome.results


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
    assert all([r.tests for r in stored[name]] == [r.tests for r in found] for name, found in outcome.results.items())


@pytest.mark.parametrize("adjust", ["max-t", "none"])
@pytest.mark.slow
def test_lowered_trials_count_as_if_no_more_had_been_asked_for(tmp_path, adjust):
    def count_trials(folder, trials):
        text = (path := write_plan(folder, sets=1, systems=3, trials=trials)).read_text()
        path.write_text(f'adjust = "{adjust}"\n' + text)
        outcome = run_plan(load_plan(path), cluster="none")
        assert outcome.exit_status == 0
        return [r.replace(notes=()) for r in outcome.results["set0"]], outcome.n_counted

    expected = count_trials(tmp_path / "a", 20_000)
    rows = read_tallies(tmp_path / "a" / "night.sqlite")
    for fewer in (16_384, 10_000, 4096, 1000):
        cut, n_counted = count_trials(tmp_path / "a", fewer)
        assert cut == count_trials(tmp_path / str(fewer), fewer)[0]
        assert (n_counted == 0) == (fewer == 16_384)  # at the end of a round of both runs nothing is counted again
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
    assert read_tallies(tmp_path / "a" / "night.sqlite") == read_tallies(tmp_path / "b" / "night.sqlite")
    assert topped.report.run.details["second_looks"] == {"set0": 15}
    assert at_once.report.run.details["second_looks"] == {}
    note = Note("second-look", "second look: p was computed before, with 65,536 trials", {"n_trials": 65_536})
    assert note in topped.results["set0"][0].notes
    assert "second look: 15 comparisons" in call_sigdask("report", "night.toml", cwd=tmp_path / "a").stdout


RESAMPLES = 2**14
"""Number of resamples of the equal-score test of a family."""


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
    assert first.n_counted == 190 * (5000 + 5000 // 4) + RESAMPLES
    np.savetxt(folder / "system7.txt", rng.random(30), fmt="%.7f")  # more digits: another lattice for all
    second = run_plan(load_plan(folder / "night.toml"), cluster="none")
    assert second.n_counted == 19 * (5000 + 5000 // 4) + RESAMPLES
    assert second.n_changed == 19
    changes = build_report(str(folder / "night.sqlite")).changes
    assert {"system7" in {now.a, now.b} for _, now in changes} == {True}
    assert {kinds[0] for kinds in changes.kinds} == {"scores"}


def test_the_same_comparison_under_two_names_is_counted_once(tmp_path):
    folder = tmp_path / "night"
    path = write_plan(folder, sets=1, systems=3, settings=NO_ADJUSTMENT)
    rows = [line.split(",") for line in (folder / "set0.csv").read_text().splitlines()]
    twin = [",".join([*row, "twin" if k == 0 else row[2]]) for k, row in enumerate(rows)]
    (folder / "set0.csv").write_text("\n".join(twin) + "\n")
    outcome = run_plan(load_plan(path), cluster="none")
    assert outcome.n_counted == (3 + 1) * (20_000 + 20_000 // 4) + RESAMPLES  # three distinct pairs, and the twins
    by_pair = {(r.a, r.b): r.n_extreme for r in outcome.results["set0"]}
    data = read(folder / "set0.csv", options=Options(name="set0"))
    compared = compare_all(data, metrics=["mean"], seed=3, trials=20_000, method="randomization")
    assert by_pair == {(r.a, r.b): r.n_extreme for r in compared}


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


@pytest.mark.slow
def test_a_lost_cluster_is_looked_for_and_the_run_goes_on_from_the_store(plan, monkeypatch):
    expected = run_plan(replace(plan, store=str(plan.path.parent / "calm.sqlite")), cluster="none")
    monkeypatch.setattr(count, "run_tasks", BreakingEngine(count.run_tasks, 3, ClusterLostError("gone")))
    monkeypatch.setattr(count, "compute_task_seconds", lambda *_: 1e-9)
    notes = []
    outcome = run_plan(plan, cluster="none", note=notes.append)
    assert outcome.results == expected.results
    assert sum("gone; continuing from the store" in note for note in notes) == 3


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


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "deadline"])
@pytest.mark.parametrize("cluster", ["none", "threads", pytest.param("local", marks=pytest.mark.cluster)])
@pytest.mark.slow
def test_a_deadline_or_signal_ends_the_run_in_time_with_valid_bounds(tmp_path, how, cluster):
    folder = tmp_path / "night"
    path = write_slow_plan(folder, trials=1_000_000)
    deadline = {"local": 30}.get(cluster, 8) if how == "deadline" else 0  # processes take their time to start
    options = ["--deadline", f"{deadline}s"] if deadline else []
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = run_sigdask("run", path, "--cluster", cluster, *options, cwd=folder, start=True, **pipes)
    wait_for_rows(folder / "night.sqlite", process, "runs" if how == "deadline" else "tallies")
    if how != "deadline":
        process.send_signal(getattr(signal, how))
    start = time.monotonic()
    out, err = process.communicate(timeout=30 + deadline)
    assert time.monotonic() - start < 10 + deadline
    assert process.returncode == 3, err
    assert "stopp" in err
    assert "Traceback" not in err
    assert "== slow ==" in out
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert re.search(rf"^(s{a} +s{b}|s{b} +s{a}) +[\d.]", out, re.MULTILINE)
    assert read_tallies(folder / "night.sqlite")  # contiguous from trial 0
    assert list_runs(str(folder / "night.sqlite"))[0].state == "stopped"


@pytest.mark.slow
def test_a_stop_while_modules_are_loaded_leaves_none_half_done(tmp_path):
    """Short deadlines fell into the import of numba, with which the gate then ended in an internal error."""
    folder = tmp_path / "night"
    gate = '[gate]\nrules = [{ rule = "not-worse", baseline = "s0" }]\n'
    path = write_slow_plan(folder, trials=1_000_000)
    path.write_text(path.read_text() + gate)
    for seconds in (6, 1, 1, 1, 2, 1):
        result = run_sigdask("run", path, "--deadline", f"{seconds}s", cwd=folder)
        assert result.returncode == 3, result.stderr


@pytest.mark.slow
def test_ctrl_c_twice_ends_the_run_at_once_and_no_count_is_lost(tmp_path):
    folder = tmp_path / "night"
    path = write_slow_plan(folder, trials=1_000_000)
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = run_sigdask("run", path, "--cluster", "none", cwd=folder, start=True, **pipes)
    wait_for_rows(folder / "night.sqlite", process)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode != 0
    assert "Traceback" not in err
    stored = read_tallies(folder / "night.sqlite")  # contiguous from trial 0
    assert stored
    path.write_text(path.read_text().replace("1000000", "100"))
    assert run_plan(load_plan(path), cluster="none").exit_status == 0
    assert {row[0] for row in stored} <= {row[0] for row in read_tallies(folder / "night.sqlite")}


@pytest.mark.slow
def test_a_run_is_followed_until_it_ends(tmp_path):
    folder = tmp_path / "night"
    path = write_slow_plan(folder, trials=3_000)
    options = {"cwd": folder, "start": True, "stderr": subprocess.DEVNULL}
    process = run_sigdask("run", path, "--cluster", "none", stdout=subprocess.DEVNULL, **options)
    wait_for_rows(folder / "night.sqlite", process, "runs")
    followed = call_sigdask("status", path, "--follow", cwd=folder)
    process.wait()
    assert followed.returncode == 0
    *_, last = [line for line in followed.stdout.splitlines() if line.startswith("plan ")]
    assert "finished" in last
    shown = run_in_terminal("status", str(path), "--follow", columns=100)
    assert "\x1b[2J" in shown.written.partition("plan ")[0]  # the screen is cleared first
    assert shown.screen[0] == last  # nothing of the control sequence is printed


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
    ):
        refused = call_sigdask(command, path, "-o", file, cwd=folder)
        assert (refused.returncode, reason in refused.stderr) == (2, True), refused.stderr
    for words in (["compare", "set0.csv"], ["rankings", "set0.csv"], ["compare", "no.csv", "--items", "set0.csv"]):
        refused = call_sigdask(*words, "-o", "set0.csv", cwd=folder)
        assert "set0.csv: is named for something else" in refused.stderr
    assert (folder / "set0.csv").read_bytes() == scores
    assert [*folder.glob("*.html"), *folder.glob("gate.json")] == []


def test_history_lists_runs_and_a_report_says_what_changed(tmp_path):
    folder = tmp_path / "night"
    path = write_plan(folder, sets=1)
    run_plan(load_plan(path), cluster="none")
    write_scores(folder / "set0.csv", 6, seed=77)
    run_plan(load_plan(path), cluster="none")
    run_plan(load_plan(path), cluster="none")
    assert [(record.state, record.n_changed) for record in list_runs(str(folder / "night.sqlite"))] == [
        ("finished", 0), ("finished", 15), ("finished", 15)
    ]  # fmt: skip
    text = call_sigdask("history", path, cwd=folder).stdout
    assert text.count("finished") == 3
    second = call_sigdask("report", path, "--run", "2", "--json", "-", cwd=folder)
    record = json.loads(second.stdout)
    assert len(record["results"]) == len(record["changes"]) == 15
    assert record["run"]["number"] == 2
    assert {"sigdask", "scheme", "seed", "alpha", "warnings", "notes"} <= set(record)
    assert "Nothing changed" in call_sigdask("report", path, cwd=folder).stdout
    assert "15 with other scores" in call_sigdask("report", path, "--run", "2", cwd=folder).stdout


@pytest.mark.slow
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
