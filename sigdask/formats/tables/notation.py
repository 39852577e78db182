"""Conversion of written scores to numbers: decimal commas, thousands separators, truth values, and lists of one number.

All score columns of a table are converted in the same way. Columns of labels and ids stay as they are. A comma may
separate decimals or thousands: the option `decimal` of the format says which.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from sigdask.counts.factors import Factor
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.formats.reading.averages_only import is_metric_name
from sigdask.formats.reading.columns import MISSING, find_numbers, is_number
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.tables.bookkeeping import check_rows, list_unnamed_scores, remove_bookkeeping, select_scores
from sigdask.interface import spell
from sigdask.text import describe_items

GROUPED_NUMBERS = {mark: re.compile(rf"[+-]?[1-9][0-9]{{0,2}}({re.escape(mark)}[0-9]{{3}})+") for mark in ",."}
"""Pattern of whole numbers with separators of thousands."""


def convert_decimal_commas(table: FileTable, texts: Mapping[str, Texts], decimal: str | None) -> FileTable:
    """Replace decimal commas by points in columns of scores.

    Parameters
    ----------
    table : FileTable
        The table as it was read.
    texts : mapping of str to Texts
        Its columns of scores that are no plain numbers.
    decimal : {",", "."}, or None
        Decimal separator, if specified.

    Raises
    ------
    InputError
        A number has a comma, and the decimal separator is not specified.
    """
    if decimal == ".":
        return replace(table, columns={**table.columns, **_remove_thousands(texts, ",")})
    pointed = {name: column for name, cells in texts.items() if (column := _replace_commas(cells)) is not None}
    if decimal == ",":
        rest = {name: Texts.from_values(cells) for name, cells in table.columns.items() if name not in pointed}
        return replace(table, columns={**table.columns, **pointed, **_remove_thousands(rest, ".")})
    for name in pointed:
        row, cell = next((k, text) for k, text in enumerate(texts[name]) if "," in text)
        raise InputError(
            f"{table.path}, line {table.lines[row]}, column {name!r}: found {cell!r}. Does the comma separate decimals "
            f"or thousands? Say {spell('format', 'table:decimal=,')} or {spell('format', 'table:decimal=.')}"
        )
    return table


def _replace_commas(cells: Texts) -> Texts | None:
    """Return a column of numbers, some with a comma, with points instead; None for other columns."""
    if ord(",") not in cells.content:
        return None
    pointed = Texts.from_values(cell.replace(",", ".") for cell in cells)
    return None if find_numbers(pointed) is None else pointed


def _remove_thousands(columns: Mapping[str, Texts], mark: str) -> dict[str, Texts]:
    """Remove thousands separators from columns with compact buffers, and write decimals after a point."""
    marked = {name: cells for name, cells in columns.items() if ord(mark) in cells.content}
    converted = {name: Texts.from_values(remove_thousands(c, mark) for c in cells) for name, cells in marked.items()}
    return {name: cells for name, cells in converted.items() if find_numbers(cells) is not None}


def remove_thousands(cell: str, mark: str) -> str:
    """Return a number without thousands separators and with a decimal point; other text unchanged.

    Examples
    --------
    >>> [remove_thousands(cell, ".") for cell in ("1.234,5", "1.234", "0,5", "12.34,5", "0.125")]
    ['1234.5', '1234', '0.5', '12.34,5', '0.125']
    """
    integer, decimal, fraction = cell.partition("," if mark == "." else ".")
    if mark in cell and not GROUPED_NUMBERS[mark].fullmatch(integer):
        return cell
    return integer.replace(mark, "") + ("." if decimal else "") + fraction


WORD_PAIRS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("correct", "incorrect"), ("right", "wrong"),
         ("pass", "fail"), ("passed", "failed"))  # fmt: skip
"""Words for 1 and for 0, compared without case. A column uses one pair."""

TRUTH_WORDS = frozenset(word for pair in WORD_PAIRS for word in pair)
HEAD_CELLS = 1000
"""Number of first cells by which most other columns are ruled out."""


def find_truth_words(cells: Texts) -> dict[str, str] | None:
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


def convert_truth_words(table: FileTable, readings_by_column: Mapping[str, Mapping[str, str]]) -> FileTable:
    """Replace the words in some columns by 1 and 0, and add a note for all columns with the same words."""
    columns = dict(table.columns)
    columns_by_words: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, readings in readings_by_column.items():
        columns[name] = Texts.from_values(Factor.from_values(columns[name]).rename_levels(readings))
        word_pairs = tuple(sorted(readings.items(), key=lambda pair: pair[1], reverse=True))
        columns_by_words.setdefault(word_pairs, []).append(name)
    notes = [*table.notes]
    for word_pairs, names in columns_by_words.items():
        subject = "scores hold" if names == [""] else f"{describe_items(names, 'column')} hold{'s' * (len(names) == 1)}"
        words, numbers = ("/".join(column_words) for column_words in zip(*word_pairs, strict=True))
        doubt = (
            ""
            if words.lower() in {"true/false", "true", "false"}
            else f"; are they labels? Then give {spell('gold', 'FILE')}"
        )
        notes.append(f"{table.path}: {subject} {words}, read as {numbers}{doubt}")
    return replace(table, columns=columns, notes=notes)


def holds_scores(table: FileTable, name: str) -> bool:
    """Return whether a column holds numbers or truth values."""
    if name in table.nested:
        return False
    return table.is_numeric(name) or find_truth_words(Texts.from_values(table.columns[name])) is not None


def find_row_score(table: FileTable, options: Options) -> str | None:
    """Return the column of scores in rows of system and item without a column called score; None if it is unclear."""
    names = select_scores(list_unnamed_scores(table, options, holds_scores), options)
    scores = [name for name in names if is_metric_name(name)] or names
    return scores[0] if len(scores) == 1 else None


def read_score_table(source: Source, options: Options, *, costs: bool = True) -> FileTable:
    """Read a score table as numbers, without bookkeeping columns."""
    table = read_table(source.path, options.ignore, options.decimal)
    check_rows(table, options)
    return convert_scores(remove_bookkeeping(table, options, costs=costs), options)


def convert_scores(table: FileTable, options: Options, columns: Sequence[str] | None = None) -> FileTable:
    """Convert the score columns of a table to numbers, with notes on what was converted.

    Parameters
    ----------
    table : FileTable
        The table as it was read.
    options : Options
        Options, with the columns that are no scores and the decimal separator.
    columns : sequence of str, optional
        Columns of scores. By default all that are not named otherwise; of these, truth values beside real
        scores tell kinds of items.

    Raises
    ------
    InputError
        A comma may separate decimals or thousands.
    """
    candidates = columns or table.list_system_columns(options)
    table = _unwrap_lists(table, candidates)
    written = [name for name in candidates if name not in table.nested and not table.is_numeric(name)]
    texts = {name: Texts.from_values(table.columns[name]) for name in written}
    original = table.columns
    if texts or options.decimal == ",":
        table = convert_decimal_commas(table, texts, options.decimal)
    words = {name: cells for name, cells in texts.items() if table.columns[name] is original[name]}
    truth_words = {name: readings for name, cells in words.items() if (readings := find_truth_words(cells)) is not None}
    if not truth_words:
        return table
    for name in filter(table.is_numeric, candidates if columns is None else ()):
        values = table.get_numbers(name)
        if not np.isin(values[~np.isnan(values)], (0, 1)).all():
            return table
    return convert_truth_words(table, truth_words)


def _unwrap_lists(table: FileTable, columns: Sequence[str]) -> FileTable:
    """Replace lists of one number by the number, as a metric called on single items writes them."""
    unwrapped = {}
    for name in columns:
        values = [cell[0] if isinstance(cell, list) and len(cell) == 1 else None for cell in table.nested.get(name, ())]
        if values and all(isinstance(cell, int | float) for cell in values):
            unwrapped[name] = Texts.from_values(repr(float(cell or 0)) for cell in values)
    if not unwrapped:
        return table
    nested = {name: cells for name, cells in table.nested.items() if name not in unwrapped}
    note = f"{table.path}: {describe_items([*unwrapped], 'column')} of lists of one number: read as that number"
    return replace(table, columns={**table.columns, **unwrapped}, nested=nested, notes=[*table.notes, note])
