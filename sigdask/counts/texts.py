"""Columns of texts as Arrow arrays instead of Python objects: ids, labels and group columns.

The texts of a column are in one buffer of UTF-8, which sorts as the characters do. A column in which many texts are
equal is a dictionary array: its distinct texts and a code for each row. Conversions go through buffers, because those
that pyarrow offers for lists and NumPy import pandas, which takes half a second.

Texts of items for display are looked up on demand. No metric uses them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sigdask.errors import InputError

BLOCK = 1 << 16
"""Texts framed at a time, so that intermediate arrays stay small."""


@dataclass(frozen=True, eq=False)
class Texts(Sequence[str]):
    """A column of texts, which behaves like a tuple of str.

    Attributes
    ----------
    array : pyarrow.LargeStringArray or DictionaryArray of them, length n
        The texts, none of which is null. All texts of a dictionary occur.

    Examples
    --------
    >>> column = Texts.from_values(["b", "a", "b"])
    >>> column[1], column[:2] == ("b", "a"), "c" in column
    ('a', True, False)
    >>> column.encode().levels.tolist(), column.encode().codes.tolist()
    (['b', 'a'], [0, 1, 0])
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
        return Texts(pa.LargeStringArray.from_buffers(len(strings), pa.py_buffer(offsets), pa.py_buffer(content)))

    @staticmethod
    def from_arrow(values: Any) -> Texts:
        """Build a column from an array or chunked array of Arrow; a null becomes an empty text."""
        import pyarrow as pa

        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if hasattr(values, "dictionary") and not values.null_count:
            return Texts.from_codes(values.dictionary, values.indices)
        texts = values.cast(pa.large_string())
        return Texts(texts.fill_null(Texts.from_values([""]).array[0]) if texts.null_count else texts)

    @staticmethod
    def from_codes(levels: Any, codes: Any) -> Texts:
        """Build an encoded column from distinct texts and the place of each row's text, both arrays of Arrow."""
        import pyarrow as pa

        found = codes.dictionary_encode()  # of numbers: columns of whole texts would take ten times their memory
        used = levels.take(found.dictionary).cast(pa.large_string())
        codes = codes if codes.equals(found.indices) else found.indices  # rather than a second copy
        return Texts(pa.DictionaryArray.from_arrays(codes, used))

    @property
    def is_encoded(self) -> bool:
        """Whether the column has levels and codes."""
        return hasattr(self.array, "dictionary")

    def encode(self) -> Texts:
        """Return the column with levels and codes."""
        return self if self.is_encoded else Texts(self.array.dictionary_encode())

    def decode(self) -> Texts:
        """Return the column without levels and codes."""
        return Texts(self.array.dictionary_decode()) if self.is_encoded else self

    @cached_property
    def levels(self) -> Texts:
        """The distinct texts of an encoded column, in the order of their first appearance."""
        return Texts(self.array.dictionary)

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """The place of each row's text in `levels`, of an encoded column."""
        return np.asarray(np.from_dlpack(self.array.indices))

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """The place of each row's text among the levels sorted by their bytes, of an encoded column."""
        return np.argsort(self.levels.sorted[0])[self.codes]

    def rename_levels(self, names: Mapping[str, str]) -> Texts:
        """Return an encoded column with some texts replaced by others."""
        levels = Texts.from_values([names.get(level, level) for level in self.levels])
        return Texts(levels.array.take(self.array.indices)).encode()

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
        import pyarrow as pa

        rows = np.arange(*which.indices(len(self))) if isinstance(which, slice) else which
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else np.ascontiguousarray(rows, np.int64)
        places = pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(rows)])
        if self.is_encoded:
            return Texts.from_codes(self.array.dictionary, self.array.indices.take(places))
        return Texts(self.array.take(places))

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Texts) and self.is_encoded == other.is_encoded:
            return bool(self.array.equals(other.array))
        return isinstance(other, Texts | tuple | list) and self.tolist() == [*other]

    __hash__ = None  # type: ignore[assignment]

    def tolist(self) -> list[str]:
        """Return the texts as a list."""
        if self.is_encoded:
            return [*map(self.levels.tolist().__getitem__, self.codes.tolist())]
        texts: list[str] = self.array.to_pylist()
        return texts

    def equals(self, other: str | Texts) -> NDArray[np.bool_]:
        """Return a mask of the texts that equal a given one, or that in the same row of another column."""
        import pyarrow as pa
        from pyarrow import compute

        if self.is_encoded and not isinstance(other, Texts):
            return self.find(other.__eq__)
        value = other.array if isinstance(other, Texts) else Texts.from_values([other]).array[0]
        return np.from_dlpack(compute.equal(self.array, value).cast(pa.uint8())).astype(np.bool_)

    def find(self, condition: Callable[[str], bool]) -> NDArray[np.bool_]:
        """Return a mask of the texts of an encoded column that meet a condition."""
        return np.array([condition(level) for level in self.levels], np.bool_)[self.codes]

    @cached_property
    def canonical(self) -> Texts:
        """The texts in form NFC, which are compared and sorted instead of them; the same column if it has it."""
        from pyarrow import compute

        forms = compute.utf8_normalize(self.array, form="NFC")
        return self if forms.equals(self.array) else Texts(forms)

    @cached_property
    def has_empty(self) -> bool:
        """Whether a text of a column without codes is empty."""
        from pyarrow import compute

        return bool(compute.min(compute.binary_length(self.array)).as_py() == 0)

    @cached_property
    def sorted(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The stable order that sorts the texts by their bytes, and a mask of places that repeat the text before."""
        from pyarrow import compute

        order = to_integers(compute.array_sort_indices(self.array))
        tied = np.zeros(len(self), np.bool_)
        in_order = self[order].array
        tied[1:] = Texts(in_order[1:]).equals(Texts(in_order[:-1]))
        return order, tied

    @property
    def are_unique(self) -> bool:
        """Whether no text occurs twice."""
        return not self.sorted[1].any()

    def iter_framed(self) -> Iterator[Any]:
        """Yield the texts as blocks of bytes, with the size of each text before it (64 bits, little-endian)."""
        import pyarrow as pa
        from pyarrow import compute

        empty = Texts.from_values([""]).array.cast(pa.large_binary())[0]
        for first in range(0, len(self), BLOCK):
            texts = self.array[first : first + BLOCK].cast(pa.large_binary())
            sizes = [None, compute.binary_length(texts).buffers()[1]]
            before = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(texts), sizes).cast(pa.large_binary())
            yield compute.binary_join_element_wise(before, texts, empty).buffers()[2]


def to_integers(values: Any) -> NDArray[np.int64]:
    """Return integers of Arrow, none of which is null."""
    import pyarrow as pa

    return np.asarray(np.from_dlpack(values.cast(pa.int64())), np.int64)


def join_columns(columns: Sequence[Texts]) -> Texts:
    """Return the texts of several columns, one column after the other; all are encoded, or none is.

    Examples
    --------
    >>> join_columns([Texts.from_values(["a"]), Texts.from_values(["b", "c"])]).tolist()
    ['a', 'b', 'c']
    """
    import pyarrow as pa

    if len(columns) == 1:
        return columns[0]
    joined = Texts(pa.concat_arrays([column.decode().array for column in columns]))
    return joined.encode() if columns[0].is_encoded else joined


class Codes(dict[str, int]):
    """Codes of texts, shared by all files; a new text gets the next one."""

    def __missing__(self, text: str) -> int:
        self[text] = code = len(self)
        return code

    def map_codes(self, codes: NDArray[np.int64], convert: Callable[[str], str]) -> NDArray[np.int64]:
        """Return the codes of converted texts, given the codes of the texts."""
        texts, (used, rows) = list(self), np.unique(codes, return_inverse=True)
        return np.array([self[convert(texts[code])] for code in used.tolist()], np.int64)[rows]


class ScopeNote(str):
    """A note on how files were read that is printed in the first lines of an output, not below the results."""

    __slots__ = ()


def canonicalize(text: str) -> bytes:
    """Return the form of a name or id that is compared and sorted: UTF-8 bytes in Unicode's form NFC (scheme 1)."""
    return text.encode() if text.isascii() else Texts.from_values([text]).canonical[0].encode()


def check_unique(names: Sequence[str], what: str) -> None:
    """Raise if two names have the same canonical form."""
    forms = [] if isinstance(names, Texts) else [unicodedata.normalize("NFC", str(name)) for name in names]
    if forms and len({*forms}) == len(forms):  # of a few names, sooner than by sorting in Arrow
        return
    order, are_repeated = Texts.from_values(names).canonical.sorted
    if are_repeated.any():
        raise InputError(f"{what} {names[int(order[are_repeated].min())]!r} occurs twice")
