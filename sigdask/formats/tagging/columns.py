"""Columns of tagged tokens: how lines are split, which lines hold no tokens, and which columns are read.

A file is recognised by its first lines: tokens with chunk tags in the last column, or columns with an empty line
between sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from sigdask.counts.factors import Codes
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled, enumerate_lines, read_head_lines
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.tagging.chunks import is_chunk_tag
from sigdask.formats.tagging.sentences import (
    Event,
    TaggedFile,
    Token,
    collect_sentences,
    has_tagged_records,
    is_json_file,
)
from sigdask.interface import spell
from sigdask.text import format_count

DOCSTART = "-DOCSTART-"
COMMENT = re.compile(r"# ?(newpar|newdoc|[\w.:-]+ *=)")
NEWDOC = re.compile(r"# ?newdoc(?: id *= *(.+))?")
"""Patterns of lines that are no tokens, and of those that begin a document."""

TOKEN_NAMES = frozenset({"token", "tokens", "word", "words", "form", "text"})
GOLD_NAMES = frozenset({"gold", "gold_label", "gold_tag"})
LABEL_NAMES = GOLD_NAMES | frozenset({"tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "ne", "entity",
                                      "chunk", "chunks", "chunk_tag", "chunk_tags", "pos", "pos_tag", "pos_tags",
                                      "upos", "xpos", "pred", "prediction", "predicted"})  # fmt: skip
"""Names of columns in a header."""

CONLLU_NAMES = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
CONLLU_ID = re.compile(r"\d+(?:[-.]\d+)?")
CONLLU_HEAD = CONLLU_NAMES.index("HEAD")


Row = list[str] | tuple[str, ...] | str | None
"""The cells of a token, or of a header as a tuple; the name of a document that begins, "" for one without a name; or
None at the end of a sentence.
"""


def iter_rows(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Row]]:
    """Yield the number and content of lines, without comments."""
    is_start = True
    for number, line in lines:
        if not line.strip():
            yield number, None
        elif line.startswith(DOCSTART):
            yield number, ""
        elif COMMENT.match(line):
            if match := NEWDOC.match(line):
                yield number, (match[1] or "").strip()
        else:
            cells = split_cells(line)
            is_names, is_start = is_start and is_header(cells), False
            yield number, tuple(cell.lstrip("# ") for cell in cells) if is_names else cells


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
    has_labels = any(name in LABEL_NAMES or _is_entity_name(name) for name in names[1:])
    return has_labels and not TOKEN_NAMES.isdisjoint(names[:2])


def _is_entity_name(name: str) -> bool:
    """Return whether a column has tags of historical named entities, as NE-COARSE-LIT of HIPE."""
    return name.lower().startswith("ne-")


def read_head_rows(path: Path) -> tuple[list[list[str]], tuple[str, ...]]:
    """Return the cells of the first rows of a file, [] for the end of a sentence, and the names of its columns."""
    rows = [row for _, row in iter_rows(enumerate(read_head_lines(path)))]
    header = next((row for row in rows if isinstance(row, tuple)), ())
    contents = [row or [] for row in rows if isinstance(row, list | None)]
    tokens = [*filter(None, contents)]
    is_conllu = all(len(cells) == len(CONLLU_NAMES) and CONLLU_ID.fullmatch(cells[0]) for cells in tokens)
    return contents, CONLLU_NAMES if header == CONLLU_NAMES or (tokens and is_conllu) else header


def read_columns(path: Path, options: Options, labels: Codes, tokens: Codes, roles: Sequence[str]) -> TaggedFile:
    """Read a file of columns with labels of the roles prediction, gold, or both."""
    _, names = read_head_rows(path)
    widths = ((number, len(row)) for number, row in iter_rows(enumerate_lines(path)) if isinstance(row, list | tuple))
    first_line, width = next(widths, (1, 0))  # of the header, if there is one
    check_filled(path, width)
    chosen = _choose_columns(path, first_line, width, names, options, roles)
    word = names.index("FORM") if names is CONLLU_NAMES else 0
    has_words = word not in chosen  # a column alone holds no tokens

    def iter_events() -> Iterator[Event]:
        for number, row in iter_rows(enumerate_lines(path)):
            if isinstance(row, str | None):
                yield row
            elif isinstance(row, list) and len(row) != width:
                found = f"{format_count(len(row), 'column')} ({' '.join(row)[:40]!r})"
                raise InputError(file=path, line=number, found=found, expected=f"{width} as on line {first_line}")
            elif isinstance(row, list) and (names is not CONLLU_NAMES or row[0].isdecimal()):
                # ranges (1-2) and empty nodes (1.1) are no tokens
                gold = row[chosen[1]] if chosen[1:] else None
                yield Token(number, row[chosen[0]], gold, row[word] if has_words else None)

    described = [
        f"{names[k]} (column {k + 1})" if names else f"column {k + 1}{' (the last)' if k + 1 == width else ''}"
        for k in chosen
    ]
    scored = " against ".join(described) if width > len(chosen) + has_words else ""
    return collect_sentences(path, iter_events(), labels, tokens, scored=scored)


def _choose_columns(
    path: Path, line: int, width: int, names: Sequence[str], options: Options, roles: Sequence[str]
) -> list[int]:
    """Return which column has each role. By default the last one has the labels, and the one before it gold labels."""
    lowered = [name.lower() for name in names]
    default = "UPOS" if names is CONLLU_NAMES else next(filter(_is_entity_name, names), "-1")
    column = options.own.get("column", default)
    gold = "-2" if len(roles) > 1 else column if column.lower() in lowered else default

    def find(option: str, text: str) -> int:
        if text.lower() in lowered:
            return lowered.index(text.lower())
        index = int(text) - (int(text) > 0) if re.fullmatch(r"-?[1-9]\d{0,5}", text) else width
        if not -width <= index < width:
            remedy = f"name it: {spell('format', f'conll:{option}=N')}, or give {spell('gold', 'FILE')}"
            problem = f"found {format_count(width, 'column')}, but {option} is {text}"
            raise InputError(problem, file=path, line=line, remedy=remedy)
        return index % width

    texts = {"column": column, "gold-column": options.own.get("gold-column", gold)}
    chosen = [find(name, texts[name]) for name in ("gold-column" if role == "gold" else "column" for role in roles)]
    if len({*chosen}) < len(chosen):
        remedy = f"choose two: {spell('format', 'conll:column=N,gold-column=M')}"
        raise InputError(f"column {chosen[0] + 1} is chosen for gold and for predicted labels; {remedy}", file=path)
    return chosen


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


def sniff(sources: Sequence[Source], gold: Path | None, _: Options) -> bool:
    """Return whether the first lines of the first file, or of the gold file, have the pattern of tagged tokens."""
    path = sources[0].path
    if path.is_dir():
        return False
    paths = (path,) if gold is None else (path, gold)
    if is_json_file(path):
        return any(is_json_file(file) and has_tagged_records(file) for file in paths)
    heads = [read_head_rows(file) for file in paths]
    rows, names = heads[0]
    if names is CONLLU_NAMES:
        return not any(row and row[CONLLU_HEAD].isdecimal() for row in rows)
    return any(_are_tagged(rows, names, has_gold=gold is not None) for rows, names in heads)


def _are_tagged(rows: Sequence[list[str]], names: Sequence[str], *, has_gold: bool) -> bool:
    """Return whether rows have equally many columns, with chunk tags in the last one or an empty line between rows.

    Of plain labels only a gold file tells that they are labels.
    """
    if any(map(_is_entity_name, names)):
        return True
    has_breaks = not all(rows[:-2])
    rows = [row for row in rows if row]
    if len({len(row) for row in rows}) != 1:
        return False
    tags = {row[-1] for row in rows} - {""}
    are_chunks, has_words = all(map(is_chunk_tag, tags)), len(rows[0]) > 1
    has_types = any("-" in tag for tag in tags)  # as in B-PER
    return (are_chunks and (has_breaks or (has_types and has_words))) or (has_breaks and has_gold and has_words)
