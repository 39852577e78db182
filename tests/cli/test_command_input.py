"""Tests of command-line input: grouped help, short options, number formats, formats by file ending."""

import json
import shlex

import click
import numpy as np
import pytest
from click.shell_completion import ShellComplete
from command import call_sigdask
from conftest import YEH

import sigdask
from sigdask.api import compare_all
from sigdask.cli import commands
from sigdask.cli.declared.compare import COMPARE_EXAMPLES, COMPARE_GROUPS, compare
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


def test_help_shows_the_main_options_and_help_all_shows_every_option_in_a_group(tmp_path):
    short, text = (call_sigdask("compare", option, cwd=tmp_path).stdout for option in ("--help", "--help-all"))
    titles = [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles == [*COMPARE_GROUPS, "Help", "Examples"]
    assert "--help-all" in short
    assert [flag for flag in ("-m", "--gold", "--unit", "-o") if f"\n  {flag}" not in short] == []
    options = [option for option in compare.params if isinstance(option, click.Option)]
    assert len(options) - 1 <= 40
    assert all(flag in text for option in options for flag in option.opts)
    assert 10 <= sum(option.opts[0] in short for option in options) <= 16
    for line in COMPARE_EXAMPLES:
        assert line in short
        command = commands.commands[shlex.split(line)[1]]
        command.make_context(command.name, shlex.split(line)[2:])


def test_every_command_is_in_a_group_of_the_help(tmp_path):
    listing = call_sigdask("--help", cwd=tmp_path).stdout
    assert len(commands.commands) == 18
    for title in ("Compare:", "Results:", "Every night:", "Look up:"):
        assert f"\n{title}\n" in listing
    for name, command in commands.commands.items():
        assert f"\n  {name} " in listing
        assert call_sigdask(name, "--help", cwd=tmp_path).stdout.startswith(f"Usage: sigdask {command.name} ")


def test_gold_has_the_names_that_each_field_gives_it(scores):
    (scores / "gold.csv").write_text("id,gold\na,P\nb,Q\n")
    for name in "pq":
        (scores / f"{name}.csv").write_text(f"id,label\na,P\nb,{name.upper()}\n")
    help_texts = {
        call_sigdask("compare", "p.csv", "q.csv", flag, "gold.csv", "-m", "accuracy", cwd=scores).stdout
        for flag in ("--gold", "--gold", "--gold")
    }
    assert len(help_texts) == 1
    assert "accuracy" in help_texts.pop()


def test_an_option_of_one_value_is_never_silently_overwritten(tmp_path):
    for name, command in commands.commands.items():
        for option in command.params:
            if isinstance(option, click.Option) and not option.is_flag:
                values = ["1"] * option.nargs
                twice = call_sigdask(
                    *name.split(), option.opts[0], *values, option.opts[-1], *values, cwd=tmp_path
                ).stderr
                assert (f"{'/'.join(option.opts)} is given twice" in twice) != option.multiple, (name, option.opts)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["--items", "a.csv", "--items", "b.csv"], "--items is given twice, but takes one value (see sigdask compare"),
        (["--tests", "t", "--tests", "sign"], "takes one value; join its values with commas"),
        (["--gold", "a", "--gold", "b"], "--gold is given twice, but takes one value; name further refer"),
    ],
)
def test_an_option_that_is_given_twice_names_the_remedy(words, remedy, tmp_path):
    result = call_sigdask("compare", "x.csv", *words, cwd=tmp_path)
    assert result.returncode == 2
    assert remedy in result.stderr


@pytest.mark.parametrize("written", ["1000", "1e3", "1.0E+3", "1_000"])
def test_trials_are_written_as_people_write_them(written, tmp_path):
    result = call_sigdask("compare", YEH, "-m", "recall", "--trials", written, "--json", "-", cwd=tmp_path)
    assert json.loads(result.stdout)["results"][0]["n_trials"] == 1000


