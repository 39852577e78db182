"""Scales on which scores are integers: decimals exactly, all other numbers to a small step with a slack.

The scale of a pair depends only on its two systems and the number of items. Sums on it do not depend on their order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Floats, Integers
from sigdask.counts.precision import MAX_DIGITS, SystemNumbers, find_places

SLACK_STEPS = 2
"""Steps for each discordant unit by which a lattice sum can miss a true tie: half a step of rounding for each of the
two values, in the trial's difference and in the observed one.
"""

SHORT_BITS = 26
"""Computed numbers hardly ever have as few significant bits."""

RELATIVE_ROUNDING = Fraction(1, 2**51)
"""Relative rounding error of other numbers: one or two units in the last place."""

ZERO_EXPONENT = -1074
"""Exponent of the smallest float. It represents a system whose scores are all 0."""

TINY_EXPONENT = -30
"""Largest exponent of scores that get a lattice of their own size if all others are zero."""

_MAX_BITS = 50
_LIMIT_BITS = 61

TIE = 64 * np.finfo(np.float64).eps
"""Relative slack of floating-point scores: differences within TIE (|A| + |B|) are ties.

numba compiles it into kernels."""


@dataclass(frozen=True, slots=True)
class Lattice:
    """A scale on which scores are integers: multiples of a decimal or binary step.

    Attributes
    ----------
    digits : int or None
        Decimal digits: values are multiples of 10**-digits, exactly. None for a binary lattice.
    exponent : int
        Exponent of a binary lattice, whose step is 2.0**exponent.
    rounding : int
        Total rounding error of a unit's two values, in steps, if the numbers were rounded before they were read, such
        as float32.
    is_coarse : bool
        Whether some scores of the two systems differ by less than the step. Such a difference counts as one step in its
        own direction, so that no unit is lost. Ties are wide, so p-values are sampled and are upper bounds.
    """

    digits: int | None = None
    exponent: int = 0
    rounding: int = 0
    is_coarse: bool = False

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        if self.is_coarse:
            return "coarse lattice", self.exponent, self.rounding
        if self.rounding:
            return "rounded lattice", self.exponent, self.rounding
        return "lattice", self.digits, self.exponent

    @property
    def step(self) -> float:
        """The step: the score that the integer 1 stands for."""
        return 10.0**-self.digits if self.digits is not None else 2.0**self.exponent

    @property
    def slack(self) -> int:
        """Rounding error, in steps, allowed for each unit whose outputs differ; 0 if the integers are exact."""
        return 0 if self.digits is not None else SLACK_STEPS + self.rounding

    def to_integers(self, values: Floats) -> Integers:
        """Return scores as integers, each rounded to the nearest step."""
        if self.digits is not None:
            return np.rint(values * 10.0**self.digits).astype(np.int64)
        return np.rint(np.ldexp(values, -self.exponent)).astype(np.int64)

    def to_scores(self, sums: NDArray[Any]) -> Floats:
        """Return the scores that sums of integers stand for."""
        if self.digits is not None:
            return np.asarray(sums / 10.0**self.digits)
        return np.asarray(np.ldexp(sums.astype(np.float64), self.exponent))


INTEGER_LATTICE = Lattice(digits=0)
"""The lattice of integers themselves."""


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """Decimal digits, size and rounding of one system's scores, which determine the lattice."""

    digits: int | None
    exponent: int
    rounding: float = 0.0

    @staticmethod
    def from_scores(values: Floats, rounding: float = 0.0) -> ScoreScale:
        """Find digits and size of one system's item scores, each of which may be off by `rounding`.

        Examples
        --------
        >>> ScoreScale.from_scores(np.array([0.25, 0.5])).digits
        2
        >>> ScoreScale.from_scores(np.array([1 / 3, 0.5])).digits is None
        True
        """
        largest = float(np.abs(values).max(initial=0.0))
        digits = None if rounding else find_places(values, len(values))
        return ScoreScale(digits, math.frexp(largest)[1] if largest else ZERO_EXPONENT, rounding)

    def widen(self, other: ScoreScale) -> ScoreScale:
        """Return the scale of the scores of two systems."""
        digits = None if self.digits is None or other.digits is None else max(self.digits, other.digits)
        return ScoreScale(digits, max(self.exponent, other.exponent), max(self.rounding, other.rounding))


