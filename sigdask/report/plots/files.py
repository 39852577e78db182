"""A figure's bytes: the same each time, without a date, its letters embedded or as text."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from sigdask.errors import InputError, UnfinishedError
from sigdask.report.plots.canvas import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": "sigdask"},
    "pdf": {"CreationDate": None, "Creator": "sigdask", "Producer": None},
    "png": {"Software": None},
}
"""What a figure can be written as, and what stands beside it in the file."""


def rendered(figure: Figure, format_: str = "svg", description: str | None = None) -> bytes:
    """Return the bytes of a figure: the same figure, the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Any of this room's.
    format_ : {"svg", "pdf", "png"}
        SVG has its letters as text, PDF embeds their fonts.
    description : str, optional
        What an SVG says of itself, such as the numbers that it draws.

    Raises
    ------
    InputError
        There is no such format.
    """
    if format_ not in FORMATS:
        raise InputError(f"a figure as {format_!r}: expected {', '.join(FORMATS)}")
    more = {"Description": description} if description is not None and format_ == "svg" else {}
    made = BytesIO()
    with style():
        figure.savefig(made, format=format_, metadata=FORMATS[format_] | more)
    return made.getvalue()


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure as SVG, PDF or PNG, as the ending of its file says.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Any of this room's.
    path : str or Path
        The file, which is written anew.

    Raises
    ------
    InputError
        The ending is no format's.
    UnfinishedError
        The file cannot be written.
    """
    made = rendered(figure, Path(path).suffix.lower().removeprefix("."))
    try:
        Path(path).write_bytes(made)
    except OSError as error:
        raise UnfinishedError(f"{path}: cannot be written ({error.strerror})") from None
