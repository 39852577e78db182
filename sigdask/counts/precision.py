"""Exact reading of numbers: the decimals that floats stand for, or else a limit of their rounding error.

A tenth in float32 is 0.10000000149011612 in float64, and sums of such numbers tie no more where the
tenths do. A column that holds nothing but decimals is read as those; of other numbers in less than
float64 it is kept how far they may lie from what they were rounded from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Array
from sigdask.errors import InputError
from sigdask.identity import known_as
from sigdask.text import format_list

DIGITS = {"float16": 3, "float32": 6, "float64": 9}
"""Significant digits of the decimals that a column may stand for: those of which float16 and float32 hold every one
(FLT16_DIG, FLT_DIG), and of float64 fewer than any computed number has."""

BITS = {"float16": 11, "float32": 24}
"""Of the significand."""

LARGEST_POWER = 22
"""Of ten that float64 holds exactly, so that a whole number divided by it is the decimal itself."""

CHUNK = 1 << 15
"""Numbers looked at together, so that what is made of them stays in the cache."""

RELATIVE_TOLERANCE = 1e-14
"""Relative distance from its decimal of a float64 that was computed from others."""


@dataclass(frozen=True, slots=True, eq=False)
class SystemNumbers:
    """One system's numbers in float64, with their possible rounding error.

    Attributes
    ----------
    numbers : float64 array, shape (n_items,)
        As decimals, where all stand for some.
    rounding : float
        How far each may lie from the number that it was rounded from.
    note : str
        What was done, empty where nothing was.
    """

    numbers: NDArray[np.float64]
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
        kind = values.dtype.name if values.dtype.name in DIGITS else "float64"
        wide = values.astype(np.float64)
        decimals = _find_decimals(wide, kind)
        if decimals is not None:
            changed = (decimals != wide) & ~np.isnan(wide)
            return SystemNumbers(
                decimals, note=_describe_decimals(wide, decimals, changed, kind) if changed.any() else ""
            )
        if kind == "float64":
            return SystemNumbers(wide)
        exponent = math.frexp(float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0)))[1]
        ulp = math.ldexp(1.0, exponent - BITS[kind])
        return SystemNumbers(
            wide, ulp / 2, f"numbers of {kind} are taken as they are, sums within {ulp:.2g} a unit as ties"
        )


def _find_decimals(wide: NDArray[np.float64], kind: str) -> NDArray[np.float64] | None:
    """Return the short decimals that the numbers stand for, or None unless all numbers stand for one."""
    finite = np.isfinite(wide)
    finite_values = wide if finite.all() else wide[finite]
    if _are_whole(finite_values, kind):
        return wide
    for block in (slice(0, 64), slice(0, None)):  # most columns that are no decimals show it at once
        decimals, fits = _find_nearest_decimals(finite_values[block], kind)
        if not fits.all():
            return None
    if finite_values is wide:
        return decimals
    result = wide.copy()
    result[finite] = decimals
    return result


def _are_whole(numbers: NDArray[np.float64], kind: str) -> bool:
    """Return whether all numbers are integers small enough that the type `kind` holds them exactly."""
    return not len(numbers) or bool(
        np.abs(numbers[[numbers.argmin(), numbers.argmax()]]).max() < 2.0 ** BITS.get(kind, 53)
        and (np.rint(numbers) == numbers).all()
    )


def _find_nearest_decimals(numbers: NDArray[np.float64], kind: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the nearest short decimal of each number, and a mask of the numbers that stand for that decimal."""
    decimals, fits = numbers.copy(), _are_exact(numbers, kind)
    if fits.all():
        return decimals, fits
    remaining = numbers[~fits]
    places = DIGITS[kind] - 1 - np.floor(np.log10(np.abs(remaining)))
    is_exact_power = np.abs(places) <= LARGEST_POWER
    power = 10.0 ** np.where(is_exact_power, np.abs(places), 0.0)
    nearest = np.where(places > 0, np.rint(remaining * power) / power, np.rint(remaining / power) * power)
    if kind == "float64":
        near = np.abs(nearest - remaining) <= RELATIVE_TOLERANCE * np.abs(remaining)
    else:
        near = nearest.astype(kind).astype(np.float64) == remaining
    decimals[~fits] = nearest
    fits[~fits] = is_exact_power & near
    return decimals, fits


