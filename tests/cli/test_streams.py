"""Tests of standard output and error that are closed, full or unread, and of control characters."""

import contextlib
import io
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from importlib import import_module
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import pytest
from command import call_sigdask, restore_process, write_data_of_commands
from conftest import YEH

from sigdask.cli import commands, main
from sigdask.verify import run_audits

SIGDASK = f"{sys.executable} -m sigdask"
COMPARE = f"{SIGDASK} compare {YEH} --metric recall --trials 1000"
ESCAPE = "\x1b]0;pwned\x07"


def run_shell(command, cwd):
    return subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, check=False, cwd=cwd
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "status"),
    [
        (f"{COMPARE} >/dev/full", 3),
        (f"{COMPARE} --json - >/dev/full", 3),
        (f"{SIGDASK} list formats >&-", 3),
        (f"{COMPARE} --json out.json >&-", 3),
        (f"{COMPARE} >&- 2>&- <&-", 3),
        (f"{COMPARE} --json out.json >/dev/null 2>&- <&-", 0),
        (f"{COMPARE} 2>/dev/full", 0),
        (f"{SIGDASK} compare absent.csv 2>&-", 2),
        (f"{COMPARE} --json - | head -1", 0),
    ],
)
def test_a_stream_that_is_lost_is_no_failed_gate_and_no_internal_error(command, status, tmp_path):
    result = run_shell(command, tmp_path)
    assert result.returncode == status
    assert "Traceback" not in result.stderr
    assert "internal" not in result.stderr
    if status == 3 and "2>&-" not in command:
        reason = "it is closed" if ">&-" in command else "No space left on device"
        assert f"standard output: cannot be written ({reason})" in result.stderr


ALL_COMMANDS = {
    "compare": ("t.csv", "--trials", "9"),
    "meta": ("human.csv", "--trials", "9"),
    "rankings": ("candidates.csv", "--n", "2"),
    "independence": ("labels.csv", "--trials", "9"),
    "power": ("t.csv", "--difference", "0.5", "--samples", "100"),
    "reproduce": ("r.json", "t.csv"),
    "cite": (),
    "init": ("t.csv", "-o", "new.toml", "--force"),
    "check": ("plan.toml",),
    "run": ("plan.toml",),
    "submit": ("plan.toml", "--cluster", "slurm.toml", "--dry-run"),
    "status": ("plan.toml",),
    "history": ("plan.toml",),
    "report": ("plan.toml",),
    "show": ("r.json",),
    "list": ("formats",),
    "read": ("t.csv",),
    "verify": ("--cluster", "none"),
}


@pytest.fixture(scope="module")
def folder_of_all(tmp_path_factory):
    folder = tmp_path_factory.mktemp("all")
    write_data_of_commands(folder)
    assert call_sigdask("compare", "t.csv", "--trials", "9", "-q", "-o", "r.json", cwd=folder).returncode == 0
    assert call_sigdask("run", "plan.toml", "-q", cwd=folder).returncode == 0
    return folder


def call_with_output(folder, command, stream):
    """Run a command whose standard output is a real stream, and return its status and what it says of it."""
    stderr = io.TextIOWrapper(io.BytesIO(), "utf-8")
    argv = ["sigdask", *command.split(), *map(str, ALL_COMMANDS[command])]
    with contextlib.chdir(folder), patch.multiple(sys, argv=argv, stdout=stream, stderr=stderr), restore_process():
        with pytest.raises(SystemExit) as exit_:
            main()
        if stream is not None:
            stream.close()
    stderr.flush()
    return exit_.value.code, stderr.buffer.getvalue().decode()


def test_the_table_has_every_command():
    assert set(ALL_COMMANDS) == {*commands.list_commands()}


@pytest.mark.parametrize("command", ALL_COMMANDS)
def test_output_that_cannot_be_written_is_an_error_of_every_command(command, folder_of_all, monkeypatch):
    monkeypatch.setattr(
        import_module("sigdask.cli.verify"), "run_audits", lambda *options: islice(run_audits(*options), 2)
    )
    full = Path("/dev/full").open("w")  # noqa: SIM115  # closed by the call
    for reason, stream in (("it is closed", None), ("No space left on device", full)):
        status, stderr = call_with_output(folder_of_all, command, stream)
        assert f"sigdask: error: standard output: cannot be written ({reason})\n" in stderr
        assert status == 3, stderr
    read_end, write_end = os.pipe()
    os.close(read_end)
    status, stderr = call_with_output(folder_of_all, command, os.fdopen(write_end, "w"))
    assert (status, "cannot be written" in stderr) == (0, False), stderr


