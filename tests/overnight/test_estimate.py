"""`sigdask check`: what it reads, what it says, what it refuses once the data are read."""

import re

import pytest
from click.testing import CliRunner
from conftest import YEH
from panel_of import rng_of
from plan_of import good, lay_out, written

from sigdask.cli import commands
from sigdask.errors import InputError
from sigdask.execution import prefetch as ahead
from sigdask.nightly.plan import load_plan
from sigdask.nightly.report.cost import render
from sigdask.nightly.report.text import format_history, format_status
from sigdask.nightly.run import count, run_plan
from sigdask.nightly.run import estimate as estimating
from sigdask.nightly.run.candidate_rankings import read_rankings
from sigdask.nightly.run.estimate import estimate_costs
from sigdask.nightly.store import Store
from sigdask.nightly.store import status as views
from sigdask.nightly.store.status import list_runs, read_status
from sigdask.statistics.exact.sums import meet_in_the_middle


@pytest.fixture
def folder(tmp_path):
    return lay_out(tmp_path)


def check(folder, text):
    (folder / "plan.toml").write_text(text)
    return CliRunner().invoke(commands, ["check", str(folder / "plan.toml")], standalone_mode=False)


def test_the_good_plan_is_listed_with_its_comparisons_and_trials(folder):
    done = check(folder, written({k: v for k, v in good().items() if k != "gate"}))
    assert done.exception is None, done.exception
    rows = [re.split(r"\s{2,}", line.strip()) for line in done.output.splitlines()]
    assert ["one", "wide", "2", "4", "topic", "4", "1", "4,096", "< 1 s"] in rows
    assert ["two", "labels", "2", "4", "item", "4", "2", "exact", "< 1 s"] in rows
    assert re.search(
        "nightly: 4 test sets and 1 list of candidates, 8 comparisons, [0-9,]+ trials, "
        "at most [1-9] s on 1 thread of this machine",
        done.output,
    )


def test_the_time_is_that_of_the_run(folder):
    import time

    from sigdask.api import compare_all

    text = (
        f'cluster = "none"\nmethod = "randomization"\ntrials = 4000000\n[[test_set]]\nname = "yeh"\nsystems = "{YEH}"\n'
    )
    (folder / "plan.toml").write_text(text)
    plan = load_plan(folder / "plan.toml")
    cost = min(
        (estimate_costs(plan)[0] for _ in range(3)), key=lambda own: own.seconds
    )  # of a machine that does other things too
    counts = plan.test_sets[0].read()
    start = time.process_time()
    compare_all(counts, metrics=counts.suggested, trials=4_000_000, method="randomization", cluster="none")
    taken = time.process_time() - start
    assert cost.seconds / 4 < taken < cost.seconds * 4 + 0.5
    assert cost.n_comparisons == 3


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
    done = check(
        folder,
        f'[[test_set]]\nname = "one"\nsystems = "runs/{{system}}.csv"\nignore = ["remark", "kind", "topic"]\n{line}\n',
    )
    assert isinstance(done.exception, InputError), done.exception
    assert key in str(done.exception)
    assert text in str(done.exception)
    assert "line " in str(done.exception)


def test_errors_of_all_test_sets_are_listed_together(folder):
    one = '[[test_set]]\nname = "{}"\nsystems = "{}"\n'
    done = check(
        folder,
        one.format("one", "runs/base.csv") + one.format("two", "labels/{system}.csv") + one.format("three", "long.csv"),
    )
    message = str(done.exception)
    assert message.count("\n") >= 2
    assert "test_set[0]" in message
    assert "test_set[1]" in message
    assert "test_set[2]" not in message


def test_a_baseline_and_direction_that_the_gate_could_not_use_are_refused(folder):
    text = 'metrics = ["mean"]\n{}\n[[test_set]]\nname = "one"\nsystems = "runs/{{system}}.csv"\nignore = ["remark", "kind", "topic"]\n'
    gate = '[gate]\nrules = [{{ rule = "not-worse", baseline = "{}" }}]\n'
    greater = check(folder, text.format('alternative = "greater"\npairs = { baseline = "base" }') + gate.format("base"))
    assert 'gate.rules[0]: alternative = "greater" cannot show that new is worse than base' in str(greater.exception)
    table = text.replace("runs/{{system}}.csv", "wide.csv").format("")
    (folder / "wide.csv").write_text("item,a,b\nx,1,2\ny,2,1\n")
    gone = check(folder, table.replace('ignore = ["remark", "kind", "topic"]\n', "") + gate.format("old"))
    assert "gate.rules[0].baseline: no system 'old' on test set 'one'; systems: a, b" in str(gone.exception)


def test_a_reader_and_a_metric_beside_the_plan_are_found(folder):
    (folder / "own_reader.py").write_text(
        "from sigdask.counts import Counts\n"
        "def read(sources, gold, options):\n"
        "    return Counts.from_scores({s.name: [1.0, 2.0, 3.0 + len(s.name)] for s in sources}, name=options.name)\n"
        "def best(outputs, gold):\n    return max(outputs)\n"
    )
    done = check(
        folder,
        '[[test_set]]\nname = "one"\nsystems = "runs/{system}.csv"\nformat = "own_reader:read"\nmetrics = ["own_reader:best"]\n',
    )
    assert done.exception is None, done.exception
    assert "own_reader:read" in done.output


