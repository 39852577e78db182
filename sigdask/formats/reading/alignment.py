"""Align the rows of several files by their item columns or by position, and report what does not match.

Checks of typed elements (spans, relations, brackets, words): none may be silently empty or foreign to gold.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Bools
from sigdask.counts.texts import ScopeNote, Texts
from sigdask.errors import InputError, MissingColumnError
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import FileTable
from sigdask.formats.roles import name_role
from sigdask.interface import spell, spell_map
from sigdask.io import set_variable
from sigdask.options import Missing
from sigdask.text import describe_items, format_count, format_list

RowOrder = NDArray[np.intp] | slice
"""The rows of a table in the order of items, -1 for an item that it lacks. A slice if they already have that order."""

FILE_ORDER = slice(None)

INPUT_ROLES = frozenset({"item", "unit", "subset", "text"})
"""Roles of columns that are the same for all systems."""

_told: ContextVar[set[tuple[str, ...]] | None] = ContextVar(
    "systems of runs whose foreign types are known", default=None
)


def tell_types_once() -> AbstractContextManager[None]:
    """Note types that gold never has for one run of each system inside the `with` block."""
    return set_variable(_told, set())


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
    orders : list of RowOrder
        For each other table, its row of each item of the first table.
    warnings : list of str
        Notes of the tables, and on tables in another order or without items.

    Raises
    ------
    InputError
        Items are missing, extra or duplicate, or the numbers of rows differ.
    """
    tables = (first, *others)
    notes: list[str] = []
    with_ids = [(table, ids) for table in tables if (ids := table.get_ids(options)) is not None]
    if len(with_ids) < len(tables):
        without = next(table for table in tables if all(table is not other for other, _ in with_ids))
        if options.align == "id":
            remedy = f"name it with {spell('columns', 'item=COLUMN')}"
            raise InputError("no item column to align by", file=without.path, remedy=remedy)
        for table in others:
            _check_rows(first, table, options)
        if with_ids:
            notes.append(ScopeNote(f"{without.path} has no item column, so rows are aligned by position"))
        return None, [FILE_ORDER] * len(others), notes
    may_lack = may_lack and options.missing in {"zero", "pairwise"}
    expected, *others_with_ids = with_ids
    orders = [_align_by_id(expected, given, noun, may_lack=may_lack) for given in others_with_ids]
    notes += [
        f"{table.path}: {noun}s stand in another order than in {first.path}; aligned by {noun}"
        for (table, _), order in zip(others_with_ids, orders, strict=True)
        if not isinstance(order, slice)
    ]
    return expected[1], orders, notes


def _check_rows(first: FileTable, table: FileTable, options: Options) -> None:
    """Raise an error if tables without items differ in length, or in a column of inputs or groups."""
    if table.n_rows != first.n_rows:
        raise InputError(
            f"{format_count(table.n_rows, 'row')}, but {first.path} has {first.n_rows:,}; rows are aligned by "
            f"position. If a column of each file names the items, give {spell('columns', 'item=COLUMN')}",
            file=table.path,
        )
    if options.align == "position":
        return
    aside = {options.gold_column, options.prediction_column, "hypothesis", *first.nested, *table.nested}
    for name in first.columns:
        roles = {*name_role(name)}
        if name in aside or name not in table.columns or not roles or not roles <= INPUT_ROLES:
            continue
        cells, other_cells = Texts.from_values(first.columns[name]), Texts.from_values(table.columns[name])
        if not (is_same := other_cells.equals(cells)).all():
            k = int(np.argmin(is_same))
            raise InputError(
                f"column {name!r} has {other_cells[k]!r}, but {cells[k]!r} in {first.path}, line {first.lines[k]}, and "
                "no column names the items",
                file=table.path,
                line=table.lines[k],
                remedy=f"name the column of the items, such as {spell('columns', f'item={name}')}. If rows correspond "
                f"as they stand: {spell('align', 'position')}",
            )


def _align_by_id(
    expected: tuple[FileTable, Texts], given: tuple[FileTable, Texts], noun: str, *, may_lack: bool
) -> RowOrder:
    """Return the row of each expected item."""
    (first, ids), (table, keys) = expected, given
    if len(keys) == len(ids) and keys.equals(ids).all():
        return FILE_ORDER
    row_by_id = {item: row for row, item in enumerate(keys)}
    missing = [item for item in ids if item not in row_by_id]
    extra = sorted(row_by_id.keys() - {*ids}, key=row_by_id.__getitem__)
    if extra or (missing and not may_lack) or len(missing) == len(ids):
        n_shared = len(ids) - len(missing)
        where = f"({n_shared:,} of {len(ids) + len(extra):,} {noun}s are in both)"
        found = f"lacks {describe_items(missing, noun)} of {first.path}" if missing else ""
        found = found or f"{describe_items(extra, noun)} not among those of {first.path}"
        raise InputError(
            f"{found} {where}",
            file=table.path,
            line=None if missing else table.lines[row_by_id[extra[0]]],
            remedy=f"give both files the same items. If rows correspond as they stand, {spell('align', 'position')}",
        )
    return np.array([row_by_id.get(item, -1) for item in ids], np.intp)


def reorder_column(column: Sequence[Any], order: RowOrder) -> Texts:
    """Return the cells of a column in the order of the items, "" for items without a row."""
    texts = Texts.from_values(column)
    if isinstance(order, slice) or not (is_missing := order < 0).any():
        return texts[order]
    cells = texts[np.maximum(order, 0)]
    return Texts.from_values("" if gap else cell for cell, gap in zip(cells, is_missing, strict=True))


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


