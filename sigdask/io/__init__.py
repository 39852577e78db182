"""Paths of inputs: a local path, or a URL as a path that fsspec opens. Every reader takes either as a `Path`.

A URL is fetched as a whole when it is first opened, and readers then use the local copy. Secrets in a URL are hidden in
errors, records and pages. Errors do not contain messages of the libraries, because these may contain credentials.
"""

from __future__ import annotations

import glob
import os
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PosixPath, PurePosixPath
from typing import Any, Self, TypeVar
from urllib.parse import unquote, urlsplit

from sigdask.errors import InputError, build_extra_error
from sigdask.text import has_password, is_url, redact, split_query

EXTRAS = {
    "s3": ("s3fs", "s3"), "gs": ("gcsfs", "gcs"), "abfs": ("adlfs", "azure"), "http": ("aiohttp", "http"),
    "https": ("aiohttp", "http"), "sftp": ("paramiko", "sftp"),
}  # fmt: skip
"""Package that each kind of URL needs, and the extra that installs it."""

OBJECT_STORES = frozenset({"s3", "gs", "abfs"})
"""Kinds of URLs without a user name."""

CREDENTIALS_HINT = "set your credentials in the environment or in fsspec's configuration"

T = TypeVar("T")


class MissingError(InputError):
    """Error for a URL that has neither a file nor a folder."""


def _request(work: Callable[[], T], url: str) -> T:
    """Return the result of work that contacts a server; no error of a library is chained, since it may tell secrets."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001  # whatever a file system raises
        failure = _build_read_error(error, url)
    raise failure


def _build_read_error(error: Exception, url: str) -> InputError:
    """Return the error to raise when a URL could not be read."""
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    names = " ".join(type(cause).__name__ for cause in chain)
    status = next((code for cause in chain if isinstance(code := getattr(cause, "status", None), int)), None)
    if status in {401, 403, 407} or isinstance(error, PermissionError) or "NoCredentials" in names:
        return InputError(f"access was denied; {CREDENTIALS_HINT}", file=url)
    if status is not None and status not in {404, 410}:
        return InputError(f"the server answers with error {status}", file=url)
    if "Connect" in names or "Payload" in names or not isinstance(error, FileNotFoundError):
        return InputError(f"the server cannot be reached, or ended the connection ({names})", file=url)
    return MissingError("no such file", file=url)


class RemotePath(PosixPath):
    """Path of a URL with the methods that readers use; opening it downloads a local copy.

    Its text is the URL without secrets; two paths of one URL are equal. It caches the kind of path and the content.
    Only its text is sent to workers.
    """

    _fs: Any
    _fs_path: str
    _url: str
    _info: Mapping[str, Any] | None
    _copy: str

    @classmethod
    def from_url(cls, url: str) -> RemotePath:
        """Return the path of a URL; no server is contacted yet."""
        fs, fs_path = _open_filesystem(url)
        remote = cls(_format_path(fs_path))
        remote._fs, remote._fs_path, remote._url, remote._info, remote._copy = fs, fs_path, url, None, ""
        return remote

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
        head, *chain = self._url.split("::")
        return RemotePath.from_url("::".join([f"{split_query(head)[0].rstrip('/')}/{PurePosixPath(name)}", *chain]))

    def __fspath__(self) -> str:
        """Return the path of a local copy, which is downloaded on first use and removed with this path."""
        if self._get_info()["type"] == "directory":
            raise InputError(f"{self}: is a directory, expected a file")
        if not self._copy:
            number, copy = tempfile.mkstemp(prefix="sigdask-copy-")
            os.close(number)
            weakref.finalize(self, Path(copy).unlink, missing_ok=True)
            _request(lambda: self._fs.get_file(self._fs_path, copy), str(self))
            self._copy = copy
        return self._copy

    @property
    def parent(self) -> RemotePath:
        """Folder that contains the file or folder."""
        head, *chain = self._url.split("::")
        folder = split_query(head)[0].rstrip("/").rpartition("/")[0]
        return RemotePath.from_url("::".join([folder, *chain])) if len(self.parts) > 2 else self

    @property
    def parents(self) -> tuple[RemotePath, ...]:
        """Folders that contain the file or folder, innermost first."""
        return () if self.parent == self else (self.parent, *self.parent.parents)

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
        with suppress(MissingError):
            return bool(self._get_info())
        return False

    def is_dir(self, **_: Any) -> bool:
        """Return whether the URL is a folder."""
        return self.exists() and self._get_info()["type"] == "directory"

    def is_file(self, **_: Any) -> bool:
        """Return whether the URL is a file."""
        return self.exists() and not self.is_dir()

    def iterdir(self) -> Iterator[RemotePath]:  # type: ignore[override]
        """Yield the files and folders in this folder."""
        entries = _request(lambda: self._fs.ls(self._fs_path, detail=True), str(self))
        yield from self._build_paths(entries)

    def glob(self, pattern: str) -> Iterator[RemotePath]:  # type: ignore[override]
        """Yield the paths in the folder itself that match a pattern; none if it cannot be listed."""
        with suppress(InputError):
            yield from [path for path in self.iterdir() if fnmatchcase(path.name, pattern)]

    def rglob(self, pattern: str) -> Iterator[RemotePath]:  # type: ignore[override]
        """Yield the files in the folder and below that match a pattern; no folders."""
        entries = _request(lambda: self._fs.find(self._fs_path, detail=True), str(self))
        yield from (path for path in self._build_paths(entries.values()) if fnmatchcase(path.name, pattern))

    def _build_paths(self, infos: Sequence[Mapping[str, Any]]) -> Iterator[RemotePath]:
        folder = f"{split_query(self._fs_path)[0].rstrip('/')}/"
        for info in infos:
            if info["name"].rstrip("/") != folder.rstrip("/"):
                path = self / info["name"].removeprefix(folder)
                path._info = info  # noqa: SLF001
                yield path

    def _get_info(self) -> Mapping[str, Any]:
        """Return the file system's information on this path, such as its type, requested only once."""
        if self._info is None:
            info = _request(lambda: self._fs.info(self._fs_path), str(self))
            is_listing = split_query(self._url)[0].endswith("/")  # of a web server
            self._info = {**info, "type": "directory"} if is_listing else info
        return self._info


