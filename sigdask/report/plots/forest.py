"""Forest plots: differences with their intervals, one below the other (Lewis and Clarke 2001)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigdask.report.plots.canvas import (
    BLUE,
    GREY,
    INK,
    add_legend,
    build_figure,
    estimate_width,
    set_title,
    shorten_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

VERDICT_MARKS: dict[int, tuple[str, dict[str, Any]]] = {
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
    a, b = (shorten_names([pair[side] for pair in pairs], 30) for side in (0, 1))
    names = [f"{is_kind} − {name_b}" for is_kind, name_b in zip(a, b, strict=True)]
    with build_figure(4.2 + estimate_width(names) + estimate_width(beside), 1.4 + 0.19 * max(n, 1)) as figure:
        axes = figure.add_subplot()
        rows = np.arange(n)
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_xlim(*_compute_limits(difference, low, high))
        lower, upper = (np.clip(np.nan_to_num(end, nan=0.0), *axes.get_xlim()) for end in (low, high))
        has_interval = ~np.isnan(low) & ~np.isnan(high)
        axes.hlines(
            rows[has_interval], lower[has_interval], upper[has_interval], color=BLUE, linewidth=1.1, gid="intervals"
        )
        kinds = [kind for kind in VERDICT_MARKS if (decision == kind).any()]
        for kind in kinds:
            is_kind = decision == kind
            axes.plot(difference[is_kind], rows[is_kind], **_get_marker(kind))
        axes.set_yticks(rows, labels=names, parse_math=False)
        axes.set_ylim(n - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", color="#e3e7eb", linewidth=0.5)
        axes.set_axisbelow(True)
        axes.set_xlabel(score, parse_math=False)
        set_title(axes, f"{title}\n{note}" if note else title)
        _write_row_texts(axes, beside)
        add_legend(figure, [_build_handle(kind) for kind in kinds], ncols=2)
    return figure


def _compute_limits(*values: Floats) -> tuple[float, float]:
    """Return the ends of an axis that contains zero and all finite values, with a margin."""
    all_values = np.concatenate([np.zeros(1), *values])
    finite = all_values[np.isfinite(all_values)]
    margin = 0.06 * float(np.ptp(finite)) or 0.01
    return float(finite.min()) - margin, float(finite.max()) + margin


def _get_marker(kind: int) -> dict[str, Any]:
    return {
        "linestyle": "none",
        "markeredgecolor": BLUE,
        "markersize": 4.5,
        "markeredgewidth": 1,
        **VERDICT_MARKS[kind][1],
    }


def _build_handle(kind: int) -> object:
    from matplotlib.lines import Line2D

    return Line2D([], [], label=VERDICT_MARKS[kind][0], **_get_marker(kind))


def _write_row_texts(axes: Axes, texts: Sequence[str]) -> None:
    """Write a text at the right of each row."""
    if not texts:
        return
    right_axes = axes.twinx()
    right_axes.set_ylim(axes.get_ylim())
    right_axes.set_yticks(range(len(texts)), labels=texts, parse_math=False, color=GREY if not texts else INK)
    right_axes.tick_params(axis="y", length=0)
    right_axes.spines["left"].set_visible(False)
