"""Discovery of the test sets in a folder: system outputs, gold standard and document files.

The layouts that are known stand in one table (docs/plans.md). The name of a file or folder says what it may be (gold,
references, qrels; documents; sources), and a reader checks it. What does not fit is named, with the options that help.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sigdask import formats
from sigdask.counts import Counts
from sigdask.errors import InputError, MissingItemsError, SeveralError
from sigdask.formats import Options, Source
from sigdask.formats.reading.files import NOT_DATA, get_stem
from sigdask.formats.reading.options import DEFAULTS
from sigdask.interface import spell
from sigdask.nightly.plan import paths
from sigdask.text import format_list

MAX_ENTRIES = 20_000
"""Maximum number of files and folders in a folder that is looked at."""

OTHER_FILES = re.compile(rf"(?i)^(source|reference_scores)\b|\.log$|{NOT_DATA.pattern.removeprefix('(?i)')}")
"""Names of files that `init` ignores. Logs may be systems, but only if they are given."""

SYSTEMS = re.compile(r"(?i)^(systems?|runs?|outputs?|submissions?|hyps?|predictions|preds|results|models|logs)$")
"""Names of folders of systems. In any other folder of a test set, what has none of the roles below is a system."""

ROLES = {
    "sources": re.compile(r"(?i)(^|[._-])(src|source|input_text)([._-]|$)"),
    "documents": re.compile(r"(?i)(^|[._-])(docs?|documents?|docids?|doc[_-]ids?)([._-]|$)"),
    "gold": re.compile(r"(?i)(^|[._-])(gold|golden|refs?|references?|ref[a-z0-9]|qrels?|truth|key|annotated)([._-]|$)"),
}
"""Patterns of the names of files and folders with other roles than a system's, first match first."""

SYSTEM = "{system}"

Systems = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hints:
    """Facts about the files that the user states by options like those of `compare`."""

    gold: Path | None = None
    documents: Path | None = None
    format: str = "auto"
    options: Options = DEFAULTS


@dataclass(frozen=True, slots=True)
class TestSetFiles:
    """Files and folders of one test set, by the roles that their names suggest."""

    name: str
    systems: tuple[Path, ...]
    gold: tuple[Path, ...] = ()
    documents: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class DiscoveredTestSet:
    """A test set with the roles assigned to its files.

    Attributes
    ----------
    name : str
        Name of the test set.
    systems : str or tuple of str
        Pattern, or paths, relative to the folder of the plan.
    sources : tuple of Source
        The files of the systems.
    gold : Path or None
        Gold-standard file or folder.
    format : str
        The detected format.
    options : Options
        References, documents, and the handling of missing items.
    counts : Counts
        Counts of the files.
    """

    name: str
    systems: Systems
    sources: tuple[Source, ...]
    gold: Path | None
    format: str
    options: Options
    counts: Counts

    @property
    def n_files(self) -> int:
        """Number of files of the systems."""
        return sum(len(source.parts) or 1 for source in self.sources)

    def list_files(self) -> Iterator[Path]:
        """Yield every file that the test set uses."""
        for path in (path for source in self.sources for path in source.parts or (source.path,)):
            yield from path.rglob("*") if path.is_dir() else [path]
        yield from filter(None, (self.gold, self.options.documents, *self.options.references))


@dataclass(frozen=True, slots=True)
class FolderSurvey:
    """The test sets discovered, and what is left over.

    Attributes
    ----------
    home : Path
        The folder of the plan, where relative paths start.
    test_sets : tuple of DiscoveredTestSet
        The test sets, at least one.
    unused : tuple of Path
        Files that were not assigned to any role.
    unread : tuple of str
        Why some of these files could not be read.
    """

    home: Path
    test_sets: tuple[DiscoveredTestSet, ...]
    unused: tuple[Path, ...] = ()
    unread: tuple[str, ...] = ()

    def format_path(self, path: Path) -> str:
        """Return a path relative to the folder of the plan."""
        return _format_relative(path, self.home)