def choose_lattice(a: ScoreScale, b: ScoreScale, n_items: int, *, digits: int | None = None) -> Lattice:
    """Return the lattice on which the scores of two systems are compared.

    Parameters
    ----------
    a, b : ScoreScale
        Scales of the two systems.
    n_items : int
        Items of the test set, whose sum must stay below 2**61 steps.
    digits : int, optional
        Use at least this many digits for decimals. Integers are exact on any decimal lattice, so
        sharing one between pairs changes no count.

    Large integers together with small decimals need a binary lattice, because no decimal one holds them.
    """
    scale = a.widen(b)
    largest = scale.exponent
    if scale.digits is not None:
        size = largest + math.log2(max(n_items, 1))  # of sums, up to one bit too large
        if size + MAX_DIGITS * math.log2(10) < 53:
            return Lattice(digits=max(scale.digits, digits or 0))
        if scale.digits == 0 or size + scale.digits * math.log2(10) < 54:
            return Lattice(digits=scale.digits)
    bits = min(_MAX_BITS, _LIMIT_BITS - n_items.bit_length())
    if ZERO_EXPONENT in (a.exponent, b.exponent) and largest > TINY_EXPONENT:
        largest = max(largest, 0)
    exponent = max(largest - bits, ZERO_EXPONENT)
    rounding = math.ceil(math.ldexp(a.rounding + b.rounding, -exponent))
    return Lattice(exponent=exponent, rounding=rounding)


def as_fraction(value: float) -> tuple[Fraction, Fraction]:
    """Return the number that a float was most likely written as, as a fraction, and how far off that number may be.

    A float with few binary or decimal digits is taken for exactly that number, any other for a rounded real number.

    Examples
    --------
    >>> as_fraction(0.9) == (Fraction(9, 10), 0), as_fraction(1e16) == (10**16, 0), as_fraction(2.0**-1070)[1] == 0
    (True, True, True)
    >>> as_fraction(1 / 3)[1] > 0
    True
    """
    if math.ldexp(math.frexp(value)[0], SHORT_BITS).is_integer():
        return Fraction(value), Fraction()
    if float(decimal := f"{value:.{MAX_DIGITS - 1}e}") == value:
        return Fraction(decimal), Fraction()
    return Fraction(value), abs(Fraction(value)) * RELATIVE_ROUNDING


def compute_lost_signs(a: Floats, b: Floats, lattice: Lattice) -> Integers:
    """Return the signs of score differences that rounding to the lattice makes 0, and 0 for all other differences.

    Differences that may come from rounding alone have no sign.

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


STANDARD_DIGITS = 12
"""Decimals to which standardised scores are rounded, so that equal scores of two systems are equal."""

CONSTANT = 1e-13
"""Range of numbers, relative to the largest, up to which they are constant apart from rounding."""


def standardise(values: Floats) -> SystemNumbers:
    """Return numbers with mean 0 and variance 1 in place of others; 0 if these are constant.

    Positive factors and offsets of the others only change the rounding. Neither does the order of the items matter.

    Examples
    --------
    >>> standardise(np.array([10.0, 30.0, 50.0, 30.0])).numbers.round(3)
    array([-1.414,  0.   ,  1.414,  0.   ])
    """
    largest, spread = float(np.abs(values).max(initial=0.0)), float(np.ptp(values)) if len(values) else 0.0
    if spread <= CONSTANT * largest:
        return SystemNumbers(np.zeros(len(values)))
    shares = (values - values.min()) / spread  # so that neither squares overflow nor offsets cancel
    deviations = shares - np.sort(shares).mean()
    deviation = float(np.sqrt(np.sort(deviations**2).mean()))
    rounding = 10.0**-STANDARD_DIGITS + float(np.finfo(np.float64).eps) * largest / (spread * deviation)
    return SystemNumbers(np.round(deviations / deviation, STANDARD_DIGITS) + 0.0, rounding)
