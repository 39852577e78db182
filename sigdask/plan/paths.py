"""Paths and patterns of a plan, relative to its folder."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats import Source
from sigdask.plan.complaints import plain, shown

SYSTEM = "{system}"
PLACEHOLDERS = ("{date}", "{time}")
MOST_MATCHES = 100_000
"""Files that a pattern may match."""


def absolute(text: str, folder: Path) -> Path:
    """Return a path of the plan, `~` resolved, relative to the plan's folder."""
    if "\0" in text:
        raise InputError(f"found {shown(text)}, expected a path without NUL")
    try:
        return Path(os.path.normpath(folder / Path(text).expanduser()))
    except RuntimeError as error:  # no such user
        raise InputError(f"found {shown(text)}: {error}") from None


def existing(text: str, folder: Path) -> Path:
    """Return the path of a file that exists."""
    path = absolute(text, folder)
    try:
        if path.is_dir():
            raise InputError(f"found {shown(text)}, which is a folder ({plain(path)}), expected a file")
        if not path.exists():
            raise InputError(f"found {shown(text)}: no such file ({plain(path)})")
    except OSError as error:
        raise InputError(f"found {shown(text)}: {error.strerror}") from None
    if not os.access(path, os.R_OK):
        raise InputError(f"found {shown(text)}: may not be read ({plain(path)})")
    return path


def writable(text: str, folder: Path) -> Path:
    """Return the path of a file to write, in a folder that exists."""
    for placeholder in re.findall(r"\{[^{}/]*\}", text):
        if placeholder not in PLACEHOLDERS:
            raise InputError(f"found {shown(text)}: {placeholder} is not known, expected {' or '.join(PLACEHOLDERS)}")
    path = absolute(text, folder)
    try:
        if path.is_dir():
            raise InputError(f"found {shown(text)}, which is a folder ({plain(path)}), expected a file to write")
        if not path.parent.is_dir():
            raise InputError(f"found {shown(text)}: no such folder ({plain(path.parent)}); make it first")
        taken = path if path.exists() else path.parent
    except OSError as error:
        raise InputError(f"found {shown(text)}: {error.strerror}") from None
    if not os.access(taken, os.W_OK):
        raise InputError(f"found {shown(text)}: may not be written ({plain(taken)})")
    return path


def is_pattern(text: str) -> bool:
    """Say whether a path stands for several."""
    return SYSTEM in text or glob.has_magic(text)


def sources(
    systems: str | tuple[str, ...] | Mapping[str, str | tuple[str, ...]], folder: Path
) -> Iterator[Source | InputError]:
    """Yield the files of the systems, or what is wrong with them one by one."""
    named = systems if isinstance(systems, Mapping) else {None: systems}
    for name, paths in named.items():
        for path in (paths,) if isinstance(paths, str) else paths:
            if is_pattern(path) and not Path(folder, path).exists():
                yield from _matches(path, folder, name)
            else:
                yield _one(path, folder, name)


def _one(text: str, folder: Path, name: str | None) -> Source | InputError:
    try:
        return Source(existing(text, folder), name)
    except InputError as error:
        return error


def _matches(pattern: str, folder: Path, name: str | None) -> Iterator[Source | InputError]:
    """Yield what a pattern matches, sorted; {system} stands for the longest part without `/` and is the name."""
    try:
        whole = str(absolute(pattern, folder))
        wild = whole.replace(SYSTEM, "*")
        named = _regex(whole)
        found = sorted(glob.iglob(wild, recursive=True))  # noqa: PTH207  # absolute patterns
    except (InputError, OSError, ValueError, re.error) as error:
        yield InputError(f"found {shown(pattern)}: {error}")
        return
    matched = [(path, match) for path in found if os.path.isfile(path) and (match := named.fullmatch(path))]  # noqa: PTH113
    if not matched:
        yield InputError(f"found {shown(pattern)}, which matches no file; looked for {plain(wild)}")
    elif len(matched) > MOST_MATCHES:
        yield InputError(f"found {shown(pattern)}, which matches {len(matched):,} files, at most {MOST_MATCHES:,}")
    else:
        yield from (Source(Path(path), name or match.groupdict().get("system")) for path, match in matched)


def _regex(pattern: str) -> re.Pattern[str]:
    """Return the expression of a pattern; {system} written again stands for the same name.

    Examples
    --------
    >>> _regex("/runs/{system}/{system}.*").fullmatch("/runs/bert/bert.tsv")["system"]
    'bert'
    """
    written = []
    named = False
    for part in re.split(r"(\*\*/|\*\*?|\?|\[[^\]]+\]|\{system\})", pattern):
        if part == SYSTEM:
            written.append("(?P=system)" if named else "(?P<system>[^/]+)")
            named = True
        elif part.startswith("[") and part.endswith("]"):
            written.append("[^" + part[2:] if part.startswith("[!") else part)
        else:
            written.append(_WILD.get(part, re.escape(part)))
    return re.compile("".join(written), re.DOTALL)


_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
