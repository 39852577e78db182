"""Tests of what people see: commands in a real pseudo-terminal, read by a terminal emulator."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from nights import write_plan
from rich.cells import cell_len
from terminals import run_in_terminal

from sigdask.report.layout import wrap_lines

YEH = str(Path(__file__).parents[2] / "sigdask" / "examples" / "yeh2000.tsv")
QUICK_RUN = ("--trials", "4096", "--cluster", "none")
COMPARE_YEH = ("compare", YEH, "--metric", "recall", "--metric", "precision", *QUICK_RUN)
HEADER = ["A", "B", "metric", "score", "A", "score", "B", "A", "-", "B", "95", "%", "interval", "p"]
ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
WIDTHS = (40, 60, 100, 200)
HOSTILE_NAMES = "\x1b[31mred", "two\nlines", "bell\x07\x1b]0;title\x07", "\x9b1mbold"


def is_clean(text):
    """Return whether no character was replaced and no remains of terminal commands are left."""
    return "\N{REPLACEMENT CHARACTER}" not in text and not any(
        sequence in text for sequence in ("[1m", "[0m", "[?25", "[2K")
    )


def measure_widest_line(terminal):
    """Return the columns of the widest line written, progress included."""
    return max(cell_len(line) for line in re.split(r"[\r\n]", ESCAPE_SEQUENCE.sub("", terminal.written)))


def split_words(text):
    return {word.strip(":,") for word in re.split(r"[\s|]+", text)}  # a signature may be broken behind its bars


def find_words(text):
    """Return the words without the characters that divide paths and lists of choices."""
    return set(re.findall(r"[^\W_]+", text))


def run_piped(*arguments, cwd=None):
    """Return everything that a command writes into pipes."""
    command = [sys.executable, "-m", "sigdask", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    return result.stdout + result.stderr


@pytest.mark.parametrize(
    "environment", [{}, {"NO_COLOR": "1"}, {"CI": "true"}, {"FORCE_COLOR": "1"}, {"TERM": "dumb"}], ids=str
)
def test_the_header_of_the_table_is_legible_on_every_terminal(environment):
    terminal = run_in_terminal("compare", YEH, "--metric", "recall", *QUICK_RUN, columns=120, **environment)
    assert terminal.status == 0
    assert is_clean(terminal.text)
    assert HEADER in [line.split() for line in terminal.screen]


def test_a_forced_colour_puts_no_command_into_a_pipe(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in run_piped(*COMPARE_YEH)


@pytest.fixture(scope="module")
def whole():
    return run_piped(*COMPARE_YEH)


@pytest.mark.slow
@pytest.mark.parametrize("columns", WIDTHS)
def test_no_line_is_wider_than_the_terminal_and_no_word_is_broken(columns, whole):
    terminal = run_in_terminal(*COMPARE_YEH, columns=columns, **({"TERM": "dumb"} if columns == 60 else {}))
    assert terminal.status == 0
    assert is_clean(terminal.text)
    assert measure_widest_line(terminal) <= columns
    unsigned = re.compile(r"signature:\s.*?v:[0-9.\s]*", re.DOTALL)  # the one word that no narrow terminal holds
    text_of_pipe, text_of_terminal = (unsigned.sub("", text) for text in (whole, terminal.text))
    text_of_terminal, n_titles = re.subn(r"A is I, B is II\s", "", text_of_terminal)
    text_of_terminal, n_hints = re.subn(r";\s+in\s+a\s+wider\s+terminal:\s+score\s+A", "", text_of_terminal)
    assert n_hints == n_titles == (columns == 60)
    if n_hints:
        scores_a = [line.split()[3] for line in text_of_pipe.splitlines() if re.match(r"I+ +I+ +\w+ +\d", line)]
        assert len(scores_a) == 2
        text_of_pipe = re.sub("|".join(map(re.escape, scores_a)), "", text_of_pipe)
    assert split_words(text_of_terminal) - {"─" * n for n in range(columns + 1)} <= split_words(text_of_pipe)
    assert split_words(text_of_pipe) - split_words(text_of_terminal) <= {
        word for word in split_words(text_of_pipe) if set(word) == {"─"}
    }


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
        ("show", "--help"),
        ("compare", "--help"),
        ("compare", "absent.csv", "also absent.csv"),
    ],
    ids=" ".join,
)
def test_every_command_fits_a_narrow_terminal(night, command):
    terminal = run_in_terminal(*command, columns=40, cwd=night)
    assert terminal.status == (2 if "absent.csv" in command else 0)
    assert is_clean(terminal.text)
    assert measure_widest_line(terminal) <= 40


@pytest.mark.parametrize("command", [(), ("compare", "--help"), ("run", "--help"), ("list", "formats")], ids=" ".join)
def test_help_and_lists_break_no_word_on_a_narrow_terminal(command):
    whole, terminal = run_piped(*command), run_in_terminal(*command, columns=40)
    assert find_words(terminal.text) == find_words(whole)
    assert measure_widest_line(terminal) <= 40
    assert terminal.status == 0


@pytest.mark.slow
def test_a_word_wider_than_the_terminal_is_broken_behind_its_punctuation(tmp_path):
    name = "a-very-long-name-of-a-system-that-is-wider-than-forty-columns"
    (tmp_path / "systems.csv").write_text(build_table((name, "b", "c", "d")))
    terminal = run_in_terminal("compare", "systems.csv", *QUICK_RUN, columns=40, cwd=tmp_path)
    assert terminal.status == 0
    assert find_words(terminal.text) == find_words(run_piped("compare", "systems.csv", *QUICK_RUN, cwd=tmp_path))
    assert "  a-very-long-name-of-a-system-that-is-\n  wider-than-forty-columns" in terminal.text


@pytest.mark.parametrize("width", range(12, 40))
def test_a_number_and_its_percent_sign_stay_on_a_line(width):
    lines = wrap_lines("p in 0.032 to 0.048 (99.9 % interval); p = 0.05 of 12 %", width).splitlines()
    assert not any(line.lstrip().startswith(("%", "=")) or line.endswith("=") for line in lines)
    assert all(len(line) <= width for line in lines)


def test_what_is_said_of_an_option_stands_below_it_on_a_narrow_terminal():
    assert (
        "  --alpha FLOAT\n    Significance level.  [default:\n    0.05]\n"
        in run_in_terminal("compare", "--help", columns=40).text
    )


def build_table(names):
    """Build a CSV table whose header has these names, each quoted."""
    quoted = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    return quoted + "\n" + "".join(f"{k % 7},{k % 5},{k % 3},{k % 2}\n" for k in range(12))


@pytest.mark.slow
def test_names_that_would_command_a_terminal_do_not(tmp_path):
    (tmp_path / "systems.csv").write_text(build_table(HOSTILE_NAMES))
    name = "night\\u001b[31m"
    (tmp_path / "night.toml").write_text(
        f'name = "{name}"\ntrials = 512\nstore = "kept.sqlite"\n[[test_set]]\nname = "{name}"\n'
        'systems = "systems.csv"\nmetrics = ["mean"]\n'
    )
    commands = [
        ("run", "night.toml", "--cluster", "none"),
        ("compare", "systems.csv", "--json", "-", *QUICK_RUN),
        *((command, "night.toml") for command in ("check", "status", "history", "report")),
        ("compare", "systems.csv", "--pair", HOSTILE_NAMES[0], "x"),
    ]
    for command in commands:
        terminal = run_in_terminal(*command, columns=200, cwd=tmp_path)
        assert terminal.status == (2 if "--pair" in command else 0), terminal.text
        assert "\x1b[31m" not in terminal.written
        assert not {"\x07", "\x9b", "\x1b]"} & {*terminal.written, *re.findall("\x1b.", terminal.written)}
        assert not any(line.startswith("lines") for line in terminal.screen)


def test_a_name_of_wide_letters_is_laid_out_by_its_columns(tmp_path):
    (tmp_path / "systems.csv").write_text(build_table(("翻訳モデル　甲", "翻訳モデル　乙", "b", "c")))
    terminal = run_in_terminal("compare", "systems.csv", *QUICK_RUN, columns=60, cwd=tmp_path)
    assert terminal.status == 0
    assert is_clean(terminal.text)
    assert measure_widest_line(terminal) <= 60
    assert "甲" in terminal.text
