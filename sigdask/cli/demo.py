"""`sigdask examples` copies example data; `sigdask demo` explains a comparison of example data step by step."""

from __future__ import annotations

import contextlib
import shlex
import sys
import tomllib
from importlib.resources import files
from itertools import islice
from pathlib import Path

import click

from sigdask.cli.output.streams import print_text, terminal_columns
from sigdask.errors import InputError
from sigdask.examples import EXAMPLES, copy_example

TEXT_COLUMNS = 80
"""Maximum width of the text between commands."""


def examples(name: str | None, folder: Path | None) -> None:
    """Print the example data sets, or copy the files of one."""
    if name is None:
        for example, description in EXAMPLES.items():
            print_text(f"{example:{_NAME_COLUMNS}}{description}", hang=_NAME_COLUMNS)
        return
    target = folder or Path(name)
    if str(target) in EXAMPLES and str(target) != name:
        raise InputError(f"{target} is the name of another example; copy one example at a time")
    print_text(f"{target}: {_list_files(copy_example(name, target))}")


_NAME_COLUMNS = 13


def _list_files(paths: list[str]) -> str:
    """Return text that lists the files and subfolders of a folder."""
    tops = {Path(path).parts[0]: len(Path(path).parts) > 1 for path in paths}
    return ", ".join(f"{top}/" if is_folder else top for top, is_folder in tops.items())


_SCRIPT = tomllib.loads(files(__package__).joinpath("demo.toml").read_text(encoding="utf-8"))
STEPS: list[dict[str, str]] = _SCRIPT["step"]
"""Commands of the demo, each with the reason to run it and an explanation of its output."""

NEXT: str = _SCRIPT["next"]
"""Text after the last step."""


def demo(context: click.Context, *, yes: bool, keep: Path | None) -> None:
    """Run a comparison of real taggers step by step, with explanations."""
    from tempfile import TemporaryDirectory

    asks = not yes and sys.stdin.isatty() and sys.stdout.isatty()
    program = context.find_root().command
    with TemporaryDirectory() as folder:
        home = keep or Path(folder)
        copy_example("tagging", home)
        for number, step in enumerate(STEPS, start=1):
            _print_wrapped(f"{number}. {step['reason']}")
            print_text(f"\n$ {step['command']}\n")
            with contextlib.chdir(home):
                _run_command(step["command"], program)
            print_text("")
            _print_wrapped(step["explanation"])
            print_text("")
            if asks:
                click.prompt("Enter continues, Ctrl-C ends", default="", show_default=False, prompt_suffix=" ")
                print_text("")
    print_text(NEXT)
    if keep:
        print_text(f"\nThe files of this example are in {keep}.")


def _run_command(command: str, program: click.Command) -> None:
    """Run a command of the demo: `head` or a sigdask command, as a shell would."""
    name, *arguments = shlex.split(command.replace("\\\n", " "))
    if name == "head":
        with Path(arguments[1]).open(encoding="utf-8") as file:
            for line in islice(file, -int(arguments[0])):
                print_text(line.rstrip("\n"))
    elif status := program.main(arguments, prog_name=name, standalone_mode=False):
        raise InputError(f"{command}: ended with status {status}")


def _print_wrapped(text: str) -> None:
    """Print a text wrapped to a width that is easy to read."""
    from textwrap import fill

    n_columns = min(TEXT_COLUMNS, terminal_columns(sys.stdout) or TEXT_COLUMNS)
    print_text(fill(text, n_columns, break_on_hyphens=False, break_long_words=False))
