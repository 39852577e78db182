"""Copying what can be read of a damaged SQLite file into a new one.

Where a range of rows cannot be read it is halved, until what cannot be is single rows. What comes out as something else
than was kept is told by its checksum later.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.nightly.store.database import open_to_write

TABLES = {
    "comparisons": "id",
    "runs": "id",
    "progress": "rowid",
    "found": "id",
    "ended": "rowid",
    "arrays": "rowid",
    "extracted": "rowid",
    "tallies": "comparison",
}
"""What is copied, with the number by which its rows are in order."""

HEADER = {0: b"SQLite format 3\0", 18: b"\1\1\0\x40\x20\x20", 32: bytes(8), 44: b"\0\0\0\4", 52: bytes(4),
          56: b"\0\0\0\1", 64: bytes(4)}  # fmt: skip
"""What stands in the header of every store, by its place; of pages that are free nothing is said."""

PAGE = 4096
MAX_ID = 2**40
MAX_FAILURES, MAX_FIRST_FAILURES = 100_000, 2000
"""Ranges of a table that cannot be read, after which the rest is given up; and where none could be."""


def is_readable(path: Path) -> bool:
    """Return whether SQLite finds nothing wrong with a file."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return [row[0] for row in connection.execute("PRAGMA integrity_check(1)")] == ["ok"]
    except (sqlite3.Error, ValueError):
        return False


def salvage_store(path: Path) -> Path:
    """Replace a file by a store of all readable rows; return where the damaged file is now.

    Raises
    ------
    InputError
        No row can be.
    """
    source, mended = (path.with_name(f"{path.name}.{suffix}") for suffix in ("read", "mended"))
    try:
        if not _copy_rows(path, source, mended, is_fresh=False) and not _copy_rows(path, source, mended, is_fresh=True):
            raise InputError(
                f"store {path}: no row of it can be read; move the file away, and the next run counts all again"
            )
        aside = _find_free_name(path)
        shutil.copy2(path, aside)
        with suppress(FileNotFoundError):
            _get_journal_path(path).replace(_get_journal_path(aside))
        mended.replace(path)  # killed before, all is as it was
    finally:
        for leftover in (source, _get_journal_path(source), mended, _get_journal_path(mended)):
            leftover.unlink(missing_ok=True)
    return aside


def _get_journal_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


def _find_free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.damaged{'' if k == 1 else f'-{k}'}") for k in range(1, 10_000))
    return next(name for name in names if not name.exists())


def _copy_rows(path: Path, source: Path, mended: Path, *, is_fresh: bool) -> bool:
    """Copy readable rows into a new file, if `is_fresh` with a new first page; return whether that was enough."""
    mended.unlink(missing_ok=True)
    open_to_write(str(mended)).close()
    shutil.copyfile(path, source)
    if not is_fresh and _get_journal_path(path).exists():
        shutil.copyfile(_get_journal_path(path), _get_journal_path(source))
    _write_header(source, mended.read_bytes()[: PAGE if is_fresh else 0])
    copied, is_complete = 0, True
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(mended)) as new:
        old.text_factory = _decode
        for pragma in ("writable_schema = ON", "cell_size_check = ON", "query_only = ON"):
            with suppress(sqlite3.Error):
                old.execute(f"PRAGMA {pragma}")
        for table, order in TABLES.items():
            names = [row[1] for row in new.execute(f"PRAGMA table_info({table})")]
            if not _has_columns(old, table, names):
                is_complete = False
                continue
            marks = ", ".join("?" * len(names))
            insert = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608
            for rows in _iter_rows(old, table, order, names):
                copied += new.executemany(insert, rows).rowcount
        new.commit()
    return copied > 0 and (is_complete or is_fresh)


def _write_header(file: Path, first_bytes: bytes) -> None:
    """Overwrite a SQLite file's first bytes, then the header fields that are the same in every store."""
    with file.open("r+b") as stream:
        size = stream.seek(0, 2)
        size_fields = {16: PAGE.to_bytes(2, "big"), 28: (size // PAGE).to_bytes(4, "big")}
        for offset, content in [(0, first_bytes), *HEADER.items(), *size_fields.items()]:
            stream.seek(offset)
            stream.write(content)


def _has_columns(old: sqlite3.Connection, table: str, names: list[str]) -> bool:
    try:
        return {row[1] for row in old.execute(f"PRAGMA table_info({table})")} >= {*names}
    except (sqlite3.Error, ValueError):
        return False


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _find_last_id(old: sqlite3.Connection, table: str, order: str) -> int:
    with suppress(sqlite3.Error):
        last_id = old.execute(f"SELECT max({order}) FROM {table}").fetchone()[0]  # noqa: S608
        if isinstance(last_id, int):
            return last_id
    return MAX_ID


def _iter_rows(old: sqlite3.Connection, table: str, order: str, names: list[str]) -> Iterator[Any]:
    """Yield a table's rows in batches. A range of rows that cannot be read is split into halves."""
    query = f"SELECT {', '.join(names)} FROM {table} NOT INDEXED WHERE {order} BETWEEN ? AND ?"  # noqa: S608
    ranges, tries, has_any = deque([(0, _find_last_id(old, table, order))]), 0, False
    while ranges and tries < (MAX_FAILURES if has_any else MAX_FIRST_FAILURES):
        low, high = ranges.popleft()
        try:
            rows = old.execute(query, (low, high)).fetchall()
            has_any |= bool(rows)
            yield rows
        except (sqlite3.Error, ValueError, OverflowError):
            tries += 1
            if low < high:
                middle = (low + high) // 2
                ranges += [(low, middle), (middle + 1, high)]
