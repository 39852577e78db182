"""Align the rows of several files by their item columns or by position, and report what does not match."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.texts import ScopeNote, Texts, find_positions
from sigdask.errors import InputError, MissingColumnError
from sigdask.formats.reading.json_records import list_fields
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import FileTable
from sigdask.formats.roles import name_role, resolve_roles
from sigdask.interface import spell
from sigdask.text import describe_items, format_count

RowOrder = NDArray[np.intp] | slice
"""The rows of a table in the order of items, -1 for an item that it lacks. A slice if they already have that order."""

FILE_ORDER = slice(None)

INPUT_ROLES = frozenset({"item", "unit", "subset", "text"})
"""Roles of columns that are the same for all systems."""


def align(
    first: FileTable, others: Sequence[FileTable], options: Options, noun: str = "id", *, may_lack: bool = False
) -> tuple[Texts | None, list[RowOrder], list[str]]:
    """Match the rows of other tables to those of the first.

    Parameters
    ----------
    first : FileTable
        Table that says which items there are, such as the gold standard.
    others : sequence of FileTable
        Tables with a row for each of these items.
    options : Options
        `align` says whether rows are matched by the item column or by position. By default they are matched by the
        item column if all tables have one.
    noun : str
        What the items are called in messages.
    may_lack : bool
        Whether items that a table lacks have the row -1 if the option `missing` is "zero" or "pairwise".

    Returns
    -------
    ids : Texts, or None
        Item ids, None by position.
    orders : list of Order
        For each other table, its row of each item of the first table.
    warnings : list of str
        Notes of the tables, and notes on tables in another order or without an item.

    Raises
    ------
    InputError
        Items are missing, extra or duplicate, or the numbers of rows differ.
    """
    tables = (first, *others)
    notes = [note for table in tables for note in table.notes]
    all_ids = [get_ids(table, options) for table in tables]
    without = next((table for table, ids in zip(tables, all_ids, strict=True) if ids is None), None)
    if options.align == "id" and without is not None:
        raise InputError(
            "no item column to align by", file=without.path, remedy=f"name it with {spell('columns', 'item=COLUMN')}"
        )
    ids = all_ids[0]
    if without is not None or ids is None:
        for table in others:
            _check_equal_lengths(first, table)
            if options.align != "position":
                _check_same_names(first, table, options)
        if any(table_ids is not None for table_ids in all_ids) and without is not None:
            notes.append(ScopeNote(f"{without.path} has no item column, so rows are aligned by position"))
        return None, [FILE_ORDER] * len(others), notes
    may_lack = may_lack and options.missing in {"zero", "pairwise"}
    orders: list[RowOrder] = []
    for table, keys in zip(others, all_ids[1:], strict=True):
        assert keys is not None
        order, note = _align_by_id((first, ids), (table, keys), noun, options, may_lack=may_lack)
        orders.append(order)
        notes += note
    return ids, orders, notes


def find_item_column(table: FileTable, options: Options) -> str | None:
    """Return the column of the items: the requested one, or the one whose name has this role."""
    return options.id_column or resolve_roles(table, options).get("item")


def get_ids(table: FileTable, options: Options) -> Texts | None:
    """Return the checked ids of the rows, or None if there are none, or rows are matched by position."""
    name = None if options.align == "position" else find_item_column(table, options)
    return None if name is None else table.get_ids(options.with_columns(item=name))


def _check_equal_lengths(first: FileTable, table: FileTable) -> None:
    if table.n_rows != first.n_rows:
        raise InputError(
            f"{format_count(table.n_rows, 'row')}, but {first.path} has {first.n_rows:,}; rows are aligned by "
            f"position. If a column of each file names the items, give {spell('columns', 'item=COLUMN')}",
            file=table.path,
        )


def _check_same_names(first: FileTable, table: FileTable, options: Options) -> None:
    """Raise an error if tables without items differ in a column of inputs or groups: rows may not correspond."""
    aside = {options.gold_column, options.prediction_column, "hypothesis", *first.nested, *table.nested}
    for name in first.columns:
        roles = {*name_role(name)}
        if name in aside or name not in table.columns or not roles or not roles <= INPUT_ROLES:
            continue
        cells, other_cells = Texts.from_values(first.columns[name]), Texts.from_values(table.columns[name])
        if (is_same := other_cells.equals_column(cells)).all():
            continue
        k = int(np.argmin(is_same))
        by_name = f"{spell('columns', f'item={name}')}, or " if cells.are_unique and other_cells.are_unique else ""
        raise InputError(
            f"column {name!r} has {other_cells[k]!r}, but {cells[k]!r} in {first.path}, line {first.lines[k]} "
            f"({np.count_nonzero(~is_same):,} of {len(cells):,} rows differ), and no column names the items",
            file=table.path,
            line=table.lines[k],
            remedy=f"name the column of the items: {by_name}if rows correspond as they stand: "
            f"{spell('align', 'position')}",
        )


def _align_by_id(
    expected: tuple[FileTable, Texts], given: tuple[FileTable, Texts], noun: str, options: Options, *, may_lack: bool
) -> tuple[RowOrder, list[str]]:
    """Return the row of each expected item, and a note if rows are in another order or missing."""
    (first, ids), (table, keys) = expected, given
    if len(keys) == len(ids):
        if (is_same := keys.equals_column(ids)).all():
            return FILE_ORDER, []
        if ids[ids.sorted[0]] == keys[keys.sorted[0]]:
            line = table.lines[int(np.argmin(is_same))]
            note = f"{table.path}: {noun}s stand in another order than in {first.path} (first on line {line})"
            return find_positions(keys, ids), [f"{note}; aligned by {noun}"]
    row_by_id = {item: row for row, item in enumerate(keys)}
    missing = [item for item in ids if item not in row_by_id]
    extra = sorted(row_by_id.keys() - {*ids}, key=row_by_id.__getitem__)
    if extra or not may_lack or len(missing) == len(ids):
        raise _build_items_error(expected, given, missing, extra, noun, options)
    order = np.array([row_by_id.get(item, -1) for item in ids], np.intp)
    return order, []


def _build_items_error(
    expected: tuple[FileTable, Texts],
    given: tuple[FileTable, Texts],
    missing: Sequence[str],
    extra: Sequence[str],
    noun: str,
    options: Options,
) -> InputError:
    """Return the error for tables with different items, with the remedy that their ids suggest."""
    (first, ids), (table, keys) = expected, given
    n_shared = len(ids) - len(missing)
    hint = _describe_spelling(missing, extra) or "give both files the same items"
    if len(missing) > 1 and n_shared and missing == list(ids[-len(missing) :]):
        hint = f"it lacks all {noun}s after {ids[n_shared - 1]!r}: is the file cut off?"
    if len(keys) == len(ids):
        hint += f". If rows correspond as they stand, {spell('align', 'position')}"
    if not n_shared and (name := _find_shared_column(first, table)):
        hint = f"column {name!r} has the same unique cells in both: {spell('columns', f'item={name}')}"
    where = f"({n_shared:,} of {len({*ids, *keys}):,} {noun}s are in both)"
    if missing:
        asked = "" if options.missing in {None, "error"} else f". {spell('missing', options.missing)} is not for these"
        problem = f"lacks {describe_items(missing, noun)} of {first.path} {where}{asked}"
        return InputError(problem, file=table.path, remedy=hint)
    problem = f"{describe_items(extra, noun)} not among those of {first.path} {where}"
    return InputError(problem, file=table.path, line=table.lines[list(keys).index(extra[0])], remedy=hint)


def _find_shared_column(first: FileTable, table: FileTable) -> str | None:
    """Return a column, or a field of objects, that has the same texts in two tables, each of them once."""
    fields = [field for name, cells in first.nested.items() for field in list_fields(name, cells[0])]
    for name in (*(name for name in first.columns if name not in first.nested), *fields):
        with suppress(InputError):
            texts, other_texts = (Texts.from_values(each.get_column(name)) for each in (first, table))
            if texts.are_unique and {*texts} == {*other_texts}:
                return name
    return None


def _describe_spelling(missing: Sequence[str], extra: Sequence[str]) -> str:
    """Return a remedy if ids differ only in spelling: case, blanks, leading or trailing zeros."""
    extra_by_plain = {_normalize_id(item): item for item in extra}
    item = next((item for item in missing if _normalize_id(item) in extra_by_plain), None)
    if item is None:
        return ""
    return f"{extra_by_plain[_normalize_id(item)]!r} there may be {item!r} here: write ids alike in all files"


def _normalize_id(item: str) -> str:
    """Return an id normalized for comparison: without case, blanks, leading zeros and trailing `.0`.

    Examples
    --------
    >>> _normalize_id("007"), _normalize_id("7.0"), _normalize_id("Q 12"), _normalize_id("q12")
    ('7', '7', 'q12', 'q12')
    """
    text = "".join(unicodedata.normalize("NFKC", item).split()).casefold()
    return re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"^([+-]?\d+)\.0*$", r"\1", text))


def reorder_column(column: Sequence[Any], order: RowOrder) -> Texts:
    """Return the cells of a column in the order of the items, "" for items without a row."""
    texts = Texts.from_values(column)
    if isinstance(order, slice) or not (is_missing := order < 0).any():
        return texts[order]
    return Texts.from_values("" if gap else cell for cell, gap in zip(texts[order], is_missing, strict=True))


def build_sentence_groups(
    path: Path, n_sentences: int, documents: Sequence[str] | None, requested: Sequence[str]
) -> dict[str, Sequence[str]]:
    """Return the columns to group sentences by: document if a file marks documents, and sentence if requested."""
    groups: dict[str, Sequence[str]] = {} if documents is None else {"document": documents}
    for name in requested:
        if name == "sentence":
            groups[name] = tuple(str(k) for k in range(1, n_sentences + 1))
        elif name not in groups:
            hint = " (marked by -DOCSTART- or # newdoc lines, which it has not)" if name == "document" else ""
            columns = ", ".join(("sentence", *groups))
            raise MissingColumnError(
                f"{path}: no column {name!r} to group sentences by{hint}; columns: {columns}", name
            )
    return groups
