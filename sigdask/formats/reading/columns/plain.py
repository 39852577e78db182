"""Plain tables and lists: every row on a line of its own, as wide as the header, quotation marks around whole cells.

Whatever is not so plain, or wrong in any way, is left to the careful reader (`tables.read_table`), which says
what is the matter. Both give the same table of what both read.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.texts import WORD, Texts, place_type
from sigdask.formats.reading.columns.cells import LONGEST, ODD, split
from sigdask.formats.reading.files import open_bytes

FEWEST_BYTES = 1 << 16
"""Of a file that is worth it: a smaller one is read sooner than the compiled code is loaded."""

MOST_PACKED = 100
"""How many times longer than its gzip file a text may be."""

PART = 1 << 20
"""Bytes read at a time."""

BOM = b"\xef\xbb\xbf"


def plain_columns(path: Path, delimiter: str | None) -> list[Texts] | None:
    """Return the stripped cells of delimited text, the header's first, or those of a list of one a line.

    None where it is not plain, or small.

    Parameters
    ----------
    path : Path
        The file, gzipped or not.
    delimiter : str, or None
        What separates cells; None for a list.
    """
    if _is_small(path):
        return None
    buffer = _read(path)
    end = len(buffer) - WORD
    first = len(BOM) if buffer[: len(BOM)].tobytes() == BOM else 0
    if end - first < FEWEST_BYTES or not _is_text(buffer[first:end]):
        return None
    if delimiter is None:
        columns = _cells(buffer, first, end, None, 1)
        return columns and _without_blanks(columns[0])
    line = buffer[first : first + LONGEST].tobytes().partition(b"\n")[0]
    width = _width(line.decode(errors="replace"), delimiter)
    return _cells(buffer, first, end, delimiter, width) if width > 1 else None


def _is_small(path: Path) -> bool:
    """Whether a file is small, even if it is packed, or is no file that can be read twice."""
    try:
        return not path.is_file() or path.stat().st_size < FEWEST_BYTES // MOST_PACKED
    except OSError:
        return True


def _read(path: Path) -> NDArray[np.uint8]:
    """Return the bytes of a file, and zeros after them."""
    buffer, end = np.zeros(path.stat().st_size + WORD, np.uint8), 0
    with open_bytes(path) as stream:
        while part := stream.read(PART):
            if end + len(part) + WORD > len(buffer):  # it is packed
                buffer = np.concatenate([buffer, np.zeros(len(buffer) + len(part), np.uint8)])
            buffer[end : end + len(part)] = np.frombuffer(part, np.uint8)
            end += len(part)
    return buffer[: end + WORD]


def _is_text(content: NDArray[np.uint8]) -> bool:
    """Whether bytes are UTF-8."""
    at = 0
    while at < len(content):
        part = content[at : at + PART].tobytes()
        if part.isascii():
            at += len(part)
            continue
        end = max(part.rfind(b"\n") + 1, 0) if at + PART < len(content) else len(part)
        try:
            part[:end].decode()
        except UnicodeDecodeError:
            return False
        if not end:
            return False
        at += end
    return True


def _width(line: str, delimiter: str) -> int:
    """Return the number of cells in the first line; 0 where it is none."""
    try:
        return len(next(csv.reader([line.strip()], delimiter=delimiter, strict=True), []))
    except csv.Error:
        return 0


def _cells(buffer: NDArray[np.uint8], first: int, end: int, delimiter: str | None, width: int) -> list[Texts] | None:
    n_lines = sum(int(np.count_nonzero(buffer[k : min(k + PART, end)] == ord("\n"))) for k in range(first, end, PART))
    places = np.empty((2, width, n_lines + 1), place_type(len(buffer)))
    n_rows = split(buffer, first, end, ord(delimiter or "\0"), delimiter is not None, places[0], places[1])
    if n_rows == ODD:
        return None
    return [Texts(buffer, places[0, k, :n_rows], places[1, k, :n_rows]) for k in range(width)]


def _without_blanks(lines: Texts) -> list[Texts] | None:
    """Return a list without the blank lines at its end."""
    filled = np.flatnonzero(lines.sizes)
    return [lines[: int(filled[-1]) + 1]] if len(filled) else None
