"""What is known about files while they are read: answers that are computed only once, and tables from elsewhere.

A table may come from another package's reader, from parts of a run that are joined, or from a data frame.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar, cast

from sigdask.errors import InputError
from sigdask.io import set_variable
from sigdask.io.addresses import describe_failure

P = ParamSpec("P")
T = TypeVar("T")

TableReader = Callable[[Path], Any]
"""Returns the Arrow table of a file. Its columns have the names of roles."""

_results: ContextVar[dict[Hashable, Any] | None] = ContextVar("results by function and arguments", default=None)
_reader: ContextVar[TableReader | None] = ContextVar("reader of a declared format", default=None)
_tables: ContextVar[Mapping[Path, Any]] = ContextVar("tables by path", default=MappingProxyType({}))


@contextmanager
def cache_files() -> Iterator[None]:
    """Read the head and the table of each file only once inside the `with` block."""
    with set_variable(_results, {} if (outer := _results.get()) is None else outer):
        yield


def cache_result(function: Callable[P, T]) -> Callable[P, T]:
    """Call a function with the same arguments only once inside `cache_files`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if (results := _results.get()) is None:
            return function(*args, **kwargs)
        if (key := (function, *args, *kwargs.items())) not in results:
            results[key] = function(*args, **kwargs)
        return cast("T", results[key])

    return call


def use_table_reader(reader: TableReader) -> AbstractContextManager[None]:
    """Read all tables by this function inside the `with` block."""
    return set_variable(_reader, reader)


def provide_tables(tables: Mapping[Path, Any]) -> AbstractContextManager[None]:
    """Take these tables for their paths inside the `with` block."""
    return set_variable(_tables, tables)


def find_table(path: Path) -> Any:
    """Return the table that is provided for a path, or the Arrow table that the reader in use returns, or None."""
    reader = _reader.get()
    if path in _tables.get() or reader is None:
        return _tables.get().get(path)
    import pyarrow as pa

    try:
        return pa.table(reader(path))
    except InputError as error:
        raise error if str(path) in str(error) else InputError(str(error), file=path) from None
    except Exception as error:  # noqa: BLE001  # another package's function may raise anything
        raise InputError(describe_failure(error), file=path) from None
