"""Discovery of the test sets in a folder: system outputs, gold standard and document files.

A file's name says what it may be (gold, references, qrels; documents; sources), and a reader checks it. If a folder can
be read in two ways, an error names both.
"""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sigdask import formats
from sigdask.counts import Counts
from sigdask.errors import InputError, MissingItemsError, SeveralError
from sigdask.formats import Options, Source
from sigdask.formats.reading.files import NOT_DATA, get_stem
from sigdask.formats.reading.options import DEFAULTS
from sigdask.formats.samples.files import are_one_system
from sigdask.interface import spell
from sigdask.nightly.plan import paths
from sigdask.text import format_list

_find_common_prefix = os.path.commonprefix  # of characters, as intended

MAX_FILES, DEEPEST = 20_000, 4
"""Maximum number of files that are inspected, and the depth of their folders."""

OTHER_FILES = re.compile(rf"(?i)^(source|reference_scores)\b|\.log$|{NOT_DATA.pattern.removeprefix('(?i)')}")
"""Names of files that `init` ignores. Logs may be systems, but only if their folder is given."""
GOLD = re.compile(r"(?i)(^|[._-])(gold|golden|refs?|references?|ref[a-z0-9]|qrels?|truth|key|annotated)([._-]|$)")
DOCUMENTS = re.compile(r"(?i)(^|[._-])(docs?|documents?|docids?|doc[_-]ids?)([._-]|$)")
SOURCES = re.compile(r"(?i)(^|[._-])(src|source|input_text)([._-]|$)")
FOLDERS_OF_SYSTEMS = re.compile(r"(?i)^(systems?|runs?|outputs?|submissions?|hyps?|predictions|preds|results|models)$")
SYSTEM = "{system}"

Systems = str | tuple[str, ...] | dict[str, str]


@dataclass(frozen=True, slots=True)
class Hints:
    """Facts about the files that the user states by options like those of `compare`."""

    gold: Path | None = None
    documents: Path | None = None
    format: str = "auto"
    options: Options = DEFAULTS


@dataclass(frozen=True, slots=True)
class DiscoveredTestSet:
    """A test set with the roles assigned to its files.

    Attributes
    ----------
    name : str
        Name of the test set.
    systems : str, tuple of str, or dict of str to str
        Pattern, paths, or names and paths, relative to the folder of the plan.
    sources : tuple of Source
        The files of the systems.
    gold : Path or None
        Gold-standard file.
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
    """The test sets discovered, and the files left over.

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


@dataclass(frozen=True, slots=True)
class _FilesByRole:
    """Files grouped by the role that their names suggest."""

    systems: list[Path] = field(default_factory=list)
    gold: list[Path] = field(default_factory=list)
    documents: list[Path] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)


def survey_files(targets: Sequence[Path], home: Path, hints: Hints) -> FolderSurvey:
    """Discover the test sets in a folder or in given files.

    Parameters
    ----------
    targets : sequence of Path
        One folder, or files of systems.
    home : Path
        The folder of the plan.
    hints : Hints
        Roles of files given by the user.

    Raises
    ------
    InputError
        There is nothing to compare. The message names the files and the options that assign roles to them.
    """
    files = [path for item in targets for path in (_list_files(item) if item.is_dir() else [item])]
    if not files:
        raise InputError(
            f"{format_list([str(path) for path in targets])}: no files of outputs or scores found",
            remedy="name them: sigdask init FILE FILE",
        )
    roles = _group_by_role(files, hints, is_explicit=not any(path.is_dir() for path in targets))
    test_sets, failed = _read_groups([*_iter_groups(roles, home)], roles, home, hints)
    if not test_sets and len(folders := _group_by_folder(roles.systems)) > 1:  # one folder for each test set
        test_sets, failed_folders = _read_groups(folders, roles, home, hints)
        failed = [*failed, *failed_folders]
    if not test_sets:
        raise _build_unknown_error(files, failed, home)
    used = {path.resolve() for test_set in test_sets for path in test_set.list_files()}
    unread = [
        _describe_failure(group, error) for group, error in failed if not used & {path.resolve() for path in group}
    ]
    unused = [path for path in files if path.resolve() not in used]
    return FolderSurvey(home, tuple(_number_names(test_sets)), tuple(unused), tuple(unread))


