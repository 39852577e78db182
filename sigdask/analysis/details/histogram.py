"""Histograms of numbers that may lie on a lattice: bars whole steps wide, so that none looks empty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_BARS = 61
ROUNDING = 1e-9
"""Share of the range within which numbers are the same."""


@dataclass(frozen=True, slots=True, eq=False)
class EqualBars:
    """Histogram bars of equal width.

    Attributes
    ----------
    low, width : float
        Where the first begins, and how wide each is.
    counts : int64 array, shape (n_bars,)
        Numbers in each.
    marked : int64 array, shape (n_bars,)
        Those of them that are marked.
    """

    low: float
    width: float
    counts: NDArray[np.int64]
    marked: NDArray[np.int64]

    @staticmethod
    def from_values(values: NDArray[np.float64], marked: NDArray[np.bool_]) -> EqualBars:
        """Return a histogram of one or more values and of the marked values among them."""
        minimum, maximum = float(values.min()), float(values.max())
        reach = maximum - minimum
        if reach <= 0:
            return EqualBars(minimum - 0.5, 1.0, np.array([len(values)]), np.array([np.count_nonzero(marked)]))
        gaps = np.diff(np.sort(values))
        step = float(gaps[gaps > ROUNDING * reach].min(initial=reach))
        n_steps = max(round(reach / step) + 1, 1)
        width = step * -(-n_steps // MOST_BARS)
        low = minimum - step / 2
        bar_index = np.clip(((values - low) / width).astype(np.int64), 0, int((maximum - low) / width))
        n_bars = int(bar_index.max()) + 1
        return EqualBars(
            low, width, np.bincount(bar_index, minlength=n_bars), np.bincount(bar_index[marked], minlength=n_bars)
        )
