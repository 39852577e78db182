"""What the first lines of tagged tokens show: their columns, chunk tags, plain labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import head_lines, open_text
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.tagging.chunks import TAG, are_suffixed
from sigdask.formats.tagging.lines import mark_of, refuse_trees
from sigdask.formats.tagging.records import is_tag_records, sniff_records
from sigdask.formats.tagging.scope import is_ner_column
from sigdask.formats.tagging.sentences import UTTERANCE_END

DOCSTART = "-DOCSTART-"
CONLLU_ID = re.compile(r"\d+(?:[-.]\d+)?")

TOKEN_NAMES = frozenset({"token", "tokens", "word", "words", "form", "text"})
LABEL_NAMES = frozenset({"tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "ne", "entity", "chunk",
                         "chunks", "chunk_tag", "chunk_tags", "pos", "pos_tag", "pos_tags", "upos", "xpos", "gold",
                         "pred", "prediction", "predicted", "gold_label", "gold_tag"})  # fmt: skip
"""Names of columns, in headers."""

CONLLU_NAMES = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
GLOBAL_COLUMNS = re.compile(r"#\s*global\.columns\s*=\s*(.+)")
"""Of CoNLL-U Plus, which names its columns."""

BRACKETED = {
    re.compile(r"\(\d+\)?(\|.*)?|(.*\|)?\(\d+\)?|\d+\)"): "coreference chains",
    re.compile(r"(\([^()*\s]+)+\*\)*|\*\)+"): "arguments or constituents",
}
"""Cells of spans that are opened on one line and closed on another (CoNLL-2005, CoNLL-2012), and what they are."""

Rows = list[list[str]]
"""Cells of tokens; none between sentences."""


def cells_of(line: str) -> list[str]:
    r"""Split a line at tabs, or at runs of blanks where it has none; an empty cell between or after tabs is one.

    Other white space (no-break, ideographic) is part of tokens.

    Examples
    --------
    >>> cells_of("New York\tB-LOC\r\n"), cells_of("\tO\n"), cells_of("the  DT O \n")
    (['New York', 'B-LOC'], ['', 'O'], ['the', 'DT', 'O'])
    >>> cells_of("York\t\n"), cells_of("\t\n")
    (['York', ''], [])
    """
    if not line.strip(" \t\r\n"):
        return []
    if "\t" in line:
        return line.rstrip("\r\n").rstrip(" ").split("\t")
    return [cell for cell in line.rstrip("\r\n").split(" ") if cell]


def trimmed(cells: list[str], width: int) -> list[str]:
    """Return cells without the empty ones that a tab at the end of each line makes, beyond the width of the file."""
    return cells[:width] if len(cells) > width and not any(cells[width:]) else cells


def is_end(cells: list[str], line: str) -> bool:
    """Whether a line ends a sentence."""
    return not cells or cells == [UTTERANCE_END] or not line.strip()


def is_header(cells: Sequence[str]) -> bool:
    """Whether the first row names columns: one of the tokens, and after it one of the labels.

    Examples
    --------
    >>> is_header(["# Word", "POS", "ner_tags"]), is_header(["word", "label"]), is_header(["text", "NN", "O"])
    (True, True, False)
    >>> is_header(["TOKEN", "NE-COARSE-LIT", "MISC"])
    True
    """
    names = [cell.lstrip("# ").lower() for cell in cells]
    labels = not LABEL_NAMES.isdisjoint(names[1:]) or any(map(is_ner_column, cells[1:]))
    return not TOKEN_NAMES.isdisjoint(names[:2]) and labels


def column_names(path: Path) -> tuple[str, ...]:
    """Return the names of a file's columns: of its header, of CoNLL-U Plus or CoNLL-U; none where it has none."""
    lines = [line for line in head_lines(path) if line.strip()]
    if lines and (match := GLOBAL_COLUMNS.match(lines[0])):
        return tuple(match[1].split())
    first = next((line for line in lines if is_header(cells_of(line)) or not line.startswith("#")), "")
    if is_header(cells_of(first)):
        return tuple(cell.lstrip("# ") for cell in cells_of(first))
    return CONLLU_NAMES if is_conllu(path) else ()


