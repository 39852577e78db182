"""Build counts from texts and their references, for both translations and transcripts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.checks import check_common_items, check_complete
from sigdask.counts.fields import to_object_array
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled, open_text
from sigdask.formats.reading.options import Options
from sigdask.interface import spell
from sigdask.text import format_count

Texts = Sequence[str | None]
"""One text for each item, None if it is missing."""


def build_text_counts(
    systems: Mapping[str, Texts],
    references: Sequence[Texts],
    options: Options,
    *,
    ids: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    suggested: tuple[str, ...],
    warnings: Sequence[str] = (),
    source_texts: Texts | None = None,
) -> Counts:
    """Return the counts of systems' texts and their references.

    Parameters
    ----------
    systems : mapping of str to sequence of str or None
        Output for each item, by system. None if it is missing.
    references : sequence of sequence of str
        One or more reference texts for each item.
    options : Options
        Options, with the test set's name and the handling of missing texts: as an error, by leaving out the item in the
        pairs of this system, or ("zero") as an empty text.
    ids, groups, suggested, warnings
        As in `Counts`.
    source_texts : sequence of str, optional
        Source text of each item, to be shown.
    """
    n_items = len(references[0])
    notes = [*warnings, *_check_texts(systems, references)]
    present = np.array([[text is not None for text in texts] for texts in systems.values()]).T
    if not options.few_in_common:
        check_common_items(present, tuple(systems), options.missing_policy, ids)
    if options.missing_policy == "error":
        check_complete(present, tuple(systems), ids, "text", " (an empty text)")
    ones = np.ones((n_items, 1), np.int64)
    return Counts(
        systems=tuple(systems),
        fields={"segments": ones, "items": ones},
        n_items=n_items,
        ids=None if ids is None else tuple(ids),
        groups={name: tuple(column) for name, column in (groups or {}).items()},
        present=None if present.all() or options.missing_policy == "zero" else present,
        outputs=Outputs(
            tuple(to_object_array([text or "" for text in texts]) for texts in systems.values()),
            to_object_array(list(zip(*references, strict=True))),
            source_texts,
        ),
        suggested=suggested,
        warnings=tuple(notes),
    )


def _check_texts(systems: Mapping[str, Texts], references: Sequence[Texts]) -> list[ScopeNote]:
    """Raise an error if all references or all texts of a system are empty; return a note on empty references."""
    for name, texts in systems.items():
        if not any(text and text.strip() for text in texts):
            problem = f"all {len(texts):,} outputs of system {name!r} are empty"
            raise InputError(problem, remedy="leave out the system, or its file")
    n_items = len(references[0])
    n_empty = sum(not any(text and text.strip() for text in texts) for texts in zip(*references, strict=True))
    if n_empty == n_items:
        raise InputError(f"all {n_items:,} references are empty", remedy=f"check the files of {spell('gold')}")
    note = ScopeNote(f"{n_empty:,} of {format_count(n_items, 'reference')} are empty: any output is an error")
    return [note] if n_empty else []


OTHER_LAYOUTS = {
    r"<(\?xml|tmx|xliff|(tst|ref|src)set)\b": "XML",
    r"WEBVTT\b|\d+\r?\n\d+:\d\d:\d\d[,.]\d+ -->": "subtitles with times",
    r"(;;.*\n)*((\d*[^\W\d]\S* \S+ \S+ \d+\.\d+ \d+\.\d+ .*)(\n|$))+$": "STM, with times and speakers",
    r"(;;.*\n)*((\d*[^\W\d]\S* \S+ \d+\.\d+ \d+\.\d+ \S+( [\d.]+)?)(\n|$))+$": "CTM, with the time of each word",
}
"""Patterns of the first lines of files that hold more than texts."""


def read_text_lines(path: Path) -> list[str]:
    """Return the lines of a file, split only at LF; str.splitlines also splits at U+2028 and U+0085."""
    with open_text(path) as text:
        lines = text.read().removesuffix("\n").split("\n")
    check_filled(path, any(lines))
    head = "\n".join(lines[:20])
    if (layout := next((name for pattern, name in OTHER_LAYOUTS.items() if re.match(pattern, head)), None)) is not None:
        raise InputError(f"is {layout}, expected one segment on each line", file=path, remedy="write only the texts")
    return [line.removesuffix("\r") for line in lines]
