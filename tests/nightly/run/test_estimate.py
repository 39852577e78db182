"""`sigdask check`: what it reads, what it prints, and what it refuses after reading the data."""

import re

import pytest
from builders import build_rng
from click.testing import CliRunner
from conftest import YEH
from good_plan import build_good_plan, format_plan, write_plan_inputs

from sigdask.cli import commands
from sigdask.errors import InputError
from sigdask.execution import run as ahead
from sigdask.nightly.plan import load_plan
from sigdask.nightly.report.cost import render
from sigdask.nightly.report.text import format_history, format_status
from sigdask.nightly.run import count, run_plan, work
from sigdask.nightly.run.analyses import PlanRankings
from sigdask.nightly.run.estimate import estimate_costs
from sigdask.nightly.store import Store
from sigdask.nightly.store import status as views
from sigdask.nightly.store.status import list_runs, read_status
from sigdask.statistics.exact import counting as meet_in_the_middle


@pytest.fixture
def folder(tmp_path):
    return write_plan_inputs(tmp_path)


def run_check(folder, text):
    (folder / "plan.toml").write_text(text)
    return CliRunner().invoke(commands, ["check", str(folder / "plan.toml")], standalone_mode=False)


def test_the_good_plan_is_listed_with_its_comparisons_and_trials(folder):
    result = run_check(folder, format_plan({k: v for k, v in build_good_plan().items() if k != "gate"}))
    assert result.exception is None, result.exception
    rows = [re.split(r"\s{2,}", line.strip()) for line in result.output.splitlines()]
    assert ["one", "wide", "2", "4", "topic", "4", "1", "4,096", "< 1 s"] in rows
    assert ["two", "labels", "2", "4", "item", "4", "2", "exact", "< 1 s"] in rows
    assert re.search(
        "nightly: 4 test sets and 1 list of candidates, 8 comparisons, [0-9,]+ trials, "
        "at most [1-9] s on 1 thread of this machine",
        result.output,
    )


def test_more_trials_are_estimated_to_take_longer(folder):
    costs = []
    for trials in (40_000, 400_000_000):
        text = f'cluster = "none"\nmethod = "randomization"\ntrials = {trials}\n'
        text += f'[[test_set]]\nname = "yeh"\nsystems = "{YEH}"\n'
        (folder / "plan.toml").write_text(text)
        costs.append(estimate_costs(load_plan(folder / "plan.toml"))[0])
    assert [(cost.n_comparisons, cost.n_trials) for cost in costs] == [(3, 40_000), (3, 400_000_000)]
    assert 0 < costs[0].seconds < costs[1].seconds


DATA_ERRORS = [
    ('unit = "speaker"', "test_set[0]: ", "no column 'speaker'"),
    ('metrics = ["man", "f1"]', "test_set[0].metrics: ", "did you mean mean"),
    ('metrics = ["man", "f1"]', "test_set[0].metrics: ", "needs responses or labels"),
    ('by = "sort"', "test_set[0]: ", "no column 'sort'"),
    ('id = "nr"', "test_set[0]: ", "no column 'nr'"),
    ('format = "mine:read"', "test_set[0]: ", "returned str, expected sigdask.counts.Counts"),
    ('format = "mine:gone"', "test_set[0]: ", "has no format or function 'gone'"),
    ('metrics = ["mine:broken"]', "test_set[0].metrics: ", "is int, expected a metric or a function"),
]


@pytest.mark.parametrize(("line", "key", "text"), DATA_ERRORS, ids=[text for _, _, text in DATA_ERRORS])
def test_what_the_data_cannot_give_is_named_with_its_key(folder, line, key, text):
    (folder / "mine.py").write_text("broken = 3\ndef read(sources, gold, options):\n    return 'x'\n")
    result = run_check(
        folder,
        f'[[test_set]]\nname = "one"\nsystems = "runs/{{system}}.csv"\nignore = ["remark", "kind", "topic"]\n{line}\n',
    )
    assert isinstance(result.exception, InputError), result.exception
    assert key in str(result.exception)
    assert text in str(result.exception)
    assert "line " in str(result.exception)


