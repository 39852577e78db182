"""Convert written scores to numbers: decimal commas, truth values, lists of one number.

What is no number but stands for one is read as it, with a note; what may stand for two is an error that asks.
Columns of labels and ids stay as they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sigdask.counts.texts import Texts
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.summaries import remove_summary_rows
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.tables.bookkeeping import check_rows, remove_bookkeeping
from sigdask.formats.tables.decimals import convert_decimal_commas
from sigdask.formats.tables.truth_values import convert_truth_words, find_truth_words
from sigdask.text import describe_items


def read_score_table(source: Source, options: Options, *, costs: bool = True) -> FileTable:
    """Read a score table as numbers, without bookkeeping columns and summary rows."""
    table = read_table(source.path, options.ignore, options.decimal)
    check_rows(table, options)
    return remove_summary_rows(convert_scores(remove_bookkeeping(table, options, costs=costs), options), options)


def convert_scores(table: FileTable, options: Options, columns: Sequence[str] | None = None) -> FileTable:
    """Convert the score columns of a table to numbers, with notes on what was converted.

    Parameters
    ----------
    table : FileTable
        As it was read.
    options : Options
        Which columns are no scores, and what parts decimals.
    columns : sequence of str, optional
        Columns of scores. By default all that are not named otherwise; of these, truth values beside real
        scores tell kinds of items.

    Raises
    ------
    InputError
        For a comma that may part decimals or thousands.
    """
    candidates = columns or table.list_other_columns(table.find_id_column(options), *options.groups, *options.ignore)
    table = _unwrap_lists(table, candidates)
    texts = {
        name: Texts.from_values(table.columns[name])
        for name in candidates
        if name not in table.nested and not table.is_numeric(name)
    }
    original = table.columns
    if texts or options.decimal == ",":
        table = convert_decimal_commas(table, texts, options.decimal)
    words = {name: cells for name, cells in texts.items() if table.columns[name] is original[name]}
    truth_words = {name: readings for name, cells in words.items() if (readings := find_truth_words(cells)) is not None}
    if truth_words and columns is None and not all(_is_zero_or_one(table, name) for name in candidates):
        return table
    return convert_truth_words(table, truth_words)


def _is_zero_or_one(table: FileTable, name: str) -> bool:
    """Return whether a column holds no scores other than 0 and 1."""
    if not table.is_numeric(name):
        return True
    values = table.get_numbers(name)
    return bool(np.isin(values[~np.isnan(values)], (0, 1)).all())


def _unwrap_lists(table: FileTable, columns: Sequence[str]) -> FileTable:
    """Replace lists of one number by the number, as a metric called on single items writes them."""
    unwrapped = {}
    for name in columns:
        cells = table.nested.get(name, ())
        values = [cell[0] if isinstance(cell, list) and len(cell) == 1 else None for cell in cells]
        if values and all(isinstance(cell, int | float) for cell in values):
            unwrapped[name] = Texts.from_values(repr(float(cell)) for cell in values if cell is not None)
    if not unwrapped:
        return table
    return replace(
        table,
        columns={**table.columns, **unwrapped},
        nested={name: cells for name, cells in table.nested.items() if name not in unwrapped},
        notes=[
            *table.notes,
            f"{table.path}: {describe_items([*unwrapped], 'column')} of lists of one number: read as that number",
        ],
    )
