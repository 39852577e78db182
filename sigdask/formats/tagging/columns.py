"""Columns of tagged tokens: how lines are split, which lines hold no tokens, and which columns are read.

A file is recognised by its first lines: tokens with chunk tags in the last column, or columns with an empty line
between sentences.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from sigdask.counts.factors import Codes
from sigdask.errors import InputError
from sigdask.formats.reading.files import enumerate_lines, read_head_lines
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.tagging.chunks import is_chunk_tag
from sigdask.formats.tagging.records import has_tagged_records, is_json_file
from sigdask.formats.tagging.sentences import SentenceCollector, TaggedFile
from sigdask.interface import spell
from sigdask.text import format_count

DOCSTART = "-DOCSTART-"
COMMENT = re.compile(r"# ?(newpar|newdoc|[\w.:-]+ *=)")
NEWDOC = re.compile(r"# ?(?:newdoc(?: id *= *(.+))?|(?:[\w.-]+:)?document(?:_id)? *= *(.+))")
"""Patterns of lines that are no tokens, and of those that begin a document, in CoNLL-U and in HIPE."""

TOKEN_NAMES = frozenset({"token", "tokens", "word", "words", "form", "text"})
GOLD_NAMES = frozenset({"gold", "gold_label", "gold_tag"})
LABEL_NAMES = GOLD_NAMES | frozenset({"tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "ne", "entity",
                                      "chunk", "chunks", "chunk_tag", "chunk_tags", "pos", "pos_tag", "pos_tags",
                                      "upos", "xpos", "pred", "prediction", "predicted"})  # fmt: skip
"""Names of columns in a header."""

CONLLU_NAMES = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
CONLLU_ID = re.compile(r"\d+(?:[-.]\d+)?")
CONLLU_HEAD = CONLLU_NAMES.index("HEAD")

TAG_METRICS = re.compile(r"(?i)(macro-|micro-)?(accuracy|precision|recall|f1?)\b(?!-).*")


class Row(NamedTuple):
    """A line of a file: the cells of a token, or the end of a sentence, or the beginning of a document.

    Attributes
    ----------
    line : int
        Its number.
    cells : list of str
        Cells. Empty if the line holds no token.
    document : str or None
        Name of the document that begins, "" for one without a name.
    """

    line: int
    cells: list[str]
    document: str | None = None


def iter_rows(lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    """Yield the rows of a file, without comments; a header is the first row with cells."""
    for number, line in lines:
        if not line.strip():
            yield Row(number, [])
        elif line.startswith(DOCSTART):
            yield Row(number, [], "")
        elif COMMENT.match(line):
            if match := NEWDOC.match(line):
                yield Row(number, [], (match[1] or match[2] or "").strip())
        else:
            yield Row(number, split_cells(line))


def split_cells(line: str) -> list[str]:
    r"""Split a line at tabs, or else at runs of blanks; cells between or after tabs may be empty.

    Other white space (no-break, ideographic) is part of tokens.

    Examples
    --------
    >>> split_cells("New York\tB-LOC\r\n"), split_cells("\tO\n"), split_cells("the  DT O \n"), split_cells("York\t\n")
    (['New York', 'B-LOC'], ['', 'O'], ['the', 'DT', 'O'], ['York', ''])
    """
    if "\t" in line:
        return line.rstrip("\r\n").rstrip(" ").split("\t")
    return [cell for cell in line.rstrip("\r\n").split(" ") if cell]


def is_header(cells: Sequence[str]) -> bool:
    """Return whether the first row names columns: a token column, followed by a label column.

    Examples
    --------
    >>> is_header(["# Word", "POS", "ner_tags"]), is_header(["word", "label"]), is_header(["text", "NN", "O"])
    (True, True, False)
    """
    names = [cell.lstrip("# ").lower() for cell in cells]
    has_labels = not LABEL_NAMES.isdisjoint(names[1:]) or _find_ner_name(names) is not None
    return not TOKEN_NAMES.isdisjoint(names[:2]) and has_labels


def _find_ner_name(names: Sequence[str]) -> str | None:
    """Return the first column of entity tags in a file of historical named entities (HIPE): NE-COARSE-LIT."""
    return next((name for name in names if name.lower().startswith("ne-")), None)


def read_head_rows(path: Path) -> tuple[list[list[str]], tuple[str, ...]]:
    """Return the cells of the first rows of a file, [] for the end of a sentence, and the names of its columns."""
    rows = [row.cells for row in iter_rows(enumerate(read_head_lines(path), start=1)) if row.document is None]
    first = next((k for k, cells in enumerate(rows) if cells), None)
    if first is not None and is_header(rows[first]):
        names = tuple(cell.lstrip("# ") for cell in rows.pop(first))
        return rows, CONLLU_NAMES if names == CONLLU_NAMES else names
    tokens = [cells for cells in rows if cells]
    is_conllu = all(len(cells) == len(CONLLU_NAMES) and CONLLU_ID.fullmatch(cells[0]) for cells in tokens)
    return rows, CONLLU_NAMES if tokens and is_conllu else ()


def read_columns(
    path: Path, options: Options, labels: Codes, tokens: Codes, *, has_gold: bool = False, only_gold: bool = False
) -> TaggedFile:
    """Read a file of columns: a system's file with or without gold labels, or a gold file."""
    _, names = read_head_rows(path)
    collector = SentenceCollector(path, labels, tokens)
    columns: _Columns | None = None
    width, first_line, is_start = 0, 0, True
    for number, cells, document in iter_rows(enumerate_lines(path)):
        if document is not None:
            collector.start_document(document)
        elif not cells:
            collector.end_sentence()
        elif is_start and is_header(cells):
            is_start = False
        else:
            if columns is None:
                width, first_line, is_start = len(cells), number, False
                columns = _choose_columns(path, number, width, names, options, has_gold=has_gold, only_gold=only_gold)
                collector.label_name = _format_name(names, columns.label, width)
                collector.gold_name = "" if columns.gold is None else _format_name(names, columns.gold, width)
                collector.has_others = width > 3 - columns.count(None)
            if len(cells) != width:
                raise InputError(
                    file=path,
                    line=number,
                    found=f"{format_count(len(cells), 'column')} ({' '.join(cells)[:40]!r})",
                    expected=f"{width} as on line {first_line}",
                )
            if names is not CONLLU_NAMES or cells[0].isdecimal():  # ranges (1-2) and empty nodes (1.1) are no tokens
                gold, token = (None if k is None else cells[k] for k in (columns.gold, columns.token))
                collector.add_token(number, cells[columns.label], gold, token)
    return collector.build_file()


