"""Align the rows of several files by id or by position, and report what does not match."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Factor
from sigdask.counts.texts import ScopeNote, Texts, find_positions
from sigdask.errors import InputError, MissingColumnError
from sigdask.formats.reading.averages_only import is_metric_name
from sigdask.formats.reading.columns import find_numbers, has_numbers, is_number
from sigdask.formats.reading.json_records import list_fields
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import FileTable
from sigdask.interface import spell
from sigdask.text import describe_items, format_count

RowOrder = NDArray[np.intp] | slice
"""The rows of a table in the order of items, or a slice if they already have that order."""

FILE_ORDER = slice(None)

MIN_SHARE_ALIKE = 0.9
"""Minimum share of rows with the same words for an alignment by position."""

MIN_NAMES = 10
"""Rows from which on cells that are the same in both tables, each once, are names of items and not answers."""

OUTPUT_NAME = re.compile(
    r"gold|label|truth|target|pred|output|answer|response|hyp|system|translation|completion|generat|rank|score|value|"
    r"rating|\b(place|order)\b",
    re.IGNORECASE,
)
"""Columns of system outputs, which may be the same texts in another order."""

HEAD = 1000
"""Rows read to distinguish words from ids, labels and numbers."""

TEXT_NAMES = frozenset({"text", "sentence", "word", "token", "source", "src", "input", "prompt", "question", "premise"})
"""Names of columns with the systems' inputs."""


def align(
    first: FileTable, others: Sequence[FileTable], options: Options, noun: str = "id"
) -> tuple[Texts | None, list[RowOrder], list[str]]:
    """Match the rows of other tables to those of the first.

    Returns
    -------
    ids : Texts, or None
        Item ids, None by position.
    orders : list of Order
        For each other table, its row of each item of the first table.
    warnings : list of str
        Warnings about how files were read, and about files whose ids are in another order.

    Raises
    ------
    InputError
        Ids are missing, extra or duplicate, or the numbers of rows differ.
    """
    all_ids = [table.get_ids(options) for table in (first, *others)]
    without_ids = [k for k, table_ids in enumerate(all_ids) if table_ids is None]
    if options.align == "id" and without_ids:
        table = (first, *others)[without_ids[0]]
        raise InputError(
            "no id column to align by", file=table.path, remedy=f"name it with {spell('columns', 'item=COLUMN')}"
        )
    ids = None if without_ids else all_ids[0]
    warnings = [note for table in (first, *others) for note in table.notes]
    if ids is None:
        return None, [_align_by_position(first, table, options, warnings) for table in others], warnings
    if options.align == "auto" and (notes := _compare_by_position(first, others, all_ids)) is not None:
        return None, [FILE_ORDER] * len(others), [*notes, *warnings]
    orders: list[RowOrder] = []
    for table, table_ids in zip(others, all_ids[1:], strict=True):
        assert table_ids is not None
        if len(table_ids) == len(ids) and (is_same := table_ids.equals_column(ids)).all():
            orders.append(FILE_ORDER)
            continue
        orders.append(_align_by_id(first, ids, table, table_ids, noun, options))
        row = int(np.argmin(is_same))
        warnings.append(
            f"{table.path}: {noun}s stand in another order than in {first.path} (first on line {table.lines[row]}); "
            f"aligned by {noun}"
        )
    return ids, orders, warnings


def _align_by_position(first: FileTable, table: FileTable, options: Options, warnings: list[str]) -> RowOrder:
    """Return the row of `table` for each row of the first table: by position, or by equal cells of a column."""
    if table.n_rows != first.n_rows:
        raise InputError(
            f"{format_count(table.n_rows, 'row')}, but {first.path} has {first.n_rows:,}; rows are aligned by "
            f"position. If a column names the items, give {spell('columns', 'item=COLUMN')}",
            file=table.path,
        )
    if options.align == "position":
        return FILE_ORDER
    name = _find_text_column(first, table)
    texts, other_texts = (Texts.from_values(t.columns[name]) if name else Texts.from_values(()) for t in (first, table))
    is_same = other_texts.equals_column(texts)
    if name and is_same.all():
        return FILE_ORDER
    if name and texts.are_unique and _have_same_texts(texts, other_texts):
        warnings.append(_describe_order(first, table, name))
        return find_positions(other_texts, texts)
    if (order := _align_by_names(first, table, options, warnings)) is not None or name is None:
        return FILE_ORDER if order is None else order
    n_alike = int(np.count_nonzero(is_same))
    if n_alike > MIN_SHARE_ALIKE * len(texts):
        warnings.insert(0, describe_differences(str(table.path), str(first.path), n_alike, len(texts)))
        return FILE_ORDER
    if 2 * len({*texts} & {*other_texts}) <= len({*texts}):
        return FILE_ORDER  # outputs of systems, not inputs
    raise InputError(
        f"only {n_alike:,} of {len(texts):,} rows have the same words as in {first.path} (rows are aligned by "
        f"position if more than {100 * MIN_SHARE_ALIKE:.0f} % do). If the rows correspond nevertheless, add "
        f"{spell('align', 'position')}",
        file=table.path,
        line=table.lines[int(np.argmin(is_same))],
    )


