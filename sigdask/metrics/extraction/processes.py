"""Parts on processes of this machine: counters in Python hold the interpreter's lock, so threads would only wait.

The processes are fresh interpreters that import the counters and nothing of the program that started them, so that a
script needs no guard around what it does; they are spoken to over pipes and end with the process that started them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from sigdask.counts.fields import Array
from sigdask.errors import UnfinishedError
from sigdask.metrics.extraction.parts import Part

SERVE = "import sys; from sigdask.metrics.extraction.processes import serve; serve(int(sys.argv[1]))"

MOST_ATTEMPTS = 2
"""Processes that may die of a part: short of memory, the system ends some."""


class Processes:
    """Counts parts on processes of its own.

    Parameters
    ----------
    n : int
        How many.
    """

    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, parts: Sequence[Part], seconds: float) -> Iterator[tuple[int, list[Array]]]:  # noqa: ARG002
        """Yield what each part counted, as they finish.

        Raises
        ------
        SigdaskError
            What a part raised.
        UnfinishedError
            A part ended every process that tried it.
        """
        waiting = list(range(len(parts)))[::-1]
        attempts = [0] * len(parts)
        busy: dict[Any, tuple[_Process, int]] = {}
        try:
            for _ in range(min(self.n, len(parts))):
                _give(busy, _Process(), parts, waiting.pop())
            while busy:
                for pipe in wait(list(busy)):
                    process, number = busy.pop(pipe)
                    found = process.answer()
                    if found is None:
                        process.end()
                        process = _Process()
                        attempts[number] += 1
                        if attempts[number] == MOST_ATTEMPTS:
                            raise UnfinishedError("extraction: a process was ended twice on one part; is memory short?")
                        waiting.append(number)
                    elif isinstance(found, Exception):
                        raise found
                    if waiting:
                        _give(busy, process, parts, waiting.pop())
                    else:
                        process.end()
                    if found is not None:
                        yield number, found
        finally:
            for process, _ in busy.values():
                process.end()


class _Process:
    """An interpreter that counts one part after the other."""

    def __init__(self) -> None:
        self.pipe, theirs = Pipe()
        path = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
        self._process = subprocess.Popen(  # noqa: S603  # this interpreter
            [sys.executable, "-P", "-c", SERVE, str(theirs.fileno())],
            pass_fds=(theirs.fileno(),), env={**os.environ, "PYTHONPATH": path}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        theirs.close()

    def answer(self) -> Any:
        """Return what it counted, or the error it met; None where it is gone."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        """End it."""
        self.pipe.close()
        self._process.kill()
        self._process.wait()


def _give(busy: dict[Any, tuple[_Process, int]], process: _Process, parts: Sequence[Part], number: int) -> None:
    busy[process.pipe] = process, number
    with suppress(OSError):  # it is gone, which its answer says
        process.pipe.send(parts[number])


def serve(descriptor: int) -> None:
    """Count what comes over a pipe until it is closed."""
    pipe: Connection[Any, Any] = Connection(descriptor)
    with suppress(EOFError, OSError):
        while True:
            part = pipe.recv()
            try:
                found: Any = part.count()
            except Exception as error:  # noqa: BLE001  # raised where the part came from
                found = error
            pipe.send(found)
