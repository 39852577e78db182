"""Discovery of the test sets in a folder (system outputs, gold standard and documents), and a commented plan for them.

The layouts that are known stand in one table (docs/plans.md). The name of a file or folder says what it may be (gold,
references, qrels; documents; sources), and a reader checks it. What does not fit is named, with the options that help.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from sigdask import formats
from sigdask.counts import Counts
from sigdask.errors import InputError, MissingItemsError, SeveralError
from sigdask.formats import Options
from sigdask.formats.folders import FILE
from sigdask.formats.reading.files import NOT_DATA, get_stem
from sigdask.interface import spell
from sigdask.nightly.plan import paths
from sigdask.text import format_count, format_list

OTHER_FILES = re.compile(rf"(?i)^(source|reference_scores)\b|\.log$|{NOT_DATA.pattern.removeprefix('(?i)')}")
"""Names of files that `init` ignores. Logs may be systems, but only if they are given."""

SYSTEMS = re.compile(r"(?i)^(systems?|teams?|runs?|outputs?|submissions?|hyps?|predictions|preds|results|models|logs)$")
"""Names of folders of systems. In any other folder of a test set, what has none of the roles below is a system."""

ROLES = {
    "sources": re.compile(r"(?i)(^|[._-])(src|source|input_text)([._-]|$)"),
    "documents": re.compile(r"(?i)(^|[._-])(docs?|documents?|docids?|doc[_-]ids?)([._-]|$)"),
    "gold": re.compile(r"(?i)(^|[._-])(gold|golden|refs?|references?|ref[a-z0-9]|qrels?|truth|key|annotated)([._-]|$)"),
}
"""Patterns of the names of files and folders with other roles than a system's, first match first."""


@dataclass(frozen=True, slots=True)
class TestSetFiles:
    """Files and folders of one test set, by the roles that their names suggest, and how to read them."""

    name: str
    systems: tuple[Path, ...]
    gold: tuple[Path, ...] = ()
    documents: tuple[Path, ...] = ()
    format: str = "auto"
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class DiscoveredTestSet:
    """A test set that was read.

    Attributes
    ----------
    keys : dict of str to object
        Its keys in a plan, with paths relative to the plan's folder.
    counts : Counts
        Counts of the files.
    files : tuple of Path
        Files and folders that it uses.
    """

    keys: dict[str, Any]
    counts: Counts
    files: tuple[Path, ...]


def survey_files(
    targets: Sequence[Path], home: Path, *, gold: Path | None, documents: Path | None, format_: str, missing: str | None
) -> tuple[list[DiscoveredTestSet], list[str]]:
    """Return the test sets in a folder, or of given systems, at least one; and the paths of files with no role.

    Parameters
    ----------
    targets : sequence of Path
        One folder, or files or folders of systems.
    home : Path
        The folder of the plan.
    gold, documents, format_, missing
        What the user says about each test set.

    Raises
    ------
    InputError
        There is nothing to compare. The message names the files and the options that assign roles to them.
    """
    if len(targets) == 1 and targets[0].is_dir():
        found = [*_iter_layouts(targets[0])]
    else:
        found = [TestSetFiles(_choose_name(Path(os.path.commonpath([path.parent for path in targets]))), (*targets,))]
    if not any(files.systems for files in found):
        raise InputError(
            f"{format_list([str(path) for path in targets])}: no files of outputs or scores found",
            remedy="name them: sigdask init FILE FILE",
        )
    given: dict[str, Any] = {"gold": gold and (gold,), "documents": documents and (documents,), "missing": missing}
    given = {name: value for name, value in given.items() if value} | {"format": format_}
    try:
        test_sets = [test_set for files in found for test_set in _read_test_sets(replace(files, **given), home)]
    except InputError as error:
        names = [_format_path(path, home) for files in found for path in files.systems]
        raise SeveralError(
            *str(error).splitlines(),
            f"{format_list(names, 6)}: taken for systems; if that is wrong, give {spell('gold', 'FILE')} for the gold "
            f"standard, {spell('format', 'NAME')} (see `sigdask list formats`), or only the files of the systems; "
            "options that init lacks are keys of a plan that you write",
        ) from None
    used = {path.resolve() for test_set in test_sets for path in test_set.files}
    above = {folder for path in used for folder in path.parents}
    entries = [path.resolve() for target in targets if target.is_dir() for path in _list_entries(target)]
    unused = [path for path in entries if path not in above and used.isdisjoint((path, *path.parents))]
    return test_sets, [_format_path(path, home) for path in unused]


def _list_entries(folder: Path) -> list[Path]:
    """Return the files and folders in a folder that may be data."""
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "__")))
    return [path for path in entries if path.is_dir() or not OTHER_FILES.search(path.name)]


