"""Reproducible matplotlib figures of results: one fixed style, literal names, and files with the same bytes each time.

Colours are those of Okabe and Ito (2008), which colour-blind people can distinguish. A mark, a fill or a dash says the
same as each colour, for printing in grey. Files have no dates, and letters are embedded fonts or text.
"""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigdask.errors import InputError, explain_missing
from sigdask.report.files import write_parts
from sigdask.text import make_printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "rendered", "save"]

BLUE, ORANGE, GREEN, SKY, GREY, INK = "#0072B2", "#D55E00", "#009E73", "#56B4E9", "#8a939c", "#1c2530"

MAX_CHARACTERS = 36
"""Maximum characters of a name in a drawing."""

FONT_SIZE, WIDTH_OF_CHARACTER = 8, 0.6
"""Font size in points, and the approximate width of a character as a share of it."""

FALLBACK_FONTS = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans Arabic", "Noto Sans Devanagari", "Arial Unicode MS",
)  # fmt: skip
"""Fonts for letters that the first font lacks, if they are installed."""

FORMATS: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": "sigdask"},
    "pdf": {"CreationDate": None, "Creator": "sigdask", "Producer": None},
    "png": {"Software": None},
}
"""Formats of figures, and the metadata that each stores."""


@contextmanager
def use_style() -> Iterator[None]:
    """Use the style of this package inside the `with` block, whatever the user's settings are.

    Raises
    ------
    InputError
        matplotlib is not installed.
    """
    with explain_missing("matplotlib", "a figure"):
        import matplotlib as mpl
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # a box replaces it, but the SVG has the letter
        warnings.filterwarnings("ignore", "constrained_layout not applied")
        mpl.rcdefaults()
        style = mpl.rc_params_from_file(str(files(__package__) / "figures.mplstyle"), use_default_template=False)
        mpl.rcParams.update({**style, "font.family": ["sans-serif", *FALLBACK_FONTS]})
        yield


@contextmanager
def build_figure(width: float, height: float) -> Iterator[Figure]:
    """Yield an empty figure of a size in inches, to be drawn on in the style of this package."""
    with use_style():
        from matplotlib.figure import Figure

        yield Figure(figsize=(width, height), layout="constrained")


def shorten_names(names: Sequence[str], max_characters: int = MAX_CHARACTERS) -> list[str]:
    """Return names for display: printable, not too long, and still distinct.

    Examples
    --------
    >>> shorten_names(["short", "a very long name of a system", "a very long same of a system"], 12)
    ['short', 'a very…ystem', 'a very…ystem (2)']
    """
    n_uses: Counter[str] = Counter()
    short_names: dict[str, str] = {}
    for name in dict.fromkeys(names):
        text = make_printable(name)
        n_first, n_last = max_characters // 2, max_characters - max_characters // 2 - 1
        short = text if len(text) <= max_characters else f"{text[:n_first]}…{text[len(text) - n_last :]}"
        n_uses[short] += 1
        short_names[name] = short if n_uses[short] == 1 else f"{short} ({n_uses[short]})"
    return [short_names[name] for name in names]


def set_title(axes: Axes, text: str) -> None:
    """Set a title, without math markup."""
    axes.set_title(make_printable(text, keep="\n"), parse_math=False)


def add_legend(figure: Figure, handles: Sequence[Any], *, n_columns: int) -> None:
    """Add a legend with the literal labels of the handles below a figure."""
    if not handles:
        return
    names = [handle.get_label() for handle in handles]
    numbers = list(map(str, range(len(names))))  # a label that began with _ would be left out
    legend = figure.legend(handles, numbers, loc="outside lower center", ncols=n_columns)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)


def estimate_width(texts: Sequence[str], size: float = FONT_SIZE) -> float:
    """Return the approximate width of the longest text, in inches, at a font size in points."""
    return max(map(len, texts), default=0) * size * WIDTH_OF_CHARACTER / 72


def rendered(figure: Figure, format_: str = "svg", description: str | None = None, dpi: int | None = None) -> bytes:
    """Return the bytes of a figure's file, which are the same whenever the figure is the same.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Figure, as the methods of results return it.
    format_ : {"svg", "pdf", "png"}
        File format. SVG has text as text, PDF embeds its fonts.
    description : str, optional
        Description in the SVG, such as the numbers that it shows.
    dpi : int, optional
        Dots per inch of a PNG, by default 200.

    Returns
    -------
    bytes
        The content of the file.

    Raises
    ------
    InputError
        The format is unknown.
    """
    if format_ not in FORMATS:
        raise InputError(f"figure format {format_!r}: expected {', '.join(FORMATS)}")
    metadata = {"Description": description} if description is not None and format_ == "svg" else {}
    stream = BytesIO()
    with use_style():
        figure.savefig(stream, format=format_, metadata=FORMATS[format_] | metadata, dpi=dpi or 200)
    return stream.getvalue()


def save(figure: Figure, path: str | Path, dpi: int | None = None) -> None:
    """Write a figure to a file, as SVG, PDF or PNG according to its ending.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Figure, as the methods of results return it.
    path : str or Path
        The file. An existing one is replaced.
    dpi : int, optional
        Dots per inch of a PNG, by default 200.

    Raises
    ------
    InputError
        The ending of the file names no format.
    UnfinishedError
        The file cannot be written.
    """
    write_parts(Path(path), [rendered(figure, Path(path).suffix.lower().removeprefix("."), dpi=dpi)])
