"""Resolve the paths and patterns of a plan relative to its folder.

Each function raises InputError, which becomes the error of the key.
"""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import HttpUrl, TypeAdapter

from sigdask.errors import InputError
from sigdask.formats import Source
from sigdask.formats.samples import are_one_system
from sigdask.io import as_path, has_wildcards, is_present, match_pattern
from sigdask.nightly.store.database import parse_url
from sigdask.report.files import UNIT_FORMATS, find_format
from sigdask.text import is_url, make_printable, redact

SYSTEM = "{system}"
PLACEHOLDERS = ("{date}", "{time}")


def _build_error(text: str, problem: str) -> InputError:
    """Return the error that says what is wrong with a path or pattern of the plan."""
    return InputError(make_printable(f'found "{redact(text)}"{problem}'))


def resolve_path(text: str, folder: Path) -> Path:
    """Return a text as an absolute path, with `~` expanded, or as a path that reads a URL."""
    if "\0" in text:
        raise _build_error(text, ", expected a path without NUL")
    if is_url(text):
        return as_path(text)
    try:
        path = Path(os.path.normpath(folder / Path(text).expanduser()))
        path.exists()  # which raises an error if this user may not know
    except (RuntimeError, OSError) as error:  # no such user, or no such name
        raise _build_error(text, f": {getattr(error, 'strerror', None) or error}") from None
    return path


def resolve_source(text: str, folder: Path) -> Path:
    """Return the path of an existing file or folder."""
    path = resolve_path(text, folder)
    if not path.exists():
        raise InputError(make_printable(f"no such file: {redact(text)} ({path})"))
    return path


def resolve_existing(text: str, folder: Path) -> Path:
    """Return the path of an existing file."""
    path = resolve_source(text, folder)
    if path.is_dir():
        raise _build_error(text, f", which is a folder ({path}), expected a file")
    return path


def resolve_references(texts: str | tuple[str, ...], folder: Path) -> tuple[Path, ...]:
    """Return the paths of existing files."""
    return tuple(resolve_existing(text, folder) for text in ((texts,) if isinstance(texts, str) else texts))


