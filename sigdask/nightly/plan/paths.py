"""Paths and patterns of a plan, relative to its folder."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from sigdask import formats
from sigdask.errors import InputError
from sigdask.formats import Source
from sigdask.formats.samples.files import belong_together, log_files
from sigdask.io import common, is_there, is_url, is_wild, like, place, redacted
from sigdask.nightly.plan.errors import plain, shown

SYSTEM, TASK = "{system}", "{task}"
PLACEHOLDERS = ("{date}", "{time}")
MOST_MATCHES = 100_000
"""Files that a pattern may match."""


def absolute(text: str, folder: Path) -> Path:
    """Return a path of the plan, `~` resolved, relative to the plan's folder, or what a URL points to."""
    if "\0" in text:
        raise InputError(f"found {shown(text)}, expected a path without NUL")
    if is_url(text):
        return place(text)
    try:
        return Path(os.path.normpath(folder / Path(text).expanduser()))
    except RuntimeError as error:  # no such user
        raise InputError(f"found {shown(text)}: {error}") from None


def existing(text: str, folder: Path, *, folders: bool = False) -> Path:
    """Return the path of a file that exists, or of a folder where a format takes `folders`."""
    path = absolute(text, folder)
    try:
        if path.is_dir() and not folders:
            raise InputError(f"found {shown(text)}, which is a folder ({plain(path)}), expected a file; {_TAKERS}")
        if not path.exists():
            raise InputError(f"found {shown(text)}: no such file ({plain(path)})")
    except OSError as error:
        raise InputError(f"found {shown(text)}: {error.strerror}") from None
    if not is_url(text) and not os.access(path, os.R_OK):
        raise InputError(f"found {shown(text)}: may not be read ({plain(path)})")
    return path


def local(text: str, folder: Path) -> Path:
    """Return the path of a file of this machine that exists."""
    if is_url(text):
        raise InputError(f"found {shown(text)}, expected a file of this machine")
    return existing(text, folder)


def takes_folders(format_: str) -> bool:
    """Say whether a format reads folders, or may do so."""
    return formats.is_address(format_) or format_.partition(":")[0] in formats.OF_FOLDERS


_TAKERS = f"folders are read with format = {' or '.join(map(shown, formats.OF_FOLDERS))}"


def folder(text: str, folder: Path) -> Path:
    """Return the path of a folder to write into, which is made where it is not there."""
    path = _dated(text, folder)
    if path.exists() and not path.is_dir():
        raise InputError(f"found {shown(text)}, which is a file ({plain(path)}), expected a folder")
    if path.is_dir() and not os.access(path, os.W_OK):
        raise InputError(f"found {shown(text)}: may not be written ({plain(path)})")
    return path


def _dated(text: str, folder: Path) -> Path:
    """Return a path of this machine in which only what is known stands for a date."""
    for placeholder in re.findall(r"\{[^{}/]*\}", text):
        if placeholder not in PLACEHOLDERS:
            raise InputError(f"found {shown(text)}: {placeholder} is not known, expected {' or '.join(PLACEHOLDERS)}")
    if is_url(text):
        raise InputError(f"found {shown(text)}, expected a file of this machine: nothing is written to URLs")
    return absolute(text, folder)


def writable(text: str, folder: Path) -> Path:
    """Return the path of a file to write, in a folder that exists."""
    path = _dated(text, folder)
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


def database(text: str, folder: Path) -> Path:
    """Return the path of a database to write, which is a file where it is there."""
    path = writable(text, folder)
    if path.exists() and not path.is_file():
        raise InputError(f"found {shown(text)}, which is no file ({plain(path)}), expected an SQLite database")
    return path


def is_pattern(text: str) -> bool:
    """Say whether a path stands for several."""
    return SYSTEM in text or TASK in text or (is_wild(text) if is_url(text) else glob.has_magic(text))


def sources(
    systems: str | tuple[str, ...] | Mapping[str, str | tuple[str, ...]], folder: Path, format_: str = "auto"
) -> Iterator[Source | InputError]:
    """Yield the files and folders of the systems, or what is wrong with them one by one.

    Of logs of samples all that a pattern finds for one system, and all that a folder holds, is one source.
    """
    named = systems if isinstance(systems, Mapping) else {None: systems}
    for name, paths in named.items():
        for path in (paths,) if isinstance(paths, str) else paths:
            if is_pattern(path) and (is_url(path) or not is_there(Path(folder, path).exists)):
                yield from _matches(path, folder, name, format_)
            else:
                yield _one(path, folder, name, format_)


