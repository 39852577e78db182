"""Columns of texts stored in one buffer instead of as Python objects: ids, labels and group columns.

The texts of a column are in one buffer of UTF-8, with the start and end of each. They are compared and sorted eight
bytes at a time as integers. UTF-8 sorts as the characters do.

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

from sigdask.io.caches import cached_njit

Bytes = NDArray[np.uint8]
Offsets = NDArray[Any]

WORD = 8
"""Bytes compared at a time. A buffer has so many bytes of padding after its last text."""

CHUNK = 1 << 20
"""Bytes, or texts, gathered at a time."""

FEW_TEXTS = 4096
"""Up to this number, building a set of texts is faster than sorting them."""


MANY_TEXTS = 2**17
"""From this number on, a compiled function is faster including the time to load it."""

FEW_SORTED = 256
"""Up to this number, Python sorts and joins texts faster than arrays do."""


@dataclass(frozen=True, eq=False)
class Texts(Sequence[str]):
    """A column of texts, which behaves like a tuple of str.

    Attributes
    ----------
    buffer : uint8 array
        UTF-8, with `WORD` bytes of padding; may contain other columns as well.
    starts, stops : array of int, shape (n,)
        Beginning and end of each text in the buffer.

    Examples
    --------
    >>> column = Texts.from_values(["b", "a", "b"])
    >>> column[1], column[:2] == ("b", "a"), "c" in column
    ('a', True, False)
    """

    buffer: Bytes
    starts: Offsets
    stops: Offsets

    @staticmethod
    def from_values(values: Iterable[Any]) -> Texts:
        """Build a column from texts, or from values that `str` converts."""
        if isinstance(values, Texts):
            return values
        strings = [value if isinstance(value, str) else str(value) for value in values]
        joined = "".join(strings)
        if joined.isascii():
            sizes, content = list(map(len, strings)), joined.encode()
        else:
            encoded = [text.encode("utf-8", "surrogatepass") for text in strings]
            sizes, content = list(map(len, encoded)), b"".join(encoded)
        return Texts._from_buffer(np.frombuffer(content + bytes(WORD), np.uint8), np.array(sizes, np.int64))

    @staticmethod
    def _from_buffer(buffer: Bytes, sizes: NDArray[np.int64]) -> Texts:
        """Build a column from a buffer in which the texts follow each other."""
        ends = np.zeros(len(sizes) + 1, get_offset_type(len(buffer)))
        np.cumsum(sizes, out=ends[1:])
        return Texts(buffer, ends[:-1], ends[1:])

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, which: int) -> str: ...
    @overload
    def __getitem__(self, which: slice | NDArray[Any]) -> Texts: ...
    def __getitem__(self, which: Any) -> str | Texts:
        if isinstance(which, slice | np.ndarray):
            return Texts(self.buffer, self.starts[which], self.stops[which])
        return self.buffer[self.starts[which] : self.stops[which]].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        if len(self) <= FEW_TEXTS:
            return iter(self.tolist())
        parts = (self[first : first + FEW_TEXTS] for first in range(0, len(self), FEW_TEXTS))
        return chain.from_iterable(part.tolist() for part in parts)

    def __contains__(self, text: object) -> bool:
        if len(self) <= FEW_SORTED:
            return text in self.tolist()
        return isinstance(text, str) and bool(self.equals_text(text).any())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Texts):
            return len(self) == len(other) and bool(self.equals_column(other).all())
        return isinstance(other, tuple | list) and len(self) == len(other) and all(map(str.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        suffix = f", … {len(self):,} in all" if len(self) > 3 else ""
        return f"Texts({', '.join(map(repr, self[:3]))}{suffix})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.tolist(), dtype or object)

    def tolist(self) -> list[str]:
        """Return the texts as a list."""
        if not len(self):
            return []
        first, last = int(self.starts.min()), int(self.stops.max())
        if last - first > CHUNK and last - first > 4 * self.n_bytes + CHUNK:
            return self.compact().tolist()
        content = self.buffer[first:last].tobytes()
        spans = zip((self.starts - first).tolist(), (self.stops - first).tolist(), strict=True)
        if content.isascii():
            text = content.decode()
            return [text[a:b] for a, b in spans]
        return [content[a:b].decode("utf-8", "surrogatepass") for a, b in spans]

    def _encode(self) -> list[bytes]:
        """Return the texts as UTF-8."""
        return [text.encode("utf-8", "surrogatepass") for text in self.tolist()]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Length of each text in bytes."""
        return self.stops.astype(np.int64) - self.starts

    @property
    def n_bytes(self) -> int:
        """Total length of the texts in bytes."""
        return int(self.sizes.sum())

    @cached_property
    def is_ascii(self) -> bool:
        """Whether all characters are ASCII."""
        if not len(self):
            return True
        content = self.buffer[int(self.starts.min()) : int(self.stops.max())]
        return all(content[k : k + CHUNK].tobytes().isascii() for k in range(0, len(content), CHUNK))

    def get_words(self, offset: int, rows: NDArray[Any] | None = None) -> NDArray[np.uint64]:
        """Return eight bytes of each text from `offset` on as a number; the numbers sort like the bytes.

        Texts that end earlier are padded with zeros.
        """
        windows: NDArray[Any] = np.ndarray((len(self.buffer) - WORD + 1,), ">u8", self.buffer, strides=(1,))
        result = np.empty(len(self) if rows is None else len(rows), np.uint64)
        for k in range(0, len(result), CHUNK // WORD):  # keeps intermediate arrays in the cache
            block = slice(k, k + CHUNK // WORD) if rows is None else rows[k : k + CHUNK // WORD]
            positions = self.starts[block].astype(np.int64) + offset
            n_left = np.clip(self.stops[block] - positions, 0, WORD)
            positions[n_left == 0] = 0
            cut = (8 * (WORD - n_left)).astype(np.uint64)
            half = cut >> np.uint64(1)  # a shift by 64 bits does nothing
            cut -= half
            result[k : k + CHUNK // WORD] = windows[positions].astype(np.uint64) >> half >> cut << half << cut
        return result

    def equals_text(self, text: str) -> NDArray[np.bool_]:
        """Return a mask of the texts that equal a given one."""
        is_equal: NDArray[np.bool_] = self.sizes == len(text.encode("utf-8", "surrogatepass"))
        is_equal[is_equal] = self[is_equal].equals_column(
            Texts.from_values([text])[np.zeros(np.count_nonzero(is_equal), np.intp)]
        )
        return is_equal

    def equals_column(self, other: Texts) -> NDArray[np.bool_]:
        """Return a mask of the rows in which another column of the same length has the same text."""
        is_equal: NDArray[np.bool_] = self.sizes == other.sizes
        offset, rows = 0, np.flatnonzero(is_equal)
        while len(rows):
            fits = self.get_words(offset, rows) == other.get_words(offset, rows)
            is_equal[rows[~fits]] = False
            offset += WORD
            rows = rows[fits]
            rows = rows[self.sizes[rows] > offset]
        return is_equal

    @cached_property
    def sorted(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The order that sorts the texts by their bytes, and a mask of positions in it that repeat the text before."""
        if len(self) <= FEW_SORTED and len({*(texts := self._encode())}) == len(texts):
            ranked = sorted(range(len(texts)), key=texts.__getitem__)
            return np.array(ranked, np.int32), np.zeros(len(texts), np.bool_)
        order = np.arange(len(self), dtype=np.int32 if len(self) < 2**31 else np.int64)
        tied = np.ones(len(self), np.bool_)
        tied[:1] = False
        step = CHUNK // WORD
        if all(_is_ascending(self[k : k + step + 1], tied[k + 1 : k + step + 1]) for k in range(0, len(self), step)):
            return order, tied
        tied[1:] = True
        offset, sizes = self._count_shared_bytes(), self.sizes
        while tied.any():
            in_group = tied.copy()
            in_group[:-1] |= tied[1:]
            positions = np.flatnonzero(in_group)
            rows = order[positions]
            ends = sizes[rows].max() <= offset
            words = sizes[rows].astype(np.uint64) if ends else self.get_words(offset, rows)
            tied_now = tied[positions]
            if (words[1:] < words[:-1])[tied_now[1:]].any():
                inner = np.argsort(words) if tied_now[1:].all() else np.lexsort((words, np.cumsum(~tied_now)))
                order[positions] = rows[inner]
                words = words[inner]
            tied[positions[1:]] = tied_now[1:] & (words[1:] == words[:-1])
            if ends:
                break
            offset += WORD
        return order, tied

    def _count_shared_bytes(self) -> int:
        """Return the length of the prefix in bytes that all texts share, such as "item-"; texts end with zeros."""
        longest, offset = int(self.sizes.max(initial=0)), 0
        while offset < longest:
            words = self.get_words(offset)
            if differing := int(np.bitwise_or.reduce(words ^ words[0])):
                return offset + WORD - (differing.bit_length() + 7) // 8
            offset += WORD
        return 0

    @cached_property
    def are_unique(self) -> bool:
        """Whether no text occurs twice."""
        if len(self) <= FEW_TEXTS and "sorted" not in vars(self):
            return len(set(self.tolist())) == len(self)
        return not self.sorted[1].any()

    def canonicalize(self) -> Texts:
        """Return the texts in Unicode's form NFC, in which ids are compared; self if they are in that form already.

        Raises
        ------
        UnicodeEncodeError
            For half of a surrogate pair, which UTF-8 cannot hold.
        """
        if self.is_ascii:
            return self
        strings = self.tolist()
        joined = "\n".join(strings)
        joined.encode()
        if unicodedata.is_normalized("NFC", joined):  # no character composes with the end of a line
            return self
        return Texts.from_values(unicodedata.normalize("NFC", text) for text in strings)

    def compact(self) -> Texts:
        """Return the column with a buffer that holds only its texts; self if its buffer is like that already."""
        sizes = self.sizes
        if len(self.buffer) == WORD + int(sizes.sum()) and (self.stops[:-1] == self.starts[1:]).all():
            return self
        buffer = np.zeros(int(sizes.sum()) + WORD, np.uint8)
        position = 0
        for block in self._iter_blocks(0):
            buffer[position : position + len(block)] = block
            position += len(block)
        packed = Texts._from_buffer(buffer, sizes)
        if "sorted" in vars(self):
            vars(packed)["sorted"] = self.sorted
        return packed

    def iter_framed(self) -> Iterator[Bytes]:
        """Yield the texts as blocks of bytes, with the size of each text before it (64 bits, little-endian)."""
        if len(self) > FEW_SORTED:
            yield from self._iter_blocks(WORD)
        else:
            yield self._framed

    @cached_property
    def _framed(self) -> Bytes:
        framed = (len(text).to_bytes(WORD, "little") + text for text in self._encode())
        return np.frombuffer(b"".join(framed), np.uint8)

    def _iter_blocks(self, frame: int) -> Iterator[Bytes]:
        ends = np.cumsum(self.sizes + frame)
        total = int(ends[-1]) if len(ends) else 0
        cuts = np.unique([0, *np.searchsorted(ends, np.arange(CHUNK, total, CHUNK)).tolist(), len(self)])
        for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            block = self[first:last]
            sizes = block.sizes
            if len(self) >= MANY_TEXTS:
                out = np.empty(int(sizes.sum()) + frame * len(block), np.uint8)
                copy_texts(self.buffer, block.starts, block.stops, frame, out)
                yield out
                continue
            offsets = np.cumsum(sizes) - sizes
            flat = np.arange(int(sizes.sum()))
            body = self.buffer[flat + np.repeat(block.starts - offsets, sizes)]
            if not frame:
                yield body
                continue
            out = np.empty(len(flat) + frame * len(block), np.uint8)
            heads = offsets + frame * np.arange(len(block))
            out[heads[:, None] + np.arange(frame)] = sizes.astype("<u8").view(np.uint8).reshape(-1, frame)
            out[flat + np.repeat(frame * np.arange(1, len(block) + 1), sizes)] = body
            yield out


@cached_njit()
def copy_texts(buffer, starts, stops, frame, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write texts one after the other, each behind its size in `frame` bytes, little-endian."""
    position = 0
    for k in range(len(starts)):
        start, size = np.int64(starts[k]), np.int64(stops[k]) - np.int64(starts[k])
        for shift in range(frame):
            out[position + shift] = (size >> (8 * shift)) & 255
        position += frame
        for byte in range(size):
            out[position + byte] = buffer[start + byte]
        position += size


def _is_ascending(texts: Texts, tied: NDArray[np.bool_]) -> bool:
    """Return whether the texts are sorted; mark in `tied` the rows that repeat the text before."""
    sizes = texts.sizes
    rows, offset = np.arange(1, len(texts)), 0
    tied[:] = False
    while len(rows):
        ends = int(sizes[rows].max()) <= offset
        previous, current = (
            (sizes[rows - 1], sizes[rows])
            if ends
            else (texts.get_words(offset, rows - 1), texts.get_words(offset, rows))
        )
        if (previous > current).any():
            return False
        rows = rows[previous == current]
        if ends:
            tied[rows - 1] = True
            break
        offset += WORD
    return True


def join_columns(columns: Sequence[Texts]) -> Texts:
    """Return the texts of several columns, one column after the other.

    Examples
    --------
    >>> join_columns([Texts.from_values(["a"]), Texts.from_values(["b", "c"])]).tolist()
    ['a', 'b', 'c']
    """
    if len(columns) == 1:
        return columns[0]
    compacted = [column.compact() for column in columns]
    content = [column.buffer[: column.n_bytes] for column in compacted]
    buffer = np.concatenate([*content, np.zeros(WORD, np.uint8)])
    return Texts._from_buffer(buffer, np.concatenate([column.sizes for column in compacted]))  # noqa: SLF001  # its own kind


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


def get_offset_type(size: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest integer type that holds offsets into a buffer of this size."""
    return np.uint32 if size < 2**32 else np.uint64


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
