"""The five tables of a store, the same in SQLite and PostgreSQL."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa
from sqlalchemy import BigInteger, Column, Connection, Float, Integer, LargeBinary, SmallInteger, String, Table, Text
from sqlalchemy.dialects import postgresql, sqlite

from sigdask.errors import DamagedError, InputError
from sigdask.text import format_list

VERSION = 9
"""Version of the schema. It changes with every change of the tables or of what they hold."""

TABLES = sa.MetaData()

META = Table("meta", TABLES, Column("name", String(300), primary_key=True), Column("value", Text, nullable=False))
"""The version of the schema, and who writes (`Store`)."""

RUNS = Table(
    "runs", TABLES,
    Column("id", Integer, primary_key=True), Column("plan", String(255), nullable=False, index=True),
    Column("record", LargeBinary, nullable=False), Column("progress", LargeBinary, nullable=False),
    sqlite_autoincrement=True,
)  # fmt: skip
"""Runs, in two JSON values: one that is written when a run begins and ends, and one that changes every second."""

TALLIES = Table(
    "tallies", TABLES,
    Column("digest", LargeBinary(20), primary_key=True), Column("run", SmallInteger, primary_key=True),
    Column("n_trials", BigInteger, nullable=False), Column("counts", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)  # fmt: skip
"""Counts of the first `n_trials` trials of a comparison (`tallies`), by the digest of its data."""

RESULTS = Table(
    "results", TABLES,
    Column("run", Integer, primary_key=True, autoincrement=False), Column("plan", String(255), nullable=False),
    Column("base", Integer, nullable=False), Column("places", LargeBinary, nullable=False),
    Column("rows", LargeBinary, nullable=False),
)  # fmt: skip
"""What each run changed in the results of its plan (`results`)."""

EXTRACTED = Table(
    "extracted", TABLES,
    Column("digest", String(40), primary_key=True), Column("used", Float(53), nullable=False, index=True),
    Column("content", LargeBinary, nullable=False),
)  # fmt: skip
"""The extraction cache."""


def upsert(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """Return an insertion into a table, which `on_conflict_do_update` can extend."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def check_tables(connection: Connection, where: str) -> bool:
    """Return whether a database has the tables of a store.

    Raises
    ------
    InputError
        It is the database of another program, or a store of another version.
    DamagedError
        It states no version.
    """
    objects, own = _list_objects(connection), _list_own_objects(connection.dialect.name)
    meta = own["meta"]
    if objects.get("meta") == meta:
        version = connection.execute(sa.select(META.c.value).where(META.c.name == "version")).scalar_one_or_none()
        if version is None:
            raise DamagedError(["meta: it states no version"])
        if version != str(VERSION):
            raise InputError(
                f"store {where}: found schema version {version[:20]}, expected {VERSION}",
                remedy="move the file aside (or name another store with --store), and the next run counts again",
            )
    others = [name for name in {**objects, **own} if objects.get(name) != own.get(name)]
    if objects and others:
        raise InputError(
            f"store {where}: is a database of another program, or of another version of sigdask (it differs in "
            f"{format_list(others, 5)})",
            remedy="name another store with --store",
        )
    return bool(objects)


def create_tables(connection: Connection) -> None:
    """Create the tables in a database that has none."""
    TABLES.create_all(connection)
    connection.execute(sa.insert(META).values(name="version", value=str(VERSION)))


def _list_objects(connection: Connection) -> dict[str, str]:
    """Return the objects of a database: names and definitions in SQLite, the names of sigdask's tables otherwise."""
    if connection.dialect.name != "sqlite":
        return {name: "" for name in sa.inspect(connection).get_table_names() if name in TABLES.tables}
    rows = connection.execute(sa.text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    return {str(name): " ".join(str(sql).split()) for name, sql in rows}


@cache
def _list_own_objects(dialect: str) -> dict[str, str]:
    """Return what `_list_objects` returns for a store."""
    if dialect != "sqlite":
        return dict.fromkeys(TABLES.tables, "")
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        create_tables(connection)
        return _list_objects(connection)
