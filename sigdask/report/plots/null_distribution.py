"""Null distribution of a difference, with the observed one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.report.plots.canvas import BLUE, GREY, ORANGE, add_legend, build_figure, set_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def null_distribution(
    edges: NDArray[np.float64],
    counts: NDArray[np.int64],
    observed: float,
    *,
    alternative: str = "two-sided",
    title: str = "",
    score: str = "difference of shuffled outputs",
    beside: str = "",
) -> Figure:
    """Draw the differences that randomly swapped outputs have, with the observed difference among them.

    Parameters
    ----------
    edges : float64 array, shape (n + 1,)
        Of the bins.
    counts : int64 array, shape (n,)
        Trials in each.
    observed : float
        The difference that was found.
    alternative : {"two-sided", "greater", "less"}
        Which differences are at least as extreme: those shaded.
    title, score, beside : str
        Above the figure, of its axis, and what the observed difference is called, with its p.

    Returns
    -------
    matplotlib.figure.Figure
        The share of trials in the shaded parts is p, but for the one that is added to both counts (Phipson and Smyth
        2010).
    """
    with build_figure(5.2, 3) as figure:
        axes = figure.add_subplot()
        if len(counts):
            axes.stairs(counts, edges, fill=True, color="#c4ccd4", label="shuffled outputs")
        reach = 1.05 * float(np.max(np.abs([*edges, observed]))) or 1.0
        axes.set_xlim(-reach, reach)
        upper, lower = _find_shaded(observed, alternative)
        for limit, end in ((upper, reach), (lower, -reach)):
            if limit is not None:
                axes.axvspan(limit, end, color=ORANGE, alpha=0.13, linewidth=0)
        axes.axvline(observed, color=BLUE, linewidth=1.6, label=beside or "observed", gid="observed")
        if alternative == "two-sided":
            axes.axvline(-observed, color=BLUE, linewidth=1, linestyle="--", label="as far on the other side")
        axes.axvline(0, color=GREY, linewidth=0.6, linestyle=":")
        axes.set_xlabel(score, parse_math=False)
        axes.set_ylabel("trials")
        set_title(axes, title)
        add_legend(figure, axes.get_legend_handles_labels()[0])
    return figure


def _find_shaded(observed: float, alternative: str) -> tuple[float | None, float | None]:
    """Return from which difference upwards, and from which downwards, the tails that p counts are shaded."""
    if alternative == "two-sided":
        return abs(observed), -abs(observed)
    return (observed, None) if alternative == "greater" else (None, observed)
