"""Columns of tagged files: how lines are split, which lines name columns, and the line patterns of the format.

A file is recognised by its first lines: tokens with chunk tags in the last column, columns with an empty line between
sentences, or one sentence on each line (tags alone, or words with their tags attached).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile
from pathlib import Path

from sigdask.counts.factors import Codes
from sigdask.errors import InputError
from sigdask.formats.reading.files import count_filled, enumerate_lines, read_head_lines
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.tagging.chunks import SUFFIXED, are_suffixed, is_chunk_tag
from sigdask.formats.tagging.records import is_json_file, sniff_records
from sigdask.formats.tagging.sentences import UTTERANCE_END, SentenceCollector, TaggedFile
from sigdask.interface import spell

DOCSTART = "-DOCSTART-"
CONLLU_ID = re.compile(r"\d+(?:[-.]\d+)?")
TOKEN_NAMES = frozenset({"token", "tokens", "word", "words", "form", "text"})
GOLD_NAMES = frozenset({"gold", "gold_label", "gold_tag"})
LABEL_NAMES = GOLD_NAMES | frozenset({"tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "ne", "entity",
                                      "chunk", "chunks", "chunk_tag", "chunk_tags", "pos", "pos_tag", "pos_tags",
                                      "upos", "xpos", "pred", "prediction", "predicted"})  # fmt: skip
CONLLU_NAMES = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
CONLLU_HEAD = CONLLU_NAMES.index("HEAD")
GLOBAL_COLUMNS = re.compile(r"#\s*global\.columns\s*=\s*(.+)")
"""Pattern of the line that names the columns of CoNLL-U Plus."""

NER_PREFIX = "NE-"
"""Prefix of label columns in historical named-entity files (HIPE): NE-COARSE-LIT, NE-FINE-LIT."""

TAG_METRICS = re.compile(r"(?i)(macro-|micro-)?(accuracy|precision|recall|f1?)\b(?!-).*")

BRACKETED = {
    re.compile(r"\(\d+\)?(\|.*)?|(.*\|)?\(\d+\)?|\d+\)"): "coreference chains",
    re.compile(r"(\([^()*\s]+)+\*\)*|\*\)+"): "arguments or constituents",
}
"""Patterns of cells of spans that open on one line and close on another (CoNLL-2005, CoNLL-2012), with descriptions."""

MARKS = ("/", "_", "|")
"""Characters that may separate a word and its tag."""


def split_cells(line: str) -> list[str]:
    r"""Split a line at tabs, or else at runs of blanks; cells between or after tabs may be empty.

    Other white space (no-break, ideographic) is part of tokens.

    Examples
    --------
    >>> split_cells("New York\tB-LOC\r\n"), split_cells("\tO\n"), split_cells("the  DT O \n")
    (['New York', 'B-LOC'], ['', 'O'], ['the', 'DT', 'O'])
    >>> split_cells("York\t\n"), split_cells("\t\n")
    (['York', ''], [])
    """
    if not line.strip(" \t\r\n"):
        return []
    if "\t" in line:
        return line.rstrip("\r\n").rstrip(" ").split("\t")
    return [cell for cell in line.rstrip("\r\n").split(" ") if cell]


def trim_cells(cells: list[str], width: int) -> list[str]:
    """Remove the empty cells beyond the file's width, which a tab at the end of each line makes."""
    return cells[:width] if len(cells) > width and not any(cells[width:]) else cells


def is_end(cells: list[str], line: str) -> bool:
    """Return whether a line ends a sentence."""
    return not cells or cells == [UTTERANCE_END] or not line.strip()


def is_ner_column(name: str) -> bool:
    """Return whether a column of a historical named-entity file holds entity tags, by its name."""
    return name.startswith(NER_PREFIX)


def is_header(cells: Sequence[str]) -> bool:
    """Return whether the first row names columns: a token column, followed by a label column.

    Examples
    --------
    >>> is_header(["# Word", "POS", "ner_tags"]), is_header(["word", "label"]), is_header(["text", "NN", "O"])
    (True, True, False)
    >>> is_header(["TOKEN", "NE-COARSE-LIT", "MISC"])
    True
    """
    names = [cell.lstrip("# ").lower() for cell in cells]
    has_labels = not LABEL_NAMES.isdisjoint(names[1:]) or any(map(is_ner_column, cells[1:]))
    return not TOKEN_NAMES.isdisjoint(names[:2]) and has_labels


