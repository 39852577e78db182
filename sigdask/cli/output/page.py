"""The HTML page of a command: its results, details of comparisons, and the command that repeats it."""

from __future__ import annotations

import shlex
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sigdask.cli.output.say import WORDS
from sigdask.io import is_url
from sigdask.io.redaction import redact
from sigdask.report.page import write_page
from sigdask.report.page.details import build_part
from sigdask.report.provenance import get_versions, hash_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sigdask.analysis.details.details import ComparisonDetails
    from sigdask.report.presentable import Results

BORDERLINE_REASON = "those that another seed or a few more units could turn, the closest first"


def command_line() -> str:
    """Return the command that is running as a shell would take it, with secrets in URLs hidden."""
    words = click.get_current_context().meta.get(WORDS, ())
    return shlex.join(["sigdask", *map(redact, words)])


def write_results_page(
    file: str, results: Results, details: Sequence[ComparisonDetails], *, name: str, files: Iterable[Path]
) -> None:
    """Write the page of one test set.

    Parameters
    ----------
    file : str
        Where to.
    results, details
        What was found, and the comparisons of it that are opened.
    name : str
        The test set's name, empty unless given.
    files : iterable of Path
        What was read.
    """
    provenance = {"seed": str(results.seed), **get_versions()}
    write_page(
        Path(file),
        {name: results},
        _build_title(results, name),
        inputs={name or "read": hash_paths(dict.fromkeys(files))},
        command=command_line(),
        parts=build_part(results.table, details, reason=BORDERLINE_REASON, origins=provenance),
    )


def _build_title(results: Results, name: str) -> str:
    """Return a page's title: the names of up to three systems, or the number of more, and the test set."""
    table = results.table
    systems = dict.fromkeys(chain.from_iterable(zip(table.a.to_list(), table.b.to_list(), strict=True)))
    compared = " and ".join(systems) if len(systems) <= 3 else f"{len(systems):,} systems"
    return f"{compared} on {name}" if name else compared


def list_local_files(options: dict[str, Any], sources: Iterable[Path], matched: Iterable[Path]) -> list[Path]:
    """Return the local files that a command read; a folder or pattern is replaced by the files read in it."""
    option_files = [options["gold"], options["documents"], options["group_file"], *options["references"]]
    paths = [*(tuple(matched) or sources), *(Path(text) for text in option_files if text)]
    return [path for path in paths if not is_url(str(path))]
