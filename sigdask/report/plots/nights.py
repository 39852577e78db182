"""Scores and p-values over the runs of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.report.plots.canvas import INK, STYLES, add_legend, build_figure, estimate_width, set_title, shorten_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
