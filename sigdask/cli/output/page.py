"""The page of a command: its results, the comparisons that are opened, and what repeats it."""

from __future__ import annotations

import shlex
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sigdask.cli.output.say import WORDS
from sigdask.io import is_url
from sigdask.io.redaction import redacted
from sigdask.report.page import write_page
from sigdask.report.page.details import part
from sigdask.report.provenance import digests, versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sigdask.analysis.details.details import ComparisonDetails
    from sigdask.report.presentable import Results

CLOSE = "those that another seed or a few more units could turn, the closest first"


def command() -> str:
    """Return the command line that is run, for a shell; what is secret in URLs is hidden."""
    words = click.get_current_context().meta.get(WORDS, ())
    return shlex.join(["sigdask", *map(redacted, words)])


def write_results(
    file: str, results: Results, opened: Sequence[ComparisonDetails], *, name: str, files: Iterable[Path]
) -> None:
    """Write the page of one test set.

    Parameters
    ----------
    file : str
        Where to.
    results, opened
        What was found, and the comparisons of it that are opened.
    name : str
        The test set's name, empty unless given.
    files : iterable of Path
        What was read.
    """
    made_of = {"seed": str(results.seed), **versions()}
    write_page(
        Path(file),
        {name: results},
        _title(results, name),
        inputs={name or "read": digests(dict.fromkeys(files))},
        command=command(),
        parts=part(results.table, opened, why=CLOSE, made_of=made_of),
    )


def _title(results: Results, name: str) -> str:
    """Say what was compared: two or three systems by name, more by number, and on which test set."""
    table = results.table
    systems = dict.fromkeys(chain.from_iterable(zip(table.a.listed(), table.b.listed(), strict=True)))
    compared = " and ".join(systems) if len(systems) <= 3 else f"{len(systems):,} systems"
    return f"{compared} on {name}" if name else compared


def files_read(options: dict[str, Any], sources: Iterable[Path], taken: Iterable[Path]) -> list[Path]:
    """Return the files on this machine that a command read; of folders and patterns those that were taken."""
    beside = [options["gold"], options["documents"], options["group_file"], *options["references"]]
    every = [*(tuple(taken) or sources), *(Path(text) for text in beside if text)]
    return [path for path in every if not is_url(str(path))]
