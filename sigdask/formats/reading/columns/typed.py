"""Columns of Parquet files, loaded one by one: numbers stay numbers, texts stay in Arrow's buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.texts import WORD, Texts
from sigdask.errors import InputError, build_extra_error
from sigdask.formats.reading.rows import format_cell
from sigdask.io.compression import check_parquet

SPACE = np.zeros(256, np.bool_)
"""Bytes with which white space begins or may end; where some stand at the ends of texts, Python strips them."""
SPACE[[*range(33), 0x80, 0x85, 0xA0, *range(0x81, 0x8B), 0xA8, 0xA9, 0xAF, 0x9F, 0xC2, 0xE1, 0xE2, 0xE3]] = True


class TypedColumn(Texts):
    """A column of typed values that are formatted as text only on access.

    Parameters
    ----------
    load : callable
        Reads the column: an Arrow array, in chunks.
    size : int
        Its length.
    numeric : bool
        Whether its values are numbers.
    """

    def __init__(self, load: Callable[[], Any], size: int, *, numeric: bool) -> None:
        vars(self).update(load=load, size=size, is_numeric=numeric)

    load: Callable[[], Any]
    size: int
    is_numeric: bool

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            start, stop, step = which.indices(self.size)
            if step == 1:
                size = max(stop - start, 0)
                return TypedColumn(lambda: self.load().slice(start, size), size, numeric=self.is_numeric)
        return super().__getitem__(which)

    @cached_property
    def texts(self) -> Texts:
        """The stripped texts, empty where there is no value."""
        import pyarrow as pa

        values = self.load()
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_integer(values.type) or pa.types.is_boolean(values.type):
            values = values.cast(pa.string())
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            converted = _convert_strings(values.cast(pa.large_string()).fill_null(""))
            filled = converted.starts < converted.stops
            ends = converted.buffer[converted.starts[filled]], converted.buffer[converted.stops[filled] - 1]
            if not any(SPACE[end].any() for end in ends):
                return converted
        return Texts.from_values(format_cell(value).strip() for value in values.to_pylist())

    @property
    def buffer(self) -> NDArray[np.uint8]:
        """The UTF-8 bytes of all texts."""
        return self.texts.buffer

    @property
    def starts(self) -> NDArray[Any]:
        """The position in the buffer at which each text begins."""
        return self.texts.starts

    @property
    def stops(self) -> NDArray[Any]:
        """The position in the buffer at which each text ends."""
        return self.texts.stops

    def compact(self) -> Texts:
        """Return the texts alone, in a compact buffer, without the typed values."""
        packed = self.texts.compact()
        if "sorted" in vars(self):
            vars(packed)["sorted"] = self.sorted
        return packed

    def get_numbers(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the numbers (missing: NaN), and a mask of values that are themselves NaN or infinite."""
        values = self.load()
        numbers = values.to_numpy().astype(np.float64, copy=False)
        odd = ~np.isfinite(numbers)
        if values.null_count:
            odd &= ~values.is_null().to_numpy()
        return numbers, odd


def _convert_strings(values: Any) -> Texts:
    """Convert large strings of Arrow to `Texts`."""
    import pyarrow as pa

    values = pa.concat_arrays(values.chunks) if values.num_chunks != 1 else values.chunk(0)
    _, offsets, content = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    start, stop = int(ends[0]), int(ends[-1])
    buffer = np.zeros(stop - start + WORD, np.uint8)
    if stop > start:
        buffer[: stop - start] = np.frombuffer(content, np.uint8)[start:stop]
    ends = ends - start
    return Texts(buffer, ends[:-1], ends[1:])


class ParquetColumns:
    """The columns of a Parquet file.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    InputError
        The file is damaged, or pyarrow is not installed.
    """

    def __init__(self, path: Path) -> None:
        try:
            from pyarrow import parquet
        except ImportError:
            raise build_extra_error("pyarrow", "parquet", f"{path}: Parquet") from None
        self.path = path
        try:
            self.file = parquet.ParquetFile(path, pre_buffer=False)
        except (OSError, ValueError) as error:
            raise self._build_damage_error(error) from None
        check_parquet(path, self.file.metadata)
        self.schema = self.file.schema_arrow
        self.n_rows = self.file.metadata.num_rows

    def __iter__(self) -> Iterator[tuple[str, TypedColumn]]:
        """Yield the name and values of each column."""
        from pyarrow import types

        for k, field in enumerate(self.schema):
            numeric = types.is_integer(field.type) or types.is_floating(field.type)
            yield field.name, TypedColumn(self._build_loader(k), self.n_rows, numeric=numeric)

    def _build_loader(self, k: int) -> Callable[[], Any]:
        return lambda: self.read_values(k)

    def read_values(self, k: int) -> Any:
        """Return the values of one column as a chunked Arrow array."""
        try:
            return self.file.read(columns=[self.schema.names[k]], use_threads=False).column(0)
        except (OSError, ValueError) as error:
            raise self._build_damage_error(error) from None

    def read_nested(self) -> dict[str, list[Any]]:
        """Return the columns that hold objects or lists."""
        from pyarrow import types

        names = [(k, field.name) for k, field in enumerate(self.schema) if types.is_nested(field.type)]
        columns = ((name, self.read_values(k).to_pylist()) for k, name in names)
        return {name: cells for name, cells in columns if any(isinstance(cell, dict | list) for cell in cells)}

    def _build_damage_error(self, error: Exception) -> InputError:
        return InputError(f"{self.path}: damaged Parquet file ({error})")
