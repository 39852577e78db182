"""Paths of inputs: a local path, or a URL as a path that fsspec opens. Every reader takes either as a `Path`.

A URL is fetched as a whole when it is first opened, and readers then use the local copy. Secrets in a URL are hidden in
errors, records and pages. Errors do not contain messages of the libraries, because these may contain credentials.

Files are unpacked up to a limit, and texts are read in their encoding. The machine's cores are counted here as well.
"""

from __future__ import annotations

import glob
import gzip
import io
import os
import tempfile
import tomllib
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path, PosixPath, PurePath, PurePosixPath
from typing import IO, Any, Self
from urllib.parse import unquote, urlsplit

from sigdask.errors import InputError, RefusedFileError
from sigdask.interface import spell
from sigdask.text import has_password, is_url, redact, split_query

CREDENTIALS_HINT = "set your credentials in the environment or in fsspec's configuration"


class MissingError(RefusedFileError):
    """Error for a URL that has neither a file nor a folder."""


def _request(work: Callable[[], Any], url: str) -> Any:
    """Return the result of work that contacts a server; no error of a library is chained, since it may tell secrets.

    File systems of web servers raise FileNotFoundError for whatever the server answers; the cause tells what that is.
    """
    try:
        return work()
    except Exception as error:  # noqa: BLE001  # whatever a file system raises
        cause = error.__cause__ or error.__context__ or error
        status, kinds = getattr(cause, "status", None), (type(error).__name__, type(cause).__name__)
        is_missing = isinstance(error, FileNotFoundError) and status in {None, 404, 410}
    if status in {401, 403, 407} or not {"PermissionError", "NoCredentialsError"}.isdisjoint(kinds):
        raise InputError(f"access was denied; {CREDENTIALS_HINT}", file=url)
    if is_missing and not any(word in kinds[1].lower() for word in ("connect", "timeout", "ssl")):
        raise MissingError("no such file", file=url)
    raise InputError(f"the server cannot be reached, or answers with an error ({status or kinds[1]})", file=url)


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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and self._url == other._url

    def __hash__(self) -> int:
        return hash(self._url)

    def __reduce__(self) -> tuple[Any, ...]:
        return RemotePath.from_url, (str(self),)

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

    def relative_to(self, folder: PurePath) -> Path:  # type: ignore[override]  # no longer remote
        """Return the path relative to a folder."""
        return Path(PurePosixPath(*self.parts).relative_to(PurePosixPath(*folder.parts)))

    def resolve(self, strict: bool = False) -> Self:  # noqa: ARG002
        """Return the path itself, because a URL is absolute."""
        return self

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
        return self.glob("*")

    def rglob(self, pattern: str) -> Iterator[RemotePath]:  # type: ignore[override]
        """Yield the files and folders in the folder and below that match a pattern."""
        return self.glob(f"**/{pattern}")

    def glob(self, pattern: str) -> Iterator[RemotePath]:  # type: ignore[override]
        """Yield the files and folders that match a pattern relative to this folder, sorted."""
        folder = split_query(self._fs_path)[0].rstrip("/")
        entries = _request(lambda: self._fs.glob(f"{folder}/{pattern}", detail=True), str(self))
        for name, info in sorted(entries.items()):
            if name.rstrip("/") != folder:
                path = self / name.removeprefix(f"{folder}/")
                path._info = info  # noqa: SLF001
                yield path

    def _get_info(self) -> Mapping[str, Any]:
        """Return the file system's information on this path, such as its type, requested only once."""
        if self._info is None:
            self._info = _request(lambda: self._fs.info(self._fs_path), str(self))
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
    if has_password(url) and scheme in {"s3", "gs", "abfs"}:
        raise InputError(f"{redact(url)}: {scheme}:// URLs take no password; {CREDENTIALS_HINT}")
    try:
        urlsplit(url)
        fs, fs_path = fsspec.core.url_to_fs(url)
        fs.invalidate_cache()
    except Exception as error:  # noqa: BLE001  # whatever a file system raises
        reason = str(error) if isinstance(error, ImportError) else type(error).__name__  # the former names the package
    else:
        return fs, fs_path
    raise InputError(f"fsspec cannot open {scheme}:// URLs here ({reason})", file=redact(url))


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
    if isinstance(text, Path):
        return text
    return RemotePath.from_url(text) if is_url(text) else Path(text)


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
    target = RemotePath.from_url(wild)
    folder = next((path for path in target.parents if not has_wildcards(path._url)), None)  # noqa: SLF001
    if folder is None:
        raise InputError(f"{redact(wild)}: has a placeholder in the name of a host or bucket", remedy="name it")
    rest = target._fs_path.removeprefix(f"{folder._fs_path.rstrip('/')}/")  # noqa: SLF001
    names = {path._fs_path: path for path in folder.glob(rest)}  # noqa: SLF001
    visible: list[tuple[str, Path]] = [(name, path) for name, path in names.items() if "/." in rest or "/." not in name]
    return str(target._fs._strip_protocol(pattern)), visible  # noqa: SLF001


def is_present(look: Callable[[], bool]) -> bool:
    """Return whether a file or folder exists, by calling `Path.is_file` or `is_dir`; False if access is denied."""
    with suppress(OSError):
        return look()
    return False


