"""Where statistics are kept: whatever gives back bytes by key; for single comparisons a folder of files.

Files are written whole or not at all, under names that say what they are of, so that several processes can use one
folder; what cannot be read or written is as if it were not there.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

VARIABLE = "SIGDASK_CACHE"
OFF = ("off", "none", "0")

MOST_BYTES = 2**30
"""Of all entries; beyond it those go that were not used for longest."""

FRESH = 3600.0
"""Seconds for which the time of last use need not be told again, and after which what was being written is litter."""


class ExtractionCache(Protocol):
    """Keeps bytes by key, as long as it likes."""

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return what is kept of some keys."""
        ...

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Keep entries, in place of those that there are."""
        ...


class NoCache:
    """Keeps nothing."""

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:  # noqa: ARG002
        """Return nothing."""
        return {}

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Forget them."""


NOWHERE = NoCache()


class LayeredCache:
    """Keeps in one place what it also finds in another: of a plan in its store, what `check` has put into the cache.

    Parameters
    ----------
    first : ExtractionCache
        What is kept, and looked up first.
    second : ExtractionCache
        What is looked up then.
    """

    def __init__(self, first: ExtractionCache, second: ExtractionCache) -> None:
        self.first, self.second = first, second

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return what either has of some keys."""
        found = dict(self.first.get(keys))
        more = self.second.get([key for key in keys if key not in found])
        if more:
            self.first.put(more)
        return {**found, **more}

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Keep entries in the first."""
        self.first.put(entries)


def at_home() -> ExtractionCache:
    """Return this user's cache folder: $SIGDASK_CACHE, or sigdask in $XDG_CACHE_HOME or ~/.cache; "off" is none."""
    named = os.environ.get(VARIABLE, "")
    if named.lower() in OFF:
        return NOWHERE
    if named:
        return Folder(Path(named))
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        above = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return NOWHERE
    return Folder(above / "sigdask")


class Folder:
    """Keeps each entry in a file.

    Parameters
    ----------
    path : Path
        The folder, made when something is kept; its entries lie in a folder `extracted` in it.
    most_bytes : int
        How much is kept.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        self.path = path / "extracted"
        self.most_bytes = most_bytes

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return what is kept of some keys."""
        found = {}
        for key in keys:
            file = self._file(key)
            with suppress(OSError):
                found[key] = file.read_bytes()
                if time.time() - file.stat().st_mtime > FRESH:
                    os.utime(file)
        return found

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Keep entries; what was not used for longest makes room."""
        with suppress(OSError):
            for key, content in entries.items():
                self._write(self._file(key), content)
            self._make_room()

    def _file(self, key: str) -> Path:
        return self.path / key[:2] / key

    def _write(self, file: Path, content: bytes) -> None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, made = tempfile.mkstemp(dir=file.parent, prefix=".")
        try:
            with os.fdopen(handle, "wb") as opened:
                opened.write(content)
            Path(made).replace(file)
        except BaseException:
            with suppress(OSError):
                Path(made).unlink()
            raise

    def _make_room(self) -> None:
        """Remove what is oldest until nine tenths of the room are taken, and what others left half written."""
        entries, total = [], 0
        for file in self.path.glob("*/*"):
            with suppress(OSError):  # another process may remove it meanwhile
                said = file.stat()
                if not file.name.startswith("."):
                    entries.append((said.st_mtime, said.st_size, file))
                    total += said.st_size
                elif time.time() - said.st_mtime > FRESH:
                    file.unlink()
        if total <= self.most_bytes:
            return
        for _, size, file in sorted(entries, key=lambda entry: entry[0]):
            if total <= self.most_bytes * 9 // 10:
                return
            with suppress(OSError):
                file.unlink()
                total -= size
