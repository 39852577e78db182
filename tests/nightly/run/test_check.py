"""`sigdask check`: what it reads, what it prints, and what it refuses after reading the data."""

import re

import pytest
from builders import build_rng
from click.testing import CliRunner
from command import call_sigdask
from good_plan import build_good_plan, format_plan, write_plan_inputs

from sigdask.cli import commands
from sigdask.errors import InputError
from sigdask.nightly.plan import load_plan
from sigdask.nightly.report.text import format_history, format_status
from sigdask.nightly.run import run_plan
from sigdask.nightly.store.status import list_runs


@pytest.fixture
def folder(tmp_path):
    return write_plan_inputs(tmp_path)


def run_check(folder, text):
    (folder / "plan.toml").write_text(text)
    return CliRunner().invoke(commands, ["check", str(folder / "plan.toml")], standalone_mode=False)


def test_the_good_plan_is_listed_with_its_comparisons(folder):
    result = run_check(folder, format_plan({k: v for k, v in build_good_plan().items() if k != "gate"}))
    assert result.exception is None, result.exception
    rows = [re.split(r"\s{2,}", line.strip()) for line in result.output.splitlines()]
    assert ["one", "wide", "2", "4", "topic", "4", "1"] in rows
    assert ["two", "labels", "2", "4", "item", "4", "2"] in rows
    assert result.output.splitlines()[-1].startswith("nightly: 4 test sets, 5 comparisons")


DATA_ERRORS = [
    ('unit = "speaker"', "test_set[0]: ", "no column 'speaker'"),
    ('metrics = ["man", "f1"]', "test_set[0].metrics: ", "did you mean mean"),
    ('metrics = ["man", "f1"]', "test_set[0].metrics: ", "needs responses or labels"),
    ('by = "sort"', "test_set[0]: ", "no column 'sort'"),
    ('columns = { item = "nr" }', "test_set[0]: ", "no column 'nr'"),
    ('format = "mine:gone"', "test_set[0]: ", "'gone'"),
    ('metrics = ["mine:broken"]', "test_set[0].metrics: ", "is int, expected a metric or a function"),
]


@pytest.mark.parametrize(("line", "key", "text"), DATA_ERRORS, ids=[text for _, _, text in DATA_ERRORS])
def test_what_the_data_cannot_give_is_named_with_its_key(folder, line, key, text):
    (folder / "mine.py").write_text("broken = 3\n")
    result = run_check(
        folder,
        f'[[test_set]]\nname = "one"\nsystems = "runs/{{system}}.csv"\nignore = ["remark", "kind", "topic"]\n{line}\n',
    )
    assert isinstance(result.exception, InputError), result.exception
    assert key in str(result.exception)
    assert text in str(result.exception)


def test_a_baseline_and_direction_that_the_gate_could_not_use_are_refused(folder):
    text = 'metrics = ["mean"]\n{}\n[[test_set]]\nname = "one"\nsystems = "runs/{{system}}.csv"\nignore = ["remark", "kind", "topic"]\n'
    gate = '[gate]\nrules = [{{ rule = "not-worse", baseline = "{}" }}]\n'
    greater = run_check(
        folder, text.format('alternative = "greater"\npairs = { baseline = "base" }') + gate.format("base")
    )
    assert 'gate.rules[0]: alternative = "greater" cannot show that new is worse than base' in str(greater.exception)
    other = run_check(folder, text.format('pairs = { baseline = "base" }') + gate.format("new"))
    assert "found 'new', expected 'base', the baseline of `pairs` of test set 'one'" in str(other.exception)
    table = text.replace("runs/{{system}}.csv", "wide.csv").format("")
    (folder / "wide.csv").write_text("item,a,b\nx,1,2\ny,2,1\n")
    result = run_check(folder, table.replace('ignore = ["remark", "kind", "topic"]\n', "") + gate.format("old"))
    assert "gate.rules[0].baseline: no system 'old' on test set 'one'; systems: a, b" in str(result.exception)


def test_a_metric_of_the_gate_that_the_data_do_not_suggest_is_refused(folder):
    (folder / "wide.csv").write_text("item,a,b\nx,1,2\ny,2,1\n")
    plan = '[[test_set]]\nname = "one"\nsystems = "wide.csv"\n[gate]\nrules = [{ rule = "not-worse", baseline = "a", %s }]\n'
    result = run_check(folder, plan % 'metrics = ["f1"]')
    assert "gate.rules[0].metrics: metric 'f1' is not computed there; metrics: mean" in str(result.exception)
    assert run_check(folder, plan % 'metrics = ["Mean"]').exception is None


class ProgressRecorder:
    """Record the predictions and the progress of a run."""

    def __init__(self):
        self.predictions, self.reports = [], []

    def __call__(self, done, total):
        raise AssertionError((done, total))  # where share and time are known, they are told

    def show_start(self, total, seconds, n_threads):
        self.predictions.append(total)

    def show_trials(self, done, total, share, left):
        self.reports.append((done, total, share, left))