def has_wildcards(url: str) -> bool:
    """Return whether a URL has wildcards outside its query.

    Examples
    --------
    >>> has_wildcards("s3://bucket/run?.tsv"), has_wildcards("https://host/a.tsv?x=*"), has_wildcards("https://host/*.tsv")
    (True, False, True)
    """
    return glob.has_magic(split_query(url)[0])


def _open_filesystem(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, without listings of earlier requests, and the path in it."""
    import fsspec

    scheme = url.partition("://")[0].rpartition("::")[2].lower()
    if has_password(url) and scheme in OBJECT_STORES:
        raise InputError(f"{redact(url)}: {scheme}:// URLs take no password; {CREDENTIALS_HINT}")
    try:
        fs, fs_path = fsspec.core.url_to_fs(url)
        fs.invalidate_cache()
    except Exception as error:  # noqa: BLE001  # whatever a file system raises
        failure = InputError(f"fsspec cannot open {scheme}:// URLs here ({type(error).__name__})", file=redact(url))
        if isinstance(error, ImportError) and scheme in EXTRAS:
            failure = build_extra_error(*EXTRAS[scheme], f"{redact(url)}: reading {scheme}:// URLs")
    else:
        return fs, fs_path
    raise failure


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
    if isinstance(text, RemotePath) or not is_url(str(text)):
        return Path(text) if isinstance(text, str) else text
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
    folder = RemotePath.from_url(wild)
    while has_wildcards(folder._url):  # noqa: SLF001
        if folder.parent == folder:
            raise InputError(f"{redact(wild)}: has a placeholder in the name of a host or bucket", remedy="name it")
        folder = folder.parent
    fs, fs_path = _open_filesystem(wild)
    entries = _request(lambda: fs.glob(fs_path, detail=True), redact(wild))
    visible = [info for name, info in sorted(entries.items()) if "/." in fs_path or "/." not in name]
    paths = folder._build_paths(visible)  # noqa: SLF001
    return str(fs._strip_protocol(pattern)), [(p._fs_path, p) for p in paths]  # noqa: SLF001


def is_present(look: Callable[[], bool]) -> bool:
    """Return whether a file or folder exists, by calling `Path.is_file` or `is_dir`; False if access is denied."""
    try:
        return look()
    except OSError:
        return False


def find_common_folder(paths: Sequence[Path]) -> Path:
    """Return the folder that contains all paths, or the path itself if there is only one."""
    folders = (paths[0], *paths[0].parents)
    return next((own for own in folders if all(own in (path, *path.parents) for path in paths)), folders[-1])


def describe_url_error(text: str, what: str) -> str | None:
    """Return an error text if a text that must name a local file is a URL, else None.

    Examples
    --------
    >>> describe_url_error("s3://key:word@bucket/plan.toml", "a plan")
    's3://***@bucket/plan.toml: is a URL, but a plan must be a file on this machine'
    """
    return f"{redact(text)}: is a URL, but {what} must be a file on this machine" if is_url(text) else None
