"""Critical-difference diagrams: bars join systems that are not significantly different (Demšar 2006)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigdask.report.plots.canvas import BLUE, GREY, INK, SKY, canvas, inches_of, labels, plain_title
from sigdask.statistics.letters import letter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ON_AXIS = 16
"""Systems, and bars, that one axis holds; of more, each system has a line of its own."""

MOST_BARS = 48
"""Bars that are drawn; of more, those of the best systems."""

Groups = Sequence[Sequence[int]]


def critical_difference(
    names: Sequence[str],
    scores: NDArray[np.float64],
    groups: Groups,
    *,
    higher_is_better: bool = True,
    title: str = "",
    score: str = "score",
) -> Figure:
    """Draw systems by their scores (or mean ranks), with a bar for each group that is not significantly different.

    Parameters
    ----------
    names : sequence of str
        The systems, best first.
    scores : float64 array, shape (n_systems,)
        Of each.
    groups : sequence of sequence of int
        The largest groups of systems of which no two are significantly different, as `letter_groups` has them: places
        among the names; lettered in this order.
    higher_is_better : bool
        Which way the axis runs: the best is on the right, or on top.
    title, score : str
        Above the figure, and of its axis.

    Returns
    -------
    matplotlib.figure.Figure
        A dot on a bar is a system of the group: with tests of pairs, a bar may pass over a system that is
        significantly different from another of its group. A system without a bar differs from all.

    References
    ----------
    Demšar 2006, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, figure 1.
    Piepho 2004, "An algorithm for a letter-based representation of all-pairwise comparisons".
    """
    bars = [(letter(k), np.sort(np.asarray(own, np.int64))) for k, own in enumerate(groups) if len(own) > 1]
    kept = sorted(bars, key=lambda bar: tuple(bar[1]))[:MOST_BARS]
    whole = f"{title} (the first {MOST_BARS} of {len(bars):,} groups)" if len(bars) > MOST_BARS else title
    draw = _on_axis if max(len(names), len(kept)) <= MOST_ON_AXIS else _in_lines
    return draw(labels(names), np.asarray(scores, np.float64), kept, higher_is_better, whole, score)


Bars = Sequence[tuple[str, NDArray[np.int64]]]


def _on_axis(
    names: Sequence[str], scores: NDArray[np.float64], bars: Bars, higher_is_better: bool, title: str, score: str
) -> Figure:
    """Draw all systems on one axis, their names at both sides below it."""
    n = len(names)
    along = np.abs(scores - scores[0]) if n else scores
    room = 0.04 * float(np.ptp(scores)) if n else 0.0
    rows = _rows([(along[own[0]], along[own[-1]] + 1.2 * room) for _, own in bars])
    first = 1.0 + 0.75 * (max(rows, default=-1) + 1)  # the first name's line, below all bars
    n_lines = -(-n // 2)
    with canvas(4.4 + 2 * inches_of([f"{name} 0.0000" for name in names]), 1.0 + 0.17 * (first + n_lines)) as figure:
        axes = figure.add_subplot()
        low, high = (float(scores.min()) - (room or 0.5), float(scores.max()) + (room or 0.5)) if n else (0.0, 1.0)
        axes.set_xlim(*((low, high) if higher_is_better else (high, low)))
        axes.set_ylim(first + n_lines, 0)
        axes.xaxis.set_ticks_position("top")
        axes.xaxis.set_label_position("top")
        axes.set_xlabel(score, parse_math=False)
        axes.spines["top"].set_visible(True)
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.set_yticks([])
        for k, (name, own) in enumerate(zip(names, scores.tolist(), strict=True)):
            is_right = k < n_lines
            _name(axes, f"{name}  {own:.4g}", own, first + 0.5 + (k if is_right else n - 1 - k), is_right=is_right)
        for row, (text, members) in zip(rows, bars, strict=True):
            at, y = scores[members], 0.9 + 0.75 * row
            axes.plot([at[0], at[-1]], [y, y], color=SKY, linewidth=2.2, solid_capstyle="round", gid=f"group-{text}")
            axes.plot(at, np.full(len(at), y), "o", color=BLUE, markersize=3.2)
            axes.annotate(text, (at[-1], y), (-4, 0), textcoords="offset points", ha="right", va="center", fontsize=6.5)
        figure.suptitle(title, parse_math=False, fontsize=9)
    return figure


def _name(axes: Axes, text: str, score: float, y: float, *, is_right: bool) -> None:
    """Lead from a score on the axis to its system's name at a side."""
    axes.plot([score, score], [0, y], color=GREY, linewidth=0.5)
    axes.plot([score], [0], "o", color=INK, markersize=3, clip_on=False)
    side = axes.get_xlim()[1 if is_right else 0]
    axes.plot([score, side], [y, y], color=GREY, linewidth=0.5)
    axes.annotate(
        text, (side, y), (4 if is_right else -4, 0), textcoords="offset points", annotation_clip=False,
        ha="left" if is_right else "right", va="center", parse_math=False,
    )  # fmt: skip


def _in_lines(
    names: Sequence[str], scores: NDArray[np.float64], bars: Bars, higher_is_better: bool, title: str, score: str
) -> Figure:
    """Draw a line for each system, the best on top, and a column for each group."""
    n = len(names)
    columns = _rows([(own[0] - 0.5, own[-1] + 0.5) for _, own in bars])
    n_columns = max(columns, default=-1) + 1
    wide = max(0.13 * n_columns, 2.6)
    with canvas(3.4 + inches_of(names) + wide, 1.0 + 0.15 * n) as figure:
        left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": [3, wide]})
        left.plot(scores, range(n), "o", color=INK, markersize=3.5)
        left.set_yticks(range(n), labels=names, parse_math=False, fontsize=7)
        left.set_ylim(n - 0.4, -1.4)
        left.tick_params(axis="y", length=0)
        left.grid(axis="y", color="#e3e7eb", linewidth=0.5)
        left.set_axisbelow(True)
        if not higher_is_better:
            left.invert_xaxis()
        left.set_xlabel(score, parse_math=False)
        plain_title(left, title)
        _columns(right, bars, columns)
        right.grid(axis="y", color="#e3e7eb", linewidth=0.5)
        right.set_axisbelow(True)
        right.set_xlim(-0.7, max(wide / 0.13, n_columns) - 0.3)
        right.set_xticks([])
        plain_title(right, "groups that are not significantly different")
        right.tick_params(axis="y", length=0, labelleft=False)
        right.spines[:].set_visible(False)
    return figure


def _columns(axes: Any, bars: Bars, columns: Sequence[int]) -> None:
    for column, (text, members) in zip(columns, bars, strict=True):
        axes.plot([column, column], [members[0], members[-1]], color=SKY, linewidth=1.6, gid=f"group-{text}")
        axes.plot(np.full(len(members), column), members, "o", color=BLUE, markersize=2.4)
        axes.annotate(text, (column, members[0]), (0, 3), textcoords="offset points", ha="center", fontsize=5.5)


def _rows(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return the row of each span, so that those of one row do not touch; spans are in the order of their starts."""
    ends: list[float] = []
    rows = []
    for start, stop in spans:
        row = next((k for k, end in enumerate(ends) if end < start), len(ends))
        ends[row : row + 1] = [stop]
        rows.append(row)
    return rows