def test_errors_of_all_test_sets_are_listed_together(folder):
    template = '[[test_set]]\nname = "{}"\nsystems = "{}"\n'
    result = run_check(
        folder,
        template.format("one", "runs/base.csv")
        + template.format("two", "labels/{system}.csv")
        + template.format("three", "long.csv"),
    )
    message = str(result.exception)
    assert message.count("\n") >= 2
    assert "test_set[0]" in message
    assert "test_set[1]" in message
    assert "test_set[2]" not in message


def test_a_baseline_and_direction_that_the_gate_could_not_use_are_refused(folder):
    text = 'metrics = ["mean"]\n{}\n[[test_set]]\nname = "one"\nsystems = "runs/{{system}}.csv"\nignore = ["remark", "kind", "topic"]\n'
    gate = '[gate]\nrules = [{{ rule = "not-worse", baseline = "{}" }}]\n'
    greater = run_check(
        folder, text.format('alternative = "greater"\npairs = { baseline = "base" }') + gate.format("base")
    )
    assert 'gate.rules[0]: alternative = "greater" cannot show that new is worse than base' in str(greater.exception)
    table = text.replace("runs/{{system}}.csv", "wide.csv").format("")
    (folder / "wide.csv").write_text("item,a,b\nx,1,2\ny,2,1\n")
    result = run_check(folder, table.replace('ignore = ["remark", "kind", "topic"]\n', "") + gate.format("old"))
    assert "gate.rules[0].baseline: no system 'old' on test set 'one'; systems: a, b" in str(result.exception)


def test_a_metric_of_the_gate_that_the_data_do_not_suggest_is_refused(folder):
    (folder / "wide.csv").write_text("item,a,b\nx,1,2\ny,2,1\n")
    plan = '[[test_set]]\nname = "one"\nsystems = "wide.csv"\n[gate]\nrules = [{ rule = "not-worse", baseline = "a", %s }]\n'
    result = run_check(folder, plan % 'metrics = ["f1"]')
    assert 'gate.rules[0].metrics: metric "f1" is not computed there; metrics: mean' in str(result.exception)
    assert run_check(folder, plan % 'metrics = ["Mean"]').exception is None


def test_a_reader_and_a_metric_beside_the_plan_are_found(folder):
    (folder / "own_reader.py").write_text(
        "from sigdask.counts import Counts\n"
        "def read(sources, gold, options):\n"
        "    return Counts.from_scores({s.name: [1.0, 2.0, 3.0 + len(s.name)] for s in sources}, name=options.name)\n"
        "def best(outputs, gold):\n    return max(outputs)\n"
    )
    result = run_check(
        folder,
        '[[test_set]]\nname = "one"\nsystems = "runs/{system}.csv"\nformat = "own_reader:read"\nmetrics = ["own_reader:best"]\n',
    )
    assert result.exception is None, result.exception
    assert "own_reader:read" in result.output


@pytest.mark.parametrize(
    ("cluster", "where"),
    [
        ('class = "local"\nworkers = 2', "on 2 threads"),
        ('class = "slurm"\nmaximum = 7\n[cluster.options]\ncores = 1\nmemory = "1GB"', "on 7 threads"),
        ('class = "ssh"', "the plan's cluster was not measured"),
    ],
)
def test_a_plan_with_a_described_cluster_is_checked(folder, cluster, where):
    (folder / "wide.csv").write_text("item,a,b\nx,1,2\ny,2,1\n")
    result = run_check(folder, f'[[test_set]]\nname = "one"\nsystems = "wide.csv"\n[cluster]\n{cluster}\n')
    assert result.exception is None, result.exception
    assert where in result.output


def test_the_schema_is_printed():
    result = CliRunner().invoke(commands, ["check", "--schema"], standalone_mode=False)
    assert result.output.startswith("{")
    assert CliRunner().invoke(commands, ["check"], standalone_mode=False).exception is not None


class ProgressRecorder:
    """Record the predictions and the progress of a run."""

    def __init__(self):
        self.predictions, self.reports = [], []

    def __call__(self, done, total):
        raise AssertionError((done, total))  # where share and time are known, they are told

    def show_estimate(self, ahead):
        self.predictions.append(ahead)

    def show_trials(self, done, total, share, left):
        self.reports.append((done, total, share, left))


