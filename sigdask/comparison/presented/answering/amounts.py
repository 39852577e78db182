"""How large a difference is, in words: points of 100 of what is a share, else the metric's own units."""

from __future__ import annotations

import math
import re

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.table import Table

SHARES = re.compile(
    r"((macro|micro|samples|type|subset)-)?(accuracy|precision|recall|f1|f|jaccard)|hamming-loss|wer|cer", re.IGNORECASE
)
"""Metrics that are shares of 1, and that people speak of in points of 100."""

MOST_DECIMALS = 10


def in_points(table: Table) -> NDArray[np.bool_]:
    """Return of which metrics differences are told in points of 100, one of each value of `table.metric`.

    A column of scores may be called accuracy and stand in per cent: where a score is above 1 it is no share.
    """
    largest = np.zeros(len(table.metric.values))
    for scores in (table.score_a, table.score_b):
        np.fmax.at(largest, table.metric.codes, np.abs(scores))
    named = [
        SHARES.fullmatch(re.split(r"[\[:]", score.name, maxsplit=1)[0]) is not None for score in table.metric.values
    ]
    return np.array(named, np.bool_) & (largest <= 1)


def amount(difference: float, ends: tuple[float, float] | None = None, *, points: bool) -> str:
    """Write how large a difference is, and between what it may lie.

    Parameters
    ----------
    difference : float
        In the metric's units.
    ends : tuple of float, optional
        The interval's.
    points : bool
        Whether it is told in points of 100.

    Examples
    --------
    >>> amount(0.1226, (0.019, 0.2338), points=True), amount(0.6172, points=False)
    ('12.3 points [1.9, 23.4]', '0.62')
    """
    scale = 100 if points else 1
    low, high = ends or (math.nan, math.nan)
    places = _decimals(scale * difference, scale * (high - low))
    size = _written(scale * difference, places)
    size += "" if not points else " point" if float(size) == 1 else " points"
    return size if ends is None else f"{size} {bracketed(scale * low, scale * high, places)}"


def bracketed(low: float, high: float, places: int) -> str:
    """Write the ends of an interval, each infinite where there is no bound.

    Examples
    --------
    >>> bracketed(-math.inf, 2.25, 1), bracketed(-math.inf, math.inf, 1)
    ('[-inf, 2.2]', '[no bounds]')
    """
    if math.isinf(low) and math.isinf(high):
        return "[no bounds]"
    return f"[{_written(low, places)}, {_written(high, places)}]"


def _written(value: float, places: int) -> str:
    return f"{round(value, places) + 0.0:.{places}f}" if math.isfinite(value) else f"{value:g}"


def _decimals(difference: float, width: float) -> int:
    """Return how many decimals tell a difference: two digits of it, or of a tenth of a wide interval."""
    size = abs(difference)
    tenth = width / 10 if math.isfinite(width) else 0.0
    large = max(size, tenth)
    needed = 1 - math.floor(math.log10(large)) if large > 0 else 1
    if 0 < size < tenth:
        needed = max(needed, -math.floor(math.log10(size)))  # it is not written as 0
    return min(max(needed, 1), MOST_DECIMALS)
