"""Figures of single comparisons and of candidate rankings: null distribution, contributions of units, n-best curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.details import NullDistribution, SortedUnits
from sigdask.errors import InputError
from sigdask.report.plots import canvas
from sigdask.report.plots.pairs import describe_score, format_p_values, format_title
from sigdask.results.table import Table
from sigdask.text import format_count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sigdask.analysis.candidate_rankings.spec import RankingEvaluation

MAX_CURVES = 12
"""Maximum number of measures whose curves are drawn."""


def null_distribution(
    edges: NDArray[np.float64],
    counts: NDArray[np.int64],
    observed: float,
    *,
    alternative: str = "two-sided",
    title: str = "",
    score: str = "difference with outputs swapped",
    beside: str = "observed",
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
        is_two_sided = alternative == "two-sided"
        extreme = abs(observed) if is_two_sided else observed
        look: dict[str, Any] = {"color": canvas.ORANGE, "alpha": 0.13, "linewidth": 0}
        if alternative != "greater":
            axes.axvspan(-extreme if is_two_sided else observed, -reach, **look, label="at least as extreme")
        if alternative != "less":
            axes.axvspan(extreme, reach, **look, label="at least as extreme" if alternative == "greater" else None)
        axes.axvline(observed, color=canvas.BLUE, linewidth=1.6, label=beside, gid="observed")
        if is_two_sided:
            axes.axvline(-observed, color=canvas.BLUE, linewidth=1, linestyle="--", label="as far on the other side")
        axes.axvline(0, color=canvas.GREY, linewidth=0.6, linestyle=":")
        axes.set_xlabel(score, parse_math=False, wrap=True)
        axes.set_ylabel("trials")
        canvas.set_title(axes, title)
        canvas.add_legend(figure, axes.get_legend_handles_labels()[0], n_columns=3)
    return figure


def plot_null(table: Table, row: int, distribution: NullDistribution) -> Figure:
    """Draw the null distribution of one comparison."""
    selected, bars = table.take(slice(row, row + 1)), distribution.histogram
    edges = np.asarray(bars.low + bars.width * np.arange(len(bars.counts) + 1), np.float64)
    basis = "all arrangements" if distribution.is_whole else format_count(distribution.n_trials, "trial")
    return null_distribution(
        edges,
        bars.counts,
        distribution.observed,
        alternative=selected.alternative[0],
        title=f"{selected.a[0]} − {selected.b[0]}: {format_title(selected)}",
        score=f"difference of {describe_score(selected)} with outputs swapped: {basis}",
        beside=f"observed: {format_p_values(selected, is_adjusted=False)[0]}",
    )


def plot_units(table: Table, row: int, units: SortedUnits) -> Figure:
    """Draw the sorted contributions of the units to the difference of one comparison, in one colour for each side."""
    selected = table.take(slice(row, row + 1))
    a, b = canvas.shorten_names([selected.a[0], selected.b[0]])
    above, below = (a, b) if selected.metric[0].higher_is_better else (b, a)
    sides = [
        (above, units.n_above, canvas.BLUE, np.maximum(units.values, 0)),
        (below, units.n_below, canvas.ORANGE, np.minimum(units.values, 0)),
    ]
    with canvas.build_figure(5.2, 3) as figure:
        axes = figure.add_subplot()
        for name, n, color, heights in sides:
            label = f"towards {name}: {n:,} of {units.n_units:,}"
            edges = np.append(units.ranks, units.n_units)
            axes.stairs(heights, edges, fill=True, color=color, label=label)
        axes.axhline(0, color=canvas.INK, linewidth=0.8)
        axes.set_xlim(0, units.n_units)
        axes.set_xlabel(f"{selected.unit[0]}s, sorted by contribution", parse_math=False)
        label = f"contribution to the difference of\n{describe_score(selected)} ({units.kind})"
        axes.set_ylabel(label, parse_math=False, wrap=True)
        canvas.set_title(axes, f"{selected.a[0]} − {selected.b[0]}: {format_title(selected)}")
        canvas.add_legend(figure, axes.get_legend_handles_labels()[0], n_columns=3)
    return figure


def plot_n_best(evaluation: RankingEvaluation, score: str) -> Figure:
    """Draw precision or recall of the n best candidates of each measure, for each n, with intervals.

    References
    ----------
    Evert & Krenn 2001, "Methods for the qualitative evaluation of lexical association measures", ACL.
    """
    names = ["n", score, "low", "high"] if score == "precision" else ["n", "recall", "recall_low", "recall_high"]
    rows = evaluation.precision or (evaluation.sampled if score == "precision" else ())
    points: dict[str, list[list[float]]] = {}
    for row in rows:
        points.setdefault(row.measure, []).append([getattr(row, name) for name in names])
    if not points:
        raise InputError(f"there is no {score} of n best to draw")
    measures = sorted(evaluation.measures, key=lambda m: -np.nan_to_num(m.average_precision))
    best = [m.measure for m in measures if m.measure in points][:MAX_CURVES]
    shown = [name for name in points if name in best]
    selection = f"{len(shown)} of {len(points)} measures, of the best average precision"
    title = ": ".join(filter(None, [evaluation.name, selection if len(shown) < len(points) else ""]))
    colors = (canvas.BLUE, canvas.ORANGE, canvas.GREEN, canvas.SKY)
    looks = [(color, dash, mark) for dash, mark in (("-", "o"), ("--", "s"), (":", "D")) for color in colors]
    with canvas.build_figure(5.2, 3.2) as figure:
        axes, lines = figure.add_subplot(), []
        for name, (color, dash, mark) in zip(shown, looks, strict=False):
            n, values, low, high = np.array(sorted(points[name])).T
            axes.fill_between(n, low, high, color=color, alpha=0.15, linewidth=0)
            lines += axes.plot(n, values, dash, color=color, marker=mark, markersize=3, markevery=max(1, len(n) // 10))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("n best")
        axes.set_ylabel(score)
        canvas.set_title(axes, title)
        canvas.add_legend(figure, lines, canvas.shorten_names(shown), n_columns=3)
    return figure
