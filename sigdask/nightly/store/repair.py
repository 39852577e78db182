"""Repair of damaged stores: every row is checked, and damaged rows are removed with the rows that depend on them.

The next run counts what was removed, and trials that are missing between others. Intact rows stay.

If SQLite cannot read a file, its readable rows are copied into a new file, and the damaged file is kept. If a range of
rows cannot be read, its halves are tried, down to single rows. Rows that were read wrongly have another checksum.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, exc, text

from sigdask.errors import DamagedError, InputError, StoreError
from sigdask.metrics.extraction.cache import unpack_statistics
from sigdask.nightly.store import tallies
from sigdask.nightly.store.checksums import (
    SEALED,
    are_possible,
    build_update,
    compute_keys,
    is_intact,
    iter_sealed_rows,
    seal_rows,
)
from sigdask.nightly.store.columns import find_hollow_blocks, unpack_block, unpack_places
from sigdask.nightly.store.database import (
    Database,
    NoDatabaseError,
    describe_location,
    find_file_fault,
    open_to_read,
    open_to_write,
    parse_url,
)
from sigdask.nightly.store.history import (
    EVALUATION_KINDS,
    apply_frame,
    forget_file_states,
    is_progress,
    read_details,
    unpack_evaluation,
)
from sigdask.nightly.store.lease import Lease
from sigdask.nightly.store.limits import UNREADABLE, get_size, is_time, limit_lengths, limit_steps, parse_json
from sigdask.nightly.store.migrations import NEWEST, WITH_CHECKSUMS, build_result, list_schemas, migrate, read_version
from sigdask.nightly.store.results import build_results_table
from sigdask.results.table import Table

COMPARISONS_AT_ONCE = 50_000

TABLES = ("tallies", *SEALED, "comparisons", "extracted", "leases")

MAX_RUNS = 2**16
"""Upper bound on the number of runs of any comparison."""

ROW_DESCRIPTIONS = {
    "arrays": "comparison {comparison}, run {run}, trials from {first}",
    "runs": "run {id} of plan {plan}",
    "progress": "how far run {run} came, test set {position}",
    "found": "block {id} of results",
    "ended": "what run {run} ended of block {block}",
}

PARENTS = (("progress", "run", "runs"), ("found", "since", "runs"), ("ended", "block", "found"))
"""Tables whose rows belong to a row of another table: that table, and the column that refers to it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a store, with the damaged row, if any.

    Attributes
    ----------
    table : str
        Table of the row. Empty if the whole file is damaged.
    key : tuple
        Values of the columns that identify the row. Empty without a row.
    text : str
        Description of the row, and the damage.
    """

    table: str
    key: tuple[Any, ...]
    text: str


def count_rows(connection: Connection) -> int:
    """Return the number of rows in all tables that can be read."""
    n_rows = 0
    for table in TABLES:
        try:
            with connection.begin_nested():
                n_rows += connection.execute(text(f"SELECT sum(1) FROM {table}")).scalar_one() or 0  # noqa: S608
        except (exc.SQLAlchemyError, UnicodeDecodeError):
            continue
    return n_rows


def iter_faults(connection: Connection) -> Iterator[Fault]:
    """Yield what is damaged or missing, table by table."""
    if connection.dialect.name == "sqlite":
        yield from _check_file(connection)
    version = read_version(connection)
    checks: list[tuple[str, Callable[[Connection], Iterator[Fault]]]] = [
        ("tallies", partial(_check_tallies, has_checksums=version >= WITH_CHECKSUMS)),
        *((table, partial(_check_checksums, table=table)) for table in SEALED),
        *((table, partial(_check_parents, table=table, column=name, parent=of)) for table, name, of in PARENTS),
        ("found", _check_blocks), ("results", _check_results), ("extracted", _check_extracted),
        ("leases", _check_leases),
    ]  # fmt: skip
    tables = list_schemas()[version].values()
    for table, check in checks:
        if table in tables:
            yield from _check_table(connection, table, check)


def _check_table(connection: Connection, table: str, check: Any) -> Iterator[Fault]:
    """Yield the faults that a check finds in a table, or a single fault if the table cannot be read."""
    try:
        with connection.begin_nested():
            yield from list(check(connection))
    except (exc.SQLAlchemyError, *UNREADABLE) as error:
        reason = str(getattr(error, "orig", None) or error).splitlines() or [type(error).__name__]
        yield Fault("", (), f"{table}: cannot be read ({reason[0]})")


def _check_file(connection: Connection) -> Iterator[Fault]:
    if (fault := find_file_fault(Path(connection.engine.url.database or ""))) is not None:
        yield Fault("", (), f"the file: {fault}")
    try:
        for (words,) in connection.execute(text("PRAGMA integrity_check(20)")):
            if words != "ok":
                yield Fault("", (), f"the file: {' '.join(str(words).split())}")
    except exc.DBAPIError as error:
        yield Fault("", (), f"the file: {error.orig}")


TALLIES = (
    "SELECT comparison, run, first, stop, greater, less, two_sided, {checksum}, digest FROM tallies "
    "LEFT JOIN comparisons ON comparison = id WHERE {range}"
)


def _check_tallies(connection: Connection, *, has_checksums: bool) -> Iterator[Fault]:
    for rows in _iter_tally_rows(connection, "checksum" if has_checksums else "-1"):
        # rows without digests; values that are not integers become -1, which is invalid
        values = np.array([[v if type(v) is int else -1 for v in row[:-1]] for row in rows], np.int64)
        is_possible = is_intact = are_possible(values[:, 2], values[:, 3], values[:, 4:7])
        if has_checksums:
            keys = compute_keys([b"" if row[-1] is None else row[-1] for row in rows])
            is_known = np.array([row[-1] is not None for row in rows], np.bool_)
            is_intact = is_known & tallies.are_intact(keys, values[:, 1], values[:, 2:])
        for k in np.flatnonzero(~is_intact).tolist():
            reason = "another checksum" if is_possible[k] else "counts that no trials can give"
            yield Fault("tallies", tuple(rows[k][:3]), f"{_describe_row(*rows[k][:4])}: {reason}")
        if has_checksums:
            yield from _iter_gaps(values, is_intact)


def _iter_tally_rows(connection: Connection, checksum: str) -> Iterator[Sequence[Any]]:
    max_id = connection.execute(text("SELECT max(id) FROM comparisons")).scalar_one() or 0
    lows = range(0, max_id + 1, COMPARISONS_AT_ONCE)
    for low in lows:
        ends = [f"comparison >= {low}"] if low else []
        ends += [f"comparison < {low + COMPARISONS_AT_ONCE}"] if low != lows[-1] else []
        query = TALLIES.format(checksum=checksum, range=" AND ".join(ends) or "1 = 1")
        if rows := connection.execute(text(query)).all():
            yield rows


def _describe_row(comparison: Any, run: Any, first: Any, stop: Any) -> str:
    if all(type(value) is int for value in (comparison, run, first, stop)):
        return tallies.describe_row(comparison, run, first, stop)
    return f"tallies: comparison {comparison!r}, run {run!r}, trials from {first!r}"


def _iter_gaps(values: Any, is_intact: Any) -> Iterator[Fault]:
    """Yield a fault for each range of missing trials before a stored row, except for comparisons with damaged rows."""
    runs = values[:, 0] * MAX_RUNS + values[:, 1]
    values = values[is_intact & ~np.isin(runs, runs[~is_intact])]
    number, run, first, stop = values[np.lexsort((values[:, 2], values[:, 1], values[:, 0]))][:, :4].T
    is_new = (np.diff(number, prepend=-1) != 0) | (np.diff(run, prepend=-1) != 0)
    expected = np.where(is_new, 0, np.roll(stop, 1))
    for k in np.flatnonzero(first != expected).tolist():
        description = tallies.describe_row(number[k], run[k], expected[k], first[k])
        yield Fault("tallies", (), f"{description}, are missing")


def _check_checksums(connection: Connection, table: str) -> Iterator[Fault]:
    for row in iter_sealed_rows(connection, table):
        if not (is_intact(table, row) and _can_read(connection, table, row)):
            key = tuple(row[name] for name in SEALED[table].key)
            yield Fault(table, key, f"{table}: {ROW_DESCRIPTIONS[table].format(**row)}")


def _can_read(connection: Connection, table: str, row: Any) -> bool:
    """Return whether commands can read a row, whose checksum may be forged, or missing in an earlier version."""
    try:
        if table == "found":
            build_results_table(unpack_block(row), 0.05)
        elif table == "ended":
            query = text("SELECT n FROM found WHERE id = :block")
            unpack_places(row["places"], connection.execute(query, {"block": row["block"]}).scalar_one_or_none() or 0)
        elif table == "runs":
            _check_run(row)
    except (DamagedError, *UNREADABLE):
        return False
    return table != "progress" or is_progress(row)


def _check_run(row: Any) -> None:
    """Raise DamagedError, or one of `UNREADABLE`, for a run whose details commands cannot read."""
    details = read_details(row)
    for frame in details.get("frames", {}).values():
        apply_frame(frame, Table.build_empty(0, alpha=0.05))
    for section, kind in EVALUATION_KINDS.items():
        for entry in details.get(section, {}).values():
            if "packed" in entry:
                unpack_evaluation(kind, entry["packed"])


def _check_blocks(connection: Connection) -> Iterator[Fault]:
    for number in find_hollow_blocks(connection):
        yield Fault("found", (number,), f"found: block {number} of results: too many rows for its bytes")


def _check_results(connection: Connection) -> Iterator[Fault]:
    for row in connection.execute(text("SELECT * FROM results")).mappings():
        try:
            build_result(row)
        except UNREADABLE as error:
            yield Fault("results", (row["id"],), f"results: result {row['id']} of an earlier version ({error})")


def _check_parents(connection: Connection, table: str, column: str, parent: str) -> Iterator[Fault]:
    names = ", ".join(SEALED[table].key)
    query = f"SELECT {names} FROM {table} WHERE {column} NOT IN (SELECT id FROM {parent})"  # noqa: S608
    for row in connection.execute(text(query)).mappings():
        yield Fault(table, tuple(row.values()), f"{table}: {ROW_DESCRIPTIONS[table].format(**row)}, which is missing")


def _check_extracted(connection: Connection) -> Iterator[Fault]:
    for digest, content in connection.execute(text("SELECT digest, content FROM extracted")):
        if not isinstance(content, bytes) or unpack_statistics(digest, content) is None:
            yield Fault("extracted", (digest,), f"extracted: {digest!r}")


def _check_leases(connection: Connection) -> Iterator[Fault]:
    """Yield a fault for each lease with values of a wrong type."""
    query = text("SELECT name, holder, since, beat, commits FROM leases")
    for name, holder, since, beat, commits in connection.execute(query):
        if not (_is_json_object(holder) and is_time(since) and is_time(beat) and type(commits) is int):
            yield Fault("leases", (name,), f"leases: that of {name!r}")


KEYS = {
    **{table: sealed.key for table, sealed in SEALED.items()},
    "tallies": ("comparison", "run", "first"),
    "results": ("id",),
    "extracted": ("digest",),
    "leases": ("name",),
}

DAMAGE_MESSAGE = "its record was damaged; only the readable part is shown"


def remove_rows(connection: Connection, faults: Iterable[Fault]) -> None:
    """Delete damaged rows; later runs count or write them again."""
    for fault in faults:
        if not fault.key:
            continue
        if fault.table == "runs":
            _repair_run(connection, int(fault.key[0]))
        elif fault.table in {"found", "ended"}:  # without their ends, rows would be current again
            for table, column in (("ended", "block"), ("found", "id")):
                _delete_row(connection, table, (column,), fault.key[:1])
        else:
            _delete_row(connection, fault.table, KEYS[fault.table], fault.key)


def _delete_row(connection: Connection, table: str, names: tuple[str, ...], key: tuple[Any, ...]) -> None:
    where = " AND ".join(f"{name} = :{name}" for name in names)
    connection.execute(text(f"DELETE FROM {table} WHERE {where}"), dict(zip(names, key, strict=True)))  # noqa: S608


def _repair_run(connection: Connection, number: int) -> None:
    """Replace unreadable values in the row of a run, and mark it as damaged; other rows refer to it."""
    row = connection.execute(text("SELECT * FROM runs WHERE id = :id"), {"id": number}).mappings().one()
    plain = {name: row[name] if isinstance(row[name], str) else "" for name in ("plan", "path", "host")}
    times = {name: row[name] if is_time(row[name]) else 0.0 for name in ("started", "updated", "ended")}
    pid = row["pid"] if type(row["pid"]) is int else 0
    values = {**plain, **times, "pid": pid, "state": "damaged", "message": DAMAGE_MESSAGE}
    values |= {"seconds_left": None} if "seconds_left" in row else {}
    try:
        _check_run({**row, **values})
    except (DamagedError, *UNREADABLE):
        values["details"] = "{}"
    connection.execute(build_update("runs", values, ("id",)), {**values, "id": number})
    if "checksum" in row:
        seal_rows(connection, "runs", "WHERE id = :id", {"id": number})


def _is_json_object(details: Any) -> bool:
    try:
        return isinstance(parse_json(details), dict)
    except UNREADABLE:
        return False


SALVAGED_TABLES = {
    "comparisons": "id", "runs": "id", "progress": "rowid", "results": "id", "found": "id", "ended": "rowid",
    "arrays": "rowid", "extracted": "rowid", "tallies": "comparison",
}  # fmt: skip
"""Tables that are copied, with the column that orders their rows."""

HEADER = {0: b"SQLite format 3\0", 18: b"\1\1\0\x40\x20\x20", 32: bytes(8), 44: b"\0\0\0\4", 52: bytes(4),
          56: b"\0\0\0\1", 64: bytes(4)}  # fmt: skip
"""Bytes in the header of every store, by position. Those about free pages are left out."""

PAGE = 4096
MAX_ID = 2**40
MAX_FAILURES, MAX_FIRST_FAILURES = 100_000, 2000
"""Number of unreadable ranges after which a table is abandoned, and that number if nothing could be read before."""

READ_FACTOR = 64
"""Maximum ratio of a table's rows to the file, in bytes. A larger one means that pages refer to each other wrongly."""