def _are_exact(numbers: NDArray[np.float64], kind: str) -> NDArray[np.bool_]:
    """Return a mask of the numbers that are integers or, for float64, have at most nine decimal places."""
    fits = np.zeros(len(numbers), np.bool_)
    for k in range(0, len(numbers), CHUNK):
        fits[k : k + CHUNK] = _is_exact_chunk(numbers[k : k + CHUNK], kind)
    return fits


def _is_exact_chunk(numbers: NDArray[np.float64], kind: str) -> NDArray[np.bool_]:
    largest = 2.0 ** BITS.get(kind, 53)
    fits = np.zeros(len(numbers), np.bool_)
    for places in range(DIGITS[kind] + 1 if kind == "float64" else 1):
        candidates = np.flatnonzero(~fits & (np.abs(numbers) < largest / 10.0**places))
        if not len(candidates):
            break
        fits[candidates] = np.rint(numbers[candidates] * 10.0**places) / 10.0**places == numbers[candidates]
    return fits


def _describe_decimals(
    wide: NDArray[np.float64], decimals: NDArray[np.float64], changed: NDArray[np.bool_], kind: str
) -> str:
    k = int(np.argmax(changed))
    return (
        f"numbers of {kind} are read as the decimals of up to {DIGITS[kind]} digits that they stand for "
        f"({float(decimals[k])!r} for {float(wide[k])!r})"
    )


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMatrix:
    """Item scores of all systems in the smallest type that holds them: an integer type if possible, else float64.

    Attributes
    ----------
    values : array, shape (n_items, n_systems)
        Column by column in memory; 0 where a score is missing.
    present : bool array, shape (n_items, n_systems), or None
        Which scores there are; None for all.
    columns : list of SystemNumbers
        How each system's were read, without the numbers.
    """

    values: Array
    present: NDArray[np.bool_] | None
    columns: list[SystemNumbers]

    @staticmethod
    def from_scores(scores: Mapping[str, Sequence[float] | Array]) -> ScoreMatrix:
        """Read the scores of one system after another; NaN marks a missing score."""
        lengths: dict[str, int] = {}
        values = np.empty((0, len(scores)), np.int8)
        present: NDArray[np.bool_] | None = None
        columns = []
        for k, (system, system_scores) in enumerate(scores.items()):
            column = SystemNumbers.from_values(convert_scores(system_scores, system))
            lengths[system] = len(column.numbers)
            if not k:
                values = np.zeros((lengths[system], len(scores)), np.int8, order="F")
            if lengths[system] != len(values):
                continue
            gaps = np.isnan(column.numbers)
            if gaps.any():
                present = np.ones(values.shape, np.bool_, order="F") if present is None else present
                present[:, k] = ~gaps
            numbers = np.where(gaps, 0.0, column.numbers) if gaps.any() else column.numbers
            dtype = np.promote_types(values.dtype, _find_narrowest_type(numbers))
            values = values.astype(dtype, order="F", copy=False)
            values[:, k] = numbers
            columns.append(replace(column, numbers=np.empty(0)))  # none that the matrix holds
        check_lengths(lengths)
        return ScoreMatrix(values, present, columns)


def _find_narrowest_type(numbers: NDArray[np.float64]) -> type[np.number[Any]]:
    """Return the smallest type that holds numbers: an integer type only if float64 holds their sum exactly."""
    largest = float(np.abs(numbers).max(initial=0.0))
    if largest * len(numbers) >= 2.0**53 or (np.rint(numbers) != numbers).any():
        return np.float64
    return next((t for t in (np.int8, np.int16, np.int32) if largest <= np.iinfo(t).max), np.int64)