def survey_files(targets: Sequence[Path], home: Path, hints: Hints) -> FolderSurvey:
    """Discover the test sets in a folder, or of given systems.

    Parameters
    ----------
    targets : sequence of Path
        One folder, or files or folders of systems.
    home : Path
        The folder of the plan.
    hints : Hints
        Roles of files given by the user.

    Raises
    ------
    InputError
        There is nothing to compare. The message names the files and the options that assign roles to them.
    """
    if len(targets) == 1 and targets[0].is_dir():
        found = [*_iter_layouts(targets[0])]
    else:
        found = [TestSetFiles(_choose_name(targets, home), tuple(targets))]
    if not any(files.systems for files in found):
        raise InputError(
            f"{format_list([str(path) for path in targets])}: no files of outputs or scores found",
            remedy="name them: sigdask init FILE FILE",
        )
    test_sets: list[DiscoveredTestSet] = []
    failures: list[str] = []
    for files in found:
        try:
            test_sets += _read_test_sets(files, home, hints)
        except InputError as error:
            failures.append(f"{format_list([path.name for path in files.systems])}: {error}")
    if not test_sets:
        raise _build_unknown_error(found, failures, home)
    used = {os.path.realpath(str(path)) for test_set in test_sets for path in test_set.list_files()}
    used |= {os.path.realpath(str(source.path)) for test_set in test_sets for source in test_set.sources}
    given = [path for target in targets if target.is_dir() for path in _list_entries(target)]
    unused = tuple(path for path in given if path.is_file() and os.path.realpath(path) not in used)
    return FolderSurvey(home, tuple(test_sets), unused, tuple(failures))


def _list_entries(folder: Path) -> list[Path]:
    """Return the files and folders in a folder that may be data."""
    paths = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "__")))
    if len(paths) > MAX_ENTRIES:
        raise InputError(f"more than {MAX_ENTRIES:,} files", file=folder, remedy="give the folder of one test set")
    return [path for path in paths if path.is_dir() or not OTHER_FILES.search(path.name)]


def _iter_layouts(folder: Path) -> Iterator[TestSetFiles]:
    """Yield the test sets of a folder.

    ==============================  =======================================================
    the folder has                  test sets
    ==============================  =======================================================
    a folder of systems             one; gold standard and documents lie beside that folder
    folders that have either, each  one for each of these folders
    anything else                   one; what has no other role is a system
    ==============================  =======================================================
    """
    by_role = _group_by_role(folder)
    homes = [path for path in by_role["system"] if path.is_dir() and SYSTEMS.match(path.name)]
    folders = [path for path in by_role["system"] if path.is_dir() and path not in homes]
    is_set = not homes and not by_role["gold"]
    if is_set and (parts := [path for path in folders if _is_test_set(path)]):
        for part in parts:
            yield from _iter_layouts(part)
        return
    systems = [path for home in homes for path in _list_entries(home)] or by_role["system"]
    name = folder.resolve().name
    if SYSTEMS.match(name):
        name = folder.resolve().parent.name
    yield TestSetFiles(name, tuple(systems), tuple(by_role["gold"]), tuple(by_role["documents"]))


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


def _read_test_sets(files: TestSetFiles, home: Path, hints: Hints) -> list[DiscoveredTestSet]:
    """Return the test set of some files, or one for each file if each is a table of several systems."""
    gold = files.gold if hints.gold is None else (hints.gold,)
    if not gold:
        tables = [_read_table(path, home, hints) for path in files.systems]
        if all(tables):
            return [table for table in tables if table is not None]
    if len({_get_ending(path) for path in gold}) > 1:
        raise InputError(f"{format_list([path.name for path in gold])}: which is the gold standard? name it: "
                         f"{spell('gold', 'FILE')}")  # fmt: skip
    systems = _name_systems(files.systems, home)
    sources = paths.list_sources(systems, home, hints.format)
    documents = hints.documents or (files.documents[0] if len(files.documents) == 1 else None)
    options = replace(hints.options, references=gold[1:], documents=documents)
    test_set = _read_test_set(files.name, systems, sources, gold[0] if gold else None, options, hints.format)
    if test_set.counts.n_systems < 2:
        raise InputError("there is only one system, so there is nothing to compare")
    return [test_set]


