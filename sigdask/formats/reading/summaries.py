"""Rows and columns of a table that summarize the others (means and totals): found and removed.

They are recognised by their names, and left out if their cells are the means or sums of the others, to the printed
digits. If only the name fits, they are kept with a note.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from sigdask.counts.factors import Factor
from sigdask.counts.fields import Floats, Integers
from sigdask.counts.texts import Texts
from sigdask.formats.reading.columns import MISSING, NotANumberError, hash_words, mark_summary_names, to_numbers
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import FileTable

Array = Floats
Statistic = Callable[[Array], Any]

MEAN_WORDS = frozenset({"all", "mean", "means", "average", "averages", "avg", "amean", "overall", "macro", "micro",
                        "total", "totals", "sum", "accuracy", "acc"})  # fmt: skip
FILLER_WORDS = frozenset({"score", "scores", "value", "of", "the", "over", "across", "task", "tasks", "item", "items",
                     "topic", "topics", "query", "queries", "row", "grand", "weighted", "result", "results",
                     "datasets"})  # fmt: skip
"""Words next to these in names of summary rows: "Average score", "mean over topics"."""

MIN_ROWS = 2
"""Minimum number of rows for a summary row."""

MAX_ROUNDING = 0.051
"""A cell whose rounding is coarser than this share of the range is compared with all its digits."""

TOLERANCE = 1e-9
"""Maximum difference of two means in full precision, relative to the largest score. The order of the sum changes it."""


STATISTICS: dict[str, tuple[Statistic, ...]] = {
    "median": (partial(np.nanmedian, axis=0),),
    "min": (partial(np.nanmin, axis=0),),
    "max": (partial(np.nanmax, axis=0),),
    "count": (lambda values: np.sum(~np.isnan(values), axis=0).astype(float),),
    **dict.fromkeys(("std", "sd", "stdev"), (partial(np.nanstd, ddof=1, axis=0), partial(np.nanstd, ddof=0, axis=0))),
}


PERCENTILE = re.compile(r"\d{1,2}(\.\d+)?%")
"""Names of quartiles in pandas' describe()."""

SUMMARY_HASHES, ALLOWED_HASHES = (
    hash_words({*MEAN_WORDS, *STATISTICS}),
    hash_words({*MEAN_WORDS, *STATISTICS, *FILLER_WORDS}),
)
"""Hashes of the words in such names, for searching a whole column."""

SUMMARY_WORDS = sorted({*MEAN_WORDS, *STATISTICS})
"""Words one of which names of summary rows have."""

SUMMARY_HINT = re.compile("|".join(("%$", *SUMMARY_WORDS)), re.IGNORECASE)
"""Pattern that names of summary rows match. It rules out most ids quickly."""


MAX_NAME_LENGTH = 200
"""Maximum characters of the name of a summary row."""


def is_summary_name(name: str) -> bool:
    """Return whether a name is that of a summary, such as "Average" or "std".

    Examples
    --------
    >>> [is_summary_name(name) for name in ("all", "Average (13 tasks)", "std", "overall_score", "all of it", "task 3")]
    [True, True, True, True, False, False]
    """
    if PERCENTILE.fullmatch(name):
        return True
    words = set(re.findall(r"[^\W\d_]+", name.lower()))
    return bool(words & (MEAN_WORDS | STATISTICS.keys())) and words <= MEAN_WORDS | STATISTICS.keys() | FILLER_WORDS


def remove_summary_rows(table: FileTable, options: Options) -> FileTable:
    """Remove the rows of a table that summarize the others, and add a note for each.

    A row is known by its id, by its first cell, or by a group that not all rows are in.
    """
    names_by_row = table.recall("summary rows", options, lambda: _find_named_rows(table, options))
    if not names_by_row:
        return table
    aside = (table.find_id_column(options), *options.groups, *options.ignore)
    cells = [table.columns[name] for name in table.list_other_columns(*aside) if table.is_numeric(name)]
    dropped, notes = _find_summaries(names_by_row, cells, table.n_rows)
    row_notes = [f"{table.path}, line {table.lines[row]}: {note}" for row, note in notes.items()]
    return replace(table.remove_rows(dropped), notes=[*table.notes, *row_notes])


