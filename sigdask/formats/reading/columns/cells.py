"""Compiled functions on cells in a file's bytes: find cells, parse numbers, mark summary names."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sigdask.io.compiled_cache import cached_njit

NOT_PLAIN = -1
"""What is found instead of rows in what is no plain table."""

LONGEST_CELL = 131_072
"""Bytes of a cell (`csv.field_size_limit`)."""

POWERS = 10.0 ** np.arange(23)
"""Of ten, as far as float64 holds them exactly."""

LARGEST_EXACT = 2**53
"""Whole numbers up to this are exact in float64."""


@cached_njit()
def split_cells(buffer, start_of_data, end, delimiter, quoted, starts, stops):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, C901, PLR0911, PLR0912
    """Fill `starts` and `stops`, shape (width, n), with the bounds of cells; return the row count.

    The count is `NOT_PLAIN` if a row has another width, a cell contains quotation marks, line ends differ, or there
    are blank lines between others. In rows of one cell quotation marks are text, and blank lines cells.
    """
    width, max_rows = starts.shape
    row, column, position = 0, 0, start_of_data
    while position < end:
        start = position
        is_quoted = quoted and buffer[position] == 34
        if is_quoted:
            start += 1
            position += 1
            while (
                position < end
                and buffer[position] != 34
                and buffer[position] != 10
                and buffer[position] != 13
                and buffer[position] != 0
            ):
                position += 1
            if position >= end or buffer[position] != 34:
                return NOT_PLAIN
            stop = position
            position += 1
            if position < end and buffer[position] != delimiter and buffer[position] != 10 and buffer[position] != 13:
                return NOT_PLAIN
        else:
            while position < end:
                c = buffer[position]
                if c <= 44 and (c == delimiter or c in {0, 10, 13} or (c == 34 and quoted)):
                    break
                if c == 59 and delimiter == 59:
                    break
                position += 1
            stop = position
        closes = position >= end or buffer[position] != delimiter
        if position < end and closes:
            if buffer[position] == 13 and position + 1 < end and buffer[position + 1] == 10:
                position += 1
            elif buffer[position] != 10:
                return NOT_PLAIN
        if closes and column == 0 and start == stop and width > 1 and not is_quoted:
            while position < end:
                if buffer[position] != 10 and buffer[position] != 13:
                    return NOT_PLAIN
                position += 1
            return row
        if column >= width or row >= max_rows or stop - start > LONGEST_CELL or (closes and column != width - 1):
            return NOT_PLAIN
        while start < stop and _is_space(buffer[start]):
            start += 1
        while start < stop and _is_space(buffer[stop - 1]):
            stop -= 1
        if start < stop and (_is_wide_space(buffer, start, stop) or _ends_in_wide_space(buffer, start, stop)):
            return NOT_PLAIN
        starts[column, row] = start
        stops[column, row] = stop
        position += 1
        column += 1
        if closes:
            column = 0
            row += 1
    return row if column == 0 else NOT_PLAIN


@njit(inline="always")
def _is_space(c):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return c == 32 or 9 <= c <= 13 or 28 <= c <= 31


@njit(inline="always")
def _is_wide_space(buffer, position, stop):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return whether a Unicode space of two or three bytes begins at a position."""
    c = buffer[position]
    if c < 194 or c > 227 or stop - position < 2:
        return False
    second = buffer[position + 1]
    if c == 194:
        return second in {133, 160}
    if stop - position < 3:
        return False
    third = buffer[position + 2]
    if c == 225:
        return second == 154 and third == 128
    if c == 226:
        return (second == 128 and (third <= 138 or third in {168, 169, 175})) or (second == 129 and third == 159)
    return c == 227 and second == 128 and third == 128


@njit(inline="always")
def _ends_in_wide_space(buffer, start, stop):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return (stop - start >= 2 and buffer[stop - 2] == 194 and _is_wide_space(buffer, stop - 2, stop)) or (
        stop - start >= 3 and buffer[stop - 3] >= 225 and _is_wide_space(buffer, stop - 3, stop)
    )


@cached_njit()
def parse_decimals(buffer, starts, stops, out, odd):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, C901, PLR0912
    """Parse decimals to float64 (empty: NaN), mark other cells in `odd`, and return their number.

    A whole number up to 2**53 times or divided by a power of ten up to 10**22 is rounded once, and so is the float64
    nearest to what is written (Clinger 1990, "How to read floating point numbers accurately").
    """
    n_odd = 0
    for k in range(len(starts)):
        position, stop = np.int64(starts[k]), np.int64(stops[k])
        odd[k] = False
        out[k] = np.nan
        if position == stop:
            continue
        negative = bool(buffer[position] == 45)
        if negative or buffer[position] == 43:
            position += 1
        digits, power, n_decimals, n_digits, has_point, is_plain = np.int64(0), np.int64(0), 0, 0, False, True
        while position < stop:
            c = buffer[position]
            if 48 <= c <= 57:
                digits = digits * 10 + (np.int64(c) - 48)
                n_digits += 1
                n_decimals += has_point
                if digits > LARGEST_EXACT:
                    is_plain = False
                    break
            elif c == 46 and not has_point:
                has_point = True
            else:
                break
            position += 1
        if is_plain and position < stop and (buffer[position] == 101 or buffer[position] == 69):
            position += 1
            sign = buffer[position] if position < stop else 0
            if sign in {43, 45}:
                position += 1
            is_plain = bool(position < stop)
            while position < stop and 48 <= buffer[position] <= 57 and power < 1000:
                power = power * 10 + (np.int64(buffer[position]) - 48)
                position += 1
            if sign == 45:
                power = -power
        power -= n_decimals
        if not is_plain or position < stop or n_digits == 0 or power < -22 or power > 22:
            odd[k] = True
            n_odd += 1
            continue
        value = np.float64(digits)
        value = value / POWERS[-power] if power < 0 else value * POWERS[power]
        out[k] = -value if negative else value
    return n_odd


def hash_words(words: Iterable[str]) -> NDArray[np.uint64]:
    """Return the hashes of lower-case words, sorted, as `mark_summary_names` compares them."""
    values = []
    for word in words:
        mixed = BASIS
        for c in word.encode():
            mixed = (mixed ^ c) * PRIME % 2**64
        values.append(mixed)
    return np.array(sorted(values), np.uint64)


BASIS, PRIME = 0xCBF29CE484222325, 0x100000001B3
"""Of the hash FNV-1a."""


@cached_njit()
def mark_summary_names(buffer, starts, stops, naming, allowed, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Mark the cells that may be summary names: a word is in `naming`, and no ASCII word is outside `allowed`.

    Words are runs of letters, without case. Cells that end in a per cent sign are marked too.
    """
    for k in range(len(starts)):
        position, stop = np.int64(starts[k]), np.int64(stops[k])
        has_name, only_allowed, ascii_ = False, True, True
        out[k] = position < stop and buffer[stop - 1] == 37
        while position < stop:
            mixed, size = np.uint64(BASIS), 0
            while position < stop:
                c = buffer[position] | np.uint8(32)
                if c < 97 or c > 122:
                    break
                mixed = (mixed ^ np.uint64(c)) * np.uint64(PRIME)
                size += 1
                position += 1
            if size:
                has_name |= _is_in(naming, mixed)
                only_allowed &= _is_in(allowed, mixed)
            if position < stop:
                ascii_ &= buffer[position] < 128
                position += 1
        out[k] |= has_name and (only_allowed or not ascii_)


@njit(inline="always")
def _is_in(values, value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    is_found = False
    for k in range(len(values)):  # without a branch: several at a time
        is_found |= values[k] == value
    return is_found