def resolve_output(text: str, folder: Path) -> Path:
    """Return the path of an output file in an existing folder."""
    for placeholder in re.findall(r"\{[^{}/]*\}", text):
        if placeholder not in PLACEHOLDERS:
            raise _build_error(text, f": {placeholder} is not known, expected {' or '.join(PLACEHOLDERS)}")
    if is_url(text):
        raise _build_error(text, ", expected a local file: sigdask cannot write to URLs")
    path = resolve_path(text, folder)
    if path.is_dir():
        raise _build_error(text, f", which is a folder ({path}), expected a file to write")
    if path.is_symlink():
        raise _build_error(text, f", which is a symbolic link ({path}), expected the file itself")
    if not path.parent.is_dir():
        raise _build_error(text, f": no such folder ({path.parent}); make it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise _build_error(text, f": cannot be written by this user ({path})")
    return path


def resolve_site(text: str, folder: Path) -> Path:
    """Return the path of a site's folder, which all runs share: it has no date. It need not exist yet."""
    if any(placeholder in text for placeholder in PLACEHOLDERS) or is_url(text):
        raise _build_error(text, ", expected one local folder for all runs, without a date")
    path = resolve_path(text, folder)
    if path.exists() and not path.is_dir():
        raise _build_error(text, f", which is a file ({path}), expected a folder")
    return path


Systems = str | tuple[str, ...] | Mapping[str, str | tuple[str, ...]]


def list_sources(systems: Systems, folder: Path, format_: str = "auto") -> list[Source]:
    """Return the files and folders of the systems.

    Logs of samples that a pattern finds for one system, or that a folder holds, are one source together.
    """
    by_name = systems if isinstance(systems, Mapping) else {None: systems}
    sources: list[Source] = []
    for name, texts in by_name.items():
        for text in (texts,) if isinstance(texts, str) else texts:
            is_pattern = SYSTEM in text or (has_wildcards(text) if is_url(text) else glob.has_magic(text))
            if is_pattern and (is_url(text) or not is_present(Path(folder, text).exists)):
                sources += _match_pattern(text, folder, name, format_)
            else:
                sources.append(Source(resolve_source(text, folder), name))
    return sources


def find_sources(systems: Systems, folder: Path, format_: str) -> tuple[Source, ...]:
    """Return the files and folders of a test set's systems, each of which must be there once."""
    sources = list_sources(systems, folder, format_)
    numbers = Counter(source.parts or (source.path,) for source in sources)
    if twice := [files for files, n in numbers.items() if n > 1]:
        raise _build_error(str(twice[0][0]), " twice")
    return tuple(sources)


def _match_pattern(pattern: str, folder: Path, name: str | None, format_: str) -> list[Source]:
    """Return the sources that a pattern matches, sorted; {system} matches the name of the system.

    Folders are used if it matches no file, or if there are folders of logs next to other files.
    """
    try:
        full_pattern = pattern if is_url(pattern) else str(resolve_path(pattern, folder))
        wild = full_pattern.replace(SYSTEM, "*")
        full_pattern, candidates = match_pattern(full_pattern, wild)
        regex = _build_regex(full_pattern)
    except (InputError, OSError, ValueError, re.error) as error:
        raise _build_error(pattern, f": {error}") from None
    matches = [(path, match) for name, path in candidates if (match := regex.fullmatch(name))]
    selected = _select_paths([path for path, _ in matches], format_)
    if not selected:
        raise _build_error(pattern, f", which matches no file; looked for {redact(wild)}")
    names = {path: name or match.groupdict().get("system") for path, match in matches if path in selected}
    return [*_group_sources(names, format_)]


def _select_paths(paths: list[Path], format_: str) -> dict[Path, None]:
    """Return the files among matched paths, or the folders if only they hold sample logs or there are no files."""
    files = [path for path in paths if is_present(path.is_file)]
    folders = [path for path in paths if is_present(path.is_dir)]
    if folders and not any(_are_logs([path], format_) for path in files):
        logs = [path for path in folders if _are_logs([path], format_)]
        if logs or not files:
            return dict.fromkeys(logs or folders)
    return dict.fromkeys(files)


def _group_sources(names: Mapping[Path, str | None], format_: str) -> Iterator[Source]:
    """Yield one source for each path; sample logs of the same system share a source."""
    systems: dict[str | None, list[Path]] = {}
    for path, name in names.items():
        systems.setdefault(name, []).append(path)
    if not any(_are_logs(paths, format_) for paths in systems.values()):
        yield from (Source(path, name) for path, name in names.items())
        return
    for name, paths in systems.items():
        if _are_logs(paths, format_):
            homes = [path if path.is_dir() else path.parent for path in paths]
            yield Source(_find_common_folder(homes), name, parts=tuple(paths))
        else:
            yield from (Source(path, name) for path in paths)


def _find_common_folder(paths: list[Path]) -> Path:
    """Return the folder that contains all paths, or the path itself if there is only one."""
    folders = (paths[0], *paths[0].parents)
    return next((own for own in folders if all(own in (path, *path.parents) for path in paths)), folders[-1])


def _are_logs(paths: list[Path], format_: str) -> bool:
    """Return whether paths are sample logs of one system in this format."""
    is_samples = format_.partition(":")[0] == "samples"
    return (is_samples or format_ == "auto") and are_one_system(paths, are_logs=is_samples)


def _build_regex(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern; a repeated {system} matches the same name.

    Examples
    --------
    >>> _build_regex("/runs/{system}/{system}.*").fullmatch("/runs/bert/bert.tsv")["system"]
    'bert'
    """
    pieces = []
    is_named = False
    for part in re.split(r"(\*\*/|\*\*?|\?|\[[^\]]+\]|\{system\})", pattern):
        if part == SYSTEM:
            pieces.append("(?P=system)" if is_named else "(?P<system>[^/]+)")
            is_named = True
        elif part.startswith("[") and part.endswith("]"):
            pieces.append("[^" + part[2:] if part.startswith("[!") else part)
        else:
            pieces.append(_WILD.get(part, re.escape(part)))
    return re.compile("".join(pieces), re.DOTALL)


_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}

_HTTP_URL = TypeAdapter(HttpUrl)


def resolve_cluster(cluster: str, folder: Path) -> str:
    """Return the cluster as `--cluster` takes it; a file's path is made absolute."""
    return str(resolve_existing(cluster, folder)) if cluster.endswith((".json", ".toml")) else cluster


def resolve_store(text: str, folder: Path) -> str:
    """Return the file or URL of the database."""
    if "://" not in text:
        return str(resolve_output(text, folder))
    parse_url(text)
    return text


def resolve_webhook(text: str, _folder: Path) -> str | None:
    """Return the URL; $NAME reads it from the environment, where an empty value means no web hook."""
    url = text
    if text.startswith("$"):
        name = text[1:]
        if name not in os.environ:
            raise InputError(
                f"found {text!r}, but this environment variable is not set; set it to an empty text for no web hook"
            )
        url = os.environ[name]
    if not url:
        return None
    with suppress(ValueError):
        parsed = _HTTP_URL.validate_python(url)
        if not (parsed.username or parsed.password):
            return str(parsed)
    raise InputError("expected http://HOST/… or https://HOST/…, without a user")


def resolve_unit_file(text: str, folder: Path) -> Path:
    """Return the path of a file of units, whose ending chooses the format."""
    path = resolve_output(text, folder)
    find_format(path, UNIT_FORMATS)
    return path