def _describe_order(first: FileTable, table: FileTable, name: str) -> str:
    return f"{table.path}: rows stand in another order than in {first.path}; aligned by column {name!r}"


def _align_by_names(first: FileTable, table: FileTable, options: Options, warnings: list[str]) -> RowOrder | None:
    """Return the order of the rows by a column that names the items in both tables, or None if no column shows one.

    In such a column no cell occurs twice. Its name may be any but that of an output. Decimals are no names.

    Raises
    ------
    InputError
        For whole numbers, which may be ranks or scores, and if most names stand in other rows but not all are in both.
    """
    if first.n_rows < MIN_NAMES or not (first.header and table.header):
        return None
    aside = {options.gold_column, options.prediction_column, *options.groups, *first.nested, *table.nested}
    columns, other_columns = ({**t.columns, **t.removed} for t in (first, table))
    for name in [name for name in columns if name in other_columns and name not in aside]:
        if OUTPUT_NAME.search(name) or is_metric_name(name):
            continue
        names, other_names = Texts.from_values(columns[name]), Texts.from_values(other_columns[name])
        is_same = other_names.equals_column(names)
        if is_same.all() or not (names.are_unique and other_names.are_unique):
            continue
        values = find_numbers(names)
        if values is not None and (np.isnan(values) | (values != np.floor(values))).any():
            continue
        is_complete = _have_same_texts(names, other_names)
        if not is_complete and name in {*first.removed, *table.removed}:
            continue  # counters of files may begin with different numbers
        if is_complete and values is None:
            warnings.append(_describe_order(first, table, name))
            return find_positions(other_names, names)
        n_alike = int(np.count_nonzero(is_same))
        if is_complete or 2 * (len({*names} & {*other_names}) - n_alike) > len(names):
            raise InputError(
                f"column {name!r} has the same cells as in {first.path}, but in another order. If it names the "
                f"items, give {spell('columns', f'item={name}')}. If not, {spell('align', 'position')} aligns "
                "rows by their position",
                file=table.path,
                line=table.lines[int(np.argmin(is_same))],
            )
        if n_alike > MIN_SHARE_ALIKE * len(names) and not any(" " in cell for cell in names):
            warnings.insert(0, describe_differences(str(table.path), str(first.path), n_alike, len(names)))
    return None


def _have_same_texts(texts: Texts, other_texts: Texts) -> bool:
    """Return whether two columns of equal length hold the same texts, in any order."""
    return bool(texts[texts.sorted[0]].equals_column(other_texts[other_texts.sorted[0]]).all())


def _find_text_column(first: FileTable, table: FileTable) -> str | None:
    """Return the name of a column of words or sentences that both tables have, or None."""
    if not (first.header or table.header):
        names = ["1"] if len(first.columns) > 1 and len(table.columns) > 1 else []
    else:
        names = [name for name in first.columns if name.lower() in TEXT_NAMES]
    return next((name for name in names if all(_has_texts(candidate, name) for candidate in (first, table))), None)


def _has_texts(table: FileTable, name: str) -> bool:
    """Return whether a column holds words or sentences: not numbers, and not repeating labels."""
    if name not in table.columns or name in table.nested:
        return False
    cells = Texts.from_values(table.columns[name])
    return not has_numbers(cells[:HEAD]) and 2 * len(Factor.from_values(cells[:HEAD]).levels) > len(cells[:HEAD])


