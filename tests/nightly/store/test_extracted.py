"""Tests of the extraction cache in a store: entries are replaced and bounded, alike in both databases."""

import time

import numpy as np
import pytest
from servers import start_postgres

from sigdask.metrics.extraction import pack_statistics, unpack_statistics
from sigdask.nightly.store import open_store, tallies


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
    with open_store(url, "p") as store:  # remove what other tests have left
        store.extraction_cache.most_bytes = 0
        store.extraction_cache.put({"x": b"x"})
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


@pytest.fixture
def clock(monkeypatch):
    """Return the time of the cache, which tests set."""
    clock = {"now": time.time()}
    monkeypatch.setattr(tallies.time, "time", lambda: clock["now"])
    return clock


def test_entries_that_were_not_used_for_longest_make_room(where, clock):
    keys = [str(k) for k in range(10)]
    with open_store(where, "p") as store:
        store.extraction_cache.most_bytes = 1000
        for key in keys:
            clock["now"] += 1
            store.extraction_cache.put({key: bytes(100)})
        clock["now"] += 2 * tallies.FRESH_SECONDS
        assert store.extraction_cache.get(["0"])  # used again
        store.extraction_cache.put({"x": bytes(100)})
        assert store.extraction_cache.get([*keys, "x"]).keys() == {"0", "x", *keys[3:]}
