"""Fast reading of plain tables and lists: one row a line, all equally wide, simple quoting.

Whatever is not so plain, or wrong in any way, is left to the careful reader (`tables.read_table`), which says
what is the matter. Both give the same table of what both read.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.texts import WORD, Texts, get_offset_type
from sigdask.formats.reading.columns.cells import LONGEST_CELL, NOT_PLAIN, split_cells
from sigdask.formats.reading.files import open_bytes

FEWEST_BYTES = 1 << 16
"""Of a file that is worth it: a smaller one is read sooner than the compiled code is loaded."""

MAX_GZIP_RATIO = 100
"""How many times longer than its gzip file a text may be."""

CHUNK_BYTES = 1 << 20
"""Bytes read at a time."""

BOM = b"\xef\xbb\xbf"


def read_plain_columns(path: Path, delimiter: str | None) -> list[Texts] | None:
    """Return the stripped cells of each column, header first, or the lines of a one-column list.

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
    buffer = _read_buffer(path)
    end = len(buffer) - WORD
    start = len(BOM) if buffer[: len(BOM)].tobytes() == BOM else 0
    if end - start < FEWEST_BYTES or not _is_utf8(buffer[start:end]):
        return None
    if delimiter is None:
        columns = _split_columns(buffer, start, end, None, 1)
        return columns and _remove_blank_end(columns[0])
    header_line = buffer[start : start + LONGEST_CELL].tobytes().partition(b"\n")[0]
    width = _count_cells(header_line.decode(errors="replace"), delimiter)
    return _split_columns(buffer, start, end, delimiter, width) if width > 1 else None


def _is_small(path: Path) -> bool:
    """Return whether a file is small, even if unpacked, or cannot be read twice."""
    try:
        return not path.is_file() or path.stat().st_size < FEWEST_BYTES // MAX_GZIP_RATIO
    except OSError:
        return True


def _read_buffer(path: Path) -> NDArray[np.uint8]:
    """Return the bytes of a file, followed by zeros."""
    buffer, end = np.zeros(path.stat().st_size + WORD, np.uint8), 0
    with open_bytes(path) as stream:
        while chunk := stream.read(CHUNK_BYTES):
            if end + len(chunk) + WORD > len(buffer):  # it is packed
                buffer = np.concatenate([buffer, np.zeros(len(buffer) + len(chunk), np.uint8)])
            buffer[end : end + len(chunk)] = np.frombuffer(chunk, np.uint8)
            end += len(chunk)
    return buffer[: end + WORD]


def _is_utf8(content: NDArray[np.uint8]) -> bool:
    """Return whether the bytes are valid UTF-8."""
    position = 0
    while position < len(content):
        chunk = content[position : position + CHUNK_BYTES].tobytes()
        if chunk.isascii():
            position += len(chunk)
            continue
        end = max(chunk.rfind(b"\n") + 1, 0) if position + CHUNK_BYTES < len(content) else len(chunk)
        try:
            chunk[:end].decode()
        except UnicodeDecodeError:
            return False
        if not end:
            return False
        position += end
    return True


def _count_cells(line: str, delimiter: str) -> int:
    """Return the number of cells in the first line, or 0 if it cannot be parsed."""
    try:
        return len(next(csv.reader([line.strip()], delimiter=delimiter, strict=True), []))
    except csv.Error:
        return 0


def _split_columns(
    buffer: NDArray[np.uint8], start: int, end: int, delimiter: str | None, width: int
) -> list[Texts] | None:
    n_lines = sum(
        int(np.count_nonzero(buffer[k : min(k + CHUNK_BYTES, end)] == ord("\n")))
        for k in range(start, end, CHUNK_BYTES)
    )
    bounds = np.empty((2, width, n_lines + 1), get_offset_type(len(buffer)))
    n_rows = split_cells(buffer, start, end, ord(delimiter or "\0"), delimiter is not None, bounds[0], bounds[1])
    if n_rows == NOT_PLAIN:
        return None
    return [Texts(buffer, bounds[0, k, :n_rows], bounds[1, k, :n_rows]) for k in range(width)]


def _remove_blank_end(lines: Texts) -> list[Texts] | None:
    """Return the lines as one column without blank lines at the end, or None if all lines are blank."""
    filled = np.flatnonzero(lines.sizes)
    return [lines[: int(filled[-1]) + 1]] if len(filled) else None