def _read_groups(
    pending: list[list[Path]], roles: _FilesByRole, home: Path, hints: Hints
) -> tuple[list[DiscoveredTestSet], list[tuple[list[Path], InputError]]]:
    """Return the test sets of groups of files, and the groups that cannot be read, with their errors."""
    test_sets: list[DiscoveredTestSet] = []
    failed: list[tuple[list[Path], InputError]] = []
    while pending:
        group = pending.pop(0)
        try:
            test_sets += _iter_test_sets(group, roles, home, hints)
        except InputError as error:
            failed.append((group, error))
            pending += _split_by_ending(group) or _split_by_organisation(group)
    return test_sets, failed


def _group_by_folder(files: Sequence[Path]) -> list[list[Path]]:
    """Return the files of each folder that has several."""
    groups: dict[Path, list[Path]] = {}
    for path in files:
        groups.setdefault(path.parent, []).append(path)
    return [group for group in groups.values() if len(group) > 1]


def _list_files(folder: Path) -> list[Path]:
    """Return the files in a folder and its subfolders, also linked ones, that may be data."""
    files: list[Path] = []
    real_parents: set[str] = set()
    for parent, folders, names in os.walk(folder, followlinks=True):
        if (real_parent := os.path.realpath(parent)) in real_parents:
            folders.clear()
            continue
        real_parents.add(real_parent)
        depth = len(Path(parent).relative_to(folder).parts)
        folders[:] = sorted(n for n in folders if not n.startswith((".", "__"))) if depth < DEEPEST else []
        files += [
            Path(parent, name) for name in sorted(names) if not name.startswith(".") and not OTHER_FILES.search(name)
        ]
        if len(files) > MAX_FILES:
            raise InputError(f"more than {MAX_FILES:,} files", file=folder, remedy="give the folder of one test set")
    return files


def _group_by_role(files: Sequence[Path], hints: Hints, *, is_explicit: bool) -> _FilesByRole:
    """Group files by the role that their names suggest; files named explicitly are all systems."""
    roles = _FilesByRole()
    assigned = {path.resolve() for path in (hints.gold, hints.documents) if path is not None}
    for path in files:
        if path.resolve() in assigned:
            continue
        if is_explicit or (FOLDERS_OF_SYSTEMS.match(path.parent.name) and not GOLD.search(path.stem)):
            roles.systems.append(path)
        elif SOURCES.search(path.name):
            roles.others.append(path)
        elif DOCUMENTS.search(path.name):
            roles.documents.append(path)
        elif GOLD.search(path.name) or GOLD.search(path.parent.name):
            roles.gold.append(path)
        else:
            roles.systems.append(path)
    if hints.gold is not None:
        roles.gold[:] = [hints.gold]
    if hints.documents is not None:
        roles.documents[:] = [hints.documents]
    return roles


