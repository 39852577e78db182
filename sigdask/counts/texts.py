"""Columns of texts without an object a cell: ids, labels, and the groups that items are in.

The texts of a column lie in one buffer of UTF-8, each known by where it starts and stops. They are compared
and sorted eight bytes at a time, as numbers that stand for these bytes in their order; UTF-8 sorts as the
characters do.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Places = NDArray[Any]

WORD = 8
"""Bytes that are compared at a time; so many follow the last text in a buffer."""

CHUNK = 1 << 20
"""Bytes, or texts, that are gathered at a time."""


@dataclass(frozen=True, eq=False)
class Texts(Sequence[str]):
    """A column of texts, which behaves like a tuple of str.

    Attributes
    ----------
    buffer : uint8 array
        UTF-8, with `WORD` bytes more than the texts need; may hold other columns as well.
    starts, stops : array of int, shape (n,)
        Where each text begins and ends in it.

    Examples
    --------
    >>> column = Texts.of(["b", "a", "b"])
    >>> column[1], column[:2] == ("b", "a"), "c" in column
    ('a', True, False)
    """

    buffer: Bytes
    starts: Places
    stops: Places

    @staticmethod
    def of(values: Iterable[Any]) -> Texts:
        """Take texts, or what is written as such."""
        if isinstance(values, Texts):
            return values
        listed = [value if isinstance(value, str) else str(value) for value in values]
        joined = "".join(listed)
        if joined.isascii():
            sizes, content = list(map(len, listed)), joined.encode()
        else:
            parts = [text.encode("utf-8", "surrogatepass") for text in listed]
            sizes, content = list(map(len, parts)), b"".join(parts)
        return Texts._packed(np.frombuffer(content + bytes(WORD), np.uint8), np.array(sizes, np.int64))

    @staticmethod
    def _packed(buffer: Bytes, sizes: NDArray[np.int64]) -> Texts:
        """Return texts that follow each other."""
        ends = np.zeros(len(sizes) + 1, place_type(len(buffer)))
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
        for first in range(0, len(self), 4096):
            yield from self[first : first + 4096].tolist()

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and bool(self.are(text).any())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Texts):
            return len(self) == len(other) and bool(self.alike(other).all())
        return isinstance(other, tuple | list) and len(self) == len(other) and all(map(str.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        more = f", … {len(self):,} in all" if len(self) > 3 else ""
        return f"Texts({', '.join(map(repr, self[:3]))}{more})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.tolist(), dtype or object)

    def tolist(self) -> list[str]:
        """Return the texts as a list."""
        if not len(self):
            return []
        first, last = int(self.starts.min()), int(self.stops.max())
        own = self if last - first <= 4 * self.n_bytes + CHUNK else self.compact()
        first = int(own.starts.min())
        content = own.buffer[first : int(own.stops.max())].tobytes()
        places = zip((own.starts - first).tolist(), (own.stops - first).tolist(), strict=True)
        if content.isascii():
            text = content.decode()
            return [text[a:b] for a, b in places]
        return [content[a:b].decode("utf-8", "surrogatepass") for a, b in places]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bytes of each text."""
        return self.stops.astype(np.int64) - self.starts

    @property
    def n_bytes(self) -> int:
        """Bytes of all texts."""
        return int(self.sizes.sum())

    @cached_property
    def is_ascii(self) -> bool:
        """Whether all characters are ASCII."""
        if not len(self):
            return True
        own = self.buffer[int(self.starts.min()) : int(self.stops.max())]
        return all(own[k : k + CHUNK].tobytes().isascii() for k in range(0, len(own), CHUNK))

    def words(self, offset: int, rows: NDArray[Any] | None = None) -> NDArray[np.uint64]:
        """Return eight bytes of each text from `offset` on, zeros after its end, as numbers that sort as they do."""
        windows: NDArray[Any] = np.ndarray((len(self.buffer) - WORD + 1,), ">u8", self.buffer, strides=(1,))
        found = np.empty(len(self) if rows is None else len(rows), np.uint64)
        for k in range(0, len(found), CHUNK // WORD):  # what is needed on the way stays in the cache
            part = slice(k, k + CHUNK // WORD) if rows is None else rows[k : k + CHUNK // WORD]
            at = self.starts[part].astype(np.int64) + offset
            left = np.clip(self.stops[part] - at, 0, WORD)
            at[left == 0] = 0
            cut = (8 * (WORD - left)).astype(np.uint64)
            half = cut >> np.uint64(1)  # a shift by 64 bits is none
            cut -= half
            found[k : k + CHUNK // WORD] = windows[at].astype(np.uint64) >> half >> cut << half << cut
        return found

    def are(self, text: str) -> NDArray[np.bool_]:
        """Return which texts are a given one."""
        same: NDArray[np.bool_] = self.sizes == len(text.encode("utf-8", "surrogatepass"))
        same[same] = self[same].alike(Texts.of([text])[np.zeros(np.count_nonzero(same), np.intp)])
        return same

    def alike(self, other: Texts) -> NDArray[np.bool_]:
        """Return at which places another column of as many texts holds the same."""
        same: NDArray[np.bool_] = self.sizes == other.sizes
        offset, rows = 0, np.flatnonzero(same)
        while len(rows):
            fits = self.words(offset, rows) == other.words(offset, rows)
            same[rows[~fits]] = False
            offset += WORD
            rows = rows[fits]
            rows = rows[self.sizes[rows] > offset]
        return same

    @cached_property
    def sorted(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The order of the texts by their bytes, and which of them, in this order, are the same as the one before."""
        order = np.arange(len(self), dtype=np.int32 if len(self) < 2**31 else np.int64)
        tied = np.ones(len(self), np.bool_)
        tied[:1] = False
        step = CHUNK // WORD
        if all(_ascend(self[k : k + step + 1], tied[k + 1 : k + step + 1]) for k in range(0, len(self), step)):
            return order, tied
        tied[1:] = True
        offset, sizes = 0, self.sizes
        while tied.any():
            some = tied.copy()
            some[:-1] |= tied[1:]
            places = np.flatnonzero(some)
            rows = order[places]
            ends = sizes[rows].max() <= offset
            words = sizes[rows].astype(np.uint64) if ends else self.words(offset, rows)
            tied_now = tied[places]
            if (words[1:] < words[:-1])[tied_now[1:]].any():
                group = np.cumsum(~tied_now)
                inner = np.lexsort((words, group)) if group[-1] > group[0] else np.argsort(words)
                order[places] = rows[inner]
                words = words[inner]
            tied[places[1:]] = tied_now[1:] & (words[1:] == words[:-1])
            if ends:
                break
            offset += WORD
        return order, tied

    @property
    def are_unique(self) -> bool:
        """Whether no text occurs twice."""
        return not self.sorted[1].any()

    def canonical(self) -> Texts:
        """Return the texts in Unicode's form NFC, by which ids are compared; themselves where they are in it.

        Raises
        ------
        UnicodeEncodeError
            For half of a surrogate pair, which UTF-8 cannot hold.
        """
        if self.is_ascii:
            return self
        listed = self.tolist()
        joined = "\n".join(listed)
        joined.encode()
        if unicodedata.is_normalized("NFC", joined):  # no character composes with the end of a line
            return self
        return Texts.of(unicodedata.normalize("NFC", text) for text in listed)

    def compact(self) -> Texts:
        """Return the same texts in a buffer of their own; themselves where there is hardly more in it."""
        sizes = self.sizes
        if len(self.buffer) == WORD + int(sizes.sum()) and (self.stops[:-1] == self.starts[1:]).all():
            return self
        buffer = np.zeros(int(sizes.sum()) + WORD, np.uint8)
        at = 0
        for part in self._gathered(0):
            buffer[at : at + len(part)] = part
            at += len(part)
        packed = Texts._packed(buffer, sizes)
        if "sorted" in vars(self):
            vars(packed)["sorted"] = self.sorted
        return packed

    def framed(self) -> Iterator[Bytes]:
        """Yield the texts as bytes, each after its number of bytes (64 bits, little-endian), some at a time."""
        yield from self._gathered(WORD)

    def _gathered(self, frame: int) -> Iterator[Bytes]:
        ends = np.cumsum(self.sizes + frame)
        total = int(ends[-1]) if len(ends) else 0
        cuts = np.unique([0, *np.searchsorted(ends, np.arange(CHUNK, total, CHUNK)).tolist(), len(self)])
        for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            part = self[first:last]
            sizes = part.sizes
            before = np.cumsum(sizes) - sizes
            flat = np.arange(int(sizes.sum()))
            body = self.buffer[flat + np.repeat(part.starts - before, sizes)]
            if not frame:
                yield body
                continue
            out = np.empty(len(flat) + frame * len(part), np.uint8)
            heads = before + frame * np.arange(len(part))
            out[heads[:, None] + np.arange(frame)] = sizes.astype("<u8").view(np.uint8).reshape(-1, frame)
            out[flat + np.repeat(frame * np.arange(1, len(part) + 1), sizes)] = body
            yield out


def _ascend(texts: Texts, tied: NDArray[np.bool_]) -> bool:
    """Whether the texts stand in order; mark those that are the same as the one before, from the second on."""
    sizes = texts.sizes
    rows, offset = np.arange(1, len(texts)), 0
    tied[:] = False
    while len(rows):
        ends = int(sizes[rows].max()) <= offset
        before, after = (
            (sizes[rows - 1], sizes[rows]) if ends else (texts.words(offset, rows - 1), texts.words(offset, rows))
        )
        if (before > after).any():
            return False
        rows = rows[before == after]
        if ends:
            tied[rows - 1] = True
            break
        offset += WORD
    return True


def joined(columns: Sequence[Texts]) -> Texts:
    """Return the texts of several columns, one column after the other.

    Examples
    --------
    >>> joined([Texts.of(["a"]), Texts.of(["b", "c"])]).tolist()
    ['a', 'b', 'c']
    """
    if len(columns) == 1:
        return columns[0]
    own = [column.compact() for column in columns]
    content = [column.buffer[: column.n_bytes] for column in own]
    buffer = np.concatenate([*content, np.zeros(WORD, np.uint8)])
    return Texts._packed(buffer, np.concatenate([column.sizes for column in own]))  # noqa: SLF001  # its own kind


def places_in(column: Texts, wanted: Texts) -> NDArray[np.intp]:
    """Return where texts stand in a column that holds the same, each once.

    Examples
    --------
    >>> places_in(Texts.of(["a", "b", "c"]), Texts.of(["c", "a", "b"])).tolist()
    [2, 0, 1]
    """
    order = np.empty(len(wanted), np.intp)
    order[wanted.sorted[0]] = column.sorted[0]
    return order


def place_type(size: int) -> type[np.unsignedinteger[Any]]:
    """Return the type that holds places in a buffer."""
    return np.uint32 if size < 2**32 else np.uint64
