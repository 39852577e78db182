"""Rows of several files brought together, by id or by position; what does not fit is named."""

from __future__ import annotations

from collections.abc import Sequence

from sigdask.errors import InputError
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import Table
from sigdask.writing import some


def align(
    first: Table, others: Sequence[Table], options: Options
) -> tuple[list[str] | None, list[list[int]], list[str]]:
    """Match the rows of tables to those of the first.

    Returns
    -------
    ids : list of str, or None
        Item ids, None by position.
    orders : list of list of int
        For each other table, the row of each item of the first.
    warnings : list of str
        What to tell of how files were read, and files whose ids stand in another order.

    Raises
    ------
    InputError
        For missing, extra and duplicate ids, and for different numbers of rows.
    """
    all_ids = [table.ids(options) for table in (first, *others)]
    if options.align == "id" and None in all_ids:
        table = (first, *others)[all_ids.index(None)]
        raise InputError(f"{table.path}: no id column to align by; name it with --id")
    ids = all_ids[0] if None not in all_ids else None
    warnings = [note for table in (first, *others) for note in table.notes]
    if ids is None:
        return None, [_by_position(first, table) for table in others], warnings
    orders = []
    for table, own in zip(others, all_ids[1:], strict=True):
        assert own is not None
        orders.append(_by_id(first, ids, table, own))
        if own != ids:
            at = next(k for k in range(len(ids)) if own[k] != ids[k])
            warnings.append(
                f"{table.path}: ids stand in another order than in {first.path} (first on line {table.lines[at]}); "
                "aligned by id"
            )
    return ids, orders, warnings


def _by_position(first: Table, table: Table) -> list[int]:
    if table.n_rows != first.n_rows:
        raise InputError(
            f"{table.path}: {table.n_rows} rows, but {first.path} has {first.n_rows}; rows are aligned by position"
        )
    return list(range(table.n_rows))


def _by_id(first: Table, ids: list[str], table: Table, own: list[str]) -> list[int]:
    place = {item: row for row, item in enumerate(own)}
    missing = [item for item in ids if item not in place]
    if missing:
        raise InputError(f"{table.path}: {some(missing, 'id')} missing, which {first.path} has")
    known = set(ids)
    extra = [item for item in own if item not in known]
    if extra:
        raise InputError(
            f"{table.path}, line {table.lines[place[extra[0]]]}: {some(extra, 'id')} not among those of {first.path}"
        )
    return [place[item] for item in ids]


def group_columns(table: Table, options: Options) -> dict[str, list[str]]:
    """Return the columns to swap or subset by that a table has."""
    return {name: table.column(name) for name in options.groups}
