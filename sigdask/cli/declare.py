"""Building blocks of commands: options with help and defaults, groups of options, file completion.

Options of `sigdask.options` are rendered here. Each command is one module, which declares its options in the groups
that its help shows, and has the function that runs it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
from click.core import augment_usage_errors

from sigdask import options as declared
from sigdask.cli.streams import be_quiet
from sigdask.cli.write import add_outputs, check_overwriting
from sigdask.interface import get_flag
from sigdask.options import Option, list_options
from sigdask.report.files import format_endings

Decorator = Callable[[Any], Any]
NO_GROUPS: Mapping[str, Sequence[Decorator]] = MappingProxyType({})


def parse_integer(text: str) -> int:
    """Parse an integer, also one written as 1e6."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number.is_integer():
        raise click.BadParameter(f"{text!r} is not a valid integer, such as 1000000 or 1e6")
    return int(number)


NUMBERS: dict[str, Any] = {"workers": click.IntRange(min=1), "seed": int, "digits": int}
"""Option types whose numbers may not be written as 1e6."""


def options(declaration: type, *names: str) -> tuple[Decorator, ...]:
    """Return the decorators that add options to a command, with all that `sigdask.options` declares of them.

    Parameters
    ----------
    declaration : type
        A typed dictionary of options.
    *names : str
        Names of options. By default all.
    """
    found = list_options(declaration)
    return tuple(_build_decorator(found[name]) for name in names or found)


def _build_decorator(option: Option) -> Decorator:
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
    sentences = [option.help, "May be repeated." if option.more is None and option.repeats else option.more]
    default = f"  [default: {option.otherwise}]" if option.otherwise else ""
    return click.option(*flags, option.name, **settings, help=" ".join(filter(None, sentences)) + default)


def option(spelling: str, text: str, dest: str | None = None, **settings: Any) -> Decorator:
    """Return the decorator that adds an option, spelt as in `-o,--output FILE`. Without a metavariable it is a flag."""
    flags, _, metavar = spelling.partition(" ")
    kind = {"metavar": metavar} if metavar else {"is_flag": True}
    shown = {"show_default": True} if settings.get("default") else {}
    return click.option(*flags.split(","), *filter(None, [dest]), help=text, **{**kind, **shown, **settings})


def _set_quiet(_: click.Context, __: click.Parameter, is_quiet: bool) -> None:
    if is_quiet:
        be_quiet()


QUIET = option("-q,--quiet", "Print only results, warnings and errors.", expose_value=False, callback=_set_quiet)
VERBOSE = option("-v,--verbose", "Show details of each p-value: runs, checks, and correlation of the systems.")
GOLD = option("--gold FILE", "Gold-standard file: labels, references or relevance judgements.")
FORMAT_HELP = "Format of the files, see `sigdask list formats`. Its options follow its name: table:sheet=NAME,decimal=,"
FORMAT = option("--format FORMAT", FORMAT_HELP, dest="format_", default="auto")
STORE = option("--store FILE|URL", "Database to use instead of the plan's.")
PLAN_NAME = option("--plan NAME", dest="name", text="Name of the plan, if the store has several.")
WORKERS = option("--workers N", "Threads or processes to start.", type=click.IntRange(min=1))


def output(*formats: str) -> tuple[Decorator, ...]:
    """Return the decorators that add `-o` for files of some formats, and `--json`; a command gets them as `outputs`."""
    text = f"Write the results in the format of FILE's ending: {format_endings(formats)}. May be repeated."
    settings: dict[str, Any] = {"multiple": True, "expose_value": False, "callback": partial(add_outputs, formats)}
    json = option("--json FILE|-", "Write the results as JSON.", **settings)
    return (option("-o,--output FILE", text, **settings), *([json] if "json" in formats else []))


def everything(what: str) -> Decorator:
    """Return the decorator that adds `--all`; a command gets it as `everything`."""
    return option("--all", f"Show every {what}.", dest="everything")


FILES = (GOLD, FORMAT, *options(declared.ReadingOptions))
"""The files of a test set."""

NAME = option("--name TESTSET", "Test-set name. Like the seed, it determines the random trials.", default="")
TEST = options(declared.TestOptions)
ADJUST = options(declared.FamilyOptions, "adjust")
RUN = options(declared.RunOptions)
CACHE = options(declared.SelectionOptions, "cache")
PLAN_OUTPUT = (
    *output("json", "csv", "parquet", "markdown", "latex", "html", "text"), VERBOSE,
    everything("comparison, test set and change"),
)  # fmt: skip
WHERE = click.argument("where", metavar="PLAN.toml|STORE")

FILE_METAVARS = re.compile("FILE|SYSTEM|PLAN|STORE|DIR|CANDIDATES|RESULTS")
"""Metavariables of options that take files and folders."""


class Command(click.Command):
    """A command with groups of options and examples in its help, of whose options none is silently overwritten.

    Attributes
    ----------
    groups : mapping of str to int
        How many options each group has, in the order of their declarations; empty without groups.
    examples : sequence of str
        Lines of commands.
    """

    def __init__(self, *arguments: Any, groups: Mapping[str, int], examples: Sequence[str], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.groups, self.examples = groups, examples
        for param in self.params:
            if param.type is click.STRING and FILE_METAVARS.search(param.metavar or ""):
                param.type = click.Path()  # whose names shells complete

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; refuse an option of one value that is given several times, of which click keeps one."""
        if ctx.resilient_parsing:  # in shell completion
            return super().parse_args(ctx, args)
        try:
            with augment_usage_errors(ctx):
                given = self.make_parser(ctx).parse_args([*args])[2]
        except click.NoSuchOption as error:
            if error.option_name.lstrip("-") in declared.PRINT_OPTIONS:
                raise click.UsageError(f"{error.option_name} is an option of `sigdask show RESULTS`", ctx) from None
            raise
        for param in given:
            if isinstance(param, click.Option) and not (param.multiple or param.is_flag) and given.count(param) > 1:
                raise click.UsageError(f"{'/'.join(param.opts)} is given twice, but takes one value", ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, unless it would write a file that the command line also names for something else."""
        named = [ctx.params[p.name] for p in self.params if isinstance(p.type, click.Path) and p.name in ctx.params]
        words = chain.from_iterable(value if isinstance(value, tuple) else [str(value)] for value in named if value)
        files = {Path(part): "named for something else" for word in words for part in (word, word.partition("=")[2])}
        check_overwriting(ctx.params.get("outputs", ()), files)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups of options, and the examples."""
        if not self.groups:
            super().format_options(ctx, formatter)
            return
        options = (param for param in self.get_params(ctx) if isinstance(param, click.Option))
        records = filter(None, [option.get_help_record(ctx) for option in options])
        for title, n in {**self.groups, "Help": None}.items():
            with formatter.section(title):
                formatter.write_dl([*islice(records, n)])
        with formatter.section("Examples"):
            formatter.write("".join(f"{'':{formatter.current_indent}}{line}\n" for line in self.examples))


def command(
    *decorators: Decorator, groups: Mapping[str, Sequence[Decorator]] = NO_GROUPS, examples: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Command]:
    """Return a decorator that makes a function the command of its module, with options in groups or without."""
    grouped = [*chain.from_iterable(groups.values())]
    sizes = {title: len(group) for title, group in groups.items()}

    def build(function: Callable[..., Any]) -> Command:
        name = function.__module__.rpartition(".")[2]
        for decorate in reversed([*decorators, *grouped]):
            function = decorate(function)
        settings: dict[str, Any] = {"groups": sizes, "examples": examples}
        return click.command(name, Command, **settings)(function)

    return build
