"""Numbers as they are written: p rounded up, limits outwards, so that none claims more than was counted."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

UP, DOWN = "up", "down"

TENS = 10.0 ** np.arange(20)
"""Powers of ten, all exact."""

LARGE, SMALL = 1e6, 5e-5
"""From which and below which scores are written in scientific notation."""

MOST_DIGITS = 17
"""Digits that tell every float64 apart."""


def score_text(score: float) -> str:
    """Write a score with four decimals, a large one with six digits, and one that would be 0.0000 with three.

    Examples
    --------
    >>> score_text(0.25), score_text(1e300), score_text(1e-300), score_text(0.0)
    ('0.2500', '1e+300', '1e-300', '0.0000')
    """
    return format(score, _form(score))


def signed(score: float) -> str:
    """Write a difference with its sign."""
    return format(score, f"+{_form(score)}")


def _form(score: float) -> str:
    size = abs(score)
    return ".6g" if size >= LARGE else ".3g" if 0 < size < SMALL else ".4f"


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
    return _telling(p, level, digits, UP)


def p_equals(p: float, level: float | None = None, *, digits: int = 3) -> str:
    """Write `p = 0.0123` as `p_text` does, or `p < 1e-300`.

    Examples
    --------
    >>> p_equals(0.05003), p_equals(0.0)
    ('p = 0.0501', 'p < 1e-300')
    """
    return "p < 1e-300" if p == 0 else f"p = {p_text(p, level, digits=digits)}"


def rounded_up(p: NDArray[np.float64], digits: int = 3) -> NDArray[np.float64]:
    """Return p-values rounded up as `p_text` writes them, so that few texts need be made of many.

    Values below 1e-16 and what is no number stay.

    Examples
    --------
    >>> rounded_up(np.array([0.00019836406863778244, 0.25, 1.0, 1e-200])).tolist()
    [0.000199, 0.25, 1.0, 1e-200]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        places = digits - 1 - np.floor(np.log10(p))
    within = (places >= 0) & (places < len(TENS))
    tens = TENS[np.where(within, places, 0).astype(np.int64)]
    whole = np.ceil(p * tens)  # by one too large, or too small, where the product is rounded
    whole -= (whole - 1) / tens >= p  # a quotient of whole numbers is the float next to the decimal
    whole += whole / tens < p
    return np.where(within & (whole <= 10**digits), whole / tens, p)


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
    return f"{_telling(low, level, _digits(low, place), DOWN)} to {_telling(high, level, _digits(high, place), UP)}"


def low_text(value: float, digits: int = 3) -> str:
    """Write a lower limit, or a level that something is held against, rounded down."""
    return _rounded(value, digits, DOWN)


def high_text(value: float, digits: int = 3, *, level: float | None = None) -> str:
    """Write an upper limit, rounded up, on the side of a level where it stands."""
    return _telling(value, level, digits, UP)


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
    text = f"{value:.{digits - 1}e}"
    nearest = float(text)
    if nearest < value if rounding is UP else nearest > value:
        nearest = _next(text, digits, rounding)
    return f"{nearest:.{digits}g}"


def _next(text: str, digits: int, rounding: str) -> float:
    """Return the number of so many digits that is next above (or below) one of as many."""
    mantissa, exponent = text.split("e")
    whole, places = int(mantissa.replace(".", "")), int(exponent) - digits + 1
    if abs(whole) == 10 ** (digits - 1) and (whole < 0) == (rounding is UP):  # below a power of ten digits are finer
        whole, places = 10 * whole, places - 1
    return float(f"{whole + (1 if rounding is UP else -1)}e{places}")
