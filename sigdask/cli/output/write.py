"""Results as files: JSON, CSV, Parquet, tables, text, figures and HTML pages."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sigdask.cli.declared.options import FIGURE_FORMATS, FORMAT_BY_ENDING, format_endings
from sigdask.cli.output.streams import LOG, WORDS, data_stream, log_note, output_columns, print_data, print_text
from sigdask.errors import InputError, UnfinishedError, check_installed
from sigdask.io import describe_url_error
from sigdask.options import (
    NOTED_OPTIONS,
    FigureOption,
    FigureStyleOptions,
    check_options,
    list_all_options,
    select_options,
)
from sigdask.report import files
from sigdask.report.files import write_parts, write_whole_text
from sigdask.report.page import format_now, render_page
from sigdask.report.page.details import build_part
from sigdask.report.page.frame import get_versions, hash_paths
from sigdask.report.plots.results import MAX_FIGURES, FigureStyle, parse_formats
from sigdask.report.plots.results import write_figures as write_figure_files
from sigdask.report.tables import latex, markdown
from sigdask.results import export
from sigdask.results.export import import_pyarrow
from sigdask.results.ranking import is_agreement
from sigdask.text import escape_json, format_count, format_list, is_url, make_printable, redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sigdask.analysis.details import ComparisonDetails
    from sigdask.report.analyses import Independences, Powers
    from sigdask.report.plots.results import FigureSpec
    from sigdask.report.presentable import Results
    from sigdask.report.tables.model import PaperTable
    from sigdask.results.export import UnitScores
    from sigdask.results.table import Table


def assign_files(options: Mapping[str, Any], *names: str) -> dict[str, str | None]:
    """Return the files of options such as `json_file` and of `-o`, by the names of their formats.

    Raises
    ------
    InputError
        A file cannot be written, its ending is not one of these formats, or a format is requested twice.
    """
    assigned = {name: options.get(f"{name}_file") for name in names}
    check_outputs(**assigned)
    for file in options["outputs"]:
        name = FORMAT_BY_ENDING.get(Path(file).suffix.lower(), "")
        if name not in assigned:
            raise InputError(f"-o {file}: expected a file that ends in {format_endings(names)}")
        if assigned[name] is not None:
            raise InputError(f"-o {file}: {assigned[name]} already gets the same output; give one of the two")
        check_output(name, file, "-o")
        assigned[name] = file
    return assigned


def warn_of_unused_options(options: Mapping[str, Any], files: Mapping[str, str | None]) -> None:
    """Log a warning on each option of the command line that has no effect together with the others.

    Notes on results name options of the test.
    """
    context = click.get_current_context()
    items = options.get("items_file") or ""
    values = {**options, **files, "csv": files.get("csv") or (items if ".csv" in items else None)}
    is_noted = {*NOTED_OPTIONS} if context.command.name == "compare" else set()
    declared = {**list_all_options(), "figure_format": FigureOption("")}
    for parameter in context.command.params:
        name = str(parameter.name)
        option = declared.get(name.removeprefix("no_"))
        is_given = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if option is not None and option.name not in is_noted and is_given and option.is_idle(values):
            LOG.warning(f"{parameter.opts[0]} has no effect {option.idle}; leave it out")


def is_printed(files: Mapping[str, str | None]) -> bool:
    """Return whether standard output is free for the text of results."""
    return "-" not in (file for name, file in files.items() if name not in {"html", "text"})


def write_analysis(
    files: Mapping[str, str | None], results: Powers | Independences, render: Callable[[int | None], str]
) -> None:
    """Print an analysis unless standard output takes one of its files, and write its JSON and tables.

    Parameters
    ----------
    files : mapping
        By "json", "markdown" and "latex".
    results : Powers or Independences
        The results to write.
    render : callable
        Writes it for so many columns of a terminal.
    """
    if is_printed(files):
        print_text(render(output_columns()))
    write_json(files["json"], results.json_parts)
    write_tables(files, results.paper_tables)


def check_outputs(**files: str | None) -> None:
    """Raise, before anything is counted, if a file cannot be written or two go to standard output."""
    piped = [f"--{name} -" for name, file in files.items() if file == "-" and name != "html"]
    if len(piped) > 1:
        raise InputError(
            f"{' and '.join(piped)}: only one output can go to standard output (-); write the others to files"
        )
    if piped == ["--parquet -"] and sys.stdout.isatty():
        raise InputError("--parquet -: Parquet is binary and cannot be shown on a terminal; give a file, or use a pipe")
    for name, file in files.items():
        if file is not None:
            check_output(name, None if f"--{name} -" in piped else file, f"--{name}")


def check_overwriting(files: Mapping[str, str | None], uses: Mapping[Path, str]) -> None:
    """Raise if an output file is one that the command reads, or that something else is written to.

    Parameters
    ----------
    files : mapping of str to str or None
        Output files by format.
    uses : mapping of Path to str
        Descriptions of the other files, by resolved path.
    """
    for file in files.values():
        if file not in {None, "-"} and (use := uses.get(Path(str(file)).resolve())):
            raise InputError(f"{file}: is {use} already; write the output to another file")


def check_output(name: str, file: str | None, option: str) -> None:
    """Raise if a package for the format is missing, or the file cannot be written."""
    if name == "parquet":
        import_pyarrow()
    if file is not None:
        check_writable(file, option)


def check_writable(text: str, option: str) -> None:
    """Raise if a file cannot be written."""
    if problem := describe_url_error(text, "what is written"):
        raise InputError(f"{option} {problem}")
    path = Path(text)
    try:
        is_writable = not path.is_dir() and os.access(path.parent, os.W_OK)
    except OSError:  # such as a name that is too long
        is_writable = False
    if not is_writable:
        raise InputError(f"{option} {path}: cannot be written; give a file in a folder that exists and is writable")


def write_json(file: str | None, parts: Callable[[], Iterable[str]]) -> None:
    """Write JSON to a file or standard output, part by part."""
    if file == "-":
        for part in chain(parts(), ["\n"]):
            sys.stdout.write(escape_json(part))
            if not data_stream(sys.stdout).open:  # nobody would read further output
                return
    elif file is not None:
        with _name_option_in_errors("--json", file):
            write_parts(Path(file), chain(parts(), ["\n"]))


def write_csv(file: str | None, lines: Callable[[], Iterable[str]]) -> None:
    """Write lines of CSV if a file was given."""
    if file is not None:
        write_data(file, lines(), "--csv")


def write_parquet(file: str | None, tables: Iterable[Table]) -> None:
    """Write Parquet if a file was given; otherwise the tables are not read."""
    if file == "-":
        buffer = BytesIO()
        export.write_parquet(tables, buffer)
        data_stream(sys.stdout).write_bytes(buffer.getvalue())
    elif file is not None:
        with _name_option_in_errors("--parquet", file):
            files.write_parquet(Path(file), tables)


def check_units(file: str | None) -> None:
    """Raise, before anything is counted, if a file of units cannot be written."""
    if file is None:
        return
    try:
        format_, _ = export.parse_unit_file(Path(file))
    except InputError as error:
        raise InputError(f"--items {error}") from None
    check_output(format_, file, "--items")


def write_units(file: str | None, units: Callable[[], Iterator[UnitScores]], *, csv_safe: bool) -> None:
    """Write a table of units if a file was given, and log why some have no contributions."""
    if file is None:
        return
    notes: dict[tuple[str, str], None] = {}

    def read_notes() -> Iterator[UnitScores]:
        for part in units():
            if part.note:
                notes[part.metric, part.note] = None
            yield part

    with _name_option_in_errors("--items", file):
        files.write_units(Path(file), read_notes(), csv_safe=csv_safe)
    for metric, note in notes:
        log_note(make_printable(f"--items: {metric} has no contributions of units, because {note}"))


def write_tables(files: Mapping[str, str | None], tables: Callable[[], Iterable[PaperTable]]) -> None:
    """Write paper tables to the files for "markdown" and "latex", if given."""
    for name, parts in (("markdown", markdown.iter_document_parts), ("latex", latex.iter_document_parts)):
        if (file := files[name]) is not None:
            write_data(file, parts(tables()), f"--{name}")


def write_data(file: str, parts: Iterable[str], option: str) -> None:
    """Write text unchanged, part by part, to the file of an option."""
    if file == "-":
        for part in parts:
            print_data(part)
        return

    with _name_option_in_errors(option, file):
        write_parts(Path(file), parts)


def write_text(file: str, text: str) -> None:
    """Write the plain-text report to a file."""
    with _name_option_in_errors("--text", file):
        write_whole_text(Path(file), f"{text}\n")


@contextmanager
def _name_option_in_errors(option: str, file: str) -> Iterator[None]:
    """Begin the text of errors in the body, which are about an option's file, with the option that named it."""
    try:
        yield
    except UnfinishedError as error:
        context = click.get_current_context(silent=True)
        outputs = () if context is None else context.params.get("outputs", ())
        raise UnfinishedError(f"{'-o' if file in outputs else option} {error}") from None


