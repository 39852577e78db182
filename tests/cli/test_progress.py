"""Tests of progress: bars on a terminal, lines elsewhere, and the estimate before counting starts."""

import re

import pytest
from command import call_sigdask
from conftest import YEH
from terminals import run_in_terminal

from sigdask.cli import streams
from sigdask.execution import run
from sigdask.execution.run import CountingPace
from sigdask.randomization.slabs import Job


@pytest.mark.slow
def test_a_pipe_gets_lines_of_a_command_and_quiet_none(monkeypatch, tmp_path):
    monkeypatch.setattr(streams, "SECONDS_BETWEEN_LINES", 0.02)
    arguments = ("compare", YEH, "-m", "recall", "--trials", "2e9", "--cluster", "none")
    loud, quiet = call_sigdask(*arguments, cwd=tmp_path), call_sigdask(*arguments, "-q", cwd=tmp_path)
    assert re.search(
        r"sigdask: counting: [\d,]+ of 2,500,000,000 trials \(\d+%\), (about .*|< 1 s) left\n", loud.stderr
    )
    assert "%" not in quiet.stderr
    assert loud.stdout == quiet.stdout


@pytest.mark.slow
def test_a_terminal_shows_how_far_a_command_is_from_the_start_and_keeps_nothing_of_it():
    terminal = run_in_terminal("compare", str(YEH), "-m", "recall", "--trials", "3e7", "--cluster", "none", columns=80)
    assert terminal.status == 0
    assert terminal.written.index("reading") < terminal.written.index("read as responses")
    assert " of 37,500,000 trials" in terminal.written
    assert "37,500,000" not in terminal.text


@pytest.mark.slow
def test_a_terminal_that_moves_no_cursor_gets_lines(monkeypatch):
    terminal = run_in_terminal("compare", str(YEH), "--trials", "4096", "--cluster", "none", columns=80, TERM="dumb")
    assert "reading" not in terminal.written
    assert "\x1b" not in terminal.written.removesuffix("\x1b[0m")  # which colorama writes when a program ends


def test_the_time_left_follows_the_predicted_work_and_the_measured_pace(monkeypatch):
    """Of 100 s of trials and an exact p of 900 s: all trials done in 200 s are a tenth, at half the pace."""
    clock = iter([0.0, 0.0, 200.0])
    monkeypatch.setattr(run.time, "monotonic", lambda: next(clock))
    pace = CountingPace([Job(None, 10**6), Job(None, 1)], [1e-4, 900.0], 1)
    assert (pace.share, pace.seconds_left) == (0.0, pytest.approx(1000))
    pace.add_trials(0, 10**6)
    assert pace.share == pytest.approx(0.1)
    assert pace.seconds_left == pytest.approx(900 * (200 + 50) / (100 + 50))  # the prediction weighs as 5 % of the work
