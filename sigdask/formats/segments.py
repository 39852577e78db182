"""Segments: one a line, LF only, a file a system and one or several reference files; or WMT XML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats import wmt
from sigdask.formats.files import open_text, stem
from sigdask.formats.options import Options, Source
from sigdask.formats.texts import document_groups, same_length, text_counts, text_lines

CANARY = re.compile("canary guid|benchmark canary", re.IGNORECASE)
SUGGESTED = ("BLEU", "chrF")
HEAD = 20
"""Lines looked at to know a format."""


def read_segments(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read translations and references: WMT XML, or one segment a line."""
    if wmt.is_xml(sources[0].path):
        return wmt.read_xml(sources, gold, options, SUGGESTED)
    options.only("segments")
    return read_lines(sources, gold, options, SUGGESTED)


def read_lines(sources: Sequence[Source], gold: Path | None, options: Options, suggested: tuple[str, ...]) -> Counts:
    """Read texts, references and, with `documents`, the document of each line.

    The first line of WMT files, a canary, is left out. Empty lines are outputs.
    """
    paths = (() if gold is None else (gold,)) + options.references
    if not paths:
        raise InputError("format segments: no reference; give --gold FILE")
    references = [text_lines(path) for path in paths]
    systems = {source.name or stem(source.path): text_lines(source.path) for source in sources}
    if len(systems) < len(sources):
        raise InputError("two systems have the same name; name them NAME=FILE")
    first = references[0]
    files = [*paths, *(source.path for source in sources)]
    for path, lines in zip(files, (*references, *systems.values()), strict=True):
        same_length(path, lines, paths[0], len(first))
    groups = document_groups(options, paths[0], len(first))
    start = 1 if CANARY.search(first[0]) else 0
    return text_counts(
        {name: lines[start:] for name, lines in systems.items()},
        [reference[start:] for reference in references],
        options,
        groups={name: column[start:] for name, column in groups.items()},
        suggested=suggested,
        warnings=[f"{paths[0]}: line 1, a benchmark canary, is left out"] if start else [],
    )


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Know WMT XML by its first element, and lines of text beside a reference by their words."""
    path = sources[0].path
    if wmt.is_xml(path):
        return True
    if gold is None or path.suffix.lower() in {".parquet", ".jsonl"}:
        return False
    try:
        return _is_prose(path) and _is_prose(gold) and _n_lines(path) == _n_lines(gold)
    except InputError:
        return False


def _is_prose(path: Path) -> bool:
    """Whether lines hold sentences: no tabs, several words, and not as many in each line."""
    with open_text(path) as text:
        lines = [line.strip() for _, line in zip(range(HEAD), text, strict=False)]
    widths = {len(line.split()) for line in lines if line}
    if not widths or any("\t" in line or line.startswith(("{", "<", "#")) for line in lines):
        return False
    several = len(widths) > 1 or len(lines) == 1
    return " " in lines[0] and several and sum(widths) / len(widths) >= 3


def _n_lines(path: Path) -> int:
    with open_text(path) as text:
        return text.read().rstrip("\n").count("\n")