def find_column_names(path: Path) -> tuple[str, ...]:
    """Return the column names from the header, of CoNLL-U Plus or of CoNLL-U, or none."""
    lines = [line for line in read_head_lines(path) if line.strip()]
    if lines and (match := GLOBAL_COLUMNS.match(lines[0])):
        return tuple(match[1].split())
    first_line = next((line for line in lines if is_header(split_cells(line)) or not line.startswith("#")), "")
    if is_header(split_cells(first_line)):
        return tuple(cell.lstrip("# ") for cell in split_cells(first_line))
    return CONLLU_NAMES if is_conllu(path) else ()


def find_width(path: Path) -> tuple[int, int]:
    """Return the number of columns, and the number of the first line that surely holds a token.

    If that line ends in a tab, there is a cell after the tab only if a later line fills it.
    """
    comment, first_line, full, bare = (0, 0), 0, 0, 0
    for number, line in enumerate_lines(path):
        cells = split_cells(line)
        if is_end(cells, line) or line.startswith(DOCSTART) or (not first_line and is_header(cells)):
            continue
        if line.startswith("#"):
            comment = comment if comment[0] else (len(cells), number)
            continue
        filled = count_filled(cells)
        if not first_line:
            first_line, full, bare = number, len(cells), filled
        if filled >= full or full == bare:
            return full, first_line
    return (bare, first_line) if first_line else comment


def is_conllu(path: Path) -> bool:
    """Return whether rows have CoNLL-U's ten columns, the first an id; a header may come before."""
    lines = (line for line in read_head_lines(path)[:200] if line.strip() and not line.startswith("#"))
    rows = [line.split("\t") for line in lines]
    rows = rows[1:] if rows and is_header(rows[0]) else rows
    return bool(rows) and all(len(row) == len(CONLLU_NAMES) and CONLLU_ID.fullmatch(row[0]) for row in rows)


def parse_column(option: str, text: str) -> int:
    """Return a column number as an index; 1 is the first column and -1 the last."""
    if not re.fullmatch(r"-?[1-9]\d{0,5}", text):
        raise InputError(
            f"format conll: {option} = {text!r}: must be the number of a column: 1, 2, ..., or -1 for the last"
        )
    return int(text) - 1 if int(text) > 0 else int(text)


def list_tag_columns(path: Path) -> dict[int, set[str]]:
    """Return the types of the chunk tags in each column at the end of the rows that holds only such tags."""
    columns = list(enumerate(zip(*(row for row in _read_rows(path) if row), strict=False), start=1))
    tagged = [*takewhile(lambda column: _are_tags({*column[1]}), reversed(columns))]
    return {number: {_get_type(tag) for tag in {*cells} - {"O"}} for number, cells in reversed(tagged)}


def _get_type(tag: str) -> str:
    suffixed = SUFFIXED.fullmatch(tag)
    return suffixed[1] if suffixed is not None and not is_chunk_tag(tag) else tag.partition("-")[2]


def _are_tags(cells: Collection[str]) -> bool:
    """Return whether all cells are chunk tags, some of them with a type, as in B-PER."""
    return any("-" in cell for cell in cells) and (all(map(is_chunk_tag, cells)) or are_suffixed(cells))


def are_plain(labels: Iterable[str]) -> bool:
    """Return whether labels are plain: neither chunk tags, nor types of chunks together with O."""
    labels = {*labels}
    has_types = any("-" in label and is_chunk_tag(label) for label in labels)
    return not (has_types or "O" in labels or all(map(is_chunk_tag, labels)) or _are_tags(labels))


