"""Achieved significance: how small p is over all pairs (Sakai 2006)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sigdask.report.plots.canvas import INK, STYLES, add_legend, build_figure, set_title, shorten_names
from sigdask.statistics.ranking_letters import achieved_significance as compute_curve
from sigdask.statistics.ranking_letters import discriminative_power

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_POINTS = 1000
"""Of a curve; more cannot be seen."""


def achieved_significance(p: Mapping[str, ArrayLike], alpha: float, *, title: str = "") -> Figure:
    """Draw the p-values of all pairs, largest first; the nearer a curve is to the axes, the more pairs differ.

    Parameters
    ----------
    p : mapping of str to float64 array
        By metric, the p-values of its pairs, unadjusted; those that are not known (NaN) are left out.
    alpha : float
        Level, drawn as a dashed line; beside each name stands the share of pairs below it.
    title : str
        Above the figure.

    Returns
    -------
    matplotlib.figure.Figure
        Where a curve falls below the dashed line, pairs are significantly different.

    References
    ----------
    Sakai 2006, "Evaluating evaluation metrics based on the bootstrap", SIGIR, figure 1.
    """
    with build_figure(5.2, 3.2) as figure:
        axes = figure.add_subplot()
        curves, legend_names = [], []
        for name, values, style in zip(
            shorten_names([*p]), p.values(), STYLES * (1 + len(p) // len(STYLES)), strict=False
        ):
            p_values = np.asarray(values, np.float64)
            ordered = np.array(compute_curve(p_values[~np.isnan(p_values)]))
            ranks = np.unique(np.linspace(1, len(ordered), min(len(ordered), MOST_POINTS)).round().astype(np.int64))
            curves += axes.plot(ranks, ordered[ranks - 1], markevery=0.1, **style)
            legend_names.append(f"{name}: {discriminative_power(ordered, alpha):.1%} of pairs with p ≤ {alpha:g}")
        axes.axhline(alpha, color=INK, linewidth=0.8, linestyle="--")
        axes.set_xlabel("pairs of systems, the largest p first")
        axes.set_ylabel("p")
        axes.set_ylim(0, 1.02)
        axes.set_xlim(0, 1.04 * max([1, *map(np.size, p.values())]))
        set_title(axes, title)
        add_legend(figure, curves, legend_names, ncols=2)
    return figure
