"""Files that commands write: JSON, CSV, Parquet, tables, text, pages and scores of units."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import pyarrow as pa

from sigdask.analysis.details import ComparisonDetails
from sigdask.cli.streams import WORDS, data_stream, output_columns, print_text
from sigdask.errors import InputError
from sigdask.report import files
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.ranking import is_agreement
from sigdask.text import escape_json, is_url, redact


class OutputFile(NamedTuple):
    """A file that a command writes: its format, its path or - for standard output, and the option that names it."""

    format: str
    file: str
    option: str

    @property
    def is_piped(self) -> bool:
        """Whether it is standard output."""
        return self.file == "-"


def list_outputs(options: Mapping[str, Any], *formats: str) -> list[OutputFile]:
    """Return the files that `--json` and `-o` name.

    Raises
    ------
    InputError
        A file cannot be written, is named twice, or its ending is none of these formats'.
    """
    outputs = [] if options.get("json_file") is None else [OutputFile("json", options["json_file"], "--json")]
    outputs += [OutputFile(files.find_format(file, formats, "-o "), file, "-o") for file in options["outputs"]]
    for k, output in enumerate(outputs):
        if not output.is_piped:
            check_writable(output.file, output.option)
        if any(Path(output.file).absolute() == Path(other.file).absolute() for other in outputs[:k]):
            raise InputError(f"{output.option} {output.file}: is named twice", remedy="leave one out")
    return outputs


def is_printed(outputs: Iterable[OutputFile]) -> bool:
    """Return whether standard output is free for the text of results."""
    return not any(output.is_piped for output in outputs)


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
        if not output.is_piped and (use := uses_by_path.get(os.path.realpath(output.file))):
            raise InputError(f"is {use} already", file=output.file, remedy="write the output to another file")


def check_writable(text: str, option: str) -> None:
    """Raise if a file cannot be written."""
    if is_url(text):
        raise InputError(f"{option} {redact(text)}: is a URL, but what is written must be a file on this machine")
    path = Path(text)
    try:
        is_writable = not path.is_dir() and os.access(path.parent, os.W_OK)
    except OSError:  # such as a name that is too long
        is_writable = False
    if not is_writable:
        raise InputError(
            f"{option} {path}: cannot be written", remedy="give a file in a folder that exists and is writable"
        )


def write_outputs(outputs: Iterable[OutputFile], texts: files.Texts) -> None:
    """Write files, or JSON to standard output, part by part."""
    for output in outputs:
        parts = texts[output.format]()
        if not output.is_piped:
            files.write_parts(Path(output.file), parts)
            continue
        for part in parts:
            sys.stdout.write(escape_json(str(part)))
            if not data_stream(sys.stdout).open:  # nobody would read further output
                return


def present_analysis(outputs: Sequence[OutputFile], analysis: Any, *, everything: bool = False) -> None:
    """Print an analysis unless standard output takes its JSON, and write its files."""
    from sigdask.report.analyses import list_analysis_texts, render_analysis  # with all analyses, which compare lacks

    if is_printed(outputs):
        print_text(render_analysis(analysis, everything=everything, width=output_columns()))
    write_outputs(outputs, list_analysis_texts(analysis))


def check_units(file: str | None) -> None:
    """Raise, before anything is counted, if a file of units cannot be written."""
    if file is None:
        return
    files.find_format(file, files.UNIT_FORMATS, "--items ")
    check_writable(file, "--items")


def write_units(file: str | None, units: Callable[[], Iterator[pa.Table]]) -> None:
    """Write a table of units if a file was given."""
    if file is not None:
        files.write_units(Path(file), units())


ABSOLUTE_PATH = re.compile(r"(?<![^=])/.*")
"""Pattern of an absolute path as an argument or after NAME=. Pages, which are published, show relative ones."""


def command_line() -> str:
    """Return the command that is running as a shell would take it, with secrets in URLs hidden and relative paths."""
    from sigdask.report.page.frame import hide_folders

    words = click.get_current_context().meta.get(WORDS, ())
    shown = (ABSOLUTE_PATH.sub(lambda path: hide_folders(path[0], Path.cwd()), word) for word in words)
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
    title = f"{len({*table.a.to_list(), *table.b.to_list()}):,} {noun}{f' on {name}' if name else ''}"
    origins = {"seed": str(results.seed), **get_versions()}
    return render_page(
        {name: results},
        title=title,
        created=format_now(),
        command=command_line(),
        parts=build_part(table, details, reason=OPENED_REASON, origins=origins),
    )
