"""Columns of texts as Arrow arrays instead of Python objects: ids, labels and group columns.

The texts of a column are in one buffer of UTF-8, which sorts as the characters do. Conversions go through buffers,
because those that pyarrow offers for lists and NumPy import pandas, which takes half a second.

Texts of items for display are looked up on demand. No metric uses them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sigdask.errors import InputError

WORD = 8
"""Bytes of the size of a text in a frame."""

BLOCK = 1 << 16
"""Texts framed at a time, so that intermediate arrays stay small."""


@dataclass(frozen=True, eq=False)
class Texts(Sequence[str]):
    """A column of texts, which behaves like a tuple of str.

    Attributes
    ----------
    array : pyarrow.LargeStringArray, length n
        The texts, none of which is null.

    Examples
    --------
    >>> column = Texts.from_values(["b", "a", "b"])
    >>> column[1], column[:2] == ("b", "a"), "c" in column
    ('a', True, False)
    """

    array: Any

    @staticmethod
    def from_values(values: Iterable[Any]) -> Texts:
        """Build a column from texts, or from values that `str` converts.

        Raises
        ------
        InputError
            A text contains half of a surrogate pair, which UTF-8 cannot hold.
        """
        import pyarrow as pa

        if isinstance(values, Texts):
            return values
        strings = [value if isinstance(value, str) else str(value) for value in values]
        joined = "".join(strings)
        try:
            content = joined.encode()
        except UnicodeEncodeError as error:
            text = next(text for text in strings if joined[error.start] in text)
            raise InputError(f"{text!r}: a text that cannot be written in UTF-8", remedy="change it") from None
        sizes = map(len, strings if len(content) == len(joined) else map(str.encode, strings))
        offsets = np.cumsum([0, *sizes], dtype=np.int64)
        buffers = pa.py_buffer(offsets), pa.py_buffer(content)
        return Texts(pa.LargeStringArray.from_buffers(len(strings), *buffers))

    @staticmethod
    def from_arrow(values: Any) -> Texts:
        """Build a column from an array or chunked array of Arrow; a null becomes an empty text."""
        import pyarrow as pa

        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        texts = values.cast(pa.large_string())
        return Texts(texts.fill_null("") if texts.null_count else texts)  # which would import pandas

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, which: int) -> str: ...
    @overload
    def __getitem__(self, which: slice | NDArray[Any]) -> Texts: ...
    def __getitem__(self, which: Any) -> str | Texts:
        import pyarrow as pa

        if not isinstance(which, slice | np.ndarray):
            text: str = self.array[int(which)].as_py()
            return text
        rows = np.ascontiguousarray(np.arange(len(self))[which])
        return Texts(self.array.take(pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(rows)])))

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and bool(self.equals(text).any())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Texts):
            return bool(self.array.equals(other.array))
        return isinstance(other, tuple | list) and self.tolist() == [*other]

    __hash__ = None  # type: ignore[assignment]

    def tolist(self) -> list[str]:
        """Return the texts as a list."""
        texts: list[str] = self.array.to_pylist()
        return texts

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Positions in `content` at which the texts begin and end, shape (n + 1,)."""
        start, offsets = self.array.offset, self.array.buffers()[1]
        return np.frombuffer(offsets or bytes(8), np.int64)[start : start + len(self) + 1]

    @property
    def content(self) -> NDArray[np.uint8]:
        """Bytes of the texts."""
        return np.frombuffer(self.array.buffers()[2] or b"", np.uint8)[self.offsets[0] : self.offsets[-1]]

    def equals(self, other: str | Texts) -> NDArray[np.bool_]:
        """Return a mask of the texts that equal a given one, or that in the same row of another column."""
        import pyarrow as pa
        from pyarrow import compute

        value = other.array if isinstance(other, Texts) else Texts.from_values([other]).array[0]
        return np.from_dlpack(compute.equal(self.array, value).cast(pa.uint8())).astype(np.bool_)

    @cached_property
    def sorted(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The stable order that sorts the texts by their bytes, and a mask of places that repeat the text before."""
        from pyarrow import compute

        order = to_integers(compute.array_sort_indices(self.array))
        tied = np.zeros(len(self), np.bool_)
        tied[1:] = self[order[1:]].equals(self[order[:-1]])
        return order, tied

    @property
    def are_unique(self) -> bool:
        """Whether no text occurs twice."""
        return not self.sorted[1].any()

    def canonicalize(self) -> Texts:
        """Return the texts in Unicode's form NFC, in which ids are compared; self if they are in that form already."""
        if unicodedata.is_normalized("NFC", self.content.tobytes().decode()):  # then each part of it is as well
            return self
        return Texts.from_values(unicodedata.normalize("NFC", text) for text in self)

    def iter_framed(self) -> Iterator[bytes]:
        """Yield the texts as blocks of bytes, with the size of each text before it (64 bits, little-endian)."""
        for first in range(0, len(self), BLOCK):
            part = Texts(self.array[first : first + BLOCK])
            offsets = part.offsets - part.offsets[0]
            sizes = np.diff(offsets).astype("<i8").view(np.uint8)
            yield np.insert(part.content, np.repeat(offsets[:-1], WORD), sizes).tobytes()


def to_integers(values: Any) -> NDArray[np.int64]:
    """Return integers of Arrow, none of which is null."""
    import pyarrow as pa

    return np.asarray(np.from_dlpack(values.cast(pa.int64())), np.int64)


def join_columns(columns: Sequence[Texts]) -> Texts:
    """Return the texts of several columns, one column after the other.

    Examples
    --------
    >>> join_columns([Texts.from_values(["a"]), Texts.from_values(["b", "c"])]).tolist()
    ['a', 'b', 'c']
    """
    import pyarrow as pa

    return Texts(pa.concat_arrays([column.array for column in columns]))


class ScopeNote(str):
    """A note on how files were read that is printed in the first lines of an output, not below the results."""

    __slots__ = ()