MAX_NAMED = 6
"""Maximum number of files that are named."""


def check_figures(options: Mapping[str, Any]) -> None:
    """Raise, before anything is counted, if the figures cannot be drawn or written."""
    folder, formats = options["figures"], options["figure_format"]
    check_options(FigureStyleOptions, style := select_options(FigureStyleOptions, options))
    FigureStyle.from_options(style)
    if folder is None and formats == FIGURE_FORMATS:
        return

    parse_formats(formats)
    if folder is None:
        return
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InputError(f"--figures {folder}: not a folder")
    check_installed("matplotlib", "report", "--figures")


def write_figures(options: Mapping[str, Any], pictures: Iterable[FigureSpec]) -> None:
    """Write the figures if a folder was given, and log the names of the files."""
    folder = options["figures"]
    if folder is None:
        return

    style = FigureStyle.from_options(select_options(FigureStyleOptions, options))
    written, n_left = write_figure_files(Path(folder), pictures, parse_formats(options["figure_format"]), style)
    if not written:
        log_note(make_printable(f"--figures {folder}: no figure fits these results"))
        return
    names = format_list([path.name for path in written], limit=MAX_NAMED)
    log_note(make_printable(f"{format_count(len(written), 'file')} in {folder}: {names}"))
    if n_left:
        log_note(f"{n_left:,} more figures were left out: the first {MAX_FIGURES} are drawn")


