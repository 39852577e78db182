"""Paths of inputs: a local path, or a URL as a path that fsspec opens. Every reader takes either as a `Path`.

A URL is looked at once and fetched whole when it is first opened; readers then have a local copy. What is written
of it anywhere, in errors, records and pages, is without what may be secret in it.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sigdask.errors import InputError
from sigdask.io.redaction import is_url, redact
from sigdask.io.remote import RemotePath, has_wildcards, match_urls, prefetch_files

__all__ = [
    "as_path",
    "describe_url_error",
    "find_common_folder",
    "has_wildcards",
    "is_present",
    "is_url",
    "match_pattern",
    "prefetch_files",
    "redact",
]


def as_path(text: str | Path) -> Path:
    """Return the path that a text names: a local one, or a URL as a path that can be read.

    Parameters
    ----------
    text : str or Path
        A URL that fsspec knows (s3, gs, abfs, hdfs, http, memory, ...), or any path.

    Raises
    ------
    InputError
        What its kind of URL needs is not installed, or no such kind is known.

    Examples
    --------
    >>> as_path("runs/bert.tsv").name, as_path("memory://runs/bert.tsv").name, str(as_path("memory://runs/bert.tsv"))
    ('bert.tsv', 'bert.tsv', 'memory://runs/bert.tsv')
    """
    if isinstance(text, RemotePath) or not is_url(str(text)):
        return text if isinstance(text, Path) else Path(text)
    try:
        if str(text).startswith("file://"):
            return Path(unquote(urlsplit(str(text)).path))
        return RemotePath.from_url(str(text))
    except ValueError as error:
        raise InputError(f"{redact(str(text))}: is no URL ({error})") from None


def match_pattern(pattern: str, wild: str) -> tuple[str, list[tuple[str, Path]]]:
    """Return the names and paths of the files and folders that match a pattern of local paths or URLs.

    Parameters
    ----------
    pattern : str
        With whatever placeholders.
    wild : str
        The same with `*` for the placeholders.

    Returns
    -------
    str
        The pattern, as names are to be matched with it.
    list of (str, Path)
        Names, sorted, and what lies there.
    """
    if is_url(pattern):
        return match_urls(pattern, wild)
    return pattern, [(name, Path(name)) for name in sorted(glob.iglob(wild, recursive=True))]  # noqa: PTH207


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
    's3://***@bucket/plan.toml: is a URL; a plan is a file of this machine'
    """
    return f"{redact(text)}: is a URL; {what} is a file of this machine" if is_url(text) else None
