"""What all figures are drawn on: one style, whatever the user's is, and names as they are written.

Colours are those of Okabe and Ito (2008), which the colour-blind tell from each other; whatever a colour says, a mark,
a fill or a dash says too, so that a figure printed in grey says the same.
"""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from sigdask.errors import missing_extra
from sigdask.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER, GREY, INK = (
    "#0072B2", "#D55E00", "#009E73", "#AA4499", "#56B4E9", "#B8860B", "#8a939c", "#1c2530"
)  # fmt: skip

STYLES: tuple[dict[str, Any], ...] = tuple(
    {"color": color, "linestyle": dash, "marker": mark, "markersize": 3.5, "linewidth": 1.2}
    for dash, marks in (("-", "osD^vP"), ("--", "s^oDPv"), (":", "D^vosP"), ("-.", "vPs^Do"))
    for color, mark in zip((BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER), marks, strict=True)
)
"""Lines that differ in colour, dashes and marks, one for each of some curves."""

MOST_CHARACTERS = 36
"""Of a name as it is drawn; of a longer one its middle is left out."""

RC = {
    "font.size": 8,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "sigdask",
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "savefig.dpi": 200,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.6,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7,
}

FALLBACKS = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans Arabic", "Noto Sans Devanagari", "Arial Unicode MS")
"""Fonts for what the first one has no letters for, where they are installed."""


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of this room, whatever the user's settings are.

    Raises
    ------
    InputError
        matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise missing_extra("matplotlib", "report", "a figure") from None
    with mpl.rc_context(), warnings.catch_warnings(), _no_word_of_fonts():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # a box stands for it, and the SVG has the letter
        warnings.filterwarnings("ignore", "constrained_layout not applied")
        mpl.rcdefaults()
        mpl.rcParams.update(RC | {"font.family": ["sans-serif", *_fallbacks()]})
        yield


@contextmanager
def canvas(width: float, height: float) -> Iterator[Figure]:
    """Yield an empty figure of a size in inches, to be drawn on in the style of this room."""
    with style():
        from matplotlib.figure import Figure

        yield Figure(figsize=(width, height), layout="constrained")


@cache
def _fallbacks() -> tuple[str, ...]:
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return tuple(name for name in FALLBACKS if name in installed)


@contextmanager
def _no_word_of_fonts() -> Iterator[None]:
    """Have matplotlib say nothing of letters and glyphs while it embeds fonts."""
    logs = [logging.getLogger(name) for name in ("matplotlib.font_manager", "fontTools", "fontTools.subset")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


def labels(names: Sequence[str], most: int = MOST_CHARACTERS) -> list[str]:
    """Return names as they are drawn: harmless, not too long, different where the names are.

    Examples
    --------
    >>> labels(["short", "a very long name of a system", "a very long same of a system"], 12)
    ['short', 'a very…ystem', 'a very…ystem (2)']
    """
    taken: Counter[str] = Counter()
    drawn: dict[str, str] = {}
    for name in dict.fromkeys(names):
        text = printable(name)
        short = text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) - (most - most // 2 - 1) :]}"
        taken[short] += 1
        drawn[name] = short if taken[short] == 1 else f"{short} ({taken[short]})"
    return [drawn[name] for name in names]


def plain_title(axes: Axes, text: str) -> None:
    """Set a title that is written as it is."""
    axes.set_title(printable(text, keep="\n"), parse_math=False)


def legend(where: Axes | Figure, handles: Sequence[Any], names: Sequence[str] | None = None, **how: Any) -> None:
    """Say what marks mean, as names are written: below a figure, or where it is said.

    Parameters
    ----------
    where : matplotlib.axes.Axes or matplotlib.figure.Figure
        Whose legend it is.
    handles : sequence of artists
        The marks.
    names : sequence of str, optional
        What they are called; by default as they are labelled.
    **how
        As matplotlib's legend takes it.
    """
    if not handles:
        return
    called = [handle.get_label() for handle in handles] if names is None else names
    numbers = list(map(str, range(len(called))))  # a label that began with _ would be left out
    own = where.legend(handles, numbers, **({"loc": "outside lower center", "ncols": 3} | how))
    for text, name in zip(own.get_texts(), called, strict=True):
        text.set_parse_math(False)
        text.set_text(name)


def inches_of(texts: Sequence[str], size: float = 8) -> float:
    """Return about how wide the widest of some texts is, in inches, at a size in points."""
    return max(map(len, texts), default=0) * size * 0.6 / 72
