"""Paths of inputs: a local path, or a URL as a path that fsspec opens. Every reader takes either as a `Path`.

A URL is fetched as a whole when it is first opened, and readers then use the local copy. Secrets in a URL are hidden in
errors, records and pages. Errors do not contain messages of the libraries, because these may contain credentials.
"""

from __future__ import annotations

import glob
import os
import re
import tempfile
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PosixPath, PurePosixPath
from typing import Any, Self, TypeVar
from urllib.parse import unquote, urlsplit

from sigdask.errors import InputError, build_extra_error
from sigdask.text import has_password, is_url, is_web, redact, split_query

EXTRAS = {
    "s3": ("s3fs", "s3"), "s3a": ("s3fs", "s3"),
    "gs": ("gcsfs", "gcs"), "gcs": ("gcsfs", "gcs"),
    "abfs": ("adlfs", "azure"), "abfss": ("adlfs", "azure"), "az": ("adlfs", "azure"),
    "http": ("aiohttp", "http"), "https": ("aiohttp", "http"),
    "sftp": ("paramiko", "sftp"), "ssh": ("paramiko", "sftp"),
}  # fmt: skip
"""Package that each kind of URL needs, and the extra that installs it."""

OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Kinds of URLs without a user name."""

CREDENTIALS_HINT = "set your credentials in the environment or in fsspec's configuration"

PAUSES = (0.5, 2.0)
"""Seconds to wait before each further attempt."""

MAX_DOWNLOADS = 8
"""Maximum number of files downloaded at the same time."""

T = TypeVar("T")


class MissingError(InputError):
    """Error for a URL that has neither a file nor a folder."""


def _request(work: Callable[[], T], url: str) -> T:
    """Return the result of work that contacts a server; it is tried up to three times.

    Parameters
    ----------
    work : callable
        Function that contacts the server.
    url : str
        The URL, as it may be written.

    Raises
    ------
    InputError
        The message has no secrets. No other error is chained to it, as that one might have some.
    """
    for pause in (*PAUSES, None):
        try:
            return work()
        except Exception as error:  # noqa: BLE001  # whatever a file system raises
            failure, may_pass = _build_read_error(error, url)
        if pause is None or not may_pass:
            break
        time.sleep(pause)
    raise failure


def _build_read_error(error: Exception, url: str) -> tuple[InputError, bool]:
    """Return the error to raise when a URL could not be read, and whether another attempt may succeed."""
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    names = " ".join(type(cause).__name__ for cause in chain)
    if any(part in names for part in ("Connect", "Disconnect", "Payload", "BadHttpMessage", "EOFError", "gaierror")):
        return InputError("the server cannot be reached, or ended the connection; try again later", file=url), True
    codes = (getattr(cause, name, None) for cause in chain for name in ("status", "status_code", "code"))
    status = next((code for code in codes if isinstance(code, int) and code >= 400), None)
    if status in {401, 403, 407} or isinstance(error, PermissionError) or "NoCredentials" in names:
        return InputError(f"access was denied; {CREDENTIALS_HINT}", file=url), False
    if status is not None and status not in {404, 410}:
        return InputError(f"the server answers with error {status}", file=url), status >= 500 or status == 429
    if "Timeout" in names:
        return InputError("the server does not answer in time; try again later", file=url), False
    if status is not None or isinstance(error, FileNotFoundError):
        return MissingError("no such file", file=url), False
    problem = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
    return InputError(f"cannot be read ({problem})", file=url), False


def _build_open_error(error: Exception, scheme: str, url: str) -> InputError:
    """Return the error to raise when URLs of a scheme cannot be opened at all."""
    if isinstance(error, ImportError) and scheme in EXTRAS:
        package, extra = EXTRAS[scheme]
        return build_extra_error(package, extra, f"{url}: reading {scheme}:// URLs")
    if isinstance(error, ImportError):
        return InputError(f"fsspec lacks a package for {scheme}:// URLs; its documentation names it", file=url)
    if isinstance(error, ValueError) and "rotocol" in str(error):
        kinds = "s3, gs, abfs, hdfs, http and others can be read"
        return InputError(f"fsspec knows no {scheme}:// URLs; {kinds}", file=url)
    return InputError(f"{scheme}:// URLs cannot be opened here ({type(error).__name__}); {CREDENTIALS_HINT}", file=url)


class RemotePath(PosixPath):
    """Path of a URL with the methods that readers use; opening it downloads a local copy.

    Its text is the URL without secrets; two paths of one URL are equal. It caches the kind of path, the files of a
    folder, and the content. Only its text is sent to workers.
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
        child = f"{self._fs_path.rstrip('/')}/{PurePosixPath(name)}"
        return _build_remote(self._fs, child, self._build_url(child))

    def __fspath__(self) -> str:
        """Return the path of a local copy, which is downloaded on first use."""
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
        folders = (PurePosixPath(*path.parts) if isinstance(path, RemotePath) else path for path in other)
        return Path(PurePosixPath(*self.parts).relative_to(*folders))

    def resolve(self, strict: bool = False) -> Self:  # noqa: ARG002
        """Return the path itself, because a URL is absolute."""
        return self

    absolute = expanduser = resolve

    def exists(self, **_: Any) -> bool:
        """Return whether the URL is a file or folder."""
        try:
            self._get_info()
        except MissingError:
            return False
        return True

    def is_dir(self, **_: Any) -> bool:
        """Return whether the URL is a folder."""
        return self.exists() and self._get_info()["type"] == "directory"

    def is_file(self, **_: Any) -> bool:
        """Return whether the URL is a file."""
        return self.exists() and self._get_info()["type"] != "directory"

    def iterdir(self) -> Generator[RemotePath, None, None]:
        """Yield the files and folders in this folder."""
        self._fs.invalidate_cache()
        entries = _request(lambda: self._fs.ls(self._fs_path, detail=True), str(self))
        own = self._fs_path.rstrip("/")
        yield from self._build_paths(entry for entry in entries if entry["name"].rstrip("/") != own)

    def glob(self, pattern: str) -> Generator[RemotePath, None, None]:
        """Yield the paths in the folder itself that match a pattern; none if it cannot be listed."""
        with suppress(InputError):
            yield from [path for path in self.iterdir() if fnmatchcase(path.name, pattern)]

    def rglob(self, pattern: str) -> Generator[RemotePath, None, None]:
        """Yield the files in the folder and below that match a pattern; no folders."""
        if self._files is None:
            self._fs.invalidate_cache()
            entries = _request(lambda: self._fs.find(self._fs_path, detail=True), str(self))
            self._files = list(self._build_paths(entry for entry in entries.values() if entry["type"] == "file"))
        yield from (path for path in self._files if fnmatchcase(path.name, pattern))

    def _build_paths(self, infos: Iterable[Mapping[str, Any]]) -> Iterator[RemotePath]:
        for info in infos:
            yield _build_remote(self._fs, info["name"], self._build_url(info["name"]), info)

    def _get_info(self) -> Mapping[str, Any]:
        """Return the file system's information on this path, such as type and size, requested only once."""
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
        info = _request(lambda: self._fs.info(self._fs_path), str(self))
        is_listing = is_web(self._fs_path.partition("://")[0]) and split_query(self._fs_path)[0].endswith("/")
        return {**info, "type": "directory"} if is_listing else info

    def _fetch_copy(self, info: Mapping[str, Any]) -> _TemporaryCopy:
        """Return a local copy, which all paths of the file share as long as its size, date and checksum stay."""
        state = {name: repr(info[name]) for name in STATE_KEYS if name in info}
        key = (self._url, *state.items())
        copy = _COPIES.get(key) or _TemporaryCopy()
        if key not in _COPIES:
            _request(lambda: self._fs.get_file(self._fs_path, copy.path), str(self))
            if len(state) > 1:  # the size alone does not tell that a file is the same
                _COPIES[key] = copy
        return copy

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