def salvage_store(path: Path) -> Path:
    """Replace a file by a store of all readable rows; return where the damaged file is now.

    Raises
    ------
    InputError
        No row is readable.
    """
    source, mended = (path.with_name(f"{path.name}.{suffix}") for suffix in ("read", "mended"))
    try:
        if not _copy_rows(path, source, mended, is_fresh=False) and not _copy_rows(path, source, mended, is_fresh=True):
            raise InputError(
                f"store {path}: no row of it can be read; move the file away, and the next run counts all again"
            )
        names = (path.with_name(f"{path.name}.damaged{'' if k == 1 else f'-{k}'}") for k in range(1, 10_000))
        aside = next(name for name in names if not name.exists())
        shutil.copy2(path, aside)
        with suppress(FileNotFoundError):
            _get_journal_path(path).replace(_get_journal_path(aside))
        mended.replace(path)  # if killed before this line, nothing has changed
    finally:
        for leftover in (source, _get_journal_path(source), mended, _get_journal_path(mended)):
            leftover.unlink(missing_ok=True)
    return aside


def _get_journal_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


def _copy_rows(path: Path, source: Path, mended: Path, *, is_fresh: bool) -> bool:
    """Copy readable rows into a new file, if `is_fresh` with a new first page; return whether that was enough."""
    mended.unlink(missing_ok=True)
    shutil.copyfile(path, source)
    if not is_fresh:
        if _get_journal_path(path).exists():
            shutil.copyfile(_get_journal_path(path), _get_journal_path(source))
        _write_header(source, b"")
    open_to_write(str(mended), NEWEST if is_fresh else _infer_version(source)).close()
    if is_fresh:
        _write_header(source, mended.read_bytes()[:PAGE])
    copied, is_complete = 0, True
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(mended)) as new:
        old.text_factory = lambda data: data.decode("utf-8", "replace")
        limit_lengths(old, source, is_writer=False)
        for pragma in ("writable_schema = ON", "cell_size_check = ON", "query_only = ON", "trusted_schema = OFF"):
            with suppress(sqlite3.Error):
                old.execute(f"PRAGMA {pragma}")
        for table, order in SALVAGED_TABLES.items():
            names = [row[1] for row in new.execute(f"PRAGMA table_info({table})")]
            if not names:
                continue  # earlier versions have fewer tables
            limit_steps(old, source)
            if not _has_columns(old, table, names):
                is_complete = False
                continue
            marks = ", ".join("?" * len(names))
            insert = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608
            for row in _iter_rows(old, table, order, names, READ_FACTOR * get_size(source)):
                copied += max(new.execute(insert, row).rowcount, 0)
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


