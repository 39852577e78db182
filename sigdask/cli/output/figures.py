"""`--figures`: writes figures of the results into a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from sigdask.cli.declared.options import FIGURE_FORMATS
from sigdask.cli.output.say import log_note
from sigdask.errors import InputError, build_extra_error
from sigdask.report.plots.folder import MOST_FIGURES, parse_formats
from sigdask.report.plots.folder import write_figures as write_figure_files
from sigdask.text import format_count, format_list, make_printable

if TYPE_CHECKING:
    from sigdask.report.plots.results import FigureSpec

MOST_NAMED = 6
"""Files that are named."""


def check_figures(folder: str | None, formats: str) -> None:
    """Raise, before anything is counted, if the figures cannot be drawn or written."""
    if folder is None and formats == FIGURE_FORMATS:
        return

    parse_formats(formats)
    if folder is None:
        return
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InputError(f"--figures {folder}: is no folder")
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise build_extra_error("matplotlib", "report", "--figures")


def write_figures(folder: str | None, formats: str, pictures: Iterable[FigureSpec]) -> None:
    """Write the figures if a folder was given, and log the names of the files."""
    if folder is None:
        return

    written, n_left = write_figure_files(Path(folder), pictures, parse_formats(formats))
    if not written:
        log_note(make_printable(f"--figures {folder}: nothing that was found can be drawn"))
        return
    names = format_list([path.name for path in written], limit=MOST_NAMED)
    log_note(make_printable(f"{format_count(len(written), 'file')} in {folder}: {names}"))
    if n_left:
        log_note(f"{n_left:,} more figures were left out: the first {MOST_FIGURES} are drawn")
