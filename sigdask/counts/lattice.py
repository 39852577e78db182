"""Real scores as integers: exactly for decimals, otherwise as multiples of a small step with a slack.

Sums of integers do not depend on order, tiling or machine, and ties are ties. A score that is a
decimal of at most nine digits (0.25, 37.5, trec_eval's four digits) becomes an integer exactly. No
lattice makes other reals exact (three thirds are not one), so these carry a slack of two lattice
steps a unit: every true tie counts as an exceedance, and p errs upwards (STATISTICS, section 3).
Numbers that were rounded before they came (float32) carry that rounding as well.

The scale of a pair depends on its own two systems and the number of items alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.identity import known_as

MOST_DIGITS = 9
SLACK_STEPS = 2
"""Steps a discordant unit by which a lattice sum can miss a true tie: half a step of rounding for
each of the two values, in the trial's difference and again in the observed one."""

SHORT_BITS = 26
"""Significant binary digits that a computed number hardly ever ends within."""

RELATIVE_ROUNDING = Fraction(1, 2**51)
"""Relative rounding of other numbers: one or two units in the last place."""

ZERO_EXPONENT = -1074
"""Exponent of the smallest float, which stands for that of a system without any score but 0."""

TINY_EXPONENT = -30
"""Exponent up to which scores beside nothing but zeros have a lattice of their own size."""

_MOST_BITS = 50
_LIMIT_BITS = 61
_CHUNK = 1 << 15

TIE = 64 * np.finfo(np.float64).eps
"""Relative slack of floating-point scores: differences within TIE (|A| + |B|) are ties."""


