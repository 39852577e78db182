"""What lies in a folder, taken for test sets: which files are systems, what is right, documents; read to be sure.

Names say what a file may be (gold, references, qrels; documents; sources), readers whether it is. What can be read in
two ways is refused with both, never guessed.
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
from sigdask.errors import InputError, SeveralError
from sigdask.formats import Options, Source
from sigdask.formats.samples.files import belong_together
from sigdask.nightly.plan import paths
from sigdask.options import Missing
from sigdask.text import listed

MOST_FILES, DEEPEST = 20_000, 4
"""Files that are looked at, in folders so far below."""

NOT_DATA = re.compile(
    r"(?i)^(readme|source|licen[cs]es?|copying|changelog|sha256sums|makefile|reference_scores)\b"
    r"|\.(md|toml|py|ipynb|sh|html?|pdf|png|svg|tex|bib|sqlite|sqlite-journal|db|log|ya?ml)$"
)
GOLD = re.compile(r"(?i)(^|[._-])(gold|golden|refs?|references?|ref[a-z0-9]|qrels?|truth|key|annotated)([._-]|$)")
DOCUMENTS = re.compile(r"(?i)(^|[._-])(docs?|documents?|docids?|doc[_-]ids?)([._-]|$)")
SOURCES = re.compile(r"(?i)(^|[._-])(src|source|input_text)([._-]|$)")
FOLDERS_OF_SYSTEMS = re.compile(r"(?i)^(systems?|runs?|outputs?|submissions?|hyps?|predictions|preds|results|models)$")
SYSTEM = "{system}"

Systems = str | tuple[str, ...] | dict[str, str]


@dataclass(frozen=True, slots=True)
class Hints:
    """What is said of the files, instead of being found: as options of `compare`."""

    gold: Path | None = None
    documents: Path | None = None
    format: str = "auto"
    missing: Missing | None = None
    min_items: int | None = None


@dataclass(frozen=True, slots=True)
class DiscoveredTestSet:
    """A test set, as its files were taken.

    Attributes
    ----------
    name : str
        Of the test set.
    systems : str, tuple of str, or dict of str to str
        Pattern, paths, or names and paths, relative to the folder of the plan.
    format : str
        As it was found.
    gold : str or None
    references : tuple of str
    documents : str or None
        Relative likewise.
    missing : str or None
        What an absent item means, where that was said.
    min_items : int or None
        Items in common that are enough, where that was said.
    counts : Counts
        What was read.
    n_files : int
        Of the systems.
    """

    name: str
    systems: Systems
    format: str
    counts: Counts
    n_files: int
    gold: str | None = None
    references: tuple[str, ...] = ()
    documents: str | None = None
    missing: Missing | None = None
    min_items: int | None = None


@dataclass(frozen=True, slots=True)
class FolderSurvey:
    """What was found.

    Attributes
    ----------
    test_sets : tuple of DiscoveredTestSet
        At least one.
    unused : tuple of str
        Files that were not taken for anything.
    unread : tuple of str
        Why some of them could not be.
    """

    test_sets: tuple[DiscoveredTestSet, ...]
    unused: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _FilesByRole:
    """Files by what their names say."""

    systems: list[Path] = field(default_factory=list)
    gold: list[Path] = field(default_factory=list)
    documents: list[Path] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)


def survey(where: Sequence[Path], home: Path, given: Hints) -> FolderSurvey:
    """Say what lies in a folder, or what files are.

    Parameters
    ----------
    where : sequence of Path
        One folder, or files of systems.
    home : Path
        The folder of the plan.
    given : Hints
        What is known.

    Raises
    ------
    InputError
        Nothing that can be compared; what was found and which option says what it is.
    """
    every = [path for one in where for path in (_files(one) if one.is_dir() else [one])]
    if not every:
        raise InputError(f"{listed([str(path) for path in where])}: no files of results there")
    kinds = _kinds(every, given, asked=not any(path.is_dir() for path in where))
    laid: list[DiscoveredTestSet] = []
    failed: list[tuple[list[Path], InputError]] = []
    waiting = [*_groups(kinds.systems, home)]
    while waiting:
        group = waiting.pop(0)
        try:
            laid += _laid(group, kinds, home, given)
        except InputError as error:
            failed.append((group, error))
            waiting += _by_ending(group)
    if not laid:
        raise _unknown(every, failed, home)
    used = {path for one in laid for path in _used(one, home)}
    unused = [path for path in every if path.resolve() not in used]
    unread = [_why(group, error) for group, error in failed if not used & {path.resolve() for path in group}]
    return FolderSurvey(tuple(_named(laid)), tuple(_relative(path, home) for path in unused), tuple(unread))


def _files(folder: Path) -> list[Path]:
    """Return the files in a folder and below that may be data."""
    found: list[Path] = []
    for where, folders, names in os.walk(folder):
        depth = len(Path(where).relative_to(folder).parts)
        folders[:] = sorted(n for n in folders if not n.startswith((".", "__"))) if depth < DEEPEST else []
        found += [Path(where, name) for name in sorted(names) if not name.startswith(".") and not NOT_DATA.search(name)]
        if len(found) > MOST_FILES:
            raise InputError(f"{folder}: more than {MOST_FILES:,} files; give the folder of one test set")
    return found


def _kinds(every: Sequence[Path], given: Hints, *, asked: bool) -> _FilesByRole:
    """Part files by what their names say; all that were named one by one are systems."""
    kinds = _FilesByRole()
    said = {path.resolve() for path in (given.gold, given.documents) if path is not None}
    for path in every:
        if path.resolve() in said:
            continue
        if asked or (FOLDERS_OF_SYSTEMS.match(path.parent.name) and not GOLD.search(path.stem)):
            kinds.systems.append(path)
        elif SOURCES.search(path.name):
            kinds.others.append(path)
        elif DOCUMENTS.search(path.name):
            kinds.documents.append(path)
        elif GOLD.search(path.name) or GOLD.search(path.parent.name):
            kinds.gold.append(path)
        else:
            kinds.systems.append(path)
    if given.gold is not None:
        kinds.gold[:] = [given.gold]
    if given.documents is not None:
        kinds.documents[:] = [given.documents]
    return kinds


def _groups(files: Sequence[Path], home: Path) -> Iterator[list[Path]]:
    """Yield files that may be the systems of one test set: logs, those of one folder and ending, those of one name."""
    if logs := _logs(files, home):
        yield logs
        return
    alike: dict[tuple[object, ...], list[Path]] = {}
    names = Counter(path.name for path in files)
    for path in files:
        own = FOLDERS_OF_SYSTEMS.match(path.parent.name) and _begin(path, files)
        alike.setdefault((path.parent.parent, path.name) if names[path.name] > 1 else (path.parent, own), []).append(
            path
        )
    yield from sorted(alike.values(), key=lambda own: (not FOLDERS_OF_SYSTEMS.match(own[0].parent.name), -len(own)))


def _by_ending(group: Sequence[Path]) -> list[list[Path]]:
    """Return the files of a folder that end alike, where not all do."""
    alike: dict[str, list[Path]] = {}
    for path in group:
        alike.setdefault(_ending(path), []).append(path)
    return [*alike.values()] if len(alike) > 1 else []


def _begin(path: Path, files: Sequence[Path]) -> str:
    """Return what names begin with where a folder holds systems of several test sets: `ces.word.A`, `mon.word.A`."""
    first = path.name.partition(".")[0]
    starts = {own.name.partition(".")[0] for own in files if own.parent == path.parent}
    n_files = sum(own.parent == path.parent for own in files)
    return first if 1 < len(starts) <= n_files // 2 else ""


def _ending(path: Path) -> str:
    """Return the part of a name after the system's: what all files of a test set share as a rule."""
    return "".join(path.suffixes[-2:] if path.suffix in {".gz", ".bz2", ".xz"} else path.suffixes[-1:])