def width_of(path: Path) -> tuple[int, int]:
    """Return the number of columns and the line that shows it: the first that is surely a token's.

    Where that line ends in a tab, a later one that fills the cell after it shows that it is one.
    """
    comment, first, full, bare = (0, 0), 0, 0, 0
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            cells = cells_of(line)
            if is_end(cells, line) or line.startswith(DOCSTART) or (not first and is_header(cells)):
                continue
            if line.startswith("#"):
                comment = comment if comment[0] else (len(cells), number)
                continue
            filled = n_filled(cells)
            if not first:
                first, full, bare = number, len(cells), filled
            if filled >= full or full == bare:
                return full, first
    return (bare, first) if first else comment


def n_filled(cells: Sequence[str]) -> int:
    """Return how many cells there are up to the last that is not empty."""
    return next((n for n in range(len(cells), 0, -1) if cells[n - 1]), 0)


def is_conllu(path: Path) -> bool:
    """Whether a file's rows have the ten columns of CoNLL-U, the first an id; a header may stand before."""
    lines = (line for line in head_lines(path)[:200] if line.strip() and not line.startswith("#"))
    rows = [line.split("\t") for line in lines]
    rows = rows[1:] if rows and is_header(rows[0]) else rows
    return bool(rows) and all(len(row) == 10 and CONLLU_ID.fullmatch(row[0]) for row in rows)


def place_of(option: str, text: str) -> int:
    """Return a column as an index: 1 is the first, -1 the last."""
    if not re.fullmatch(r"-?[1-9]\d{0,5}", text):
        raise InputError(f"format conll: {option} = {text!r} must be a column's number: 1, 2, ... or -1 for the last")
    return int(text) - 1 if int(text) > 0 else int(text)


def tag_columns(path: Path) -> list[str]:
    """Return the numbers of the last columns that hold nothing but tags."""
    rows = [cells for cells in _rows(path) if cells]
    columns: list[str] = []
    for place, column in reversed(list(enumerate(zip(*rows, strict=False), start=1))):
        if not _are_tags(column):
            break
        columns.insert(0, str(place))
    return columns


