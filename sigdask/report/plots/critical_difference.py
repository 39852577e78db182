"""Critical-difference diagrams: bars join systems that are not significantly different (Demšar 2006)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigdask.report.plots.canvas import BLUE, GREY, INK, SKY, build_figure, estimate_width, set_title, shorten_names
from sigdask.statistics.ranking_letters import format_letter

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
        The largest groups of systems of which no two are significantly different, by `find_letter_groups`: places
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
    bars = [
        (format_letter(k), np.sort(np.asarray(members, np.int64)))
        for k, members in enumerate(groups)
        if len(members) > 1
    ]
    drawn_bars = sorted(bars, key=lambda bar: tuple(bar[1]))[:MOST_BARS]
    full_title = f"{title} (the first {MOST_BARS} of {len(bars):,} groups)" if len(bars) > MOST_BARS else title
    draw = _plot_on_axis if max(len(names), len(drawn_bars)) <= MOST_ON_AXIS else _plot_in_lines
    return draw(shorten_names(names), np.asarray(scores, np.float64), drawn_bars, higher_is_better, full_title, score)


Bars = Sequence[tuple[str, NDArray[np.int64]]]


def _plot_on_axis(
    names: Sequence[str], scores: NDArray[np.float64], bars: Bars, higher_is_better: bool, title: str, score: str
) -> Figure:
    """Draw all systems on one axis, with their names below it on both sides."""
    n = len(names)
    distances = np.abs(scores - scores[0]) if n else scores
    margin = 0.04 * float(np.ptp(scores)) if n else 0.0
    rows = _assign_rows([(distances[value[0]], distances[value[-1]] + 1.2 * margin) for _, value in bars])
    names_top = 1.0 + 0.75 * (max(rows, default=-1) + 1)  # the first name's line, below all bars
    n_lines = -(-n // 2)
    with build_figure(
        4.4 + 2 * estimate_width([f"{name} 0.0000" for name in names]), 1.0 + 0.17 * (names_top + n_lines)
    ) as figure:
        axes = figure.add_subplot()
        low, high = (float(scores.min()) - (margin or 0.5), float(scores.max()) + (margin or 0.5)) if n else (0.0, 1.0)
        axes.set_xlim(*((low, high) if higher_is_better else (high, low)))
        axes.set_ylim(names_top + n_lines, 0)
        axes.xaxis.set_ticks_position("top")
        axes.xaxis.set_label_position("top")
        axes.set_xlabel(score, parse_math=False)
        axes.spines["top"].set_visible(True)
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.set_yticks([])
        for k, (name, value) in enumerate(zip(names, scores.tolist(), strict=True)):
            is_right = k < n_lines
            _plot_name(
                axes, f"{name}  {value:.4g}", value, names_top + 0.5 + (k if is_right else n - 1 - k), is_right=is_right
            )
        for row, (text, members) in zip(rows, bars, strict=True):
            positions, y = scores[members], 0.9 + 0.75 * row
            axes.plot(
                [positions[0], positions[-1]],
                [y, y],
                color=SKY,
                linewidth=2.2,
                solid_capstyle="round",
                gid=f"group-{text}",
            )
            axes.plot(positions, np.full(len(positions), y), "o", color=BLUE, markersize=3.2)
            axes.annotate(
                text, (positions[-1], y), (-4, 0), textcoords="offset points", ha="right", va="center", fontsize=6.5
            )
        figure.suptitle(title, parse_math=False, fontsize=9)
    return figure


def _plot_name(axes: Axes, text: str, score: float, y: float, *, is_right: bool) -> None:
    """Draw a line from a score on the axis to the name of its system at the side."""
    axes.plot([score, score], [0, y], color=GREY, linewidth=0.5)
    axes.plot([score], [0], "o", color=INK, markersize=3, clip_on=False)
    side = axes.get_xlim()[1 if is_right else 0]
    axes.plot([score, side], [y, y], color=GREY, linewidth=0.5)
    axes.annotate(
        text, (side, y), (4 if is_right else -4, 0), textcoords="offset points", annotation_clip=False,
        ha="left" if is_right else "right", va="center", parse_math=False,
    )  # fmt: skip


def _plot_in_lines(
    names: Sequence[str], scores: NDArray[np.float64], bars: Bars, higher_is_better: bool, title: str, score: str
) -> Figure:
    """Draw one line for each system, best on top, and one column for each group."""
    n = len(names)
    columns = _assign_rows([(members[0] - 0.5, members[-1] + 0.5) for _, members in bars])
    n_columns = max(columns, default=-1) + 1
    width = max(0.13 * n_columns, 2.6)
    with build_figure(3.4 + estimate_width(names) + width, 1.0 + 0.15 * n) as figure:
        score_axes, group_axes = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": [3, width]})
        score_axes.plot(scores, range(n), "o", color=INK, markersize=3.5)
        score_axes.set_yticks(range(n), labels=names, parse_math=False, fontsize=7)
        score_axes.set_ylim(n - 0.4, -1.4)
        score_axes.tick_params(axis="y", length=0)
        score_axes.grid(axis="y", color="#e3e7eb", linewidth=0.5)
        score_axes.set_axisbelow(True)
        if not higher_is_better:
            score_axes.invert_xaxis()
        score_axes.set_xlabel(score, parse_math=False)
        set_title(score_axes, title)
        _plot_groups(group_axes, bars, columns)
        group_axes.grid(axis="y", color="#e3e7eb", linewidth=0.5)
        group_axes.set_axisbelow(True)
        group_axes.set_xlim(-0.7, max(width / 0.13, n_columns) - 0.3)
        group_axes.set_xticks([])
        set_title(group_axes, "groups that are not significantly different")
        group_axes.tick_params(axis="y", length=0, labelleft=False)
        group_axes.spines[:].set_visible(False)
    return figure


def _plot_groups(axes: Any, bars: Bars, columns: Sequence[int]) -> None:
    for column, (text, members) in zip(columns, bars, strict=True):
        axes.plot([column, column], [members[0], members[-1]], color=SKY, linewidth=1.6, gid=f"group-{text}")
        axes.plot(np.full(len(members), column), members, "o", color=BLUE, markersize=2.4)
        axes.annotate(text, (column, members[0]), (0, 3), textcoords="offset points", ha="center", fontsize=5.5)


def _assign_rows(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return a row for each span, so that spans in one row do not touch; spans are sorted by start."""
    ends: list[float] = []
    rows = []
    for start, stop in spans:
        row = next((k for k, end in enumerate(ends) if end < start), len(ends))
        ends[row : row + 1] = [stop]
        rows.append(row)
    return rows
