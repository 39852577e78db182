"""Rows of several files brought together, by id or by position; what does not fit is named."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Factor
from sigdask.counts.shown import FirstLine
from sigdask.counts.texts import Texts, places_in
from sigdask.errors import InputError
from sigdask.formats.reading.numbers import holds_numbers
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import FileTable
from sigdask.text import count_noun, some

Order = NDArray[np.intp] | slice
"""The rows of a table in the order of items; a slice of all where they stand so."""

AS_THEY_STAND = slice(None)

NEARLY = 0.9
"""Share of the rows that must have the same words, to be aligned by position."""

HEAD = 1000
"""Rows looked at to tell words from ids, labels and numbers."""

TEXT_NAMES = frozenset({"text", "sentence", "word", "token", "source", "src", "input", "prompt", "question", "premise"})
"""Columns of what systems were given."""


def align(
    first: FileTable, others: Sequence[FileTable], options: Options
) -> tuple[Texts | None, list[Order], list[str]]:
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
        return None, [_by_position(first, table, options, warnings) for table in others], warnings
    if options.align == "auto" and (notes := _nearly_alike(first, others, all_ids)) is not None:
        return None, [AS_THEY_STAND] * len(others), [*notes, *warnings]
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


def _by_position(first: FileTable, table: FileTable, options: Options, warnings: list[str]) -> Order:
    """Return rows as they stand, or in the order of the texts that both tables have beside their labels or scores."""
    if table.n_rows != first.n_rows:
        raise InputError(
            f"{table.path}: {count_noun(table.n_rows, 'row')}, but {first.path} has {first.n_rows}; "
            "rows are aligned by position"
        )
    name = _text_column(first, table)
    if name is None or options.align == "position":
        return AS_THEY_STAND
    texts, own = Texts.of(first.columns[name]), Texts.of(table.columns[name])
    alike = own.alike(texts)
    if alike.all():
        return AS_THEY_STAND
    if texts.are_unique and _same_texts(texts, own):
        warnings.append(f"{table.path}: rows stand in another order than in {first.path}; aligned by column {name!r}")
        return places_in(own, texts)
    n_alike = int(np.count_nonzero(alike))
    if n_alike > NEARLY * len(texts):
        warnings.insert(0, nearly_alike(str(table.path), str(first.path), n_alike, len(texts)))
        return AS_THEY_STAND
    if 2 * len({*texts} & {*own}) <= len({*texts}):
        return AS_THEY_STAND  # what systems gave, not what they were given
    raise unlike(f"{table.path}, line {table.lines[int(np.argmin(alike))]}", str(first.path), n_alike, len(texts))


def _same_texts(texts: Texts, own: Texts) -> bool:
    """Whether two columns of one length hold the same texts, in any order."""
    return bool(texts[texts.sorted[0]].alike(own[own.sorted[0]]).all())


def _text_column(first: FileTable, table: FileTable) -> str | None:
    """Return the column of the words or sentences that rows are of, which both tables have."""
    if not (first.header or table.header):
        names = ["1"] if len(first.columns) > 1 and len(table.columns) > 1 else []
    else:
        names = [name for name in first.columns if name.lower() in TEXT_NAMES]
    return next((name for name in names if all(_are_texts(each, name) for each in (first, table))), None)


def _are_texts(table: FileTable, name: str) -> bool:
    """Whether a column holds words or sentences: no numbers, and no labels, which come again and again."""
    if name not in table.columns or name in table.nested:
        return False
    cells = Texts.of(table.columns[name])
    return not holds_numbers(cells[:HEAD]) and 2 * len(Factor.of(cells[:HEAD]).levels) > len(cells[:HEAD])


def _nearly_alike(first: FileTable, others: Sequence[FileTable], all_ids: Sequence[Texts | None]) -> list[str] | None:
    """Return notes where files without a header hold words, not ids, which nearly all agree row by row."""
    if any(table.header for table in (first, *others)):
        return None
    texts, *columns = (ids for ids in all_ids if ids is not None)
    moved = [_same_texts(texts, own) and own != texts for own in columns if len(own) == len(texts)]
    if _hold_digits(texts) or len(moved) < len(columns) or any(moved):
        return None
    alike = [int(np.count_nonzero(own.alike(texts))) for own in columns]
    if not any(n < len(texts) for n in alike) or any(n <= NEARLY * len(texts) for n in alike):
        return None
    return [
        nearly_alike(str(table.path), str(first.path), n, len(texts))
        for table, n in zip(others, alike, strict=True)
        if n < len(texts)
    ]


def _hold_digits(texts: Texts) -> bool:
    """Whether most texts hold a digit, as ids do and words do not."""
    head = texts[:HEAD]
    return 2 * sum(any(c.isdigit() for c in text) for text in head) > len(head)


def nearly_alike(path: str, first: str, n_alike: int, n_rows: int) -> FirstLine:
    """Return the note on rows that are aligned by position although some of their words differ."""
    return FirstLine(
        f"{path}: {n_alike:,} of {n_rows:,} rows have the words of {first}, the others are written otherwise; aligned "
        "by position"
    )


def unlike(place: str, first: str, n_alike: int, n_rows: int) -> InputError:
    """Return the error for rows of which too few have the same words."""
    return InputError(
        f"{place}: only {n_alike:,} of {n_rows:,} rows have the words of {first} in their place (more than "
        f"{100 * NEARLY:.0f} % are aligned by position). Do rows correspond all the same? Then --align position"
    )


def _by_id(first: FileTable, ids: Texts, table: FileTable, own: Texts) -> Order:
    if len(own) == len(ids) and _same_texts(ids, own):
        return places_in(own, ids)
    place = {item: row for row, item in enumerate(own)}
    missing = [item for item in ids if item not in place]
    known = set(ids)
    extra = [item for item in own if item not in known]
    n_shared = len(ids) - len(missing)
    hint = _otherwise_written(missing, extra)
    if not hint and missing and extra:
        hint = f"; {extra[0]!r} is in {table.path} alone. Give both files the same items, and write their ids alike"
    elif not hint:
        hint = ". Give both files the same items"
    if len(own) == len(ids):
        hint += ". Do rows correspond as they stand? Then --align position"
    hint = f" ({n_shared:,} of {len({*ids, *own}):,} ids are in both){hint}"
    if missing:
        raise InputError(f"{table.path}: {some(missing, 'id')} missing, which {first.path} has{hint}")
    raise InputError(
        f"{table.path}, line {table.lines[place[extra[0]]]}: {some(extra, 'id')} not among those of {first.path}{hint}"
    )


def _otherwise_written(missing: Sequence[str], extra: Sequence[str]) -> str:
    """Say that ids differ in how they are written alone: case, blanks, zeros before or after."""
    written = {_plain(item): item for item in extra}
    item = next((item for item in missing if _plain(item) in written), None)
    if item is None:
        return ""
    return f"; {written[_plain(item)]!r} there may be {item!r} here: write ids alike in all files"


def _plain(item: str) -> str:
    """Return an id without what programs change in it.

    Examples
    --------
    >>> _plain("007"), _plain("7.0"), _plain("Q 12"), _plain("q12")
    ('7', '7', 'q12', 'q12')
    """
    text = "".join(unicodedata.normalize("NFKC", item).split()).casefold()
    return re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"^([+-]?\d+)\.0*$", r"\1", text))


def in_order(column: Sequence[Any], order: Order) -> Texts:
    """Return a column of a table in the order of the items."""
    return Texts.of(column)[order]


def group_columns(table: FileTable, options: Options) -> dict[str, Sequence[str]]:
    """Return the columns to swap or subset by that a table has."""
    return {name: table.column(name) for name in options.groups}
