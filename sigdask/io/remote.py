"""URLs as paths. Each is looked up and fetched at most once, and read from a local copy."""

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
from sigdask.io.redaction import has_password, is_web, redact, split_query
from sigdask.io.remote_errors import CREDENTIALS_HINT, OBJECT_STORES, MissingError, build_open_error
from sigdask.io.retry import Beat, run_with_retries

MAX_DOWNLOADS = 8
"""Files that are fetched at the same time."""

T = TypeVar("T")
_STATELESS_KEYS = frozenset(
    ["name", "Key", "size", "Size", "type", "mimetype", "url", "StorageClass", "islink", "partial"]
)
"""What file systems tell of a file that does not say which state of it this is."""


class RemotePath(PosixPath):
    """Path of a URL with the methods that readers use; opening it downloads a local copy.

    Its text is the URL as it may be written; two of one URL are equal. What it found out it keeps: the kind of
    thing, the files of a folder, the content. Nothing of it is sent to workers but that text.
    """

    _fs: Any
    _fs_path: str
    _url: str
    _file_info: Mapping[str, Any] | None
    _content: _TemporaryCopy | None
    _refused: InputError | None
    _files: list[RemotePath] | None

    @classmethod
    def from_url(cls, url: str) -> RemotePath:
        """Return the path of a URL; no server is contacted yet."""
        fs, fs_path = _open_filesystem(url)
        return _build_remote(fs, fs_path, url)

    def __str__(self) -> str:
        return redact(self._url)

    def __repr__(self) -> str:
        return f"Remote({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and self._url == other._url

    def __hash__(self) -> int:
        return hash(self._url)

    def __reduce__(self) -> tuple[Any, ...]:
        return RemotePath.from_url, (str(self),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __truediv__(self, name: str | os.PathLike[str]) -> RemotePath:
        child = str(PurePosixPath(name))
        return _build_remote(
            self._fs, f"{self._fs_path.rstrip('/')}/{child}", self._build_url(f"{self._fs_path.rstrip('/')}/{child}")
        )

    def __fspath__(self) -> str:
        """Return the path of a local copy, which is downloaded the first time."""
        info = self._get_info()
        if info["type"] == "directory":
            raise InputError(f"{self}: is a directory, expected a file")
        if self._content is None:
            self._content = self._ask_once(lambda: self._fetch_copy(info))
        return self._content.path

    @property
    def parent(self) -> RemotePath:
        """Folder that contains the file or folder."""
        folder = self._fs_path.rstrip("/").rpartition("/")[0]
        return _build_remote(self._fs, folder, self._build_url(folder)) if len(self.parts) > 2 else self

    @property
    def parents(self) -> tuple[RemotePath, ...]:
        """Folders that contain the file or folder, innermost first."""
        folders, current = [], self
        while (folder := current.parent) != current:
            folders.append(folder)
            current = folder
        return tuple(folders)

    def relative_to(self, *other: str | os.PathLike[str]) -> Path:  # type: ignore[override]  # no longer remote
        """Return the path relative to a folder."""
        return Path(PurePosixPath(*self.parts).relative_to(*map(_as_pure_path, other)))

    def resolve(self, strict: bool = False) -> Self:  # noqa: ARG002
        """Return the path itself, because a URL is absolute."""
        return self

    absolute = expanduser = resolve

    def exists(self, **_: Any) -> bool:
        """Return whether the URL is that of a file or folder."""
        try:
            self._get_info()
        except MissingError:
            return False
        return True

    def is_dir(self, **_: Any) -> bool:
        """Return whether the URL is that of a folder."""
        return self.exists() and self._get_info()["type"] == "directory"

    def is_file(self, **_: Any) -> bool:
        """Return whether the URL is that of a file."""
        return self.exists() and self._get_info()["type"] != "directory"

    def iterdir(self) -> Generator[RemotePath, None, None]:
        """Yield the files and folders in this folder."""
        self._fs.invalidate_cache()
        entries = run_with_retries(lambda _: self._fs.ls(self._fs_path, detail=True), str(self))
        yield from self._build_paths(
            entry for entry in entries if entry["name"].rstrip("/") != self._fs_path.rstrip("/")
        )

    def glob(self, pattern: str) -> Generator[RemotePath, None, None]:
        """Yield the paths in the folder itself that match a pattern; none if it cannot be listed."""
        try:
            children = list(self.iterdir())
        except InputError:
            return
        yield from (path for path in children if fnmatchcase(path.name, pattern))

    def rglob(self, pattern: str) -> Generator[RemotePath, None, None]:
        """Yield the files in the folder and below that match a pattern; no folders."""
        if self._files is None:
            self._fs.invalidate_cache()
            entries = run_with_retries(lambda _: self._fs.find(self._fs_path, detail=True), str(self))
            self._files = list(self._build_paths(entry for entry in entries.values() if entry["type"] == "file"))
        yield from (path for path in self._files if fnmatchcase(path.name, pattern))

    def _build_paths(self, infos: Iterable[Mapping[str, Any]]) -> Iterator[RemotePath]:
        for info in infos:
            yield _build_remote(self._fs, info["name"], self._build_url(info["name"]), info)

    def _get_info(self) -> Mapping[str, Any]:
        """Return what the file system knows of this path, such as type and size; it is asked only once."""
        if self._refused is not None:
            raise self._refused
        if self._file_info is None:
            self._file_info = self._ask_once(self._fetch_info)
        return self._file_info

    def _ask_once(self, ask: Callable[[], T]) -> T:
        """Return the result of a request to the server. An error is remembered, so that later requests fail at once."""
        try:
            return ask()
        except InputError as error:
            self._refused = error
            raise

    def _fetch_info(self) -> Mapping[str, Any]:
        self._fs.invalidate_cache()
        info = run_with_retries(lambda _: self._fs.info(self._fs_path), str(self))
        is_listing = is_web(self._fs_path.partition("://")[0]) and split_query(self._fs_path)[0].endswith("/")
        return {**info, "type": "directory"} if is_listing else info

    def _fetch_copy(self, info: Mapping[str, Any]) -> _TemporaryCopy:
        state = sorted((key, repr(value)) for key, value in info.items() if key not in _STATELESS_KEYS)
        key = (self._url, repr(state), info.get("size"))
        copy = _COPIES.get(key) if state else None
        if copy is None:
            copy = _TemporaryCopy()
            run_with_retries(lambda beat: self._download(copy, beat), str(self))
            if isinstance(changed := next((v for _, v in _iter_dates(info)), None), datetime):
                os.utime(copy.path, (changed.timestamp(), changed.timestamp()))
            if state:
                _COPIES[key] = copy
        return copy

    def _download(self, copy: _TemporaryCopy, beat: Beat) -> None:
        from fsspec.callbacks import Callback

        class Beating(Callback):  # type: ignore[misc]
            def relative_update(self, inc: int = 1) -> None:
                super().relative_update(inc)
                beat()

        self._fs.get_file(self._fs_path, copy.path, callback=Beating())
        size = self._get_info().get("size")
        n_bytes = os.stat(copy.path).st_size  # noqa: PTH116
        if isinstance(size, int) and n_bytes < size and not is_web(self._fs_path.partition("://")[0]):
            raise EOFError(f"{n_bytes} bytes of {size}")

    def _build_url(self, path: str) -> str:
        """Return the URL of another path of the same file system, with the same beginning as this URL."""
        match = re.match(r"(.*?://.*?)(::.*)?$", self._url, re.DOTALL)
        assert match is not None
        head, chained = match[1], match[2] or ""
        head = split_query(head)[0]
        own_path = split_query(self._fs_path)[0].rstrip("/")
        start = head.rfind(own_path) if own_path else head.find("://") + 3
        url = str(self._fs.unstrip_protocol(path)) if start < 0 else head[:start] + path
        return f"{url}{chained}"


class _TemporaryCopy:
    """A local file that is removed once nothing refers to it."""

    def __init__(self) -> None:
        number, self.path = tempfile.mkstemp(prefix="sigdask-copy-")
        os.close(number)
        weakref.finalize(self, Path(self.path).unlink, missing_ok=True)


_COPIES: weakref.WeakValueDictionary[tuple[Any, ...], _TemporaryCopy] = weakref.WeakValueDictionary()
"""Contents in use, by URL and state: a gold file of many test sets is fetched once."""


def prefetch_files(paths: Iterable[Path | None]) -> None:
    """Download remote files in parallel before they are read. Failures are raised only when a file is read."""
    waiting = list(dict.fromkeys(path for path in paths if isinstance(path, RemotePath) and path._fs.async_impl))  # noqa: SLF001
    if len(waiting) > 1:
        with ThreadPoolExecutor(MAX_DOWNLOADS) as threads:
            list(threads.map(_try_fetch, waiting))


def has_wildcards(url: str) -> bool:
    """Return whether a URL has wildcards outside its query.

    Examples
    --------
    >>> has_wildcards("s3://bucket/run?.tsv"), has_wildcards("https://host/a.tsv?x=*"), has_wildcards("https://host/*.tsv")
    (True, False, True)
    """
    return glob.has_magic(split_query(url)[0])


def match_urls(pattern: str, wild: str) -> tuple[str, list[tuple[str, Path]]]:
    """Return the names and paths that match a pattern of URLs; hidden files match only if the pattern has a "/."."""
    fs, fs_path = _open_filesystem(wild)
    folder = _build_remote(fs, fs_path, wild)
    fs.invalidate_cache()
    entries = run_with_retries(lambda _: fs.glob(fs_path, detail=True), redact(wild))
    paths = [(name, path) for name, path in zip(entries, folder._build_paths(entries.values()), strict=True)]  # noqa: SLF001
    hidden = re.compile(r"/\.") if "/." not in fs_path else None
    return str(fs._strip_protocol(pattern)), sorted(  # noqa: SLF001
        ((name, path) for name, path in paths if hidden is None or not hidden.search(name)), key=lambda pair: pair[0]
    )


def _try_fetch(path: RemotePath) -> None:
    with suppress(InputError):
        os.fspath(path)


def _open_filesystem(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    import fsspec

    scheme = url.partition("://")[0].rpartition("::")[2].lower()
    if has_password(url) and scheme in OBJECT_STORES:
        raise InputError(f"{redact(url)}: {scheme}:// URLs take no password; {CREDENTIALS_HINT}")
    try:
        fs, fs_path = fsspec.core.url_to_fs(url)
    except Exception as error:  # noqa: BLE001  # whatever a file system raises
        failure = build_open_error(error, scheme, redact(url))
    else:
        return fs, fs_path
    raise failure


def _build_remote(fs: Any, fs_path: str, url: str, info: Mapping[str, Any] | None = None) -> RemotePath:
    remote = RemotePath(_format_path(fs_path))
    remote._fs, remote._fs_path, remote._url, remote._file_info = fs, fs_path, url, info  # noqa: SLF001
    remote._content = remote._refused = remote._files = None  # noqa: SLF001
    return remote


def _format_path(fs_path: str) -> str:
    """Return the part of a URL's path that files and systems are named after, without password and query.

    Examples
    --------
    >>> _format_path("https://ann:pw@host/a%20b.tsv?token=1"), _format_path("bucket/a.tsv")
    ('/host/a b.tsv', '/bucket/a.tsv')
    """
    if "://" not in fs_path:
        return f"/{fs_path.strip('/')}"
    parts = urlsplit(fs_path)
    return f"/{parts.hostname or ''}{unquote(parts.path)}"


def _as_pure_path(path: str | os.PathLike[str]) -> PurePosixPath:
    return PurePosixPath(*path.parts) if isinstance(path, RemotePath) else PurePosixPath(path)


def _iter_dates(info: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((key, info[key]) for key in ("LastModified", "last_modified", "mtime", "created") if key in info)