@pytest.mark.parametrize("written", ["1.5", "1e99999999", "nan", "inf", "", "0x10"])
def test_a_number_of_trials_that_is_none_is_refused(written, tmp_path):
    result = call_sigdask("compare", "absent.csv", "--trials", written, cwd=tmp_path)
    assert (result.returncode, "is not a valid integer" in result.stderr) == (2, True)


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
        (["-o", "-"], "-o -: expected a file that ends in"),
        (["-o", "a.json", "-o", "./a.json"], "a.json: is named twice"),
        (["-o", "no/a.json"], "-o no/a.json: cannot be written"),
        (["--alpha", "5"], "alpha = 5.0: must lie between 0 and 1"),
        (["--gold", "gold.txt", "-m", "R@ten"], "unknown metric 'R@ten': the cutoff after @ is a whole number"),
        (["--gold", "gold.txt", "-m", "blue"], "unknown metric 'blue': did you mean BLEU?"),
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "BLEU", "--unit", "day"], "these data have no groups. Give a table of items and their groups"),
        (["-m", "BLEU", "--unit", "document"], "these data have no groups. Give a file with the document of each item"),
        (["-m", "accuracy", "--format", "segments"], "choose another with --metric, such as BLEU"),
    ],
)
def test_what_texts_lack_is_told_with_what_to_do(arguments, message, scores):
    for name, text in (("g.txt", "a b c d e\nf g h i j\n"), ("x.txt", "a b c d\nf g h i j k\n")):
        (scores / name).write_text(text)
    result = call_sigdask("compare", "x.txt", "y=g.txt", "--gold", "g.txt", *arguments, cwd=scores)
    assert message in result.stderr


def test_names_of_metrics_match_without_case_and_are_shown_as_they_are_listed(scores):
    (scores / "u.csv").write_text("system,item,Loss\n" + "".join(f"{s},{k},{k % 3}\n" for s in "ab" for k in range(5)))
    result = call_sigdask("compare", *QUICK_RUN, "-m", "Recall", "-m", "F:BETA=2", cwd=scores)
    assert "no option 'BETA'" in result.stderr
    json_results = [
        json.loads(call_sigdask("compare", *QUICK_RUN, "-m", name, "--json", "-", cwd=scores).stdout)["results"][0]
        for name in ("Recall", "recall")
    ]
    assert json_results[0] == json_results[1]
    assert json_results[0]["metric"] == "recall"


def test_a_name_that_no_column_has_suggests_those_there_are(scores):
    result = call_sigdask("compare", "t.csv", "-m", "maen", cwd=scores)
    assert "unknown metric 'maen': did you mean mean" in result.stderr


def test_quiet_leaves_results_alone(tmp_path):
    loud, quiet = (call_sigdask("compare", *QUICK_RUN, *options, cwd=tmp_path) for options in ((), ("-q",)))
    assert quiet.stdout == loud.stdout
    assert (quiet.stderr, bool(loud.stderr)) == ("", True)


CLUSTER_TOML = 'class = "{}"\nworkers = 2\n[options]\ncores = 1\nmemory = "1GB"\n'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.toml", CLUSTER_TOML.format("slurm"), "c.toml: class slurm: the command sbatch is not on this machine"),
        ("c.toml", CLUSTER_TOML.format("pbs"), "c.toml: class pbs: the command qsub is not on this machine"),
        ("c.toml", CLUSTER_TOML.format("slurn"), "did you mean 'slurm'"),
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


def test_the_files_of_a_folder_are_systems(tmp_path):
    for name, text in (("a.txt", "1\n0\n1\n1\n"), ("b.txt", "0\n0\n1\n0\n"), (".hidden", "x\n")):
        (tmp_path / "runs" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "runs" / name).write_text(text)
    folder = call_sigdask("compare", "runs/", "--json", "-", cwd=tmp_path)
    files = call_sigdask("compare", "runs/a.txt", "runs/b.txt", "--json", "-", cwd=tmp_path)
    assert json.loads(folder.stdout)["results"] == json.loads(files.stdout)["results"]
    assert "systems: a.txt, b.txt" in folder.stderr
    (tmp_path / "empty").mkdir()
    refused = call_sigdask("compare", "empty", cwd=tmp_path)
    assert refused.returncode == 2
    assert "empty: is an empty folder; give a folder with a file for each system" in refused.stderr


