"""Tests of the extraction cache in a store: entries are replaced and bounded, alike in both databases."""

import numpy as np
import pytest
from servers import start_postgres
from sqlalchemy import text

from sigdask.metrics.extraction.cache import pack_statistics, unpack_statistics
from sigdask.nightly.store import extraction_cache, open_for_reading, open_store
from sigdask.nightly.store.database import open_to_write


@pytest.fixture(scope="module")
def server():
    postgres = start_postgres()
    yield postgres
    postgres.close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def where(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "night.sqlite")
    url = request.getfixturevalue("server").url
    database = open_to_write(url)
    with database.transaction() as connection:
        connection.execute(text("DELETE FROM extracted"))
    database.close()
    return url


def test_entries_come_back_and_are_replaced(where):
    array = np.arange(12).reshape(4, 3)
    with open_store(where, "p") as store:
        store.extraction_cache.put({"a": pack_statistics("a", array), "b": b"damaged"})
        store.extraction_cache.put({"b": pack_statistics("b", -array), "c": b""})
    with open_store(where, "p") as store:
        entries = store.extraction_cache.get(["a", "b", "c", "d"])
    assert entries.keys() == {"a", "b", "c"}
    assert (unpack_statistics("a", entries["a"]) == array).all()
    assert (unpack_statistics("b", entries["b"]) == -array).all()
    assert unpack_statistics("c", entries["c"]) is None


def test_many_keys_are_many_entries(where):
    with open_store(where, "p") as store:
        store.extraction_cache.put({f"{k}": b"x" * k for k in range(1200)})
        entries = store.extraction_cache.get([f"{k}" for k in range(0, 3000, 2)])
    assert entries == {f"{k}": b"x" * k for k in range(0, 1200, 2)}


def read_use_times(connection):
    return {row[0]: row[1] for row in connection.execute(text("SELECT digest, used FROM extracted"))}


def test_what_no_night_used_for_longest_makes_room(where):
    with open_store(where, "p") as store:
        store.extraction_cache.most_bytes = 1000
        store.extraction_cache.put({f"{k}": bytes(100) for k in range(10)})
        with store.database.transaction() as connection:
            for k in range(10):
                connection.execute(text("UPDATE extracted SET used = :u WHERE digest = :d"), {"u": k, "d": str(k)})
        assert store.extraction_cache.get(["0"])  # used again
        store.extraction_cache.put({"x": bytes(100)})
    with open_for_reading(where) as connection:
        assert read_use_times(connection).keys() == {"0", "x", *map(str, range(3, 10))}


def test_a_night_that_only_looks_writes_nothing(where):
    with open_store(where, "p") as store:
        store.extraction_cache.put({"a": b"1"})
        with store.database.transaction() as connection:
            before = read_use_times(connection)
        store.extraction_cache.get(["a"])
        with store.database.transaction() as connection:
            assert read_use_times(connection) == before
            connection.execute(
                text("UPDATE extracted SET used = used - :day"), {"day": 2 * extraction_cache.FRESH_SECONDS}
            )
        store.extraction_cache.get(["a"])
        with store.database.transaction() as connection:
            assert read_use_times(connection)["a"] >= before["a"]


def test_a_store_of_the_version_before_gets_the_table(tmp_path):
    from sigdask.nightly.store.migrations import COLUMNAR, MIGRATIONS, read_version

    from sigdask.nightly.store.checksums import SEALED

    path = str(tmp_path / "old.sqlite")
    database = open_to_write(path)
    with database.transaction() as connection:
        connection.execute(text("DROP TABLE extracted"))
        for table in ("tallies", *SEALED):
            connection.execute(text(f"ALTER TABLE {table} DROP COLUMN checksum"))
        connection.execute(text("ALTER TABLE runs DROP COLUMN seconds_left"))
        connection.execute(text("UPDATE schema_version SET version = :v"), {"v": COLUMNAR})
    database.close()
    with open_store(path, "p") as store:
        store.extraction_cache.put({"a": b"1"})
        with store.database.transaction() as connection:
            assert read_version(connection) == len(MIGRATIONS)
