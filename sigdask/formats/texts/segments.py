"""Segments, one per line (LF only), in a file per system and reference files; or WMT XML and SGML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.texts import wmt
from sigdask.formats.texts.parallel import build_text_counts, read_text_lines, trim_parallel_lines
from sigdask.formats.texts.tabs import select_columns
from sigdask.interface import spell

CANARY = re.compile("canary guid|benchmark canary", re.IGNORECASE)
SUGGESTED = ("BLEU", "chrF")
HEADER = re.compile(
    r'"?(text|sentence|segment|reference|ref|hypothesis|hyp|translation|target|prediction|output|summary)s?"?',
    re.IGNORECASE,
)
"""Pattern of the first line of a table of one column."""

N_HEAD_LINES = 20
"""Lines read to recognize a format."""


def read_segments(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read translations and references: WMT XML or SGML, or one segment per line."""
    has_line_gold = gold is not None and gold.exists() and not (wmt.is_xml(gold) or wmt.is_sgml(gold))
    if wmt.is_xml(sources[0].path) or (wmt.is_sgml(sources[0].path) and not has_line_gold):
        return wmt.read_wmt(sources, gold, options, SUGGESTED)
    return read_lines(sources, gold, options, SUGGESTED)


def read_lines(sources: Sequence[Source], gold: Path | None, options: Options, suggested: tuple[str, ...]) -> Counts:
    """Read texts, references and, with `documents`, the document of each line.

    The first line of WMT files, a canary, is left out. Empty lines are outputs.
    """
    paths = (() if gold is None else (gold,)) + options.references
    if not paths:
        raise InputError(
            "format segments: no reference", remedy=f"give {spell('gold', 'FILE')} (the reference translations)"
        )
    names = list_system_names(sources)
    files = [*paths, *(source.path for source in sources), *([options.documents] if options.documents else [])]
    lines = trim_parallel_lines([(path, _read_file_segments(path)) for path in files])
    documents = lines.pop() if options.documents else None
    start = 1 if CANARY.search(lines[0][0]) else 0
    format_ = "segments" if suggested == SUGGESTED else "speech"
    n_references, texts = select_columns(
        format_, len(paths), [(path, own[start:]) for path, own in zip(files, lines, strict=False)], options
    )
    return build_text_counts(
        dict(zip(names, texts[n_references:], strict=True)),
        texts[:n_references],
        options,
        groups=_find_documents(files) if documents is None else _parse_documents(documents[start:]),
        suggested=suggested,
        warnings=[
            *([f"{paths[0]}: line 1, a benchmark canary, is left out"] if start else []),
            *(note for path, own in zip(files, lines, strict=False) for note in _describe_lines(path, own)),
            *(_describe_tokens(paths[0], [text or "" for text in texts[0]], options) if "BLEU" in suggested else ()),
        ],
    )


def _describe_lines(path: Path, texts: Sequence[str]) -> Iterator[ScopeNote]:
    """Yield a note on a first line that may be a header."""
    if HEADER.fullmatch(texts[0]):
        yield ScopeNote(f"{path}: line 1, {texts[0]!r}, is scored as a segment; if it is a header, remove it")


def _describe_tokens(path: Path, references: Sequence[str], options: Options) -> Iterator[ScopeNote]:
    """Yield a note on references in a script without spaces, of which BLEU would take each line for a word."""
    text = "".join(references[:N_HEAD_LINES])
    is_bleu = not options.metrics or "BLEU" in options.metrics
    n_letters = sum("\u0e00" <= c < "\u0f00" or "\u3040" <= c < "\ua000" for c in text)
    if is_bleu and 2 * n_letters > len(text) and n_letters > 9 * text.count(" "):
        yield ScopeNote(
            f"{path}: this script has no spaces between words, but BLEU needs words. Choose BLEU:tokenize=zh, "
            "ja-mecab or char, or chrF"
        )


def _read_file_segments(path: Path) -> list[str]:
    """Return the segments of a file: its lines, or the segments of SGML in their order."""
    if wmt.is_sgml(path):
        return [text for document in wmt.iter_documents(path) for text in document.texts.values()]
    return read_text_lines(path)


def _parse_documents(lines: list[str]) -> dict[str, list[str]]:
    """Parse lines of DOCUMENT, or of DOMAIN, tab and DOCUMENT."""
    rows = [line.split("\t") for line in lines]
    columns = {"document": lines}
    if all(len(row) == 2 for row in rows):
        columns["domain"] = [row[0] for row in rows]
    return columns


def _find_documents(files: Sequence[Path]) -> dict[str, list[str]]:
    """Return the document of each segment if one of the files names documents."""
    path = next(filter(wmt.is_sgml, files), None)
    if path is None:
        return {}
    return {"document": [document.document for document in wmt.iter_documents(path) for _ in document.texts]}


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first file is WMT XML or SGML, by its first element. Lines of text have no signature."""
    return wmt.is_xml(sources[0].path) or wmt.is_sgml(sources[0].path)