def _infer_version(path: Path) -> int:
    """Return the schema version that matches most tables of a file, because its stated version may be wrong."""
    with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.Error, ValueError):
        limit_steps(connection, path)
        present = {" ".join(str(row[0]).split()) for row in connection.execute("SELECT sql FROM sqlite_master")}
        return max(range(NEWEST, 0, -1), key=lambda version: len(present & {*list_schemas()[version]}))
    return NEWEST


def _has_columns(old: sqlite3.Connection, table: str, names: list[str]) -> bool:
    """Return whether a table has columns with names. Views and computed columns are not read."""
    try:
        [sql] = old.execute("SELECT sql FROM sqlite_master WHERE name = ? LIMIT 2", (table,)).fetchall()
        is_plain = not COMPUTED.search(str(sql[0]))
        return is_plain and {row[1] for row in old.execute(f"PRAGMA table_info({table})")} >= {*names}
    except (sqlite3.Error, ValueError):
        return False


COMPUTED = re.compile(r"\b(view|virtual|as)\b", re.IGNORECASE)


def _iter_rows(old: sqlite3.Connection, table: str, order: str, names: list[str], max_bytes: int) -> Iterator[Any]:
    """Yield a table's rows, at most a number of bytes. A range of rows that cannot be read is split into halves."""
    query = f"SELECT {', '.join(names)} FROM {table} NOT INDEXED WHERE {order} BETWEEN ? AND ?"  # noqa: S608
    last_id: Any = None
    with suppress(sqlite3.Error):
        last_id = old.execute(f"SELECT max({order}) FROM {table}").fetchone()[0]  # noqa: S608
    ranges = deque([(0, last_id if isinstance(last_id, int) else MAX_ID)])
    tries, has_any, n_bytes = 0, False, 0
    while ranges and tries < (MAX_FAILURES if has_any else MAX_FIRST_FAILURES):
        low, high = ranges.popleft()
        try:
            for row in old.execute(query, (low, high)):
                n_bytes += sum(len(value) for value in row if isinstance(value, str | bytes))
                if n_bytes > max_bytes:
                    return
                has_any = True
                yield row
        except (sqlite3.Error, ValueError, OverflowError) as error:
            if str(error) == "interrupted":
                return
            tries += 1
            if low < high:
                middle = (low + high) // 2
                ranges += [(low, middle), (middle + 1, high)]