def write_varied_plan(folder):
    """Write a plan of all kinds of trials: pairs, families, intervals, exact p, ranks, labels."""
    rng = build_rng(3)

    def write_table(name, columns):
        rows = [
            ",".join(["id", *columns]),
            *(",".join(map(str, (k, *row))) for k, row in enumerate(zip(*columns.values(), strict=True))),
        ]
        (folder / name).write_text("\n".join(rows))

    write_table("real.csv", {name: [repr(float(x)) for x in rng.normal(0, 1, 26)] for name in "abc"})
    write_table("few.csv", {name: rng.integers(0, 9, 12).tolist() for name in "ab"})
    labels = {name: ["xyz"[k] for k in rng.integers(0, 3, 60)] for name in ("gold", "one", "two")}
    write_table("labels.csv", labels)
    measures = {
        "gold": rng.integers(0, 2, 40).tolist(),
        **{m: [repr(float(x)) for x in rng.normal(0, 1, 40)] for m in "mnk"},
    }
    write_table("candidates.csv", measures)
    (folder / "plan.toml").write_text(
        'trials = 20000\ncluster = "none"\nstore = "night.sqlite"\nmethod = "both"\n'
        '[[test_set]]\nname = "real"\nsystems = "real.csv"\ninterval = "bootstrap"\nresamples = 3000\n'
        '[[test_set]]\nname = "few"\nsystems = "few.csv"\n'
        '[[independence]]\nname = "labels"\nlabels = "labels.csv"\nmethod = "randomization"\n'
        '[[rankings]]\nname = "ranks"\ncandidates = "candidates.csv"\nn = [10]\ntrials = 5000\n'
    )
    return load_plan(folder / "plan.toml")


def test_check_run_status_and_history_name_the_same_number_of_trials(tmp_path, monkeypatch):
    monkeypatch.setattr(meet_in_the_middle, "MAX_HALF", 11)  # so that exact values of 26 units are counted in 16 parts
    plan = write_varied_plan(tmp_path)
    costs = estimate_costs(plan)
    total = sum(cost.total for cost in costs)
    # both runs of 3 pairs and their family; bootstrap; two labellings and 3 rankings, one each
    assert total > 7 * 20_000 + 3000
    n_work = total + 3 * 16 + 2**12  # exact p: 3 in 16 parts, and one from all arrangements of 12 units
    assert f"{total:,} trials, " in render("night", costs, 1)
    recorder = ProgressRecorder()
    outcome = run_plan(plan, progress=recorder)
    assert (outcome.exit_status, outcome.n_counted, outcome.n_exact) == (0, total, 4)
    assert [prediction.total for prediction in recorder.predictions] == [n_work]
    assert {n_total for _, n_total, _, _ in recorder.reports} == {n_work}
    assert recorder.reports[-1][0] == n_work
    state = read_status(plan.store)
    assert (state.n_counted, state.n_wanted) == (total, total)
    assert [p.wanted for p in state.run.progress] == [cost.total for cost in costs]
    assert f"{total:,} of {total:,} trials" in format_status(state, 0.0)
    assert f" {total:,} " in format_history(list_runs(plan.store))


def test_check_and_run_predict_the_time_of_the_same_work_by_one_function(tmp_path, monkeypatch):
    """With a fixed time per trial, the run predicts just the time that check predicts."""
    plan = write_varied_plan(tmp_path)
    monkeypatch.setattr(count, "measure_trial_seconds", lambda *_, **_options: 2.0**-10)
    monkeypatch.setattr(ahead, "retime_trials", lambda _, costs: costs)
    recorder = ProgressRecorder()
    run_plan(plan, progress=recorder)
    [prediction] = recorder.predictions
    samples = sum(
        job.n_trials for ranking in map(PlanRankings.from_entry, plan.rankings) for job in ranking.lists.sample_jobs
    )  # drawn apart
    assert sum(cost.seconds for cost in estimate_costs(plan)) == pytest.approx(prediction.seconds + samples * 2.0**-10)


