"""The command line: reads options, wires nothing twice, turns errors into one line and a status."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import click

from sigdask.cli import comparing, planning, storing, tools
from sigdask.cli.logs import columns
from sigdask.cli.showing import LOG
from sigdask.errors import SigdaskError
from sigdask.report.layout import fitted

INTERRUPTED = 3


def main() -> NoReturn:
    """Run a command; leave with its exit status and never with a traceback."""
    from sigdask.cli.logs import to_stderr

    to_stderr(in_json="--log-json" in sys.argv)
    try:
        status = commands.main(standalone_mode=False)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the work is done: its status is what counts now
    except SigdaskError as error:
        _fail(str(error), error.exit_status)
    except click.exceptions.Abort:
        _fail("interrupted", INTERRUPTED)
    except click.ClickException as error:
        _fail(f"{error.format_message()} (see sigdask --help)", 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # the last resort: a line instead of a traceback
        if os.environ.get("SIGDASK_DEBUG"):
            raise
        _fail(f"internal error, please report it (SIGDASK_DEBUG=1 shows where): {type(error).__name__}: {error}", 70)
    sys.exit(status or 0)


def _fail(message: str, status: int) -> NoReturn:
    LOG.error(message, extra={"status": status})
    sys.exit(status)


class Help(click.HelpFormatter):
    """Help that fits terminals narrower than click's least width."""

    def getvalue(self) -> str:
        """Return the text."""
        return fitted(super().getvalue(), columns(sys.stdout))


class Context(click.Context):
    """Commands show their help by `Help`."""

    formatter_class = Help


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="sigdask", prog_name="sigdask")
@click.option("--log-json", is_flag=True, help="Log lines as JSON, one object a line; also SIGDASK_LOG=json.")
def commands(*, log_json: bool) -> None:
    """Is a difference in score real? Approximate-randomization tests at any scale, on dask."""
    from sigdask.cli.logs import to_stderr

    to_stderr(in_json=log_json)


for _command in (
    comparing.compare,
    *(planning.check, planning.run, planning.submit, planning.status, planning.history, planning.report),
    storing.store,
    *(tools.metrics, tools.formats, tools.verify, tools.certificates),
):
    commands.add_command(_command)
for _command in (commands, *commands.commands.values(), *storing.store.commands.values()):
    _command.context_class = Context
