"""Real numbers predicted for each item, and real gold values: a regression or quality estimation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.fields import Floats
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import FILE_ORDER, RowOrder, align, get_group_columns
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.replicates import select_one_sample
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.tables.bookkeeping import remove_bookkeeping, select_systems
from sigdask.formats.tables.labels import find_gold_column, get_gold_column, get_prediction_column
from sigdask.formats.tables.notation import convert_scores
from sigdask.interface import spell


def read_numbers(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read predicted numbers from one table with a gold column, or from a gold file and one file for each system."""
    if gold is None:
        if len(sources) > 1:
            raise InputError("format numbers: several files and no gold values", remedy=f"give {spell('gold', 'FILE')}")
        return _read_one_table(read_table(sources[0].path, options.ignore, options.decimal), options)
    base = read_table(gold, options.ignore, options.decimal)
    gold_column = get_gold_column(base, options)
    base = convert_scores(base, options, [gold_column])
    base = select_one_sample(base, base.find_id_column(options), options, gold=gold_column)
    tables = [_order_submission(read_table(source.path, options.ignore, options.decimal)) for source in sources]
    tables = [convert_scores(table, options, [get_prediction_column(table, options)]) for table in tables]
    tables = [select_one_sample(table, table.find_id_column(options), options) for table in tables]
    ids, orders, warnings = align(base, tables, options)
    predictions = {
        name: _read_column(table, get_prediction_column(table, options), order)
        for name, table, order in zip(list_system_names(sources), tables, orders, strict=True)
    }
    return _build_counts(base, gold_column, predictions, ids, options, warnings)


SUBMISSION_ROW = re.compile(r"[^\t]*\t[^\t]*\t(\d+)\t([^\t]+)")
"""Row of a submission to WMT's quality estimation task: language pair, method, index and number."""

SUBMISSION_HEAD = 3
"""Lines before the rows: size in bytes, parameters, models."""


def _order_submission(table: FileTable) -> FileTable:
    """Return the numbers of a submission to WMT's quality estimation task by their indices, other tables unchanged."""
    if table.header or len(table.columns) != 1:
        return table
    ((name, cells),) = table.columns.items()
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


def _read_one_table(table: FileTable, options: Options) -> Counts:
    gold = options.gold_column or find_gold_column(table)
    if gold is None:
        raise table.build_column_error(
            "no column 'gold'", f"{spell('columns', 'gold=COLUMN')}, or give a gold file with {spell('gold')}"
        )
    table = convert_scores(table, options, [gold, *table.list_system_columns(options, gold)])
    table = select_one_sample(table, table.find_id_column(options), options, gold=gold)
    table = remove_bookkeeping(table, replace(options, ignore=(*options.ignore, gold)), costs=True, noun="numbers")
    columns = select_systems(table, options, table.list_system_columns(options, gold))
    predictions = {name: _read_column(table, name, FILE_ORDER) for name in columns}
    return _build_counts(table, gold, predictions, table.get_ids(options), options, [*table.notes])


def _read_column(table: FileTable, name: str, order: RowOrder) -> Floats:
    """Return the numbers of a column, none of them missing."""
    problem = "found no number; write one, or remove the item from every file"
    return np.asarray(table.get_complete_numbers(name, problem)[order])


def _build_counts(
    base: FileTable, gold_column: str, predictions: Mapping[str, Floats], ids: Any, options: Options, notes: list[str]
) -> Counts:
    gold = _read_column(base, gold_column, FILE_ORDER)
    groups = get_group_columns(base, replace(options, ignore=(*options.ignore, gold_column)))
    return Counts.from_numbers(gold, predictions, ids=ids, groups=groups, warnings=notes)
