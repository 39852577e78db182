"""Figures of pairs of systems.

- forest plot: differences with their intervals, one below the other (Lewis and Clarke 2001)
- matrix of all pairs: which of the two systems is better, and the p-value
- critical-difference diagram: bars join systems that are not significantly different (Demšar 2006)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Floats
from sigdask.report.plots import canvas
from sigdask.results.table import CONTESTED
from sigdask.statistics.ranking_letters import format_letter
from sigdask.statistics.rounding import format_p

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VERDICT_MARKS: dict[int, tuple[str, dict[str, Any]]] = {
    1: ("significantly different", {"marker": "o", "markerfacecolor": canvas.BLUE}),
    0: ("not significantly different", {"marker": "o", "markerfacecolor": "white"}),
    -1: ("undecided: more trials would decide", {"marker": "D", "markerfacecolor": "white"}),
    CONTESTED: ("contested: only one of two tests rejects", {"marker": "s", "markerfacecolor": "white"}),
}
"""Words and marks of verdicts."""

VERDICT_MARK: dict[str, Any] = {
    "linestyle": "none", "markeredgecolor": canvas.BLUE, "markersize": 4.5, "markeredgewidth": 1
}  # fmt: skip


def forest(
    pairs: Sequence[tuple[str, str]],
    difference: Floats,
    low: Floats,
    high: Floats,
    outcome: NDArray[np.int8],
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
        Differences and the ends of their intervals. NaN if there is none, infinite if it is unbounded.
    outcome : int8 array, shape (n,)
        Verdicts, as in `Table.outcome`.
    beside : sequence of str
        Text to the right of each difference, such as p.
    title, score, note : str
        Title of the figure, label of its axis, and text in small letters above the first row.

    Returns
    -------
    matplotlib.figure.Figure
        A filled mark is a significant difference, an open one is not.

    References
    ----------
    Lewis & Clarke 2001, "Forest plots: trying to see the wood and the trees", BMJ 322.
    """
    n = len(pairs)
    systems, baselines = zip(*pairs, strict=True) if pairs else ((), ())
    if has_baseline := n > 1 and len({*baselines}) == 1:  # said once, to leave room
        names = canvas.fit_names(systems, 0.4, max_characters=60)
    else:
        a, b = (canvas.fit_names(side, 0.2, max_characters=30) for side in (systems, baselines))
        names = [f"{name_a} − {name_b}" for name_a, name_b in zip(a, b, strict=True)]
    if canvas.get_chosen_width() is not None:
        score = score.replace(", ", ",\n")
        if beside and all(" = " in text for text in beside):
            name = beside[0].partition(" = ")[0]  # said once, to leave room
            beside, score = [text.removeprefix(f"{name} = ") for text in beside], f"{score}\n(right: {name})"
    if has_baseline:
        score = f"each system − {canvas.fit_names(baselines[:1], 0.4, max_characters=60)[0]}:\n{score}"
    width = 4.2 + canvas.estimate_width(names) + canvas.estimate_width(beside)
    with canvas.build_figure(width, 1.4 + 0.19 * max(n, 1)) as figure:
        axes = figure.add_subplot()
        rows = np.arange(n)
        axes.axvline(0, color=canvas.INK, linewidth=0.8)
        axes.set_xlim(*_compute_limits(difference, low, high))
        lower, upper = (np.clip(np.nan_to_num(end, nan=0.0), *axes.get_xlim()) for end in (low, high))
        has_interval = ~np.isnan(low) & ~np.isnan(high)
        ends = (values[has_interval] for values in (rows, lower, upper))
        axes.hlines(*ends, color=canvas.BLUE, linewidth=1.1, gid="intervals")
        marks = []
        for kind, (label, look) in VERDICT_MARKS.items():
            if (is_kind := outcome == kind).any():
                marks += axes.plot(difference[is_kind], rows[is_kind], label=label, **VERDICT_MARK | look)
        axes.set_yticks(rows, labels=names, parse_math=False)
        axes.set_ylim(n - 0.4, -0.6)
        canvas.style_rows(axes)
        axes.set_xlabel(score, parse_math=False)
        canvas.set_title(axes, f"{title}\n{note}" if note else title)
        _write_row_texts(axes, beside)
        canvas.add_legend(figure, marks, ncols=2)
    return figure


