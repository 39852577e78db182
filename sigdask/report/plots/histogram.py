"""Histograms side by side, each with the expected density."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.report.plots.canvas import ORANGE, build_figure, set_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