STATE_KEYS = (
    "size",
    "LastModified",
    "last_modified",
    "mtime",
    "created",
    "ETag",
    "etag",
    "md5Hash",
    "content_settings",
)
"""What file systems tell of a file that changes with its content."""


class _TemporaryCopy:
    """A local file that is removed once nothing refers to it."""

    def __init__(self) -> None:
        number, self.path = tempfile.mkstemp(prefix="sigdask-copy-")
        os.close(number)
        weakref.finalize(self, Path(self.path).unlink, missing_ok=True)


_COPIES: weakref.WeakValueDictionary[tuple[Any, ...], _TemporaryCopy] = weakref.WeakValueDictionary()
"""Contents in use, by URL and state. A gold file of many test sets is downloaded once."""


def prefetch_files(paths: Iterable[Path | None]) -> None:
    """Download remote files in parallel before they are read. Failures are raised only when a file is read."""
    waiting = list(dict.fromkeys(path for path in paths if isinstance(path, RemotePath) and path._fs.async_impl))  # noqa: SLF001

    def fetch(path: RemotePath) -> None:
        with suppress(InputError):
            os.fspath(path)

    if len(waiting) > 1:
        with ThreadPoolExecutor(MAX_DOWNLOADS) as threads:
            list(threads.map(fetch, waiting))


def has_wildcards(url: str) -> bool:
    """Return whether a URL has wildcards outside its query.

    Examples
    --------
    >>> has_wildcards("s3://bucket/run?.tsv"), has_wildcards("https://host/a.tsv?x=*"), has_wildcards("https://host/*.tsv")
    (True, False, True)
    """
    return glob.has_magic(split_query(url)[0])


