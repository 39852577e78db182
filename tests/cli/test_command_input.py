"""Tests of command-line input: grouped help, short options, number formats, formats by file ending."""

import json
import shlex

import click
import numpy as np
import pytest
from click.shell_completion import ShellComplete
from command import COMMANDS, call_sigdask
from conftest import YEH

import sigdask
from sigdask.api import compare_all
from sigdask.cli import COMMAND_GROUPS, commands
from sigdask.cli.compare import EXAMPLES, GROUPS
from sigdask.errors import InputError

QUICK_RUN = (YEH, "--trials", "1e3", "--cluster", "none")


@pytest.fixture
def scores(tmp_path):
    (tmp_path / "t.csv").write_text("item,x,y\na,1,2\nb,2,1\nc,3,1\n")
    return tmp_path


def test_the_program_alone_shows_its_help(tmp_path):
    result = call_sigdask(cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == call_sigdask("--help", cwd=tmp_path).stdout
    assert result.stdout.startswith("Usage: sigdask ")
    assert call_sigdask("-V", cwd=tmp_path).stdout == call_sigdask("--version", cwd=tmp_path).stdout


def test_help_shows_every_option_in_a_group(tmp_path):
    text = call_sigdask("compare", "--help", cwd=tmp_path).stdout
    titles = [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles == [*GROUPS, "Help", "Examples"]
    options = [option for option in COMMANDS["compare"].params if isinstance(option, click.Option)]
    assert len(options) <= 40
    assert all(flag in text for option in options for flag in option.opts)
    for line in EXAMPLES:
        assert line in text
        command = COMMANDS[shlex.split(line)[1]]
        command.make_context(command.name, shlex.split(line)[2:])


def test_every_command_is_in_a_group_of_the_help(tmp_path):
    listing = call_sigdask("--help", cwd=tmp_path).stdout
    assert len(COMMANDS) == 18
    for title, group in COMMAND_GROUPS.items():
        assert f"\n{title}:\n" in listing
        for name, text in group.items():
            assert COMMANDS[name].help.startswith(text)
    for name, command in COMMANDS.items():
        assert f"\n  {name} " in listing
        assert call_sigdask(name, "--help", cwd=tmp_path).stdout.startswith(f"Usage: sigdask {command.name} ")


def test_an_option_of_one_value_is_never_silently_overwritten(tmp_path):
    for name, command in COMMANDS.items():
        for option in command.params:
            if isinstance(option, click.Option) and not option.is_flag:
                values = ["1"] * option.nargs
                twice = call_sigdask(name, option.opts[0], *values, option.opts[-1], *values, cwd=tmp_path).stderr
                assert (f"{'/'.join(option.opts)} is given twice" in twice) != option.multiple, (name, option.opts)


@pytest.mark.parametrize("written", ["1000", "1e3", "1.0E+3", "1_000"])
def test_trials_are_written_as_people_write_them(written, tmp_path):
    result = call_sigdask("compare", YEH, "-m", "recall", "--trials", written, "--json", "-", cwd=tmp_path)
    assert json.loads(result.stdout)["results"][0]["n_trials"] == 1000


def test_files_are_written_as_their_endings_say(tmp_path):
    outputs = [word for name in ("a.json", "a.csv", "a.html", "a.TXT") for word in ("-o", name)]
    result = call_sigdask("compare", *QUICK_RUN, *outputs, cwd=tmp_path)
    assert result.stdout.startswith("I is better than II on ")
    assert (tmp_path / "a.TXT").read_text() == call_sigdask("compare", *QUICK_RUN, "--all", cwd=tmp_path).stdout
    assert len(json.loads((tmp_path / "a.json").read_text())["results"]) == 3
    assert (tmp_path / "a.csv").read_text().count("\n") == 4
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "a.doc"], "-o a.doc: expected a file that ends in .json, .csv"),
        (["-o", "a.json", "-o", "./a.json"], "a.json: is named twice"),
        (["-o", "no/a.json"], "-o no/a.json: cannot be written"),
        (["--gold", "gold.txt", "-m", "R@ten"], "unknown metric 'R@ten'"),
        (["--format", "labels", "-m", "acuracy"], "unknown metric 'acuracy': did you mean accuracy?"),
        (["-m", "bleu:tokenise=zh"], "did you mean 'tokenize'?"),
        (["-m", "f1("], "metric 'f1('"),
        (["--tests", "t,macnemar"], "no classical test 'macnemar'; did you mean 'mcnemar'?"),
    ],
)
def test_what_cannot_be_is_refused_before_a_file_is_read(arguments, message, tmp_path):
    result = call_sigdask("compare", "absent.csv", *arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_metric_that_its_format_cannot_have_is_refused_once_the_format_is_told(scores):
    (scores / "gold.txt").write_text("a b c\nd e f\n")
    for arguments in ((YEH, "-m", "Recal"), ("gold.txt", "g=gold.txt", "--gold", "gold.txt", "-m", "bluxxx")):
        result = call_sigdask("compare", *arguments, cwd=scores)
        assert (result.returncode, "did you mean" in result.stderr, "read as" in result.stderr) == (2, True, False)


CLUSTER_TOML = 'class = "{}"\nworkers = 2\n[options]\ncores = 1\nmemory = "1GB"\n'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.toml", CLUSTER_TOML.format("slurm"), "class slurm"),
        ("c.toml", CLUSTER_TOML.format("slurn"), "'slurm'"),
        ("d.toml", "", "cluster file d.toml: no such file"),
        ("nonsense", "", "cluster 'nonsense': expected auto, none"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_before_a_file_is_read(name, content, message, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "c.toml").write_text(content)
    (tmp_path / "plan.toml").write_text('[[test_set]]\nname = "x"\nsystems = "bad.csv"\n')
    (tmp_path / "bad.csv").write_text("item,x\n")
    for command in (("compare", "absent.csv"), ("run", "plan.toml")):
        result = call_sigdask(*command, "--cluster", name, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (2, "")
        assert message in result.stderr


def test_a_folder_of_systems_is_refused_and_the_pattern_of_its_files_named(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.csv").write_text("item,score\na,1\nb,0\n")
    refused = call_sigdask("compare", "runs", cwd=tmp_path)
    assert (refused.returncode, "runs/*" in refused.stderr) == (2, True)


@pytest.mark.parametrize("options", [("-m", "BLEU"), ()])
def test_texts_without_references_ask_for_them(tmp_path, options):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("a line of text\nand another\n")
    refused = call_sigdask("compare", "a.txt", "b.txt", *options, cwd=tmp_path)
    assert (refused.returncode, "a.txt" in refused.stderr, " FILE" in refused.stderr) == (2, True, True)


@pytest.mark.parametrize(
    ("option", "grouping", "is_used"),
    [
        ("--documents", (), False), ("--groups", (), False),
        ("--documents", ("--unit", "document"), True), ("--groups", ("--by", "group"), True),
    ],
)  # fmt: skip
def test_a_file_of_groups_that_is_used_for_nothing_is_named(tmp_path, option, grouping, is_used):
    (tmp_path / "t.csv").write_text("A,B\n1,0\n0,0\n1,1\n1,0\n")
    (tmp_path / "groups.txt").write_text("x\nx\ny\ny\n")
    result = call_sigdask("compare", "t.csv", "--format", "wide", option, "groups.txt", *grouping, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (f"{option} groups.txt: not used" in result.stderr) != is_used


def test_a_mark_of_a_missing_score_is_refused_with_a_remedy(tmp_path):
    (tmp_path / "t.csv").write_text("id,A,B\n1,1,0\n2,n.a.,0\n3,1,1\n")
    (tmp_path / "a.txt").write_text("1\nn.a.\n0\n")
    (tmp_path / "b.txt").write_text("1\n1\n0\n")
    for files in (["t.csv"], ["a.txt", "b.txt"]):
        result = call_sigdask("compare", *files, cwd=tmp_path)
        assert (result.returncode, "remove the item from every file" in result.stderr) == (2, True)


def test_a_gold_file_that_is_a_system_too_is_named(tmp_path):
    for name, text in (("gold.txt", "x\ny\nx\nz\n"), ("a.txt", "x\nx\nx\nz\n")):
        (tmp_path / name).write_text(text)
    result = call_sigdask("compare", "gold.txt", "a.txt", "--gold", "gold.txt", "-m", "accuracy", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "gold.txt: is the gold standard and also a system, so this system's score is perfect" in result.stderr


def test_the_shell_completes_after_an_option_given_twice():
    completion = ShellComplete(commands, {}, "sigdask", "_SIGDASK_COMPLETE")
    words = ["compare", "a.csv", "--gold", "a", "--gold", "b"]
    assert "--trials" in {item.value for item in completion.get_completions(words, "--tri")}


SCORES = "system 1,a\n" + "".join(f"{k},{k % 4}\n" for k in range(9))
UNUSED = {
    "--method randomization --exact-limit 5": "--exact-limit",
    "--method exact --no-second-run": "--no-second-run",
    "--interval none --confidence 0.9": "--confidence",
    "--interval none --resamples 99": "--resamples",
    "--map A=B": "--map",
    "--ignore nope": "--ignore nope",
    "--ignore system": "--ignore system",  # one of its columns begins so
    "--columns score=nope": "--columns score=nope",
    "--columns run=nope": "--columns run=nope",
}


def test_an_option_that_has_no_effect_is_named_and_no_other_one(tmp_path):
    (tmp_path / "t.csv").write_text(SCORES)
    command = ("compare", "t.csv", "--cluster", "none", "--trials", "9", "-o", "r.csv")
    assert "no effect" not in call_sigdask(*command, cwd=tmp_path).stderr
    for arguments, option in UNUSED.items():
        assert f"warning: {option} has no effect" in call_sigdask(*command, *arguments.split(), cwd=tmp_path).stderr


def test_columns_of_a_format_without_columns_are_named(tmp_path):
    for name, text in {"x": "1 Q0 a 1 5 x\n", "y": "1 Q0 b 1 5 y\n1 Q0 a 2 4 y\n", "q": "1 0 a 1\n"}.items():
        (tmp_path / name).write_text(text)
    unused = ("--ignore", "tag", "--align", "id", "--columns", "text=x")
    result = call_sigdask("compare", "x", "y", "--gold", "q", "-m", "AP", *unused, cwd=tmp_path)
    for option in ("--ignore", "--align", "--columns text=x"):
        assert f"warning: {option} has no effect: format trec" in result.stderr


ITEM_SCORES = np.eye(6)[:, :2]
LONG_ROWS = {"system": [*"aabb"], "item": [1, 2, 1, 2], "score": [1, 2, 3, 1]}
UNUSED_SETTINGS = [
    (ITEM_SCORES, {"interval": "none", "resamples": 9}, "resamples= has no effect with interval='none'"),
    (ITEM_SCORES, {"method": "exact", "second_run": False}, "second_run=False has no effect with method='exact'"),
    (ITEM_SCORES, {"method": "randomization", "exact_limit": 3}, "exact_limit= has no effect with method="),
    (ITEM_SCORES, {"method": "exact", "trials": 99}, "method='exact' counts no random trials"),
    (LONG_ROWS, {"interval": "none", "ignore": ["speed"]}, "ignore=['speed'] has no effect: there is no such column"),
]


def test_results_name_options_that_have_no_effect():
    for data, options, text in UNUSED_SETTINGS:
        assert any(note.text.startswith(text) for note in sigdask.compare_all(data, **options).notes), text


def test_tests_of_independence_name_options_that_have_no_effect(tmp_path):
    (tmp_path / "labels.csv").write_text("item,gold,a\n1,x,x\n2,y,y\n3,x,y\n4,y,y\n")
    result = call_sigdask(
        "independence", "labels.csv", *["--method", "exact", "--trials", "99", "--json", "-"], cwd=tmp_path
    )
    assert json.loads(result.stdout)["warnings"] == ["--trials has no effect with --method exact; leave it out"]


def test_plans_name_options_that_have_no_effect(tmp_path):
    (tmp_path / "scores.csv").write_text(SCORES)
    tables = '[[test_set]]\nname = "t"\nsystems = ["scores.csv"]\ninterval = "none"\nresamples = 9\n'
    (tmp_path / "plan.toml").write_text(f'method = "exact"\nsecond_run = false\n{tables}')
    text = call_sigdask("run", "plan.toml", cwd=tmp_path).stdout
    assert "warning: `resamples` has no effect" in text
    assert "warning: second_run = false has no effect" in text


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"pairs": [("1", "2"), ("2", "1")]}, "pair '1, 2' occurs twice"),
        ({"pairs": [("1", "2"), ("1", "2")]}, "pair '1, 2' occurs twice"),
        ({"metrics": ["mean", "mean"]}, "metric 'mean' occurs twice"),
    ],
)
def test_comparisons_that_would_be_counted_twice_in_the_family_are_refused(options, problem):
    scores = {"1": [1, 0, 1], "2": [0, 0, 1]}
    with pytest.raises(InputError, match=problem):
        compare_all(scores, adjust="holm", **options)


def test_pairs_and_a_baseline_are_refused_together(tmp_path):
    (tmp_path / "scores.csv").write_text("a,b,c\n" + "".join(f"{k},{k % 4},{k % 3}\n" for k in range(9)))
    result = call_sigdask("compare", "scores.csv", "--pair", "a", "b", "--baseline", "c", cwd=tmp_path)
    assert (result.returncode, "--pair and --baseline cannot be combined" in result.stderr) == (2, True)
    with pytest.raises(InputError, match="cannot be combined; give one of them"):
        compare_all(np.eye(3), pairs=[("1", "2")], baseline="3")
