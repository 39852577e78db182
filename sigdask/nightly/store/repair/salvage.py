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
LAST = 2**40
TRIES, HOPELESS = 100_000, 2000
"""Ranges of a table that cannot be read, after which the rest is given up; and where none could be."""


def is_readable(path: Path) -> bool:
    """Say whether SQLite finds nothing wrong with a file."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as opened:
            return [row[0] for row in opened.execute("PRAGMA integrity_check(1)")] == ["ok"]
    except (sqlite3.Error, ValueError):
        return False


def salvaged(path: Path) -> Path:
    """Put a store of all rows that can be read in a file's place; return where the damaged one is now.

    Raises
    ------
    InputError
        No row can be.
    """
    source, made = (path.with_name(f"{path.name}.{what}") for what in ("read", "mended"))
    try:
        if not _copied(path, source, made, is_fresh=False) and not _copied(path, source, made, is_fresh=True):
            raise InputError(
                f"store {path}: no row of it can be read; move the file away, and the next run counts all again"
            )
        aside = _free_name(path)
        shutil.copy2(path, aside)
        with suppress(FileNotFoundError):
            _journal(path).replace(_journal(aside))
        made.replace(path)  # killed before, all is as it was
    finally:
        for own in (source, _journal(source), made, _journal(made)):
            own.unlink(missing_ok=True)
    return aside


def _journal(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.damaged{'' if k == 1 else f'-{k}'}") for k in range(1, 10_000))
    return next(name for name in names if not name.exists())


def _copied(path: Path, source: Path, made: Path, *, is_fresh: bool) -> bool:
    """Copy what can be read; say whether all tables could be. Where the first page is lost, a new store's may do."""
    made.unlink(missing_ok=True)
    open_to_write(str(made)).close()
    shutil.copyfile(path, source)
    if not is_fresh and _journal(path).exists():
        shutil.copyfile(_journal(path), _journal(source))
    _give_header(source, made.read_bytes()[: PAGE if is_fresh else 0])
    copied, is_whole = 0, True
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(made)) as new:
        old.text_factory = _text
        for pragma in ("writable_schema = ON", "cell_size_check = ON", "query_only = ON"):
            with suppress(sqlite3.Error):
                old.execute(f"PRAGMA {pragma}")
        for table, order in TABLES.items():
            names = [row[1] for row in new.execute(f"PRAGMA table_info({table})")]
            if not _has(old, table, names):
                is_whole = False
                continue
            marks = ", ".join("?" * len(names))
            insert = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608
            for rows in _read(old, table, order, names):
                copied += new.executemany(insert, rows).rowcount
        new.commit()
    return copied > 0 and (is_whole or is_fresh)


def _give_header(file: Path, first: bytes) -> None:
    """Write what is known of a store's header, after what is given of its first page."""
    with file.open("r+b") as opened:
        size = opened.seek(0, 2)
        known = {16: PAGE.to_bytes(2, "big"), 28: (size // PAGE).to_bytes(4, "big")}
        for at, said in [(0, first), *HEADER.items(), *known.items()]:
            opened.seek(at)
            opened.write(said)


def _has(old: sqlite3.Connection, table: str, names: list[str]) -> bool:
    try:
        return {row[1] for row in old.execute(f"PRAGMA table_info({table})")} >= {*names}
    except (sqlite3.Error, ValueError):
        return False


def _text(found: bytes) -> str:
    return found.decode("utf-8", "replace")


def _last(old: sqlite3.Connection, table: str, order: str) -> int:
    with suppress(sqlite3.Error):
        last = old.execute(f"SELECT max({order}) FROM {table}").fetchone()[0]  # noqa: S608
        if isinstance(last, int):
            return last
    return LAST


def _read(old: sqlite3.Connection, table: str, order: str, names: list[str]) -> Iterator[Any]:
    """Yield rows, some at a time: the halves of what cannot be read, widest first."""
    query = f"SELECT {', '.join(names)} FROM {table} NOT INDEXED WHERE {order} BETWEEN ? AND ?"  # noqa: S608
    ranges, tries, has_any = deque([(0, _last(old, table, order))]), 0, False
    while ranges and tries < (TRIES if has_any else HOPELESS):
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