def _logs(files: Sequence[Path], home: Path) -> list[Path]:
    """Return the folders of logs of samples, one a system; nothing where there are no such logs."""
    own = [path for path in files if re.match(r"samples_.*\.jsonl(\.gz)?$", path.name) or path.suffix == ".eval"]
    if not own or not belong_together(own, asked=False):
        return []
    tops = [path.relative_to(_above(own)).parts for path in own]
    if all(len(parts) > 1 for parts in tops):
        return sorted({_above(own) / parts[0] for parts in tops})
    return [_above(own)] if _above(own) != home.parent else own


def _above(files: Sequence[Path]) -> Path:
    return Path(os.path.commonpath([path.parent for path in files]))


def _laid(group: list[Path], kinds: _FilesByRole, home: Path, given: Hints) -> Iterator[DiscoveredTestSet]:
    """Yield the test set that a group of files is, or one for each file that is a table of systems."""
    golds = _near(kinds.gold, group, given.gold)
    documents = _near(kinds.documents, group, given.documents)
    if not golds and (tables := [_alone(path, home, given) for path in group]) and all(tables):
        if len(tables) > 1 and given.format == "auto":
            _refuse_two_ways(group)
        yield from (one for one in tables if one is not None)
        return
    yield _together(group, golds, documents, home, given)


