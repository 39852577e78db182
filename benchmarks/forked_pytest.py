"""Server that runs pytest in forks of itself, so that numpy, scipy and numba are imported once for many runs.

It imports neither the package nor its tests. Each line of its input is a run as JSON; see `main`.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from contextlib import suppress
from importlib import import_module

IMPORTED = (
    "numpy",
    "numba",
    "scipy.special",
    "scipy.stats",
    "sqlalchemy",
    "pydantic",
    "jsonschema",
    "jinja2",
    "click",
    "dask",
)


def main() -> None:
    """Answer each line with the number of the process that runs it, and when that has ended with its exit code."""
    for name in (*IMPORTED, "pytest"):
        with suppress(ImportError):
            import_module(name)
    for line in sys.stdin.buffer:
        pid = os.fork()
        if not pid:
            run_pytest(**json.loads(line))
        _answer(pid)
        _answer(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def run_pytest(arguments: list[str], output: str, limits: dict[str, int], *, write_bytecode: bool) -> None:
    """Run pytest in this process and end it.

    Parameters
    ----------
    arguments : list of str
        Of the command line.
    output : str
        File to write to.
    limits : dict of str to int
        Limits of the process, such as RLIMIT_CPU.
    write_bytecode : bool
        Keep the compiled modules.
    """
    for name, limit in limits.items():
        resource.setrlimit(getattr(resource, name), (limit, limit + 5))  # a signal says so before the process is killed
    with open(os.devnull, "rb") as nothing, open(output, "wb") as file:  # noqa: PTH123  # before anything is imported
        os.dup2(nothing.fileno(), 0)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.dont_write_bytecode = not write_bytecode
    raise SystemExit(import_module("pytest").main(arguments))


def _answer(number: int) -> None:
    print(number, flush=True)


if __name__ == "__main__":
    main()
