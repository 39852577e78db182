"""The schema, version by version, and the conversion of older stores.

A version that was released is never edited: a change is a new version. Every store says which version it has. If an
older store is opened for writing, it is brought to the newest version in one transaction. Results that earlier versions
stored as one row each, with notes as sentences, are read as blocks of columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import groupby, islice
from typing import Any

import numpy as np
from sqlalchemy import Connection, create_engine, inspect, text

from sigdask.errors import DamagedError, InputError
from sigdask.nightly.store.checksums import (
    SEALED,
    UNSEALED,
    are_possible,
    compute_keys,
    compute_tally_checksums,
    seal_rows,
)
from sigdask.nightly.store.columns import (
    COMPARISON,
    COMPLETE,
    NEVER_ENDED,
    POSITION,
    ResultBlock,
    end_block,
    end_rows,
    save_blocks,
)
from sigdask.nightly.store.limits import parse_json
from sigdask.results.from_records import results_to_table
from sigdask.results.notes import upgrade_warnings
from sigdask.results.record import Result
from sigdask.text import format_list, value_from_json

ROWS_AT_ONCE = 10_000
"""Rows read at a time."""

PLAIN_FIELDS = ("test_set", "unit", "a", "b", "metric", "alternative", "score_a", "score_b", "difference", "n_items",
         "n_units", "n_discordant", "method", "n_trials", "n_extreme", "p_value", "p_adjusted")  # fmt: skip
"""Fields of a result that were columns. The others were in `detail`."""


def iter_earlier_blocks(connection: Connection, plan: str) -> Iterator[ResultBlock]:
    """Yield a plan's results that earlier versions stored, as blocks in the order of runs."""
    query = text(
        "SELECT results.*, comparisons.id AS comparison FROM results "
        "LEFT JOIN comparisons ON comparisons.digest = results.digest "
        "WHERE plan = :plan ORDER BY since, position, results.id"
    )
    rows = connection.execute(query, {"plan": plan}).mappings()
    for since, run_rows in groupby(rows, key=lambda row: int(row["since"])):
        query = text("SELECT details FROM runs WHERE id = :run")
        details = parse_json(connection.execute(query, {"run": since}).scalar_one())
        alpha = float(details.get("settings", {}).get("alpha", 0.05))
        while batch := list(islice(run_rows, ROWS_AT_ONCE)):
            columns = results_to_table([build_result(row) for row in batch], alpha).columns_by_path()
            columns[COMPARISON] = np.array([row["comparison"] or -1 for row in batch], np.int64)
            columns[COMPLETE] = np.array([row["complete"] for row in batch], np.bool_)
            columns[POSITION] = np.array([row["position"] for row in batch], np.int64)
            until = np.array([row["until"] or NEVER_ENDED for row in batch], np.int64)
            yield ResultBlock(0, since, is_earlier=True, columns=columns, until=until)


def build_result(row: Any) -> Result:
    """Return the result of a row that an earlier version stored."""
    values = {**parse_json(row["detail"]), **{name: row[name] for name in PLAIN_FIELDS}}
    for name in ("score_a", "score_b", "difference", "p_value"):
        values[name] = math.nan if values[name] is None else values[name]
    values["higher_is_better"] = bool(row["higher_is_better"])
    values["subset"] = None if row["subset"] is None else parse_json(row["subset"])
    result: Result = value_from_json(Result, upgrade_warnings(values))
    return result