def _near(files: Sequence[Path], group: Sequence[Path], said: Path | None) -> list[Path]:
    """Return files of what is right that may be of a group: those whose names begin alike, if there are any."""
    if said is not None:
        return [said]
    start = _alike([path.name for path in group]) if len(group) > 1 else ""
    begin = re.split(r"[._-]", start)[0] if re.search(r"[._-]", start) else ""
    own = [path for path in files if begin and path.name.startswith(begin)]
    return own or list(files)


def _alone(path: Path, home: Path, given: Hints) -> DiscoveredTestSet | None:
    """Return the test set that one file is by itself; None where it is none of two systems."""
    if path.is_dir():
        return None
    try:
        options = Options(missing=given.missing, min_items=given.min_items)
        chosen, counts = _read([Source(path)], None, options, given)
    except InputError as error:
        if "--missing" in str(error) or "--min-items" in str(error):  # a table of systems, of which some lack items
            raise
        return None
    if counts.n_systems < 2:
        return None
    where = _relative(path, home)
    return DiscoveredTestSet(path.stem, where, chosen, counts, 1, missing=given.missing, min_items=given.min_items)


def _refuse_two_ways(group: Sequence[Path]) -> None:
    """Refuse files of which each may be a table of systems, or one system's scores by several metrics."""
    try:
        together = formats.detect([Source(path) for path in group], None, Options())
    except InputError:
        return
    if together == "metrics":
        raise InputError(
            f"{listed([path.name for path in group])}: each may be a table of systems, a column each, or one system's "
            "scores by several metrics; say --format wide or --format metrics"
        )


def _together(
    group: list[Path], golds: list[Path], documents: list[Path], home: Path, given: Hints
) -> DiscoveredTestSet:
    """Return the test set that several files are, a system each."""
    systems = _pattern(group, home)
    sources = _sources(systems, home, given)
    documented = documents[0] if len(documents) == 1 else None
    tried: InputError | None = None
    for gold, references in [*_golds(golds), *([(None, [])] if given.gold is None else [])]:
        for document in dict.fromkeys((documented, None)):
            options = Options(
                references=tuple(references), documents=document, missing=given.missing, min_items=given.min_items
            )
            try:
                chosen, counts = _read(sources, gold, options, given)
            except InputError as error:
                tried = tried or error
                continue
            if counts.n_systems < 2:
                continue
            if gold is None and golds and chosen in {"labels", "conll", "segments", "speech"}:
                continue
            return DiscoveredTestSet(
                _name(group, home), systems, chosen, counts, sum(len(one.parts) or 1 for one in sources),
                gold=None if gold is None else _relative(gold, home),
                references=tuple(_relative(path, home) for path in references),
                documents=None if document is None else _relative(document, home),
                missing=given.missing,
                min_items=given.min_items,
            )  # fmt: skip
    raise tried or InputError("one system alone has nothing to be compared with")


def _sources(systems: Systems, home: Path, given: Hints) -> list[Source]:
    """Return the files of systems as a plan finds them."""
    found = []
    for one in paths.sources(systems, home, given.format):
        if isinstance(one, InputError):
            raise one
        found.append(one)
    return found


def _golds(golds: Sequence[Path]) -> Iterator[tuple[Path, list[Path]]]:
    """Yield what may be right: one file; several as references of one text, which only texts have."""
    if len(golds) > 1 and len({_ending(path) for path in golds}) == 1:
        yield golds[0], list(golds[1:])
    yield from ((path, []) for path in golds)


