"""`sigdask check`: what it reads, what it says, what it refuses once the data are read."""

import re

import pytest
from click.testing import CliRunner
from conftest import YEH
from plan_of import good, lay_out, written

from sigdask.cli import commands
from sigdask.errors import InputError
from sigdask.overnight.estimate import estimate
from sigdask.plan import load_plan


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
    assert (
        "nightly: 4 test sets and 1 list of candidates, 8 comparisons, about < 1 s on 1 thread of this machine"
        in done.output
    )


def test_the_time_is_that_of_the_run(folder):
    import time

    from sigdask.api import compare_all

    text = (
        f'cluster = "none"\nmethod = "randomization"\ntrials = 4000000\n[[test_set]]\nname = "yeh"\nsystems = "{YEH}"\n'
    )
    (folder / "plan.toml").write_text(text)
    plan = load_plan(folder / "plan.toml")
    cost = estimate(plan)[0]
    counts = plan.test_sets[0].read()
    start = time.perf_counter()
    compare_all(counts, metrics=counts.suggested, trials=4_000_000, method="randomization", cluster="none")
    taken = time.perf_counter() - start
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
