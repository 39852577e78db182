"""The tables of a store, and the version of their schema."""

from __future__ import annotations

import re
from functools import cache

from sqlalchemy import Connection, create_engine, inspect, text

from sigdask.errors import DamagedError, InputError
from sigdask.text import format_list

SCHEMA_VERSION = 7
"""Version of the schema. It changes with every change of the tables or of what they hold."""

CREATE_VERSION = "CREATE TABLE schema_version (version INTEGER NOT NULL)"

TABLES = """
CREATE TABLE comparisons (
    id {serial}, digest {blob} NOT NULL UNIQUE, label TEXT NOT NULL);
CREATE TABLE tallies (
    comparison BIGINT NOT NULL REFERENCES comparisons (id), run SMALLINT NOT NULL, first BIGINT NOT NULL,
    stop BIGINT NOT NULL, greater BIGINT NOT NULL, less BIGINT NOT NULL, two_sided BIGINT NOT NULL,
    checksum BIGINT NOT NULL, PRIMARY KEY (comparison, run, first), CHECK (stop > first)) {keyed};
CREATE TABLE arrays (
    comparison BIGINT NOT NULL REFERENCES comparisons (id), run SMALLINT NOT NULL, first BIGINT NOT NULL,
    stop BIGINT NOT NULL, counts {blob} NOT NULL, checksum BIGINT NOT NULL, PRIMARY KEY (comparison, run, first),
    CHECK (stop > first));
CREATE TABLE leases (
    name VARCHAR(255) PRIMARY KEY, token VARCHAR(32) NOT NULL, holder TEXT NOT NULL, since DOUBLE PRECISION NOT NULL,
    beat DOUBLE PRECISION NOT NULL, commits BIGINT NOT NULL);
CREATE TABLE runs (
    id {serial}, plan VARCHAR(255) NOT NULL, path TEXT NOT NULL, started DOUBLE PRECISION NOT NULL,
    updated DOUBLE PRECISION NOT NULL, ended DOUBLE PRECISION, state VARCHAR(16) NOT NULL, host TEXT NOT NULL,
    pid BIGINT NOT NULL, details TEXT NOT NULL, message TEXT NOT NULL, checksum BIGINT NOT NULL DEFAULT -1,
    seconds_left DOUBLE PRECISION);
CREATE INDEX runs_of_plan ON runs (plan, id);
CREATE TABLE progress (
    run BIGINT NOT NULL REFERENCES runs (id), position INTEGER NOT NULL, test_set TEXT NOT NULL,
    comparisons BIGINT NOT NULL, reached BIGINT NOT NULL, finished BIGINT NOT NULL, kept BIGINT NOT NULL,
    counted BIGINT NOT NULL, wanted BIGINT NOT NULL, checksum BIGINT NOT NULL, PRIMARY KEY (run, position));
CREATE TABLE found (
    id {serial}, plan VARCHAR(255) NOT NULL, since BIGINT NOT NULL REFERENCES runs (id),
    until BIGINT REFERENCES runs (id), n BIGINT NOT NULL, columns {blob} NOT NULL,
    checksum BIGINT NOT NULL DEFAULT -1);
CREATE INDEX found_of_plan ON found (plan, until);
CREATE TABLE ended (
    block BIGINT NOT NULL REFERENCES found (id), run BIGINT NOT NULL REFERENCES runs (id), places {blob} NOT NULL,
    checksum BIGINT NOT NULL DEFAULT -1, PRIMARY KEY (block, run));
CREATE TABLE extracted (
    digest VARCHAR(40) PRIMARY KEY, used DOUBLE PRECISION NOT NULL, size BIGINT NOT NULL, content {blob} NOT NULL);
CREATE INDEX extracted_by_use ON extracted (used)
"""
"""Statements that create the tables. Results are blocks of columns; `until` is the run in which a block's last row
ended. A row that is inserted before its checksum is known has -1 until the end of the transaction.
"""

