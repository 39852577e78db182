"""Segments: one a line, LF only, a file a system and one or several reference files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.errors import InputError
from sigdask.formats.files import empty, open_text, stem
from sigdask.formats.options import Options, Source

CANARY = re.compile("canary guid|benchmark canary", re.IGNORECASE)


def read_segments(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read translations, references and, with `documents`, the document of each line.

    The first line of WMT files, a canary, is left out. Empty lines are outputs.
    """
    options.only("segments")
    paths = (() if gold is None else (gold,)) + options.references
    if not paths:
        raise InputError("format segments: no reference; give --gold FILE")
    references = [_lines(path) for path in paths]
    systems = {source.name or stem(source.path): _lines(source.path) for source in sources}
    if len(systems) < len(sources):
        raise InputError("two systems have the same name; name them NAME=FILE")
    groups = _documents(options)
    first = references[0]
    for path, lines in [
        *zip(paths, references, strict=True),
        *zip((s.path for s in sources), systems.values(), strict=True),
    ]:
        _same_length(path, lines, paths[0], len(first))
    start = 1 if CANARY.search(first[0]) else 0
    for name, column in groups.items():
        if len(column) != len(first):
            raise InputError(f"{options.documents}: {len(column)} lines ({name}), but {paths[0]} has {len(first)}")
    n_items = len(first) - start
    gold_texts = np.empty(n_items, object)
    gold_texts[:] = list(zip(*(r[start:] for r in references), strict=True))
    return Counts(
        systems=tuple(systems),
        fields={"segments": np.ones((n_items, 1), np.int64), "items": np.ones((n_items, 1), np.int64)},
        n_items=n_items,
        name=options.name,
        groups={name: tuple(column[start:]) for name, column in groups.items()},
        outputs=Outputs(tuple(np.array(lines[start:], object) for lines in systems.values()), gold_texts),
        suggested=("BLEU", "chrF"),
        warnings=(f"{paths[0]}: line 1, a benchmark canary, is left out",) if start else (),
    )


def _lines(path: Path) -> list[str]:
    """Split on LF alone: str.splitlines would also split on U+2028 and U+0085."""
    with open_text(path) as text:
        lines = text.read().split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise empty(path)
    return [line.removesuffix("\r") for line in lines]


def _same_length(path: Path, lines: list[str], reference: Path, n_lines: int) -> None:
    if len(lines) != n_lines:
        raise InputError(f"{path}: {len(lines)} lines, but {reference} has {n_lines}; segments are aligned by line")


def _documents(options: Options) -> dict[str, list[str]]:
    """Read DOCUMENT or DOMAIN tab DOCUMENT, one a line."""
    if options.documents is None:
        return {}
    rows = [line.split("\t") for line in _lines(options.documents)]
    columns = {"document": ["\t".join(row) for row in rows]}
    if all(len(row) == 2 for row in rows):
        columns["domain"] = [row[0] for row in rows]
    return columns