@pytest.mark.slow
def test_a_gate_that_fails_fails_though_nobody_reads_on(tmp_path):
    (tmp_path / "t.csv").write_text("item,new,old\n" + "".join(f"{k},{k % 2},{k % 3 + 2}\n" for k in range(30)))
    (tmp_path / "plan.toml").write_text(
        'trials = 512\n[[test_set]]\nname = "x"\nsystems = "t.csv"\npairs = { baseline = "old" }\n'
        '[gate]\nrules = [{ rule = "not-worse", alpha = 0.01 }]\n'
    )
    assert run_shell(f"{SIGDASK} run plan.toml --json - | head -1", tmp_path).returncode == 1


@pytest.mark.slow
def test_letters_that_the_terminal_lacks_are_no_error(tmp_path):
    (tmp_path / "t.csv").write_text("item,müde,猫\na,1,2\nb,2,1\n")
    result = run_shell(f"PYTHONIOENCODING=ascii {SIGDASK} compare t.csv", tmp_path)
    assert (result.returncode, "m?de" in result.stdout) == (0, True), result.stderr


@pytest.mark.slow
def test_a_file_opened_later_does_not_get_what_is_written_on_a_closed_stream(tmp_path):
    result = run_shell(f"{SIGDASK} compare {YEH} --metric recall --json out.json -o out.html >&- 2>&-", tmp_path)
    assert result.returncode == 3
    assert (tmp_path / "out.json").read_text().startswith("{")
    assert (tmp_path / "out.html").read_text().startswith("<!DOCTYPE html>")


def test_no_name_begins_a_line_of_its_own_and_several_errors_have_a_line_each(tmp_path):
    name = "a\nsigdask: error: not ours\x1b[2J"
    (tmp_path / name).mkdir()
    result = call_sigdask("compare", name, cwd=tmp_path)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    (tmp_path / "plan.toml").write_text('trials = 0\nalpha = 7\n[[test_set]]\nname = "x"\n')
    lines = call_sigdask("check", "plan.toml", cwd=tmp_path).stderr.splitlines()
    assert lines[0].endswith("errors")
    assert all(line.startswith("  ") for line in lines[1:])


@pytest.mark.cluster
def test_a_queue_is_asked_though_ctrl_c_is_the_drivers_alone(tmp_path):
    """dask-jobqueue sets a signal handler on import, which only the main thread may do."""
    pytest.importorskip("dask_jobqueue")
    sbatch = tmp_path / "sbatch"
    sbatch.write_text("#!/bin/sh\necho no such partition >&2\nexit 1\n")
    sbatch.chmod(0o755)
    (tmp_path / "c.toml").write_text('class = "slurm"\nworkers = 1\n[options]\ncores = 1\nmemory = "1GB"\n')
    result = run_shell(f"PATH={tmp_path}:$PATH {COMPARE} --cluster c.toml", tmp_path)
    assert result.returncode == 3
    assert "the queue says: no such partition" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cluster", "seconds"), [("auto", 3), *(pytest.param("local", s, marks=pytest.mark.cluster) for s in (2.5, 5))]
)
def test_ctrl_c_says_so_and_shows_no_traceback_even_of_a_worker(cluster, seconds):
    """In a terminal Ctrl-C goes to all processes, both while workers start and while they count."""
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        command = f"{SIGDASK} compare {YEH} --trials {2**36} --cluster {cluster} --workers 2".split()
        os.execv(command[0], command)
    threading.Timer(seconds, os.write, (terminal, b"\x03")).start()
    output, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            output += os.read(terminal, 65536)
        except OSError:
            break
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3, output[-2000:]
    assert not re.search(r"Traceback|KeyboardInterrupt|Process", output.decode())
    assert "interrupted" in output.decode()
