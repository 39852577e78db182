"""Fixture for memory:// URLs."""

import fsspec
import pytest


@pytest.fixture
def memory():
    """Yield the file system of memory:// URLs, empty before and after the test."""
    system = fsspec.filesystem("memory")
    _clear(system)
    yield system
    _clear(system)


def _clear(system):
    system.store.clear()
    system.pseudo_dirs[:] = [""]
