"""Printing on standard output, and log lines in addition to it."""

from __future__ import annotations

import logging
import sys

import click

from sigdask.cli.output.logs import terminal_columns
from sigdask.cli.output.streams import data_stream
from sigdask.report.layout import COLUMN_GAP, wrap_lines
from sigdask.text import escape_json

LOG = logging.getLogger("sigdask")

WORDS = "sigdask.words"
"""Key in click's context under which the words of the command line are kept."""


def log_note(text: str) -> None:
    """Log a message for people that is no result, such as how files were read."""
    LOG.info(text)


def print_text(text: str, *, on_stderr: bool = False, hang: int = COLUMN_GAP) -> None:
    """Print text on standard output, or on standard error if `on_stderr`, wrapped to the terminal's width.

    Users' words in it are harmless already: whoever makes a text of them sees to it.
    """
    click.echo(wrap_lines(text, terminal_columns(sys.stderr if on_stderr else sys.stdout), hang=hang), err=on_stderr)


def be_quiet() -> None:
    """Log only warnings and errors from now on."""
    LOG.setLevel(logging.WARNING)


def output_columns() -> int | None:
    """Return the columns of the terminal that results are printed on, None for a pipe."""
    return terminal_columns(sys.stdout)


def print_json(text: str) -> None:
    """Print JSON without wrapping its lines."""
    click.echo(escape_json(text))


def print_data(text: str) -> None:
    """Write data on standard output: byte for byte into a pipe, escaped on a terminal."""
    (sys.stdout if sys.stdout.isatty() else data_stream(sys.stdout)).write(text)
