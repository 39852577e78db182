"""Rows and columns of a table that sum up the others: means and totals that were written beside the scores.

They are known by their names, and left out where their cells are the means or sums of the others, to the
digits printed; one that is only called so stays, with a note.
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
from numpy.typing import NDArray

from sigdask.counts.factors import Factor
from sigdask.counts.texts import Texts
from sigdask.formats.reading.columns.cells import hashes, named_like
from sigdask.formats.reading.numbers import MISSING, NotANumberError, to_numbers
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import FileTable

Array = NDArray[np.float64]
Statistic = Callable[[Array], Any]

MEANS = frozenset({"all", "mean", "means", "average", "averages", "avg", "amean", "overall", "macro", "micro", "total",
                   "totals", "sum", "accuracy", "acc"})  # fmt: skip
FILLERS = frozenset({"score", "scores", "value", "of", "the", "over", "across", "task", "tasks", "item", "items",
                     "topic", "topics", "query", "queries", "row", "grand", "weighted", "result", "results",
                     "datasets"})  # fmt: skip
"""Words that stand beside these in names of summaries: "Average score", "mean over topics"."""

FEWEST = 2
"""Rows that can be summed up."""

LOOSEST = 0.051
"""Of the range of what is summed up: a cell rounded by more than so is compared with all digits."""

EXACT = 1e-9
"""How far a mean in full precision may lie from another, by the order of its sum."""


def _spread(ddof: int) -> Statistic:
    return lambda values: np.array([np.nanstd(column, ddof=ddof) for column in values.T])


OTHERS: dict[str, tuple[Statistic, ...]] = {
    "median": (partial(np.nanmedian, axis=0),),
    "min": (partial(np.nanmin, axis=0),),
    "max": (partial(np.nanmax, axis=0),),
    "count": (lambda values: np.sum(~np.isnan(values), axis=0).astype(float),),
    "std": (_spread(1), _spread(0)),
    "sd": (_spread(1), _spread(0)),
    "stdev": (_spread(1), _spread(0)),
}


PERCENTILE = re.compile(r"\d{1,2}(\.\d+)?%")
"""What pandas' describe() calls the quartiles."""

NAMING, KNOWN = hashes({*MEANS, *OTHERS}), hashes({*MEANS, *OTHERS, *FILLERS})
"""The words of such names, as a whole column is searched for them."""

LIKE = re.compile("|".join(("%$", *sorted({*MEANS, *OTHERS}))), re.IGNORECASE)
"""What such names hold; soon said of most ids."""


LONGEST = 200
"""Characters of such a name."""


def is_summary(name: str) -> bool:
    """Whether a name is that of a summary.

    Examples
    --------
    >>> [is_summary(name) for name in ("all", "Average (13 tasks)", "std", "overall_score", "all of it", "task 3")]
    [True, True, True, True, False, False]
    """
    if PERCENTILE.fullmatch(name):
        return True
    words = set(re.findall(r"[^\W\d_]+", name.lower()))
    return bool(words & (MEANS | OTHERS.keys())) and words <= MEANS | OTHERS.keys() | FILLERS


def without_summaries(table: FileTable, options: Options) -> FileTable:
    """Leave out the rows of a table that sum up the others; notes say which.

    A row is known by its id, by its first cell, or by a group that not all rows are in.
    """
    named = _named_rows(table, options)
    if not named:
        return table
    aside = (table.id_name(options), *options.groups, *options.ignore)
    cells = [table.columns[name] for name in table.others(*aside) if table.is_numeric(name)]
    dropped, notes = _judged(named, cells, table.n_rows)
    told = [f"{table.path}, line {table.lines[row]}: {note}" for row, note in notes.items()]
    return replace(table.without(dropped), notes=[*table.notes, *told])


def summary_items(items: Sequence[str], scores: Iterable[Array]) -> tuple[set[int], list[str]]:
    """Return the places of the items that sum up the others in every system, and notes."""
    named = _called_so(items)
    if not named:
        return set(), []
    dropped, notes = _judged(named, [_written(column) for column in scores], len(items))
    return dropped, [*notes.values()]