OPENED_REASON = (
    "the comparisons of --open, the best system and its runner-up, and borderline results "
    "(another seed or a few more units could change their verdict)"
)


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
        Path of the page.
    results, details
        The results, and the comparisons whose details are shown.
    name : str
        The test set's name, empty unless given.
    files : iterable of Path
        The files that were read.
    """
    provenance = {"seed": str(results.seed), **get_versions()}
    table = results.table
    systems = dict.fromkeys(chain.from_iterable(zip(table.a.to_list(), table.b.to_list(), strict=True)))
    noun = "metrics" if is_agreement(table) else "systems"
    compared = " and ".join(systems) if len(systems) <= 3 else f"{len(systems):,} {noun}"
    text = render_page(
        {name: results},
        title=f"{compared} on {name}" if name else compared,
        created=format_now(),
        inputs={name or "read": hash_paths(dict.fromkeys(files))},
        command=command_line(),
        parts=build_part(results.table, details, reason=OPENED_REASON, origins=provenance),
    )
    write_whole_text(Path(file), text)


def list_local_files(options: dict[str, Any], sources: Iterable[Path], matched: Iterable[Path]) -> list[Path]:
    """Return the local files that a command read; a folder or pattern is replaced by the files read in it."""
    option_files = [options["gold"], options["documents"], options["group_file"], *options["references"]]
    paths = [*(tuple(matched) or sources), *(Path(text) for text in option_files if text)]
    return [path for path in paths if not is_url(str(path))]
