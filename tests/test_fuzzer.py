"""Hostile commands end with status 0 or 2, one message, in little time and memory; from a fixed seed, in one process.

SIGDASK_FUZZED=20 runs twenty times as many.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys

import fuzzing
import pytest
from command import called

TIMES = int(os.environ.get("SIGDASK_FUZZED", "1"))
MOST_SECONDS, MOST_KILOBYTES = 20, 1 << 20
PASSED = {0, 2}
FAILED_GATE = 1


class HangsError(Exception):
    """A command takes too long."""


def ended(command, number, folder):
    """Run one command in its own folder; return its status and its last line."""
    folder.mkdir(exist_ok=True)
    with contextlib.chdir(folder), at_most_seconds(6 * MOST_SECONDS):
        arguments = command(number, folder)
        begun, peak = used(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        done = called(*arguments, cwd=folder)
    said = f"{command.__name__}({number}): {arguments} ended with {done.returncode}: {done.stderr[-2000:]}"
    assert done.returncode in PASSED | ({FAILED_GATE} if arguments[0] == "run" else set()), said
    assert "Traceback" not in done.stderr, said
    assert "internal error" not in done.stderr, said
    assert done.returncode == 0 or done.stderr.strip(), said
    assert used() - begun < MOST_SECONDS, said
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < max(peak + 1, MOST_KILOBYTES), said
    return done.returncode, done.stderr.strip().rpartition("\n")[2].replace(str(folder), "")


def used():
    """Return the seconds of CPU that this process has taken."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@contextlib.contextmanager
def at_most_seconds(seconds):
    """Have what waits for something that never comes end in an error."""

    def refuse(*_):
        raise HangsError

    before = signal.signal(signal.SIGALRM, refuse)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


KINDS = {fuzzing.files_command: 500, fuzzing.plan_command: 200, fuzzing.special_command: 100}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", KINDS, ids=lambda command: command.__name__)
def test_hostile_commands_are_done_or_refused(command, tmp_path):
    endings = [ended(command, number, tmp_path / str(number)) for number in range(TIMES * KINDS[command])]
    assert {status for status, _ in endings} >= PASSED
    assert len({said for _, said in endings}) > len(endings) / 5


STREAMS = ("<&-", ">&-", "2>&-", "<&- >&- 2>&-", "</dev/zero", ">/dev/full", "2>/dev/full", "| head -c 1", "2>&1 >&-")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ["compare good.tsv --trials 64 --cluster none", "compare none.tsv"])
def test_streams_that_are_closed_full_or_unread_are_no_failed_gate_and_no_bug(arguments, tmp_path):
    (tmp_path / "good.tsv").write_text("item\ta\tb\n1\t0\t1\n2\t1\t1\n3\t1\t0\n")
    for streams in STREAMS:
        done = subprocess.run(
            ["/bin/bash", "-o", "pipefail", "-c", f"{sys.executable} -m sigdask {arguments} {streams}"],
            cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        full = streams in {">/dev/full", ">&-", "<&- >&- 2>&-", "2>&1 >&-"}
        assert done.returncode in {0, 2, *((3,) if full else ())}, (streams, done)
        assert "Traceback" not in done.stderr, (streams, done)
