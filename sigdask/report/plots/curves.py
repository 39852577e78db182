"""Figures of curves and distributions.

- n-best curves: precision or recall of the first n candidates of a ranking, for each n
- scores and p-values over the runs of a plan
- achieved significance: how small p is over all pairs (Sakai 2006)
- histograms side by side, each with the expected density
- the null distribution of a difference, with the observed difference
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigdask.counts.fields import Floats
from sigdask.report.plots import canvas
from sigdask.statistics.ranking_letters import achieved_significance as compute_curve
from sigdask.statistics.ranking_letters import discriminative_power

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_IN_PANEL = 3
"""Maximum number of curves with intervals in one panel. With more, each has a panel."""


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
        Title of the figure, and label of its axis.

    Returns
    -------
    matplotlib.figure.Figure
        Up to three measures share one panel. With more, each has a panel with all others in grey.

    References
    ----------
    Evert & Krenn 2001, "Methods for the qualitative evaluation of lexical association measures", ACL.
    """
    names = canvas.shorten_names([*curves])
    top = (
        1.05 * max((curve.high[np.isfinite(curve.high)].max(initial=0) for curve in curves.values()), default=0.0)
        or 1.0
    )
    if len(curves) <= MAX_IN_PANEL:
        with canvas.build_figure(5.2, 3.2) as figure:
            axes = figure.add_subplot()
            lines = [
                _plot_curve(axes, curve, look) for curve, look in zip(curves.values(), canvas.STYLES, strict=False)
            ]
            _label_axes(axes, title, score, top)
            canvas.add_legend(figure, lines, names)
        return figure
    n_columns = 3
    n_rows = -(-len(curves) // n_columns)
    with canvas.build_figure(2.3 * n_columns, 1.8 * n_rows + 0.3) as figure:
        panels = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, name, curve in zip(panels, names, curves.values(), strict=False):
            for other_curve in curves.values():
                axes.plot(other_curve.n, other_curve.value, color="#cfd5da", linewidth=0.6)
            _plot_curve(axes, curve, {"color": canvas.BLUE, "linewidth": 1.3})
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
    canvas.set_title(axes, title)


LOWEST = 1e-4
"""Smallest p that is drawn."""

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
        Names of the n runs, the first one first.
    scores : mapping of str to float64 array, shape (n,)
        Scores by system. NaN if a run has none.
    p : mapping of str to float64 array, shape (n,)
        p-values by comparison. If empty, there is no panel for p.
    alpha : float
        Level, drawn as a dashed line.
    title, score : str
        Title of the figure, and label of its first axis.
    adjusted : bool
        Whether p is adjusted.

    Returns
    -------
    matplotlib.figure.Figure
        The axis of p is logarithmic. Values below 0.0001 are drawn at 0.0001.
    """
    panels = [panel for panel in ((score, scores), ("adjusted p" if adjusted else "p", p)) if panel[1]] or [
        (score, scores)
    ]
    with canvas.build_figure(min(max(5.6, 0.22 * len(runs) + 2.5), 14), 2.4 * len(panels) + 0.3) as figure:
        all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False).ravel()
        for axes, (name, series) in zip(all_axes, panels, strict=True):
            floor = LOWEST if series is p else -np.inf
            n_runs = len(runs)
            looks = canvas.STYLES * (1 + len(series) // len(canvas.STYLES))
            curves = [
                axes.plot(range(n_runs), np.maximum(values, floor), **look)[0]
                for values, look in zip(series.values(), looks, strict=False)
            ]
            settings = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "ncols": 1 + len(series) // 16}
            canvas.add_legend(axes, curves, canvas.shorten_names([*series]), **settings)
            axes.set_ylabel(name, parse_math=False)
            if floor > 0:
                axes.set_yscale("log")
                axes.set_yticks(DECADES, labels=[f"{'≤ ' * (p == LOWEST)}{p:g}" for p in DECADES])
                axes.set_ylim(LOWEST * 0.8, 1.3)
                axes.axhline(alpha, color=canvas.INK, linewidth=0.8, linestyle="--")
        _label_runs(all_axes[-1], runs)
        canvas.set_title(all_axes[0], title)
    return figure


def _label_runs(axes: Axes, runs: Sequence[str]) -> None:
    """Label the runs on the axis, as many as there is room for, always including the latest."""
    max_labels = 24
    step = -(-len(runs) // max_labels) if runs else 1
    indices = [*range(len(runs) - 1, -1, -step)][::-1]
    slanted = canvas.estimate_width([runs[k] for k in indices]) > 0.35
    axes.set_xticks(
        indices, labels=[runs[k] for k in indices], parse_math=False,
        rotation=45 if slanted else 0, ha="right" if slanted else "center",
    )  # fmt: skip
    axes.set_xlabel("run")


MAX_POINTS = 1000
"""Maximum points of a curve. More cannot be seen."""


def achieved_significance(p: Mapping[str, ArrayLike], alpha: float, *, title: str = "") -> Figure:
    """Draw the p-values of all pairs, largest first. The nearer a curve is to the axes, the more pairs differ.

    Parameters
    ----------
    p : mapping of str to float64 array
        Unadjusted p-values of all pairs, by metric. Unknown ones (NaN) are left out.
    alpha : float
        Level, drawn as a dashed line. The share of pairs below it is next to each name.
    title : str
        Title of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        Below the dashed line, pairs are significantly different.

    References
    ----------
    Sakai 2006, "Evaluating evaluation metrics based on the bootstrap", SIGIR, figure 1.
    """
    with canvas.build_figure(5.2, 3.2) as figure:
        axes = figure.add_subplot()
        curves, legend_names = [], []
        for name, values, style in zip(
            canvas.shorten_names([*p]), p.values(), canvas.STYLES * (1 + len(p) // len(canvas.STYLES)), strict=False
        ):
            p_values = np.asarray(values, np.float64)
            ordered = np.array(compute_curve(p_values[~np.isnan(p_values)]))
            ranks = np.unique(np.linspace(1, len(ordered), min(len(ordered), MAX_POINTS)).round().astype(np.int64))
            curves += axes.plot(ranks, ordered[ranks - 1], markevery=0.1, **style)
            legend_names.append(f"{name}: {discriminative_power(ordered, alpha):.1%} of pairs with p ≤ {alpha:g}")
        axes.axhline(alpha, color=canvas.INK, linewidth=0.8, linestyle="--")
        axes.set_xlabel("pairs, the largest p first")
        axes.set_ylabel("p")
        axes.set_ylim(0, 1.02)
        axes.set_xlim(0, 1.04 * max([1, *map(np.size, p.values())]))
        canvas.set_title(axes, title)
        canvas.add_legend(figure, curves, legend_names, ncols=2)
    return figure


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Counts between edges, and the counts that a model expects at given positions.

    Attributes
    ----------
    edges : float64 array, shape (n + 1,)
        Edges of the bins.
    counts : int64 array, shape (n,)
        Number of values in each bin.
    at, expected : float64 array, shape (m,)
        Positions on the axis, and the count that is expected at each.
    """

    edges: Floats
    counts: NDArray[np.int64]
    at: Floats
    expected: Floats


def histograms(shown: Mapping[str, Histogram]) -> Figure:
    """Draw histograms side by side, each under its title, with the expected counts as a line.

    Parameters
    ----------
    shown : mapping of str to Histogram
        Histograms by their titles.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each histogram.
    """
    with canvas.build_figure(3 * len(shown), 2.6) as figure:
        for axes, (title, histogram) in zip(
            figure.subplots(1, len(shown), squeeze=False)[0], shown.items(), strict=True
        ):
            axes.stairs(histogram.counts, histogram.edges, fill=True, color="#9ab8d4")
            axes.plot(histogram.at, histogram.expected, color=canvas.ORANGE, linewidth=1)
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            canvas.set_title(axes, title)
    return figure


def unit_differences(
    ranks: NDArray[np.int64],
    values: NDArray[np.float64],
    n_units: int,
    sides: Sequence[tuple[str, int]],
    *,
    title: str = "",
    score: str = "contribution",
    units: str = "units",
) -> Figure:
    """Draw what units contribute to a difference, sorted by size, with the system that each side favours.

    Parameters
    ----------
    ranks : int64 array, shape (n,)
        Ranks of the drawn units among all, in ascending order. The largest contribution has rank 0.
    values : float64 array, shape (n,)
        Contributions of these units.
    n_units : int
        Number of all units.
    sides : sequence of (str, int)
        Name of the system that contributions above 0 favour, and their number. Then the same for contributions below 0.
    title, score, units : str
        Title, label of the vertical axis, and name of the units.

    Returns
    -------
    matplotlib.figure.Figure
        Steps as high as the contributions, in one colour for each side.
    """
    with canvas.build_figure(5.2, 3) as figure:
        axes = figure.add_subplot()
        edges = np.append(ranks, n_units)
        names = canvas.shorten_names([name for name, _ in sides])
        labels = [f"towards {name}: {n:,} of {n_units:,}" for name, (_, n) in zip(names, sides, strict=True)]
        parts = (values.clip(0, None), values.clip(None, 0))
        for label, color, part in zip(labels, (canvas.BLUE, canvas.ORANGE), parts, strict=True):
            axes.stairs(part, edges, fill=True, color=color, label=label)
        axes.axhline(0, color=canvas.INK, linewidth=0.8)
        axes.set_xlim(0, n_units)
        axes.set_xlabel(f"{units}, sorted by contribution", parse_math=False)
        axes.set_ylabel(score, parse_math=False, wrap=True)
        canvas.set_title(axes, title)
        canvas.add_legend(figure, axes.get_legend_handles_labels()[0])
    return figure


def null_distribution(
    edges: NDArray[np.float64],
    counts: NDArray[np.int64],
    observed: float,
    *,
    alternative: str = "two-sided",
    title: str = "",
    score: str = "difference with outputs swapped",
    beside: str = "",
) -> Figure:
    """Draw the distribution of differences under random swaps, with the observed difference.

    Parameters
    ----------
    edges : float64 array, shape (n + 1,)
        Edges of the bins.
    counts : int64 array, shape (n,)
        Number of trials in each bin.
    observed : float
        Observed difference.
    alternative : {"two-sided", "greater", "less"}
        Decides which differences are at least as extreme. These are shaded.
    title, score, beside : str
        Title of the figure, label of its axis, and label of the observed difference with its p.

    Returns
    -------
    matplotlib.figure.Figure
        The share of trials in the shaded parts is about p. For p, 1 is added to both counts (Phipson & Smyth 2010,
        "Permutation p-values should never be zero").
    """
    with canvas.build_figure(5.2, 3) as figure:
        axes = figure.add_subplot()
        if len(counts):
            axes.stairs(counts, edges, fill=True, color="#c4ccd4", label="swapped outputs")
        reach = 1.05 * float(np.max(np.abs([*edges, observed]))) or 1.0
        axes.set_xlim(-reach, reach)
        two_sided = alternative == "two-sided"
        extreme = abs(observed) if two_sided else observed
        look: dict[str, Any] = {"color": canvas.ORANGE, "alpha": 0.13, "linewidth": 0}
        if alternative != "greater":
            axes.axvspan(-extreme if two_sided else observed, -reach, **look, label="at least as extreme")
        if alternative != "less":
            axes.axvspan(extreme, reach, **look, label="at least as extreme" if alternative == "greater" else None)
        axes.axvline(observed, color=canvas.BLUE, linewidth=1.6, label=beside or "observed", gid="observed")
        if two_sided:
            axes.axvline(-observed, color=canvas.BLUE, linewidth=1, linestyle="--", label="as far on the other side")
        axes.axvline(0, color=canvas.GREY, linewidth=0.6, linestyle=":")
        axes.set_xlabel(score, parse_math=False, wrap=True)
        axes.set_ylabel("trials")
        canvas.set_title(axes, title)
        canvas.add_legend(figure, axes.get_legend_handles_labels()[0])
    return figure