WORDS = {
    "sqlite": {"serial": "INTEGER PRIMARY KEY AUTOINCREMENT", "keyed": "WITHOUT ROWID", "blob": "BLOB"},
    "postgresql": {"serial": "BIGSERIAL PRIMARY KEY", "keyed": "", "blob": "BYTEA"},
}
"""Words of the statements that differ between databases."""

HARMLESS = re.compile(r"CREATE (TABLE|INDEX) [^()]*\(([^()]|\(\d+\))*\)[^()]*")
"""Pattern of a user's own table or index in a SQLite store, without expressions, which SQLite would evaluate."""


def create_tables(connection: Connection, where: str) -> None:
    """Create the tables in a database that has none, within the caller's transaction.

    Raises
    ------
    InputError
        It is the database of another program, or a store of another schema version.
    """
    version = read_version(connection)
    check_version(version, where)
    if version == 0:
        refuse_foreign_database(connection, where)
        _create(connection)


def _create(connection: Connection) -> None:
    connection.execute(text(CREATE_VERSION))
    connection.execute(text("INSERT INTO schema_version VALUES (:version)"), {"version": SCHEMA_VERSION})
    for statement in TABLES.format(**WORDS[connection.dialect.name]).split(";"):
        connection.execute(text(statement.strip()))


@cache
def list_schema() -> dict[str, str]:
    """Return the tables and indexes of a SQLite store: their names, by their SQL."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        _create(connection)
        schema = read_schema(connection)
    engine.dispose()
    return schema


def read_schema(connection: Connection) -> dict[str, str]:
    """Return the tables, views and other objects of a SQLite file: names, by SQL with single blanks."""
    rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    return {" ".join(str(sql).split()): str(name) for name, sql in rows}


def read_version(connection: Connection) -> int:
    """Return a store's schema version, 0 if it has none yet.

    Raises
    ------
    DamagedError
        It states no version, lacks tables, or has views, triggers or other objects that sigdask does not make.
    """
    is_sqlite = connection.dialect.name == "sqlite"
    schema = read_schema(connection) if is_sqlite else {}
    has_version = CREATE_VERSION in schema if is_sqlite else inspect(connection).has_table("schema_version")
    if not has_version:
        if not {"tallies", "schema_version"}.isdisjoint(schema.values()):
            raise DamagedError(["schema_version: missing, expected one row with a number"])
        return 0
    versions = connection.execute(text("SELECT version FROM schema_version LIMIT 2")).scalars().all()
    if len(versions) != 1 or type(versions[0]) is not int or versions[0] < 1:
        shown = ", ".join(repr(version)[:40] for version in versions) or "no row"
        raise DamagedError([f"schema_version: found {shown}, expected one row with a number"])
    if is_sqlite and versions[0] == SCHEMA_VERSION:
        _check_objects(schema)
    return versions[0]


def _check_objects(schema: dict[str, str]) -> None:
    """Raise DamagedError unless a SQLite file has all tables, and besides them only plain tables and indexes."""
    known = list_schema()
    faults = [
        f"schema: {name!r} is not as sigdask makes it"
        for sql, name in schema.items()
        if sql not in known and not HARMLESS.fullmatch(sql)
    ]
    faults += [f"schema: {name!r} is missing or changed" for sql, name in known.items() if sql not in schema]
    if faults:
        raise DamagedError(faults)


def check_version(version: int, where: str) -> None:
    """Raise InputError for a store of another schema version."""
    if version not in {0, SCHEMA_VERSION}:
        raise InputError(
            f"store {where}: found schema version {version}, expected {SCHEMA_VERSION}",
            remedy="move the file aside (or name another store with --store), and the next run counts again",
        )


def refuse_foreign_database(connection: Connection, where: str) -> None:
    """Raise if a SQLite file without sigdask's tables has other ones."""
    if connection.dialect.name == "sqlite" and (tables := [*read_schema(connection).values()]):
        raise InputError(
            f"store {where}: is a database of another program (it has {format_list(tables, 5)})",
            remedy="name another file with --store",
        )
