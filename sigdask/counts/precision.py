"""Reading real scores as integers, so that sums are exact and ties are ties.

Sums of integers do not depend on their order, on how work is divided, or on the machine. A column is read in one of two
ways:

- As decimals: scores of at most nine digits (0.25, 37.5, trec_eval's four digits) become integers exactly. This also
  holds for float32. There a tenth is 0.10000000149011612, and sums of such numbers would no longer tie where those of
  tenths do.
- As multiples of a small step: all other scores. No step makes three thirds sum to one, so each unit has a slack of two
  steps, in addition to the rounding of float32 or other short numbers. Every true tie counts as an exceedance, and p
  errs upwards (`sigdask.statistics.lattice`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts.fields import Array, Bools, Floats
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
        numbers = wide[finite]
        decimals = _find_decimals(numbers, kind)
        if decimals is None and kind != "float64":
            ulp = math.ldexp(1.0, math.frexp(float(np.abs(numbers).max(initial=0.0)))[1] - BITS[kind])
            note = f"{kind} numbers are used unrounded (sums that differ by less than {ulp:.2g} a unit count as ties)"
            return SystemNumbers(wide, ulp / 2, note)
        if decimals is None or not (changed := decimals != numbers).any():
            return SystemNumbers(wide)
        example = f"{float(decimals[changed][0])!r} for {float(numbers[changed][0])!r}"
        wide[finite] = decimals
        note = f"{kind} numbers are read as decimals of up to {DIGITS[kind]} digits ({example})"
        return SystemNumbers(wide, note=note)


def _find_decimals(numbers: Floats, kind: str) -> Floats | None:
    """Return the short decimals that finite numbers represent, or None unless all of them do."""
    if kind == "float64" and find_places(numbers) is not None:
        return numbers
    if not _find_nearest_decimals(numbers[:FIRST], kind)[1].all():  # most other columns show it at once
        return None
    decimals, fits = _find_nearest_decimals(numbers, kind)
    return decimals if fits.all() else None


def _find_nearest_decimals(numbers: Floats, kind: str) -> tuple[Floats, Bools]:
    """Return the nearest short decimal of each number, and a mask of the numbers that stand for that decimal.

    Integers that the type holds exactly stand for themselves.
    """
    is_whole = (np.rint(numbers) == numbers) & (np.abs(numbers) < 2.0 ** BITS[kind])
    places = DIGITS[kind] - 1 - np.floor(np.log10(np.where(is_whole, 1.0, np.abs(numbers))))
    is_exact_power = np.abs(places) <= MAX_POWER
    power = 10.0 ** np.where(is_exact_power, np.abs(places), 0.0)
    nearest = np.where(places > 0, np.rint(numbers * power) / power, np.rint(numbers / power) * power)
    if kind == "float64":
        is_near = np.abs(nearest - numbers) <= RELATIVE_TOLERANCE * np.abs(numbers)
    else:
        is_near = nearest.astype(kind).astype(np.float64) == numbers
    return np.where(is_whole, numbers, nearest), is_whole | (is_exact_power & is_near)


def find_places(numbers: Floats, n_summed: int = 1) -> int | None:
    """Return the decimal places of all numbers, if float64 holds sums of so many exactly; else None."""
    largest = float(np.abs(numbers).max(initial=0.0))
    fitting = (places for places in range(MAX_DIGITS + 1) if largest * 10.0**places * n_summed < 2.0**53)
    return next((places for places in fitting if _are_decimals(numbers, 10.0**places)), None)


def _are_decimals(values: Floats, scale: float) -> bool:
    starts = [0, *range(FIRST, len(values), CHUNK), len(values)]  # the first few show most columns that are not
    chunks = (values[start:stop] for start, stop in pairwise(starts))
    return all((np.rint(chunk * scale) / scale == chunk).all() for chunk in chunks)


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
        values, gaps, columns = np.empty((0, len(scores)), np.int8), dict[int, Bools](), []
        for k, (system, system_scores) in enumerate(scores.items()):
            column = SystemNumbers.from_values(convert_scores(system_scores, system))
            numbers, is_gap = column.numbers, np.isnan(column.numbers)
            if is_gap.any():
                gaps[k], numbers = is_gap, np.where(is_gap, 0.0, numbers)
            columns.append(replace(column, numbers=np.empty(0)))  # the matrix has the numbers
            if not k:
                values = np.zeros((len(numbers), len(scores)), np.int8, order="F")
            check_lengths({next(iter(scores)): len(values), system: len(numbers)})
            kind = np.promote_types(values.dtype, _find_narrowest_type(numbers))
            values = values.astype(kind, order="F", copy=False)
            values[:, k] = numbers
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


def list_values(values: Any, name: str) -> Any:
    """Return the values of items in their order: generators as lists, masked values as NaN.

    Raises
    ------
    InputError
        For a mapping or set, and an array of another shape.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        return np.ma.filled(values.astype(np.float64), np.nan)
    if isinstance(values, Iterator | ValuesView):
        return list(values)
    n_dimensions = getattr(values, "ndim", 1)
    if isinstance(values, Mapping | set | frozenset | str | Path) or n_dimensions != 1:
        found = f"a {type(values).__name__}" if n_dimensions == 1 else f"an array of {n_dimensions} dimensions"
        raise InputError(
            f"{name}: found {found}, expected a sequence of one number or label per item",
            remedy="give a list or one column. Files are read by sigdask.compare_all(sigdask.read(FILE, FILE)), data "
            "frames by sigdask.compare_all(frame)",
        )
    return values.astype(str) if isinstance(values, np.ndarray) and values.dtype.kind == "S" else values
