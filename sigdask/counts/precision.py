"""Numbers as they were meant: binary fractions that stand for decimals, and what float32 leaves open.

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
from sigdask.text import listed

DIGITS = {"float16": 3, "float32": 6, "float64": 9}
"""Significant digits of the decimals that a column may stand for: those of which float16 and float32 hold every one
(FLT16_DIG, FLT_DIG), and of float64 fewer than any computed number has."""

BITS = {"float16": 11, "float32": 24}
"""Of the significand."""

LARGEST_POWER = 22
"""Of ten that float64 holds exactly, so that a whole number divided by it is the decimal itself."""

PART = 1 << 15
"""Numbers looked at together, so that what is made of them stays in the cache."""

NEAR = 1e-14
"""Relative distance from its decimal of a float64 that was computed from others."""


@dataclass(frozen=True, slots=True, eq=False)
class SystemNumbers:
    """One system's numbers in float64.

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
    def of(values: Array) -> SystemNumbers:
        """Read one system's numbers; NaN and infinities stay as they are.

        Examples
        --------
        >>> SystemNumbers.of(np.array([1, 2], np.float32) / 10).numbers
        array([0.1, 0.2])
        >>> SystemNumbers.of(np.array([0.1 + 0.2])).numbers
        array([0.3])
        >>> SystemNumbers.of(np.array([1 / 3], np.float32)).rounding == 2**-26
        True
        """
        kind = values.dtype.name if values.dtype.name in DIGITS else "float64"
        wide = values.astype(np.float64)
        meant = _decimals(wide, kind)
        if meant is not None:
            changed = (meant != wide) & ~np.isnan(wide)
            return SystemNumbers(meant, note=_as_decimals(wide, meant, changed, kind) if changed.any() else "")
        if kind == "float64":
            return SystemNumbers(wide)
        exponent = math.frexp(float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0)))[1]
        ulp = math.ldexp(1.0, exponent - BITS[kind])
        return SystemNumbers(
            wide, ulp / 2, f"numbers of {kind} are taken as they are, sums within {ulp:.2g} a unit as ties"
        )


def _decimals(wide: NDArray[np.float64], kind: str) -> NDArray[np.float64] | None:
    """Return the decimals of few digits that all numbers stand for; None where some stand for none."""
    finite = np.isfinite(wide)
    some = wide if finite.all() else wide[finite]
    if _are_whole(some, kind):
        return wide
    for part in (slice(0, 64), slice(0, None)):  # most columns that are no decimals show it at once
        meant, fits = _nearest(some[part], kind)
        if not fits.all():
            return None
    if some is wide:
        return meant
    found = wide.copy()
    found[finite] = meant
    return found


def _are_whole(some: NDArray[np.float64], kind: str) -> bool:
    """Say at little cost whether all numbers are whole ones that their type holds."""
    return not len(some) or bool(
        np.abs(some[[some.argmin(), some.argmax()]]).max() < 2.0 ** BITS.get(kind, 53) and (np.rint(some) == some).all()
    )