def _iter_groups(roles: _FilesByRole, home: Path) -> Iterator[list[Path]]:
    """Yield groups of files that may form one test set: logs, or files that share a folder or a file name."""
    files = roles.systems
    if logs := _find_logs(files, home):
        yield logs
        return
    groups: dict[tuple[object, ...], list[Path]] = {}
    by_name: dict[str, list[Path]] = {}
    for path in files:
        by_name.setdefault(path.name, []).append(path)
    in_organisations = {name for name, same in by_name.items() if len(same) > 1 and _are_models(same, roles.gold)}
    n_files = Counter(map(_get_set_folder, files))  # not one, as in a system's folder with a copy of the gold standard
    set_folders = {gold.parent for gold in roles.gold if n_files[gold.parent] > 1}
    for path in files:
        group = FOLDERS_OF_SYSTEMS.match(path.parent.name) and _find_set_prefix(path, files)
        is_alone = len(by_name[path.name]) == 1 or _get_set_folder(path) in set_folders
        key = (path.parent, group) if is_alone else (path.parent.parent, path.name)
        groups.setdefault((path.name,) if path.name in in_organisations else key, []).append(path)
    lone = [group[0] for group in groups.values() if len(group) == 1]
    if len(groups) == len(lone) > 1 and not _split_by_ending(lone) and len({path.parent.parent for path in lone}) == 1:
        yield lone  # a folder for each organisation
        return
    yield from sorted(
        groups.values(), key=lambda group: (not FOLDERS_OF_SYSTEMS.match(group[0].parent.name), -len(group))
    )


def _get_set_folder(path: Path) -> Path:
    """Return the folder of the test set that a system's file belongs to, if each test set has its own."""
    return path.parent.parent if FOLDERS_OF_SYSTEMS.match(path.parent.name) else path.parent


def _are_models(files: Sequence[Path], golds: Sequence[Path] = ()) -> bool:
    """Return whether files lie in folders of models in folders of organisations, all with different names."""
    organisations = {path.parent.parent for path in files}
    models = {path.parent.name for path in files if re.search("[A-Za-z]{2}", path.parent.name)}
    has_gold = any(gold.is_relative_to(folder) for gold in golds for folder in organisations)
    return len(organisations) > 1 and len(models) == len(files) and not has_gold


def _split_by_organisation(group: Sequence[Path]) -> list[list[Path]]:
    """Return the files of each folder of organisations, or nothing if there is only one."""
    folders = dict.fromkeys(path.parent.parent for path in group)
    return [[p for p in group if p.parent.parent == folder] for folder in folders] if len(folders) > 1 else []


def _split_by_ending(group: Sequence[Path]) -> list[list[Path]]:
    """Return the files grouped by their endings, or nothing if all have the same ending."""
    groups: dict[str, list[Path]] = {}
    for path in group:
        groups.setdefault(_get_ending(path), []).append(path)
    return [*groups.values()] if len(groups) > 1 else []


def _find_set_prefix(path: Path, files: Sequence[Path]) -> str:
    """Return the test-set prefix of a name, as in `ces.word.A` and `mon.word.A`, or "" without one."""
    prefix = path.name.partition(".")[0]
    starts = {sibling.name.partition(".")[0] for sibling in files if sibling.parent == path.parent}
    n_files = sum(sibling.parent == path.parent for sibling in files)
    return prefix if 1 < len(starts) <= n_files // 2 else ""


def _get_ending(path: Path) -> str:
    """Return the suffix after the system's name, which the files of a test set usually share."""
    return "".join(path.suffixes[-2:] if path.suffix in {".gz", ".bz2", ".xz"} else path.suffixes[-1:])


def _find_logs(files: Sequence[Path], home: Path) -> list[Path]:
    """Return the folders of sample logs, one for each system, or nothing without such logs."""
    logs = [path for path in files if re.match(r"samples_.*\.jsonl(\.gz)?$", path.name) or path.suffix == ".eval"]
    if not logs or not are_one_system(logs, are_logs=False):
        return []
    tops = [path.relative_to(_find_common_folder(logs)).parts for path in logs]
    if all(len(parts) > 1 for parts in tops):
        models = [*{path.parent: path for path in logs}.values()]
        # lm-eval writes into ORG__MODEL within the folder that it is given, which names the system
        n_given = len({parts[0] for parts in tops})
        are_given = len(models) == n_given and all("__" in path.parent.name for path in models)
        depth = 2 if all(len(parts) > 2 for parts in tops) and _are_models(models) and not are_given else 1
        return sorted({_find_common_folder(logs).joinpath(*parts[:depth]) for parts in tops})
    return [_find_common_folder(logs)] if _find_common_folder(logs) != home.parent else logs