def test_the_gold_file_in_the_folder_is_no_system(tmp_path):
    (tmp_path / "runs").mkdir()
    for name, text in (("a.txt", "x\ny\nx\n"), ("b.txt", "x\nx\nx\n"), ("gold.txt", "x\ny\ny\n")):
        (tmp_path / "runs" / name).write_text(text)
    result = call_sigdask("compare", "runs", "--gold", "runs/gold.txt", "-m", "accuracy", "--json", "-", cwd=tmp_path)
    [row] = json.loads(result.stdout)["results"]
    assert (row["a"], row["b"]) == ("a", "b")


def test_a_metric_of_texts_without_references_asks_for_them(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("a line, of text\nand another\n")
    refused = call_sigdask("compare", "a.txt", "b.txt", "-m", "BLEU", cwd=tmp_path)
    assert refused.returncode == 2
    assert "a.txt: metric BLEU compares outputs with a reference; give --gold FILE" in refused.stderr
    assert "field" not in refused.stderr  # nothing about tables
    refused = call_sigdask("compare", "a.txt", "b.txt", cwd=tmp_path)
    assert refused.returncode == 2
    assert "a.txt: is text and no table. If it is the output of a system, give --gold FILE" in refused.stderr


def test_readme_and_licence_in_a_folder_are_no_systems(tmp_path):
    (tmp_path / "runs").mkdir()
    for name, text in (
        ("a.txt", "1\n0\n1\n"),
        ("b.txt", "0\n0\n1\n"),
        ("LICENSE", "Free.\n"),
        ("README.md", "# Runs\n"),
    ):
        (tmp_path / "runs" / name).write_text(text)
    result = call_sigdask("compare", "runs", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "runs: not taken as systems: LICENSE, README.md" in result.stderr
    assert "2 systems, 3 items" in result.stderr


USED_FOR_NOTHING = {
    "documents": (
        (),
        ("--documents", "groups.txt"),
        "--documents groups.txt: not used, as items are swapped one by one",
    ),
    "groups": ((), ("--groups", "groups.txt"), "--groups groups.txt: not used; name one of its columns with --unit"),
    "used documents": (("--unit", "document"), ("--documents", "groups.txt"), ""),
    "used groups": (("--by", "group"), ("--groups", "groups.txt"), ""),
}


@pytest.mark.parametrize(("names", "option", "warning"), USED_FOR_NOTHING.values(), ids=USED_FOR_NOTHING.keys())
def test_a_file_of_groups_that_is_used_for_nothing_is_named(tmp_path, names, option, warning):
    (tmp_path / "t.csv").write_text("A,B\n1,0\n0,0\n1,1\n1,0\n")
    (tmp_path / "groups.txt").write_text("x\nx\ny\ny\n")
    result = call_sigdask("compare", "t.csv", *option, *names, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert warning in result.stderr
    assert ("not used" in result.stderr) == bool(warning)


def test_a_file_of_groups_beside_a_column_of_the_table_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("id,topic,A,B\n1,x,1,0\n2,x,0,0\n3,y,1,1\n4,y,1,0\n")
    (tmp_path / "groups.csv").write_text("id,genre\n1,p\n2,p\n3,q\n4,q\n")
    for unit, is_used in (("topic", False), ("genre", True)):
        result = call_sigdask("compare", "t.csv", "--unit", unit, "--groups", "groups.csv", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert ("--groups groups.csv: not used" in result.stderr) != is_used


@pytest.mark.parametrize(
    ("unit", "remedy"),
    [
        ("document", "with the document of each item with --documents FILE"),
        ("topic", "a table of items and their groups with --groups FILE"),
    ],
)
def test_a_unit_that_the_files_lack_names_the_option_for_a_file_of_groups(tmp_path, unit, remedy):
    (tmp_path / "t.csv").write_text("A,B\n1,0\n0,0\n")
    result = call_sigdask("compare", "t.csv", "--unit", unit, cwd=tmp_path)
    assert result.returncode == 2
    assert f"no column '{unit}'" in result.stderr
    assert remedy in result.stderr


@pytest.mark.parametrize("mark", ["n.a.", "-", "?", "#N/A"])
def test_a_mark_of_a_missing_score_names_what_to_write_instead(tmp_path, mark):
    (tmp_path / "t.csv").write_text(f"id,A,B\n1,1,0\n2,{mark},0\n3,1,1\n")
    (tmp_path / "a.txt").write_text(f"1\n{mark}\n0\n")
    (tmp_path / "b.txt").write_text("1\n1\n0\n")
    for files in (["t.csv"], ["a.txt", "b.txt"]):
        result = call_sigdask("compare", *files, cwd=tmp_path)
        assert result.returncode == 2
        assert f"found {mark!r}, expected a number. If the score is missing, leave the cell empty" in result.stderr
        assert "--missing pairwise or --missing zero" in result.stderr


def test_a_gold_file_that_is_a_system_too_is_named(tmp_path):
    for name, text in (("gold.txt", "x\ny\nx\nz\n"), ("a.txt", "x\nx\nx\nz\n")):
        (tmp_path / name).write_text(text)
    result = call_sigdask("compare", "gold.txt", "a.txt", "--gold", "gold.txt", "-m", "accuracy", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "gold.txt: is the gold standard and also a system, so this system's score is perfect" in result.stderr


def test_an_error_of_usage_names_the_help_of_its_command(tmp_path):
    for words, command in ((["compare", "--nothing"], "sigdask compare"), (["status"], "sigdask status")):
        assert f"(see {command} --help)" in call_sigdask(*words, cwd=tmp_path).stderr


def test_the_shell_completes_after_an_option_given_twice():
    completion = ShellComplete(commands, {}, "sigdask", "_SIGDASK_COMPLETE")
    words = ["compare", "a.csv", "--gold", "a", "--gold", "b"]
    assert "--trials" in {item.value for item in completion.get_completions(words, "--tri")}


UNUSED = {
    "--method randomization --exact-limit 5": "--exact-limit has no effect with --method randomization",
    "--method exact --no-second-run": "--no-second-run has no effect with --method exact",
    "--interval none --confidence 0.9": "--confidence has no effect with --interval none",
    "--interval none --resamples 99": "--resamples has no effect with --interval none",
    "--workers 2": "--workers has no effect with --cluster none",
}


@pytest.mark.parametrize(("arguments", "warning"), UNUSED.items())
def test_an_option_that_has_no_effect_with_the_others_is_named(tmp_path, arguments, warning):
    (tmp_path / "scores.csv").write_text("a,b\n" + "".join(f"{k},{k % 4}\n" for k in range(9)))
    command = ("compare", "scores.csv", "--cluster", "none", "--trials", "9")
    assert f"warning: {warning}; leave it out" in call_sigdask(*command, *arguments.split(), cwd=tmp_path).stderr
    assert "no effect" not in call_sigdask(*command, "-o", "r.csv", cwd=tmp_path).stderr


def test_other_commands_name_them_too(tmp_path):
    (tmp_path / "c.csv").write_text("id,true,t,u\n" + "".join(f"{k},{k % 3 == 0},{k % 7},{k % 5}\n" for k in range(30)))
    rankings = ("rankings", "c.csv", "--columns", "gold=true", "--cluster", "none", "--workers", "2")
    result = call_sigdask(*rankings, cwd=tmp_path)
    assert result.returncode == 0
    assert "warning: --workers has no" in result.stderr


def test_a_map_of_labels_for_scores_is_named(tmp_path):
    (tmp_path / "scores.csv").write_text("a,b\n" + "".join(f"{k},{k % 4}\n" for k in range(9)))
    result = call_sigdask("compare", "scores.csv", "--map", "A=B", cwd=tmp_path)
    assert "warning: --map has no effect: format wide has no such columns or labels; leave it out" in result.stderr


UNUSED_SETTINGS = [
    ({"interval": "none", "resamples": 9}, "resamples= has no effect with interval='none'; leave it out"),
    ({"method": "exact", "second_run": False}, "second_run=False has no effect with method='exact'; leave it out"),
    (
        {"method": "randomization", "exact_limit": 3},
        "exact_limit= has no effect with method='randomization'; leave it out",
    ),
    (
        {"grouping": "ranks"},
        "grouping= has no effect without all pairs of three or more systems, two-sided; leave it out",
    ),
]


@pytest.mark.parametrize(("options", "text"), UNUSED_SETTINGS)
def test_results_name_options_that_have_no_effect(options, text):
    notes = [note for note in sigdask.compare_all(np.eye(6)[:, :2], **options).notes if note.kind == "unused-option"]
    assert [note.text for note in notes] == [text]
    assert notes[0].numbers == {"option": [*options][-1]}


def test_plans_name_options_that_have_no_effect(tmp_path):
    (tmp_path / "scores.csv").write_text("a,b\n" + "".join(f"{k},{k % 4}\n" for k in range(9)))
    tables = '[[test_set]]\nname = "t"\nsystems = ["scores.csv"]\ninterval = "none"\nresamples = 9\n'
    (tmp_path / "plan.toml").write_text(f'method = "exact"\nsecond_run = false\n{tables}')
    text = call_sigdask("run", "plan.toml", cwd=tmp_path).stdout
    assert 'warning: `resamples` has no effect with interval = "none"; leave it out' in text
    assert 'warning: `second_run = false` has no effect with method = "exact"; leave it out' in text


COLUMNS = {
    "--ignore nope": "--ignore 'nope' has no effect: there is no such column; leave it out",
    "--ignore system": "--ignore 'system' has no effect: there is no such column; did you mean 'system 1'?",
    "--columns prediction=a": "--columns prediction has no effect: format wide has no such columns or labels; leave it out",
}


@pytest.mark.parametrize(("arguments", "warning"), COLUMNS.items())
def test_options_on_columns_that_no_file_needs_are_named(tmp_path, arguments, warning):
    (tmp_path / "scores.csv").write_text("system 1,a\n" + "".join(f"{k},{k % 4}\n" for k in range(9)))
    command = ("compare", "scores.csv", "--format", "wide", "--trials", "9")
    assert f"warning: {warning}\n" in call_sigdask(*command, *arguments.split(), cwd=tmp_path).stderr


def test_a_prediction_column_beside_several_systems_is_named(tmp_path):
    (tmp_path / "labels.csv").write_text("id,gold,a,b\n1,P,P,Q\n2,Q,P,Q\n3,P,P,P\n")
    result = call_sigdask("compare", "labels.csv", "--columns", "prediction=a", cwd=tmp_path)
    assert "--columns prediction has no effect: a file has several systems; leave it out" in result.stderr


def test_a_frame_without_an_ignored_column_says_so():
    rows = {"system": [*"aabb"], "item": [1, 2, 1, 2], "score": [1, 2, 3, 1]}
    notes = sigdask.compare_all(rows, ignore=["speed"]).notes
    assert "ignore='speed' has no effect: there is no such column; leave it out" in [note.text for note in notes]


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


def test_columns_of_a_format_without_columns_are_named(tmp_path):
    for name, text in {"x": "1 Q0 a 1 5 x\n", "y": "1 Q0 b 1 5 y\n", "q": "1 0 a 1\n"}.items():
        (tmp_path / name).write_text(text)
    result = call_sigdask("compare", "x", "y", "--gold", "q", "-m", "AP", "--ignore", "tag", cwd=tmp_path)
    assert "warning: --ignore has no effect: format trec has no such columns or labels; leave it out" in result.stderr
