"""Word pairs: each word with its morphs, its form or its phones, tab-separated.

Right morphs are those of a longest common subsequence with the gold morphs, as in the scorer of the SIGMORPHON 2022
shared task. The edit distance is that of the characters of the morphs joined by `|`. With `level=sentence` the rows are
sentences: blanks separate words, ` @@` separates morphs, and words are compared one by one, as in that scorer at its
level "sentence". Otherwise both separate morphs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from sigdask.counts import Counts, Outputs
from sigdask.counts.checks import canonicalize
from sigdask.counts.fields import to_object_array
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import align, reorder_column
from sigdask.formats.reading.files import check_filled, enumerate_lines, read_head_lines
from sigdask.formats.reading.listings import read_by_system
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.tables import FileTable
from sigdask.formats.spans.matching import compute_morph_fields
from sigdask.interface import spell
from sigdask.text import format_count

WORD_NAMES = ("word", "form", "lemma", "input", "source", "grapheme")
TARGET_NAMES = ("segmentation", "segments", "segmented", "morphs", "morphemes", "target", "output", "prediction",
                "gold", "form", "inflected", "phonemes", "pronunciation")  # fmt: skip
MORPH_MARK = " @@"
"""Mark before each morph except the first."""

BPE_MARK = "@@ "
"""Mark after each morph except the last, as byte-pair encoders write it."""


def read_pairs(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read words and their morphs, from a gold file and one file per system."""
    assert gold is not None
    gold_rows = _read_file(options, gold)
    if "separator" not in options.own:
        _check_gold(gold_rows, options)
    files = read_by_system(sources, partial(_read_file, options))
    tables = [gold_rows, *files.values()]
    words = [list(table.columns.get("word", ())) for table in tables]
    if options.align != "position" and all(words) and any(other != words[0] for other in words):
        _, orders, warnings = align(gold_rows, tables[1:], options.with_columns(item="word"), "word")
    elif options.align == "id" and not all(words):
        remedy = f"write word TAB morphs, or add {spell('align', 'position')}"
        raise InputError(f"{spell('align', 'id')} needs the words in every file", file=gold, remedy=remedy)
    else:
        _, orders, warnings = align(gold_rows, tables[1:], replace(options, align="position"))
        warnings += _describe_other_words(tables, words)
    gold_targets = list(gold_rows.columns["target"])
    columns = [
        reorder_column(file.columns["target"], order).tolist()
        for file, order in zip(files.values(), orders, strict=True)
    ]
    categories = tuple(gold_rows.columns["category"])  # as text: 001 keeps its zeros
    return Counts(
        systems=tuple(files),
        fields=compute_morph_fields(gold_targets, columns, sentences=options.own.get("level") == "sentence"),
        n_items=len(gold_targets),
        ids=tuple(words[0]) if words[0] and len({*map(canonicalize, words[0])}) == len(words[0]) else None,
        groups={"category": categories} if all(categories) else {},
        outputs=Outputs(tuple(map(to_object_array, columns)), to_object_array(gold_targets)),
        suggested=("f1", "accuracy", "edit-distance"),
        warnings=tuple(warnings),
    )


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Return whether the gold file has a header of words and morphs, or marks ` @@` of morphs."""
    if gold is None or options.own or sources[0].path.is_dir() or gold.is_dir():
        return False
    lines = [line.split("\t") for line in read_head_lines(gold) if line.strip()]
    if not lines or not all(2 <= len(cells) <= 4 for cells in lines):
        return False
    has_header = any(_is_header(lines[0], k) for k in range(1, len(lines[0])))
    return has_header or any(MORPH_MARK in cells[1] or BPE_MARK in cells[1] for cells in lines)


def _check_gold(gold_rows: FileTable, options: Options) -> None:
    """Raise if rows may be words or sentences, or the morphs may be in several columns."""
    has_marks = any(gold_rows.columns["marks"])
    n = sum(" " in word.strip() for word in gold_rows.columns.get("word", ()))
    problem, choices = "", [""]
    if n and has_marks and "level" not in options.own:
        rows = format_count(gold_rows.n_rows, "row")
        problem = f"the first column has blanks in {n:,} of {rows}: are rows words or sentences?"
        choices = ["level=word", "level=sentence"]
    elif not has_marks and "column" not in options.own and any(gold_rows.columns["category"]):
        problem, choices = "which column has the morphs or forms?", ["column=2", "column=3"]
    if problem:
        ways = " or ".join(spell("format", f"pairs:{choice}") for choice in choices)
        raise InputError(problem, file=gold_rows.path, remedy=f"choose {ways}")


def _read_file(options: Options, path: Path) -> FileTable:
    """Read the words, if there are several columns, and the morphs of each, joined by `|`."""
    text = options.own.get("column") or "2"
    if not re.fullmatch(r"\d{1,18}", text) or int(text) < 2:
        raise InputError(f"format pairs: column = {text!r}: must be a number of 2 or more")
    target = int(text) - 1
    columns: dict[str, list[str]] = {"word": [], "target": [], "category": [], "marks": []}
    lines: list[int] = []
    width = 0
    for number, line in enumerate_lines(path):
        cells = line.rstrip("\r\n").split("\t")
        if cells == [""] or (not width and len(cells) > target and _is_header(cells, target)):
            continue
        width = width or len(cells)
        if 1 < width <= target or len(cells) < min(width, target + 1):
            found = format_count(len(cells), "column")
            expected = f"at least {target + 1}: word TAB morphs"
            raise InputError(file=path, line=number, found=found, expected=expected)
        morphs = cells[target if width > 1 else 0]
        columns["word"].append(cells[0])
        columns["target"].append(sys.intern(_join_morphs(morphs, options)))
        columns["category"].append((cells[1:target] + cells[target + 1 :] + [""])[0])
        columns["marks"].append(MORPH_MARK if MORPH_MARK in morphs or BPE_MARK in morphs else "")
        lines.append(number)
    check_filled(path, lines)
    if width == 1:
        del columns["word"]
    return FileTable(path, columns, lines)


def _is_header(cells: list[str], target: int) -> bool:
    return cells[0].strip().lower() in WORD_NAMES and cells[target].strip().lower() in TARGET_NAMES


def _join_morphs(text: str, options: Options) -> str:
    """Join a word's morphs by `|`; they are separated by ` @@`, `@@ `, blanks, `|` or the separator.

    In a sentence blanks part words and are kept.

    Examples
    --------
    >>> _join_morphs("un @@break @@able", Options()), _join_morphs("un+break", Options(own={"separator": "+"}))
    ('un|break|able', 'un|break')
    >>> _join_morphs("un @@able", Options(own={"separator": "space"}))
    'un|@@able'
    >>> _join_morphs("the dog @@s", Options(own={"level": "sentence"}))
    'the dog|s'
    """
    separator = options.own.get("separator")
    if separator is not None and separator != "@@":
        return text.replace(separator if separator not in {"", "space"} else " ", "|")
    joined = text.replace(MORPH_MARK, "|").replace(BPE_MARK, "|")
    if options.own.get("level") == "sentence":
        return " ".join(joined.split())
    return joined if separator else joined.replace(" ", "|")


def _describe_other_words(tables: Sequence[FileTable], words: Sequence[Sequence[str]]) -> list[str]:
    """Return a note on each file whose words are not those of gold, although rows are aligned by position."""
    notes: list[str] = []
    for table, own in zip(tables, words, strict=True):
        if n := sum(a != b for a, b in zip(own, words[0], strict=False)):
            problem = f"{n:,} of {table.n_rows:,} words are not those of {tables[0].path}"
            notes.append(ScopeNote(f"{table.path}: {problem}; rows are aligned by position nevertheless"))
    return notes
