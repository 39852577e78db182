"""Sizes of differences in words: points of 100 for shares, else the metric's own units."""

from __future__ import annotations

import math
import re

import numpy as np

from sigdask.metrics import SHARES
from sigdask.results.table import Table

MOST_DECIMALS = 10

LARGEST_PLAIN = 1e16
"""From which a number is written in scientific notation: its further digits say nothing."""


def find_metrics_in_points(table: Table) -> frozenset[str]:
    """Return the names of the metrics whose differences are written in points of 100.

    A column of scores may be called accuracy and stand in per cent: where a score is above 1 it is no share.
    """
    largest = np.zeros(len(table.metric.values))
    for scores in (table.score_a, table.score_b):
        np.fmax.at(largest, table.metric.codes, np.abs(scores))
    large = {
        score.name for score, max_score in zip(table.metric.values, largest.tolist(), strict=True) if max_score > 1
    }
    return frozenset(score.name for score in table.metric.values if _is_share(score.name)) - large


def _is_share(name: str) -> bool:
    return re.split(r"[\[:]", name, maxsplit=1)[0].casefold() in SHARES


def format_amount(difference: float, ends: tuple[float, float] | None = None, *, points: bool) -> str:
    """Return the size of a difference as text, with its interval.

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
    >>> format_amount(0.1226, (0.019, 0.2338), points=True), format_amount(0.6172, points=False)
    ('12.3 points [1.9, 23.4]', '0.62')
    >>> format_amount(1e300, points=False), format_amount(1e-300, (-1e-300, 3e-300), points=False)
    ('1e+300', '1e-300 [-1e-300, 3e-300]')
    """
    scale = 100 if points else 1
    low, high = ends or (math.nan, math.nan)
    n_decimals = _count_decimals(scale * difference, scale * (high - low))
    size = _format_decimals(scale * difference, n_decimals)
    size += "" if not points else " point" if float(size) == 1 else " points"
    return size if ends is None else f"{size} {_format_bracketed(scale * low, scale * high, n_decimals)}"


def format_interval_ends(difference: float, low: float, high: float, *, points: bool) -> str:
    """Return the ends of an interval in the metric's units, with as many digits as `format_amount`.

    Examples
    --------
    >>> (format_interval_ends(0.1226, 0.019, 0.2338, points=True),
    ...  format_interval_ends(-1.5, -math.inf, math.inf, points=False))
    ('[0.019, 0.234]', '[no bounds]')
    """
    scale, extra_decimals = (100, 2) if points else (1, 0)
    return _format_bracketed(low, high, _count_decimals(scale * difference, scale * (high - low)) + extra_decimals)


def _format_bracketed(low: float, high: float, n_decimals: int) -> str:
    if math.isinf(low) and math.isinf(high):
        return "[no bounds]"
    return f"[{_format_end(low, n_decimals)}, {_format_end(high, n_decimals)}]"


def _format_end(value: float, n_decimals: int) -> str:
    """Return an end of an interval as text, with more decimals if it would otherwise be written as 0."""
    if math.isinf(value) or value == 0 or round(value, n_decimals) != 0:
        return _format_decimals(value, n_decimals)
    return _format_decimals(value, min(-math.floor(math.log10(abs(value))), MOST_DECIMALS))


def _format_decimals(value: float, n_decimals: int) -> str:
    is_hidden = value != 0 and n_decimals >= MOST_DECIMALS and round(value, n_decimals) == 0
    if not math.isfinite(value) or abs(value) >= LARGEST_PLAIN or is_hidden:
        return f"{value:.3g}"
    return f"{round(value, n_decimals) + 0.0:.{n_decimals}f}"


def _count_decimals(difference: float, width: float) -> int:
    """Return the number of decimals that shows two digits of a difference, or fewer if its interval is wide."""
    size = abs(difference)
    tenth = width / 10 if math.isfinite(width) else 0.0
    large = max(size, tenth)
    needed = 1 - math.floor(math.log10(large)) if large > 0 else 1
    if 0 < size < tenth:
        needed = max(needed, -math.floor(math.log10(size)))  # it is not written as 0
    return min(max(needed, 1), MOST_DECIMALS)
