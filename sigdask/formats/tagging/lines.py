"""Read tagged sentences with one line each: tags alone, or words with their tags attached."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import open_text, read_head_lines
from sigdask.formats.tagging.chunks import TAG
from sigdask.formats.tagging.sentences import Codes, SentenceCollector, TaggedFile

MARKS = ("/", "_", "|")
"""What may stand between a word and its tag."""

TERMINAL = re.compile(r"\([^()\s]+ [^()\s]+\)")
NESTED = re.compile(r"\([^()]*\(")
"""A word below its part of speech, and a node above others, in bracketed trees."""


def find_mark(path: Path, gold: Path) -> str | None:
    """Return the mark between word and tag in files of one sentence per line, "" for tags alone, else None."""
    files = [[line.split() for line in _read_head(name)] for name in (path, gold)]
    if not all(files) or any(not row for rows in files for row in rows):
        return None
    system_rows, gold_rows = files
    widths = {len(row) for row in gold_rows}
    if max(widths) < 2 or [len(row) for row in system_rows[: len(gold_rows)]] != [
        len(row) for row in gold_rows[: len(system_rows)]
    ]:
        return None
    system_cells, gold_cells = ([cell for row in rows for cell in row] for rows in files)
    if all(map(_are_tags, files)):
        return "" if len(widths) > 1 or min(widths) > 2 else None
    return next((mark for mark in MARKS if _are_marked(system_cells, gold_cells, mark)), None)


def _are_tags(rows: Sequence[Sequence[str]]) -> bool:
    cells = {cell for row in rows for cell in row}
    return all(cell == "O" or TAG.fullmatch(cell) for cell in cells) and "O" in cells


def _are_marked(cells: Sequence[str], gold_cells: Sequence[str], mark: str) -> bool:
    """Return whether cells are word, mark and tag, with the same words in both files and repeated tags."""
    if not all(0 < cell.rfind(mark) < len(cell) - 1 for cell in (*cells, *gold_cells)):
        return False
    words, tags = zip(*(cell.rsplit(mark, 1) for cell in gold_cells), strict=True)
    system_words = [cell.rsplit(mark, 1)[0] for cell in cells[: len(words)]]
    n_same = sum(a == b for a, b in zip(system_words, words, strict=False))
    return 10 * n_same >= 9 * len(system_words) and 3 * len({*tags}) <= 2 * len(tags)


def _read_head(path: Path) -> list[str]:
    if path.is_dir():
        return []
    lines = read_head_lines(path)
    return lines[:-1] if lines and not lines[-1] else lines


def read_tagged_lines(path: Path, mark: str, labels: Codes, tokens: Codes) -> TaggedFile:
    """Read a file with one sentence per line."""
    collector = SentenceCollector(path, labels, tokens)
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            for cell in line.split():
                word, _, tag = cell.rpartition(mark) if mark else ("", "", cell)
                if mark and not (word and tag):
                    raise InputError(f"{path}, line {number}: found {cell!r}, expected word{mark}TAG")
                collector.add_token(number, tag, None, word if mark else None)
            collector.end_sentence()
    return collector.build_file()


def check_no_trees(path: Path) -> None:
    """Raise for a file of bracketed trees, which no format reads."""
    lines = [line.strip() for line in _read_head(path) if line.strip()]
    n_trees = sum(TERMINAL.search(line) is not None for line in lines)
    if lines and lines[0].startswith("(") and 5 * n_trees >= 4 * len(lines) and any(map(NESTED.search, lines)):
        raise InputError(
            f"{path}: holds bracketed trees, whose constituents sigdask does not score; compare the matched brackets, "
            "or the score of each sentence, that EVALB prints: a table of one row a sentence and one column a system"
        )
