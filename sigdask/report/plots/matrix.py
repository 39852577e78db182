"""Matrix of all pairs of systems: which of the two is better, and its p-value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.report.plots.canvas import INK, add_legend, build_figure, estimate_width, set_title, shorten_names
from sigdask.statistics.rounding import format_p

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHADES = {
    0: "#ffffff", 1: "#f1f3f4", 2: "#b9d7ec", 3: "#5aa3d0", 4: "#00568a", -2: "#f9cba4", -3: "#ea8f4a", -4: "#b04c00"
}  # fmt: skip
"""Of levels: nothing, not significant, then p below alpha, a fifth and a fiftieth of it; below 0 where it is worse."""

ALPHA_SHARES = (1.0, 0.2, 0.02)

MOST_WITH_P = 24
"""Systems up to which p is written into each square."""


def matrix(
    names: Sequence[str],
    p: NDArray[np.float64],
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
        NaN where two were not compared, or nothing is known but a verdict.
    better : int8 array, shape (n, n)
        1 where the row's system scores better than the column's, -1 where worse, 0 where the same or not compared.
    found : bool array, shape (n, n)
        Where the difference is significant.
    alpha : float
        Level of the verdicts.
    title : str
        Above the figure.
    adjusted : bool
        Whether p is adjusted.

    Returns
    -------
    matplotlib.figure.Figure
        A triangle upwards (blue) is significantly better, downwards (orange) significantly worse; the darker, the
        smaller p.
    """
    n, short_names = len(names), shorten_names(names)
    side = 0.34 if n <= MOST_WITH_P else 0.18 if n <= 60 else 0.12
    size = 8 if n <= MOST_WITH_P else 7 if n <= 60 else 5
    names_width = estimate_width(short_names, size)
    with build_figure(max(side * n + names_width + 0.4, 5.6), side * n + names_width + 1.2) as figure:
        axes = figure.add_subplot()
        if n:
            _plot_squares(axes, compute_levels(p, better, found, alpha))
        axes.set_xticks(range(n), labels=short_names, parse_math=False, rotation=90, fontsize=size)
        axes.set_yticks(range(n), labels=short_names, parse_math=False, fontsize=size)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_xticks(np.arange(n + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(n + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=0.5)
        axes.tick_params(which="minor", length=0)
        _plot_marks(axes, better, found, p, alpha, side)
        set_title(axes, title)
        p_name = "adjusted p" if adjusted else "p"
        add_legend(figure, _build_handles(p_name, alpha))
    return figure


def compute_levels(
    p: NDArray[np.float64], better: NDArray[np.int8], significant: NDArray[np.bool_], alpha: float
) -> NDArray[np.int8]:
    """Return the shade of each square of the matrix, as a key of `SHADES`, by who is better and how small p is."""
    n_levels_below = sum((p <= alpha * share).astype(np.int8) for share in ALPHA_SHARES[1:])
    level = np.where(significant, 2 + n_levels_below, np.where(np.isnan(p) & (better == 0), 0, 1))
    return np.asarray(np.where(significant & (better < 0), -level, level), np.int8)


def _plot_squares(axes: Axes, level: NDArray[np.int8]) -> None:
    from matplotlib.colors import BoundaryNorm, ListedColormap

    keys = sorted(SHADES)
    shades = ListedColormap([SHADES[key] for key in keys])
    norm = BoundaryNorm([keys[0] - 0.5, *(np.add(keys[1:], keys[:-1]) / 2), keys[-1] + 0.5], len(keys))
    axes.imshow(level, cmap=shades, norm=norm, interpolation="nearest", aspect="equal")


def _plot_marks(
    axes: Axes,
    better: NDArray[np.int8],
    significant: NDArray[np.bool_],
    p: NDArray[np.float64],
    alpha: float,
    side: float,
) -> None:
    """Draw a mark for each significant pair, and write p-values if there is room."""
    dark = np.abs(compute_levels(p, better, significant, alpha)) == 4
    has_p = len(p) <= MOST_WITH_P
    area = (72 * side * (0.24 if has_p else 0.5)) ** 2
    for mark, direction in (("^", 1), ("v", -1)):
        for is_dark in (False, True):
            rows, columns = np.nonzero(significant & (better == direction) & (dark == is_dark))
            if len(rows):
                color = "white" if is_dark else INK
                axes.scatter(columns, rows - (0.24 if has_p else 0), s=area, c=color, marker=mark, linewidths=0)
    if has_p:
        for row, column in np.argwhere(~np.isnan(p)).tolist():
            axes.text(
                column, row + 0.16, format_p(float(p[row, column]), alpha), ha="center", va="center", fontsize=5.5,
                color="white" if dark[row, column] else INK, parse_math=False,
            )  # fmt: skip


def _build_handles(p_name: str, alpha: float) -> list[object]:
    from matplotlib.lines import Line2D

    def square(level: int, text: str, mark: str = "s") -> object:
        return Line2D([], [], linestyle="none", marker=mark, color=SHADES[level], markeredgecolor=INK,
                      markeredgewidth=0.4, markersize=6, label=text)  # fmt: skip

    below = [f"{p_name} ≤ {alpha * share:g}" for share in ALPHA_SHARES]
    better = [square(k + 2, f"row better, {text}", "^") for k, text in enumerate(below)]
    worse = [square(-k - 2, f"row worse, {text}", "v") for k, text in enumerate(below)]
    nothing = [Line2D([], [], linestyle="none", label="")] * 2  # so that each of three columns is of one kind
    return [*better, *worse, square(1, "not significantly different"), *nothing]
