"""The command line: runs a command and turns errors into one line and an exit status."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import click

from sigdask.cli.streams import LOG, log_to_stderr
from sigdask.errors import SigdaskError, UnfinishedError
from sigdask.interface import use_interface

INTERRUPTED = 3

GARBAGE_THRESHOLD = 500_000
"""New objects after which Python looks for garbage. With its 700 a short comparison spends 7 % of its time on that, as
the imported libraries create many objects, all of which stay; with this number 0.6 %, in the same memory.
"""

MALLOC_OPTIONS = {-3: 1 << 20, -1: 64 << 20, -8: 1}
"""Options of `mallopt`: arrays of 1 MiB go back to the system when they are free (M_MMAP_THRESHOLD), threads share one
arena (M_ARENA_MAX), and 64 MiB of free memory are kept (M_TRIM_THRESHOLD). Half a million comparisons to JSON then take
593 MiB and 20 s; without these options 680 MiB and 19 s, without the last one 585 MiB and 25 s.
"""


def main() -> NoReturn:
    """Run a command; leave with its exit status and never with a traceback."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    with suppress(AttributeError):  # only glibc has it
        for option in MALLOC_OPTIONS.items():
            ctypes.CDLL(None).mallopt(*option)
    log_to_stderr()
    status = _run_command()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the work is done: its status is what counts now
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is said: Ctrl-C ends it at once
    gc.freeze()  # Python looks for garbage once more when it ends, which takes a fifth of a short command
    sys.exit(status)


def _run_command() -> int:
    """Run a command and return its exit status."""
    try:
        status = commands.main(prog_name="sigdask", standalone_mode=False)
    except SigdaskError as error:
        return _log_error(error, error.exit_status)
    except click.exceptions.Abort:
        return _log_error("interrupted", INTERRUPTED)
    except click.ClickException as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "sigdask")
        message = f"{error.format_message().removesuffix('.')} (see {command} --help)"
        return _log_error(message.replace("\n\t", " "), 2)
    except Exception as error:  # the last resort: a line instead of a traceback
        if os.environ.get("SIGDASK_DEBUG"):
            raise
        return _log_error(
            f"internal error, please report it (SIGDASK_DEBUG=1 shows where): {type(error).__name__}: {error}", 70
        )
    return status or 0


def _log_error(message: object, status: int) -> int:
    LOG.error(message)
    return status


COMMAND_GROUPS = {
    "Compare": {
        "compare": "Compare systems on one test set.",
        "meta": "Compare evaluation metrics by their agreement with human judgements.",
        "rankings": "Evaluate rankings of candidates: precision of the n best, and which measure is better.",
        "independence": "Test whether one labelling of items is independent of another.",
        "power": "Find how many units a test needs to detect a difference, or which difference it can detect.",
    },
    "Results": {
        "show": "Show stored results: print them, or write tables, pages and figures.",
        "reproduce": "Repeat tests from their results or signature, and check that the results are the same.",
        "cite": "Print a methods paragraph for a paper, and BibTeX entries of the works that it cites.",
    },
    "Every night": {
        "init": "Write a plan for the files of a folder or for the files of systems.",
        "check": "Validate a plan and read its data. Nothing is compared.",
        "run": "Run a plan: count the missing trials, and report.",
        "submit": "Run a plan as a batch job on Slurm, which is queued again until the plan is done.",
        "status": "Show the progress of a plan, during a run or after it.",
        "history": "List the runs of a plan.",
        "report": "Show the results of a plan, and what changed since the previous run.",
    },
    "Look up": {
        "list": "List metrics, file formats or example data, or copy an example.",
        "read": "Show how files are read: format, columns, systems and first items.",
        "verify": "Check the program on this machine: random streams, Yeh's example, exact p, and a cluster.",
    },
}  # fmt: skip
"""The commands in the groups of the help. Each is the object `command` of the module of its name."""


class Commands(click.Group):
    """The group of all commands, each of which is imported when it is used."""

    def list_commands(self, _: click.Context | None = None) -> list[str]:
        """Return the names of all commands."""
        return [name for group in COMMAND_GROUPS.values() for name in group]

    def get_command(self, _: click.Context | None, cmd_name: str) -> click.Command | None:
        """Return a command, whose module is imported only then."""
        if cmd_name not in self.list_commands():
            return None
        command: click.Command = import_module(f"sigdask.cli.{cmd_name}").command
        return command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups of commands with a sentence on each."""
        for title, group in COMMAND_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([*group.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            with use_interface("command line"):
                return super().invoke(ctx)
        except OSError as error:  # click would end silently if it is a lost connection
            raise UnfinishedError(str(error)) from error


SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(cls=Commands, invoke_without_command=True, context_settings=SETTINGS)
@click.version_option(None, "-V", "--version", package_name="sigdask", prog_name="sigdask")
@click.pass_context
def commands(context: click.Context) -> None:
    """Is a difference in score real? Approximate-randomization tests at any scale, on dask."""
    log_to_stderr()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
