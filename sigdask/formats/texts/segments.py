"""Segments, one per line (LF only), in a file per system and reference files; or WMT XML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.texts import wmt
from sigdask.formats.texts.parallel import build_text_counts, read_text_lines
from sigdask.formats.texts.tabs import select_columns
from sigdask.interface import spell
from sigdask.text import format_count

CANARY = re.compile("canary guid|benchmark canary", re.IGNORECASE)
SUGGESTED = ("BLEU", "chrF")


def read_segments(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read translations and references: WMT XML, or one segment per line."""
    if wmt.is_xml(sources[0].path):
        return wmt.read_wmt(sources, gold, options, SUGGESTED)
    return read_lines(sources, gold, options, "segments", SUGGESTED)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first file is WMT XML, by its first element. Lines of text have no signature."""
    return wmt.is_xml(sources[0].path)


def read_lines(
    sources: Sequence[Source], gold: Path | None, options: Options, format_: str, suggested: tuple[str, ...]
) -> Counts:
    """Read texts, references and, with `documents`, the document of each line.

    The first line of WMT files, a canary, is left out. Empty lines are outputs.
    """
    if gold is None:
        raise InputError(f"format {format_}: no reference", remedy=f"give {spell('gold', 'FILE')} (the references)")
    documents = [options.documents] if options.documents else []
    paths = [gold, *options.references, *(source.path for source in sources), *documents]
    lines = [read_text_lines(path) for path in paths]
    for path, own in zip(paths, lines, strict=True):
        if len(own) != len(lines[0]):
            problem = f"{format_count(len(own), 'line')}, but {gold} has {len(lines[0]):,}; lines are segments"
            raise InputError(problem, file=path, remedy="give each file one line for each segment")
    notes = []
    if CANARY.search(lines[0][0]):
        notes.append(f"{gold}: line 1, a benchmark canary, is left out")
        lines = [own[1:] for own in lines]
    document_lines = lines.pop() if documents else None
    n_references = 1 + len(options.references)
    files = list(zip(paths, lines, strict=False))
    references, outputs = select_columns(format_, files[:n_references], files[n_references:], options)
    return build_text_counts(
        dict(zip(list_system_names(sources), outputs, strict=True)),
        references,
        options,
        groups={} if document_lines is None else _parse_documents(document_lines),
        suggested=suggested,
        warnings=notes,
    )


def _parse_documents(lines: list[str]) -> dict[str, list[str]]:
    """Parse lines of DOCUMENT, or of DOMAIN, tab and DOCUMENT."""
    rows = [line.split("\t") for line in lines]
    columns = {"document": lines}
    if all(len(row) == 2 for row in rows):
        columns["domain"] = [row[0] for row in rows]
    return columns
