"""Figures of candidate rankings: precision or recall of the n best candidates, for each n."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sigdask.errors import InputError
from sigdask.report.plots import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sigdask.analysis.candidate_rankings.spec import RankingEvaluation

MAX_CURVES = 12
"""Maximum number of measures whose curves are drawn."""


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