def _find_common_folder(files: Sequence[Path]) -> Path:
    return Path(os.path.commonpath([path.parent for path in files]))


def _iter_test_sets(group: list[Path], roles: _FilesByRole, home: Path, hints: Hints) -> Iterator[DiscoveredTestSet]:
    """Yield one test set of a group of files, or one per file if each file is a table of several systems."""
    golds = _select_near(roles.gold, group, hints.gold)
    documents = _select_near(roles.documents, group, hints.documents)
    if not golds and (tables := [_read_alone(path, home, hints) for path in group]) and all(tables):
        yield from (test_set for test_set in tables if test_set is not None)
        return
    yield _read_together(group, golds, documents, home, hints)


def _select_near(files: Sequence[Path], group: Sequence[Path], stated: Path | None) -> list[Path]:
    """Return the given file, else the files in the group's folder or all files, if possible named alike."""
    if stated is not None:
        return [stated]
    folders = {*map(_get_set_folder, group)}
    files = [path for path in files if path.parent in folders] or files
    start = _find_common_prefix([path.name for path in group]) if len(group) > 1 else ""
    begin = re.split(r"[._-]", start)[0] if re.search(r"[._-]", start) else ""
    near = [path for path in files if begin and path.name.startswith(begin)]
    return near or list(files)


def _read_alone(path: Path, home: Path, hints: Hints) -> DiscoveredTestSet | None:
    """Return the test set in a single file, or None if the file does not hold two systems or more."""
    if path.is_dir():
        return None
    try:
        test_set = _read_test_set(
            get_stem(path), _format_relative(path, home), [Source(path)], None, hints.options, hints.format
        )
    except MissingItemsError:  # a table of systems, of which some lack items
        raise
    except InputError:
        return None
    return test_set if test_set.counts.n_systems > 1 else None


def _read_together(
    group: list[Path], golds: list[Path], documents: list[Path], home: Path, hints: Hints
) -> DiscoveredTestSet:
    """Return the test set of several files, one for each system."""
    systems = _build_systems(group, home)
    sources = paths.list_sources(systems, home, hints.format)
    name = _choose_name(group, home)
    only_document = documents[0] if len(documents) == 1 else None
    first_error: InputError | None = None
    to_try: list[tuple[Path | None, list[Path]]] = [(path, []) for path in golds]
    if len(golds) > 1 and len({_get_ending(path) for path in golds}) == 1:  # they may be references of one text
        to_try.insert(0, (golds[0], golds[1:]))
    for gold, references in [*to_try, *([(None, [])] if hints.gold is None else [])]:
        for document in dict.fromkeys((only_document, None)):
            options = replace(hints.options, references=tuple(references), documents=document)
            try:
                test_set = _read_test_set(name, systems, sources, gold, options, hints.format)
            except InputError as error:
                first_error = first_error or error
                continue
            lacks_gold = gold is None and golds and test_set.format in {"labels", "conll", "segments", "speech"}
            if test_set.counts.n_systems > 1 and not lacks_gold:
                return test_set
    raise first_error or InputError("there is only one system, so there is nothing to compare")


def _read_test_set(
    name: str, systems: Systems, sources: Sequence[Source], gold: Path | None, options: Options, format_: str
) -> DiscoveredTestSet:
    """Return the test set of files that are read together."""
    format_name = formats.detect(sources, gold, options) if format_ == "auto" else format_
    for given, what in ((options.references, "several references"), (options.documents, "documents")):
        if given and format_name != "segments":
            raise InputError(f"{what} apply only to texts")
    family, extra = formats.parse_format(format_name)
    reading = replace(options, is_detected=format_ == "auto").with_format_options(extra)
    counts = formats.read(*sources, gold=gold, format=family, options=reading)
    return DiscoveredTestSet(name, systems, tuple(sources), gold, format_name, options, counts)


