"""Files that commands write: JSON, CSV, Parquet, tables, text, pages and scores of units."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from sigdask.analysis.details import ComparisonDetails
from sigdask.cli.streams import LOG, output_columns, print_data, print_text
from sigdask.errors import InputError
from sigdask.report.files import UNIT_FORMATS, Texts, find_format, format_endings, write_parts
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.ranking import is_agreement
from sigdask.text import escape_json, redact


class OutputFile(NamedTuple):
    """A file that a command writes, with its format. The file - is standard output."""

    format: str
    file: str


def add_outputs(formats: Collection[str], context: click.Context, option: click.Option, files: Sequence[str]) -> None:
    """Add the files that `-o` or `--json` names to the command's parameter `outputs`.

    Raises
    ------
    InputError
        A file cannot be written, is named twice, or its ending is none of these formats'.
    """
    outputs = context.params.setdefault("outputs", [])
    flag = option.opts[0]
    for file in files:
        format_ = "json" if flag == "--json" else find_format(file, formats, "-o ")
        if file != "-":
            check_writable(file, flag)
        if any(Path(file).absolute() == Path(other).absolute() for _, other in outputs):
            raise InputError(f"{flag} {file}: is named twice", remedy="leave one out")
        outputs.append(OutputFile(format_, file))


def is_printed(outputs: Iterable[OutputFile]) -> bool:
    """Return whether standard output is free for the text of results."""
    return not any(output.file == "-" for output in outputs)


def check_overwriting(outputs: Iterable[OutputFile], uses: Mapping[Path, str]) -> None:
    """Raise if an output file is one that the command reads, or that something else is written to.

    Parameters
    ----------
    outputs : iterable of OutputFile
        The output files.
    uses : mapping of Path to str
        Descriptions of the other files.
    """
    uses_by_path = {os.path.realpath(str(path)): use for path, use in uses.items()}
    for output in outputs:
        if output.file != "-" and (use := uses_by_path.get(os.path.realpath(output.file))):
            raise InputError(f"is {use} already", file=output.file, remedy="write the output to another file")


def check_writable(text: str, option: str) -> None:
    """Raise if a file cannot be written."""
    path = Path(text)
    try:
        is_link = path.is_symlink() and (path.is_file() or not path.exists())  # others lead to pipes and devices
        is_writable = not path.is_dir() and not is_link and os.access(path.parent, os.W_OK)
    except OSError:  # such as a name that is too long
        is_writable = False
    if not is_writable:
        remedy = "name a file, not a link to one, in a folder of this machine that you may write to"
        raise InputError(f"{option} {text}: cannot be written", remedy=remedy)


def write_outputs(outputs: Iterable[OutputFile], texts: Texts) -> None:
    """Write files, or JSON to standard output, part by part.

    Raises
    ------
    InputError
        The results cannot be written in the format of a file. Then none is written.
    """
    for output in outputs:
        if output.format not in texts:
            raise InputError(f"-o {output.file}", expected=f"results of this kind as {format_endings(texts)}")
    for format_, file in outputs:
        if file == "-":
            print_data(escape_json(str(part)) for part in texts[format_]())
        else:
            write_parts(Path(file), texts[format_]())


def present_analysis(outputs: Sequence[OutputFile], analysis: Any, *, everything: bool = False) -> None:
    """Write the files of an analysis, and print it unless standard output takes its JSON."""
    from sigdask.report.analyses import Independences, list_analysis_texts, render_analysis  # which compare lacks

    for text in analysis.warnings if isinstance(analysis, Independences) else ():
        LOG.warning(text)
    write_outputs(outputs, list_analysis_texts(analysis))
    if is_printed(outputs):
        print_text(render_analysis(analysis, everything=everything, width=output_columns()))


def check_units(_: click.Context, __: click.Parameter, file: str | None) -> Path | None:
    """Return the file of units that `--items` names; raise, before anything is counted, if it cannot be written."""
    if file is None:
        return None
    find_format(file, UNIT_FORMATS, "--items ")
    check_writable(file, "--items")
    return Path(file)


ABSOLUTE_PATH = re.compile(r"(?<![^=])/.*")
"""Pattern of an absolute path as an argument or after NAME=. Pages, which are published, show relative ones."""


def command_line() -> str:
    """Return the command that is running as a shell would take it, with secrets in URLs hidden and relative paths."""
    from sigdask.report.page.frame import hide_folders

    shown = (ABSOLUTE_PATH.sub(lambda path: hide_folders(path[0], Path.cwd()), word) for word in sys.argv[1:])
    return shlex.join(["sigdask", *map(redact, shown)])


OPENED_REASON = (
    "the best system and its runner-up, and doubtful results (contested, or another seed could change the verdict)"
)


def build_page(results: ComparisonResults, details: Sequence[ComparisonDetails], *, name: str) -> str:
    """Return the page of one test set.

    Parameters
    ----------
    results, details
        The results, and the comparisons whose details are shown.
    name : str
        The test set's name, empty unless given.
    """
    from sigdask.report.page import format_now, render_page
    from sigdask.report.page.details import build_part
    from sigdask.report.page.frame import get_versions

    table = results.table
    noun = "metrics" if is_agreement(table) else "systems"
    title = f"{len({*table.a.tolist(), *table.b.tolist()}):,} {noun}{f' on {name}' if name else ''}"
    origins = {"seed": str(results.seed), **get_versions()}
    return render_page(
        {name: results},
        title=title,
        created=format_now(),
        command=command_line(),
        parts=build_part(table, details, reason=OPENED_REASON, origins=origins),
    )