def _one(text: str, folder: Path, name: str | None, format_: str) -> Source | InputError:
    try:
        path = absolute(text, folder)
        is_logs = path.is_dir() and _are_logs([path], format_)
        path = existing(text, folder, folders=is_logs or takes_folders(format_))
    except InputError as error:
        return error
    except OSError as error:
        return InputError(f"found {shown(text)}: {error.strerror}")
    return Source(path, name, parts=tuple(log_files(path)) if is_logs else ())


def _matches(pattern: str, folder: Path, name: str | None, format_: str) -> Iterator[Source | InputError]:
    """Yield what a pattern matches, sorted; {system} stands for the longest part without `/` and is the name.

    Folders are meant where it matches no file, or where folders of logs lie beside other files.
    """
    try:
        whole = pattern if is_url(pattern) else str(absolute(pattern, folder))
        wild = whole.replace(SYSTEM, "*").replace(TASK, "*")
        whole, found = like(whole, wild)
        named = _regex(whole)
    except (InputError, OSError, ValueError, re.error) as error:
        yield InputError(f"found {shown(pattern)}: {error}")
        return
    matched = [(path, match) for name, path in found if (match := named.fullmatch(name))]
    chosen = _files_or_folders([path for path, _ in matched], format_)
    if not chosen:
        yield InputError(f"found {shown(pattern)}, which matches no file; looked for {plain(redacted(wild))}")
        return
    if len(chosen) > MOST_MATCHES:
        yield InputError(f"found {shown(pattern)}, which matches {len(chosen):,} files, at most {MOST_MATCHES:,}")
        return
    names = {path: name or match.groupdict().get("system") for path, match in matched if path in chosen}
    yield from _grouped(pattern, names, format_)


def _files_or_folders(found: list[Path], format_: str) -> dict[Path, None]:
    """Return the files among what a pattern found; the folders where there is no file, or only they hold logs."""
    files = [path for path in found if is_there(path.is_file)]
    folders = [path for path in found if is_there(path.is_dir)]
    if folders and not any(_are_logs([path], format_) for path in files):
        logs = [path for path in folders if _are_logs([path], format_)]
        if logs or not files:
            return dict.fromkeys(logs or (folders if takes_folders(format_) else []))
    return dict.fromkeys(files)


def _grouped(pattern: str, names: Mapping[Path, str | None], format_: str) -> Iterator[Source | InputError]:
    """Yield a source for each system of logs of samples, else for each path."""
    systems: dict[str | None, list[Path]] = {}
    for path, name in names.items():
        systems.setdefault(name, []).append(path)
    if TASK not in pattern and not any(_are_logs(paths, format_) for paths in systems.values()):
        yield from (Source(path, name) for path, name in names.items())
        return
    for name, paths in systems.items():
        if TASK in pattern and not _are_logs(paths, format_):
            yield InputError(
                f"found {shown(pattern)}: {TASK} stands for the tasks of logs of samples, and {plain(paths[0])} is no "
                "such log"
            )
        elif _are_logs(paths, format_):
            parts = tuple(file for path in paths for file in (log_files(path) if path.is_dir() else [path]))
            homes = [path if path.is_dir() else path.parent for path in paths]
            yield Source(common(homes), name, parts=parts)
        else:
            yield from (Source(path, name) for path in paths)


def _are_logs(paths: list[Path], format_: str) -> bool:
    """Say whether what was found for a system is one collection of logs of samples."""
    of_samples = format_.partition(":")[0] == "samples"
    return (of_samples or format_ == "auto") and belong_together(paths, asked=of_samples)


def _regex(pattern: str) -> re.Pattern[str]:
    """Return the expression of a pattern; {system} written again stands for the same name.

    Examples
    --------
    >>> _regex("/runs/{system}/{system}.*").fullmatch("/runs/bert/bert.tsv")["system"]
    'bert'
    """
    written = []
    named = False
    for part in re.split(r"(\*\*/|\*\*?|\?|\[[^\]]+\]|\{system\}|\{task\})", pattern):
        if part == SYSTEM:
            written.append("(?P=system)" if named else "(?P<system>[^/]+)")
            named = True
        elif part.startswith("[") and part.endswith("]"):
            written.append("[^" + part[2:] if part.startswith("[!") else part)
        else:
            written.append(_WILD.get(part, re.escape(part)))
    return re.compile("".join(written), re.DOTALL)


_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", "{task}": "[^/]+"}