def find_summary_items(items: Sequence[str], scores: Iterable[Array]) -> tuple[set[int], list[str]]:
    """Return the indices of items that summarize the others in every system, and notes."""
    names_by_row = _find_summary_cells(items)
    if not names_by_row:
        return set(), []
    dropped, notes = _find_summaries(names_by_row, [_format_scores(column) for column in scores], len(items))
    return dropped, [*notes.values()]


def find_summary_keys(
    names: Mapping[Hashable, str], cells: Iterable[Mapping[Hashable, float | list[float]]]
) -> tuple[set[Hashable], list[str]]:
    """Return the keys of items that summarize the others in all columns, and notes."""
    if not any(SUMMARY_HINT.search(name) and is_summary_name(name) for name in names.values()):
        return set(), []
    columns = [np.array([np.mean(values.get(key, math.nan)) for key in names]) for values in cells]
    dropped, notes = find_summary_items(list(names.values()), columns)
    return {key for k, key in enumerate(names) if k in dropped}, notes


def _format_scores(column: Array) -> list[str]:
    return ["" if math.isnan(value) else repr(value) for value in column.tolist()]


def _find_summaries(
    names_by_row: Mapping[int, str], columns: Sequence[Sequence[str]], n_rows: int
) -> tuple[set[int], dict[int, str]]:
    """Return which rows with summary names do summarize the other rows, and notes on the rows with such names."""
    verdicts = find_sums(names_by_row, columns, n_rows)
    dropped = {row for row, is_sum in verdicts.items() if is_sum}
    notes = {row: f"{names_by_row[row]!r} sums up the other rows, so it is left out" for row in dropped}
    if dropped or 0 in names_by_row or n_rows - 1 in names_by_row:
        problem = "is called like a summary, but is not the mean or total of the others: taken as an item"
        notes |= {row: f"{names_by_row[row]!r} {problem}" for row in names_by_row.keys() - dropped}
    return dropped, dict(sorted(notes.items()))


