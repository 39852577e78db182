"""Histograms beside each other, each with the density that it is held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.report.plots.canvas import ORANGE, canvas, plain_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Counts between edges, and how many a model expects at some places.

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
    """Draw histograms side by side, each under its title, with what is expected as a line."""
    with canvas(3 * len(shown), 2.6) as figure:
        for axes, (title, own) in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown.items(), strict=True):
            axes.stairs(own.counts, own.edges, fill=True, color="#9ab8d4")
            axes.plot(own.at, own.expected, color=ORANGE, linewidth=1)
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            plain_title(axes, title)
    return figure
