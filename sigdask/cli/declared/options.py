"""Building blocks of command declarations: options with help and defaults, groups of options, file completion.

Options of `sigdask.options` are rendered here. Commands with many options declare them in the groups that their help
shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import wraps
from itertools import chain, islice
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, TypeVar

import click

from sigdask.interface import get_flag
from sigdask.options import Option, list_options

Command = TypeVar("Command", bound=Callable[..., Any])
Decorators = tuple[Callable[[Any], Any], ...]

MAX_DIGITS = 30
"""Maximum number of digits of a whole number."""


def parse_integer(text: str) -> int:
    """Parse an integer, also one written as 1e6."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or number.adjusted() > MAX_DIGITS or number != int(number):
        raise click.BadParameter(f"{text!r} is not a valid integer, such as 1000000 or 1e6")
    return int(number)


NUMBERS: dict[str, Any] = {"workers": click.IntRange(min=1), "seed": int, "digits": int}
"""Option types whose numbers may not be written as 1e6."""


def declare_options(declaration: type, *names: str, more: Mapping[str, str] = MappingProxyType({})) -> Decorators:
    """Return the decorators that add options to a command, with all that `sigdask.options` declares of them.

    Parameters
    ----------
    declaration : type
        A typed dictionary of options.
    *names : str
        Names of options. By default all.
    more : mapping of str to str
        Further sentences for this command, by the option's name.
    """
    declared = list_options(declaration)
    return tuple(_build_decorator(declared[name], more.get(name)) for name in names or declared)


def _build_decorator(option: Option, more: str | None = None) -> Callable[[Any], Any]:
    flag = get_flag(option.name)
    if option.negative:
        return click.option(f"--no-{flag[2:]}", is_flag=True, help=option.negative)
    is_on = option.kind is bool and option.default is True
    flags = [f"{flag}/--no-{flag[2:]}" if is_on else flag, *filter(None, [option.short])]
    settings: dict[str, Any] = {"metavar": option.metavar or None, "multiple": option.repeats}
    if option.choices:
        settings["type"] = click.Choice(option.choices)
    elif option.kind is bool:
        settings["is_flag"] = True
    elif option.kind is not object:
        settings["type"] = NUMBERS.get(option.name, parse_integer if option.kind is int else option.kind)
    if option.repeats:
        settings["nargs"] = len(option.metavar.split())
    elif option.default is not None:
        settings |= {"default": option.default, "show_default": option.default is not False}
    more = option.more if more is None else more
    sentences = [option.help, "May be repeated." if more is None and option.repeats else more]
    default = f"  [default: {option.otherwise}]" if option.otherwise else ""
    return click.option(*flags, option.name, **settings, help=" ".join(filter(None, sentences)) + default)


QUIET = click.option("-q", "--quiet", is_flag=True, help="Print only results, warnings and errors.")
VERBOSE = click.option(
    "-v", "--verbose", is_flag=True, help="Show details of each p-value: runs, checks, and correlation of the systems."
)
GOLD = click.option(
    "--gold", metavar="FILE",
    help="Gold-standard file: labels, references or relevance judgements.",
)  # fmt: skip
FORMAT = click.option(
    "--format", "format_", default="auto", show_default=True,
    help="Format of the files, see `sigdask list formats`. Its options follow its name: table:sheet=NAME,decimal=,",
)  # fmt: skip
STORE = click.option("--store", metavar="FILE|URL", help="Database to use instead of the plan's.")
PLAN_NAME = click.option("--plan", "name", help="Name of the plan, if the store has several.")
WORKERS = click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Threads or processes to start.")
JSON = click.option("--json", "json_file", metavar="FILE|-", help="Write the results as JSON.")

FORMAT_BY_ENDING = {
    ".json": "json", ".csv": "csv", ".parquet": "parquet", ".md": "markdown", ".tex": "latex", ".bib": "bibtex",
    ".html": "html", ".htm": "html", ".txt": "text",
}  # fmt: skip
"""Format of an output file by its ending."""

ALL_FORMATS = tuple(dict.fromkeys(FORMAT_BY_ENDING.values()))


