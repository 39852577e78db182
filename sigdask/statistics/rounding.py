"""Numbers as they are written: p rounded up, limits outwards, so that none claims more than was counted."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

MOST_DIGITS = 17
"""Digits that tell every float64 apart."""


def p_text(p: float, level: float | None = None, *, digits: int = 3) -> str:
    """Write a p-value, rounded up; nothing else writes one.

    Parameters
    ----------
    p : float
        From 0 to 1; NaN where there is none, 0 where it is too small for a float.
    level : float, optional
        What it is held against: as many digits are written as show on which side of it p lies.
    digits : int
        That are written otherwise.

    Examples
    --------
    >>> p_text(0.00019836406863778244), p_text(0.25), p_text(1.0), p_text(205 / 4096), p_text(0.0)
    ('0.000199', '0.25', '1', '0.0501', '<1e-300')
    >>> p_text(0.012344, level=0.012345)
    '0.012344'
    """
    if math.isnan(p):
        return "none"
    if p == 0:
        return "<1e-300"
    return _telling(p, level, digits, ROUND_CEILING)


def p_equals(p: float, level: float | None = None, *, digits: int = 3) -> str:
    """Write `p = 0.0123` as `p_text` does, or `p < 1e-300`.

    Examples
    --------
    >>> p_equals(0.05003), p_equals(0.0)
    ('p = 0.0501', 'p < 1e-300')
    """
    return "p < 1e-300" if p == 0 else f"p = {p_text(p, level, digits=digits)}"


def limits_text(low: float, high: float, level: float | None = None) -> str:
    """Write an interval, its limits rounded outwards to the first digit or two of its width.

    Parameters
    ----------
    low, high : float
        The limits.
    level : float, optional
        As many digits are written as show on which side of it each limit lies.

    Examples
    --------
    >>> limits_text(0.0001559, 0.0002275), limits_text(0.0, 1.0), limits_text(0.0502, 0.0534, level=0.05)
    ('0.00015 to 0.00023', '0 to 1', '0.0502 to 0.0534')
    """
    width = Decimal(repr(high)) - Decimal(repr(low))
    place = width.adjusted() - (width.as_tuple().digits[0] < 5) if width else -MOST_DIGITS
    return (
        f"{_telling(low, level, _digits(low, place), ROUND_FLOOR)} to "
        f"{_telling(high, level, _digits(high, place), ROUND_CEILING)}"
    )


def low_text(value: float, digits: int = 3) -> str:
    """Write a lower limit, or a level that something is held against, rounded down."""
    return _rounded(value, digits, ROUND_FLOOR)


def high_text(value: float, digits: int = 3, *, level: float | None = None) -> str:
    """Write an upper limit, rounded up, on the side of a level where it stands."""
    return _telling(value, level, digits, ROUND_CEILING)


def _digits(value: float, place: int) -> int:
    """Return how many digits of a value stand at a decimal place and before it."""
    return max(Decimal(repr(value)).adjusted() - place + 1, 1)


def _telling(value: float, level: float | None, digits: int, rounding: str) -> str:
    """Round, with as many more digits as keep the value on its side of a level."""
    text = _rounded(value, digits, rounding)
    while level is not None and digits < MOST_DIGITS and (float(text) <= level) != (value <= level):
        digits += 1
        text = _rounded(value, digits, rounding)
    return text


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    exact = Decimal(repr(value))
    rounded = exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=rounding)
    return f"{float(rounded):.{digits}g}"
