"""Print results on standard output, and log lines in addition to them."""

from __future__ import annotations

import logging
import sys

import click

from sigdask.cli.output.logs import columns
from sigdask.cli.output.streams import exactly
from sigdask.report.layout import BETWEEN, fitted
from sigdask.text import printable_json

LOG = logging.getLogger("sigdask")

WORDS = "sigdask.words"
"""Key in click's context under which the words of the command line are kept."""


def note(text: str) -> None:
    """Tell the user something beside the results."""
    LOG.info(text)


def say(text: str, *, beside: bool = False, hang: int = BETWEEN) -> None:
    """Write text on standard output (or `beside` it), broken between words where a terminal is too narrow.

    Users' words in it are harmless already: whoever makes a text of them sees to it.
    """
    click.echo(fitted(text, columns(sys.stderr if beside else sys.stdout), hang=hang), err=beside)


def be_quiet() -> None:
    """Say no more than warnings and errors beside the results."""
    LOG.setLevel(logging.WARNING)


def width() -> int | None:
    """Return the columns of the terminal that results are written on, None for a pipe."""
    return columns(sys.stdout)


def say_json(text: str) -> None:
    """Write JSON on standard output, each value on its own line however wide."""
    click.echo(printable_json(text))


def say_data(text: str) -> None:
    """Write on standard output what a program reads: as it is, but for a terminal."""
    (sys.stdout if sys.stdout.isatty() else exactly(sys.stdout)).write(text)
