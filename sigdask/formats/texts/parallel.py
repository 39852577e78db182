"""Build counts from texts and their references, for both translations and transcripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.checks import check_common_items, check_complete
from sigdask.counts.fields import to_object_array
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled, count_filled, open_text
from sigdask.formats.reading.options import Options
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
    systems : mapping of system name to a text an item
        Outputs of each item, by system.
    references : sequence of one or more reference texts an item
        Reference texts of each item.
    options : Options
        Options, with the test set's name and the handling of missing texts: as an error, by leaving out the item in the
        pairs of this system, or ("zero") as an empty text.
    ids, groups, suggested, warnings
        As in `Counts`.
    source_texts : sequence of str, optional
        A source text an item, to be shown.
    """
    n_items = len(references[0])
    present = np.array([[text is not None for text in texts] for texts in systems.values()]).T
    check_common_items(present, tuple(systems), options.min_items, options.missing_policy, ids)
    if options.missing_policy == "error":
        check_complete(present, tuple(systems), ids, "text", " (an empty text)")
    if options.missing_policy == "zero":
        present = np.ones_like(present)
    ones = np.ones((n_items, 1), np.int64)
    return Counts(
        systems=tuple(systems),
        fields={"segments": ones, "items": ones},
        n_items=n_items,
        ids=None if ids is None else tuple(ids),
        groups={name: tuple(column) for name, column in (groups or {}).items()},
        present=None if present.all() else present,
        outputs=Outputs(
            tuple(to_object_array([text or "" for text in texts]) for texts in systems.values()),
            to_object_array(list(zip(*references, strict=True))),
            source_texts,
        ),
        suggested=suggested,
        warnings=(*warnings, *_describe_marks(systems, references[0])),
    )


MARKS = {
    "@@ ": "join its subwords (sed 's/@@ //g')",
    "\u2581": "decode its pieces with SentencePiece",
    " ||| ": "keep the best translation of each sentence, without its scores",
}
"""Marks of texts that are not ready to be scored, with remedies."""


def _describe_marks(systems: Mapping[str, Texts], reference: Texts) -> Iterator[ScopeNote]:
    """Yield notes on outputs that have marks of subwords or of lists of translations, unlike the reference."""
    for name, texts in systems.items():
        joined = "\n".join(filter(None, texts))
        for mark, remedy in MARKS.items():
            if mark not in joined:
                continue
            n_marked = sum(mark in text for text in texts if text)
            if MARKED_SHARE * n_marked > len(texts) and not any(mark in text for text in reference if text):
                yield ScopeNote(f"{name}: {n_marked:,} outputs contain {mark!r}, and no reference does: {remedy}")


MARKED_SHARE = 10
"""Marks in more than a tenth of outputs are named."""


def read_text_lines(path: Path) -> list[str]:
    """Return the lines of a file, split only at LF; str.splitlines also splits at U+2028 and U+0085."""
    with open_text(path) as text:
        lines = text.read().split("\n")
    if lines and not lines[-1]:
        lines.pop()
    check_filled(path, lines)
    return [line.removesuffix("\r") for line in lines]


def trim_parallel_lines(files: Sequence[tuple[Path, list[str]]]) -> list[list[str]]:
    """Return the lines of parallel files, reference first, without final lines that are empty in all.

    Raises
    ------
    InputError
        A file has another number of lines.
    """
    reference, reference_lines = files[0]
    n_lines = max(count_filled(lines) for _, lines in files)
    longer = [file for file in files if count_filled(file[1]) > len(reference_lines)]
    shorter = [file for file in files if len(file[1]) < n_lines]
    for path, lines in longer or shorter:
        raise InputError(
            f"{path}: {format_count(len(lines), 'line')}, but {reference} has {len(reference_lines)}; segments are "
            "aligned by line: give all files the same segments, one per line"
        )
    check_filled(reference, n_lines)
    return [lines[:n_lines] for _, lines in files]