def remove_summary_columns(table: FileTable, columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the score columns that do not summarize the others row by row, and notes."""
    names_by_index = {k: name for k, name in enumerate(columns) if is_summary_name(name) and table.is_numeric(name)}
    if not names_by_index or not all(map(table.is_numeric, columns)):
        return [*columns], []
    rows = list(zip(*(table.columns[name] for name in columns), strict=True))
    dropped = {k for k, is_sum in find_sums(names_by_index, rows, len(columns)).items() if is_sum}
    problem = "sums up the other columns (their mean or total): no system, left out"
    hint = "are systems rows, and columns tasks? Then transpose the table"
    notes = [f"{table.path}: column {names_by_index[k]!r} {problem}; {hint}" for k in sorted(dropped)]
    return [name for k, name in enumerate(columns) if k not in dropped], notes


def _find_named_rows(table: FileTable, options: Options) -> dict[int, str]:
    """Return the rows whose id, first cell or group is a summary name such as "mean", each with this name."""
    first_column = next(iter(table.columns))
    names_by_row: dict[int, str] = {}
    for name in dict.fromkeys((table.find_id_column(options), first_column, *options.groups)):
        column = table.columns.get(name or "", [])
        matches = _find_summary_cells(column)
        names = set(matches.values())
        if name not in options.groups:
            n_uses = Counter(matches.values())
            matches = {row: cell for row, cell in matches.items() if n_uses[cell] == 1}
        elif len(names) == len(Factor.from_values(column).levels):
            continue
        names_by_row = matches | names_by_row
    return names_by_row


def _find_summary_cells(column: Sequence[str]) -> dict[int, str]:
    """Return the rows of a column whose cells are summary names, each with its name."""
    rows: Iterable[int] = range(len(column))
    if isinstance(column, Texts):
        is_marked = np.empty(len(column), np.bool_)
        mark_summary_names(column.buffer, column.starts, column.stops, SUMMARY_HASHES, ALLOWED_HASHES, is_marked)
        rows = np.flatnonzero(is_marked).tolist()
        column = column[is_marked]
    short = {cell for cell in column if len(cell) <= MAX_NAME_LENGTH}
    summary_names = {cell for cell in short if SUMMARY_HINT.search(cell) and is_summary_name(cell)}
    return {row: cell for row, cell in zip(rows, column, strict=True) if cell in summary_names}


def find_sums(names_by_row: Mapping[int, str], columns: Sequence[Sequence[str]], n_rows: int) -> dict[int, bool]:
    """Return for each row with a summary name whether it summarizes the rows without one.

    Parameters
    ----------
    names_by_row : mapping of int to str
        Names of the rows with summary names, by row.
    columns : sequence of sequence of str
        Numbers as they are written, one column per system.
    n_rows : int
        Length of the columns.

    Returns
    -------
    dict of int to bool
        By row. Empty if too few other rows are left to decide.
    """
    if n_rows - len(names_by_row) < MIN_ROWS or not columns:
        return {}
    is_other = np.ones(n_rows, np.bool_)
    is_other[list(names_by_row)] = False
    try:
        values = np.column_stack([to_numbers(column) for column in columns])
    except NotANumberError:  # infinite: the reader raises the error, since it knows the line
        return {}
    base = values[is_other]
    filled = ~np.isnan(base).all(axis=0)
    if not filled.any():
        return {}
    digits = max(_count_decimals(cell) for column in columns for cell in compress(column, is_other))
    printed = {}
    for row in names_by_row:
        n_decimals = np.array([_count_decimals(column[row]) for column in columns])
        printed[row] = np.where(n_decimals >= 2, n_decimals, n_decimals.max())  # few may have lost zeros at their ends
    return {
        row: _sums_up(values[row, filled], base[:, filled], name, printed[row][filled], digits)
        for row, name in names_by_row.items()
    }


def _sums_up(cells: Array, base: Array, name: str, printed: Integers, digits: int) -> bool:
    """Return whether the cells of a summary equal, as printed, a statistic (mean, total, ...) of the rows of `base`."""
    n = len(base)
    unit = 0.0 if digits == 0 else 10.0**-digits
    error = unit * min(0.5, 4 / math.sqrt(12 * n))  # of the mean of n rounded scores
    return any(
        _are_equal(cells / scale, base, statistic(base), printed + round(math.log10(scale)), n_summed * error, n_summed)
        for statistic, n_summed, scale in _list_statistics(name, n)
    )


def _list_statistics(name: str, n: int) -> list[tuple[Statistic, int, float]]:
    """Return the statistics that a summary name may mean, each with its number of summands and its scale."""
    if PERCENTILE.fullmatch(name):
        return [(partial(np.nanpercentile, q=float(name[:-1]), axis=0), 1, 1.0)]
    words = sorted(set(re.findall(r"[^\W\d_]+", name.lower())) & STATISTICS.keys())
    if words:
        return [(statistic, 1, 1.0) for statistic in STATISTICS[words[0]]]
    mean, total = partial(np.nanmean, axis=0), partial(np.nansum, axis=0)
    return [(mean, 1, 1.0), (total, n, 1.0), (mean, 1, 100.0)]


def _are_equal(cells: Array, base: Array, expected: Array, printed: Integers, slack: float, n_summed: int) -> bool:
    """Return whether all present cells equal the expected statistic up to rounding, and some column is not constant."""
    spread = np.nanmax(base, axis=0) - np.nanmin(base, axis=0)
    exact = _bound_error(base, expected)
    half = 0.5 * 10.0 ** -printed.astype(float) * (1 + TOLERANCE)
    loosest = MAX_ROUNDING * n_summed * spread.max()
    allowed = exact + np.where(half + slack <= loosest, half + slack, np.where(half <= loosest, half, 0))
    is_present = ~np.isnan(cells)
    return bool((spread[is_present] > 0).any() and (np.abs(cells - expected) <= allowed)[is_present].all())


def _bound_error(base: Array, expected: Array) -> Array:
    """Return the largest numerical error of a statistic of each column."""
    return np.asarray(TOLERANCE * np.maximum(np.nanmax(np.abs(base), axis=0), np.abs(expected)))


def _count_decimals(cell: str) -> int:
    """Return the number of decimals of a number as written, without trailing zeros.

    Examples
    --------
    >>> [_count_decimals(cell) for cell in ("0.50", "12", "3.1e-04", "NA")]
    [1, 0, 5, 0]
    """
    mantissa, _, exponent = cell.lower().strip().partition("e")
    if cell.strip() in MISSING or (exponent and not exponent.lstrip("+-").isdecimal()):
        return 0
    return max(0, len(mantissa.partition(".")[2].rstrip("0")) - int(exponent or 0))
