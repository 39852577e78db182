"""Reading real scores as integers, so that sums are exact and ties are ties.

Sums of integers do not depend on their order, on how work is divided, or on the machine. A column is read in one of two
ways:

- As decimals: scores of at most nine digits (0.25, 37.5, trec_eval's four digits) become integers exactly. This also
  holds for float32. There a tenth is 0.10000000149011612, and sums of such numbers would no longer tie where those of
  tenths do.
- As multiples of a small step: all other scores. No step makes three thirds sum to one, so each unit has a slack of two
  steps, in addition to the rounding of float32 or other short numbers. Every true tie counts as an exceedance, and p
  errs upwards.

The step of a pair depends only on its two systems and the number of items.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.checks import list_values
from sigdask.counts.fields import Array, Bools, Floats, Integers
from sigdask.errors import InputError
from sigdask.text import format_list

MAX_DIGITS = 9
DIGITS = {"float16": 3, "float32": 6, "float64": MAX_DIGITS}
"""Significant digits of decimals that a column may represent. float16 and float32 keep so many exactly (FLT16_DIG,
FLT_DIG). For float64 the limit is below the digits of any computed number.
"""

BITS = {"float16": 11, "float32": 24, "float64": 53}
"""Bits of the significand."""

MAX_POWER = 22
"""Largest power of ten that float64 holds exactly. An integer divided by it is the nearest float to the decimal."""

CHUNK = 1 << 15
"""Numbers processed at a time, so that intermediate arrays stay in the cache."""

FIRST = 64
"""Numbers of a column that usually show how the others are written."""

RELATIVE_TOLERANCE = 1e-14
"""Maximum relative distance of a computed float64 from a decimal that it is taken for."""


@dataclass(frozen=True, slots=True, eq=False)
class SystemNumbers:
    """One system's numbers in float64, with their possible rounding error.

    Attributes
    ----------
    numbers : float64 array, shape (n_items,)
        As decimals, if all numbers represent decimals.
    rounding : float
        Maximum distance of each number from the one that was rounded to it.
    note : str
        Note on changed numbers. Empty if none changed.
    """

    numbers: Floats
    rounding: float = 0.0
    note: str = ""

    @staticmethod
    def from_values(values: Array) -> SystemNumbers:
        """Read one system's numbers, as decimals if all stand for decimals; NaN and infinities are unchanged.

        Examples
        --------
        >>> SystemNumbers.from_values(np.array([1, 2], np.float32) / 10).numbers
        array([0.1, 0.2])
        >>> SystemNumbers.from_values(np.array([0.1 + 0.2])).numbers
        array([0.3])
        >>> SystemNumbers.from_values(np.array([1 / 3], np.float32)).rounding == 2**-26
        True
        """
        kind = values.dtype.name if values.dtype.name in BITS else "float64"
        wide = values.astype(np.float64)
        finite = np.isfinite(wide)
        decimals = _find_decimals(wide[finite], kind)
        if decimals is None and kind == "float64":
            return SystemNumbers(wide)
        if decimals is None:
            ulp = math.ldexp(1.0, math.frexp(float(np.abs(wide[finite]).max(initial=0.0)))[1] - BITS[kind])
            note = f"{kind} numbers are used unrounded (sums that differ by less than {ulp:.2g} a unit count as ties)"
            return SystemNumbers(wide, ulp / 2, note)
        changed = np.flatnonzero(decimals != wide[finite])
        if not len(changed):
            return SystemNumbers(wide)
        example = f"{float(decimals[changed[0]])!r} for {float(wide[finite][changed[0]])!r}"
        wide[finite] = decimals
        return SystemNumbers(
            wide, note=f"{kind} numbers are read as decimals of up to {DIGITS[kind]} digits ({example})"
        )


def _find_decimals(numbers: Floats, kind: str) -> Floats | None:
    """Return the short decimals that finite numbers represent, or None unless all of them do."""
    if kind == "float64" and _find_places(numbers) is not None:
        return numbers
    for part in (numbers[:FIRST], numbers):  # most other columns show it at once
        decimals, fits = _find_nearest_decimals(part, kind)
        if not fits.all():
            return None
    return decimals


def _find_nearest_decimals(numbers: Floats, kind: str) -> tuple[Floats, Bools]:
    """Return the nearest short decimal of each number, and a mask of the numbers that stand for that decimal.

    Integers, and in float64 numbers of at most nine decimal places, stand for themselves.
    """
    fits = np.zeros(len(numbers), np.bool_)
    for scale in 10.0 ** np.arange(DIGITS[kind] + 1 if kind == "float64" else 1):
        rest = np.flatnonzero(~fits & (np.abs(numbers) < 2.0 ** BITS[kind] / scale))
        fits[rest] = np.rint(numbers[rest] * scale) / scale == numbers[rest]
    decimals, remaining = numbers.copy(), numbers[~fits]
    places = DIGITS[kind] - 1 - np.floor(np.log10(np.abs(remaining)))
    is_exact_power = np.abs(places) <= MAX_POWER
    power = 10.0 ** np.where(is_exact_power, np.abs(places), 0.0)
    nearest = np.where(places > 0, np.rint(remaining * power) / power, np.rint(remaining / power) * power)
    if kind == "float64":
        near = np.abs(nearest - remaining) <= RELATIVE_TOLERANCE * np.abs(remaining)
    else:
        near = nearest.astype(kind).astype(np.float64) == remaining
    decimals[~fits] = nearest
    fits[~fits] = is_exact_power & near
    return decimals, fits


def _find_places(numbers: Floats, n_summed: int = 1) -> int | None:
    """Return the decimal places of all numbers, if float64 holds sums of so many exactly; else None."""
    largest = float(np.abs(numbers).max(initial=0.0))
    fitting = (places for places in range(MAX_DIGITS + 1) if largest * 10.0**places * n_summed < 2.0**53)
    return next((places for places in fitting if _are_decimals(numbers, 10.0**places)), None)


def _are_decimals(values: Floats, scale: float) -> bool:
    starts = [0, *range(FIRST, len(values), CHUNK), len(values)]  # the first few show most columns that are not
    chunks = (values[start:stop] for start, stop in pairwise(starts))
    return all((np.rint(chunk * scale) / scale == chunk).all() for chunk in chunks)


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


def rank_numbers(values: Floats) -> Floats:
    """Return ranks from 1; equal numbers have the mean of their ranks.

    Examples
    --------
    >>> rank_numbers(np.array([0.5, -2.0, 0.5]))
    array([2.5, 1. , 2.5])
    """
    _, codes, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(sizes) - (sizes - 1) / 2)[codes]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMatrix:
    """Item scores by system, in the smallest type that holds them all: an integer type if possible, else float64.

    Attributes
    ----------
    names : tuple of str
        The systems.
    numbers : array, shape (n_items, n_systems)
        Column by column in memory; 0 where a score is missing.
    present : bool array, shape (n_items, n_systems), or None
        Whether each system has each score. None if all have.
    columns : list of SystemNumbers
        How each system's numbers were read, without the numbers.
    """

    names: tuple[str, ...]
    numbers: Array
    present: Bools | None
    columns: list[SystemNumbers]

    @staticmethod
    def from_scores(scores: Mapping[str, Sequence[float] | Array] | ScoreMatrix) -> ScoreMatrix:
        """Read the scores of one system after another; NaN marks a missing score."""
        if isinstance(scores, ScoreMatrix):
            return scores
        lengths: dict[str, int] = {}
        values, gaps, columns = np.empty((0, len(scores)), np.int8), dict[int, Bools](), []
        for k, (system, system_scores) in enumerate(scores.items()):
            column = SystemNumbers.from_values(convert_scores(system_scores, system))
            numbers, is_gap = column.numbers, np.isnan(column.numbers)
            if is_gap.any():
                gaps[k], numbers = is_gap, np.where(is_gap, 0.0, numbers)
            columns.append(replace(column, numbers=np.empty(0)))  # the matrix has the numbers
            lengths[system] = len(numbers)
            if not k:
                values = np.zeros((len(numbers), len(scores)), np.int8, order="F")
            if len(numbers) == len(values):
                kind = np.promote_types(values.dtype, _find_narrowest_type(numbers))
                values = values.astype(kind, order="F", copy=False)
                values[:, k] = numbers
        check_lengths(lengths)
        present = np.ones(values.shape, np.bool_, order="F")
        for k, is_gap in gaps.items():
            present[:, k] = ~is_gap
        return ScoreMatrix(tuple(scores), values, present if gaps else None, columns)

    def get_column(self, system: int) -> Floats:
        """Return one system's scores, with NaN for items that the system lacks."""
        column = self.numbers[:, system].astype(np.float64, copy=False)
        return column if self.present is None else np.where(self.present[:, system], column, np.nan)