@known_as("Numbers", "fields rounding", apart_from="notes")
@dataclass(frozen=True, slots=True, eq=False)
class ExactNumbers(Mapping[str, Array]):
    """Fields by name, whose real numbers are float64 and were read as decimals if they stand for decimals.

    Attributes
    ----------
    fields : mapping of str to array
        The fields.
    rounding : mapping of str to tuple of float
        Of fields that came in less than float64: how far the numbers of each column may lie from
        those that were meant.
    notes : tuple of str
        What was done.
    """

    fields: Mapping[str, Array]
    rounding: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @staticmethod
    def from_fields(fields: Mapping[str, Array], systems: Sequence[str]) -> ExactNumbers:
        """Read the numbers of fields of shape (n_items, n_systems) or (n_items, 1)."""
        columns = {
            name: [SystemNumbers.from_values(column) for column in values.T]
            for name, values in fields.items()
            if _is_real(values)
        }
        real_fields = {name: np.column_stack([c.numbers for c in numbers]) for name, numbers in columns.items()}
        return ExactNumbers.from_columns(columns, {**fields, **real_fields}, systems)

    @staticmethod
    def from_columns(
        columns: Mapping[str, Sequence[SystemNumbers]], fields: Mapping[str, Array], systems: Sequence[str]
    ) -> ExactNumbers:
        """Add rounding errors and notes to fields whose columns were already read."""
        rounding = {
            name: tuple(c.rounding for c in numbers)
            for name, numbers in columns.items()
            if any(c.rounding for c in numbers)
        }
        return ExactNumbers(fields, rounding, tuple(_iter_notes(columns, systems)))

    def __getitem__(self, name: str) -> Array:
        return self.fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


def _is_real(values: Array) -> bool:
    return values.dtype.kind == "f" and values.ndim == 2


def _iter_notes(columns: Mapping[str, Sequence[SystemNumbers]], systems: Sequence[str]) -> Iterator[str]:
    """Yield notes on how numbers were read, one per field and way of reading, with the systems concerned."""
    for name, numbers in columns.items():
        notes: dict[str, tuple[str, list[str]]] = {}
        for k, column in enumerate(numbers):
            if column.note:
                kind = column.note.partition(" (")[0]
                notes.setdefault(kind, (column.note, []))[1].append(systems[k] if len(numbers) > 1 else "all systems")
        for note, names in notes.values():
            yield f"{format_list(names)}, {name}: {note}"


def convert_scores(values: Sequence[float] | Array, system: str) -> Array:
    """Return scores as an array of float64, or of the less precise float type that they have."""
    try:
        numbers = np.asarray(values)
        if numbers.dtype.name not in BITS:
            numbers = np.asarray(values, dtype=_find_common_type(values) if numbers.ndim == 1 else "float64")
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"scores of {system!r}: {error}") from None
    if numbers.ndim != 1:
        raise InputError(f"scores of {system!r}: {numbers.ndim} dimensions, expected one number per item")
    if np.isinf(numbers).any():
        raise InputError(
            f"scores of {system!r}: the item at position {int(np.argmax(np.isinf(numbers))) + 1} is infinite"
        )
    return numbers


def _find_common_type(values: Sequence[float] | Array) -> str:
    """Return the less precise float type that all numbers of a list or object array have, else float64."""
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return "float64"
    gaps = (value is None or (isinstance(value, float) and math.isnan(value)) for value in values)
    kinds = {type(value).__name__ for value, gap in zip(values, gaps, strict=True) if not gap}
    return kinds.pop() if len(kinds) == 1 and kinds <= BITS.keys() else "float64"


def check_lengths(lengths: Mapping[str, int]) -> int:
    """Return the number of items; raise if columns have different lengths."""
    if len(set(lengths.values())) > 1:
        details = ", ".join(f"{name}: {n}" for name, n in lengths.items())
        raise InputError(f"different numbers of items ({details})")
    return next(iter(lengths.values()), 0)
