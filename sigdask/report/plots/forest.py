"""Differences with their intervals, one below the other: a forest plot (Lewis and Clarke 2001)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigdask.report.plots.canvas import BLUE, GREY, INK, canvas, inches_of, labels, legend, plain_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

MARKS: dict[int, tuple[str, dict[str, Any]]] = {
    1: ("significantly different", {"marker": "o", "markerfacecolor": BLUE}),
    0: ("not significantly different", {"marker": "o", "markerfacecolor": "white"}),
    -1: ("undecided: more trials would decide", {"marker": "D", "markerfacecolor": "white"}),
}
"""What a verdict is called, and how it is marked."""


def forest(
    pairs: Sequence[tuple[str, str]],
    difference: Floats,
    low: Floats,
    high: Floats,
    decision: NDArray[np.int8],
    *,
    beside: Sequence[str] = (),
    title: str = "",
    score: str = "difference",
    note: str = "",
) -> Figure:
    """Draw differences with their intervals, the first at the top, zero as a line.

    Parameters
    ----------
    pairs : sequence of (str, str)
        Systems A and B of each difference A - B, n of them.
    difference, low, high : float64 array, shape (n,)
        Differences and the ends of their intervals: NaN where there is none, infinite where it has no bound.
    decision : int8 array, shape (n,)
        1 significantly different, 0 not, -1 undecided.
    beside : sequence of str
        What stands to the right of each, such as p; nothing when empty.
    title, score, note : str
        Above the figure, of its axis, and in small letters above the first row.

    Returns
    -------
    matplotlib.figure.Figure
        A filled mark is a significant difference, an open one is not.

    References
    ----------
    Lewis & Clarke 2001, "Forest plots: trying to see the wood and the trees", BMJ 322.
    """
    n = len(pairs)
    a, b = (labels([pair[side] for pair in pairs], 30) for side in (0, 1))
    names = [f"{own} − {other}" for own, other in zip(a, b, strict=True)]
    with canvas(4.2 + inches_of(names) + inches_of(beside), 1.4 + 0.19 * max(n, 1)) as figure:
        axes = figure.add_subplot()
        rows = np.arange(n)
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_xlim(*_limits(difference, low, high))
        left, right = (np.clip(np.nan_to_num(end, nan=0.0), *axes.get_xlim()) for end in (low, high))
        known = ~np.isnan(low) & ~np.isnan(high)
        axes.hlines(rows[known], left[known], right[known], color=BLUE, linewidth=1.1, gid="intervals")
        kinds = [kind for kind in MARKS if (decision == kind).any()]
        for kind in kinds:
            own = decision == kind
            axes.plot(difference[own], rows[own], **_mark(kind))
        axes.set_yticks(rows, labels=names, parse_math=False)
        axes.set_ylim(n - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", color="#e3e7eb", linewidth=0.5)
        axes.set_axisbelow(True)
        axes.set_xlabel(score, parse_math=False)
        plain_title(axes, f"{title}\n{note}" if note else title)
        _write_beside(axes, beside)
        legend(figure, [_handle(kind) for kind in kinds], ncols=2)
    return figure


def _limits(*values: Floats) -> tuple[float, float]:
    """Return the ends of an axis that holds all finite values, and zero."""
    together = np.concatenate([np.zeros(1), *values])
    found = together[np.isfinite(together)]
    room = 0.06 * float(np.ptp(found)) or 0.01
    return float(found.min()) - room, float(found.max()) + room


def _mark(kind: int) -> dict[str, Any]:
    return {"linestyle": "none", "markeredgecolor": BLUE, "markersize": 4.5, "markeredgewidth": 1, **MARKS[kind][1]}


def _handle(kind: int) -> object:
    from matplotlib.lines import Line2D

    return Line2D([], [], label=MARKS[kind][0], **_mark(kind))


def _write_beside(axes: Axes, texts: Sequence[str]) -> None:
    """Write a text to the right of each row."""
    if not texts:
        return
    other = axes.twinx()
    other.set_ylim(axes.get_ylim())
    other.set_yticks(range(len(texts)), labels=texts, parse_math=False, color=GREY if not texts else INK)
    other.tick_params(axis="y", length=0)
    other.spines["left"].set_visible(False)
