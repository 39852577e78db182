"""A URL as a path: looked at once, fetched once, and a local file to whoever opens it."""

from __future__ import annotations

import glob
import os
import re
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path, PosixPath, PurePosixPath
from typing import Any, Self, TypeVar
from urllib.parse import unquote, urlsplit

from sigdask.errors import InputError
from sigdask.io.redaction import has_password, is_web, redacted, without_query
from sigdask.io.remote_errors import OF_CREDENTIALS, STORES, MissingError, unopened
from sigdask.io.retry import Beat, patiently

AT_ONCE = 8
"""Files that are fetched at the same time."""

T = TypeVar("T")
_NO_IDENTITY = frozenset(
    ["name", "Key", "size", "Size", "type", "mimetype", "url", "StorageClass", "islink", "partial"]
)
"""What file systems tell of a file that does not say which state of it this is."""


class Remote(PosixPath):
    """What lies at a URL: of a path's methods those that readers use, and a local copy wherever a file is opened.

    Its text is the URL as it may be written; two of one URL are equal. What it found out it keeps: the kind of
    thing, the files of a folder, the content. Nothing of it is sent to workers but that text.
    """

    _fs: Any
    _at: str
    _url: str
    _known: Mapping[str, Any] | None
    _content: _TemporaryCopy | None
    _refused: InputError | None
    _files: list[Remote] | None

    @classmethod
    def at(cls, url: str) -> Remote:
        """Return what a URL points to; no server is asked yet."""
        fs, at = _opened(url)
        return _remote(fs, at, url)

    def __str__(self) -> str:
        return redacted(self._url)

    def __repr__(self) -> str:
        return f"Remote({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remote) and self._url == other._url

    def __hash__(self) -> int:
        return hash(self._url)

    def __reduce__(self) -> tuple[Any, ...]:
        return Remote.at, (str(self),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __truediv__(self, name: str | os.PathLike[str]) -> Remote:
        below = str(PurePosixPath(name))
        return _remote(self._fs, f"{self._at.rstrip('/')}/{below}", self._url_of(f"{self._at.rstrip('/')}/{below}"))

    def __fspath__(self) -> str:
        """Return the path of a local copy, fetched the first time."""
        info = self._look()
        if info["type"] == "directory":
            raise InputError(f"{self}: is a directory, expected a file")
        if self._content is None:
            self._content = self._once(lambda: self._fetched(info))
        return self._content.path

    @property
    def parent(self) -> Remote:
        """The folder around it."""
        around = self._at.rstrip("/").rpartition("/")[0]
        return _remote(self._fs, around, self._url_of(around)) if len(self.parts) > 2 else self

    @property
    def parents(self) -> tuple[Remote, ...]:
        """The folders around it, from within."""
        found, last = [], self
        while (around := last.parent) != last:
            found.append(around)
            last = around
        return tuple(found)

    def relative_to(self, *other: str | os.PathLike[str]) -> Path:  # type: ignore[override]  # no longer remote
        """Return the way from a folder to it."""
        return Path(PurePosixPath(*self.parts).relative_to(*map(_parts, other)))

    def resolve(self, strict: bool = False) -> Self:  # noqa: ARG002
        """Return itself: a URL is absolute."""
        return self

    absolute = expanduser = resolve

    def exists(self, **_: Any) -> bool:
        """Say whether there is a file or folder."""
        try:
            self._look()
        except MissingError:
            return False
        return True

    def is_dir(self, **_: Any) -> bool:
        """Say whether it is a folder."""
        return self.exists() and self._look()["type"] == "directory"

    def is_file(self, **_: Any) -> bool:
        """Say whether it is a file."""
        return self.exists() and self._look()["type"] != "directory"

    def iterdir(self) -> Generator[Remote, None, None]:
        """Yield the files and folders in it."""
        self._fs.invalidate_cache()
        listed = patiently(lambda _: self._fs.ls(self._at, detail=True), str(self))
        yield from self._told(one for one in listed if one["name"].rstrip("/") != self._at.rstrip("/"))

    def glob(self, pattern: str) -> Generator[Remote, None, None]:
        """Yield what is called like a pattern, in the folder itself; nothing where it may not be listed."""
        try:
            inside = list(self.iterdir())
        except InputError:
            return
        yield from (path for path in inside if fnmatchcase(path.name, pattern))

    def rglob(self, pattern: str) -> Generator[Remote, None, None]:
        """Yield the files called like a pattern, in the folder and below; no folders."""
        if self._files is None:
            self._fs.invalidate_cache()
            found = patiently(lambda _: self._fs.find(self._at, detail=True), str(self))
            self._files = list(self._told(one for one in found.values() if one["type"] == "file"))
        yield from (path for path in self._files if fnmatchcase(path.name, pattern))

    def _told(self, infos: Iterable[Mapping[str, Any]]) -> Iterator[Remote]:
        for info in infos:
            yield _remote(self._fs, info["name"], self._url_of(info["name"]), info)

    def _look(self) -> Mapping[str, Any]:
        """Return what the file system tells of it."""
        if self._refused is not None:
            raise self._refused
        if self._known is None:
            self._known = self._once(self._asked)
        return self._known

    def _once(self, ask: Callable[[], T]) -> T:
        """Ask for something; a refusal is final, so that nobody waits for a dead server again."""
        try:
            return ask()
        except InputError as error:
            self._refused = error
            raise

    def _asked(self) -> Mapping[str, Any]:
        self._fs.invalidate_cache()
        info = patiently(lambda _: self._fs.info(self._at), str(self))
        is_listing = is_web(self._at.partition("://")[0]) and without_query(self._at)[0].endswith("/")
        return {**info, "type": "directory"} if is_listing else info

    def _fetched(self, info: Mapping[str, Any]) -> _TemporaryCopy:
        state = sorted((key, repr(value)) for key, value in info.items() if key not in _NO_IDENTITY)
        key = (self._url, repr(state), info.get("size"))
        copy = _COPIES.get(key) if state else None
        if copy is None:
            copy = _TemporaryCopy()
            patiently(lambda beat: self._fetch(copy, beat), str(self))
            if isinstance(changed := next((v for _, v in _dates(info)), None), datetime):
                os.utime(copy.path, (changed.timestamp(), changed.timestamp()))
            if state:
                _COPIES[key] = copy
        return copy

    def _fetch(self, copy: _TemporaryCopy, beat: Beat) -> None:
        from fsspec.callbacks import Callback

        class Beating(Callback):  # type: ignore[misc]
            def relative_update(self, inc: int = 1) -> None:
                super().relative_update(inc)
                beat()

        self._fs.get_file(self._at, copy.path, callback=Beating())
        size = self._look().get("size")
        n_bytes = os.stat(copy.path).st_size  # noqa: PTH116
        if isinstance(size, int) and n_bytes < size and not is_web(self._at.partition("://")[0]):
            raise EOFError(f"{n_bytes} bytes of {size}")

    def _url_of(self, at: str) -> str:
        """Write another path of the same file system as this URL is written."""
        parts = re.match(r"(.*?://.*?)(::.*)?$", self._url, re.DOTALL)
        assert parts is not None
        head, chained = parts[1], parts[2] or ""
        head = without_query(head)[0]
        own = without_query(self._at)[0].rstrip("/")
        start = head.rfind(own) if own else head.find("://") + 3
        written = str(self._fs.unstrip_protocol(at)) if start < 0 else head[:start] + at
        return f"{written}{chained}"


class _TemporaryCopy:
    """A local file that goes when nobody has it any more."""

    def __init__(self) -> None:
        number, self.path = tempfile.mkstemp(prefix="sigdask-copy-")
        os.close(number)
        weakref.finalize(self, Path(self.path).unlink, missing_ok=True)


_COPIES: weakref.WeakValueDictionary[tuple[Any, ...], _TemporaryCopy] = weakref.WeakValueDictionary()
"""Contents in use, by URL and state: a gold file of many test sets is fetched once."""


def fetch(paths: Iterable[Path | None]) -> None:
    """Fetch files ahead, several at a time; what cannot be had is told where it is read."""
    waiting = list(dict.fromkeys(path for path in paths if isinstance(path, Remote) and path._fs.async_impl))  # noqa: SLF001
    if len(waiting) > 1:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(_have, waiting))


