"""Tagged sentences of a line each, tags alone or behind their words; and files of trees, which are refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import head_lines, open_text
from sigdask.formats.tagging.chunks import TAG
from sigdask.formats.tagging.sentences import Codes, SentenceCollector, TaggedFile

MARKS = ("/", "_", "|")
"""What may stand between a word and its tag."""

TERMINAL = re.compile(r"\([^()\s]+ [^()\s]+\)")
NESTED = re.compile(r"\([^()]*\(")
"""A word below its part of speech, and a node above others, in bracketed trees."""


def mark_of(path: Path, gold: Path) -> str | None:
    """Return what parts words from tags where files hold a sentence a line: "" of tags alone; None of other files."""
    files = [[line.split() for line in _lines(name)] for name in (path, gold)]
    if not all(files) or any(not row for rows in files for row in rows):
        return None
    own, right = files
    widths = {len(row) for row in right}
    if max(widths) < 2 or [len(row) for row in own[: len(right)]] != [len(row) for row in right[: len(own)]]:
        return None
    cells, others = ([cell for row in rows for cell in row] for rows in files)
    if all(map(_are_tags, files)):
        return "" if len(widths) > 1 or min(widths) > 2 else None
    return next((mark for mark in MARKS if _are_marked(cells, others, mark)), None)


def _are_tags(rows: Sequence[Sequence[str]]) -> bool:
    cells = {cell for row in rows for cell in row}
    return all(cell == "O" or TAG.fullmatch(cell) for cell in cells) and "O" in cells


def _are_marked(cells: Sequence[str], others: Sequence[str], mark: str) -> bool:
    """Whether all cells are word, mark and tag, the same words in both files, and tags repeat."""
    if not all(0 < cell.rfind(mark) < len(cell) - 1 for cell in (*cells, *others)):
        return False
    words, tags = zip(*(cell.rsplit(mark, 1) for cell in others), strict=True)
    own = [cell.rsplit(mark, 1)[0] for cell in cells[: len(words)]]
    same = sum(a == b for a, b in zip(own, words, strict=False))
    return 10 * same >= 9 * len(own) and 3 * len({*tags}) <= 2 * len(tags)


def _lines(path: Path) -> list[str]:
    if path.is_dir():
        return []
    lines = head_lines(path)
    return lines[:-1] if lines and not lines[-1] else lines


def tagged_lines(path: Path, mark: str, labels: Codes, tokens: Codes) -> TaggedFile:
    """Read a sentence a line."""
    collector = SentenceCollector(path, labels, tokens)
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            for cell in line.split():
                word, _, tag = cell.rpartition(mark) if mark else ("", "", cell)
                if mark and not (word and tag):
                    raise InputError(f"{path}, line {number}: found {cell!r}, expected word{mark}TAG")
                collector.token(number, tag, None, word if mark else None)
            collector.end()
    return collector.tagged()


def refuse_trees(path: Path) -> None:
    """Refuse a file of bracketed trees, which no format reads."""
    lines = [line.strip() for line in _lines(path) if line.strip()]
    n_trees = sum(TERMINAL.search(line) is not None for line in lines)
    if lines and lines[0].startswith("(") and 5 * n_trees >= 4 * len(lines) and any(map(NESTED.search, lines)):
        raise InputError(
            f"{path}: holds bracketed trees, whose constituents sigdask does not score; compare the matched brackets, "
            "or the score of each sentence, that EVALB prints: a table of one row a sentence and one column a system"
        )
