"""Building blocks of command declarations: options with help and defaults, groups of options, file completion.

Commands with many options declare them in the groups that their help shows.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import wraps
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from sigdask.options import (
    CsvOptions,
    FigureStyleOptions,
    JsonOptions,
    Option,
    TableLayoutOptions,
    list_options,
    suggest_choice,
)

Command = TypeVar("Command", bound=Callable[..., Any])


def parse_integer(text: str) -> int:
    """Parse an integer, also one written as 1e6."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or number.adjusted() > MAX_DIGITS or number != int(number):
        raise click.BadParameter(f"{text!r} is not a valid integer, such as 1000000 or 1e6")
    return int(number)


class NumberType(click.types.FloatParamType):
    """The type of real numbers, with an error that shows how to write one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number, such as 0.05", param, ctx)


MAX_DIGITS = 30
"""Maximum number of digits of a whole number."""


NUMBERS: dict[str, Any] = {"workers": click.IntRange(min=1), "seed": int, "digits": int}
"""Option types whose numbers may not be written as 1e6."""

KINDS: dict[object, Any] = {int: parse_integer, float: NumberType()}
"""Other option types."""

Decorators = tuple[Callable[[Any], Any], ...]


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


class ExplainedChoice(click.Choice):  # type: ignore[type-arg]  # click 8.1 has no generic types
    """A choice whose error has a further sentence."""

    def __init__(self, choices: Sequence[str], why: str) -> None:
        super().__init__(choices)
        self.why = why

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the choice, or raise the error of click with the sentence."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            hint = suggest_choice(str(value), [*map(str, self.choices)]) or self.why
            if not hint:
                raise
            raise click.BadParameter(f"{error.message.removesuffix('.')}{hint}", ctx, param) from None


def _build_decorator(option: Option, more: str | None = None) -> Callable[[Any], Any]:
    flags = option.flag.split(",") if option.flag else [f"--{option.name.replace('_', '-')}"]
    if option.negative:
        return click.option(f"--no-{option.name.replace('_', '-')}", is_flag=True, help=option.negative)
    settings: dict[str, Any] = {"metavar": option.metavar or None, "multiple": option.repeats}
    if option.choices:
        settings["type"] = ExplainedChoice(option.choices, option.why)
    elif option.kind is bool:
        settings["is_flag"] = True
    elif option.kind is not object:
        settings["type"] = NUMBERS.get(option.name, KINDS.get(option.kind, option.kind))
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
    "-v",
    "--verbose",
    is_flag=True,
    help=("Show details of each p-value: runs, checks, and correlation of the systems."),
)


GOLD = click.option(
    "--gold",
    "--qrels",
    "--ref",
    "gold",
    metavar="FILE",
    help=("Gold-standard file: labels, references or relevance judgements."),
)
FORMAT = click.option(
    "--format", "format_", default="auto", show_default=True, help="Format of the files; see `sigdask formats`."
)


def declare_file(flag: str, what: str, metavar: str = "FILE|-") -> Callable[[Any], Any]:
    """Return the decorator that adds the option of a file to write; a command gets it as `json_file` and the like."""
    return click.option(f"--{flag}", f"{flag}_file", metavar=metavar, help=what)


FORMAT_BY_ENDING = {
    ".json": "json", ".csv": "csv", ".parquet": "parquet", ".md": "markdown", ".tex": "latex", ".bib": "bibtex",
    ".html": "html", ".htm": "html", ".txt": "text",
}  # fmt: skip
"""Format of an output file by its ending."""


def format_endings(names: Collection[str]) -> str:
    """Return the endings of files of some kinds, as text."""
    return ", ".join(ending for ending, name in FORMAT_BY_ENDING.items() if name in names)


def declare_output(*names: str) -> Callable[[Any], Any]:
    """Return the decorator that adds `-o` for files of some kinds; a command gets them as `outputs`."""
    text = f"Write the results in the format of FILE's ending: {format_endings(names)}. May be repeated."
    return click.option("-o", "--output", "outputs", multiple=True, metavar="FILE", help=text)


def declare_all(what: str) -> Callable[[Any], Any]:
    """Return the decorator that adds `--all`; a command gets it as `everything`."""
    return click.option("--all", "everything", is_flag=True, help=f"Show every {what}.")


TABLE_OPTIONS = (
    declare_file("markdown", "Write tables for papers as Markdown."),
    declare_file("latex", "Write tables for papers as LaTeX with booktabs."),
)
"""Options of commands that print tables of one layout."""

TABLE_AND_LAYOUT_OPTIONS = (*TABLE_OPTIONS, *declare_options(TableLayoutOptions))


JSON_OPTIONS = declare_options(JsonOptions)

CSV_OPTIONS = declare_options(CsvOptions)


REPORT_FORMATS = ("json", "csv", "parquet", "markdown", "latex", "html", "text")
"""Formats that `run` and `report` write for a plan."""

FIGURE_FORMATS = "svg,pdf"
"""Default formats of figures."""

FIGURE_OPTIONS = (
    click.option(
        "--figures", metavar="DIR", help="Draw all figures that fit the results into this folder. Needs "
            "sigdask[report]."
    ),
    click.option(
        "--figure-format", default=FIGURE_FORMATS, show_default=True, metavar="FORMAT,...",
        help="Formats of --figures: svg, pdf, png.",
    ),
    *declare_options(FigureStyleOptions),
)  # fmt: skip


def add_options(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that gives a command some options, in this order."""

    def add(command: Command) -> Command:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return add


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
            gc.disable()  # modules and their functions live as long as the process
            command = resolve_name(address)
            gc.freeze()
            gc.enable()
            return command(*arguments, **options)

        return run

    return declare


FILE_METAVARS = re.compile("FILE|SYSTEM|PLAN|STORE|DIR|CANDIDATES")
"""Metavariables of options that take files and folders."""


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
"""Context settings of click: the names of the help option."""


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
        function = add_options(*(option for group in groups.values() for option in group))(function)
        command = click.command(cls=GroupedCommand, context_settings=HELP_NAMES)(function)
        command.groups, command.examples = {title: len(group) for title, group in groups.items()}, examples
        return command

    return build