def _compare_by_position(
    first: FileTable, others: Sequence[FileTable], all_ids: Sequence[Texts | None]
) -> list[str] | None:
    """Return notes on differing words if files without headers hold words that nearly agree by row, else None."""
    if any(table.header for table in (first, *others)):
        return None
    texts, *columns = (ids for ids in all_ids if ids is not None)
    head = texts[:HEAD]
    are_ids = 2 * sum(any(c.isdigit() for c in text) for text in head) > len(head)  # as words have no digits
    aligned = [column for column in columns if len(column) == len(texts)]
    moved = [_have_same_texts(texts, column) and column != texts for column in aligned]
    if are_ids or len(moved) < len(columns) or any(moved):
        return None
    n_same = [int(np.count_nonzero(other_texts.equals_column(texts))) for other_texts in columns]
    if not any(n < len(texts) for n in n_same) or any(n <= MIN_SHARE_ALIKE * len(texts) for n in n_same):
        return None
    differing = [(table, n) for table, n in zip(others, n_same, strict=True) if n < len(texts)]
    return [describe_differences(str(table.path), str(first.path), n, len(texts)) for table, n in differing]


def describe_differences(path: str, first_path: str, n_alike: int, n_rows: int) -> ScopeNote:
    """Return the note on rows aligned by position although some of their words differ."""
    return ScopeNote(
        f"{path}: {n_alike:,} of {n_rows:,} rows have the same words as in {first_path}, and the others differ a "
        "little, so rows are aligned by position"
    )


def _align_by_id(first: FileTable, ids: Texts, table: FileTable, keys: Texts, noun: str, options: Options) -> RowOrder:
    if len(keys) == len(ids) and _have_same_texts(ids, keys):
        return find_positions(keys, ids)
    row_by_id = {item: row for row, item in enumerate(keys)}
    missing = [item for item in ids if item not in row_by_id]
    expected = set(ids)
    extra = [item for item in keys if item not in expected]
    n_shared = len(ids) - len(missing)
    hint = _describe_spelling(missing, extra)
    if not hint and missing and extra:
        hint = f"; {extra[0]!r} is in {table.path} alone. Give both files the same items, and write their {noun}s alike"
    elif not hint and len(missing) > 1 and missing == list(ids[-len(missing) :]):
        hint = f". It lacks all {noun}s after {ids[n_shared - 1]!r}: is the file cut off?" if n_shared else ""
    hint = hint or ". Give both files the same items"
    if len(keys) == len(ids):
        hint += f". Do rows correspond as they stand? Then {spell('align', 'position')}"
    if options.missing not in {None, "error"}:
        hint += (
            f". {spell('missing', options.missing)} is for missing scores, not for missing rows: give each file a "
            f"row for every {noun}, and leave the score empty where there is none"
        )
    if not n_shared and (name := _find_shared_ids(first, table)):
        hint += f". Column {name!r} has the same unique cells in both: does it name the items? Then "
        hint += f"{spell('columns', f'item={name}')}"
    hint = f" ({n_shared:,} of {len({*ids, *keys}):,} {noun}s are in both){hint}"
    if missing:
        raise InputError(f"lacks {describe_items(missing, noun)} of {first.path}{hint}", file=table.path)
    raise InputError(
        f"{describe_items(extra, noun)} not among those of {first.path}{hint}",
        file=table.path,
        line=table.lines[row_by_id[extra[0]]],
    )


def _find_shared_ids(first: FileTable, table: FileTable) -> str | None:
    """Return a column, or a field of objects, that has the same texts in two tables, each of them once."""
    fields = [field for name, cells in first.nested.items() for field in list_fields(name, cells[0])]
    for name in (*(name for name in first.columns if name not in first.nested), *fields):
        with suppress(InputError):
            texts, other_texts = (Texts.from_values(each.get_column(name)) for each in (first, table))
            is_name = texts.are_unique and not any("." in text and is_number(text) for text in texts)
            if is_name and len(texts) == len(other_texts) and _have_same_texts(texts, other_texts):
                return name
    return None


def _describe_spelling(missing: Sequence[str], extra: Sequence[str]) -> str:
    """Return a hint if ids differ only in spelling: case, blanks, leading or trailing zeros."""
    extra_by_plain = {_normalize_id(item): item for item in extra}
    item = next((item for item in missing if _normalize_id(item) in extra_by_plain), None)
    if item is None:
        return ""
    return f"; {extra_by_plain[_normalize_id(item)]!r} there may be {item!r} here: write ids alike in all files"


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
    """Return the cells of a column in the order of the items."""
    return Texts.from_values(column)[order]


def get_group_columns(table: FileTable, options: Options) -> dict[str, Sequence[str]]:
    """Return the columns that the options name as groups, for swapping or for subsets."""
    return {name: table.get_column(name) for name in options.groups}


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
