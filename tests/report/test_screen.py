"""Tests of what people see: commands in a real pseudo-terminal, read by a terminal emulator."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from nights import write_plan
from rich.cells import cell_len
from terminals import run_in_terminal

YEH = str(Path(__file__).parents[2] / "sigdask" / "examples" / "yeh2000.tsv")
QUICK_RUN = ("--trials", "4096", "--cluster", "none")
COMPARE_YEH = ("compare", YEH, "--metric", "recall", "--metric", "precision", *QUICK_RUN)
HEADER = ["A", "B", "score", "A", "score", "B", "A", "-", "B", "95", "%", "interval", "p"]
ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def is_clean(text):
    """Return whether no character was replaced and no remains of terminal commands are left."""
    return "\N{REPLACEMENT CHARACTER}" not in text and not any(
        sequence in text for sequence in ("[1m", "[0m", "[?25", "[2K")
    )


def measure_widest_line(terminal):
    """Return the columns of the widest line written, progress included."""
    return max(cell_len(line) for line in re.split(r"[\r\n]", ESCAPE_SEQUENCE.sub("", terminal.written)))


def run_piped(*arguments, cwd=None):
    """Return everything that a command writes into pipes."""
    command = [sys.executable, "-m", "sigdask", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    return result.stdout + result.stderr


@pytest.mark.parametrize("environment", [{"FORCE_COLOR": "1"}, {}, {"TERM": "dumb"}], ids=str)
@pytest.mark.slow
def test_the_header_of_the_table_is_legible_on_every_terminal(environment):
    terminal = run_in_terminal("compare", YEH, "--metric", "recall", *QUICK_RUN, columns=120, **environment)
    assert terminal.status == 0
    assert is_clean(terminal.text)
    assert HEADER in [line.split() for line in terminal.screen]


@pytest.mark.slow
def test_a_forced_colour_puts_no_command_into_a_pipe(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in run_piped(*COMPARE_YEH)


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    folder = tmp_path_factory.mktemp("night")
    gate = '[gate]\nrules = [{ rule = "not-worse", alpha = 0.01 }]\n'
    plan = write_plan(folder, systems=3, trials=4096, settings='pairs = { baseline = "s0" }')
    plan.write_text(plan.read_text() + gate)
    run_piped("run", "night.toml", "--cluster", "none", cwd=folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("check", "night.toml"),
        ("run", "night.toml", "--cluster", "none"),
        ("status", "night.toml"),
        ("history", "night.toml"),
        ("report", "night.toml", "--all"),
        ("list", "formats"),
        ("compare", "absent.csv", "also absent.csv"),
    ],
    ids=" ".join,
)
def test_every_command_fits_a_narrow_terminal(night, command):
    terminal = run_in_terminal(*command, columns=40, cwd=night)
    assert terminal.status == (2 if "absent.csv" in command else 0)
    assert is_clean(terminal.text)
    assert measure_widest_line(terminal) <= 40