def check_not_bracketed(path: Path, column: str, cells: Iterable[str]) -> None:
    """Raise an error for bracketed spans over several lines, which no token metric scores."""
    for pattern, kind in BRACKETED.items():
        if any(map(pattern.fullmatch, cells := [*cells])):
            raise InputError(
                f"{column} holds {kind} in brackets, which sigdask does not score; take the score of each document "
                f"or sentence from the task's own scorer, or choose another column with "
                f"{spell('format', 'conll:column=N')}",
                file=path,
            )


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Return whether the first lines of the first file, or of the gold file, have the pattern of tagged tokens."""
    path = sources[0].path
    if path.is_dir():
        return False
    if is_json_file(path):
        return sniff_records(path, gold, options)
    if _is_comma_separated(path):  # columns of tokens are parted by blanks or tabs
        return False
    if is_conllu(path):
        has_heads = any(len(row) > CONLLU_HEAD and row[CONLLU_HEAD].isdecimal() for row in _read_rows(path))
        return not has_heads or (bool(options.metrics) and all(map(TAG_METRICS.fullmatch, options.metrics)))
    _check_no_conll_2009(path)
    paths = (path,) if gold is None else (path, gold)
    return any(_are_tagged(file, has_gold=gold is not None) for file in paths)


def _is_comma_separated(path: Path) -> bool:
    """Return whether the first line has commas or semicolons, and neither blanks nor tabs."""
    first = next((line.strip() for line in read_head_lines(path) if line.strip()), "")
    return any(mark in first for mark in ",;") and not any(map(str.isspace, first))


def _check_no_conll_2009(path: Path) -> None:
    """Raise an error for the 14 columns and more of CoNLL-2009, with the commands that convert them."""
    rows = [row for row in _read_rows(path) if row]
    if not rows or any(len(row) < 14 or not row[0].isdecimal() or row[12] not in {"Y", "_"} for row in rows):
        return
    program = r"""awk -F'\t' -v OFS='\t' '{print NF ? $1 OFS $2 OFS %s OFS "_" OFS "_" : ""}'"""
    gold, system = (program % " OFS ".join(f"${k}" for k in columns) for columns in (GOLD_2009, SYSTEM_2009))
    raise InputError(
        f"has the columns of CoNLL-2009, which sigdask does not read. Convert the files to CoNLL-X (gold by {gold}, "
        f"outputs by {system}), and add {spell('format', 'conllx')}. Semantic roles are not scored",
        file=path,
    )


GOLD_2009, SYSTEM_2009 = (3, 5, 5, 7, 9, 11), (4, 6, 6, 8, 10, 12)
"""Columns of CoNLL-2009 with lemma, two kinds of tags, features, head and relation, gold and predicted."""


def _are_tagged(path: Path, *, has_gold: bool) -> bool:
    """Return whether rows have equally many columns, with chunk tags in the last one or an empty line between rows.

    Of plain labels only a gold file tells that they are labels, and so does it of sentences of a line each.
    """
    if any(map(is_ner_column, find_column_names(path))):
        return True
    if find_mark(path) is not None:
        return has_gold
    rows = _read_rows(path)
    has_breaks = any(not row or row == [UTTERANCE_END] for row in rows[:-2])
    rows = [row for row in rows if row and row != [UTTERANCE_END]]
    if not rows or len({len(row) for row in rows}) != 1:
        return False
    tags = {row[-1] for row in rows if row[-1]}
    if _are_tags(tags) and len(rows[0]) > 1:
        return True
    return has_breaks and (_are_tags(tags) or all(map(is_chunk_tag, tags)) or (has_gold and len(rows[0]) > 1))


def _read_rows(path: Path) -> list[list[str]]:
    """Return the first rows of a file without comments and header, cut to the width of the file."""
    rows = [split_cells(line) for line in read_head_lines(path) if not line.startswith(("#", DOCSTART))]
    first_row = next((k for k, cells in enumerate(rows) if cells), None)
    if first_row is None:
        return rows
    if is_header(rows[first_row]):
        del rows[first_row]
    sizes = [(len(cells), count_filled(cells)) for cells in rows if cells]
    full, bare = sizes[0] if sizes else (0, 0)
    width = full if any(filled >= full for _, filled in sizes) else bare
    return [trim_cells(cells, width) for cells in rows]


def find_mark(path: Path) -> str | None:
    """Return the mark between word and chunk tag in files of one sentence per line, "" for tags alone, else None."""
    rows = [line.split() for line in read_head_lines(path)]
    rows = rows[:-1] if rows and not rows[-1] else rows
    if not all(rows) or max(map(len, rows), default=0) < 2:
        return None
    cells = {cell for row in rows for cell in row}
    if "O" in cells and all(map(is_chunk_tag, cells)):
        return ""
    return next((mark for mark in MARKS if all(_is_marked(cell, mark) for cell in cells)), None)


def _is_marked(cell: str, mark: str) -> bool:
    word, _, tag = cell.rpartition(mark)
    return word != "" and is_chunk_tag(tag)


def read_tagged_lines(path: Path, mark: str, labels: Codes, tokens: Codes) -> TaggedFile:
    """Read a file with one sentence per line."""
    collector = SentenceCollector(path, labels, tokens)
    for number, line in enumerate_lines(path):
        for cell in line.split():
            word, _, tag = cell.rpartition(mark) if mark else ("", "", cell)
            if mark and not (word and tag):
                raise InputError(file=path, line=number, found=repr(cell), expected=f"word{mark}TAG")
            collector.add_token(number, tag, None, word if mark else None)
        collector.end_sentence()
    return collector.build_file()
