"""How large a difference is, in words: points of 100 of what is a share, else the metric's own units."""

from __future__ import annotations

import math
import re

import numpy as np

from sigdask.metrics import SHARES
from sigdask.results.table import Table

MOST_DECIMALS = 10

LARGEST_PLAIN = 1e16
"""From which a number is written in scientific notation: its further digits say nothing."""


def in_points(table: Table) -> frozenset[str]:
    """Return the metrics whose differences are told in points of 100.

    A column of scores may be called accuracy and stand in per cent: where a score is above 1 it is no share.
    """
    largest = np.zeros(len(table.metric.values))
    for scores in (table.score_a, table.score_b):
        np.fmax.at(largest, table.metric.codes, np.abs(scores))
    large = {score.name for score, most in zip(table.metric.values, largest.tolist(), strict=True) if most > 1}
    return frozenset(score.name for score in table.metric.values if _is_share(score.name)) - large


def _is_share(name: str) -> bool:
    return re.split(r"[\[:]", name, maxsplit=1)[0].casefold() in SHARES


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
    >>> amount(1e300, points=False), amount(1e-300, (-1e-300, 3e-300), points=False)
    ('1e+300', '1e-300 [-1e-300, 3e-300]')
    """
    scale = 100 if points else 1
    low, high = ends or (math.nan, math.nan)
    places = _decimals(scale * difference, scale * (high - low))
    size = _written(scale * difference, places)
    size += "" if not points else " point" if float(size) == 1 else " points"
    return size if ends is None else f"{size} {_bracketed(scale * low, scale * high, places)}"


def ends_text(difference: float, low: float, high: float, *, points: bool) -> str:
    """Write the ends of an interval in the metric's units, to the digits that `amount` writes.

    Examples
    --------
    >>> ends_text(0.1226, 0.019, 0.2338, points=True), ends_text(-1.5, -math.inf, math.inf, points=False)
    ('[0.019, 0.234]', '[no bounds]')
    """
    scale, more = (100, 2) if points else (1, 0)
    return _bracketed(low, high, _decimals(scale * difference, scale * (high - low)) + more)


def _bracketed(low: float, high: float, places: int) -> str:
    if math.isinf(low) and math.isinf(high):
        return "[no bounds]"
    return f"[{_end(low, places)}, {_end(high, places)}]"


def _end(value: float, places: int) -> str:
    """Write an end of an interval; one that is not 0 is not written as 0."""
    if math.isinf(value) or value == 0 or round(value, places) != 0:
        return _written(value, places)
    return _written(value, min(-math.floor(math.log10(abs(value))), MOST_DECIMALS))


def _written(value: float, places: int) -> str:
    is_hidden = value != 0 and places >= MOST_DECIMALS and round(value, places) == 0
    if not math.isfinite(value) or abs(value) >= LARGEST_PLAIN or is_hidden:
        return f"{value:.3g}"
    return f"{round(value, places) + 0.0:.{places}f}"


def _decimals(difference: float, width: float) -> int:
    """Return how many decimals tell a difference: two digits of it, or of a tenth of a wide interval."""
    size = abs(difference)
    tenth = width / 10 if math.isfinite(width) else 0.0
    large = max(size, tenth)
    needed = 1 - math.floor(math.log10(large)) if large > 0 else 1
    if 0 < size < tenth:
        needed = max(needed, -math.floor(math.log10(size)))  # it is not written as 0
    return min(max(needed, 1), MOST_DECIMALS)
