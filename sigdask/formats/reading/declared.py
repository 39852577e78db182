"""Tables that a format of another package reads: its reader returns an Arrow table for each file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
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
        raise InputError(describe_failure(error, reader), file=path) from None
