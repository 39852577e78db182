"""Scores that Python holds already: mappings, data frames of any library, arrays; a table with a column a system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.checks import check_names
from sigdask.counts.factors import Factor
from sigdask.counts.fields import Array
from sigdask.counts.texts import Texts
from sigdask.errors import InputError, missing_extra
from sigdask.formats.reading.numbers import holds_numbers
from sigdask.formats.reading.tables import ID_NAMES

EXPECTED = "counts, a mapping of names to scores, a data frame, or an array of shape (n_items, n_systems)"


def as_counts(
    scores: Any,
    *,
    ids: str | Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    **options: Any,
) -> Counts:
    """Return counts of item scores, one column a system.

    As in files, a column with a usual name of ids ("id", "item", "topic", ...) holds the items' ids, and columns of
    texts that repeat are groups of items.

    Parameters
    ----------
    scores : mapping, data frame, or array of shape (n_items, n_systems)
        Item scores; data frames of any library that narwhals knows (pandas, polars, pyarrow, modin, duckdb, ...) or
        that speaks the interchange protocol, and collections of dask's.
    ids : str or sequence of str, optional
        Item ids, or the column that holds them.
    groups : mapping, or sequence of str, optional
        Grouping columns (documents, topics), or the names of such columns.
    names : sequence of str, optional
        What to call the systems of an array; "system 1" and so on.
    **options
        As in `Counts.from_scores`.

    Raises
    ------
    InputError
        It is none of these, or a column holds neither scores nor groups.

    Examples
    --------
    >>> as_counts({"a": [4, 5, None], "b": [1, 1, 2]}, missing="pairwise").systems
    ('a', 'b')
    >>> as_counts(np.array([[4, 1], [5, 1], [4, 2]]), names=["new", "old"]).systems
    ('new', 'old')
    >>> import pandas
    >>> frame = pandas.DataFrame({"id": [7, 8, 9, 10], "document": [*"xxyy"], "a": [4, 5, 4, 3], "b": [1, 1, 2, 3]})
    >>> counts = as_counts(frame)
    >>> counts.systems, list(counts.ids), list(counts.groups)
    (('a', 'b'), ['7', '8', '9', '10'], ['document'])
    """
    columns = _columns(scores, names)
    if ids is None:
        grouping = {groups} if isinstance(groups, str) else {*(groups or ())}
        ids = _usual_ids({name: column for name, column in columns.items() if name not in grouping})
    found_ids = _texts(_taken(columns, ids)) if isinstance(ids, str) else ids
    if isinstance(groups, str):
        groups = (groups,)
    if not isinstance(groups, Mapping):
        groups = {name: _texts(_taken(columns, name)) for name in groups or ()}
    repeated = [name for name, column in columns.items() if _repeats(column)]
    groups = {**groups, **{name: _texts(columns.pop(name)) for name in repeated}}
    warnings = [f"column {name!r} holds no numbers: taken as groups of items" for name in repeated]
    for name, column in columns.items():
        _refuse_no_scores(name, column)
    return Counts.from_scores(columns, ids=found_ids, groups=groups, **{"warnings": warnings, **options})


def _columns(scores: Any, names: Sequence[str] | None) -> dict[str, Array]:
    """Return the columns of whatever holds some, by name."""
    if hasattr(scores, "__dask_graph__"):
        scores = scores.compute()
    if names is None and isinstance(scores, Mapping):
        return _named(list(scores), [_array(column) for column in scores.values()])
    frame = None if isinstance(scores, np.ndarray) else _frame(scores)
    if frame is not None and names is None:
        return _named(frame.columns, [_of_series(series) for series in frame.iter_columns()])
    if frame is not None or not hasattr(scores, "__array__"):
        what = "names are of an array's systems" if names is not None else f"{type(scores).__name__} holds no scores"
        raise InputError(f"{what}: expected {EXPECTED}")
    values = _array(scores)
    if values.ndim != 2:
        raise InputError(f"an array of shape {values.shape}: expected {EXPECTED}")
    called = names if names is not None else [f"system {k + 1}" for k in range(values.shape[1])]
    if len(called) != values.shape[1]:
        raise InputError(f"{len(called)} names for {values.shape[1]} columns")
    return _named(called, list(values.T))


def _named(names: Sequence[Any], columns: Sequence[Array]) -> dict[str, Array]:
    texts = [str(name) for name in names]
    check_names(texts)
    return dict(zip(texts, columns, strict=True))


def _frame(scores: Any) -> Any:
    """Return a data frame as narwhals has it, None where it is none."""
    import narwhals

    try:
        frame = narwhals.from_native(scores)
    except TypeError:
        return narwhals.from_native(_interchanged(scores)) if hasattr(scores, "__dataframe__") else None
    except narwhals.exceptions.NarwhalsError as error:
        raise InputError(f"this data frame cannot be read: {' '.join(str(error).split())}") from None
    return frame.collect() if isinstance(frame, narwhals.LazyFrame) else frame


def _interchanged(scores: Any) -> Any:
    """Return what speaks the interchange protocol as a table of pyarrow."""
    try:
        from pyarrow.interchange import from_dataframe
    except ImportError:
        raise missing_extra("pyarrow", "parquet", f"a data frame of class {type(scores).__name__}") from None
    return from_dataframe(scores)


def _of_series(series: Any) -> Array:
    """Return a column of narwhals as an array; truth values as numbers, which gaps leave as such."""
    import narwhals

    return _array((series.cast(narwhals.Float64()) if series.dtype == narwhals.Boolean else series).to_numpy())


def _array(column: Any) -> Array:
    """Return a column as an array; what is masked is missing."""
    if isinstance(column, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(column.astype(np.float64), np.nan))
    array = np.asarray(column)
    if array.dtype.kind in "UT":
        return array.astype(object)
    return array


def _usual_ids(columns: Mapping[str, Array]) -> str | None:
    """Return the first column with a usual name of ids, where it holds such: whole numbers or texts, each once.

    Raises
    ------
    InputError
        Ids are repeated: rows of one item are no items of their own.
    """
    usual = [name for name, own in columns.items() if name.lower() in ID_NAMES and own.dtype.kind in "iuO"]
    unique = [name for name in usual if len(set(columns[name].tolist())) == len(columns[name])]
    if usual and not unique:
        rows: dict[Any, int] = {}
        row, item = next((k, v) for k, v in enumerate(columns[usual[0]].tolist()) if rows.setdefault(v, k) != k)
        name = usual[0]
        raise InputError(
            f"column {name!r}: id {item!r} stands in rows {rows[item]} and {row}. Are they samples of one item? Then "
            f"average them first: frame.groupby({name!r}).mean(). Is it a group of items? Then groups=[{name!r}]"
        )
    return next(iter(unique), None)


def _taken(columns: dict[str, Array], name: str) -> Array:
    """Take a column out of the scores, or say which there are."""
    if name not in columns:
        raise InputError(f"no column {name!r}; columns: {', '.join(columns)}")
    return columns.pop(name)


def _texts(column: Array) -> list[str]:
    return ["" if value is None or value != value else str(value) for value in column.tolist()]  # noqa: PLR0124  # NaN


def _holds_texts(column: Array) -> bool:
    return column.dtype.kind == "O" and any(isinstance(value, str) for value in column)


def _repeats(column: Array) -> bool:
    """Whether a column holds texts that are no numbers and repeat: groups of items."""
    if not _holds_texts(column):
        return False
    values = Factor.of(_texts(column)).levels
    return 2 <= len(values) <= len(column) / 2 and not holds_numbers(Texts.of(values))


def _refuse_no_scores(name: str, column: Array) -> None:
    """Refuse what is neither scores nor numbers written out."""
    if column.dtype.kind in "biufO" and not (_holds_texts(column) and not holds_numbers(Texts.of(_texts(column)))):
        return
    what = "texts" if column.dtype.kind == "O" else f"values of type {column.dtype}"
    raise InputError(
        f"column {name!r} holds {what}, no scores: name it in ids= or groups= of sigdask.as_counts, or leave it out; "
        "labels are compared by sigdask.Counts.from_labels"
    )
