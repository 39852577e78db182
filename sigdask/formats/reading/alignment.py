"""Rows of several files brought together, by id or by position; what does not fit is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.texts import Texts, places_in
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import Table
from sigdask.writing import some

Order = NDArray[np.intp] | slice
"""The rows of a table in the order of items; a slice of all where they stand so."""

AS_THEY_STAND = slice(None)


def align(first: Table, others: Sequence[Table], options: Options) -> tuple[Texts | None, list[Order], list[str]]:
    """Match the rows of tables to those of the first.

    Returns
    -------
    ids : Texts, or None
        Item ids, None by position.
    orders : list of Order
        For each other table, the row of each item of the first.
    warnings : list of str
        What to tell of how files were read, and files whose ids stand in another order.

    Raises
    ------
    InputError
        For missing, extra and duplicate ids, and for different numbers of rows.
    """
    all_ids = [table.ids(options) for table in (first, *others)]
    without = [k for k, own in enumerate(all_ids) if own is None]
    if options.align == "id" and without:
        table = (first, *others)[without[0]]
        raise InputError(f"{table.path}: no id column to align by; name it with --id")
    ids = None if without else all_ids[0]
    warnings = [note for table in (first, *others) for note in table.notes]
    if ids is None:
        return None, [_by_position(first, table) for table in others], warnings
    orders: list[Order] = []
    for table, own in zip(others, all_ids[1:], strict=True):
        assert own is not None
        if len(own) == len(ids) and (alike := own.alike(ids)).all():
            orders.append(AS_THEY_STAND)
            continue
        orders.append(_by_id(first, ids, table, own))
        at = int(np.argmin(alike))
        warnings.append(
            f"{table.path}: ids stand in another order than in {first.path} (first on line {table.lines[at]}); "
            "aligned by id"
        )
    return ids, orders, warnings


def _by_position(first: Table, table: Table) -> Order:
    if table.n_rows != first.n_rows:
        raise InputError(
            f"{table.path}: {table.n_rows} rows, but {first.path} has {first.n_rows}; rows are aligned by position"
        )
    return AS_THEY_STAND


def _by_id(first: Table, ids: Texts, table: Table, own: Texts) -> Order:
    if len(own) == len(ids) and ids[ids.sorted[0]].alike(own[own.sorted[0]]).all():
        return places_in(own, ids)
    place = {item: row for row, item in enumerate(own)}
    missing = [item for item in ids if item not in place]
    if missing:
        raise InputError(f"{table.path}: {some(missing, 'id')} missing, which {first.path} has")
    known = set(ids)
    extra = [item for item in own if item not in known]
    raise InputError(
        f"{table.path}, line {table.lines[place[extra[0]]]}: {some(extra, 'id')} not among those of {first.path}"
    )


def in_order(column: Sequence[Any], order: Order) -> Texts:
    """Return a column of a table in the order of the items."""
    return Texts.of(column)[order]


def group_columns(table: Table, options: Options) -> dict[str, Sequence[str]]:
    """Return the columns to swap or subset by that a table has."""
    return {name: table.column(name) for name in options.groups}