V1 = """
CREATE TABLE comparisons (
    id {serial}, digest VARCHAR(40) NOT NULL UNIQUE, label TEXT NOT NULL);
CREATE TABLE tallies (
    comparison BIGINT NOT NULL REFERENCES comparisons (id), run SMALLINT NOT NULL, first BIGINT NOT NULL,
    stop BIGINT NOT NULL, greater BIGINT NOT NULL, less BIGINT NOT NULL, two_sided BIGINT NOT NULL,
    PRIMARY KEY (comparison, run, first), CHECK (stop > first)) {keyed};
CREATE TABLE leases (
    name VARCHAR(255) PRIMARY KEY, token VARCHAR(32) NOT NULL, holder TEXT NOT NULL, since DOUBLE PRECISION NOT NULL,
    beat DOUBLE PRECISION NOT NULL, commits BIGINT NOT NULL);
CREATE TABLE runs (
    id {serial}, plan VARCHAR(255) NOT NULL, path TEXT NOT NULL, started DOUBLE PRECISION NOT NULL,
    updated DOUBLE PRECISION NOT NULL, ended DOUBLE PRECISION, state VARCHAR(16) NOT NULL, host TEXT NOT NULL,
    pid BIGINT NOT NULL, details TEXT NOT NULL, message TEXT NOT NULL);
CREATE INDEX runs_of_plan ON runs (plan, id);
CREATE TABLE progress (
    run BIGINT NOT NULL REFERENCES runs (id), position INTEGER NOT NULL, test_set TEXT NOT NULL,
    comparisons BIGINT NOT NULL, reached BIGINT NOT NULL, finished BIGINT NOT NULL, kept BIGINT NOT NULL,
    counted BIGINT NOT NULL, wanted BIGINT NOT NULL, PRIMARY KEY (run, position));
CREATE TABLE results (
    id {serial}, plan VARCHAR(255) NOT NULL, since BIGINT NOT NULL REFERENCES runs (id),
    until BIGINT REFERENCES runs (id), position BIGINT NOT NULL, digest VARCHAR(40), complete SMALLINT NOT NULL,
    test_set TEXT NOT NULL, subset TEXT, unit TEXT NOT NULL, a TEXT NOT NULL, b TEXT NOT NULL, metric TEXT NOT NULL,
    alternative VARCHAR(16) NOT NULL, higher_is_better SMALLINT NOT NULL, score_a DOUBLE PRECISION,
    score_b DOUBLE PRECISION, difference DOUBLE PRECISION, n_items BIGINT NOT NULL, n_units BIGINT NOT NULL,
    n_discordant BIGINT NOT NULL, method VARCHAR(32) NOT NULL, n_trials BIGINT NOT NULL, n_extreme BIGINT NOT NULL,
    p_value DOUBLE PRECISION, p_adjusted DOUBLE PRECISION, detail TEXT NOT NULL);
CREATE INDEX results_of_plan ON results (plan, until, position);
"""

V2 = """
CREATE TABLE arrays (
    comparison BIGINT NOT NULL REFERENCES comparisons (id), run SMALLINT NOT NULL, first BIGINT NOT NULL,
    stop BIGINT NOT NULL, counts {blob} NOT NULL, PRIMARY KEY (comparison, run, first), CHECK (stop > first));
"""
"""Families of hypotheses are counted together."""


V3 = """
CREATE TABLE found (
    id {serial}, plan VARCHAR(255) NOT NULL, since BIGINT NOT NULL REFERENCES runs (id),
    until BIGINT REFERENCES runs (id), n BIGINT NOT NULL, earlier SMALLINT NOT NULL, columns {blob} NOT NULL);
CREATE INDEX found_of_plan ON found (plan, until);
CREATE TABLE ended (
    block BIGINT NOT NULL REFERENCES found (id), run BIGINT NOT NULL REFERENCES runs (id), places {blob} NOT NULL,
    PRIMARY KEY (block, run));
"""
"""Results are stored in blocks of columns. `until` is the run in which the last row of a block ended."""

BINARY_DIGESTS = {
    "sqlite": """
CREATE TABLE hexed AS SELECT * FROM comparisons;
PRAGMA defer_foreign_keys = ON;
DROP TABLE comparisons;
CREATE TABLE comparisons (id {serial}, digest BLOB NOT NULL UNIQUE, label TEXT NOT NULL);
INSERT INTO comparisons SELECT id, unhexed(digest), label FROM hexed;
DROP TABLE hexed;
""",
    "postgresql": "ALTER TABLE comparisons ALTER COLUMN digest TYPE BYTEA USING decode(digest, 'hex');",
}
"""Digests are stored as bytes, in half the space."""


