"""Tests of the command line: answers, exit statuses, and errors without a traceback."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from command import call_sigdask
from conftest import ROOT, YEH

COMMAND = [sys.executable, "-m", "sigdask"]


def run(*arguments, cwd=ROOT):
    return call_sigdask(*arguments, cwd=cwd)


def run_process(*arguments, cwd=ROOT):
    """Run the command in a process of its own, as a shell starts it."""
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=cwd)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "good.csv").write_text("item,x,y\na,1,2\nb,2,1\nc,3,1\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "nan.csv").write_text("item,x,y\na,1,nan\n")
    (tmp_path / "inf.csv").write_text("item,x,y\na,1,-inf\n")
    (tmp_path / "text.csv").write_text("item,x,y\na,1,two\n")
    (tmp_path / "ragged.csv").write_text("item,x,y\na,1\n")
    (tmp_path / "twice.csv").write_text("item,x,y\na,1,2\na,1,2\n")
    (tmp_path / "one.csv").write_text("item,x\na,1\n")
    (tmp_path / "latin.csv").write_bytes(b"item,x,y\n\xe9,1,2\n")
    (tmp_path / "gold.csv").write_text("id,gold\na,P\nb,Q\n")
    (tmp_path / "p.csv").write_text("id,p\na,P\nb,Q\n")
    (tmp_path / "short.csv").write_text("id,p\na,P\n")
    return tmp_path


BAD_INPUT = [
    (["empty.csv"], "empty.csv: is empty"),
    (["nan.csv"], "nan.csv: column 'y' has no score"),
    (["inf.csv"], "inf.csv, line 2, column 'y': found '-inf', expected a number"),
    (["text.csv"], "text.csv, line 2, column 'y': found 'two'"),
    (["ragged.csv"], "ragged.csv, line 2: found 2 fields, expected 3"),
    (["twice.csv"], "twice.csv, line 3: id 'a' is repeated"),
    (["one.csv"], "two systems or more, found only 'x'"),
    (["latin.csv"], "latin.csv, line 2: is not UTF-8"),
    (["none.csv"], "none.csv: no such file\n"),
    (["p.csv", "short.csv", "--gold", "gold.csv"], "short.csv: lacks 1 id ('b')"),
    (["p.csv", "--gold", "gold.csv"], "two systems or more, found only 'p'"),
    (["good.csv", "--metric", "maen"], "mean"),
    (["good.csv", "--format", "wid"], "unknown format 'wid': did you mean 'wide'? The formats are "),
    (["good.csv", "--trials", "-1"], "trials = -1: must be at least 1"),
    (["good.csv", "--trials", "many"], "'many' is not a valid integer"),
    (["good.csv", "--seed", "-1"], "seed = -1"),
    (["good.csv", "--baseline", "z"], "baseline: no system 'z'; systems: x, y"),
    (["good.csv", "--pair", "x", "z"], "pairs: no system 'z'; systems: x, y"),
    (["good.csv", "--cluster", "moon"], "cluster 'moon': expected auto"),
    (["good.csv", "--workers", "0"], "--workers': 0 is not in the range"),
    (["good.csv", "--no-such-option"], "No such option"),
    (["good.csv", "--digits", "1"], "sigdask show"),
    ([], "Missing argument"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_INPUT, ids=[" ".join(a) for a, _ in BAD_INPUT])
def test_bad_input_is_one_clear_line_and_status_2(files, arguments, message):
    result = run("compare", *arguments, cwd=files)
    assert result.returncode == 2, result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "plan.toml", "--workers", "0"], "--workers': 0 is not in the range"),
        (["run", "plan.toml", "--deadline", ""], "deadline '': expected a time"),
        (["history", "plan.toml", "--last", "-1"], "--last': -1 is not in the range"),
        (["verify", "--workers", "0"], "--workers': 0 is not in the range"),
        (["verify", "--cluster", "moon"], "cluster 'moon': expected auto"),
        (["check", "good.csv"], "good.csv: not TOML"),
    ],
)
def test_bad_options_of_other_commands_are_refused_too(files, arguments, message):
    (files / "plan.toml").write_text('[[test_set]]\nname = "x"\nsystems = "good.csv"\n')
    result = run(*arguments, cwd=files)
    assert (result.returncode, result.stdout) == (2, ""), result.stderr
    assert message in result.stderr
    assert not (files / "plan.sqlite").exists()


ESCAPE = "\x1b]0;pwned\x07\x1b[2J"


def test_no_name_reaches_a_terminal_as_a_command(tmp_path):
    (tmp_path / "t.csv").write_text(f"item,[bold]a{ESCAPE},b\nx,1,2\ny,3,1\nz,2,2\n")
    name = json.dumps(f"n{ESCAPE}")
    (tmp_path / "plan.toml").write_text(f'name = {name}\n[[test_set]]\nname = {name}\nsystems = "t.csv"\n')
    for arguments in (
        *(["compare", "t.csv"], ["compare", "t.csv", "--all"], ["check", "plan.toml"], ["run", "plan.toml"]),
        *(["status", "plan.toml"], ["history", "plan.toml"], ["report", "plan.toml"]),
    ):
        result = run(*arguments, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert result.stdout
        for text in (result.stdout, result.stderr):
            assert "\x1b" not in text, arguments
            assert "\x07" not in text, arguments
        if arguments[0] in {"compare", "status", "report", "run"}:
            assert "pwned" in result.stdout
        if arguments[0] == "compare":
            assert "[bold]a" in result.stdout  # no markup


@pytest.mark.slow
def test_a_file_whose_name_is_not_utf8_is_named_and_taken_where_the_system_has_a_name(tmp_path):
    odd = os.fsdecode(b"s\xe9.txt")
    (tmp_path / odd).write_text("1\n2\n3\n4\n")
    (tmp_path / "t.txt").write_text("2\n1\n5\n3\n")
    (tmp_path / "plan.toml").write_text('[[test_set]]\nname = "x"\nsystems = "*.txt"\n')
    folder = tmp_path / os.fsdecode(b"d\xe9")
    shutil.copytree(tmp_path, folder)
    for arguments in (["compare", odd, "t.txt"], ["check", "plan.toml"], ["run", "plan.toml"]):
        result = run(*arguments, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (2, ""), result.stderr
        assert r"s\udce9.txt': the file's name, which is also the system's" in result.stderr
        assert "rename the file, or name the system" in result.stderr
    for command in ("check", "run"):
        result = run(command, folder / "plan.toml", cwd=tmp_path)
        assert (result.returncode, result.stdout) == (2, ""), result.stderr
        assert "the name of a plan or of its folder is not UTF-8; rename it" in result.stderr
    assert run_process("compare", f"s={odd}", "t.txt", "--json", "c.json", cwd=tmp_path).returncode == 0
    result = run_process("compare", "t.txt", f"s={odd}", "--name", odd, cwd=tmp_path)
    assert (result.returncode, r"'s\udce9.txt': " in result.stderr) == (2, True), result.stderr
    (tmp_path / "plan.toml").write_text(
        '[[test_set]]\nname = "x"\nsystems = { s = "d*/s*.txt", t = "t.txt" }\n[report]\njson = "r.json"\n'
    )
    assert run("run", "plan.toml", cwd=tmp_path).returncode == 0
    inputs = json.loads((tmp_path / "r.json").read_text())["run"]["inputs"]["x"]
    assert str(tmp_path / r"d\xe9" / r"s\xe9.txt") in inputs


COMPARE_YEH = ("compare", YEH, "--metric", "recall", "--metric", "f1", "--metric", "precision")


def test_yehs_example_begins_with_the_answer():
    result = run_process(*COMPARE_YEH)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[:2] == [
        "I is better than II on recall by 0.214 [0.109, 0.319]; p = 0.000196 (exact).",
        "I is better than II on f1 by 0.123 [0.019, 0.234]; p = 0.0296 (exact).",
    ]
    assert lines[2].startswith("Whether II is better than I on precision is contested: II is ahead by 0.146 ")
    assert lines[-1] == "test: stratified shuffling by item, two-sided; p not adjusted for 3 comparisons"
    assert not any(detail in result.stdout for detail in ("r12", "checks", "signature", "scheme", "✓", "borderline"))
    assert "\x1b" not in result.stdout + result.stderr
    assert result.stderr == "sigdask: read as responses: 2 systems, 160 items (item relation, gold of_interest)\n"