def write_varied_plan(folder):
    """Write a plan of all kinds of trials: pairs, families, intervals, exact p."""
    rng = build_rng(3)

    def write_table(name, columns):
        rows = [
            ",".join(["id", *columns]),
            *(",".join(map(str, (k, *row))) for k, row in enumerate(zip(*columns.values(), strict=True))),
        ]
        (folder / name).write_text("\n".join(rows))

    write_table("real.csv", {name: [repr(float(x)) for x in rng.normal(0, 1, 26)] for name in "abc"})
    write_table("few.csv", {name: rng.integers(0, 9, 12).tolist() for name in "ab"})
    (folder / "plan.toml").write_text(
        'trials = 20000\ncluster = "none"\nstore = "night.sqlite"\nmethod = "both"\n'
        '[[test_set]]\nname = "real"\nsystems = "real.csv"\ninterval = "bootstrap"\nresamples = 3000\n'
        '[[test_set]]\nname = "few"\nsystems = "few.csv"\n'
    )
    return load_plan(folder / "plan.toml")


def test_run_status_and_history_name_the_same_number_of_trials(tmp_path):
    plan = write_varied_plan(tmp_path)
    recorder = ProgressRecorder()
    outcome = run_plan(plan, progress=recorder)
    total = outcome.n_counted
    # the family of 3 pairs, which is their first run too, their second runs; bootstrap
    assert total > 20_000 + 3 * 5_000 + 3000
    n_work = total + 3 + 2**12  # exact p: 3, and one from all arrangements of 12 units
    assert (outcome.exit_status, outcome.n_exact) == (0, 4)
    assert recorder.predictions == [n_work]
    assert {n_total for _, n_total, _, _ in recorder.reports} == {n_work}
    assert recorder.reports[-1][0] == n_work
    state = list_runs(plan.store)[0]
    assert (state.kept + state.counted, state.wanted) == (total, total)
    assert f"{total:,} of {total:,} trials" in format_status(state, 0.0)
    assert f" {total:,} " in format_history(list_runs(plan.store))


@pytest.mark.slow
def test_errors_in_some_of_many_test_sets_are_all_listed(tmp_path):
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


@pytest.mark.parametrize(
    ("metric", "margin", "is_refused"),
    [("accuracy", 1, True), ("accuracy", 1.5, True), ("accuracy", 0.99, False), ("macro-f1", 1, False)],
)
def test_a_margin_that_every_system_meets_is_refused_before_anything_is_counted(tmp_path, metric, margin, is_refused):
    for name, labels in (("gold", "PPQQ"), ("a", "PPQP"), ("b", "PQQP")):
        rows = "".join(f"{k},{label}\n" for k, label in enumerate(labels))
        (tmp_path / f"{name}.csv").write_text(f"id,{'gold' if name == 'gold' else 'label'}\n{rows}")
    result = run_check(
        tmp_path,
        f'pairs = {{ baseline = "a" }}\n[[test_set]]\nname = "x"\nformat = "labels"\ngold = "gold.csv"\n'
        f'systems = {{ a = "a.csv", b = "b.csv" }}\nmetrics = ["{metric}"]\n'
        f'[gate]\nrules = [{{ rule = "non-inferior", margin = {margin} }}]\n',
    )
    message = str(result.exception or "")
    assert ("gate.rules[0]: found margin" in message) == is_refused, message


OUTPUTS = ['[report]\njson = "out.json"', '[gate]\njson = "out.json"\nrules = [{ rule = "not-worse", baseline = "base" }]',
           'store = "out.json"']  # fmt: skip


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_link_to_a_file_is_no_output_and_a_link_to_a_folder_is_one(folder, output):
    (folder / "kept").write_text("kept")
    (folder / "there").mkdir()
    (folder / "out.json").symlink_to("kept")
    (folder / "link").symlink_to("there")
    text = '[[test_set]]\nname = "one"\nsystems = "runs/{system}.csv"\nignore = ["remark", "kind", "topic"]\n'
    first, rest = (output, text) if output.startswith("store") else (text, output)
    refused = run_check(folder, f"{first}\n{rest}")
    assert "symbolic link" in str(refused.exception)
    accepted = run_check(folder, f"{first}\n{rest}".replace('"out.json"', '"link/out.json"'))
    assert accepted.exception is None
    assert (folder / "kept").read_text() == "kept"


def test_an_error_of_several_lines_keeps_its_lines_and_names_the_test_set(tmp_path):
    (tmp_path / "a.csv").write_text("item,score,topic\nx,1,n\ny,2,n\n")
    (tmp_path / "night.toml").write_text('[[test_set]]\nname = "one"\nsystems = "*.csv"\n')
    for command, place in (("check", "test_set[0]: "), ("run", "test set 'one': ")):
        first, *lines = call_sigdask(command, "night.toml", cwd=tmp_path).stderr.splitlines()
        assert place in first
        assert "  score (score): 1, 2, …" in lines
    init = call_sigdask("init", "a.csv", "-o", "new.toml", cwd=tmp_path)
    assert "  score (score): 1, 2, …" in init.stderr.splitlines()
    history = call_sigdask("history", "night.toml", cwd=tmp_path)
    assert "a comparison needs two item (item): x, y, … score" in history.stdout