def _convert_to_columns(connection: Connection) -> None:
    """Convert results to columns, and digests to bytes."""
    _build_step(V3)(connection)
    for (plan,) in connection.execute(text("SELECT DISTINCT plan FROM results")).all():
        for block in iter_earlier_blocks(connection, plan):
            [number] = save_blocks(connection, plan, block.since, block.columns, is_earlier=True)
            entered = replace(block, number=number)
            for run in np.setdiff1d(block.until, NEVER_ENDED).tolist():
                end_rows(connection, run, entered, np.flatnonzero(block.until == run))
            if (block.until < NEVER_ENDED).all():
                end_block(connection, int(block.until.max()), number)
    connection.execute(text("DROP TABLE results"))
    if connection.dialect.name == "sqlite":
        driver_connection: Any = connection.connection.driver_connection
        driver_connection.create_function("unhexed", 1, bytes.fromhex, deterministic=True)
    _build_step(BINARY_DIGESTS[connection.dialect.name])(connection)


EXTRACTED = """
CREATE TABLE extracted (
    digest VARCHAR(40) PRIMARY KEY, used DOUBLE PRECISION NOT NULL, size BIGINT NOT NULL, content {blob} NOT NULL);
CREATE INDEX extracted_by_use ON extracted (used);
"""
"""Extracted statistics of outputs are stored with the counts."""


CHECKSUMS = "".join(
    f"ALTER TABLE {name} ADD COLUMN checksum BIGINT NOT NULL DEFAULT {UNSEALED};" for name in ("tallies", *SEALED)
)
"""Rows have checksums, which detect changed rows."""

SECONDS_LEFT = "ALTER TABLE runs ADD COLUMN seconds_left DOUBLE PRECISION;"
"""The driver's estimate of the remaining time, which `status` prints."""

TALLIES = (
    "SELECT comparison, run, first, stop, greater, less, two_sided FROM tallies WHERE comparison BETWEEN :low AND :high"
)
COMPARISONS_AT_ONCE = 50_000


def _add_checksums(connection: Connection) -> None:
    """Add checksums to all rows except tallies whose counts no trials can have produced."""
    _build_step(CHECKSUMS)(connection)
    max_id = connection.execute(text("SELECT max(id) FROM comparisons")).scalar_one()
    for low in range(0, (max_id or 0) + 1, COMPARISONS_AT_ONCE):
        _seal_tallies(connection, low, low + COMPARISONS_AT_ONCE - 1)
    for name in SEALED:
        seal_rows(connection, name)


def _seal_tallies(connection: Connection, low: int, high: int) -> None:
    between = {"low": low, "high": high}
    comparisons = connection.execute(
        text("SELECT id, digest FROM comparisons WHERE id BETWEEN :low AND :high"), between
    ).all()
    rows = np.array([tuple(row) for row in connection.execute(text(TALLIES), between)], np.int64).reshape(-1, 7)
    ids = np.array([number for number, _ in comparisons], np.int64)
    keys = compute_keys([digest for _, digest in comparisons])
    rows = rows[np.isin(rows[:, 0], ids) & are_possible(rows[:, 2], rows[:, 3], rows[:, 4:])]
    order = np.argsort(ids)
    row_keys = keys[order[np.searchsorted(ids, rows[:, 0], sorter=order)]]
    checksums = compute_tally_checksums(row_keys, rows[:, 1], rows[:, 2], rows[:, 3], rows[:, 4:])
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    query = f"UPDATE tallies SET checksum = {mark} WHERE comparison = {mark} AND run = {mark} AND first = {mark}"  # noqa: S608
    if len(rows):
        connection.exec_driver_sql(query, [tuple(row) for row in np.column_stack([checksums, rows[:, :3]]).tolist()])


def _build_step(script: str) -> Callable[[Connection], None]:
    def migrate(connection: Connection) -> None:
        sqlite = connection.dialect.name == "sqlite"
        words = {
            "serial": "INTEGER PRIMARY KEY AUTOINCREMENT" if sqlite else "BIGSERIAL PRIMARY KEY",
            "keyed": "WITHOUT ROWID" if sqlite else "",
            "blob": "BLOB" if sqlite else "BYTEA",
        }
        for statement in filter(str.strip, script.format(**words).split(";")):
            connection.execute(text(statement))

    return migrate


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    _build_step(V1),
    _build_step(V2),
    _convert_to_columns,
    _build_step(EXTRACTED),
    _add_checksums,
    _build_step(SECONDS_LEFT),
)
"""The k-th entry upgrades a store from version k to version k + 1."""

