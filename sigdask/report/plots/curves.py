"""Curves of n best: how good the first n of a ranking are, for each n."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigdask.report.plots.canvas import BLUE, STYLES, canvas, labels, legend, plain_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_TOGETHER = 3
"""Curves whose intervals are drawn over each other; more have a panel each."""


@dataclass(frozen=True, slots=True, eq=False)
class NBestCurve:
    """What was found for each n, with its interval: arrays of shape (n_points,)."""

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
    names = labels([*curves])
    top = 1.05 * max((own.high[np.isfinite(own.high)].max(initial=0) for own in curves.values()), default=0.0) or 1.0
    if len(curves) <= MOST_TOGETHER:
        with canvas(5.2, 3.2) as figure:
            axes = figure.add_subplot()
            lines = [_line(axes, own, look) for own, look in zip(curves.values(), STYLES, strict=False)]
            _finish(axes, title, score, top)
            legend(figure, lines, names)
        return figure
    n_columns = 3
    n_rows = -(-len(curves) // n_columns)
    with canvas(2.3 * n_columns, 1.8 * n_rows + 0.3) as figure:
        panels = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, name, own in zip(panels, names, curves.values(), strict=False):
            for other in curves.values():
                axes.plot(other.n, other.value, color="#cfd5da", linewidth=0.6)
            _line(axes, own, {"color": BLUE, "linewidth": 1.3})
            _finish(axes, name, score if axes.get_subplotspec().is_first_col() else "", top)
        for axes in panels[len(curves) :]:
            axes.set_visible(False)
        figure.suptitle(title, parse_math=False, fontsize=9)
    return figure


def _line(axes: Axes, own: NBestCurve, look: dict[str, Any]) -> Any:
    """Draw a curve in its band; return the curve."""
    axes.fill_between(own.n, own.low, own.high, color=look["color"], alpha=0.18, linewidth=0)
    more = {"markevery": 0.1} if len(own.n) > 1 else {"marker": "o"}
    return axes.plot(own.n, own.value, **(look | more))[0]


def _finish(axes: Axes, title: str, score: str, top: float) -> None:
    axes.set_xlabel("n best")
    axes.set_ylabel(score)
    axes.set_ylim(0, top)
    plain_title(axes, title)