def _find_narrowest_type(numbers: Floats) -> np.dtype[Any]:
    """Return the smallest type that holds numbers: an integer type only if float64 holds their sum exactly."""
    largest = float(np.abs(numbers).max(initial=0.0))
    is_exact = largest * len(numbers) < 2.0**53 and _are_decimals(numbers, 1.0)
    return np.min_scalar_type(-1 - int(largest)) if is_exact else np.dtype(np.float64)


class ExactNumbers(dict[str, Array]):
    """Fields by name with real numbers in float64; those that stand for short decimals are rounded to them.

    Attributes
    ----------
    rounding : mapping of str to tuple of float
        For fields of fewer bits than float64: maximum rounding error of each column's numbers.
    """

    def __init__(self, fields: Mapping[str, Array], rounding: Mapping[str, tuple[float, ...]]) -> None:
        super().__init__(fields)
        self.rounding = {name: errors for name, errors in rounding.items() if any(errors)}

    @staticmethod
    def from_columns(columns: Mapping[str, Sequence[SystemNumbers]], fields: Mapping[str, Array]) -> ExactNumbers:
        """Add rounding errors to fields whose columns were already read."""
        return ExactNumbers(fields, {name: tuple(c.rounding for c in own) for name, own in columns.items()})


def read_fields(fields: Mapping[str, Array]) -> tuple[ExactNumbers, list[str]]:
    """Read the numbers of fields of shape (n_items, n_systems) or (n_items, 1), with notes on how they were read."""
    columns = {
        name: [SystemNumbers.from_values(column) for column in values.T]
        for name, values in fields.items()
        if values.dtype.kind == "f" and values.ndim == 2
    }
    numbers = {name: np.column_stack([column.numbers for column in own]) for name, own in columns.items()}
    return ExactNumbers.from_columns(columns, {**fields, **numbers}), list_notes(columns.values())


