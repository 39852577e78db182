"""Folders as systems: files with the same names in all folders are parts of one test set, and are joined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import Array, Bools, ComputedFields, get_rounding
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.files import NOT_DATA
from sigdask.formats.reading.options import Source, distinguish_names
from sigdask.interface import spell
from sigdask.text import format_count, format_list, is_url

FILE = "file"
"""Column of the file that an item is in."""

NUMBERED_GROUPS = ("document", "sentence")
"""Columns that formats number within a file."""

MAX_NAMES = 8
"""Number of files that a note or an error names."""


@dataclass(frozen=True, slots=True)
class FolderPart:
    """The files of one name in all folders.

    Attributes
    ----------
    name : str
        Name of the file, relative to the folders.
    sources : tuple of Source
        File of each system.
    gold : Path or None
        Gold-standard file.
    """

    name: str
    sources: tuple[Source, ...]
    gold: Path | None


def are_folders(sources: Sequence[Source]) -> bool:
    """Return whether sources are two or more folders."""
    paths = [source.path for source in sources if not source.parts and not is_url(str(source.path))]
    return len(sources) > 1 and len(paths) == len(sources) and all(path.is_dir() for path in paths)


def match_folders(sources: Sequence[Source], gold: Path | None) -> list[FolderPart]:
    """Return the files of the folders, matched by their names.

    Files of one folder are files of one system if there is one gold file for all.

    Raises
    ------
    InputError
        Folders have files of different names.
    """
    systems = distinguish_names(sources)
    folders = [source.path for source in systems]
    if gold is not None and not gold.is_dir():
        files = tuple(Source(s.path / name, s.system) for s in systems for name in list_files(s.path))
        return [FolderPart("", files, gold)]
    names = list_files(folders[0])
    for folder in (*folders[1:], *([] if gold is None else [gold])):
        if (others := list_files(folder)) != names:
            raise InputError(
                f"folders are systems whose files have the same names, but {folders[0]} has {_describe(names)} and "
                f"{folder} has {_describe(others)}",
                remedy=f"give them the same names. If each file is a test set of its own, make a plan: sigdask init "
                f"{folders[0].parent}",
            )
    return [
        FolderPart(name, tuple(Source(s.path / name, s.system) for s in systems), None if gold is None else gold / name)
        for name in names
    ]


def list_files(folder: Path) -> list[str]:
    """Return the names of the files in a folder and its subfolders, relative to it, without hidden files and notes."""
    paths = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    names = [
        str(path) for path in paths if not any(part[0] == "." for part in path.parts) and not NOT_DATA.search(path.name)
    ]
    if not names:
        raise InputError("is an empty folder", file=folder, remedy="give a folder with the files of a system")
    return names


def _describe(names: Sequence[str]) -> str:
    return format_list(names, MAX_NAMES)


def read_folders(read_part: Callable[[FolderPart], Counts], parts: Sequence[FolderPart]) -> Counts:
    """Read the files of each name as one test set, and join the test sets."""
    counts = [read_part(part) for part in parts]
    names = [part.name for part in parts]
    if len(parts) == 1:
        return counts[0]
    for own, name in zip(counts, names, strict=True):
        if own.format != counts[0].format:
            problem = f"{names[0]} is read as {counts[0].format}, but {name} as {own.format}"
            raise InputError(problem, remedy=f"choose one: {spell('format', counts[0].format)}")
    joined = join_items(counts, names)
    note = f"{format_count(len(parts), 'file')} of each folder, joined (column {FILE!r}): {_describe(names)}"
    return replace(joined, scope=(note, *joined.scope))


def join_items(parts: Sequence[Counts], names: Sequence[str]) -> Counts:
    """Return counts of the items of several test sets of the same systems; ids are preceded by the set's name."""
    first = parts[0]
    for part, name in zip(parts, names, strict=True):
        if part.systems != first.systems:
            expected = format_list(first.systems)
            raise InputError(f"{name} has systems {format_list(part.systems)}, but {names[0]} has {expected}")
        if part.replicates:
            raise InputError(f"{name} has runs or repeated items", remedy="give folders with one run of each system")
        if differing := sorted(_list_scores(part) ^ _list_scores(first)):
            raise InputError(f"{format_list(differing)} is a score in only one of {names[0]} and {name}")
    labels = {label for part in parts for label in part.labels}
    n_items = [part.n_items for part in parts]
    return replace(
        first,
        fields=AppendedFields([part.fields for part in parts], n_items),
        n_items=sum(n_items),
        ids=[item for part, name in zip(parts, names, strict=True) for item in _iter_ids(part, name)],
        groups=_join_groups(parts, names),
        labels=tuple(sorted(labels)),
        predicted_labels=tuple(sorted({label for part in parts for label in part.predicted_labels} - labels)),
        present=_append_masks([part.present for part in parts], parts),
        held={
            name: mask
            for name in {name for part in parts for name in part.held}
            if (mask := _append_masks([part.held.get(name) for part in parts], parts)) is not None
        },
        outputs=_append_outputs([part.outputs for part in parts]),
        extracted={},
        telling=None,
        warnings=tuple(dict.fromkeys(text for part in parts for text in part.warnings)),
        scope=tuple(dict.fromkeys(ScopeNote(text) for part in parts for text in part.scope)),
        files=tuple(path for part in parts for path in part.files),
    )


