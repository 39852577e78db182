"""Write figures as reproducible bytes: no dates, fonts embedded or letters as text."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from sigdask.errors import InputError, UnfinishedError
from sigdask.report.plots.canvas import use_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": "sigdask"},
    "pdf": {"CreationDate": None, "Creator": "sigdask", "Producer": None},
    "png": {"Software": None},
}
"""What a figure can be written as, and what stands beside it in the file."""


def rendered(figure: Figure, format_: str = "svg", description: str | None = None) -> bytes:
    """Return the bytes of a figure's file, which are the same whenever the figure is the same.

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
    metadata = {"Description": description} if description is not None and format_ == "svg" else {}
    stream = BytesIO()
    with use_style():
        figure.savefig(stream, format=format_, metadata=FORMATS[format_] | metadata)
    return stream.getvalue()


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
    content = rendered(figure, Path(path).suffix.lower().removeprefix("."))
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise UnfinishedError(f"{path}: cannot be written ({error.strerror})") from None