def _read_table(path: Path, home: Path, hints: Hints) -> DiscoveredTestSet | None:
    """Return the test set in a single file, or None if the file does not hold two systems or more."""
    if path.is_dir():
        return None
    try:
        name, systems = get_stem(path), _format_relative(path, home)
        test_set = _read_test_set(name, systems, [Source(path)], None, hints.options, hints.format)
    except MissingItemsError:  # a table of systems, of which some lack items
        raise
    except InputError:
        return None
    return test_set if test_set.counts.n_systems > 1 else None


def _read_test_set(
    name: str, systems: Systems, sources: Sequence[Source], gold: Path | None, options: Options, format_: str
) -> DiscoveredTestSet:
    """Return the test set of files that are read together. Only texts have documents and several references."""
    format_name = formats.detect(sources, gold, options) if format_ == "auto" else format_
    if format_name != "segments":
        options = replace(options, references=(), documents=None)
    family, extra = formats.parse_format(format_name)
    reading = replace(options, is_detected=format_ == "auto").with_format_options(extra)
    counts = formats.read(*sources, gold=gold, format=family, options=reading)
    return DiscoveredTestSet(name, systems, tuple(sources), gold, format_name, options, counts)


def _name_systems(systems: Sequence[Path], home: Path) -> Systems:
    """Return how a plan names these files: a pattern that finds them alone, or their paths."""
    names = [_format_relative(path, home) for path in systems]
    if len(names) == 1:
        return names[0]
    folders, endings = {path.parent for path in systems}, {_get_ending(path) for path in systems}
    if len(folders) == len(endings) == 1:
        folder, ending = folders.pop(), endings.pop()
        pattern = f"{_format_relative(folder, home)}/{SYSTEM}{ending}".removeprefix("./")
        try:
            found = paths.list_sources(pattern, home)
        except InputError:
            return tuple(names)
        is_alone = bool(ending) or folder != home or all(source.parts for source in found)  # the plan is no system
        if is_alone and {source.path for source in found} == {*systems}:
            return pattern
    return tuple(names)


def _get_ending(path: Path) -> str:
    """Return the suffix after the system's name, which the files of a test set usually share."""
    if path.is_dir():
        return ""
    return "".join(path.suffixes[-2:] if path.suffix in {".gz", ".bz2", ".xz"} else path.suffixes[-1:])


def _format_relative(path: Path, home: Path) -> str:
    return Path(os.path.relpath(path, home)).as_posix()


def _choose_name(systems: Sequence[Path], home: Path) -> str:
    """Return the name of the test set of given systems: that of the folder in which they lie."""
    folder = Path(os.path.commonpath([path.parent for path in systems]))
    return (folder.parent if SYSTEMS.match(folder.name) else folder).resolve().name or home.resolve().name


def _build_unknown_error(found: Sequence[TestSetFiles], failures: Sequence[str], home: Path) -> InputError:
    """Return the error that lists the files, why they could not be read, and which options help."""
    names = [_format_relative(path, home) for files in found for path in files.systems]
    subject = "this file is" if len(names) == 1 else f"these {len(names):,} files are"
    return SeveralError(
        f"cannot recognise what {subject}: {format_list(names, 6)}",
        *(f"  {failure}" for failure in dict.fromkeys(failures)),
        f"give {spell('gold', 'FILE')} for the gold standard, {spell('format', 'NAME')} (see `sigdask list "
        "formats`), or only the files of the systems",
    )