class _Columns(NamedTuple):
    """Indices of the columns that are read."""

    label: int
    gold: int | None
    token: int | None


def _format_name(names: Sequence[str], column: int, width: int) -> str:
    if names:
        return f"{names[column]} (column {column + 1})"
    return f"column {column + 1}{' (the last)' if column + 1 == width else ''}"


def _choose_columns(
    path: Path, line: int, width: int, names: Sequence[str], options: Options, *, has_gold: bool, only_gold: bool
) -> _Columns:
    """Return which columns to read. By default the last one has the labels, and the one before it gold labels."""
    lowered = [name.lower() for name in names]

    def find(option: str, text: str) -> int:
        if text.lower() in lowered:
            return lowered.index(text.lower())
        index = int(text) - (int(text) > 0) if re.fullmatch(r"-?[1-9]\d{0,5}", text) else width
        if not -width <= index < width:
            raise InputError(
                f"found {format_count(width, 'column')}, but {option} is {text}",
                file=path,
                line=line,
                remedy=f"name it: {spell('format', f'conll:{option}=N')}, or give {spell('gold', 'FILE')}",
            )
        return index % width

    default = "UPOS" if names is CONLLU_NAMES else _find_ner_name(names) or "-1"
    requested = options.own.get("column") or options.prediction_column
    gold_text = options.own.get("gold-column") or options.gold_column
    if only_gold:
        same_name = requested if requested is not None and requested.lower() in lowered else default
        label, gold = find("gold-column", gold_text or same_name), None
    else:
        label = find("column", requested or default)
        gold = find("gold-column", gold_text or "-2") if has_gold else None
    if gold == label:
        remedy = f"choose two: {spell('format', 'conll:column=N,gold-column=M')}"
        raise InputError(f"column {label + 1} is chosen for gold and for predicted labels; {remedy}", file=path)
    token = find("tokens", options.own.get("tokens") or ("FORM" if names is CONLLU_NAMES else "1"))
    return _Columns(label, gold, None if token in {label, gold} else token)  # a column alone holds no tokens


