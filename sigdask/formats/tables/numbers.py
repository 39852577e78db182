"""Real numbers predicted for each item, and real gold values: a regression or quality estimation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.tables import FileTable
from sigdask.formats.tables.predictions import read_predictions

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


SUBMISSION_ROW = re.compile(r"[^\t]*\t[^\t]*\t(\d+)\t([^\t]+)")
"""Row of a submission to WMT's quality estimation task: language pair, method, index and number."""

SUBMISSION_HEAD = 3
"""Lines before the rows: size in bytes, parameters, models."""


def _order_submission(table: FileTable) -> FileTable:
    """Return the numbers of a submission to WMT's quality estimation task by their indices, other tables unchanged."""
    if table.header or len(table.columns) != 1:
        return table
    ((name, column),) = table.columns.items()
    cells = [*column]
    head, rows = cells[:SUBMISSION_HEAD], cells[SUBMISSION_HEAD:]
    if not len(rows) or not all(cell.isdigit() for cell in head) or not SUBMISSION_ROW.fullmatch(rows[0]):
        return table
    numbers: dict[int, tuple[str, int]] = {}
    for cell, line in zip(rows, table.lines[SUBMISSION_HEAD:], strict=True):
        match = SUBMISSION_ROW.fullmatch(cell)
        if match is None:
            raise InputError(file=table.path, line=line, found=repr(cell), expected="pair, method, index and number")
        index = int(match[1])
        if index in numbers or index >= len(rows):
            problem = f"again (line {numbers[index][1]})" if index in numbers else f"of {len(rows):,} rows"
            raise InputError(f"index {index} {problem}; expected 0 to {len(rows) - 1:,}", file=table.path, line=line)
        numbers[index] = match[2], line
    ordered = [numbers[index] for index in range(len(rows))]
    return replace(table, columns={name: [cell for cell, _ in ordered]}, lines=[line for _, line in ordered])