@dataclass(frozen=True, slots=True)
class StoreCondition:
    """The condition of a store.

    Attributes
    ----------
    where : str
        The file or URL, without its password.
    n_rows : int
        Rows that were checked.
    faults : tuple of Fault
        Damaged or missing rows.
    set_aside : Path or None
        The damaged file, if a new one replaced it.
    """

    where: str
    n_rows: int
    faults: tuple[Fault, ...]
    set_aside: Path | None = None


def check_store(location: str) -> StoreCondition:
    """Check every row of a store, changing nothing."""
    try:
        with closing(open_to_read(location)) as database, database.transaction() as connection:
            return StoreCondition(database.where, count_rows(connection), tuple(iter_faults(connection)))
    except DamagedError as error:  # it cannot be opened
        return StoreCondition(describe_location(location), 0, tuple(Fault("", (), fault) for fault in error.faults))


def repair_store(location: str) -> StoreCondition:
    """Remove damaged rows, and return the store's condition before that.

    Raises
    ------
    HeldError
        A driver uses the store.
    InputError
        Nothing in the store can be read.
    """
    url, set_aside = parse_url(location), None
    if url.get_backend_name() == "sqlite":
        path = Path(url.database or "")
        if not (_can_open(location) and all(fault.table for fault in check_store(location).faults)):
            try:
                set_aside = salvage_store(path)
            except OSError as error:
                raise StoreError(
                    f"store {path}: cannot be repaired in its folder ({error.strerror}); the folder needs room for "
                    f"two more files of its size"
                ) from None
    with (
        closing(open_to_write(location, 0)) as database,
        _hold_leases(database),
        database.write_transaction() as connection,
    ):
        n_rows, faults = count_rows(connection), tuple(iter_faults(connection))
        remove_rows(connection, faults)
        migrate(connection, database.where)
        forget_file_states(connection)
    return StoreCondition(database.where, n_rows, faults, set_aside)


def _can_open(location: str) -> bool:
    """Return whether a store can be opened; raise if a driver uses it."""
    try:
        open_to_read(location).close()
        with closing(open_to_write(location, 0)) as database:
            Lease(database, "").release()
    except (DamagedError, NoDatabaseError):
        return False
    return True


@contextmanager
def _hold_leases(database: Database) -> Iterator[None]:
    """Hold the leases of all plans in the body, so that no driver can open the store."""
    with database.transaction() as connection:
        plans = [str(row[0]) for row in connection.execute(text("SELECT DISTINCT plan FROM runs"))]
    with ExitStack() as stack:
        for name in [""] if database.is_sqlite else plans:
            stack.callback(Lease(database, name).release)
        yield