def format_endings(names: Collection[str]) -> str:
    """Return the endings of files of some formats, as text."""
    return ", ".join(ending for ending, name in FORMAT_BY_ENDING.items() if name in names)


def declare_output(*names: str) -> Callable[[Any], Any]:
    """Return the decorator that adds `-o` for files of some formats; a command gets them as `outputs`."""
    text = f"Write the results in the format of FILE's ending: {format_endings(names)}. May be repeated."
    return click.option("-o", "--output", "outputs", multiple=True, metavar="FILE", help=text)


def declare_all(what: str) -> Callable[[Any], Any]:
    """Return the decorator that adds `--all`; a command gets it as `everything`."""
    return click.option("--all", "everything", is_flag=True, help=f"Show every {what}.")


def add_options(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that gives a command some options, in this order."""

    def add(command: Command) -> Command:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return add


def run_by(address: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a declared command run a function of another module, `module:name`, which is imported when it runs."""

    def declare(declaration: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(declaration)
        def run(*arguments: Any, **options: Any) -> Any:
            return resolve_name(address)(*arguments, **options)

        return run

    return declare


FILE_METAVARS = re.compile("FILE|SYSTEM|PLAN|STORE|DIR|CANDIDATES|RESULTS")
"""Metavariables of options that take files and folders."""


def complete_files(command: click.Command) -> None:
    """Make shells complete file names for those parameters of a command that name files."""
    for param in command.params:
        if param.type is click.STRING and FILE_METAVARS.search(param.metavar or ""):
            param.type = click.Path()


HELP_NAMES = {"help_option_names": ["-h", "--help"]}
"""Context settings of click: the names of the help option."""


def _print_all_help(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        assert isinstance(context.command, GroupedCommand)
        context.command.shows_all = True
        click.echo(context.get_help())
        context.exit()


class GroupedCommand(click.Command):
    """A command with many options, and with examples in its help.

    Parameters
    ----------
    groups : mapping of str to int
        How many options each group has, in the order of their declarations.
    common : sequence of str
        Names of the options that most people need. `--help` shows these, `--help-all` shows all in groups.
    examples : sequence of str
        Lines of commands.
    """

    shows_all = False

    def __init__(
        self,
        *arguments: Any,
        groups: Mapping[str, int],
        common: Sequence[str],
        examples: Sequence[str],
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self._groups, self._common, self._examples = groups, common, examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the main options or all groups of options, and the examples."""
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        records = {str(option.name): record for option in options if (record := option.get_help_record(ctx))}
        names = iter(records)
        groups: dict[str, Sequence[str]] = {title: [*islice(names, n)] for title, n in self._groups.items()}
        shown = groups if self.shows_all else {"Main options": self._common}
        for title, members in (shown | {"Help": [*names]}).items():
            with formatter.section(title):
                formatter.write_dl([records[name] for name in members])
        with formatter.section("Examples"):
            formatter.write("".join(f"{'':{formatter.current_indent}}{line}\n" for line in self._examples))


def grouped_command(
    groups: Mapping[str, Decorators], common: str, examples: Sequence[str]
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a function a command with options in groups, and examples in its help.

    Parameters
    ----------
    groups : mapping of str to sequence of decorators
        Title to options.
    common : str
        Names of the options that `--help` shows.
    examples : sequence of str
        Lines of commands.
    """
    n_options = sum(map(len, groups.values()))
    help_all = click.option(
        "--help-all", is_flag=True, is_eager=True, expose_value=False, callback=_print_all_help,
        help=f"Show all {n_options} options and exit.",
    )  # fmt: skip

    def build(function: Callable[..., Any]) -> click.Command:
        function = add_options(*chain.from_iterable(groups.values()), help_all)(function)
        sizes = {title: len(group) for title, group in groups.items()}
        settings: dict[str, Any] = {
            "groups": sizes,
            "common": common.split(),
            "examples": examples,
            "context_settings": HELP_NAMES,
        }
        return click.command(cls=GroupedCommand, **settings)(function)

    return build