@known_as("Lattice", "digits exponent")
@dataclass(frozen=True, slots=True)
class Lattice:
    """A scale on which scores are integers: multiples of a decimal or binary step.

    Attributes
    ----------
    digits : int or None
        Decimal digits: values are multiples of 10**-digits, exactly. None for a binary lattice.
    exponent : int
        Of a binary lattice: the step is 2.0**exponent.
    """

    digits: int | None = None
    exponent: int = 0

    @property
    def step(self) -> float:
        """The step: the score that the integer 1 stands for."""
        return 10.0**-self.digits if self.digits is not None else 2.0**self.exponent

    @property
    def slack(self) -> int:
        """Rounding error, in steps, allowed for each unit whose outputs differ; 0 if the integers are exact."""
        return 0 if self.digits is not None else SLACK_STEPS

    def to_integers(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return scores as integers, each rounded to the nearest step."""
        if self.digits is not None:
            return np.rint(values * 10.0**self.digits).astype(np.int64)
        return np.rint(np.ldexp(values, -self.exponent)).astype(np.int64)

    def to_scores(self, sums: NDArray[Any]) -> NDArray[np.float64]:
        """Return the scores that sums of integers stand for."""
        if self.digits is not None:
            return np.asarray(sums / 10.0**self.digits)
        return np.asarray(np.ldexp(sums.astype(np.float64), self.exponent))


@known_as("RoundedLattice", "digits exponent rounding")
@dataclass(frozen=True, slots=True)
class RoundedLattice(Lattice):
    """A binary lattice for numbers that were rounded before they were read, such as float32.

    Attributes
    ----------
    rounding : int
        Steps by which a unit's two values together may lie off what they were rounded from.
    """

    rounding: int = 0

    @property
    def slack(self) -> int:
        """Rounding error, in steps, allowed for each unit whose outputs differ: by the lattice and in the numbers."""
        return SLACK_STEPS + self.rounding


@known_as("CoarseLattice", "digits exponent rounding")
@dataclass(frozen=True, slots=True)
class CoarseLattice(RoundedLattice):
    """A binary lattice for two systems with some scores that differ by less than its step.

    Such a difference counts as one step in its own direction, so that no unit is lost. Ties on this lattice are wide:
    sampled p-values are upper bounds, and exact ones are counted in fractions (`as_fraction`).
    """


INTEGER_LATTICE = Lattice(digits=0)
"""The lattice of integers themselves."""


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """Decimal digits, size and rounding of one system's scores, which determine the lattice."""

    digits: int | None
    exponent: int
    rounding: float = 0.0

    @staticmethod
    def from_scores(values: NDArray[np.float64], rounding: float = 0.0) -> ScoreScale:
        """Find digits and size of one system's item scores, each of which may be off by `rounding`.

        Examples
        --------
        >>> ScoreScale.from_scores(np.array([0.25, 0.5])).digits
        2
        >>> ScoreScale.from_scores(np.array([1 / 3, 0.5])).digits is None
        True
        """
        largest = float(np.abs(values).max(initial=0.0))
        fitting = [d for d in range(MOST_DIGITS + 1) if largest * 10.0**d * len(values) < 2.0**53]
        digits = None if rounding else _find_digits(values, fitting)
        return ScoreScale(digits, math.frexp(largest)[1] if largest else ZERO_EXPONENT, rounding)


def choose_lattice(a: ScoreScale, b: ScoreScale, n_items: int, *, digits: int | None = None) -> Lattice:
    """Return the lattice on which the scores of two systems are compared.

    Parameters
    ----------
    a, b : ScoreScale
        Of the two systems.
    n_items : int
        Items of the test set, whose sum must stay below 2**61 steps.
    digits : int, optional
        Use at least this many digits for decimals. Integers are exact on any decimal lattice, so
        sharing one between pairs changes no count.

    Large integers beside small decimals, which no decimal lattice holds, take a binary one.
    """
    if a.digits is not None and b.digits is not None:
        min_digits = max(a.digits, b.digits)
        size = max(a.exponent, b.exponent) + math.log2(max(n_items, 1))  # of sums, up to one bit too large
        if size + MOST_DIGITS * math.log2(10) < 53:
            return Lattice(digits=max(min_digits, digits or 0))
        if min_digits == 0 or size + min_digits * math.log2(10) < 54:
            return Lattice(digits=min_digits)
    bits = min(_MOST_BITS, _LIMIT_BITS - n_items.bit_length())
    largest = max(a.exponent, b.exponent)
    if ZERO_EXPONENT in (a.exponent, b.exponent) and largest > TINY_EXPONENT:
        largest = max(largest, 0)
    exponent = max(largest - bits, ZERO_EXPONENT)
    rounding = math.ceil(math.ldexp(a.rounding + b.rounding, -exponent))
    return RoundedLattice(exponent=exponent, rounding=rounding) if rounding else Lattice(exponent=exponent)


def as_fraction(value: float) -> tuple[Fraction, Fraction]:
    """Return the exact number that a float was most likely written as, and how far off that number may be.

    A float of few binary or decimal digits stands for just that number, any other for a real that was rounded.

    Examples
    --------
    >>> as_fraction(0.9) == (Fraction(9, 10), 0), as_fraction(1e16) == (10**16, 0), as_fraction(2.0**-1070)[1] == 0
    (True, True, True)
    >>> as_fraction(1 / 3)[1] > 0
    True
    """
    if math.ldexp(math.frexp(value)[0], SHORT_BITS).is_integer():
        return Fraction(value), Fraction()
    if float(decimal := f"{value:.{MOST_DIGITS - 1}e}") == value:
        return Fraction(decimal), Fraction()
    return Fraction(value), abs(Fraction(value)) * RELATIVE_ROUNDING


def compute_lost_signs(a: NDArray[np.float64], b: NDArray[np.float64], lattice: Lattice) -> NDArray[np.int64]:
    """Return the signs of score differences that rounding to the lattice makes 0, and 0 for all other differences.

    Differences that rounding alone may have made are none.

    Parameters
    ----------
    a, b : float64 array of the same shape
        The scores of the two systems.
    lattice : Lattice
        A binary one.
    """
    signs = np.zeros(a.shape, np.int64)
    small = (a != b) & (lattice.to_integers(a) == lattice.to_integers(b))
    for index in zip(*np.nonzero(small), strict=True):
        exact_a, exact_b = as_fraction(float(a[index])), as_fraction(float(b[index]))
        if abs(exact_a[0] - exact_b[0]) > exact_a[1] + exact_b[1]:
            signs[index] = 1 if exact_a[0] > exact_b[0] else -1
    return signs


def _find_digits(values: NDArray[np.float64], candidates: Iterable[int]) -> int | None:
    return next((digits for digits in candidates if _are_decimals(values, 10.0**digits)), None)


def _are_decimals(values: NDArray[np.float64], scale: float) -> bool:
    chunks = (values[k : k + _CHUNK] for k in range(0, len(values), _CHUNK))
    return all((np.rint(chunk * scale) / scale == chunk).all() for chunk in chunks)