def _compute_limits(*values: Floats) -> tuple[float, float]:
    """Return the ends of an axis that contains zero and all finite values, with a margin."""
    all_values = np.concatenate([np.zeros(1), *values])
    finite = all_values[np.isfinite(all_values)]
    margin = 0.06 * float(np.ptp(finite)) or 0.01
    return float(finite.min()) - margin, float(finite.max()) + margin


def _write_row_texts(axes: Axes, texts: Sequence[str]) -> None:
    """Write a text at the right of each row."""
    if not texts:
        return
    right_axes = axes.twinx()
    right_axes.set_ylim(axes.get_ylim())
    right_axes.set_yticks(range(len(texts)), labels=texts, parse_math=False, color=canvas.INK)
    right_axes.tick_params(axis="y", length=0)
    right_axes.spines["left"].set_visible(False)


SHADES = {
    0: "#ffffff", 1: "#f1f3f4", 2: "#b9d7ec", 3: "#5aa3d0", 4: "#00568a", -2: "#f9cba4", -3: "#ea8f4a", -4: "#b04c00"
}  # fmt: skip
"""Levels of shading: nothing, not significant, then p below alpha, a fifth and a fiftieth of it. Negative if it is
worse.
"""

ALPHA_SHARES = (1.0, 0.2, 0.02)

MAX_WITH_P = 24
"""Maximum number of systems for which squares have room for p."""

SIDE_WITH_P = 0.3
"""Minimum side of a square with p, in inches."""