def _iter_layouts(folder: Path) -> Iterator[TestSetFiles]:
    """Yield the test sets of a folder.

    ==========================================  =======================================================
    the folder has                              test sets
    ==========================================  =======================================================
    a folder of systems, or a single folder     one; gold standard and documents, or a folder of either, lie beside
    and a gold standard                         that folder; files of documents are found by the names of systems' files
    folders that have either, each              one for each of these folders
    anything else                               one; what has no other role is a system
    ==========================================  =======================================================
    """
    by_role = _group_by_role(folder)
    folders = [path for path in by_role["system"] if path.is_dir()]
    homes = [path for path in folders if SYSTEMS.match(path.name)]
    if not homes and by_role["gold"] and by_role["system"] == folders[:1]:
        homes = folders
    if not homes and not by_role["gold"] and (parts := [path for path in folders if _is_test_set(path)]):
        for part in parts:
            yield from _iter_layouts(part)
        return
    systems = [path for home in homes for path in _list_entries(home)] or by_role["system"]
    yield TestSetFiles(_choose_name(folder), tuple(systems), tuple(by_role["gold"]), tuple(by_role["documents"]))


def _is_test_set(folder: Path) -> bool:
    """Return whether a folder has a gold standard or a folder of systems."""
    by_role = _group_by_role(folder)
    return bool(by_role["gold"]) or any(path.is_dir() and SYSTEMS.match(path.name) for path in by_role["system"])


def _group_by_role(folder: Path) -> dict[str, list[Path]]:
    """Return the files and folders in a folder by the role that their names suggest."""
    by_role: dict[str, list[Path]] = {role: [] for role in (*ROLES, "system")}
    for path in _list_entries(folder):
        by_role[next((role for role, pattern in ROLES.items() if pattern.search(path.name)), "system")].append(path)
    return by_role


def _choose_name(folder: Path) -> str:
    """Return the name of the test set in a folder, or beside it if it is a folder of systems."""
    folder = folder.resolve()
    return folder.parent.name if SYSTEMS.match(folder.name) else folder.name


def _read_test_sets(files: TestSetFiles, home: Path) -> list[DiscoveredTestSet]:
    """Return the test set of some files, or one for each file if each is a table of several systems."""
    documents = (file for path in files.documents for file in (_list_entries(path) if path.is_dir() else [path]))
    files = replace(files, documents=tuple(documents))
    if not files.gold:
        tables = [_read_table(replace(files, name=get_stem(path), systems=(path,)), home) for path in files.systems]
        if all(tables):
            return [table for table in tables if table is not None]
    if len({_get_ending(path) for path in files.gold}) > 1:
        names = format_list([path.name for path in files.gold])
        raise InputError(f"{names}: which is the gold standard? name it: {spell('gold', 'FILE')}")
    if len(files.gold) < 2 and all(path.is_dir() for path in (*files.gold, *files.systems)):
        return _read_folders(files, home)
    return [_read_test_set(files, home)]


def _read_folders(files: TestSetFiles, home: Path) -> list[DiscoveredTestSet]:
    """Return the test set of folders that are read as a whole, or one for each file name; systems may lack some."""
    names = {path.name: get_stem(path) for folder in files.gold or files.systems for path in _list_entries(folder)}
    try:
        whole = _read_test_set(files, home)
    except InputError:
        if len(names) < 2:
            raise
        whole = None
    if whole is not None and FILE not in whole.counts.groups:
        return [whole]
    is_shared = {get_stem(path) for path in files.documents}.isdisjoint(names.values())
    by_file = (
        replace(
            files,
            name=stem,
            gold=tuple(folder / name for folder in files.gold),
            systems=tuple(path for folder in files.systems if (path := folder / name).exists()),
            documents=tuple(path for path in files.documents if is_shared or get_stem(path) == stem),
        )
        for name, stem in names.items()
    )
    return [_read_test_set(own, home) for own in by_file]


def _read_table(files: TestSetFiles, home: Path) -> DiscoveredTestSet | None:
    """Return the test set in a single file, or None if the file does not hold two systems or more."""
    try:
        return None if files.systems[0].is_dir() else _read_test_set(replace(files, documents=()), home)
    except MissingItemsError:  # a table of systems, of which some lack items
        raise
    except InputError:
        return None


def _read_test_set(files: TestSetFiles, home: Path) -> DiscoveredTestSet:
    """Return the test set of files that are read together. Only texts have documents and several references."""
    if not files.systems:
        raise InputError(f"no system has a file {files.name!r}", remedy="say which: sigdask init SYSTEMS --gold FILE")
    systems = _name_systems(files.systems, home)
    sources = paths.list_sources(systems, home, files.format)
    gold, *references = files.gold or (None,)
    documents = files.documents[0] if len(files.documents) == 1 else None
    options = Options(missing=files.missing, references=tuple(filter(None, references)), documents=documents)  # type: ignore[arg-type]
    is_detected = files.format == "auto"
    format_name = formats.detect(sources, gold, options) if is_detected else files.format
    if format_name != "segments":
        options = replace(options, references=(), documents=None)
    family, extra = formats.parse_format(format_name)
    reading = replace(options, is_detected=is_detected).with_format_options(extra)
    counts = formats.read(*sources, gold=gold, format=family, options=reading)
    if counts.n_systems < 2:
        raise InputError("there is only one system, so there is nothing to compare")
    keys = {
        "name": files.name, "systems": systems, "format": format_name, "missing": options.missing,
        "gold": gold and _format_path(gold, home),
        "references": [_format_path(path, home) for path in options.references],
        "documents": options.documents and _format_path(options.documents, home),
    }  # fmt: skip
    others = filter(None, (gold, options.documents, *options.references))
    return DiscoveredTestSet(
        {key: value for key, value in keys.items() if value not in (None, [])},
        counts,
        (*(path for source in sources for path in source.parts or (source.path,)), *others),
    )


