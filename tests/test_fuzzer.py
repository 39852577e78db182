"""Tests that hostile commands end with status 0 or 2, one message, in little time and memory.

SIGDASK_FUZZED=20 runs twenty times as many.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys

import fuzzing
import fuzzing_results
import fuzzing_settings
import pytest
from command import call_sigdask

N_TIMES = int(os.environ.get("SIGDASK_FUZZED", "1"))
MAX_SECONDS, MAX_KILOBYTES = 20, 1 << 20
EXPECTED_STATUSES = {0, 2}
OTHER_STATUSES = {"run": {1}, "reproduce": {1}}
"""Statuses of a gate that fails, and of results that are not reproduced."""


class HangsError(Exception):
    """Raised when a command takes too long."""


def run_hostile_command(command, number, folder):
    """Run one command in its own folder; return its status and its last line."""
    folder.mkdir(exist_ok=True)
    with contextlib.chdir(folder), limit_seconds(6 * MAX_SECONDS):
        arguments = command(number, folder)
        begun, peak = measure_cpu_seconds(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = call_sigdask(*arguments, cwd=folder)
    message = f"{command.__name__}({number}): {arguments} ended with {result.returncode}: {result.stderr[-2000:]}"
    allowed = EXPECTED_STATUSES | OTHER_STATUSES.get(arguments[0], set())
    assert result.returncode in allowed, message
    assert "Traceback" not in result.stderr, message
    assert "internal error" not in result.stderr, message
    assert result.returncode == 0 or (result.stdout if result.returncode == 1 else result.stderr).strip(), message
    if command is fuzzing_results.write_results_command:
        assert not fuzzing_results.list_hidden_changes(folder, result.stdout), message
    assert measure_cpu_seconds() - begun < MAX_SECONDS, message
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < max(peak + 1, MAX_KILOBYTES), message
    return result.returncode, result.stderr.strip().rpartition("\n")[2].replace(str(folder), "")


def measure_cpu_seconds():
    """Return the CPU seconds that this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@contextlib.contextmanager
def limit_seconds(seconds):
    """Raise an error if the block takes longer than this."""

    def refuse(*_):
        raise HangsError

    previous = signal.signal(signal.SIGALRM, refuse)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


COMMAND_KINDS = {
    fuzzing.write_files_command: 500,
    fuzzing.write_plan_command: 200,
    fuzzing.write_special_command: 100,
    fuzzing_results.write_results_command: 100,
    fuzzing_settings.write_cluster_command: 100,
    fuzzing_settings.write_large_plan_command: 10,
    fuzzing_settings.write_metrics_folder_command: 60,
}
QUICK_KINDS = {fuzzing_results.write_results_command}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "command",
    [pytest.param(command, marks=() if command in QUICK_KINDS else pytest.mark.slow) for command in COMMAND_KINDS],
    ids=lambda command: command.__name__,
)
def test_hostile_commands_are_done_or_refused(command, tmp_path):
    endings = [
        run_hostile_command(command, number, tmp_path / str(number))
        for number in range(N_TIMES * COMMAND_KINDS[command])
    ]
    assert {status for status, _ in endings} >= EXPECTED_STATUSES
    assert len({message for _, message in endings}) > len(endings) / 5


REDIRECTIONS = (
    "<&-",
    ">&-",
    "2>&-",
    "<&- >&- 2>&-",
    "</dev/zero",
    ">/dev/full",
    "2>/dev/full",
    "| head -c 1",
    "2>&1 >&-",
)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ["compare good.tsv --trials 64 --cluster none", "compare none.tsv"])
def test_streams_that_are_closed_full_or_unread_are_no_failed_gate_and_no_bug(arguments, tmp_path):
    (tmp_path / "good.tsv").write_text("item\ta\tb\n1\t0\t1\n2\t1\t1\n3\t1\t0\n")
    for streams in REDIRECTIONS:
        result = subprocess.run(
            ["/bin/bash", "-o", "pipefail", "-c", f"{sys.executable} -m sigdask {arguments} {streams}"],
            cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        full = streams in {">/dev/full", ">&-", "<&- >&- 2>&-", "2>&1 >&-"}
        assert result.returncode in {0, 2, *((3,) if full else ())}, (streams, result)
        assert "Traceback" not in result.stderr, (streams, result)
