"""Extraction in several local processes; threads would wait for each other, as counters hold Python's lock.

The processes are fresh interpreters that import the counters and nothing of the program that started them, so that a
script needs no guard around what it does; they are spoken to over pipes and end with the process that started them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Self

from sigdask.counts.fields import Array
from sigdask.errors import UnfinishedError
from sigdask.metrics.extraction.parts import ExtractionPart

SERVE = "import sys; from sigdask.metrics.extraction.processes import serve; serve(int(sys.argv[1]))"

IS_SUPPORTED = os.name == "posix"
"""Elsewhere a process cannot be handed a pipe by its number."""

MOST_ATTEMPTS = 2
"""Processes that may die of a part: short of memory, the system ends some."""


class ProcessExtraction:
    """An executor that counts parts in processes that it starts.

    Parameters
    ----------
    n : int
        How many.
    """

    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, parts: Sequence[ExtractionPart], seconds: float) -> Iterator[tuple[int, list[Array]]]:  # noqa: ARG002
        """Yield each part's number and statistics as parts finish.

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
        with ExitStack() as ended:
            idle = [ended.enter_context(_Process()) for _ in range(min(self.n, len(parts)))]
            while busy or waiting:
                while idle and waiting:
                    process, number = idle.pop(), waiting.pop()
                    process.send_part(parts[number])
                    busy[process.pipe] = process, number
                for pipe in wait(list(busy)):
                    process, number = busy.pop(pipe)
                    result = process.receive_result()
                    if isinstance(result, Exception):
                        raise result
                    if result is not None:
                        idle.append(process)
                        yield number, result
                        continue
                    attempts[number] += 1
                    if attempts[number] == MOST_ATTEMPTS:
                        raise UnfinishedError("extraction: a process was ended twice on one part; is memory short?")
                    waiting.append(number)
                    idle.append(ended.enter_context(_Process()))


class _Process:
    """A Python process that counts one part after the other."""

    def __init__(self) -> None:
        self.pipe, theirs = Pipe()
        path = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
        self._process = subprocess.Popen(  # noqa: S603  # this interpreter
            [sys.executable, "-P", "-c", SERVE, str(theirs.fileno())],
            pass_fds=(theirs.fileno(),), env={**os.environ, "PYTHONPATH": path}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pipe.close()
        self._process.kill()
        self._process.wait()

    def send_part(self, part: ExtractionPart) -> None:
        """Send a part to the process, which starts to count it."""
        with suppress(OSError):  # it is gone, which its answer says
            self.pipe.send(part)

    def receive_result(self) -> Any:
        """Return the statistics that were counted, or the error, or None if the process has ended."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return None


def serve(descriptor: int) -> None:
    """Count parts that arrive over a pipe, and send back statistics or errors, until the pipe is closed."""
    pipe: Connection[Any, Any] = Connection(descriptor)
    with suppress(EOFError, OSError):
        while True:
            part = pipe.recv()
            try:
                result: Any = part.count()
            except Exception as error:  # noqa: BLE001  # raised where the part came from
                result = error
            pipe.send(result)