@pytest.mark.parametrize(
    ("cluster", "where"),
    [
        ('class = "local"\nworkers = 2', "on 2 threads"),
        ('class = "slurm"\nmaximum = 7\n[cluster.options]\ncores = 1\nmemory = "1GB"', "on 7 threads"),
        ('class = "ssh"', "the plan's cluster is elsewhere"),
    ],
)
def test_a_plan_with_a_described_cluster_is_checked(folder, cluster, where):
    (folder / "wide.csv").write_text("item,a,b\nx,1,2\ny,2,1\n")
    done = check(folder, f'[[test_set]]\nname = "one"\nsystems = "wide.csv"\n[cluster]\n{cluster}\n')
    assert done.exception is None, done.exception
    assert where in done.output


def test_the_schema_is_printed():
    done = CliRunner().invoke(commands, ["check", "--schema"], standalone_mode=False)
    assert done.output.startswith("{")
    assert CliRunner().invoke(commands, ["check"], standalone_mode=False).exception is not None


class Told:
    """Keeps what a run says ahead and of its progress."""

    def __init__(self):
        self.ahead, self.told = [], []

    def __call__(self, done, total):
        raise AssertionError((done, total))  # where share and time are known, they are told

    def expecting(self, ahead):
        self.ahead.append(ahead)

    def counting(self, done, total, share, left):
        self.told.append((done, total, share, left))


def several_kinds(folder):
    """A plan that counts all that there is: pairs, families, intervals, arrangements, parts of exact p, ranks, labels."""
    rng = rng_of(3)

    def table(name, columns):
        rows = [
            ",".join(["id", *columns]),
            *(",".join(map(str, (k, *row))) for k, row in enumerate(zip(*columns.values(), strict=True))),
        ]
        (folder / name).write_text("\n".join(rows))

    table("real.csv", {name: [repr(float(x)) for x in rng.normal(0, 1, 26)] for name in "abc"})
    table("few.csv", {name: rng.integers(0, 9, 12).tolist() for name in "ab"})
    labels = {name: ["xyz"[k] for k in rng.integers(0, 3, 60)] for name in ("gold", "one", "two")}
    table("labels.csv", labels)
    measures = {
        "gold": rng.integers(0, 2, 40).tolist(),
        **{m: [repr(float(x)) for x in rng.normal(0, 1, 40)] for m in "mnk"},
    }
    table("candidates.csv", measures)
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
    plan = several_kinds(tmp_path)
    costs = estimate_costs(plan)
    total = sum(cost.total for cost in costs)
    # both runs of 3 pairs and their family; bootstrap; 3 exact p in 16 parts; two labellings and 3 rankings, one each
    assert total > 7 * 20_000 + 3000
    assert f"{total:,} trials, about" in render("night", costs, 1)
    told = Told()
    outcome = run_plan(plan, progress=told)
    assert (outcome.exit_status, outcome.n_counted) == (0, total)
    assert [ahead.total for ahead in told.ahead] == [total]
    assert {all_ for _, all_, _, _ in told.told} == {total}
    assert told.told[-1][0] == total
    found = read_status(plan.store)
    assert (found.n_counted, found.n_wanted) == (total, total)
    assert [p.wanted for p in found.run.progress] == [cost.total for cost in costs]
    assert f"{total:,} of {total:,} trials" in format_status(found, 0.0)
    assert f" {total:,} " in format_history(list_runs(plan.store))


def test_check_and_run_predict_the_time_of_the_same_work_by_one_function(tmp_path, monkeypatch):
    """Where every trial is said to take as long, the run is ahead of just what check has told."""
    plan = several_kinds(tmp_path)
    for where in (count, estimating):
        monkeypatch.setattr(where, "measure_trial_seconds", lambda _: 2.0**-10)
    monkeypatch.setattr(ahead, "retime_trials", lambda _, costs: costs)
    told = Told()
    run_plan(plan, progress=told)
    [seen] = told.ahead
    samples = sum(job.n_trials for one in read_rankings(plan) for job in one.lists.sample_jobs)  # drawn apart
    assert sum(cost.seconds for cost in estimate_costs(plan)) == pytest.approx(seen.seconds + samples * 2.0**-10)


def test_status_tells_the_time_that_the_driver_predicts(tmp_path, monkeypatch):
    plan = several_kinds(tmp_path)
    kept = []
    keep = Store.commit

    def commit(self, *asked):
        keep(self, *asked)
        kept.append((asked[2] if len(asked) > 2 else None, read_status(plan.store)))

    monkeypatch.setattr(Store, "commit", commit)
    monkeypatch.setattr(views.time, "time", lambda: 0.0)  # so that nothing has passed since the run went on
    run_plan(plan)
    some = [(left, seen) for left, seen in kept if seen.n_counted < seen.n_wanted]
    assert some
    assert all(seen.seconds_left == left > 0 for left, seen in some)


def test_a_family_over_the_whole_plan_is_in_the_number_of_trials_once(tmp_path):
    several_kinds(tmp_path)
    (tmp_path / "plan.toml").write_text(
        'trials = 5000\ncluster = "none"\nstore = "night.sqlite"\nfamily = "plan"\nmethod = "randomization"\n'
        '[[test_set]]\nname = "one"\nsystems = "real.csv"\n[[test_set]]\nname = "two"\nsystems = "real.csv"\n'
    )
    plan = load_plan(tmp_path / "plan.toml")
    told = Told()
    outcome = run_plan(plan, progress=told)
    found = read_status(plan.store)
    assert found.n_wanted == found.n_counted == outcome.n_counted == told.told[-1][1] == 5000 * (2 * 2 * 3 + 1)


def test_with_a_rule_to_stop_the_time_is_an_upper_limit(tmp_path):
    plan = several_kinds(tmp_path)
    text = plan.path.read_text().replace("interval =", "# interval =")
    done = check(tmp_path, f'{text}\n[stopping]\nrule = "besag-clifford"\n')
    assert done.exception is None, done.exception
    assert " trials, at most 1 s on 1 thread" in done.output
