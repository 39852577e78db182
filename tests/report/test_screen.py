"""What people see: the commands in a real pseudo-terminal, its screen read by a terminal emulator."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from nights import write_plan
from rich.cells import cell_len
from terminals import shown

from sigdask.report.layout import wrap_lines

YEH = str(Path(__file__).parents[2] / "sigdask" / "examples" / "yeh2000.tsv")
QUICK = ("--trials", "4096", "--cluster", "none")
ASKED = ("compare", YEH, "--metric", "recall", "--metric", "precision", *QUICK)
HEADER = ["A", "B", "metric", "score", "A", "score", "B", "A", "-", "B", "95", "%", "interval", "p"]
COMMAND = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
WIDTHS = (40, 60, 100, 200)
HOSTILE = "\x1b[31mred", "two\nlines", "bell\x07\x1b]0;title\x07", "\x9b1mbold"


def is_clean(text):
    """No replaced character, nor what is left of a command to the terminal."""
    return "\N{REPLACEMENT CHARACTER}" not in text and not any(left in text for left in ("[1m", "[0m", "[?25", "[2K"))


def widest(seen):
    """Columns of the widest line that was written, progress included."""
    return max(cell_len(line) for line in re.split(r"[\r\n]", COMMAND.sub("", seen.written)))


def words(text):
    return {word.strip(":,") for word in re.split(r"[\s|]+", text)}  # a signature may be broken behind its bars


def letters(text):
    """Words without what divides the members of paths and lists of choices."""
    return set(re.findall(r"[^\W_]+", text))


def piped(*arguments, cwd=None):
    """What a pipe gets."""
    command = [sys.executable, "-m", "sigdask", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "environment", [{}, {"NO_COLOR": "1"}, {"CI": "true"}, {"FORCE_COLOR": "1"}, {"TERM": "dumb"}], ids=str
)
def test_the_header_of_the_table_is_legible_on_every_terminal(environment):
    seen = shown("compare", YEH, "--metric", "recall", *QUICK, columns=120, **environment)
    assert seen.status == 0
    assert is_clean(seen.text)
    assert HEADER in [line.split() for line in seen.screen]


def test_a_forced_colour_puts_no_command_into_a_pipe(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in piped(*ASKED)


@pytest.fixture(scope="module")
def whole():
    return piped(*ASKED)


@pytest.mark.parametrize("columns", WIDTHS)
def test_no_line_is_wider_than_the_terminal_and_no_word_is_broken(columns, whole):
    seen = shown(*ASKED, columns=columns, **({"TERM": "dumb"} if columns == 60 else {}))
    assert seen.status == 0
    assert is_clean(seen.text)
    assert widest(seen) <= columns
    unsigned = re.compile(r"signature:\s.*?v:[0-9.\s]*", re.DOTALL)  # the one word that no narrow terminal holds
    before, shorter = (unsigned.sub("", text) for text in (whole, seen.text))
    assert words(shorter) - {"─" * n for n in range(columns + 1)} <= words(before)
    assert words(before) - words(shorter) <= {word for word in words(before) if set(word) == {"─"}}


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    folder = tmp_path_factory.mktemp("night")
    gate = '[gate]\nrules = [{ rule = "not-worse", alpha = 0.01 }]\n'
    plan = write_plan(folder, systems=3, trials=4096, more='pairs = { baseline = "s0" }')
    plan.write_text(plan.read_text() + gate)
    piped("run", "night.toml", "--cluster", "none", cwd=folder)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ("check", "night.toml"),
        ("run", "night.toml", "--cluster", "none"),
        ("status", "night.toml"),
        ("history", "night.toml"),
        ("report", "night.toml", "--all"),
        ("formats",),
        ("metrics",),
        ("compare", "--help"),
        ("compare", "absent.csv", "also absent.csv"),
    ],
    ids=" ".join,
)
def test_every_command_fits_a_narrow_terminal(night, command):
    seen = shown(*command, columns=40, cwd=night)
    assert seen.status == (2 if "absent.csv" in command else 0)
    assert is_clean(seen.text)
    assert widest(seen) <= 40


@pytest.mark.parametrize(
    "command", [(), ("compare", "--help"), ("run", "--help"), ("formats",), ("metrics",)], ids=" ".join
)
def test_help_and_lists_break_no_word_on_a_narrow_terminal(command):
    whole, seen = piped(*command), shown(*command, columns=40)
    assert letters(seen.text) == letters(whole)
    assert widest(seen) <= 40
    assert seen.status == 0


@pytest.mark.slow
def test_a_word_wider_than_the_terminal_is_broken_behind_its_punctuation(tmp_path):
    name = "a-very-long-name-of-a-system-that-is-wider-than-forty-columns"
    (tmp_path / "systems.csv").write_text(rows((name, "b", "c", "d")))
    seen = shown("compare", "systems.csv", *QUICK, columns=40, cwd=tmp_path)
    assert seen.status == 0
    assert letters(seen.text) == letters(piped("compare", "systems.csv", *QUICK, cwd=tmp_path))
    assert "  a-very-long-name-of-a-system-that-is-\n  wider-than-forty-columns" in seen.text


@pytest.mark.parametrize("width", range(12, 40))
def test_a_number_and_its_percent_sign_stay_on_a_line(width):
    lines = wrap_lines("p in 0.032 to 0.048 (99.9 % interval); p = 0.05 of 12 %", width).splitlines()
    assert not any(line.lstrip().startswith(("%", "=")) or line.endswith("=") for line in lines)
    assert all(len(line) <= width for line in lines)


def test_what_is_said_of_an_option_stands_below_it_on_a_narrow_terminal():
    assert (
        "  --alpha FLOAT\n    Significance level.  [default:\n    0.05]\n"
        in shown("compare", "--help", columns=40).text
    )


def rows(names):
    """A table whose header has these names, each quoted."""
    quoted = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    return quoted + "\n" + "".join(f"{k % 7},{k % 5},{k % 3},{k % 2}\n" for k in range(12))


@pytest.mark.slow
def test_names_that_would_command_a_terminal_do_not(tmp_path):
    (tmp_path / "systems.csv").write_text(rows(HOSTILE))
    name = "night\\u001b[31m"
    (tmp_path / "night.toml").write_text(
        f'name = "{name}"\ntrials = 512\nstore = "kept.sqlite"\n[[test_set]]\nname = "{name}"\n'
        'systems = "systems.csv"\nmetrics = ["mean"]\n'
    )
    commands = [
        ("run", "night.toml", "--cluster", "none"),
        ("compare", "systems.csv", "--json", "-", *QUICK),
        *((command, "night.toml") for command in ("check", "status", "history", "report")),
        ("compare", "systems.csv", "--pair", HOSTILE[0], "x"),
    ]
    for command in commands:
        seen = shown(*command, columns=200, cwd=tmp_path)
        assert seen.status == (2 if "--pair" in command else 0), seen.text
        assert "\x1b[31m" not in seen.written
        assert not {"\x07", "\x9b", "\x1b]"} & {*seen.written, *re.findall("\x1b.", seen.written)}
        assert not any(line.startswith("lines") for line in seen.screen)


def test_a_name_of_wide_letters_is_laid_out_by_its_columns(tmp_path):
    (tmp_path / "systems.csv").write_text(rows(("翻訳モデル　甲", "翻訳モデル　乙", "b", "c")))
    seen = shown("compare", "systems.csv", *QUICK, columns=60, cwd=tmp_path)
    assert seen.status == 0
    assert is_clean(seen.text)
    assert widest(seen) <= 60
    assert "甲" in seen.text