def is_wild(url: str) -> bool:
    """Say whether a URL stands for several, by what is no part of its query.

    Examples
    --------
    >>> is_wild("s3://bucket/run?.tsv"), is_wild("https://host/a.tsv?x=*"), is_wild("https://host/*.tsv")
    (True, False, True)
    """
    return glob.has_magic(without_query(url)[0])


def matches(pattern: str, wild: str) -> tuple[str, list[tuple[str, Path]]]:
    """Return what lies at URLs of a pattern; hidden files and folders only where it names them."""
    fs, at = _opened(wild)
    folder = _remote(fs, at, wild)
    fs.invalidate_cache()
    found = patiently(lambda _: fs.glob(at, detail=True), redacted(wild))
    named = [(name, path) for name, path in zip(found, folder._told(found.values()), strict=True)]  # noqa: SLF001
    hidden = re.compile(r"/\.") if "/." not in at else None
    return str(fs._strip_protocol(pattern)), sorted(  # noqa: SLF001
        ((name, path) for name, path in named if hidden is None or not hidden.search(name)), key=lambda pair: pair[0]
    )


def _have(path: Remote) -> None:
    with suppress(InputError):
        os.fspath(path)


def _opened(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    import fsspec

    scheme = url.partition("://")[0].rpartition("::")[2].lower()
    if has_password(url) and scheme in STORES:
        raise InputError(f"{redacted(url)}: {scheme}:// URLs take no password; {OF_CREDENTIALS}")
    try:
        fs, at = fsspec.core.url_to_fs(url)
    except Exception as error:  # noqa: BLE001  # whatever a file system raises
        told = unopened(error, scheme, redacted(url))
    else:
        return fs, at
    raise told


def _remote(fs: Any, at: str, url: str, info: Mapping[str, Any] | None = None) -> Remote:
    made = Remote(_pure(at))
    made._fs, made._at, made._url, made._known = fs, at, url, info  # noqa: SLF001
    made._content = made._refused = made._files = None  # noqa: SLF001
    return made


def _pure(at: str) -> str:
    """Return the parts of a path by which files and systems are named.

    Examples
    --------
    >>> _pure("https://ann:pw@host/a%20b.tsv?token=1"), _pure("bucket/a.tsv")
    ('/host/a b.tsv', '/bucket/a.tsv')
    """
    if "://" not in at:
        return f"/{at.strip('/')}"
    parts = urlsplit(at)
    return f"/{parts.hostname or ''}{unquote(parts.path)}"


def _parts(path: str | os.PathLike[str]) -> PurePosixPath:
    return PurePosixPath(*path.parts) if isinstance(path, Remote) else PurePosixPath(path)


def _dates(info: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((key, info[key]) for key in ("LastModified", "last_modified", "mtime", "created") if key in info)
