"""Segments: one a line, LF only, a file a system and one or several reference files; or WMT XML and SGML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import open_text
from sigdask.formats.reading.options import Options, Source, system_names
from sigdask.formats.texts import sgml, wmt
from sigdask.formats.texts.parallel import evened, text_counts, text_lines

CANARY = re.compile("canary guid|benchmark canary", re.IGNORECASE)
SUGGESTED = ("BLEU", "chrF")
HEAD = 20
"""Lines looked at to know a format."""


def read_segments(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read translations and references: WMT XML or SGML, or one segment a line."""
    lines_beside = gold is not None and gold.exists() and not wmt.is_marked_up(gold)
    if wmt.is_xml(sources[0].path) or (sgml.is_sgml(sources[0].path) and not lines_beside):
        return wmt.read_wmt(sources, gold, options, SUGGESTED)
    options.only("segments")
    return read_lines(sources, gold, options, SUGGESTED)


def read_lines(sources: Sequence[Source], gold: Path | None, options: Options, suggested: tuple[str, ...]) -> Counts:
    """Read texts, references and, with `documents`, the document of each line.

    The first line of WMT files, a canary, is left out. Empty lines are outputs.
    """
    paths = (() if gold is None else (gold,)) + options.references
    if not paths:
        raise InputError("format segments: no reference; give --gold FILE")
    names = system_names(sources)
    beside = () if options.documents is None else (options.documents,)
    files = [*paths, *(source.path for source in sources), *beside]
    lines = evened([(path, _lines(path)) for path in files])
    start = 1 if CANARY.search(lines[0][0]) else 0
    parts = [part[start:] for part in lines]
    return text_counts(
        dict(zip(names, parts[len(paths) :], strict=False)),
        parts[: len(paths)],
        options,
        groups=_documents(parts[-1]) if beside else _documents_of(files),
        suggested=suggested,
        warnings=[f"{paths[0]}: line 1, a benchmark canary, is left out"] if start else [],
    )


def _lines(path: Path) -> list[str]:
    """Return the segments of a file: its lines, or those of SGML in their order."""
    if sgml.is_sgml(path):
        return [text for part in sgml.read_parts(path) for text in part.texts.values()]
    return text_lines(path)


def _documents(lines: list[str]) -> dict[str, list[str]]:
    """Read DOCUMENT or DOMAIN tab DOCUMENT, one a line."""
    rows = [line.split("\t") for line in lines]
    columns = {"document": lines}
    if all(len(row) == 2 for row in rows):
        columns["domain"] = [row[0] for row in rows]
    return columns


def _documents_of(files: Sequence[Path]) -> dict[str, list[str]]:
    """Return the document of each segment where one of the files says it."""
    path = next(filter(sgml.is_sgml, files), None)
    return {} if path is None else {"document": [part.document for part in sgml.read_parts(path) for _ in part.texts]}


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Know WMT XML and SGML by their first element, and lines of text beside a reference by their words."""
    path = sources[0].path
    if wmt.is_marked_up(path):
        return True
    if gold is None or path.suffix.lower() in {".parquet", ".jsonl"}:
        return False
    try:
        if sgml.is_sgml(gold):
            return _is_prose(path)
        return _is_prose(path) and _is_prose(gold)
    except InputError:
        return False


def _is_prose(path: Path) -> bool:
    """Whether lines hold sentences: no tabs, several words, and not as many in each line."""
    with open_text(path) as text:
        lines = [line.strip() for _, line in zip(range(HEAD), text, strict=False)]
    lines = [line for line in lines if line]
    if any("\t" in line or line.startswith(("{", "<", "#")) for line in lines):
        return False
    widths = [_n_words(line) for line in lines]
    several = len({*widths}) > 1 or len(lines) == 1
    return several and widths[0] > 0 and sum(widths) >= 3 * len(lines)


def _n_words(line: str) -> int:
    """Count what looks like words; in scripts without spaces, from Thai on, a character is one."""
    return sum(word.strip(".,;:!?()\"'„“”‘’»«-").isalpha() for word in line.split()) + sum(c >= "\u0e00" for c in line)
