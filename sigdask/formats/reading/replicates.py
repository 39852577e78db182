"""Replicates of a system (optimizer runs, seeds): files under one name that was given several times."""

from __future__ import annotations

from collections.abc import Sequence

from sigdask.errors import InputError
from sigdask.formats.reading.options import Source

CHOICES = ("together", "each")
"""What the option `replicates` of any format takes: how the replicates of an item are swapped."""


def by_replicate(sources: Sequence[Source]) -> list[list[Source]]:
    """Return the files of each replicate: the first of each name, the second of each, and so on.

    Without a name that was given twice there is one.

    Raises
    ------
    InputError
        For a file given twice under one name, and for systems that have different numbers of files.
    """
    systems: dict[str | int, list[Source]] = {}
    for k, source in enumerate(sources):
        before = systems.setdefault(k if source.name is None else source.name, [])
        if (source.path, source.parts) in [(other.path, other.parts) for other in before]:
            raise InputError(f"{source.path}: is given twice for system {source.name!r}; give each replicate its file")
        before.append(source)
    files = list(systems.values())
    most, fewest = max(files, key=len, default=[]), min(files, key=len, default=[])
    if len(most) != len(fewest):
        other = fewest[0].name or fewest[0].path
        raise InputError(
            f"system {most[0].name!r} has {len(most)} files, replicates of it, but {other} has {len(fewest)}; "
            "give every system as many (NAME=FILE NAME=FILE), or another name to each file"
        )
    return [list(replicate) for replicate in zip(*files, strict=True)]