def _are_tags(cells: Sequence[str]) -> bool:
    """Whether cells are tags, some with a type."""
    plain = all(cell == "O" or TAG.fullmatch(cell) for cell in cells)
    return any("-" in cell for cell in cells) and (plain or are_suffixed(set(cells)))


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Say whether the first file, or the gold file, looks like tagged tokens."""
    path = sources[0].path
    for file in (path, *([gold] if gold is not None else [])):
        refuse_trees(file)
    if is_tag_records(path):
        return sniff_records(path, gold, options)
    if gold is not None and mark_of(path, gold) is not None:
        return True
    if _are_tagged(path) or (gold is not None and _are_tagged(gold)):
        return True
    return gold is not None and not path.is_dir() and _are_the_same_tokens(_rows(path), _rows(gold))


def _are_tagged(path: Path) -> bool:
    """Say whether a file has equal columns, tags in the last, and empty lines between."""
    if is_conllu(path) or any(map(is_ner_column, column_names(path))):
        return True
    rows = _rows(path)
    breaks = sum(not row or row == [UTTERANCE_END] for row in rows[:-2])
    rows = [row for row in rows if row and row != [UTTERANCE_END]]
    if not rows or len({len(row) for row in rows}) != 1:
        return False
    last = [row[-1] for row in rows if row[-1]]
    chunks = _are_tags(last)
    bare = breaks > 0 and all(cell == "O" or TAG.fullmatch(cell) for cell in last)
    return (chunks or bare) and (len(rows[0]) > 1 or breaks > 0)


def plain_labels(sources: Sequence[Source], gold: Path | None, options: Options) -> dict[str, str]:
    """Return the options that read plain labels (parts of speech), where gold labels are no chunk tags.

    Nothing where a scheme is asked for, and where O stands among the labels: they may be types of chunks. Of
    several columns the last is compared in which a system differs.
    """
    if gold is None or "scheme" in options.own:
        return {}
    files = [[row for row in _rows(path) if row] for path in (gold, *(source.path for source in sources))]
    right, *others = [[list(column) for column in zip(*rows, strict=False)] for rows in files]
    if not right or not all(others):
        return {}
    alike = all(len(columns) == len(right) for columns in others)
    chosen = (options.own.get("column") or options.prediction_column or "").split("+")[0]
    of_gold = options.own.get("gold-column") or options.gold_column or (chosen if alike else "-1")
    column = place_of("gold-column", of_gold) if of_gold else _differing(right, others)
    if not -len(right) <= column < len(right) or not are_plain(right[column]):
        return {}
    ids = len(right) > 2 and all(map(str.isdecimal, right[0]))
    number = str(column + 1 if column >= 0 else column)
    _refuse_brackets(gold, number, right[column])
    columns = {"gold-column": number} if of_gold else {"column": number, "gold-column": number}
    return {"scheme": "raw", "tokens": "2" if ids else "1", **columns, **options.own}


def _refuse_brackets(path: Path, number: str, cells: Sequence[str]) -> None:
    """Refuse spans that are written with brackets over several lines, which no metric of tokens scores."""
    what = next((what for pattern, what in BRACKETED.items() if any(map(pattern.fullmatch, cells))), None)
    if what is not None:
        raise InputError(
            f"{path}: column {number} holds {what} in brackets, which sigdask does not score; take the score of each "
            "document or sentence from the task's own scorer, or choose another column with conll:column=N"
        )


def are_plain(labels: Sequence[str]) -> bool:
    """Whether labels are neither tags of chunks nor types of them beside O."""
    typed = any("-" in label and TAG.fullmatch(label) for label in labels)
    return not (typed or "O" in labels or all(map(TAG.fullmatch, labels)) or _are_tags(labels))


def _differing(right: Sequence[Sequence[str]], others: Sequence[Sequence[Sequence[str]]]) -> int:
    """Return the last column, after the first, in which some file differs; the last one where none does."""
    for column in range(len(right) - 1, 0, -1):
        if any(a != b for own in others for a, b in zip(right[column], own[column], strict=False)):
            return column
    return len(right) - 1


def _rows(path: Path) -> Rows:
    """Return the first rows without comments and header, as wide as the file."""
    rows = [cells_of(line) for line in head_lines(path) if not line.startswith(("#", DOCSTART))]
    first = next((k for k, cells in enumerate(rows) if cells), None)
    if first is None:
        return rows
    if is_header(rows[first]):
        del rows[first]
    filled = [cells for cells in rows if cells]
    full = len(filled[0]) if filled else 0
    bare = n_filled(filled[0]) if filled else 0
    width = full if any(n_filled(cells) >= full for cells in filled) else bare
    return [trimmed(cells, width) for cells in rows]


def _are_the_same_tokens(one: Rows, other: Rows) -> bool:
    """Whether two files have nearly the same tokens in their first columns, equal columns, and the same sentences.

    A file without any end of a sentence among the other's tokens is one that lacks them.
    """
    if sum(not row for row in one[:-1]) == 0 or sum(not row for row in other[:-1]) == 0:
        marked = any(not row for row in one[:-1]) or any(not row for row in other[:-1])
        rows = [[row for row in rows if row] for rows in (one, other)]
        return marked and 2 * min(map(len, rows)) > max(map(len, rows)) and _are_alike(*rows)
    shared = min(len(one), len(other))
    while shared and not (one[shared - 1] and other[shared - 1]):
        shared -= 1
    ends = all(bool(a) == bool(b) for a, b in zip(one[:shared], other[:shared], strict=True))
    return any(not row for row in one[:shared]) and ends and _are_alike(one[:shared], other[:shared])


def _are_alike(one: Rows, other: Rows) -> bool:
    pairs = list(zip(one, other, strict=False))
    widths = {len(row) for pair in pairs for row in pair} - {0}
    same = sum(a[:1] == b[:1] for a, b in pairs)
    return len(widths) == 1 and min(widths) > 1 and 10 * same >= 9 * len(pairs)
