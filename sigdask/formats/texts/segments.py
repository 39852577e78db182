"""Segments, one per line (LF only), in a file per system and reference files; or WMT XML.

Lines with tabs may hold a column of text, or several references, or tabs may be part of the text. Nothing of this is
guessed: files in which most lines have tabs are refused until the user chooses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.texts import wmt
from sigdask.formats.texts.parallel import Texts, build_text_counts, read_text_lines
from sigdask.interface import spell
from sigdask.text import format_count

CANARY = re.compile("canary guid|benchmark canary", re.IGNORECASE)
SUGGESTED = ("BLEU", "chrF")
ALL = "all"

Files = Mapping[Path, Sequence[str]]
"""Lines by file."""


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
    references, systems = [gold, *options.references], [source.path for source in sources]
    documents = [options.documents] if options.documents else []
    files = {path: read_text_lines(path) for path in (*references, *systems, *documents)}
    for path, lines in files.items():
        if len(lines) != len(files[gold]):
            problem = f"{format_count(len(lines), 'line')}, but {gold} has {len(files[gold]):,}; lines are segments"
            raise InputError(problem, file=path, remedy="give each file one line for each segment")
    notes = []
    if CANARY.search(files[gold][0]):
        notes.append(f"{gold}: line 1, a benchmark canary, is left out")
        files = {path: lines[1:] for path, lines in files.items()}
    _check_tabs(format_, files, references, systems, options)
    column = options.own.get("column")
    if options.own.get("references") == "tab":
        gold_texts = [texts for path in references for texts in _split_references(files[path])]
    else:
        gold_texts = [_take_column(path, files[path], column) for path in references]
    outputs = [_take_column(path, files[path], column) for path in systems]
    return build_text_counts(
        dict(zip(list_system_names(sources), outputs, strict=True)),
        gold_texts,
        options,
        groups=_parse_documents(files[documents[0]]) if documents else {},
        suggested=suggested,
        warnings=notes,
    )


def _parse_documents(lines: Sequence[str]) -> dict[str, Sequence[str]]:
    """Parse lines of DOCUMENT, or of DOMAIN, tab and DOCUMENT."""
    rows = [line.split("\t") for line in lines]
    has_domains = all(len(row) == 2 for row in rows)
    return {"document": lines, **({"domain": [row[0] for row in rows]} if has_domains else {})}


def has_tabs(lines: Sequence[str]) -> bool:
    """Return whether most lines with text have tabs."""
    filled = [line for line in lines if line.strip()]
    return 2 * sum("\t" in line for line in filled) > len(filled)


def _check_tabs(
    format_: str, files: Files, references: Sequence[Path], systems: Sequence[Path], options: Options
) -> None:
    """Raise for lines with tabs, with the ways to read them, unless the user chose one of them.

    The option column=N takes the Nth column of files with tabs, column=all the whole lines. references=tab takes each
    column of the files of references as one reference.
    """
    column, are_split = options.own.get("column"), "references" in options.own
    if column is not None and not re.fullmatch(rf"[1-9]\d*|{ALL}", column):
        raise InputError(f"format {format_}: column is a number from 1 on, or {ALL}", found=repr(column))
    if are_split and not any("\t" in line for path in references for line in files[path]):
        raise InputError("has no tabs between references", file=references[0], remedy="leave out references=tab")
    unclear = [path for path in (*([] if are_split else references), *systems) if has_tabs(files[path])]
    if not unclear or column is not None:
        return
    prefix = f"{format_}:references=tab," if are_split else f"{format_}:"
    ways = {f"{prefix}column=1": "the text is column 1; other columns have other numbers"}
    ways[f"{prefix}column={ALL}"] = "the whole line is the text"
    if format_ == "segments" and unclear[0] in references:
        rest = "" if {*unclear} <= {*references} else ",column=1"
        ways[f"{format_}:references=tab{rest}"] = f"each column is a reference, as files of {spell('references')} are"
    example = next(filter(str.strip, files[unclear[0]]))
    raise InputError(
        f"its lines have tabs, which may separate several texts, such as {example[:80]!r}",
        file=unclear[0],
        remedy="choose " + ", or ".join(f"{spell('format', way)} ({meaning})" for way, meaning in ways.items()),
    )


def _take_column(path: Path, lines: Sequence[str], column: str | None) -> Texts:
    """Return a column of a file with tabs, or the whole lines."""
    if column in {None, ALL} or not has_tabs(lines):
        return lines
    k = int(str(column)) - 1
    rows = [line.split("\t") for line in lines]
    for number, row in enumerate(rows, start=1):
        if len(row) <= k and any(row):
            raise InputError(file=path, line=number, found=f"{len(row)} columns", expected=f"{k + 1}, as column= says")
    return [row[k] if len(row) > k else "" for row in rows]


def _split_references(lines: Sequence[str]) -> list[Texts]:
    """Return one list for each reference; a line may have fewer references than others."""
    rows = [line.split("\t") for line in lines]
    n = max(map(len, rows))
    return [[(row[k] if len(row) > k and (row[k].strip() or not k) else None) for row in rows] for k in range(n)]
