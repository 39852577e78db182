"""Tests of the extraction cache in a store: entries are replaced and bounded, alike in both databases."""

import numpy as np
import pytest
from servers import start_postgres

from sigdask.metrics.extraction import pack_statistics, unpack_statistics
from sigdask.nightly.store import open_store


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


def test_a_full_cache_is_emptied_before_more_is_stored(where):
    with open_store(where, "p") as store:
        store.extraction_cache.most_bytes = 1050
        for key in range(11):
            store.extraction_cache.put({f"{key}": bytes(100)})
        assert store.extraction_cache.get([f"{key}" for key in range(11)]).keys() == {"10"}
