"""Convert columns of truth values (True/False, yes/no) to scores of 1 and 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sigdask.counts.factors import Factor
from sigdask.counts.texts import Texts
from sigdask.formats.reading.numbers import MISSING, is_number
from sigdask.formats.reading.tables import FileTable
from sigdask.text import describe_items

WORD_PAIRS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("correct", "incorrect"), ("right", "wrong"),
         ("pass", "fail"), ("passed", "failed"))  # fmt: skip
"""Words for 1 and for 0, compared without case; a column keeps to one pair."""

TRUTH_WORDS = frozenset(word for pair in WORD_PAIRS for word in pair)
HEAD_CELLS = 1000
"""Cells by which most other columns are known."""

Readings = Mapping[str, str]
"""Word to the number that it is read as."""


def find_truth_words(cells: Texts) -> Readings | None:
    """Return the number for each word in a column of truth values, or None for other columns.

    Beside true and false numbers may stand (a mean below, a score in part).

    Examples
    --------
    >>> (find_truth_words(Texts.from_values(["TRUE", "FALSE", "", "0.5"])),
    ...  find_truth_words(Texts.from_values(["no", "yes", "maybe"])))
    ({'FALSE': '0', 'TRUE': '1'}, None)
    """
    if not any(cell.lower() in TRUTH_WORDS for cell in cells[:HEAD_CELLS]):
        return None
    levels = Factor.from_values(cells).levels.tolist()
    words = {level.lower() for level in levels if level not in MISSING}
    for pair in WORD_PAIRS:
        extra_words = words.difference(pair)
        if extra_words < words and (not extra_words or (pair[0] == "true" and all(map(is_number, extra_words)))):
            return {level: str(int(level.lower() == pair[0])) for level in levels if level.lower() in pair}
    return None


def convert_truth_words(table: FileTable, readings_by_column: Mapping[str, Readings]) -> FileTable:
    """Replace the words in some columns by 1 and 0, and add notes."""
    if not readings_by_column:
        return table
    columns = {
        name: Texts.from_values(Factor.from_values(table.columns[name]).rename_levels(dict(readings)))
        for name, readings in readings_by_column.items()
    }
    return replace(
        table,
        columns={**table.columns, **columns},
        notes=[*table.notes, *_describe_readings(table, readings_by_column)],
    )


def _describe_readings(table: FileTable, readings_by_column: Mapping[str, Readings]) -> Iterator[str]:
    """Yield notes on columns of words, one for all columns with the same words."""
    columns_by_words: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, readings in readings_by_column.items():
        columns_by_words.setdefault(tuple(sorted(readings.items(), key=lambda pair: pair[1], reverse=True)), []).append(
            name
        )
    for word_pairs, names in columns_by_words.items():
        subject = "scores hold" if names == [""] else f"{describe_items(names, 'column')} hold{'s' * (len(names) == 1)}"
        words, numbers = ("/".join(column_words) for column_words in zip(*word_pairs, strict=True))
        doubt = "" if words.lower() in {"true/false", "true", "false"} else "; are they labels? Then give --gold FILE"
        yield f"{table.path}: {subject} {words}, read as {numbers}{doubt}"
