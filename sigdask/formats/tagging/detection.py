"""Detection of columns, chunk tags and plain labels in the first lines of tagged files.

Files of one sentence per line, with tags alone or words with their tags attached, are detected too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import takewhile
from pathlib import Path

from sigdask.counts.factors import Codes
from sigdask.errors import InputError
from sigdask.formats.reading.files import count_filled, enumerate_lines, read_head_lines
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.tagging.chunks import are_suffixed, is_chunk_tag
from sigdask.formats.tagging.records import is_json_file, sniff_records
from sigdask.formats.tagging.sentences import UTTERANCE_END, SentenceCollector, TaggedFile, is_ner_column
from sigdask.interface import spell

DOCSTART = "-DOCSTART-"
CONLLU_ID = re.compile(r"\d+(?:[-.]\d+)?")

TOKEN_NAMES = frozenset({"token", "tokens", "word", "words", "form", "text"})
LABEL_NAMES = frozenset({"tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "ne", "entity", "chunk",
                         "chunks", "chunk_tag", "chunk_tags", "pos", "pos_tag", "pos_tags", "upos", "xpos", "gold",
                         "pred", "prediction", "predicted", "gold_label", "gold_tag"})  # fmt: skip

CONLLU_NAMES = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
GLOBAL_COLUMNS = re.compile(r"#\s*global\.columns\s*=\s*(.+)")
"""Pattern of the line that names the columns of CoNLL-U Plus."""

BRACKETED = {
    re.compile(r"\(\d+\)?(\|.*)?|(.*\|)?\(\d+\)?|\d+\)"): "coreference chains",
    re.compile(r"(\([^()*\s]+)+\*\)*|\*\)+"): "arguments or constituents",
}
"""Patterns of cells of spans that open on one line and close on another (CoNLL-2005, CoNLL-2012), with descriptions."""

Rows = list[list[str]]
"""Cells of tokens. A row between sentences is empty."""


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
    return bool(rows) and all(len(row) == 10 and CONLLU_ID.fullmatch(row[0]) for row in rows)


def parse_column(option: str, text: str) -> int:
    """Return a column number as an index; 1 is the first column and -1 the last."""
    if not re.fullmatch(r"-?[1-9]\d{0,5}", text):
        raise InputError(
            f"format conll: {option} = {text!r}: must be the number of a column: 1, 2, ..., or -1 for the last"
        )
    return int(text) - 1 if int(text) > 0 else int(text)


def find_tag_columns(path: Path) -> list[str]:
    """Return the numbers of the columns at the end of each row that contain only chunk tags."""
    rows = [cells for cells in _read_rows(path) if cells]
    columns = reversed(list(enumerate(zip(*rows, strict=False), start=1)))
    return [str(number) for number, _ in takewhile(lambda column: _are_tags(column[1]), columns)][::-1]


def _are_tags(cells: Collection[str]) -> bool:
    """Return whether all cells are chunk tags, some of them with a type, as in B-PER."""
    return any("-" in cell for cell in cells) and (all(map(is_chunk_tag, cells)) or are_suffixed(set(cells)))


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Return whether the first file, or the gold file, looks like tagged tokens."""
    path = sources[0].path
    if is_json_file(path):
        return sniff_records(path, gold, options)
    if gold is not None and find_mark(path, gold) is not None:
        return True
    _check_no_conll_2009(path)
    if _are_tagged(path) or (gold is not None and _are_tagged(gold)):
        return True
    return gold is not None and not path.is_dir() and _have_same_tokens(_read_rows(path), _read_rows(gold))


def _check_no_conll_2009(path: Path) -> None:
    """Raise an error for the 14 columns and more of CoNLL-2009, with the commands that convert them."""
    rows = [] if path.is_dir() else [row for row in _read_rows(path) if row]
    if not rows or any(len(row) < 14 or not row[0].isdecimal() or row[12] not in {"Y", "_"} for row in rows):
        return
    if not all(row[8].isdecimal() or row[9].isdecimal() for row in rows):  # heads, gold and predicted
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


def _are_tagged(path: Path) -> bool:
    """Return whether a file has equal columns, tags in the last one, and empty lines between."""
    if is_conllu(path) or any(map(is_ner_column, find_column_names(path))):
        return True
    rows = _read_rows(path)
    breaks = sum(not row or row == [UTTERANCE_END] for row in rows[:-2])
    rows = [row for row in rows if row and row != [UTTERANCE_END]]
    if not rows or len({len(row) for row in rows}) != 1:
        return False
    tags = [row[-1] for row in rows if row[-1]]
    is_bare = breaks > 0 and all(map(is_chunk_tag, tags))
    return (_are_tags(tags) or is_bare) and (len(rows[0]) > 1 or breaks > 0)


