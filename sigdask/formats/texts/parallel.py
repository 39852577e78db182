"""Texts and their references to counts: what translations and transcripts have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.checks import check_common
from sigdask.counts.fields import Array, objects
from sigdask.errors import InputError
from sigdask.formats.reading.files import empty, open_text
from sigdask.formats.reading.options import Options

Texts = Sequence[str | None]
"""A text an item, None where it is missing."""


def text_counts(
    systems: Mapping[str, Texts],
    references: Sequence[Texts],
    options: Options,
    *,
    ids: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    suggested: tuple[str, ...],
    warnings: Sequence[str] = (),
    asked: Texts | None = None,
) -> Counts:
    """Make counts of texts.

    Parameters
    ----------
    systems : mapping of system name to a text an item
        What the systems gave.
    references : sequence of one or more reference texts an item
        What was right.
    options : Options
        For the test set's name and what a missing text means: an error, an item that the pairs of
        this system leave out, or ("zero") an empty text.
    ids, groups, suggested, warnings
        As in `Counts`.
    asked : sequence of str, optional
        A source text an item, to be shown.
    """
    n_items = len(references[0])
    present = np.array([[text is not None for text in texts] for texts in systems.values()]).T
    check_common(present, tuple(systems), options.min_items, options.missing, ids)
    if options.missing_policy == "error" and not present.all():
        raise _missing(systems, present, ids)
    if options.missing_policy == "zero":
        present = np.ones_like(present)
    ones = np.ones((n_items, 1), np.int64)
    return Counts(
        systems=tuple(systems),
        fields={"segments": ones, "items": ones},
        n_items=n_items,
        name=options.name,
        ids=None if ids is None else tuple(ids),
        groups={name: tuple(column) for name, column in (groups or {}).items()},
        present=None if present.all() else present,
        outputs=Outputs(
            tuple(objects([text or "" for text in texts]) for texts in systems.values()),
            objects(list(zip(*references, strict=True))),
            asked,
        ),
        suggested=suggested,
        warnings=tuple(warnings),
    )


def text_lines(path: Path) -> list[str]:
    """Return the lines of a file, split on LF alone; str.splitlines would also split on U+2028 and U+0085."""
    with open_text(path) as text:
        lines = text.read().split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise empty(path)
    return [line.removesuffix("\r") for line in lines]


def evened(files: Sequence[tuple[Path, list[str]]]) -> list[list[str]]:
    """Return the lines of parallel files, the reference first, without those at the end that are empty in all.

    Raises
    ------
    InputError
        For a file of another number of lines.
    """
    reference, first = files[0]
    n_lines = max(_filled(lines) for _, lines in files)
    longer = [file for file in files if _filled(file[1]) > len(first)]
    shorter = [file for file in files if len(file[1]) < n_lines]
    for path, lines in longer or shorter:
        raise InputError(f"{path}: {len(lines)} lines, but {reference} has {len(first)}; segments are aligned by line")
    if n_lines == 0:
        raise empty(reference)
    return [lines[:n_lines] for _, lines in files]


def _filled(lines: Sequence[str]) -> int:
    """Return how many lines there are up to the last that is not empty."""
    return next((n for n in range(len(lines), 0, -1) if lines[n - 1]), 0)


def _missing(systems: Mapping[str, Texts], present: Array, ids: Sequence[str] | None) -> InputError:
    item, system = (int(k) for k in np.argwhere(~present)[0])
    where = repr(ids[item]) if ids is not None else f"number {item + 1}"
    return InputError(
        f"system {list(systems)[system]!r} has no text for item {where} ({np.count_nonzero(~present)} missing in all); "
        "choose --missing pairwise (compare each pair on the items both have) or zero (an empty text)"
    )