def _list_scores(counts: Counts) -> set[str]:
    return {name for name in counts.fields if name == "score" or name.startswith("score[")}


def _iter_ids(part: Counts, name: str) -> Iterator[str]:
    ids = map(str, range(1, part.n_items + 1)) if part.ids is None else iter(part.ids)
    yield from (f"{name}/{item}" for item in ids)


def _join_groups(parts: Sequence[Counts], names: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the columns that all parts have, and that of files."""
    columns = [column for column in parts[0].groups if all(column in part.groups for part in parts)]
    groups: dict[str, Sequence[str]] = {}
    for column in columns:
        prefix = column in NUMBERED_GROUPS
        groups[column] = [
            f"{name}/{value}" if prefix else value
            for part, name in zip(parts, names, strict=True)
            for value in part.groups[column]
        ]
    return {**groups, FILE: [name for part, name in zip(parts, names, strict=True) for _ in range(part.n_items)]}


def _append_masks(masks: Sequence[Bools | None], parts: Sequence[Counts]) -> Bools | None:
    if all(mask is None for mask in masks):
        return None
    shapes = [(part.n_items, part.n_systems) for part in parts]
    return np.concatenate([np.ones(s, np.bool_) if m is None else m for m, s in zip(masks, shapes, strict=True)])


def _append_outputs(parts: Sequence[Outputs | None]) -> Outputs | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    golds = [part.gold for part in known if part.gold is not None]
    columns = zip(*(part.systems for part in known), strict=True)
    return Outputs([*map(np.concatenate, columns)], np.concatenate(golds) if len(golds) == len(known) else None)


@dataclass(frozen=True, slots=True, eq=False)
class AppendedFields(ComputedFields):
    """Fields of several test sets, one after the other. A field that a test set lacks, as of a label, is 0 there."""

    parts: Sequence[Mapping[str, Array]]
    n_items: Sequence[int]

    def __getitem__(self, name: str) -> Array:
        arrays = [
            np.asarray(fields[name]) if name in fields else np.zeros((n, 1), np.int64)
            for fields, n in zip(self.parts, self.n_items, strict=True)
        ]
        if not any(name in fields for fields in self.parts):
            raise KeyError(name)
        width = max(array.shape[1] for array in arrays)
        return np.concatenate([np.broadcast_to(array, (len(array), width)) for array in arrays])

    def __contains__(self, name: object) -> bool:
        return any(name in fields for fields in self.parts)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for fields in self.parts for name in fields))

    @property
    def rounding(self) -> Mapping[str, tuple[float, ...]]:
        """Maximum error of the numbers of a field, that of the worst test set."""
        errors = [(name, max(values)) for fields in self.parts for name, values in get_rounding(fields).items()]
        return {name: (max(error for other, error in errors if other == name),) for name, _ in errors}
