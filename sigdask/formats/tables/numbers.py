"""Real numbers predicted for each item, and real gold values: a regression or quality estimation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.tables import FileTable
from sigdask.formats.tables.predictions import read_predictions
from sigdask.text import format_count

NO_NUMBER = "found no number; write one, or remove the item from every file"


def read_numbers(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read predicted numbers from one table with a gold column, or from a gold file and one file for each system."""
    options = replace(options, missing=None)
    predictions = read_predictions(sources, gold, options, _order_submission)
    return Counts.from_numbers(
        predictions.table.get_complete_numbers(predictions.gold, NO_NUMBER),
        {
            name: np.asarray(table.get_complete_numbers(column, NO_NUMBER)[order])
            for name, (table, column, order) in predictions.systems.items()
        },
        ids=predictions.ids,
        groups=predictions.read_groups(),
        warnings=predictions.notes,
    )


SUBMISSION_HEAD = 3
"""Lines before the rows of a submission to WMT's quality estimation task: size in bytes, parameters, models."""


def _order_submission(table: FileTable) -> FileTable:
    """Return the numbers of a submission to WMT's quality estimation task by their indices, other tables unchanged.

    A row has the language pair, the method, the index of the segment, and the number.
    """
    if table.header or len(table.columns) != 1:
        return table
    [(name, column)] = table.columns.items()
    cells = [cell.split("\t") for cell in column]
    head, rows = cells[:SUBMISSION_HEAD], cells[SUBMISSION_HEAD:]
    if not rows or not all(cell[0].isdigit() for cell in head) or any(len(row) != 4 for row in rows):
        return table
    lines = table.lines[SUBMISSION_HEAD:]
    number_by_index = {index: (number, line) for (_, _, index, number), line in zip(rows, lines, strict=True)}
    indices = [str(k) for k in range(len(rows))]
    if lacking := [index for index in indices if index not in number_by_index]:
        remedy = f"give {format_count(len(rows), 'row')} the indices 0 to {len(rows) - 1:,}, each once"
        raise InputError(f"no row has the index {lacking[0]}", file=table.path, remedy=remedy)
    numbers, lines = zip(*(number_by_index[index] for index in indices), strict=True)
    return replace(table, columns={name: numbers}, lines=lines)
