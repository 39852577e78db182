"""Caches of extracted statistics, which store bytes by key. The user's cache is a folder of files.

A file is written completely or not at all, and its name is its key, so several processes can share the folder. A file
that cannot be read counts as missing.

A file has a line with its key and the array in NumPy's format, both compressed by zlib. Reading it runs no code. A file
that was cut off, changed or renamed does not have the right checksum or key, and counts as missing too.
"""

from __future__ import annotations

import os
import tempfile
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Protocol

import numpy as np

from sigdask.counts.fields import Array

CACHE_VARIABLE = "SIGDASK_CACHE"
OFF_VALUES = ("off", "none", "0")

MAX_BYTES = 2**30
"""Maximum bytes of all entries. Beyond it, those unused for the longest time are removed."""

FRESH_SECONDS = 3600.0
"""Seconds for which the time of last use is not updated, and after which unfinished files are removed."""


class ExtractionCache(Protocol):
    """A store of bytes by key, which may drop entries at any time."""

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return the stored bytes of these keys; keys that are not stored are left out."""
        ...

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Store entries, replacing existing ones."""
        ...


class NoCache:
    """A cache that stores nothing."""

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:  # noqa: ARG002
        """Return an empty mapping: no key is stored."""
        return {}

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Discard the entries."""


NO_CACHE = NoCache()


class LayeredCache:
    """Two caches: entries found only in the second (such as the user's) are copied to the first (a plan's store).

    Parameters
    ----------
    first : ExtractionCache
        Cache that is written, and searched first.
    second : ExtractionCache
        Cache that is searched second.
    """

    def __init__(self, first: ExtractionCache, second: ExtractionCache) -> None:
        self.first, self.second = first, second

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return the stored bytes of these keys from either cache, and copy to the first what only the second has."""
        entries = dict(self.first.get(keys))
        second_entries = self.second.get([key for key in keys if key not in entries])
        if second_entries:
            self.first.put(second_entries)
        return {**entries, **second_entries}

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Store entries in the first cache."""
        self.first.put(entries)


def get_user_cache() -> ExtractionCache:
    """Return the user's cache: at $SIGDASK_CACHE ("off": none), or sigdask in $XDG_CACHE_HOME or ~/.cache."""
    setting = os.environ.get(CACHE_VARIABLE, "")
    if setting.lower() in OFF_VALUES:
        return NO_CACHE
    if setting:
        return FolderCache(Path(setting))
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        parent = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return NO_CACHE
    return FolderCache(parent / "sigdask")


class FolderCache:
    """A cache with one file per entry.

    Parameters
    ----------
    path : Path
        The folder, which is created at the first write. Its entries are in the subfolder `extracted`.
    most_bytes : int
        Maximum size of the cache in bytes.
    """

    def __init__(self, path: Path, most_bytes: int = MAX_BYTES) -> None:
        self.path = path / "extracted"
        self.most_bytes = most_bytes

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return the stored bytes of these keys, and mark their files as used."""
        entries = {}
        for key in keys:
            file = self._get_path(key)
            with suppress(OSError):
                entries[key] = file.read_bytes()
                if time.time() - file.stat().st_mtime > FRESH_SECONDS:
                    os.utime(file)
        return entries

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Store entries; the least recently used ones are removed to make room."""
        with suppress(OSError):
            for key, content in entries.items():
                self._write_file(self._get_path(key), content)
            self._remove_oldest()

    def _get_path(self, key: str) -> Path:
        return self.path / key[:2] / key

    def _write_file(self, file: Path, content: bytes) -> None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(temporary).replace(file)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise

    def _remove_oldest(self) -> None:
        """If the folder is too large, remove the least recently used entries until it is 90% full.

        Half-written files that other processes left are removed in any case.
        """
        entries, total = [], 0
        for file in self.path.glob("*/*"):
            with suppress(OSError):  # another process may remove it meanwhile
                status = file.stat()
                if not file.name.startswith("."):
                    entries.append((status.st_mtime, status.st_size, file))
                    total += status.st_size
                elif time.time() - status.st_mtime > FRESH_SECONDS:
                    file.unlink()
        if total <= self.most_bytes:
            return
        for _, size, file in sorted(entries, key=lambda entry: entry[0]):
            if total <= self.most_bytes * 9 // 10:
                return
            with suppress(OSError):
                file.unlink()
                total -= size


MAX_ENTRY_BYTES = 2**28
"""Maximum bytes of an array. Arrays hold some thousand items."""


def pack_statistics(key: str, array: Array) -> bytes:
    """Return int64 or float64 statistics and their key as bytes.

    Examples
    --------
    >>> unpack_statistics("k", pack_statistics("k", np.array([[1, 300]]))).tolist()
    [[1, 300]]
    >>> (unpack_statistics("k", pack_statistics("k", np.array([[1, 300]]))[:-1]),
    ...  unpack_statistics("other", pack_statistics("k", np.array([[1]]))))
    (None, None)
    """
    content = BytesIO()
    content.write(key.encode() + b"\n")
    np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
    return zlib.compress(content.getvalue(), 1)


def unpack_statistics(key: str, packed: bytes) -> Array | None:
    """Return the statistics that bytes hold, or None if the bytes have another key or are damaged."""
    reader = zlib.decompressobj()
    try:
        stored_key, _, content = reader.decompress(packed, MAX_ENTRY_BYTES).partition(b"\n")
        if not reader.eof or stored_key != key.encode():
            return None
        return np.lib.format.read_array(BytesIO(content), allow_pickle=False)
    except (ValueError, zlib.error):
        return None
