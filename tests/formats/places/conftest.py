"""The file system of memory:// URLs."""

import fsspec
import pytest


@pytest.fixture
def memory():
    """The file system of memory:// URLs, empty before and after."""
    system = fsspec.filesystem("memory")
    _empty(system)
    yield system
    _empty(system)


def _empty(system):
    system.store.clear()
    system.pseudo_dirs[:] = [""]