MAX_SHOWN = 8
"""Number of systems that a note names."""


def describe_missing(
    present: Bools | None, systems: Sequence[str], options: Options, convention: Missing = "error"
) -> list[ScopeNote]:
    """Return a note on missing items or scores, if there are any: how many each system lacks, and what was done.

    Parameters
    ----------
    present : bool array, shape (n_items, n_systems), or None
        Which items each system has. None if none is missing.
    systems : sequence of str
        Their names.
    options : Options
        Its `missing` says what was done: "pairwise" or "zero".
    convention : {"error", "zero"}
        What the format does if `missing` does not say.
    """
    lacking = {} if present is None else dict(zip(systems, (~present).sum(axis=0).tolist(), strict=True))
    shown = [f"{name} lacks {n:,}" for name, n in lacking.items() if n]
    if present is None or not shown:
        return []
    more = f", {format_count(len(shown) - MAX_SHOWN, 'more system')} some" if len(shown) > MAX_SHOWN else ""
    left_out = "left out of the pairs of that system" + ", so that there is no ranking" * (len(systems) > 2)
    treatment = left_out if options.missing == "pairwise" else "scored 0"
    reason = f"the format's convention; {spell('missing', 'pairwise')} leaves them out"
    reason = (
        reason if options.missing is None and convention == "zero" else spell("missing", options.missing or "error")
    )
    lacks = f"{', '.join(shown[:MAX_SHOWN])}{more} of {format_count(len(present), 'item')}"
    return [ScopeNote(f"{lacks}: {treatment} ({reason})")]


def check_not_empty(gold_path: Path | None, n_gold: int, n_by_system: Mapping[str, int], noun: str) -> None:
    """Raise if the gold standard or a system has none of what is compared, such as "spans"."""
    if not n_gold:
        raise InputError(f"no {noun}, so no score is defined", file=gold_path, remedy="give a gold standard with some")
    for name, n in n_by_system.items():
        if not n:
            problem = f"system {name!r} has 0 {noun}, gold has {n_gold:,}"
            raise InputError(problem, remedy="correct its file, or leave it out")


def check_types(
    gold_path: Path | None,
    gold: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    noun: str,
    types: str = "types",
    remedy: str | None = None,
    *,
    have_roles: bool = False,
) -> list[str]:
    """Return a note on types (of spans, relations, ...) that gold never has.

    Parameters
    ----------
    gold_path : Path or None
        The gold file, for errors. None for data of Python.
    gold : sequence of str
        The type of each gold element.
    systems : mapping of str to sequence of str
        The type of each element of each system.
    noun, types : str
        What the elements are, and what their types are called.
    remedy : str, optional
        What to do if a system has no type of gold. By default, map types that are equal as numbers or but for case.
    have_roles : bool
        Whether types end with roles in parentheses, which are not mapped.

    Raises
    ------
    InputError
        Gold or a system has no element, or no element of a system has a type of gold.
    """
    check_not_empty(gold_path, len(gold), {name: len(used) for name, used in systems.items()}, noun)
    known, parts, is_clear, example, told = {*gold}, [], False, "", _told.get()
    for name, used in systems.items():
        foreign = [type_ for type_ in used if type_ not in known]
        if len(foreign) == len(used):
            way = suggest_map(*({t.partition("(")[0] if have_roles else t for t in own} for own in (known, used)))
            raise InputError(
                f"system {name!r}: the {types} of all its {len(used):,} {noun} never occur in gold: it has "
                f"{format_list(sorted({*used}), 8)}, gold has {format_list(sorted(known), 8)}",
                remedy=f"{remedy or way}, or leave the system out",
            )
        if foreign and (told is None or (name, noun, types) not in told):
            where = "" if told is None else " in one run"
            parts.append(f"{name} {len(foreign):,} of {len(used):,}{where} (such as {min(foreign)!r})")
            is_clear |= 2 * len(foreign) >= len(used)
            example = example or min(foreign)
            if told is not None:
                told.add((name, noun, types))
    note = f"{types} that gold never has are never correct: {format_list(parts)}"
    if example and remedy is None and not have_roles:
        note += f"; {spell_map({example: 'LABEL'})} replaces one by a label of gold"
    return [ScopeNote(note) if is_clear else note] if parts else []


def suggest_map(gold_labels: Collection[str], labels: Collection[str]) -> str:
    """Return how to replace labels by those of gold: a map of all that are equal as numbers or but for case, if any.

    Examples
    --------
    >>> suggest_map(["1", "0"], ["1.0", "0.0"]), suggest_map(["PER"], ["A"])
    ("replace its labels: label_map={'0': ['0.0'], '1': ['1.0']}", 'correct its labels')
    """
    gold_by_key: dict[float | str, list[str]] = {}
    for label in gold_labels:
        gold_by_key.setdefault(_normalize(label), []).append(label)
    equal = {label: gold_by_key.get(_normalize(label), []) for label in sorted(labels) if label}
    names = {label: others[0] for label, others in equal.items() if len(others) == 1}
    return f"replace its labels: {spell_map(names)}" if names else "correct its labels"


def _normalize(label: str) -> float | str:
    try:
        return float(label)
    except ValueError:
        return label.casefold()
