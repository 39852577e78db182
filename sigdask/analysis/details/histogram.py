"""Histograms of numbers that may lie on a lattice: bars as wide as some of its steps, so that none looks empty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_BARS = 61
ROUNDING = 1e-9
"""Share of the range within which numbers are the same."""


@dataclass(frozen=True, slots=True, eq=False)
class EqualBars:
    """Bars of one width.

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
    def of(values: NDArray[np.float64], marked: NDArray[np.bool_]) -> EqualBars:
        """Sort values, of which some are marked, into bars; at least one value."""
        least, most = float(values.min()), float(values.max())
        reach = most - least
        if reach <= 0:
            return EqualBars(least - 0.5, 1.0, np.array([len(values)]), np.array([np.count_nonzero(marked)]))
        gaps = np.diff(np.sort(values))
        step = float(gaps[gaps > ROUNDING * reach].min(initial=reach))
        n_steps = max(round(reach / step) + 1, 1)
        width = step * -(-n_steps // MOST_BARS)
        low = least - step / 2
        at = np.clip(((values - low) / width).astype(np.int64), 0, int((most - low) / width))
        n_bars = int(at.max()) + 1
        return EqualBars(low, width, np.bincount(at, minlength=n_bars), np.bincount(at[marked], minlength=n_bars))
