"""Building blocks of command declarations: options with help and defaults, groups of options, file completion.

Those of a command with many are declared in groups, as its help shows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import wraps
from pkgutil import resolve_name
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from sigdask.options import OPTIONS, POWER_OPTIONS, PRINT_OPTIONS, READING_OPTIONS, Option

Command = TypeVar("Command", bound=Callable[..., Any])

DECLARED = {**OPTIONS, **READING_OPTIONS, **POWER_OPTIONS, **PRINT_OPTIONS}


def option(
    flag: str,
    name: str | None = None,
    *,
    long: str = "",
    more: str = "",
    of: Mapping[str, Option] = DECLARED,
    **settings: Any,
) -> Callable[[Command], Command]:
    """Return the decorator that adds an option to a command, with help and default as `sigdask.options` declares it.

    Parameters
    ----------
    flag : str
        As it is written: `--trials`.
    name : str, optional
        What it is declared as; by default as the flag.
    long : str
        A longer flag for the same.
    more : str
        A further sentence for this command.
    of : mapping of str to Option
        The declarations among which it is.
    **settings
        Of `click.option`: metavar, multiple, type.
    """
    name = name or flag.lstrip("-").replace("-", "_")
    declaration = of[name]
    if declaration.choices:
        settings.setdefault("type", click.Choice(declaration.choices))
    if declaration.default is not None and not settings.get("multiple") and "flag_value" not in settings:
        settings.setdefault("default", declaration.default)
        settings.setdefault("show_default", declaration.default is not False)
    return click.option(*filter(None, (flag, long)), name, help=_build_help(declaration, more), **settings)


def _build_help(declaration: Option, more: str) -> str:
    default = f"  [default: {declaration.otherwise}]" if declaration.otherwise else ""
    return f"{declaration.help}{' ' if more else ''}{more}{default}"


TABLE_AND_LAYOUT_OPTIONS = (
    click.option("--markdown", "markdown_file", metavar="FILE|-", help="Write tables for papers as Markdown."),
    click.option("--latex", "latex_file", metavar="FILE|-", help="Write tables for papers as LaTeX with booktabs."),
    option("--layout"),
    option("--digits", type=int, metavar="N"),
    option("--percent", is_flag=True),
)
"""Options of tables for papers."""

TABLE_OPTIONS = TABLE_AND_LAYOUT_OPTIONS[:2]
"""Options of commands whose tables have one layout."""


FIGURE_FORMATS = "svg,pdf"
"""Formats of figures, unless others are asked for."""

FIGURE_OPTIONS = (
    click.option(
        "--figures", metavar="DIR", help="Draw all figures that fit what was found into this folder: sigdask[report]."
    ),
    click.option(
        "--figure-format", default=FIGURE_FORMATS, show_default=True, metavar="FORMAT,...",
        help="Of --figures: svg, pdf, png.",
    ),
)  # fmt: skip


def add_table_options(command: Command) -> Command:
    """Give a command the options of tables for papers."""
    for add in reversed(TABLE_AND_LAYOUT_OPTIONS):
        command = add(command)
    return command


def add_figure_options(command: Command) -> Command:
    """Give a command the options of figures."""
    for add in reversed(FIGURE_OPTIONS):
        command = add(command)
    return command


def run_by(address: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a declared command run a function of another module, which is imported when the command runs.

    Parameters
    ----------
    address : str
        The function, `module:name`.
    """

    def declare(declaration: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(declaration)
        def run(*arguments: Any, **options: Any) -> Any:
            return resolve_name(address)(*arguments, **options)

        return run

    return declare


def parse_integer(text: str) -> int:
    """Parse an integer, also one written as 1e6."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or number.adjusted() > MOST_DIGITS or number != int(number):
        raise click.BadParameter(f"{text!r} is not a valid integer, such as 1000000 or 1e6")
    return int(number)


MOST_DIGITS = 30
"""Of a number that is made of its digits."""


FILE_METAVARS = re.compile("FILE|SYSTEM|PLAN|STORE|DIR|CANDIDATES")
"""What metavars of files and folders say."""


class File(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.3
    """The type of arguments that name a file or folder. Any text is valid, and shells complete it as a file name."""

    name = "file"

    def shell_complete(self, _context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return an item that lets the shell complete a file name."""
        return [CompletionItem(incomplete, type="file")]


def complete_files(command: click.Command) -> None:
    """Make shells complete file names for those parameters of a command that name files."""
    for param in command.params:
        if param.type is click.STRING and FILE_METAVARS.search(param.metavar or ""):
            param.type = File()


HELP_NAMES = {"help_option_names": ["-h", "--help"]}
"""Settings of click contexts: the names of the option that shows help."""


class GroupedCommand(click.Command):
    """A command whose help shows options in groups, and examples.

    Attributes
    ----------
    groups : mapping of str to int
        How many options each has, in the order of their declarations.
    examples : sequence of str
        Lines of commands.
    """

    groups: Mapping[str, int]
    examples: Sequence[str]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups of options, the help option and the examples."""
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        records = [record for parameter in options if (record := parameter.get_help_record(ctx)) is not None]
        for title, n in self.groups.items():
            with formatter.section(title):
                formatter.write_dl(records[:n])
            records = records[n:]
        with formatter.section("Help"):
            formatter.write_dl(records)
        with formatter.section("Examples"):
            formatter.write("".join(f"{'':{formatter.current_indent}}{line}\n" for line in self.examples))


def grouped_command(
    groups: Mapping[str, Sequence[Callable[[Any], Any]]], examples: Sequence[str]
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a function a command with options in groups and examples in its help.

    Parameters
    ----------
    groups : mapping of str to sequence of decorators
        Title to options.
    examples : sequence of str
        Lines of commands.
    """

    def build(function: Callable[..., Any]) -> click.Command:
        for declared in reversed([option for group in groups.values() for option in group]):
            function = declared(function)
        command = click.command(cls=GroupedCommand, context_settings=HELP_NAMES)(function)
        command.groups, command.examples = {title: len(group) for title, group in groups.items()}, examples
        return command

    return build