def find_gold_column(path: Path, *, is_only_file: bool) -> dict[str, str]:
    """Return the options for the columns of a file that has gold labels and predictions.

    A header may name the gold column. The columns after it are systems. Otherwise the last two columns are gold labels
    and predictions, as conlleval reads them, unless there are more columns of chunk tags.

    Raises
    ------
    InputError
        More than two columns have chunk tags, or the layout has no gold labels.
    """
    rows, names = read_head_rows(path)
    if names is CONLLU_NAMES:
        problem = "CoNLL-U holds predicted labels, but no gold labels"
        raise InputError(problem, file=path, remedy=f"give {spell('gold', 'FILE')}")
    named = next((k for k, name in enumerate(names, start=1) if name.lower() in GOLD_NAMES), None)
    if named is not None and named < len(names):
        return {"gold-column": str(named), "column": "+".join(map(str, range(named + 1, len(names) + 1)))}
    columns = list(enumerate(zip(*filter(None, rows), strict=False), start=1))
    tagged = [*takewhile(lambda column: all(map(is_chunk_tag, column[1])), reversed(columns))][::-1]
    if len(tagged) <= 2:
        return {}
    types = {number: {tag.partition("-")[2] for tag in cells} - {""} for number, cells in tagged}
    numbers = list(types)
    readings = [
        spell("format", f"conll:gold-column={gold},column={'+'.join(map(str, numbers[k:]))}")
        for k, gold in enumerate(numbers[: -2 if is_only_file else -1], start=1)
        # a column of other types than those of the gold column would be refused
        if types[gold] and all(not types[column] or types[gold] & types[column] for column in numbers[k:])
    ]
    examples = ", ".join(f"column {number} ({min(found, default='O')})" for number, found in types.items())
    raise InputError(
        f"{len(numbers)} columns hold tags ({examples}), of which one is the gold standard",
        file=path,
        remedy=f"choose {', or '.join(readings) or spell('format', 'conll:gold-column=N,column=N+N')}",
    )


def _are_tags(cells: Collection[str]) -> bool:
    """Return whether all cells are chunk tags, some of them with a type, as in B-PER."""
    return any("-" in cell for cell in cells) and all(map(is_chunk_tag, cells))


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Return whether the first lines of the first file, or of the gold file, have the pattern of tagged tokens."""
    path = sources[0].path
    if path.is_dir():
        return False
    paths = (path,) if gold is None else (path, gold)
    if is_json_file(path):
        return any(is_json_file(file) and has_tagged_records(file) for file in paths)
    rows, names = read_head_rows(path)
    if names is CONLLU_NAMES:
        has_heads = any(row and row[CONLLU_HEAD].isdecimal() for row in rows)
        return not has_heads or (bool(options.metrics) and all(map(TAG_METRICS.fullmatch, options.metrics)))
    return any(_are_tagged(file, has_gold=gold is not None) for file in paths)


def _are_tagged(path: Path, *, has_gold: bool) -> bool:
    """Return whether rows have equally many columns, with chunk tags in the last one or an empty line between rows.

    Of plain labels only a gold file tells that they are labels.
    """
    rows, names = read_head_rows(path)
    if _find_ner_name(names) is not None:
        return True
    has_breaks = not all(rows[:-2])
    rows = [row for row in rows if row]
    if len({len(row) for row in rows}) != 1:
        return False
    tags = {row[-1] for row in rows} - {""}
    if len(rows[0]) == 1:
        return has_breaks and all(map(is_chunk_tag, tags))
    return _are_tags(tags) or (has_breaks and (has_gold or all(map(is_chunk_tag, tags))))