def test_status_tells_the_time_that_the_driver_predicts(tmp_path, monkeypatch):
    plan = write_varied_plan(tmp_path)
    states = []
    keep = Store.commit

    def commit(self, *arguments):
        keep(self, *arguments)
        states.append((arguments[2] if len(arguments) > 2 else None, read_status(plan.store)))

    monkeypatch.setattr(Store, "commit", commit)
    monkeypatch.setattr(views.time, "time", lambda: 0.0)  # so that nothing has passed since the run went on
    run_plan(plan)
    unfinished = [(seconds_left, state) for seconds_left, state in states if state.n_counted < state.n_wanted]
    assert unfinished
    assert all(state.seconds_left == seconds_left > 0 for seconds_left, state in unfinished)


def test_a_family_over_the_whole_plan_is_in_the_number_of_trials_once(tmp_path):
    write_varied_plan(tmp_path)
    (tmp_path / "plan.toml").write_text(
        'trials = 5000\ncluster = "none"\nstore = "night.sqlite"\nfamily = "plan"\nmethod = "randomization"\n'
        '[[test_set]]\nname = "one"\nsystems = "real.csv"\n[[test_set]]\nname = "two"\nsystems = "real.csv"\n'
    )
    plan = load_plan(tmp_path / "plan.toml")
    recorder = ProgressRecorder()
    outcome = run_plan(plan, progress=recorder)
    state = read_status(plan.store)
    assert state.n_wanted == state.n_counted == outcome.n_counted == recorder.reports[-1][1] == 5000 * (2 * 2 * 3 + 1)


def test_many_test_sets_are_checked_in_few_lines_and_none_is_left_unchecked(tmp_path, monkeypatch):
    monkeypatch.setattr(work, "PROBED_SETS", 2)
    monkeypatch.setattr(work, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(work, "count_cores", lambda: 2)
    rng, text = build_rng(4), 'trials = 500\n[gate]\nrules = [{ rule = "not-worse", baseline = "a" }]\n'
    for k in range(60):
        kind = "kind" if k % 2 else f"kind-{k}"
        rows = [f"{n},{['web', 'news'][n % 2]},{'{},{}'.format(*rng.integers(0, 2, 2))}" for n in range(8)]
        (tmp_path / f"{k}.csv").write_text("\n".join([f"item,{kind},a,b", *rows]))
        text += f'[[test_set]]\nname = "s{k}"\nsystems = "{k}.csv"\n'
    result = run_check(tmp_path, text)
    assert result.exception is None, result.exception
    lines = result.output.splitlines()
    assert "20 of 60 test sets, the slowest ones (--all lists all)" in lines
    assert len(lines) < 60
    [common] = [line for line in lines if "column 'kind'" in line]
    assert common.startswith("note: s1, s3, s5 and 27 more: ")
    assert sum(line.startswith("note: ") for line in lines) == 21
    assert "note: and 11 more (--all lists all)" in lines
    assert any("can hardly fail on s0, s1, s2 and 57 more: with 8 units" in line for line in lines)
    everything = CliRunner().invoke(commands, ["check", "--all", str(tmp_path / "plan.toml")]).output.splitlines()
    assert sum(line.startswith("s") for line in everything) == 60
    assert sum(line.startswith("note: ") for line in everything) == 31


def test_errors_in_some_of_many_test_sets_are_all_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(work, "PROBED_SETS", 2)
    monkeypatch.setattr(work, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(work, "count_cores", lambda: 2)
    bad = {1: "item,a,b\n1,0\n", 30: "item,a,b\n1,0,1\n1,1\n", 59: "item,a\n1,0\n2,1\n"}
    text = "trials = 500\n"
    for k in range(60):
        rows = "".join(f"{n},{n % 2},{n % 3 % 2}\n" for n in range(8 + k % 5))
        (tmp_path / f"{k}.csv").write_text(bad.get(k, f"item,a,b\n{rows}"))
        metrics = 'metrics = ["f1"]\n' if k == 40 else ""
        text += f'[[test_set]]\nname = "s{k}"\nsystems = "{k}.csv"\n{metrics}'
    message = str(run_check(tmp_path, text).exception)
    assert "4 errors" in message
    assert all(f"test_set[{k}]" in message for k in (*bad, 40))
