"""The command line, called in the process of the tests, which spares each look at it a start of Python.

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

from sigdask.cli import main
from sigdask.cli.output import progress
from sigdask.io import addresses


def called(*arguments, cwd, columns=None):
    """Run `sigdask ARGUMENTS` in a folder, by its own entry point.

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
    streams = _terminal() if columns else _pipes()
    width = {"COLUMNS": str(columns)} if columns else {}
    without_bar = patch.object(progress, "_build_bar", lambda: None) if columns else contextlib.nullcontext()
    with (
        contextlib.chdir(cwd),
        patch.multiple(sys, argv=command, **streams),
        patch.dict(os.environ, width),
        without_bar,
        _as_before(),
    ):
        try:
            main()
        except SystemExit as left:
            status = left.code
    written = [_written(stream) for stream in streams.values()]
    return subprocess.CompletedProcess(command, status, written[0], "" if columns else written[1])


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


def _pipes():
    return {name: io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for name, errors in ERRORS.items()}


def _terminal():
    shown = io.BytesIO()
    return {name: Terminal(shown, "utf-8", errors, write_through=True) for name, errors in ERRORS.items()}


ERRORS = {"stdout": "strict", "stderr": "backslashreplace"}  # as those of a process


@contextlib.contextmanager
def _as_before():
    """Give back what a program that is about to end may leave: signals, log lines, where modules are found."""
    logger = logging.getLogger("sigdask")
    handled = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    before = logger.handlers, logger.propagate, logger.level
    folders, addresses.FOLDERS.folders = [*addresses.FOLDERS.folders], []  # a process begins with none
    try:
        yield
    finally:
        addresses.FOLDERS.folders = folders
        for number, handler in handled.items():
            signal.signal(number, handler)
        logger.handlers, logger.propagate = before[:2]
        logger.setLevel(before[2])


def _written(stream):
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8")
