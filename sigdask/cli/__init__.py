"""The command line: runs a command and turns errors into one line and an exit status."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, NoReturn

import click

from sigdask.cli import streams
from sigdask.cli.declared import compare, lookup, nights, results
from sigdask.cli.declared.options import HELP_NAMES, complete_files
from sigdask.cli.streams import LOG, WORDS, log_to_stderr
from sigdask.errors import SigdaskError, UnfinishedError
from sigdask.interface import set_interface, use_interface

INTERRUPTED = 3

COMPLETION_VARIABLE = "_SIGDASK_COMPLETE"
"""Environment variable that a shell sets for completion. click answers it."""


def main() -> NoReturn:
    """Run a command; leave with its exit status and never with a traceback."""
    if COMPLETION_VARIABLE in os.environ:  # a shell reads what is written, byte by byte
        sys.exit(commands.main(prog_name="sigdask", complete_var=COMPLETION_VARIABLE))
    streams.protect_streams()
    log_to_stderr()
    set_interface("command line")
    try:
        status = _run_command()
    finally:
        set_interface("python")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is said: Ctrl-C ends it at once
    if lost := streams.describe_lost_output():
        _log_error(UnfinishedError(f"standard output: cannot be written ({lost})"), status)
        status = status or UnfinishedError.exit_status
    sys.stderr.flush()
    sys.exit(status)


def _run_command() -> int:
    """Run a command and return its exit status."""
    try:
        status = commands.main(prog_name="sigdask", standalone_mode=False)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the work is done: its status is what counts now
    except SigdaskError as error:
        return _log_error(error, error.exit_status)
    except click.exceptions.Abort:
        return _log_error("interrupted", INTERRUPTED)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)  # click gives none where an option lacks its argument
        named = next((f"sigdask {word}" for word in sys.argv[1:] if word in commands.commands), "sigdask")
        return _log_error(
            f"{error.format_message().removesuffix('.')} (see {context.command_path if context else named} --help)", 2
        )
    except Exception as error:  # the last resort: a line instead of a traceback
        if os.environ.get("SIGDASK_DEBUG"):
            raise
        return _log_error(
            f"internal error, please report it (SIGDASK_DEBUG=1 shows where): {type(error).__name__}: {error}", 70
        )
    return status or 0


def _log_error(message: object, status: int) -> int:
    LOG.error(message, extra={"status": status})
    return status


class Commands(click.Group):
    """The group of all commands. It reports a lost connection instead of ending silently, as click would."""

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups of commands with the full first sentence of each."""
        for title, group in COMMAND_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(str(command.name), command.get_short_help_str(1000)) for command in group])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them for pages that show the command that made them."""
        ctx.meta[WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            with use_interface("command line"):
                return super().invoke(ctx)
        except BrokenPipeError as error:
            raise UnfinishedError(f"a connection was lost ({error})") from None


def refuse_repeats(command: click.Command) -> None:
    """Make a command refuse an option of one value that is given several times, of which click would keep the last."""
    parse = command.parse_args

    def parse_args(ctx: click.Context, args: list[str]) -> list[str]:
        given = [] if ctx.resilient_parsing else command.make_parser(ctx).parse_args([*args])[2]  # in shell completion
        for param in given:
            if isinstance(param, click.Option) and not (param.multiple or param.is_flag) and given.count(param) > 1:
                remedy = "; join its values with commas" if ",..." in (param.metavar or "") else ""
                if param.name == "gold" and any(other.name == "references" for other in command.params):
                    remedy = "; name further references with --reference"
                raise click.UsageError(f"{'/'.join(param.opts)} is given twice, but takes one value{remedy}", ctx)
        return parse(ctx, args)

    command.parse_args = parse_args  # type: ignore[method-assign]


@click.group(cls=Commands, invoke_without_command=True, context_settings={**HELP_NAMES, "max_content_width": 110})
@click.version_option(None, "-V", "--version", package_name="sigdask", prog_name="sigdask")
@click.pass_context
def commands(context: click.Context) -> None:
    """Is a difference in score real? Approximate-randomization tests at any scale, on dask."""
    log_to_stderr()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


COMMAND_GROUPS: dict[str, tuple[click.Command, ...]] = {
    "Compare": (compare.compare, compare.meta, compare.rankings, compare.independence, compare.power),
    "Results": (results.show, results.reproduce, results.cite),
    "Every night": (
        nights.init, nights.check, nights.run, nights.submit, nights.status, nights.history, nights.report,
    ),
    "Look up": (lookup.list_, lookup.read, lookup.verify),
}  # fmt: skip
"""The commands in the groups of the help."""

for _command in (command for group in COMMAND_GROUPS.values() for command in group):
    commands.add_command(_command)
for _command in (commands, *commands.commands.values()):
    refuse_repeats(_command)
    complete_files(_command)