NEWEST = len(MIGRATIONS)

COLUMNAR, WITH_CHECKSUMS = 3, 5
"""First versions with results in columns, and with checksums of rows."""


CREATE_VERSION = "CREATE TABLE schema_version (version INTEGER NOT NULL)"

HARMLESS = re.compile(r"CREATE (TABLE|INDEX) [^()]*\(([^()]|\(\d+\))*\)[^()]*")
"""Pattern of a user's own table or index in a SQLite store, without expressions, which SQLite would evaluate."""


@cache
def list_schemas() -> tuple[dict[str, str], ...]:
    """Return the tables and indexes of a SQLite store of each version from 0: their names, by their SQL."""
    schemas: list[dict[str, str]] = [{}]
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        connection.execute(text(CREATE_VERSION))
        for step in MIGRATIONS:
            step(connection)
            schemas.append(read_schema(connection))
    engine.dispose()
    return tuple(schemas)


def read_schema(connection: Connection) -> dict[str, str]:
    """Return the tables, views and other objects of a SQLite file: names, by SQL with single blanks."""
    rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    return {" ".join(str(sql).split()): str(name) for name, sql in rows}


def _check_schema(connection: Connection) -> dict[str, str]:
    """Return the objects of a SQLite file; raise DamagedError for views, triggers and others not made by sigdask."""
    schema, known = read_schema(connection), {sql for version in list_schemas() for sql in version}
    foreign = [name for sql, name in schema.items() if sql not in known and not HARMLESS.fullmatch(sql)]
    if foreign:
        raise DamagedError([f"schema: {name!r} is not as sigdask makes it" for name in foreign])
    return schema


def read_version(connection: Connection) -> int:
    """Return a store's schema version, 0 if it has none yet.

    Raises
    ------
    DamagedError
        It states no version, or lacks the tables of its version.
    """
    is_sqlite = connection.dialect.name == "sqlite"
    schema = _check_schema(connection) if is_sqlite else {}
    if not inspect(connection).has_table("schema_version"):
        if "tallies" in schema.values():
            raise DamagedError([f"schema_version: missing, expected one row with a number from 1 to {NEWEST}"])
        return 0
    versions = connection.execute(text("SELECT version FROM schema_version LIMIT 2")).scalars().all()
    if len(versions) != 1 or type(versions[0]) is not int or versions[0] < 1:
        shown = ", ".join(repr(version)[:40] for version in versions) or "no row"
        raise DamagedError([f"schema_version: found {shown}, expected one row with a number from 1 to {NEWEST}"])
    if is_sqlite and versions[0] <= NEWEST:
        expected = list_schemas()[versions[0]]
        if missing := [name for sql, name in expected.items() if sql not in schema]:
            raise DamagedError([f"schema: {name!r} is missing or changed" for name in missing])
    return versions[0]


def check_version(version: int, where: str) -> None:
    """Raise InputError for a store that a newer version wrote."""
    if version > NEWEST:
        raise InputError(
            f"store {where}: written by a newer sigdask (schema {version}, this one knows {NEWEST}); upgrade sigdask, "
            "or restore a backup of the store"
        )


def refuse_foreign_database(connection: Connection, where: str) -> None:
    """Raise if a SQLite file without sigdask's tables has other ones."""
    if connection.dialect.name == "sqlite" and (tables := [*read_schema(connection).values()]):
        raise InputError(
            f"store {where}: is a database of another program (it has {format_list(tables, 5)}); name another file "
            "with --store"
        )


def migrate(connection: Connection, where: str, target: int = NEWEST) -> None:
    """Migrate a store to a version, within the caller's transaction; a later version is not changed."""
    version = read_version(connection)
    check_version(version, where)
    if version == 0:
        refuse_foreign_database(connection, where)
        connection.execute(text(CREATE_VERSION))
        connection.execute(text("INSERT INTO schema_version VALUES (0)"))
    for step in MIGRATIONS[version:target]:
        step(connection)
    if version < target:
        connection.execute(text("UPDATE schema_version SET version = :v"), {"v": target})