def matrix(
    names: Sequence[str],
    p: Floats,
    better: NDArray[np.int8],
    found: NDArray[np.bool_],
    alpha: float,
    *,
    title: str = "",
    adjusted: bool = False,
) -> Figure:
    """Draw a matrix of all pairs of systems that shows whether the row's or the column's is better, and the p-value.

    Parameters
    ----------
    names : sequence of str
        The n systems, of rows and columns alike, best first.
    p : float64 array, shape (n, n)
        p-values. NaN if two systems were not compared, or if only a verdict is known.
    better : int8 array, shape (n, n)
        1 if the row's system scores better than the column's, -1 if worse, 0 if equal or not compared.
    found : bool array, shape (n, n)
        Whether the difference is significant.
    alpha : float
        Level of the verdicts.
    title : str
        Title of the figure.
    adjusted : bool
        Whether p is adjusted.

    Returns
    -------
    matplotlib.figure.Figure
        A triangle upwards (blue) is significantly better, downwards (orange) significantly worse; the darker, the
        smaller p.
    """
    n, short_names = len(names), canvas.fit_names(names, 0.3)
    side = 0.34 if n <= MAX_WITH_P else 0.18 if n <= 60 else 0.12
    size = 8 if n <= MAX_WITH_P else 7 if n <= 60 else 5
    names_width = canvas.estimate_width(short_names, size)
    if (chosen_width := canvas.get_chosen_width()) is not None:
        side = min(side, max(chosen_width - names_width - 0.4, 1.0) / max(n, 1))
    with canvas.build_figure(max(side * n + names_width + 0.4, 5.6), side * n + names_width + 1.2) as figure:
        axes = figure.add_subplot()
        levels = compute_levels(p, better, found, alpha)
        if n:
            from matplotlib.colors import BoundaryNorm, ListedColormap

            keys = sorted(SHADES)
            shades = ListedColormap([SHADES[key] for key in keys])
            norm = BoundaryNorm([keys[0] - 0.5, *(np.add(keys[1:], keys[:-1]) / 2), keys[-1] + 0.5], len(keys))
            axes.imshow(levels, cmap=shades, norm=norm, interpolation="nearest", aspect="equal")
        axes.set_xticks(range(n), labels=short_names, parse_math=False, rotation=90, fontsize=size)
        axes.set_yticks(range(n), labels=short_names, parse_math=False, fontsize=size)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_xticks(np.arange(n + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(n + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=0.5)
        axes.tick_params(which="minor", length=0)
        _plot_marks(axes, levels, better, p, alpha, side)
        canvas.set_title(axes, title)
        canvas.add_legend(figure, _build_handles("adjusted p" if adjusted else "p", alpha))
    return figure


def compute_levels(
    p: Floats, better: NDArray[np.int8], significant: NDArray[np.bool_], alpha: float
) -> NDArray[np.int8]:
    """Return the shade of each square of the matrix, as a key of `SHADES`, by who is better and how small p is."""
    n_levels_below = sum((p <= alpha * share).astype(np.int8) for share in ALPHA_SHARES[1:])
    level = np.where(significant, 2 + n_levels_below, np.where(np.isnan(p) & (better == 0), 0, 1))
    return np.asarray(np.where(significant & (better < 0), -level, level), np.int8)


def _plot_marks(
    axes: Axes, levels: NDArray[np.int8], better: NDArray[np.int8], p: Floats, alpha: float, side: float
) -> None:
    """Draw a mark for each significant pair, and write p-values if there is room."""
    dark = np.abs(levels) == 4
    has_p = side >= SIDE_WITH_P
    area = (72 * side * (0.24 if has_p else 0.5)) ** 2
    for mark, direction in (("^", 1), ("v", -1)):
        for is_dark in (False, True):
            rows, columns = np.nonzero((np.abs(levels) > 1) & (better == direction) & (dark == is_dark))
            if len(rows):
                color = "white" if is_dark else canvas.INK
                axes.scatter(columns, rows - (0.24 if has_p else 0), s=area, c=color, marker=mark, linewidths=0)
    if has_p:
        for row, column in np.argwhere(~np.isnan(p)).tolist():
            axes.text(
                column, row + 0.16, format_p(float(p[row, column]), alpha), ha="center", va="center", fontsize=5.5,
                color="white" if dark[row, column] else canvas.INK, parse_math=False,
            )  # fmt: skip


def _build_handles(p_name: str, alpha: float) -> list[object]:
    from matplotlib.lines import Line2D

    def square(level: int, text: str, mark: str = "s") -> object:
        return Line2D([], [], linestyle="none", marker=mark, color=SHADES[level], markeredgecolor=canvas.INK,
                      markeredgewidth=0.4, markersize=6, label=text)  # fmt: skip

    below = [f"{p_name} ≤ {alpha * share:g}" for share in ALPHA_SHARES]
    better = [square(k + 2, f"row better, {text}", "^") for k, text in enumerate(below)]
    worse = [square(-k - 2, f"row worse, {text}", "v") for k, text in enumerate(below)]
    nothing = [Line2D([], [], linestyle="none", label="")] * 2  # so that each of three columns is of one kind
    return [*better, *worse, square(1, "not significantly different"), *nothing]


MAX_ON_AXIS = 16
"""Maximum numbers of systems and of bars on one axis. With more, each system has its own line."""

MIN_INCHES = 1.5
"""Minimum length of the axis between the names, in inches. If the width leaves less, each system has its own line."""

MAX_BARS = 48
"""Maximum number of bars, those of the best systems."""

Bars = Sequence[tuple[str, NDArray[np.int64]]]


def critical_difference(
    names: Sequence[str],
    scores: Floats,
    groups: Sequence[Sequence[int]],
    *,
    higher_is_better: bool = True,
    title: str = "",
    score: str = "score",
    group_titles: tuple[str, str] = ("groups that are not significantly different", "not\ndifferent"),
    rank_ranges: Sequence[tuple[int, int]] | None = None,
) -> Figure:
    """Draw systems by their scores (or mean ranks), with a bar for each group that is not significantly different.

    Parameters
    ----------
    names : sequence of str
        The systems, best first.
    scores : float64 array, shape (n_systems,)
        Score of each system.
    groups : sequence of sequence of int
        The largest groups of systems of which no two are significantly different (`find_letter_groups`), as indices of
        the names. They get letters in this order.
    higher_is_better : bool
        Direction of the axis. The best system is on the right, or on top.
    title, score : str
        Title of the figure, and label of its axis.
    group_titles : tuple of str
        Heading of the bars, in a wide and in a narrow figure with a line for each system.
    rank_ranges : sequence of (int, int), optional
        The lowest and highest rank of each system. A figure with a line for each system shows them instead of bars,
        with lines between the groups.

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
    sorted_groups = [np.sort(np.asarray(members, np.int64)) for members in groups]
    bars = [(format_letter(k), members) for k, members in enumerate(sorted_groups) if len(members) > 1]
    drawn_bars = sorted(bars, key=lambda bar: tuple(bar[1]))[:MAX_BARS]
    full_title = f"{title} (the first {MAX_BARS} of {len(bars):,} groups)" if len(bars) > MAX_BARS else title
    needed_width = MIN_INCHES + 2 * canvas.estimate_width([f"{name} 0.0000" for name in canvas.shorten_names(names)])
    is_narrow = needed_width > (canvas.get_chosen_width() or math.inf)
    fitted_names, values = canvas.fit_names(names, 0.4), np.asarray(scores, np.float64)
    if is_narrow or max(len(names), len(drawn_bars)) > MAX_ON_AXIS:
        starts = sorted(int(members[0]) for members in sorted_groups)
        ranges = None if rank_ranges is None else (rank_ranges, starts)
        return _plot_in_lines(
            fitted_names, values, drawn_bars, higher_is_better, full_title, score, group_titles, ranges
        )
    return _plot_on_axis(fitted_names, values, drawn_bars, higher_is_better, full_title, score)


def _plot_on_axis(
    names: Sequence[str], scores: Floats, bars: Bars, higher_is_better: bool, title: str, score: str
) -> Figure:
    """Draw all systems on one axis, with their names below it on both sides."""
    n = len(names)
    distances = np.abs(scores - scores[0]) if n else scores
    margin = 0.04 * float(np.ptp(scores)) if n else 0.0
    rows = _assign_rows([(distances[value[0]], distances[value[-1]] + 1.2 * margin) for _, value in bars])
    names_top = 1.0 + 0.75 * (max(rows, default=-1) + 1)  # the first name's line, below all bars
    n_lines = -(-n // 2)
    width = 4.4 + 2 * canvas.estimate_width([f"{name} 0.0000" for name in names])
    with canvas.build_figure(width, 1.0 + 0.17 * (names_top + n_lines)) as figure:
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
        texts = _format_scores(scores.tolist())
        for k, (name, value, text) in enumerate(zip(names, scores.tolist(), texts, strict=True)):
            is_right = k < n_lines
            height = names_top + 0.5 + (k if is_right else n - 1 - k)
            _plot_name(axes, f"{name}  {text}", value, height, is_right=is_right)
        for row, (text, members) in zip(rows, bars, strict=True):
            positions, y = scores[members], 0.9 + 0.75 * row
            look: dict[str, Any] = {
                "color": canvas.SKY,
                "linewidth": 2.2,
                "solid_capstyle": "round",
                "gid": f"group-{text}",
            }
            axes.plot([positions[0], positions[-1]], [y, y], **look)
            axes.plot(positions, np.full(len(positions), y), "o", color=canvas.BLUE, markersize=3.2)
            axes.annotate(
                text, (positions[-1], y), (-4, 0), textcoords="offset points", ha="right", va="center", fontsize=6.5
            )
        figure.suptitle(title, parse_math=False, fontsize=9)
    return figure


def _format_scores(scores: Sequence[float]) -> list[str]:
    """Return scores with as many decimals as four digits of the largest have."""
    largest = f"{max(map(abs, scores), default=0.0):.4g}"
    n_decimals = len(largest.partition(".")[2])
    return [f"{score:.4g}" if "e" in largest else f"{score:.{n_decimals}f}" for score in scores]


def _plot_name(axes: Axes, text: str, score: float, y: float, *, is_right: bool) -> None:
    """Draw a line from a score on the axis to the name of its system at the side."""
    axes.plot([score, score], [0, y], color=canvas.GREY, linewidth=0.5)
    axes.plot([score], [0], "o", color=canvas.INK, markersize=3, clip_on=False)
    side = axes.get_xlim()[1 if is_right else 0]
    axes.plot([score, side], [y, y], color=canvas.GREY, linewidth=0.5)
    axes.annotate(
        text, (side, y), (4 if is_right else -4, 0), textcoords="offset points", annotation_clip=False,
        ha="left" if is_right else "right", va="center", parse_math=False,
    )  # fmt: skip


def _plot_in_lines(
    names: Sequence[str],
    scores: Floats,
    bars: Bars,
    higher_is_better: bool,
    title: str,
    score: str,
    group_titles: tuple[str, str],
    ranges: tuple[Sequence[tuple[int, int]], Sequence[int]] | None,
) -> Figure:
    """Draw one line for each system, best on top, and one column for each group or the ranges of ranks."""
    n = len(names)
    columns = _assign_rows([(members[0] - 0.5, members[-1] + 0.5) for _, members in bars] if ranges is None else [])
    n_columns = max(columns, default=-1) + 1
    width = max(0.13 * n_columns, 2.6)
    with canvas.build_figure(3.4 + canvas.estimate_width(names) + width, 1.0 + 0.15 * n) as figure:
        score_axes, group_axes = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": [3, width]})
        score_axes.plot(scores, range(n), "o", color=canvas.INK, markersize=3.5)
        score_axes.set_yticks(range(n), labels=names, parse_math=False, fontsize=7)
        score_axes.set_ylim(n - 0.4, -1.4)
        canvas.style_rows(score_axes)
        if not higher_is_better:
            score_axes.invert_xaxis()
        score_axes.set_xlabel(score, parse_math=False)
        canvas.set_title(score_axes, title)
        canvas.style_rows(group_axes)
        if ranges is None:
            _plot_groups(group_axes, bars, columns)
            group_axes.set_xlim(-0.7, max(width / 0.13, n_columns) - 0.3)
            group_axes.set_xticks([])
        else:
            _plot_ranges(group_axes, *ranges)
        is_wide = canvas.get_chosen_width() is None
        canvas.set_title(group_axes, group_titles[0 if is_wide else 1])
        group_axes.tick_params(axis="y", labelleft=False)
        group_axes.spines[:].set_visible(False)
    return figure


def _plot_groups(axes: Any, bars: Bars, columns: Sequence[int]) -> None:
    for column, (text, members) in zip(columns, bars, strict=True):
        axes.plot([column, column], [members[0], members[-1]], color=canvas.SKY, linewidth=1.6, gid=f"group-{text}")
        axes.plot(np.full(len(members), column), members, "o", color=canvas.BLUE, markersize=2.4)
        axes.annotate(text, (column, members[0]), (0, 3), textcoords="offset points", ha="center", fontsize=5.5)


def _plot_ranges(axes: Any, ranges: Sequence[tuple[int, int]], starts: Sequence[int]) -> None:
    """Draw the range of ranks of each system, and a line above the first system of each group but the best."""
    low, high = np.asarray(ranges, np.int64).reshape(-1, 2).T
    axes.hlines(np.arange(len(low)), low - 0.35, high + 0.35, color=canvas.SKY, linewidth=2.2, gid="ranks")
    for start in starts:
        if start:
            axes.axhline(start - 0.5, color=canvas.INK, linewidth=0.6, gid="cluster")
    axes.set_xlim(0.5, max(len(low), 1) + 0.5)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("rank")


def _assign_rows(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return a row for each span, so that spans in one row do not touch; spans are sorted by start."""
    ends: list[float] = []
    rows = []
    for start, stop in spans:
        row = next((k for k, end in enumerate(ends) if end < start), len(ends))
        ends[row : row + 1] = [stop]
        rows.append(row)
    return rows
