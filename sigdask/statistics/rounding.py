"""Conservative rounding of printed numbers: p upwards, interval limits outwards."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache

import numpy as np

from sigdask.counts.fields import Floats

UP, DOWN = "up", "down"

POWERS_OF_TEN = 10.0 ** np.arange(20)
"""Powers of ten, all exact."""

LARGE, SMALL = 1e6, 5e-5
"""Scores of at least the first or below the second are written in scientific notation."""

MAX_DIGITS = 17
"""Digits that distinguish any two float64 numbers."""


def format_score(score: float) -> str:
    """Return a score with four decimals; large ones with six digits, tiny nonzero ones with three.

    Examples
    --------
    >>> format_score(0.25), format_score(1e300), format_score(1e-300), format_score(0.0)
    ('0.2500', '1e+300', '1e-300', '0.0000')
    """
    return format(score, _choose_format(score))


def format_signed(score: float) -> str:
    """Return a difference with its sign."""
    return format(score, f"+{_choose_format(score)}")


def _choose_format(score: float) -> str:
    size = abs(score)
    return ".6g" if size >= LARGE else ".3g" if 0 < size < SMALL else ".4f"


def format_p(p: float, level: float | None = None, *, digits: int = 3, is_bound: bool = False) -> str:
    """Return a p-value as text, rounded up; all printed p-values come from this function.

    Parameters
    ----------
    p : float
        From 0 to 1, NaN if there is none, 0 if it is too small for a float.
    level : float, optional
        Level with which p is compared. Enough digits are written to show on which side of it p is.
    digits : int
        Number of digits otherwise.
    is_bound : bool
        Whether p is the smallest value that the trials allow, so that it is only known to be at most this.

    Examples
    --------
    >>> format_p(0.00019836406863778244), format_p(0.25), format_p(1.0), format_p(205 / 4096), format_p(0.0)
    ('0.000199', '0.25', '1', '0.0501', '<1e-300')
    >>> format_p(0.012344, level=0.012345), format_p(1 / 2**20, is_bound=True)
    ('0.012344', '≤ 9.54e-07')
    """
    if math.isnan(p):
        return "none"
    if p == 0:
        return "<1e-300"
    return "≤ " * is_bound + _round_decisively(p, level, digits, UP)


@lru_cache(maxsize=2**16)
def format_p_equals(p: float, level: float | None = None, *, digits: int = 3, is_bound: bool = False) -> str:
    """Return `p = 0.0123`, formatted as by `format_p`, `p at most 9.54e-07` for a bound, or `p < 1e-300`.

    Examples
    --------
    >>> format_p_equals(0.05003), format_p_equals(0.0), format_p_equals(1 / 2**20, is_bound=True)
    ('p = 0.0501', 'p < 1e-300', 'p at most 9.54e-07')
    """
    if p == 0:
        return "p < 1e-300"
    return f"p {'at most' if is_bound else '='} {format_p(p, level, digits=digits)}"


def round_up(p: Floats, digits: int = 3) -> Floats:
    """Return p-values rounded up to the numbers that `format_p` prints, so that each text is formatted only once.

    Values below 1e-16 and NaN are not changed.

    Examples
    --------
    >>> round_up(np.array([0.00019836406863778244, 0.25, 1.0, 1e-200])).tolist()
    [0.000199, 0.25, 1.0, 1e-200]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        n_decimals = digits - 1 - np.floor(np.log10(p))
    within = (n_decimals >= 0) & (n_decimals < len(POWERS_OF_TEN))
    tens = POWERS_OF_TEN[np.where(within, n_decimals, 0).astype(np.int64)]
    scaled = np.ceil(p * tens)  # too large or too small by one if the product is rounded
    scaled -= (scaled - 1) / tens >= p  # a quotient of integers is the float next to the decimal
    scaled += scaled / tens < p
    return np.where(within & (scaled <= 10**digits), scaled / tens, p)


def format_limits(low: float, high: float, level: float | None = None) -> str:
    """Return an interval as text, limits rounded outwards to the first digit or two of its width.

    Parameters
    ----------
    low, high : float
        The limits.
    level : float, optional
        Enough digits are written to show on which side of it each limit is.

    Examples
    --------
    >>> format_limits(0.0001559, 0.0002275), format_limits(0.0, 1.0), format_limits(0.0502, 0.0534, level=0.05)
    ('0.00015 to 0.00023', '0 to 1', '0.0502 to 0.0534')
    """
    width = Decimal(repr(high)) - Decimal(repr(low))
    exponent = width.adjusted() - (width.as_tuple().digits[0] < 5) if width else -MAX_DIGITS
    return (
        f"{_round_decisively(low, level, _count_digits(low, exponent), DOWN)} to "
        f"{_round_decisively(high, level, _count_digits(high, exponent), UP)}"
    )


def format_lower_limit(value: float, digits: int = 3) -> str:
    """Return a lower limit, or a level to compare with, as text rounded down."""
    return _round_to_digits(value, digits, DOWN)


def format_upper_limit(value: float, digits: int = 3) -> str:
    """Return an upper limit as text rounded up."""
    return _round_to_digits(value, digits, UP)


def _count_digits(value: float, exponent: int) -> int:
    """Return the number of significant digits of a value down to a decimal exponent."""
    return max(Decimal(repr(value)).adjusted() - exponent + 1, 1)


def _round_decisively(value: float, level: float | None, digits: int, rounding: str) -> str:
    """Return a number as text, rounded to more digits if it would otherwise change its side of a level."""
    text = _round_to_digits(value, digits, rounding)
    while level is not None and digits < MAX_DIGITS and (float(text) <= level) != (value <= level):
        digits += 1
        text = _round_to_digits(value, digits, rounding)
    return text


def _round_to_digits(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    text = f"{value:.{digits - 1}e}"
    nearest = float(text)
    if nearest < value if rounding is UP else nearest > value:
        nearest = _step_last_digit(text, digits, rounding)
    return f"{nearest:.{digits}g}"


def _step_last_digit(text: str, digits: int, rounding: str) -> float:
    """Return the next number above (or below) a rounded one that has the same number of significant digits."""
    mantissa, exponent = text.split("e")
    coefficient, power = int(mantissa.replace(".", "")), int(exponent) - digits + 1
    if abs(coefficient) == 10 ** (digits - 1) and (coefficient < 0) == (
        rounding is UP
    ):  # below a power of ten, steps are finer
        coefficient, power = 10 * coefficient, power - 1
    return float(f"{coefficient + (1 if rounding is UP else -1)}e{power}")
