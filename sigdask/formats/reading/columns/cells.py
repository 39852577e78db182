"""Cells in the bytes of a file: where they are, which numbers they hold, which are called like summaries."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sigdask.io.compiled_cache import compiled

ODD = -1
"""What is found instead of rows in what is no plain table."""

LONGEST = 131_072
"""Bytes of a cell (`csv.field_size_limit`)."""

POWERS = 10.0 ** np.arange(23)
"""Of ten, as far as float64 holds them exactly."""

EXACT = 2**53
"""Whole numbers up to this are exact in float64."""


@compiled()
def split(buffer, first, end, delimiter, quoted, starts, stops):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, C901, PLR0911, PLR0912
    """Fill `starts` and `stops`, shape (width, n), with the places of stripped cells; return the number of rows.

    It is `ODD` where a row has another width, quotation marks are within a cell, lines end in other ways than
    one, or blank lines stand between others. In rows of one cell quotation marks are text, and blank lines cells.
    """
    width, most = starts.shape
    row, column, at = 0, 0, first
    while at < end:
        start = at
        opened = quoted and buffer[at] == 34
        if opened:
            start += 1
            at += 1
            while at < end and buffer[at] != 34 and buffer[at] != 10 and buffer[at] != 13 and buffer[at] != 0:
                at += 1
            if at >= end or buffer[at] != 34:
                return ODD
            stop = at
            at += 1
            if at < end and buffer[at] != delimiter and buffer[at] != 10 and buffer[at] != 13:
                return ODD
        else:
            while at < end:
                c = buffer[at]
                if c <= 44 and (c == delimiter or c in {0, 10, 13} or (c == 34 and quoted)):
                    break
                if c == 59 and delimiter == 59:
                    break
                at += 1
            stop = at
        closes = at >= end or buffer[at] != delimiter
        if at < end and closes:
            if buffer[at] == 13 and at + 1 < end and buffer[at + 1] == 10:
                at += 1
            elif buffer[at] != 10:
                return ODD
        if closes and column == 0 and start == stop and width > 1 and not opened:
            while at < end:
                if buffer[at] != 10 and buffer[at] != 13:
                    return ODD
                at += 1
            return row
        if column >= width or row >= most or stop - start > LONGEST or (closes and column != width - 1):
            return ODD
        while start < stop and _is_space(buffer[start]):
            start += 1
        while start < stop and _is_space(buffer[stop - 1]):
            stop -= 1
        if start < stop and (_is_wide_space(buffer, start, stop) or _ends_in_wide_space(buffer, start, stop)):
            return ODD
        starts[column, row] = start
        stops[column, row] = stop
        at += 1
        column += 1
        if closes:
            column = 0
            row += 1
    return row if column == 0 else ODD


@njit(inline="always")
def _is_space(c):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return c == 32 or 9 <= c <= 13 or 28 <= c <= 31


@njit(inline="always")
def _is_wide_space(buffer, at, stop):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Whether one of Unicode's further spaces, of two or three bytes, is at a place."""
    c = buffer[at]
    if c < 194 or c > 227 or stop - at < 2:
        return False
    second = buffer[at + 1]
    if c == 194:
        return second in {133, 160}
    if stop - at < 3:
        return False
    third = buffer[at + 2]
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


@compiled()
def decimals(buffer, starts, stops, out, odd):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, C901, PLR0912
    """Read decimals into float64, NaN for empty cells; mark in `odd` what must be read otherwise, return how many.

    A whole number up to 2**53 times or divided by a power of ten up to 10**22 is rounded once, and so is the float64
    nearest to what is written (Clinger 1990, "How to read floating point numbers accurately").
    """
    n_odd = 0
    for k in range(len(starts)):
        at, stop = np.int64(starts[k]), np.int64(stops[k])
        odd[k] = False
        out[k] = np.nan
        if at == stop:
            continue
        negative = bool(buffer[at] == 45)
        if negative or buffer[at] == 43:
            at += 1
        whole, power, places, n_digits, pointed, fits = np.int64(0), np.int64(0), 0, 0, False, True
        while at < stop:
            c = buffer[at]
            if 48 <= c <= 57:
                whole = whole * 10 + (np.int64(c) - 48)
                n_digits += 1
                places += pointed
                if whole > EXACT:
                    fits = False
                    break
            elif c == 46 and not pointed:
                pointed = True
            else:
                break
            at += 1
        if fits and at < stop and (buffer[at] == 101 or buffer[at] == 69):
            at += 1
            sign = buffer[at] if at < stop else 0
            if sign in {43, 45}:
                at += 1
            fits = bool(at < stop)
            while at < stop and 48 <= buffer[at] <= 57 and power < 1000:
                power = power * 10 + (np.int64(buffer[at]) - 48)
                at += 1
            if sign == 45:
                power = -power
        power -= places
        if not fits or at < stop or n_digits == 0 or power < -22 or power > 22:
            odd[k] = True
            n_odd += 1
            continue
        value = np.float64(whole)
        value = value / POWERS[-power] if power < 0 else value * POWERS[power]
        out[k] = -value if negative else value
    return n_odd


def hashes(words: Iterable[str]) -> NDArray[np.uint64]:
    """Return by what `named_like` knows words of small letters."""
    found = []
    for word in words:
        mixed = BASIS
        for c in word.encode():
            mixed = (mixed ^ c) * PRIME % 2**64
        found.append(mixed)
    return np.array(sorted(found), np.uint64)


BASIS, PRIME = 0xCBF29CE484222325, 0x100000001B3
"""Of the hash FNV-1a."""


@compiled()
def named_like(buffer, starts, stops, naming, known, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Mark the cells that hold one of the words `naming` and, as far as they are of ASCII, none but those `known`.

    Words are runs of letters, without case. Cells that end in a per cent sign are marked too.
    """
    for k in range(len(starts)):
        at, stop = np.int64(starts[k]), np.int64(stops[k])
        named, only, ascii_ = False, True, True
        out[k] = at < stop and buffer[stop - 1] == 37
        while at < stop:
            mixed, size = np.uint64(BASIS), 0
            while at < stop:
                c = buffer[at] | np.uint8(32)
                if c < 97 or c > 122:
                    break
                mixed = (mixed ^ np.uint64(c)) * np.uint64(PRIME)
                size += 1
                at += 1
            if size:
                named |= _is_in(naming, mixed)
                only &= _is_in(known, mixed)
            if at < stop:
                ascii_ &= buffer[at] < 128
                at += 1
        out[k] |= named and (only or not ascii_)


@njit(inline="always")
def _is_in(few, value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    found = False
    for k in range(len(few)):  # without a branch: several at a time
        found |= few[k] == value
    return found