def _build_systems(group: Sequence[Path], home: Path) -> Systems:
    """Return how a plan names these files: one pattern, or their paths, with system names if names are ambiguous."""
    names = [_format_relative(path, home) for path in group]
    if len(names) < 2:
        return names[0]
    if (pattern := _find_pattern(names, {path.resolve() for path in group}, home)) is not None:
        return pattern
    if len({Source(path).system for path in group}) < len(group):
        are_distinct = len({path.name for path in group}) == len(group)
        systems = [path.name if are_distinct else "/".join(path.parts[-3:-1]) for path in group]
        return dict(zip(systems, names, strict=True))
    return tuple(names)


def _find_pattern(names: Sequence[str], group: set[Path], home: Path) -> str | None:
    """Return a pattern that matches exactly these files, with distinct names, or None."""
    start, end = _find_common_prefix(names), _find_common_prefix([name[::-1] for name in names])[::-1]
    start = start[: max(start.rfind("/"), start.rfind("."), start.rfind("_")) + 1]
    start = re.sub(r"[^/]*__$", "", start)  # in `org__model`, the organisation is part of the system's name
    boundary = re.search(r"[/.]", end)
    end = end[boundary.start() :] if boundary else ""
    middle = [name[len(start) : len(name) - len(end)] for name in names]
    are_folders = all(path.is_dir() for path in group)
    if not (start or end or are_folders):  # it would match the plan as well
        return None
    if not all(middle) or any("/" in part for part in middle) or len(set(middle)) < len(middle):
        return None
    matches = {
        p.resolve() for p in home.glob(glob.escape(start) + "*" + glob.escape(end)) if p.is_dir() or not are_folders
    }
    return f"{start}{SYSTEM}{end}" if matches == group else None


def _format_relative(path: Path, home: Path) -> str:
    return Path(os.path.relpath(path, home)).as_posix()


def _choose_name(group: Sequence[Path], home: Path) -> str:
    """Return a test-set name: the common beginning of its files' names, else the name of their folder."""
    start = _find_common_prefix([path.name for path in group]).rstrip("._-")
    if len(start) > 1 and len(group) > 1:
        return start
    folder = _find_common_folder(group)
    folder = folder.parent if FOLDERS_OF_SYSTEMS.match(folder.name) else folder
    return folder.resolve().name or home.resolve().name


def _number_names(test_sets: Sequence[DiscoveredTestSet]) -> Iterator[DiscoveredTestSet]:
    """Yield test sets under distinct names."""
    n_uses: Counter[str] = Counter()
    for test_set in test_sets:
        n_uses[test_set.name] += 1
        n = n_uses[test_set.name]
        yield test_set if n == 1 else replace(test_set, name=f"{test_set.name}-{n}")


MAX_FAILURES = 4
"""Maximum number of groups of files whose errors are printed."""


def _describe_failure(group: Sequence[Path], error: InputError) -> str:
    return f"{format_list([path.name for path in group])}: {error}"


def _build_unknown_error(
    files: Sequence[Path], failed: Sequence[tuple[list[Path], InputError]], home: Path
) -> InputError:
    """Return the error that lists the files, why they could not be read, and which options help."""
    names = format_list([_format_relative(path, home) for path in files], 6)
    distinct: dict[str, tuple[list[Path], InputError]] = {}
    for group, error in failed:
        distinct.setdefault(str(error), (group, error))
    reasons = [f"  {_describe_failure(*failure)}" for failure in [*distinct.values()][:MAX_FAILURES]]
    return SeveralError(
        f"cannot recognise what {'this file is' if len(files) == 1 else f'these {len(files):,} files are'}: {names}",
        *reasons,
        f"give {spell('gold', 'FILE')} for the gold standard, {spell('format', 'NAME')} (see `sigdask list "
        "formats`), or only the files of the systems",
    )
