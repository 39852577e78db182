"""Figures of curves: n-best lists of candidates, and scores over the runs of a plan.

N-best curves: precision or recall of the first n candidates of a ranking, for each n.

Scores and p-values over the runs of a plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigdask.report.plots.canvas import (
    BLUE,
    INK,
    STYLES,
    add_legend,
    build_figure,
    estimate_width,
    set_title,
    shorten_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_IN_PANEL = 3
"""Curves whose intervals are drawn over each other; more have a panel each."""


@dataclass(frozen=True, slots=True, eq=False)
class NBestCurve:
    """Precision or recall for each n, with its interval: arrays of shape (n_points,)."""

    n: NDArray[np.int64]
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def n_best_curves(curves: Mapping[str, NBestCurve], *, title: str = "", score: str = "precision") -> Figure:
    """Draw the precision (or recall) of the n best, for each n, with intervals.

    Parameters
    ----------
    curves : mapping of str to NBestCurve
        By measure.
    title, score : str
        Above the figure, and of its axis.

    Returns
    -------
    matplotlib.figure.Figure
        Up to three measures stand in one panel; of more, each has a panel with all others in grey.

    References
    ----------
    Evert & Krenn 2001, "Methods for the qualitative evaluation of lexical association measures", ACL.
    """
    names = shorten_names([*curves])
    top = (
        1.05 * max((curve.high[np.isfinite(curve.high)].max(initial=0) for curve in curves.values()), default=0.0)
        or 1.0
    )
    if len(curves) <= MOST_IN_PANEL:
        with build_figure(5.2, 3.2) as figure:
            axes = figure.add_subplot()
            lines = [_plot_curve(axes, curve, look) for curve, look in zip(curves.values(), STYLES, strict=False)]
            _label_axes(axes, title, score, top)
            add_legend(figure, lines, names)
        return figure
    n_columns = 3
    n_rows = -(-len(curves) // n_columns)
    with build_figure(2.3 * n_columns, 1.8 * n_rows + 0.3) as figure:
        panels = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, name, curve in zip(panels, names, curves.values(), strict=False):
            for other_curve in curves.values():
                axes.plot(other_curve.n, other_curve.value, color="#cfd5da", linewidth=0.6)
            _plot_curve(axes, curve, {"color": BLUE, "linewidth": 1.3})
            _label_axes(axes, name, score if axes.get_subplotspec().is_first_col() else "", top)
        for axes in panels[len(curves) :]:
            axes.set_visible(False)
        figure.suptitle(title, parse_math=False, fontsize=9)
    return figure


def _plot_curve(axes: Axes, curve: NBestCurve, look: dict[str, Any]) -> Any:
    """Draw a curve with its interval as a band, and return the line."""
    axes.fill_between(curve.n, curve.low, curve.high, color=look["color"], alpha=0.18, linewidth=0)
    marker_style = {"markevery": 0.1} if len(curve.n) > 1 else {"marker": "o"}
    return axes.plot(curve.n, curve.value, **(look | marker_style))[0]


def _label_axes(axes: Axes, title: str, score: str, top: float) -> None:
    axes.set_xlabel("n best")
    axes.set_ylabel(score)
    axes.set_ylim(0, top)
    set_title(axes, title)


Floats = NDArray[np.float64]

LOWEST = 1e-4
"""p below which no more is told from each other."""

DECADES = (1, 0.1, 0.01, 0.001, LOWEST)


def nights(
    runs: Sequence[str],
    scores: Mapping[str, Floats],
    p: Mapping[str, Floats],
    alpha: float,
    *,
    title: str = "",
    score: str = "score",
    adjusted: bool = False,
) -> Figure:
    """Draw the score of each system, and p of each comparison, over the runs of a plan.

    Parameters
    ----------
    runs : sequence of str
        What each of the n runs is called, the first one first.
    scores : mapping of str to float64 array, shape (n,)
        By system; NaN where a run had none.
    p : mapping of str to float64 array, shape (n,)
        By comparison, likewise; no panel where there is none.
    alpha : float
        Level, drawn as a dashed line.
    title, score : str
        Above the figure, and of its first axis.
    adjusted : bool
        Whether p is adjusted.

    Returns
    -------
    matplotlib.figure.Figure
        p on a logarithmic axis, that ends at 0.0001: smaller ones stand there.
    """
    panels = [panel for panel in ((score, scores), ("adjusted p" if adjusted else "p", p)) if panel[1]] or [
        (score, scores)
    ]
    with build_figure(min(max(5.6, 0.22 * len(runs) + 2.5), 14), 2.4 * len(panels) + 0.3) as figure:
        all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False).ravel()
        for axes, (name, series) in zip(all_axes, panels, strict=True):
            floor = LOWEST if series is p else -np.inf
            _plot_lines(axes, series, floor, len(runs))
            axes.set_ylabel(name, parse_math=False)
            if floor > 0:
                axes.set_yscale("log")
                axes.set_yticks(DECADES, labels=[f"{'≤ ' * (p == LOWEST)}{p:g}" for p in DECADES])
                axes.set_ylim(LOWEST * 0.8, 1.3)
                axes.axhline(alpha, color=INK, linewidth=0.8, linestyle="--")
        _label_runs(all_axes[-1], runs)
        set_title(all_axes[0], title)
    return figure


def _plot_lines(axes: Axes, series: Mapping[str, Floats], floor: float, n_runs: int) -> None:
    looks = STYLES * (1 + len(series) // len(STYLES))
    curves = [
        axes.plot(range(n_runs), np.maximum(values, floor), **look)[0]
        for values, look in zip(series.values(), looks, strict=False)
    ]
    settings = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "ncols": 1 + len(series) // 16}
    add_legend(axes, curves, shorten_names([*series]), **settings)


def _label_runs(axes: Axes, runs: Sequence[str]) -> None:
    """Label the runs on the axis, as many as there is room for, always including the latest."""
    max_labels = 24
    step = -(-len(runs) // max_labels) if runs else 1
    indices = [*range(len(runs) - 1, -1, -step)][::-1]
    slanted = estimate_width([runs[k] for k in indices]) > 0.35
    axes.set_xticks(
        indices, labels=[runs[k] for k in indices], parse_math=False,
        rotation=45 if slanted else 0, ha="right" if slanted else "center",
    )  # fmt: skip
    axes.set_xlabel("run")