def find_plain_options(sources: Sequence[Source], gold: Path | None, options: Options) -> dict[str, str]:
    """Return the options for reading plain labels, if the gold labels are not chunk tags.

    Empty if a scheme is requested, or if O is among the labels, which may then be types of chunks. Of several
    columns, the last one in which a system differs from gold is compared, or else the last column.

    Raises
    ------
    InputError
        There are bracketed spans over several lines, which no token metric scores.
    """
    if gold is None or "scheme" in options.own:
        return {}
    files = [[row for row in _read_rows(path) if row] for path in (gold, *(source.path for source in sources))]
    gold_columns, *system_columns = [[list(column) for column in zip(*rows, strict=False)] for rows in files]
    if not gold_columns or not all(system_columns):
        return {}
    width = len(gold_columns)
    same_width = all(len(columns) == width for columns in system_columns)
    requested = (options.own.get("column") or options.prediction_column or "").split("+")[0]
    gold_option = options.own.get("gold-column") or options.gold_column or (requested if same_width else "-1")
    if gold_option:
        column = parse_column("gold-column", gold_option)
    else:
        differing = (k for k in range(width - 1, 0, -1) if _differs(gold_columns[k], [s[k] for s in system_columns]))
        column = next(differing, width - 1)
    if not -width <= column < width or not are_plain(gold_columns[column]):
        return {}
    has_ids = width > 2 and all(map(str.isdecimal, gold_columns[0]))
    number = str(column + 1 if column >= 0 else column)
    cells = gold_columns[column]
    kind = next((kind for pattern, kind in BRACKETED.items() if any(map(pattern.fullmatch, cells))), None)
    if kind is not None:
        raise InputError(
            f"{gold}: column {number} holds {kind} in brackets, which sigdask does not score; take the score of each "
            "document or sentence from the task's own scorer, or choose another column with conll:column=N"
        )
    columns = {"gold-column": number} if gold_option else {"column": number, "gold-column": number}
    return {"scheme": "raw", "tokens": "2" if has_ids else "1", **columns, **options.own}


def _differs(gold: Sequence[str], systems: Sequence[Sequence[str]]) -> bool:
    return any(a != b for column in systems for a, b in zip(gold, column, strict=False))


def are_plain(labels: Collection[str]) -> bool:
    """Return whether labels are plain: neither chunk tags, nor types of chunks together with O."""
    has_types = any("-" in label and is_chunk_tag(label) for label in labels)
    return not (has_types or "O" in labels or all(map(is_chunk_tag, labels)) or _are_tags(labels))


def _read_rows(path: Path) -> Rows:
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


def _have_same_tokens(rows_a: Rows, rows_b: Rows) -> bool:
    """Return whether two files have nearly equal tokens, equal columns and the same sentences.

    If a file has no sentence end at all within the tokens of the other, it lacks the ends.
    """
    files = (rows_a, rows_b)
    have_breaks = [any(not row for row in rows[:-1]) for rows in files]
    if not all(have_breaks):
        filled = [[row for row in rows if row] for rows in files]
        return any(have_breaks) and 2 * min(map(len, filled)) > max(map(len, filled)) and _have_same_words(*filled)
    shared = min(map(len, files))
    while shared and not (rows_a[shared - 1] and rows_b[shared - 1]):
        shared -= 1
    parts = [rows[:shared] for rows in files]
    breaks = [[not row for row in rows] for rows in parts]
    return any(breaks[0]) and breaks[0] == breaks[1] and _have_same_words(*parts)


def _have_same_words(rows_a: Rows, rows_b: Rows) -> bool:
    pairs = list(zip(rows_a, rows_b, strict=False))
    widths = {len(row) for pair in pairs for row in pair} - {0}
    n_same = sum(a[:1] == b[:1] for a, b in pairs)
    return len(widths) == 1 and min(widths) > 1 and 10 * n_same >= 9 * len(pairs)


MARKS = ("/", "_", "|")
"""Characters that may separate a word and its tag."""


def find_mark(path: Path, gold: Path) -> str | None:
    """Return the mark between word and tag in files of one sentence per line, "" for tags alone, else None."""
    heads = [read_head_lines(name) for name in (path, gold)]
    files = [[line.split() for line in (lines[:-1] if lines and not lines[-1] else lines)] for lines in heads]
    if not all(files) or any(not row for rows in files for row in rows):
        return None
    lengths = [[len(row) for row in rows[: min(map(len, files))]] for rows in files]
    widths = {len(row) for row in files[1]}
    if max(widths) < 2 or lengths[0] != lengths[1]:
        return None
    system_cells, gold_cells = ([cell for row in rows for cell in row] for rows in files)
    if all("O" in cells and all(map(is_chunk_tag, set(cells))) for cells in (system_cells, gold_cells)):
        return "" if len(widths) > 1 or min(widths) > 2 else None
    return next((mark for mark in MARKS if _are_marked(system_cells, gold_cells, mark)), None)


def _are_marked(cells: Sequence[str], gold_cells: Sequence[str], mark: str) -> bool:
    """Return whether cells are word, mark and tag, with the same words in both files and repeated tags."""
    if not all(0 < cell.rfind(mark) < len(cell) - 1 for cell in (*cells, *gold_cells)):
        return False
    words, tags = zip(*(cell.rsplit(mark, 1) for cell in gold_cells), strict=True)
    system_words = [cell.rsplit(mark, 1)[0] for cell in cells[: len(words)]]
    n_same = sum(a == b for a, b in zip(system_words, words, strict=False))
    return 10 * n_same >= 9 * len(system_words) and 3 * len({*tags}) <= 2 * len(tags)


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
