"""Run the command line inside the test process, which saves starting Python each time.

Tests whose point is a process (signals, pipes, terminals, arguments as the shell gives them) start one instead.
"""

import contextlib
import io
import logging
import os
import signal
import subprocess
import sys
from unittest.mock import patch

from sigdask.cli import commands, main
from sigdask.io import addresses

COMMANDS = {name: commands.get_command(None, name) for name in commands.list_commands()}


class OverrunsError(AssertionError):
    """Raised when a block uses more CPU time than it may."""


@contextlib.contextmanager
def limit_cpu(seconds=20):
    """Fail when the block uses so much CPU time that it may never end; speed itself is measured in the benchmarks."""

    def refuse(*_):
        raise OverrunsError(f"more than {seconds} s of CPU time")

    previous = signal.signal(signal.SIGPROF, refuse)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def call_sigdask(*arguments, cwd, columns=None):
    """Run `sigdask ARGUMENTS` in a folder, through its entry point.

    Parameters
    ----------
    columns : int, optional
        Of a terminal that shows both streams, one in the midst of the other, and draws no bar; all is standard output
        then.

    Returns
    -------
    subprocess.CompletedProcess
        What a process would have left: status, standard output and standard error.
    """
    command = ["sigdask", *map(str, arguments)]
    streams = _build_terminal() if columns else _build_pipes()
    width = {"COLUMNS": str(columns), "LINES": "400", "TERM": "dumb"} if columns else {}
    with (
        contextlib.chdir(cwd),
        patch.multiple(sys, argv=command, **streams),
        patch.dict(os.environ, width),
        restore_process(),
    ):
        try:
            main()
        except SystemExit as error:
            status = error.code
    texts = [_read_stream(stream) for stream in streams.values()]
    return subprocess.CompletedProcess(command, status, texts[0], "" if columns else texts[1])


def write_data_of_commands(folder):
    """Write small data for each command, a plan and a cluster file."""
    agreement = "".join(f"s{k % 3},{k // 3},{k % 5},{k % 4},{k % 7}\n" for k in range(24))
    files = {
        "t.csv": "item,a,b,c\n" + "".join(f"{k},{k % 2},{k % 3},{k % 5}\n" for k in range(40)),
        "labels.csv": "item,gold,a\n" + "".join(f"{k},x{k % 2},x{k % 3}\n" for k in range(20)),
        "candidates.csv": "gold,m,n\n" + "".join(f"{k % 2},{k},{k % 7}\n" for k in range(20)),
        "human.csv": "system,segment,human,m,n\n" + agreement,
        "plan.toml": 'trials = 99\nstore = "night.sqlite"\n[[test_set]]\nname = "x"\nsystems = "t.csv"\n',
        "slurm.toml": 'class = "slurm"\nworkers = 1\n[options]\ncores = 1\nmemory = "1GB"\n',
    }
    for name, text in files.items():
        (folder / name).write_text(text)


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


def _build_pipes():
    return {name: io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for name, errors in ENCODING_ERRORS.items()}


def _build_terminal():
    buffer = io.BytesIO()
    return {name: Terminal(buffer, "utf-8", errors, write_through=True) for name, errors in ENCODING_ERRORS.items()}


ENCODING_ERRORS = {"stdout": "strict", "stderr": "backslashreplace"}  # as those of a process


@contextlib.contextmanager
def restore_process():
    """Restore what a command changes in the process: signal handlers, the logger, module folders."""
    logger = logging.getLogger("sigdask")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    logging_state = logger.handlers, logger.propagate, logger.level
    folders, path = addresses.FOLDERS, sys.path
    addresses.FOLDERS, sys.path = [], [folder for folder in path if folder not in folders]  # as a process begins
    try:
        yield
    finally:
        addresses.FOLDERS, sys.path = folders, path
        for number, handler in handlers.items():
            signal.signal(number, handler)
        logger.handlers, logger.propagate = logging_state[:2]
        logger.setLevel(logging_state[2])


def _read_stream(stream):
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8")