def summary_keys(
    names: Mapping[Hashable, str], cells: Iterable[Mapping[Hashable, float | list[float]]]
) -> tuple[set[Hashable], list[str]]:
    """Return the items, by what they are known by, that sum up the others in all columns of values, and notes."""
    if not any(LIKE.search(name) and is_summary(name) for name in names.values()):
        return set(), []
    columns = [np.array([np.mean(own.get(key, math.nan)) for key in names]) for own in cells]
    dropped, notes = summary_items(list(names.values()), columns)
    return {key for k, key in enumerate(names) if k in dropped}, notes


def ends_in_means(scores: Sequence[Array]) -> bool:
    """Whether the last row, which has no name, holds the means or totals of the others, with a value that none has."""
    last = len(scores[0]) - 1
    if last < FEWEST or all(column[last] in column[:last] for column in scores) or not _may_end_in_means(scores):
        return False
    return summed_up({last: "mean"}, [_written(column) for column in scores], last + 1).get(last, False)


def _may_end_in_means(scores: Sequence[Array]) -> bool:
    """Whether the last row is near the means or totals of the others: numbers alone, before their digits are told."""
    cells = np.array([column[-1] for column in scores])
    base = np.array([column[:-1] for column in scores])
    if np.isnan(base).all(axis=1).any():
        return True
    spread = (np.nanmax(base, axis=1) - np.nanmin(base, axis=1)).max()
    near = False
    for statistic, n_summed, scale in _statistics("mean", base.shape[1]):
        expected = statistic(base.T)
        off = (
            np.abs(cells / scale - expected)
            <= 2 * EXACT * np.maximum(1, np.abs(expected)) + LOOSEST * n_summed * spread
        )
        near |= bool((off | np.isnan(cells)).all())
    return near


def _written(column: Array) -> list[str]:
    return ["" if math.isnan(value) else repr(value) for value in column.tolist()]


def _judged(named: Mapping[int, str], columns: Sequence[Sequence[str]], n_rows: int) -> tuple[set[int], dict[int, str]]:
    """Say which rows of those called like summaries are some, and what is to be told of them."""
    verdicts = summed_up(named, columns, n_rows)
    dropped = {row for row, is_one in verdicts.items() if is_one}
    notes = {row: f"{named[row]!r} sums up the other rows: no item, left out" for row in dropped}
    if dropped or 0 in named or n_rows - 1 in named:
        problem = "is called like a summary, but is not the mean or total of the others: taken as an item"
        notes |= {row: f"{named[row]!r} {problem}" for row in named.keys() - dropped}
    return dropped, dict(sorted(notes.items()))


