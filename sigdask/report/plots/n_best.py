"""N-best curves: precision or recall of the first n candidates of a ranking, for each n."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigdask.report.plots.canvas import BLUE, STYLES, add_legend, build_figure, set_title, shorten_names

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
