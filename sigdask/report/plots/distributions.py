"""Figures of distributions: achieved significance, histograms, and the null distribution of a difference.

Achieved significance: how small p is over all pairs (Sakai 2006).

Histograms side by side, each with the expected density.

Null distribution of a difference, with the observed one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigdask.report.plots.canvas import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    STYLES,
    add_legend,
    build_figure,
    set_title,
    shorten_names,
)
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


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Counts between edges, and the counts that a model expects at given positions.

    Attributes
    ----------
    edges : float64 array, shape (n + 1,)
    counts : int64 array, shape (n,)
    at, expected : float64 array, shape (m,)
    """

    edges: Floats
    counts: NDArray[np.int64]
    at: Floats
    expected: Floats


def histograms(shown: Mapping[str, Histogram]) -> Figure:
    """Draw histograms side by side, each under its title, with the expected counts as a line."""
    with build_figure(3 * len(shown), 2.6) as figure:
        for axes, (title, histogram) in zip(
            figure.subplots(1, len(shown), squeeze=False)[0], shown.items(), strict=True
        ):
            axes.stairs(histogram.counts, histogram.edges, fill=True, color="#9ab8d4")
            axes.plot(histogram.at, histogram.expected, color=ORANGE, linewidth=1)
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            set_title(axes, title)
    return figure


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
