"""Columns of texts as Arrow arrays instead of Python objects: ids, labels and group columns.

The texts of a column are in one buffer of UTF-8, which sorts as the characters do. Conversions go through buffers,
because those that pyarrow offers for lists and NumPy import pandas, which takes half a second.

Texts of items for display are looked up on demand. No metric uses them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from sigdask.errors import InputError

WORD = 8
"""Bytes that are compared at a time."""

BLOCK = 1 << 16
"""Texts handled at a time, so that intermediate arrays stay small."""


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
        if isinstance(values, Texts):
            return values
        strings = [value if isinstance(value, str) else str(value) for value in values]
        joined = "".join(strings)
        try:
            content = joined.encode()
        except UnicodeEncodeError as error:
            text = next(text for text in strings if joined[error.start] in text)
            problem = f"{text!r}: a name or id that cannot be written in UTF-8"
            raise InputError(problem, remedy="change it") from None
        sizes = list(map(len, strings if len(content) == len(joined) else map(str.encode, strings)))
        return Texts.from_bytes(content, np.cumsum([0, *sizes], dtype=np.int64))

    @staticmethod
    def from_bytes(content: Any, offsets: NDArray[np.int64]) -> Texts:
        """Build a column from the UTF-8 bytes of all texts, and the n + 1 offsets at which they begin and end."""
        import pyarrow as pa

        buffers = pa.py_buffer(offsets), pa.py_buffer(content)
        return Texts(pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers))

    @staticmethod
    def from_arrow(values: Any) -> Texts:
        """Build a column from an array or chunked array of Arrow; a null becomes an empty text."""
        import pyarrow as pa

        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if values.type != pa.large_string():
            values = values.cast(pa.large_string())
        return Texts(values.fill_null("") if values.null_count else values)

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, which: int) -> str: ...
    @overload
    def __getitem__(self, which: slice | NDArray[Any]) -> Texts: ...
    def __getitem__(self, which: Any) -> str | Texts:
        if not isinstance(which, slice | np.ndarray):
            text: str = self.array[int(which)].as_py()
            return text
        if isinstance(which, slice) and (which.step or 1) == 1:
            return Texts(self.array[which])
        return Texts(self.array.take(to_arrow_integers(np.arange(len(self))[which])))

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(part.tolist() for part in self._iter_parts())

    def _iter_parts(self) -> Iterator[Texts]:
        return (self[first : first + BLOCK] for first in range(0, len(self), BLOCK))

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and bool(self.equals_text(text).any())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Texts):
            return bool(self.array.equals(other.array))
        return isinstance(other, tuple | list) and len(self) == len(other) and all(map(str.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        suffix = f", … {len(self):,} in all" if len(self) > 3 else ""
        return f"Texts({', '.join(map(repr, self[:3]))}{suffix})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.tolist(), dtype or object)

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
        """Bytes of the texts, and possibly of others before and behind them."""
        return np.frombuffer(self.array.buffers()[2] or b"", np.uint8)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Length of each text in bytes."""
        return np.diff(self.offsets)

    @cached_property
    def is_ascii(self) -> bool:
        """Whether all characters are ASCII."""
        offsets = self.offsets
        return all(
            self.content[offsets[k] : offsets[min(k + BLOCK, len(self))]].tobytes().isascii()
            for k in range(0, len(self), BLOCK)
        )

    def equals_text(self, text: str) -> NDArray[np.bool_]:
        """Return a mask of the texts that equal a given one."""
        return _compare("equal", self.array, Texts.from_values([text]).array[0])

    def equals_column(self, other: Texts) -> NDArray[np.bool_]:
        """Return a mask of the rows in which another column of the same length has the same text."""
        return _compare("equal", self.array, other.array)

    @cached_property
    def sorted(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The order that sorts the texts by their bytes, and a mask of positions in it that repeat the text before."""
        n = len(self)
        code_type = np.int32 if n < 2**31 else np.int64
        tied = np.zeros(n, np.bool_)
        if _compare("less_equal", self.array[:-1], self.array[1:]).all():
            tied[1:] = self[1:].equals_column(self[:-1])
            return np.arange(n, dtype=code_type), tied
        order, places = self._sort()
        alike = self[order[places]]
        tied[places[1:]] = alike[1:].equals_column(alike[:-1])
        return order.astype(code_type), tied

    def _sort(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the stable order, and the places in it of texts that the first eight bytes do not tell apart.

        These are the bytes after the common prefix. They nearly always decide, and numpy sorts integers several times
        faster than Arrow sorts texts.
        """
        from pyarrow import compute

        ends = compute.min_max(self.array).as_py()
        first, last = (end.encode() for end in ends.values())
        n_shared = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
        words = self._get_words(n_shared)
        order = np.argsort(words)
        words = words[order]
        is_open = np.zeros(len(self), np.bool_)
        is_open[1:] = words[1:] == words[:-1]
        is_open[:-1] |= is_open[1:]
        places = np.flatnonzero(is_open)
        rows = np.sort(order[places])
        order[places] = rows[to_integers(compute.array_sort_indices(self[rows].array))]
        return order, places

    def _get_words(self, start: int) -> NDArray[np.uint64]:
        """Return eight bytes of each text from `start` on as numbers that sort like them; short ones end with zeros."""
        first, last = self.offsets[[0, -1]].tolist()
        padded = np.append(self.content[first:last], np.zeros(WORD, np.uint8))
        windows: NDArray[Any] = np.ndarray((last - first + 1,), ">u8", padded, strides=(1,))
        words = np.empty(len(self), np.uint64)
        for k in range(0, len(self), BLOCK):
            offsets = self.offsets[k : k + BLOCK + 1] - first
            n_missing = np.clip(WORD + start - np.diff(offsets), 0, WORD).astype(np.uint64)
            half = n_missing << np.uint64(2)  # a shift by 64 bits does nothing, so shift twice
            words[k : k + BLOCK] = windows[offsets[:-1] + start].astype(np.uint64) >> half >> half << half << half
        return words

    @cached_property
    def are_unique(self) -> bool:
        """Whether no text occurs twice."""
        return not self.sorted[1].any()

    def canonicalize(self) -> Texts:
        """Return the texts in Unicode's form NFC, in which ids are compared; self if they are in that form already."""
        if self.is_ascii:
            return self
        strings = self.tolist()
        if unicodedata.is_normalized("NFC", "\n".join(strings)):  # no character composes with the end of a line
            return self
        return Texts.from_values(unicodedata.normalize("NFC", text) for text in strings)

    def iter_framed(self) -> Iterator[Any]:
        """Yield the texts as blocks of bytes, with the size of each text before it (64 bits, little-endian)."""
        from pyarrow import compute, large_binary

        nothing = Texts.from_values([""]).array.cast(large_binary())[0]
        for part in self._iter_parts():
            frames = Texts.from_bytes(part.sizes.astype("<i8").tobytes(), 8 * np.arange(len(part) + 1))
            columns = (frames.array.cast(large_binary()), part.array.cast(large_binary()))
            framed = Texts(compute.binary_join_element_wise(*columns, nothing))
            yield framed.content[framed.offsets[0] : framed.offsets[-1]]


def to_arrow_integers(rows: NDArray[Any]) -> Any:
    """Return integers as an array of Arrow."""
    import pyarrow as pa

    content = np.ascontiguousarray(rows, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(content), [None, pa.py_buffer(content)])


def to_integers(values: Any) -> NDArray[np.int64]:
    """Return integers of Arrow, none of which is null."""
    import pyarrow as pa

    return np.frombuffer(values.cast(pa.int64()).buffers()[1], np.int64)[values.offset : values.offset + len(values)]


def _compare(name: str, *columns: Any) -> NDArray[np.bool_]:
    """Return the truth values of a comparison of Arrow."""
    import pyarrow as pa
    from pyarrow import compute

    result = compute.call_function(name, columns).cast(pa.uint8())
    return np.frombuffer(result.buffers()[1], np.bool_)[result.offset : result.offset + len(result)]


def join_columns(columns: Sequence[Texts]) -> Texts:
    """Return the texts of several columns, one column after the other.

    Examples
    --------
    >>> join_columns([Texts.from_values(["a"]), Texts.from_values(["b", "c"])]).tolist()
    ['a', 'b', 'c']
    """
    import pyarrow as pa

    return Texts(pa.concat_arrays([column.array for column in columns]))


def find_positions(column: Texts, texts: Texts) -> NDArray[np.intp]:
    """Return the position of each text in a column that holds the same texts in another order, all of them unique.

    Examples
    --------
    >>> find_positions(Texts.from_values(["a", "b", "c"]), Texts.from_values(["c", "a", "b"])).tolist()
    [2, 0, 1]
    """
    order = np.empty(len(texts), np.intp)
    order[texts.sorted[0]] = column.sorted[0]
    return order


class ScopeNote(str):
    """A note on how files were read that is printed in the first lines of an output, not below the results."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ItemTexts:
    """The texts of an item: its input, the gold standard and a system's output, each None if unknown."""

    asked: str | None = None
    gold: str | None = None
    given: str | None = None


NO_TEXTS = ItemTexts()


class TextLookup(Protocol):
    """Source of the texts of items."""

    def find_texts(self, ids: Collection[str], systems: Collection[str]) -> Mapping[tuple[str, str], ItemTexts]:
        """Return the texts of items by system and id; items without texts are left out."""
        ...