def _name_systems(systems: Sequence[Path], home: Path) -> str | tuple[str, ...]:
    """Return how a plan names these files: a pattern that finds them alone, or their paths."""
    names = tuple(_format_path(path, home) for path in systems)
    if len(names) == 1:
        return names[0]
    folders, endings = {path.parent for path in systems}, {_get_ending(path) for path in systems}
    if len({path.name for path in systems}) == 1:  # a folder of each system
        folders, endings = {path.parent for path in folders}, {f"/{systems[0].name}"}
    if len(folders) == len(endings) == 1:
        folder, ending = folders.pop(), endings.pop()
        pattern = f"{_format_path(folder, home)}/{paths.SYSTEM}{ending}".removeprefix("./")
        try:
            found = paths.list_sources(pattern, home)
        except InputError:
            return names
        is_alone = bool(ending) or folder != home or all(source.parts for source in found)  # the plan is no system
        if is_alone and {source.path for source in found} == {*systems}:
            return pattern
    return names


def _get_ending(path: Path) -> str:
    """Return the suffix after the system's name, which the files of a test set usually share."""
    suffixes = path.suffixes[-2:] if path.suffix in {".gz", ".bz2", ".xz"} else path.suffixes[-1:]
    return "" if path.is_dir() else "".join(suffixes)


def _format_path(path: Path, home: Path) -> str:
    """Return a path relative to the folder of the plan."""
    return Path(os.path.relpath(path, home)).as_posix()


MAX_PATHS = 4
"""Maximum number of files that are named on the terminal."""


def render_draft(test_sets: Sequence[DiscoveredTestSet], name: str, baseline: str | None = None) -> str:
    """Return a plan as TOML, with comments on the choices.

    Parameters
    ----------
    test_sets : sequence of DiscoveredTestSet
        The test sets.
    name : str
        Name of the plan's file without its ending.
    baseline : str, optional
        System with which the others are compared. Without one, all are compared with each other.
    """
    first_system = _format_value(test_sets[0].counts.systems[0] if baseline is None else baseline)
    choices = ['pairs = "all"', f"pairs = {{ baseline = {first_system} }}"]
    pairs = "{}\n# {}".format(*(choices if baseline is None else choices[::-1]))
    sets = "\n".join(line for test_set in test_sets for line in _iter_lines(test_set))
    template = resources.files(__package__).joinpath("draft.template").read_text(encoding="utf-8")
    return template.format(name=name, first=first_system, pairs=pairs, sets=sets)


def _iter_lines(test_set: DiscoveredTestSet) -> Iterator[str]:
    yield f"# {_describe_systems(test_set)}."
    yield "[[test_set]]"
    if not isinstance(test_set.keys["systems"], str):
        yield "# No pattern has these files alone. Add each new system to the list."
    yield from (f"{key} = {_format_value(value)}" for key, value in test_set.keys.items())
    if "documents" in test_set.keys:
        yield "# Whole documents are swapped, because segments of a document are correlated."
        yield 'unit = "document"'
    elif "task" in test_set.counts.groups and len(test_set.counts.group("task").levels) > 1:
        yield "# Each task is compared by itself; leave this out to compare all items together:"
        yield 'by = "task"'
    elif groups := [*test_set.counts.groups]:
        yield "# Swap whole groups if their items are correlated:"
        yield from (f"# unit = {_format_value(name)}" for name in groups)
    yield "# `sigdask list metrics` lists others."
    yield f"metrics = {_format_value(test_set.counts.suggested)}"
    yield ""


def _describe_systems(test_set: DiscoveredTestSet) -> str:
    counts = test_set.counts
    sizes = f"{format_count(counts.n_systems, 'system')}, {format_count(counts.of_one.n_items, 'item')}"
    return f"{sizes}, read as {test_set.keys['format']}"


def _format_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def describe_survey(
    test_sets: Sequence[DiscoveredTestSet], unused: Sequence[str], baseline: str | None = None
) -> Iterator[str]:
    """Yield lines that state the role of each file, what was guessed, and the line of the plan to change."""
    for test_set in test_sets:
        yield f"test set {test_set.keys['name']}: {_describe_systems(test_set)}"
        for key in ("systems", "gold", "references", "documents"):
            if value := test_set.keys.get(key):
                yield f"  {key:12}{value if isinstance(value, str) else format_list(value, MAX_PATHS)}"
    if baseline is None:
        yield 'compared: all systems with each other; or write pairs = { baseline = "NAME" }'
    else:
        yield f'compared: all systems with the baseline {baseline}; with each other, write pairs = "all"'
    if unused:
        yield f"not used: {format_list(unused, MAX_PATHS)}"
