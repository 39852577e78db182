"""`--figures`: what was found as pictures in a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from sigdask.cli.declared.options import FIGURE_FORMATS
from sigdask.cli.output.say import note
from sigdask.errors import InputError, missing_extra
from sigdask.report.plots.folder import MOST_FIGURES, asked_formats
from sigdask.report.plots.folder import write_figures as write
from sigdask.text import count_noun, listed, printable

if TYPE_CHECKING:
    from sigdask.report.plots.results import Picture

SHOWN = 6
"""Files that are named."""


def check_figures(folder: str | None, formats: str) -> None:
    """Refuse figures that cannot be drawn or written, before anything is counted."""
    if folder is None and formats == FIGURE_FORMATS:
        return

    asked_formats(formats)
    if folder is None:
        return
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InputError(f"--figures {folder}: is no folder")
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise missing_extra("matplotlib", "report", "--figures")


def write_figures(folder: str | None, formats: str, found: Iterable[Picture]) -> None:
    """Draw figures where they are asked for, and say which files were written."""
    if folder is None:
        return

    written, n_left = write(Path(folder), found, asked_formats(formats))
    if not written:
        note(printable(f"--figures {folder}: nothing that was found can be drawn"))
        return
    names = listed([path.name for path in written], most=SHOWN)
    note(printable(f"{count_noun(len(written), 'file')} in {folder}: {names}"))
    if n_left:
        note(f"{n_left:,} more figures were left out: the first {MOST_FIGURES} are drawn")
