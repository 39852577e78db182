"""Tables of scores, and how scores are written: numbers, decimal commas, truth values, lists of one number.

What is no number but stands for one is read as it, with a note; what may stand for two is an error that asks.
Columns of labels and ids stay as they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sigdask.counts.texts import Texts
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.summaries import without_summaries
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.tables.bookkeeping import check_rows, without_bookkeeping
from sigdask.formats.tables.decimals import with_points
from sigdask.formats.tables.truths import as_numbers, truths
from sigdask.text import some


def score_table(source: Source, options: Options, *, costs: bool = True) -> FileTable:
    """Read a table of scores: in numbers, without bookkeeping (and costs) and rows that sum up the others."""
    table = read_table(source.path, options.ignore, options.decimal)
    check_rows(table, options)
    return without_summaries(in_numbers(without_bookkeeping(table, options, costs=costs), options), options)


def in_numbers(table: FileTable, options: Options, columns: Sequence[str] | None = None) -> FileTable:
    """Return a table with its columns of scores written as numbers, and notes of those that were not.

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
    candidates = columns or table.others(table.id_name(options), *options.groups, *options.ignore)
    table = _out_of_lists(table, candidates)
    texts = {
        name: Texts.of(table.columns[name])
        for name in candidates
        if name not in table.nested and not table.is_numeric(name)
    }
    written = table.columns
    if texts or options.decimal == ",":
        table = with_points(table, texts, options.decimal)
    words = {name: cells for name, cells in texts.items() if table.columns[name] is written[name]}
    found = {name: own for name, cells in words.items() if (own := truths(cells)) is not None}
    if found and columns is None and not all(_is_zero_or_one(table, name) for name in candidates):
        return table
    return as_numbers(table, found)


def _is_zero_or_one(table: FileTable, name: str) -> bool:
    """Whether a column holds no other scores than 0 and 1."""
    if not table.is_numeric(name):
        return True
    values = table.numbers(name)
    return bool(np.isin(values[~np.isnan(values)], (0, 1)).all())


def _out_of_lists(table: FileTable, columns: Sequence[str]) -> FileTable:
    """Take scores out of lists of one number, which a metric writes that was asked for one item."""
    found = {}
    for name in columns:
        cells = table.nested.get(name, ())
        alone = [cell[0] if isinstance(cell, list) and len(cell) == 1 else None for cell in cells]
        if alone and all(isinstance(cell, int | float) for cell in alone):
            found[name] = Texts.of(repr(float(cell)) for cell in alone if cell is not None)
    if not found:
        return table
    return replace(
        table,
        columns={**table.columns, **found},
        nested={name: cells for name, cells in table.nested.items() if name not in found},
        notes=[*table.notes, f"{table.path}: {some([*found], 'column')} of lists of one number: read as that number"],
    )
