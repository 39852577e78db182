"""Folders as systems: files with the same names in all folders are parts of one test set, and are joined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import Array, Bools, ComputedFields
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.files import NOT_DATA, list_files
from sigdask.formats.reading.options import Source, distinguish_names
from sigdask.text import format_count, format_list

FILE = "file"
"""Column of the file that an item is in."""

NUMBERED_GROUPS = ("document", "sentence")
"""Columns that formats number within a file."""

MAX_NAMES = 8
"""Number of files that a note or an error names."""

Files = tuple[list[Source], Path | None]
"""The file of each system, and the gold-standard file."""


def match_folders(sources: Sequence[Source], gold: Path | None) -> dict[str, Files]:
    """Return the files of the folders by their names, which are relative to the folders.

    Files of one folder are files of one system if there is one gold file for all.

    Raises
    ------
    InputError
        Folders have files of different names.
    """
    systems = distinguish_names(sources)
    names = {source.path: _list_names(source.path) for source in systems}
    if gold is not None and not gold.is_dir():
        return {"": ([Source(s.path / name, s.system) for s in systems for name in names[s.path]], gold)}
    if gold is not None:
        names[gold] = _list_names(gold)
    first, expected = next(iter(names.items()))
    for folder, own in names.items():
        if own != expected:
            raise InputError(
                f"folders are systems whose files have the same names, but {first} has "
                f"{format_list(expected, MAX_NAMES)} and {folder} has {format_list(own, MAX_NAMES)}",
                remedy=f"give them the same names. If each file is a test set of its own, make a plan: sigdask init "
                f"{first.parent}{'' if gold is None else f' --gold {gold}'}",
            )
    return {name: ([Source(s.path / name, s.system) for s in systems], gold and gold / name) for name in expected}


def _list_names(folder: Path) -> list[str]:
    """Return the names of the files in a folder and its subfolders, without notes and code."""
    names = [str(path.relative_to(folder)) for path in list_files(folder) if not NOT_DATA.search(path.name)]
    if not names:
        raise InputError("is an empty folder", file=folder, remedy="give a folder with the files of a system")
    return names


def read_folders(read_files: Callable[[Files], Counts], files_by_name: Mapping[str, Files]) -> Counts:
    """Read the files of each name as one test set, and join the test sets; ids are preceded by the file's name."""
    parts = {name: read_files(files) for name, files in files_by_name.items()}
    if len(parts) == 1:
        return next(iter(parts.values()))
    _check_alike(parts)
    first, *_ = counts = [*parts.values()]
    labels = {label for part in counts for label in part.labels}
    note = f"{format_count(len(parts), 'file')} of each folder, joined (column {FILE!r}): "
    return replace(
        first,
        fields=AppendedFields(counts),
        n_items=sum(part.n_items for part in counts),
        ids=[
            f"{name}/{item}"
            for name, part in parts.items()
            for item in (range(1, part.n_items + 1) if part.ids is None else part.ids)
        ],
        groups=_join_groups(parts),
        labels=tuple(sorted(labels)),
        predicted_labels=tuple(sorted({label for part in counts for label in part.predicted_labels} - labels)),
        present=_append_masks(counts),
        held={},
        outputs=_append_outputs([part.outputs for part in counts]),
        extracted={},
        warnings=tuple(dict.fromkeys(text for part in counts for text in part.warnings)),
        scope=(
            note + format_list([*parts], MAX_NAMES),
            *dict.fromkeys(ScopeNote(text) for part in counts for text in part.scope),
        ),
        files=tuple(path for part in counts for path in part.files),
    )


def _check_alike(parts: Mapping[str, Counts]) -> None:
    """Raise an error for test sets of other formats, systems or scores than the first, and for runs."""
    first_name, first = next(iter(parts.items()))
    for name, part in parts.items():
        if part.replicates or part.held:
            problem = f"{name} has runs, repeated items, or items without some scores"
            raise InputError(problem, remedy="give folders with one run of each system")
        for noun, own, expected in (
            ("format", [part.format], [first.format]),
            ("systems", part.systems, first.systems),
            ("scores", *(sorted(field for field in c.fields if field.startswith("score")) for c in (part, first))),
        ):
            if own != expected:
                problem = f"{name} has the {noun} {format_list(own)}, but {first_name} {format_list(expected)}"
                raise InputError(problem, remedy="compare them apart")


def _join_groups(parts: Mapping[str, Counts]) -> dict[str, Sequence[str]]:
    """Return the columns that all parts have, and that of files."""
    columns = [{*part.groups} for part in parts.values()]
    groups: dict[str, Sequence[str]] = {}
    for column in sorted(set.intersection(*columns)):
        cells = [(name, cell) for name, part in parts.items() for cell in part.groups[column]]
        groups[column] = [f"{name}/{cell}" if column in NUMBERED_GROUPS else cell for name, cell in cells]
    return {**groups, FILE: [name for name, part in parts.items() for _ in range(part.n_items)]}


def _append_masks(parts: Sequence[Counts]) -> Bools | None:
    if all(part.present is None for part in parts):
        return None
    shapes = [(part.n_items, part.n_systems) for part in parts]
    masks = [np.ones(s, np.bool_) if p.present is None else p.present for p, s in zip(parts, shapes, strict=True)]
    return np.concatenate(masks)


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

    parts: Sequence[Counts]

    def __getitem__(self, name: str) -> Array:
        if not any(name in part.fields for part in self.parts):
            raise KeyError(name)
        arrays = [
            np.asarray(part.fields[name]) if name in part.fields else np.zeros((part.n_items, 1), np.int8)
            for part in self.parts
        ]
        width = max(array.shape[1] for array in arrays)
        return np.concatenate([np.broadcast_to(array, (len(array), width)) for array in arrays])

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for part in self.parts for name in part.fields))

    @property
    def rounding(self) -> Mapping[str, tuple[float, ...]]:
        """Maximum error of the numbers of a field, that of the worst test set."""
        errors = [item for part in self.parts for item in getattr(part.fields, "rounding", {}).items()]
        return {name: (max(max(values) for other, values in errors if other == name),) for name, _ in errors}