def read_text(path: Path, expected: str) -> str:
    """Return the text of a small file that people write.

    Parameters
    ----------
    path : Path
        The file.
    expected : str
        Description of the expected file, for errors: "a plan file (TOML)".

    Raises
    ------
    InputError
        The file is missing, or cannot be read as text.
    """
    try:
        if not path.is_file():
            raise InputError(f"no such file, or not a file; expected {expected}", file=path)
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise build_encoding_error(error.object, path) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({getattr(error, 'strerror', None) or error})", file=path) from None


def build_encoding_error(raw: bytes, path: Path) -> InputError:
    """Return the error for bytes that are not UTF-8, with the first line that shows it."""
    encoding = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin1"
    line = 1 + raw.decode(errors="replace").partition("\N{REPLACEMENT CHARACTER}")[0].count("\n")
    remedy = f"convert the file, for example with iconv -f {encoding} -t utf-8"
    return InputError("is not UTF-8", file=path, line=line, remedy=remedy)


def parse_toml(text: str, path: Path, remedy: str = "") -> dict[str, Any]:
    """Return the tables of a TOML text.

    Parameters
    ----------
    text : str
        The file's text.
    path : Path
        The file, for errors.
    remedy : str
        How to get a TOML file, for errors.

    Raises
    ------
    InputError
        It is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not TOML: {error}", file=path, remedy=remedy) from None


def split_names(text: str, mark: str = "+") -> tuple[str, ...]:
    """Return the names that an option's value lists: `A+B`, or one on each line of FILE for `@FILE`.

    Examples
    --------
    >>> split_names("A+B")
    ('A', 'B')
    """
    return tuple(text.split(mark)) if not text.startswith("@") else read_names(text[1:])


def read_names(file: str) -> tuple[str, ...]:
    """Return the lines of a file of names. Empty lines are left out.

    Raises
    ------
    InputError
        The file cannot be read, or has no names.
    """
    expected = "one name on each line. Names that begin with @ are written in such a file, too"
    names = tuple(line for line in read_text(as_path(file), expected).splitlines() if line.strip())
    if not names:
        raise InputError("has no names, expected one on each line", file=file)
    return names


MAX_RATIO = 20
"""Maximum ratio of decoded to stored bytes, from the beginning of a file to any position."""

FREE_BYTES = 100 << 20
"""Decoded bytes that are always allowed."""

MEMBER = b"\x1f\x8b\x08"
"""First bytes of each member of a gzip file."""

MEMBER_BYTES, FREE_MEMBERS = 1000, 1000
"""Stored bytes per member of a gzip file at least, and members that are always allowed."""

_own_options: ContextVar[Mapping[str, str]] = ContextVar("options of the format", default={})  # noqa: B039


@contextmanager
def set_variable(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Give a context variable another value within the body."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def use_options(own: Mapping[str, str]) -> AbstractContextManager[None]:
    """Read files within the body by these options: `size`, `sheet`, `quotes`, `header`; `format` is its name."""
    return set_variable(_own_options, {**_own_options.get(), **own})


def get_option(name: str) -> str | None:
    """Return an option of reading that the user gave, or None."""
    return _own_options.get().get(name)


def spell_option(option: str) -> str:
    """Return an option of the format in use, such as `--format wide:quotes=text`."""
    return spell("format", f"{get_option('format') or 'auto'}:{option}")


def check_unpacked_size(path: Path, n_bytes: int, stored: int) -> None:
    """Raise if the decoded content of a file is larger than the limit.

    Parameters
    ----------
    path : Path
        The file, for the error.
    n_bytes : int
        Decoded size in bytes, so far or in total.
    stored : int
        Number of stored bytes that gave this size.

    Raises
    ------
    InputError
        The message names the limit and the option that lifts it.
    """
    limit = max(FREE_BYTES, MAX_RATIO * stored)
    if n_bytes > limit and get_option("size") != "any":
        problem = f"{stored:,} bytes unpack to more than {limit:,}, which is unusual for data"
        remedy = f"if it is intended, and this machine has the memory, add {spell_option('size=any')}"
        raise InputError(problem, file=path, remedy=remedy)


class _LimitedGzip(gzip.GzipFile):
    """Unpacked content of a gzip file that raises once more than the limit was read."""

    path: Path
    readinto = io.BufferedIOBase.readinto  # by `read`, also where GzipFile has a way of its own

    def read(self, size: int | None = -1) -> bytes:
        """Read the next bytes, or all in parts, and check the limit."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        content = super().read(size)
        check_unpacked_size(self.path, self.tell(), self.fileobj.tell())  # type: ignore[union-attr]
        return content


@contextmanager
def open_unpacked(path: Path, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    """Open the unpacked content of a gzip file; reading raises once the limit on its size is exceeded.

    A file of very many members, of which each takes its time, is refused.
    """
    n_members, size = 0, 0
    while block := raw.read(1 << 20):
        n_members += block.count(MEMBER)
        size += len(block)
    raw.seek(0)
    if n_members > max(FREE_MEMBERS, size // MEMBER_BYTES):
        problem = f"{size:,} bytes hold {n_members:,} gzip members, which is unusual for data"
        raise InputError(problem, file=path, remedy="unpack the file with gunzip, and give the unpacked one")
    with _LimitedGzip(fileobj=raw) as stream, io.BufferedReader(stream, 1 << 16) as reader:
        stream.path = path
        yield reader


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
