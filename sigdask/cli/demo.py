"""Examples to learn from: `examples` copies their files, `demo` goes through one of them step by step."""

from __future__ import annotations

import contextlib
import shlex
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import click

from sigdask.cli.output.logs import columns
from sigdask.cli.output.say import say
from sigdask.errors import InputError
from sigdask.examples import SETS, copy

WIDTH = 80
"""Columns of the words between commands, where a terminal has as many."""


def examples(name: str | None, folder: Path | None) -> None:
    """Print the example data sets, or copy the files of one."""
    if name is None:
        for own, what in SETS.items():
            say(f"{own:{_TO_TEXT}}{what}", hang=_TO_TEXT)
        return
    to = folder or Path(name)
    say(f"{to}: {_listed(copy(name, to))}")


_TO_TEXT = 13


def _listed(paths: list[str]) -> str:
    """Return what is in a folder, its own folders without what they hold."""
    tops = {Path(path).parts[0]: len(Path(path).parts) > 1 for path in paths}
    return ", ".join(f"{top}/" if is_folder else top for top, is_folder in tops.items())


@dataclass(frozen=True, slots=True)
class DemoStep:
    """A command, on lines of 80 columns, why it is run, and what its output says."""

    why: str
    command: str
    says: str


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
        place = keep or Path(folder)
        copy("tagging", place)
        for number, step in enumerate(STEPS, start=1):
            _tell(f"{number}. {step.why}")
            say(f"\n$ {step.command}\n")
            with contextlib.chdir(place):
                _run(step.command, program)
            say("")
            _tell(step.says)
            say("")
            if asks:
                click.prompt("Enter goes on, Ctrl-C ends", default="", show_default=False, prompt_suffix=" ")
                say("")
    say(NEXT)
    if keep:
        say(f"\nThe files of this example are in {keep}.")


def _run(command: str, program: click.Command) -> None:
    """Run a command of the demo as it would be from a shell."""
    name, *arguments = shlex.split(command.replace("\\\n", " "))
    if name == "head":
        with Path(arguments[1]).open(encoding="utf-8") as file:
            for line in islice(file, -int(arguments[0])):
                say(line.rstrip("\n"))
    elif status := program.main(arguments, prog_name=name, standalone_mode=False):
        raise InputError(f"{command}: ended with status {status}")


def _tell(text: str) -> None:
    """Say something in lines that are easily read."""
    from textwrap import fill

    say(fill(text, min(WIDTH, columns(sys.stdout) or WIDTH), break_on_hyphens=False, break_long_words=False))