def list_notes(columns: Iterable[Sequence[SystemNumbers]]) -> list[str]:
    """Return notes on how numbers were read, one for each way."""
    notes = {column.note.partition(" (")[0]: column.note for own in columns for column in own if column.note}
    return [*notes.values()]


def convert_scores(values: Sequence[float] | Array, system: str) -> Array:
    """Return scores as an array of float64, or of the less precise float type that they have."""
    values = list_values(values, f"scores of {system!r}")
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind in "cmM":
            raise TypeError(f"found values of type {numbers.dtype}, expected numbers")  # noqa: TRY301
        if numbers.dtype.name not in ("float16", "float32"):
            numbers = np.asarray(values, _find_common_type(values) if numbers.ndim == 1 else np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"scores of {system!r}: {error}") from None
    if numbers.ndim != 1:
        raise InputError(f"scores of {system!r}: {numbers.ndim} dimensions, expected one number per item")
    if np.isinf(numbers).any():
        raise InputError(
            f"scores of {system!r}: item {int(np.argmax(np.isinf(numbers))) + 1} is infinite",
            remedy="give finite numbers, or NaN where a score is missing",
        )
    return numbers


def _find_common_type(values: Sequence[float] | Array) -> Any:
    """Return the less precise float type that all numbers of a list or object array have, else float64."""
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return np.float64
    gaps = (value is None or (isinstance(value, float) and math.isnan(value)) for value in values)
    types = {type(value) for value, gap in zip(values, gaps, strict=True) if not gap}
    return types.pop() if len(types) == 1 and types <= {np.float16, np.float32} else np.float64


def check_lengths(lengths: Mapping[str, int]) -> int:
    """Return the number of items; raise if columns have different lengths."""
    if len(set(lengths.values())) > 1:
        details = format_list([f"{name}: {n}" for name, n in lengths.items()], 8)
        raise InputError(
            f"different numbers of items ({details})", remedy="give the same items everywhere, in the same order"
        )
    return next(iter(lengths.values()), 0)


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
        digits = None if rounding else _find_places(values, len(values))
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
    if a.digits is not None and b.digits is not None:
        min_digits = max(a.digits, b.digits)
        size = max(a.exponent, b.exponent) + math.log2(max(n_items, 1))  # of sums, up to one bit too large
        if size + MAX_DIGITS * math.log2(10) < 53:
            return Lattice(digits=max(min_digits, digits or 0))
        if min_digits == 0 or size + min_digits * math.log2(10) < 54:
            return Lattice(digits=min_digits)
    bits = min(_MAX_BITS, _LIMIT_BITS - n_items.bit_length())
    largest = max(a.exponent, b.exponent)
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
