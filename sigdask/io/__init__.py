"""Where inputs lie: a local path, or a URL that fsspec opens; every reader takes either as a `Path`.

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
from sigdask.io.redaction import is_url, redacted
from sigdask.io.remote import Remote, fetch, is_wild, matches

__all__ = ["common", "fetch", "is_there", "is_url", "is_wild", "like", "local_only", "place", "redacted"]


def place(text: str | Path) -> Path:
    """Return where a text points to: a path of this machine, or a URL as a path that can be read.

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
    >>> place("runs/bert.tsv").name, place("memory://runs/bert.tsv").name, str(place("memory://runs/bert.tsv"))
    ('bert.tsv', 'bert.tsv', 'memory://runs/bert.tsv')
    """
    if isinstance(text, Remote) or not is_url(str(text)):
        return text if isinstance(text, Path) else Path(text)
    try:
        if str(text).startswith("file://"):
            return Path(unquote(urlsplit(str(text)).path))
        return Remote.at(str(text))
    except ValueError as error:
        raise InputError(f"{redacted(str(text))}: is no URL ({error})") from None


def like(pattern: str, wild: str) -> tuple[str, list[tuple[str, Path]]]:
    """Return what is called like a pattern, by name: absolute paths, or what lies at URLs.

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
        return matches(pattern, wild)
    return pattern, [(name, Path(name)) for name in sorted(glob.iglob(wild, recursive=True))]  # noqa: PTH207


def is_there(look: Callable[[], bool]) -> bool:
    """Say what `Path.is_file` or `Path.is_dir` says; no where it may not be looked at."""
    try:
        return look()
    except OSError:
        return False


def common(paths: Sequence[Path]) -> Path:
    """Return the folder that all paths lie in, themselves where there is one."""
    if not isinstance(paths[0], Remote):
        return Path(os.path.commonpath(paths))
    shared = paths[0]
    while any(path != shared and shared not in path.parents for path in paths):
        shared = shared.parent
    return shared


def local_only(text: str, what: str) -> str | None:
    """Return what is wrong with a path that must be of this machine, None where nothing is.

    Examples
    --------
    >>> local_only("s3://key:word@bucket/plan.toml", "a plan")
    's3://***@bucket/plan.toml: is a URL; a plan is a file of this machine'
    """
    return f"{redacted(text)}: is a URL; {what} is a file of this machine" if is_url(text) else None
