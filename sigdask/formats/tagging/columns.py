"""Columns of tagged tokens: how lines are split, which lines hold no tokens, and which columns are read.

A file is recognised by its first lines: tokens with chunk tags in the last column, or columns with an empty line
between sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from sigdask.counts.texts import Codes
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled, enumerate_lines
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.signatures import (
    CONLLU_NAMES,
    GOLD_NAMES,
    is_chunk_tag,
    is_entity_name,
    iter_tag_rows,
    read_tag_head,
)
from sigdask.formats.tagging.sentences import Event, TaggedFile, Token, collect_sentences
from sigdask.interface import spell
from sigdask.text import format_count


def read_columns(path: Path, options: Options, labels: Codes, tokens: Codes, roles: Sequence[str]) -> TaggedFile:
    """Read a file of columns with labels of the roles prediction, gold, or both."""
    _, names = read_tag_head(path)
    widths = (
        (number, len(row)) for number, row in iter_tag_rows(enumerate_lines(path)) if isinstance(row, list | tuple)
    )
    first_line, width = next(widths, (1, 0))  # of the header, if there is one
    check_filled(path, width)
    chosen = _choose_columns(path, first_line, width, names, options, roles)
    word = names.index("FORM") if names is CONLLU_NAMES else 0
    has_words = word not in chosen  # a column alone holds no tokens

    def iter_events() -> Iterator[Event]:
        for number, row in iter_tag_rows(enumerate_lines(path)):
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
    default = "UPOS" if names is CONLLU_NAMES else next(filter(is_entity_name, names), "-1")
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
    rows, names = read_tag_head(path)
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