def _nearest(some: NDArray[np.float64], kind: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the decimals nearest to numbers, and which of these stand for them."""
    meant, fits = some.copy(), _are_exact(some, kind)
    if fits.all():
        return meant, fits
    rest = some[~fits]
    places = DIGITS[kind] - 1 - np.floor(np.log10(np.abs(rest)))
    held = np.abs(places) <= LARGEST_POWER
    power = 10.0 ** np.where(held, np.abs(places), 0.0)
    nearest = np.where(places > 0, np.rint(rest * power) / power, np.rint(rest / power) * power)
    if kind == "float64":
        near = np.abs(nearest - rest) <= NEAR * np.abs(rest)
    else:
        near = nearest.astype(kind).astype(np.float64) == rest
    meant[~fits] = nearest
    fits[~fits] = held & near
    return meant, fits


def _are_exact(some: NDArray[np.float64], kind: str) -> NDArray[np.bool_]:
    """Say which numbers are what they stand for: whole ones, and float64 of up to nine decimal places."""
    fits = np.zeros(len(some), np.bool_)
    for k in range(0, len(some), PART):
        fits[k : k + PART] = _part_is_exact(some[k : k + PART], kind)
    return fits


def _part_is_exact(some: NDArray[np.float64], kind: str) -> NDArray[np.bool_]:
    largest = 2.0 ** BITS.get(kind, 53)
    fits = np.zeros(len(some), np.bool_)
    for places in range(DIGITS[kind] + 1 if kind == "float64" else 1):
        left = np.flatnonzero(~fits & (np.abs(some) < largest / 10.0**places))
        if not len(left):
            break
        fits[left] = np.rint(some[left] * 10.0**places) / 10.0**places == some[left]
    return fits


def _as_decimals(wide: NDArray[np.float64], meant: NDArray[np.float64], changed: NDArray[np.bool_], kind: str) -> str:
    k = int(np.argmax(changed))
    return (
        f"numbers of {kind} are read as the decimals of up to {DIGITS[kind]} digits that they stand for "
        f"({float(meant[k])!r} for {float(wide[k])!r})"
    )


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMatrix:
    """The item scores of all systems, in the smallest type that holds them: whole numbers as such, others as float64.

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
    def of(scores: Mapping[str, Sequence[float] | Array]) -> ScoreMatrix:
        """Read the scores of one system after the other; NaN stands for a missing one."""
        lengths: dict[str, int] = {}
        values = np.empty((0, len(scores)), np.int8)
        present: NDArray[np.bool_] | None = None
        columns = []
        for k, (system, own) in enumerate(scores.items()):
            column = SystemNumbers.of(item_scores(own, system))
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
            held_in = np.promote_types(values.dtype, _narrowest(numbers))
            values = values.astype(held_in, order="F", copy=False)
            values[:, k] = numbers
            columns.append(replace(column, numbers=np.empty(0)))  # none that the matrix holds
        one_length(lengths)
        return ScoreMatrix(values, present, columns)


def _narrowest(numbers: NDArray[np.float64]) -> type[np.number[Any]]:
    """Return the smallest type that holds numbers and, of whole ones, sums that float64 holds."""
    largest = float(np.abs(numbers).max(initial=0.0))
    if largest * len(numbers) >= 2.0**53 or (np.rint(numbers) != numbers).any():
        return np.float64
    return next((t for t in (np.int8, np.int16, np.int32) if largest <= np.iinfo(t).max), np.int64)


@known_as("Numbers", "fields rounding", apart_from="notes")
@dataclass(frozen=True, slots=True, eq=False)
class ExactNumbers(Mapping[str, Array]):
    """Fields by name whose real numbers are in float64, as they were meant.

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
    def of(fields: Mapping[str, Array], systems: Sequence[str]) -> ExactNumbers:
        """Read fields of shape (n_items, n_systems) or (n_items, 1)."""
        columns = {
            name: [SystemNumbers.of(column) for column in values.T]
            for name, values in fields.items()
            if _is_real(values)
        }
        read = {name: np.column_stack([c.numbers for c in own]) for name, own in columns.items()}
        return ExactNumbers.of_columns(columns, {**fields, **read}, systems)

    @staticmethod
    def of_columns(
        columns: Mapping[str, Sequence[SystemNumbers]], fields: Mapping[str, Array], systems: Sequence[str]
    ) -> ExactNumbers:
        """Return fields of columns that are read, with what is known of these."""
        rounding = {
            name: tuple(c.rounding for c in own) for name, own in columns.items() if any(c.rounding for c in own)
        }
        return ExactNumbers(fields, rounding, tuple(_notes(columns, systems)))

    def __getitem__(self, name: str) -> Array:
        return self.fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


def _is_real(values: Array) -> bool:
    return values.dtype.kind == "f" and values.ndim == 2


def _notes(columns: Mapping[str, Sequence[SystemNumbers]], systems: Sequence[str]) -> Iterator[str]:
    """Yield a note for each field and kind of reading, with the systems that it is about."""
    for name, own in columns.items():
        told: dict[str, tuple[str, list[str]]] = {}
        for k, column in enumerate(own):
            if column.note:
                kind = column.note.partition(" (")[0]
                told.setdefault(kind, (column.note, []))[1].append(systems[k] if len(own) > 1 else "all systems")
        for note, who in told.values():
            yield f"{listed(who)}, {name}: {note}"


def item_scores(values: Sequence[float] | Array, system: str) -> Array:
    """Return numbers in float64, or in what less exact type they came."""
    try:
        numbers = np.asarray(values)
        if numbers.dtype.name not in BITS:
            numbers = np.asarray(values, dtype=_held_in(values) if numbers.ndim == 1 else "float64")
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"scores of {system!r}: {error}") from None
    if numbers.ndim != 1:
        raise InputError(f"scores of {system!r}: {numbers.ndim} dimensions, expected one number per item")
    if np.isinf(numbers).any():
        raise InputError(
            f"scores of {system!r}: the item at position {int(np.argmax(np.isinf(numbers))) + 1} is infinite"
        )
    return numbers


def _held_in(values: Sequence[float] | Array) -> str:
    """Return the type of single numbers held in a list or as objects, gaps aside; float64 where they differ."""
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return "float64"
    gaps = (value is None or (isinstance(value, float) and math.isnan(value)) for value in values)
    kinds = {type(value).__name__ for value, gap in zip(values, gaps, strict=True) if not gap}
    return kinds.pop() if len(kinds) == 1 and kinds <= BITS.keys() else "float64"


def one_length(lengths: Mapping[str, int]) -> int:
    """Return the number of items, the same of all."""
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name}: {n}" for name, n in lengths.items())
        raise InputError(f"different numbers of items ({listed})")
    return next(iter(lengths.values()), 0)