def without_mean_columns(table: FileTable, columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """Leave out the columns of scores that sum up the others, row by row; return those that are left, and notes."""
    named = {k: name for k, name in enumerate(columns) if is_summary(name) and table.is_numeric(name)}
    if not named or not all(map(table.is_numeric, columns)):
        return [*columns], []
    rows = list(zip(*(table.columns[name] for name in columns), strict=True))
    dropped = {k for k, is_one in summed_up(named, rows, len(columns)).items() if is_one}
    notes = [
        f"{table.path}: column {named[k]!r} sums up the other columns (their mean or total): no system, left out; are "
        "systems rows, and columns tasks? Then transpose the table"
        for k in sorted(dropped)
    ]
    return [name for k, name in enumerate(columns) if k not in dropped], notes


def _named_rows(table: FileTable, options: Options) -> dict[int, str]:
    """Return the rows that are called like summaries, with their names."""
    first = next(iter(table.columns))
    found: dict[int, str] = {}
    for name in dict.fromkeys((table.id_name(options), first, *options.groups)):
        column = table.columns.get(name or "", [])
        called = _called_so(column)
        names = set(called.values())
        if name not in options.groups:
            twice = Counter(called.values())
            called = {row: cell for row, cell in called.items() if twice[cell] == 1}
        elif len(names) == len(Factor.of(column).levels):
            continue
        found = called | found
    return found


def _called_so(column: Sequence[str]) -> dict[int, str]:
    """Return the rows whose cells are called like summaries, with these names."""
    rows: Iterable[int] = range(len(column))
    if isinstance(column, Texts):
        marked = np.empty(len(column), np.bool_)
        named_like(column.buffer, column.starts, column.stops, NAMING, KNOWN, marked)
        rows = np.flatnonzero(marked).tolist()
        column = column[marked]
    short = {cell for cell in column if len(cell) <= LONGEST}
    like = {cell for cell in short if LIKE.search(cell) and is_summary(cell)}
    return {row: cell for row, cell in zip(rows, column, strict=True) if cell in like}


def summed_up(named: Mapping[int, str], columns: Sequence[Sequence[str]], n_rows: int) -> dict[int, bool]:
    """Say of each row that is called so whether it sums up those that are not.

    Parameters
    ----------
    named : mapping of int to str
        Rows called like summaries.
    columns : sequence of sequence of str
        Numbers as they are written, one column a system.
    n_rows : int
        Length of the columns.

    Returns
    -------
    dict of int to bool
        Empty where too few other rows are left to tell.
    """
    if n_rows - len(named) < FEWEST or not columns:
        return {}
    others = np.ones(n_rows, np.bool_)
    others[list(named)] = False
    try:
        values = np.column_stack([to_numbers(column) for column in columns])
    except NotANumberError:  # infinite: an error of the reader's, who knows its line
        return {}
    base = values[others]
    filled = ~np.isnan(base).all(axis=0)
    if not filled.any():
        return {}
    digits = max(_decimals(cell) for column in columns for cell in compress(column, others))
    printed = {row: np.array([_decimals(column[row]) for column in columns]) for row in named}
    return {
        row: _sums_up(values[row, filled], base[:, filled], name, _places(printed[row])[filled], digits)
        for row, name in named.items()
    }


def _places(decimals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return to how many decimals each cell of a summary is printed; of fewer than two, to as many as the others."""
    return np.where(decimals >= 2, decimals, decimals.max())


def _sums_up(cells: Array, base: Array, name: str, printed: NDArray[np.int64], digits: int) -> bool:
    """Whether cells printed to some decimals are a statistic of the rows of `base`, shape (n_rows, n_columns)."""
    n = len(base)
    unit = 0.0 if digits == 0 else 10.0**-digits
    rounded = unit * min(0.5, 4 / math.sqrt(12 * n))  # of the mean of n rounded scores
    return any(
        _are_equal(
            cells / scale, base, statistic(base), printed + round(math.log10(scale)), n_summed * rounded, n_summed
        )
        for statistic, n_summed, scale in _statistics(name, n)
    )


def _statistics(name: str, n: int) -> list[tuple[Statistic, int, float]]:
    """Return what a summary of a name may be: a statistic, how many scores it is as large as, its scale (per cent)."""
    if PERCENTILE.fullmatch(name):
        return [(partial(np.nanpercentile, q=float(name[:-1]), axis=0), 1, 1.0)]
    words = sorted(set(re.findall(r"[^\W\d_]+", name.lower())) & OTHERS.keys())
    if words:
        return [(statistic, 1, 1.0) for statistic in OTHERS[words[0]]]
    mean, total = partial(np.nanmean, axis=0), partial(np.nansum, axis=0)
    return [(mean, 1, 1.0), (total, n, 1.0), (mean, 1, 100.0)]


def _are_equal(
    cells: Array, base: Array, expected: Array, printed: NDArray[np.int64], slack: float, n_summed: int
) -> bool:
    """Whether all cells that are there are as expected, and one of them could have been otherwise."""
    spread = np.nanmax(base, axis=0) - np.nanmin(base, axis=0)
    exact = EXACT * np.maximum(1, np.abs(expected))
    half = 0.5 * 10.0 ** -printed.astype(float) * (1 + EXACT)
    loosest = LOOSEST * n_summed * spread.max()
    allowed = exact + np.where(half + slack <= loosest, half + slack, np.where(half <= loosest, half, 0))
    there = ~np.isnan(cells)
    return bool((spread[there] > 0).any() and (np.abs(cells - expected) <= allowed)[there].all())


def _decimals(cell: str) -> int:
    """Return how many decimals a number is written with, zeros at the end aside.

    Examples
    --------
    >>> [_decimals(cell) for cell in ("0.50", "12", "3.1e-04", "NA")]
    [1, 0, 5, 0]
    """
    mantissa, _, exponent = cell.lower().strip().partition("e")
    if cell.strip() in MISSING or (exponent and not exponent.lstrip("+-").isdecimal()):
        return 0
    return max(0, len(mantissa.partition(".")[2].rstrip("0")) - int(exponent or 0))
