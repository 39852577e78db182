"""Tables that are not read from a file as it is: those of another package's reader, and parts joined to one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sigdask.errors import InputError
from sigdask.io.addresses import describe_failure
from sigdask.io.compression import set_variable

TableReader = Callable[[Path], Any]
"""Returns the Arrow table of a file. Its columns have the names of roles."""

_reader: ContextVar[TableReader | None] = ContextVar("reader of a declared format", default=None)


@contextmanager
def use_table_reader(reader: TableReader) -> Iterator[None]:
    """Read all tables by this function inside the `with` block."""
    with set_variable(_reader, reader):
        yield


_tables: ContextVar[Mapping[Path, Any]] = ContextVar("tables by path", default=MappingProxyType({}))


@contextmanager
def provide_tables(tables: Mapping[Path, Any]) -> Iterator[None]:
    """Take these tables for their paths inside the `with` block."""
    with set_variable(_tables, tables):
        yield


def get_provided(path: Path) -> Any:
    """Return the table that is provided for a path, or None."""
    return _tables.get().get(path)


def read_declared(path: Path) -> Any:
    """Return the Arrow table of a file, read by the function of `use_table_reader`. None outside of it."""
    if (reader := _reader.get()) is None:
        return None
    import pyarrow as pa

    try:
        return pa.table(reader(path))
    except InputError as error:
        raise error if str(path) in str(error) else InputError(str(error), file=path) from None
    except Exception as error:  # noqa: BLE001  # another package's function may raise anything
        raise InputError(describe_failure(error), file=path) from None
