"""`sigdask examples` copies example data; `sigdask demo` explains a comparison of example data step by step."""

from __future__ import annotations

import contextlib
import shlex
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import click

from sigdask.cli.output.streams import print_text, terminal_columns
from sigdask.errors import InputError
from sigdask.examples import EXAMPLES, copy_example

TEXT_COLUMNS = 80
"""Columns of the words between commands, where a terminal has as many."""


def examples(name: str | None, folder: Path | None) -> None:
    """Print the example data sets, or copy the files of one."""
    if name is None:
        for example, description in EXAMPLES.items():
            print_text(f"{example:{_NAME_COLUMNS}}{description}", hang=_NAME_COLUMNS)
        return
    target = folder or Path(name)
    print_text(f"{target}: {_list_files(copy_example(name, target))}")


_NAME_COLUMNS = 13


def _list_files(paths: list[str]) -> str:
    """Return text that lists the files and subfolders of a folder."""
    tops = {Path(path).parts[0]: len(Path(path).parts) > 1 for path in paths}
    return ", ".join(f"{top}/" if is_folder else top for top, is_folder in tops.items())


@dataclass(frozen=True, slots=True)
class DemoStep:
    """A command of the demo with the reason to run it and an explanation of its output."""

    reason: str
    command: str
    explanation: str


STEPS = (
    DemoStep(
        "Two taggers found the parts of 300 American addresses: a hidden Markov model (hmm) and a perceptron."
        " People labelled the same addresses, a word and its label a line; B- begins a part, I- goes on with"
        " it.",
        "head -7 gold.conll",
        "The taggers' files look the same, with their own labels. Is one of the two better?",
    ),
    DemoStep(
        "F1 counts whole parts (a street is right or wrong), accuracy counts single words.",
        "sigdask compare hmm.conll perceptron-3.conll --gold gold.conll \\\n    -m f1 -m accuracy",
        "hmm is better on F1, by 2.5 points, and p = 0.031: if the two taggers were equally good, exchanging"
        " their labels of addresses at random would give as large a difference in 3 of 100 cases. So chance is"
        " an unlikely explanation. The interval says how sure the size is: from almost nothing to nearly 5"
        " points. On accuracy the difference is not significant, and it may go either way: these 300 addresses"
        " cannot tell.",
    ),
    DemoStep(
        "With more systems there are more comparisons, and more chances to find something that is not there:"
        " p is adjusted for their number.",
        "sigdask compare hmm.conll perceptron-3.conll perceptron-1.conll \\\n    "
        "frequent.conll --gold gold.conll -m f1",
        "Systems that share a letter are not significantly different; here each has a letter of its own. The"
        " adjusted p of hmm and perceptron-3 is what to report now.",
    ),
    DemoStep(
        "How many addresses would it take to be sure about a small difference?",
        "sigdask power hmm.conll perceptron-3.conll --gold gold.conll -m f1 \\\n    --difference 0.01 --samples 500",
        "Power is the chance to find a difference that is there. One point of F1 needs about ten times as"
        " many addresses. Even the 2.5 points above would be found in little more than half of such test sets:"
        " good to know before the experiment.",
    ),
    DemoStep(
        "The table for a paper, here as Markdown; table.tex is the same for LaTeX, report.html a page to open in"
        " a browser, results.json for programs.",
        "sigdask compare hmm.conll perceptron-3.conll perceptron-1.conll \\\n    "
        "frequent.conll --gold gold.conll -m f1 -q --markdown - -o table.tex \\\n    -o report.html -o results.json",
        "The best score is in bold, and what stands below the table says how the differences were tested.",
    ),
    DemoStep(
        "What was done, in words for the paper.",
        "sigdask cite results.json --text",
        "Without --text the works that are named follow as BibTeX.",
    ),
)

NEXT = """Now your own files: sigdask recognises what your field produces.

  sigdask compare a.conll b.conll --gold gold.conll        taggers
  sigdask compare a.txt b.txt --ref reference.txt -m BLEU  translations
  sigdask compare a.run b.run --qrels qrels.txt -m AP      retrieval runs
  sigdask compare out/model-a out/model-b                  logs of samples
  sigdask compare scores.csv                               a score an item

`sigdask formats` lists what is read, `sigdask examples` more data to try, and
`sigdask compare --help` all options. Where items belong to documents, add
--unit document: items of one document are correlated."""


def demo(context: click.Context, *, yes: bool, keep: Path | None) -> None:
    """Run a comparison of real taggers step by step, with explanations."""
    from tempfile import TemporaryDirectory

    asks = not yes and sys.stdin.isatty() and sys.stdout.isatty()
    program = context.find_root().command
    with TemporaryDirectory() as folder:
        home = keep or Path(folder)
        copy_example("tagging", home)
        for number, step in enumerate(STEPS, start=1):
            _print_wrapped(f"{number}. {step.reason}")
            print_text(f"\n$ {step.command}\n")
            with contextlib.chdir(home):
                _run_command(step.command, program)
            print_text("")
            _print_wrapped(step.explanation)
            print_text("")
            if asks:
                click.prompt("Enter goes on, Ctrl-C ends", default="", show_default=False, prompt_suffix=" ")
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

    print_text(
        fill(
            text,
            min(TEXT_COLUMNS, terminal_columns(sys.stdout) or TEXT_COLUMNS),
            break_on_hyphens=False,
            break_long_words=False,
        )
    )