def _open_filesystem(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    import fsspec

    scheme = url.partition("://")[0].rpartition("::")[2].lower()
    if has_password(url) and scheme in OBJECT_STORES:
        raise InputError(f"{redact(url)}: {scheme}:// URLs take no password; {CREDENTIALS_HINT}")
    try:
        fs, fs_path = fsspec.core.url_to_fs(url)
    except Exception as error:  # noqa: BLE001  # whatever a file system raises
        failure = _build_open_error(error, scheme, redact(url))
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


SHEET = ".xlsx#"
"""Separates a workbook and the name of a sheet in a path."""


class SheetPath(PosixPath):
    """Path of a sheet of an Excel workbook, `BOOK.xlsx#SHEET`; opening it opens the workbook."""

    def __fspath__(self) -> str:
        return self._split()[0]

    def resolve(self, strict: bool = False) -> SheetPath:
        """Return the absolute path without links, of the same sheet."""
        book, separator, sheet = self._split()
        return SheetPath(f"{Path(book).resolve(strict)}{separator}{sheet}")

    @property
    def sheet(self) -> str:
        """The name of the sheet."""
        return self._split()[2]

    def _split(self) -> tuple[str, str, str]:
        text = str(self)
        place = text.lower().rfind(SHEET)
        return (text, "", "") if place < 0 else (text[: place + 5], "#", text[place + len(SHEET) :])


def as_path(text: str | Path) -> Path:
    """Return the path that a text names: a local one, or a URL as a path that can be read.

    Parameters
    ----------
    text : str or Path
        A URL that fsspec knows (s3, gs, abfs, hdfs, http, memory, ...), or any path.

    Raises
    ------
    InputError
        The package for this kind of URL is not installed, or the kind is unknown.

    Examples
    --------
    >>> as_path("runs/bert.tsv").name, as_path("memory://runs/bert.tsv").name, str(as_path("memory://runs/bert.tsv"))
    ('bert.tsv', 'bert.tsv', 'memory://runs/bert.tsv')
    """
    if isinstance(text, RemotePath | SheetPath) or not is_url(str(text)):
        path = text if isinstance(text, Path) else Path(text)
        names_sheet = SHEET in path.name.lower() and not is_present(path.exists)
        return SheetPath(path) if names_sheet and is_present(SheetPath(path).is_file) else path
    try:
        if str(text).startswith("file://"):
            return Path(unquote(urlsplit(str(text)).path))
        return RemotePath.from_url(str(text))
    except ValueError as error:
        raise InputError(f"{redact(str(text))}: not a URL ({error})") from None


def match_pattern(pattern: str, wild: str) -> tuple[str, list[tuple[str, Path]]]:
    """Return the names and paths of the files and folders that match a pattern of local paths or URLs.

    Parameters
    ----------
    pattern : str
        Pattern with placeholders.
    wild : str
        The same pattern with `*` for each placeholder.

    Returns
    -------
    str
        The pattern with which names are matched.
    list of (str, Path)
        Sorted names, and their paths.
    """
    if not is_url(pattern):
        return pattern, [(name, Path(name)) for name in sorted(glob.iglob(wild, recursive=True))]  # noqa: PTH207
    fs, fs_path = _open_filesystem(wild)
    folder = _build_remote(fs, fs_path, wild)
    fs.invalidate_cache()
    entries = _request(lambda: fs.glob(fs_path, detail=True), redact(wild))
    paths = dict(zip(entries, folder._build_paths(entries.values()), strict=True))  # noqa: SLF001
    visible = sorted(name for name in paths if "/." in fs_path or "/." not in name)  # hidden if requested explicitly
    return str(fs._strip_protocol(pattern)), [(name, paths[name]) for name in visible]  # noqa: SLF001


def is_present(look: Callable[[], bool]) -> bool:
    """Return whether a file or folder exists, by calling `Path.is_file` or `is_dir`; False if access is denied."""
    try:
        return look()
    except OSError:
        return False


def find_common_folder(paths: Sequence[Path]) -> Path:
    """Return the folder that contains all paths, or the path itself if there is only one."""
    if not isinstance(paths[0], RemotePath):
        return Path(os.path.commonpath(paths))
    shared = paths[0]
    while any(path != shared and shared not in path.parents for path in paths):
        shared = shared.parent
    return shared


def describe_url_error(text: str, what: str) -> str | None:
    """Return an error text if a text that must name a local file is a URL, else None.

    Examples
    --------
    >>> describe_url_error("s3://key:word@bucket/plan.toml", "a plan")
    's3://***@bucket/plan.toml: is a URL, but a plan must be a file on this machine'
    """
    return f"{redact(text)}: is a URL, but {what} must be a file on this machine" if is_url(text) else None