def _read(sources: Sequence[Source], gold: Path | None, options: Options, given: Hints) -> tuple[str, Counts]:
    chosen = formats.detect(sources, gold, options) if given.format == "auto" else given.format
    if options.references and chosen != "segments":
        raise InputError("several references are of texts alone")
    own = replace(options, documents=None) if options.documents and chosen != "segments" else options
    if own is not options:
        raise InputError("documents are of texts alone")
    name, extra = formats.parse_format(chosen)
    options = replace(options, is_detected=given.format == "auto")
    return chosen, formats.read(*sources, gold=gold, format=name, options=options.with_own(extra))


def _pattern(group: Sequence[Path], home: Path) -> Systems:
    """Return the files as a pattern where it finds these alone, else one by one, with names where theirs are alike."""
    names = [_relative(path, home) for path in group]
    if len(names) < 2:
        return names[0]
    if (pattern := _pattern_of(names, {path.resolve() for path in group}, home)) is not None:
        return pattern
    if len({Source(path).system for path in group}) < len(group):
        return {path.name: name for path, name in zip(group, names, strict=True)}
    return tuple(names)


def _pattern_of(names: Sequence[str], group: set[Path], home: Path) -> str | None:
    """Return what finds these files alone, each with a name of its own; None where there is no such pattern."""
    start, end = _alike(names), _alike([name[::-1] for name in names])[::-1]
    start = start[: max(start.rfind("/"), start.rfind("."), start.rfind("_")) + 1]
    first = re.search(r"[/.]", end)
    end = end[first.start() :] if first else ""
    middle = [name[len(start) : len(name) - len(end)] for name in names]
    if not (start or end):  # it would find the plan as well
        return None
    if not all(middle) or any("/" in part for part in middle) or len(set(middle)) < len(middle):
        return None
    matched = {p.resolve() for p in home.glob(glob.escape(start) + "*" + glob.escape(end))}
    return f"{start}{SYSTEM}{end}" if matched == group else None


def _alike(names: Sequence[str]) -> str:
    """Return how all names begin."""
    first, last = min(names), max(names)
    n = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:n]


def _relative(path: Path, home: Path) -> str:
    return Path(os.path.relpath(path, home)).as_posix()


def _name(group: Sequence[Path], home: Path) -> str:
    """Return a name for a test set: what its files share, else their folder."""
    start = _alike([path.name for path in group]).rstrip("._-")
    if len(start) > 1 and len(group) > 1:
        return start
    folder = group[0].parent
    folder = folder.parent if FOLDERS_OF_SYSTEMS.match(folder.name) else folder
    return folder.resolve().name or home.resolve().name


def _named(laid: Sequence[DiscoveredTestSet]) -> Iterator[DiscoveredTestSet]:
    """Yield test sets with names of their own."""
    taken: dict[str, int] = {}
    for one in laid:
        taken[one.name] = taken.get(one.name, 0) + 1
        yield one if taken[one.name] == 1 else replace(one, name=f"{one.name}-{taken[one.name]}")


def _used(one: DiscoveredTestSet, home: Path) -> Iterator[Path]:
    """Yield the files of a test set."""
    if isinstance(one.systems, str):
        for path in home.glob(one.systems.replace(SYSTEM, "*")) if SYSTEM in one.systems else [home / one.systems]:
            yield from (own.resolve() for own in (path.rglob("*") if path.is_dir() else [path]))
    else:
        listed_ = one.systems.values() if isinstance(one.systems, dict) else one.systems
        yield from ((home / path).resolve() for path in listed_)
    yield from ((home / path).resolve() for path in (one.gold, one.documents, *one.references) if path is not None)


MOST_TOLD = 4
"""Groups of files of which it is said why they cannot be read."""


def _why(group: Sequence[Path], error: InputError) -> str:
    return f"{listed([path.name for path in group])}: {error}"


def _unknown(every: Sequence[Path], failed: Sequence[tuple[list[Path], InputError]], home: Path) -> InputError:
    """Return the error that says what was found, why it could not be read and what to say."""
    names = listed([_relative(path, home) for path in every], 6)
    why = [f"  {_why(group, error)}" for group, error in failed[:MOST_TOLD]]
    return SeveralError(
        f"cannot tell what {'this file is' if len(every) == 1 else f'these {len(every):,} files are'}: {names}",
        *why,
        "say --gold FILE for what is right, --format NAME (sigdask formats), or name the files of the systems alone",
    )
