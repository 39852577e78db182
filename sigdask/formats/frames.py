"""Scores held in Python: mappings, arrays, and data frames of any library.

A data frame becomes a `FileTable`, whose layout (wide, long, labels, responses) is detected like that of a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from sigdask import formats
from sigdask.counts import Counts
from sigdask.counts.checks import check_indices, check_names, list_values
from sigdask.counts.fields import Array
from sigdask.counts.texts import Texts
from sigdask.errors import InputError, explain_missing
from sigdask.formats.reading import tables
from sigdask.formats.reading.columns import build_numbers, build_truths, is_number
from sigdask.formats.reading.declared import provide_tables
from sigdask.formats.reading.options import Options, Source, parse_format
from sigdask.formats.reading.tables import FileTable
from sigdask.formats.roles import name_role
from sigdask.options import Missing

FRAME_PATH = Path("data frame")
"""Path in messages if the data come from a data frame."""

FRAME_FORMATS = ("wide", "long", "labels", "responses", "numbers")
"""Formats whose contents a data frame may have."""

EXPECTED = "counts, a mapping of names to scores, a data frame, or an array of shape (n_items, n_systems)"


def as_counts(
    scores: Any,
    *,
    ids: str | Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    metrics: Sequence[str] = (),
    format: str = "auto",  # noqa: A002  # as of `sigdask.read`
    columns: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
    missing: Missing | None = None,
    name: str = "",
) -> Counts:
    """Return counts of item scores, or of labels.

    A data frame is read by the rules of a table in a file. It has one column per system, or rows of `system`, `item`
    and `score`, or labels with a column `gold`. Instead of `score` it may have a column for each metric. The names of
    the columns say which holds the items ("id", "item", "qid", ...), units and subsets. A mapping of names to scores,
    or an array, has one system in each column.

    Parameters
    ----------
    scores : mapping, data frame, or array of shape (n_items, n_systems)
        Item scores, or labels. A data frame may come from any library that narwhals supports (pandas, polars, pyarrow,
        modin, duckdb, ...), or that has the interchange protocol, or from dask.
    ids : str or sequence of str, optional
        Item ids, or the column that holds them.
    groups : mapping, or sequence of str, optional
        Grouping columns (documents, topics) by name, or names of such columns of the data.
    metrics : sequence of str
        Metrics that you will use. They may decide how a data frame is read.
    names, format, columns, ignore, missing, name
        As in `sigdask.compare_all`.

    Returns
    -------
    Counts
        The systems, aligned item by item.

    Raises
    ------
    InputError
        The data have another form, a column has neither scores nor groups, a score is missing, or ids are repeated.

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
    if hasattr(scores, "__dask_graph__"):
        scores = scores.compute()
    cells = _extract_columns(scores, names)
    are_columns = not isinstance(groups, Mapping) and (ids is None or isinstance(ids, str))
    if format != "auto" or columns or (are_columns and _is_frame(scores, cells)):
        if not are_columns:
            raise InputError(
                "format= and columns= need ids and groups as columns of the data frame",
                remedy="name the column of ids as columns={'item': NAME}, and those of groups in groups=",
            )
        notes = tables.describe_unknown_columns({*ignore}, cells)
        cells = {column: values for column, values in cells.items() if column not in ignore}
        reading = Options(
            columns=({} if ids is None else {"item": cast("str", ids)}) | {**(columns or {})},
            groups=(groups,) if isinstance(groups, str) else tuple(groups or ()),
            metrics=tuple(metrics),
            missing=missing,
            name=name,
        )
        return _read_frame_table(_build_table(cells), format, reading, notes)
    item_ids = _format_cells(_pop_column(cells, ids)) if isinstance(ids, str) else ids
    if isinstance(groups, str):
        groups = (groups,)
    if not isinstance(groups, Mapping):
        groups = {column: _format_cells(_pop_column(cells, column)) for column in groups or ()}
    cells = {column: values for column, values in cells.items() if column not in ignore}
    for column, values in cells.items():
        _check_score_column(column, values)
    return Counts.from_scores(cells, ids=item_ids, groups=groups, name=name, missing=missing or "error")


def move_index(frame: Any) -> tuple[Any, str | None]:
    """Return a pandas object with its index as columns, and which of these holds the ids of items.

    An index without a name is moved only if it holds texts. A series becomes a frame with a column `score`.
    """
    index: Any = getattr(frame, "index", None)
    if not hasattr(frame, "reset_index") or not hasattr(index, "names"):
        return frame, None
    if not hasattr(frame, "columns"):
        frame = frame.to_frame(frame.name if frame.name is not None else "score")
    names = [str(name) for name in index.names if name is not None]
    if not names and index.dtype.kind == "O" and index.is_unique:
        names = ["item"]
    if len(names) != index.nlevels or not {*names}.isdisjoint(map(str, frame.columns)):
        return frame, None
    items = [name for name in names if "item" in name_role(name)]
    others = [name for name in names if not name_role(name)]
    joint = ["+".join(items or others)] if items or others else []
    return frame.reset_index(names=names), next(iter(joint), None)


def _is_frame(scores: Any, columns: Mapping[str, Array]) -> bool:
    """Return whether the scores are a data frame, or a mapping with a column of items, systems or gold labels."""
    if isinstance(scores, np.ndarray) or (not isinstance(scores, Mapping) and _as_narwhals_frame(scores) is None):
        return False
    roles = {role for name in columns for role in name_role(name)}
    return bool(roles & {"item", "system", "gold"}) or not isinstance(scores, Mapping)


def _build_table(columns: Mapping[str, Array]) -> FileTable:
    """Return the columns as a table, as if they had been read from a file."""
    nested = {
        name: [cell.tolist() if isinstance(cell, np.ndarray) else cell for cell in column]
        for name, column in columns.items()
        if column.dtype.kind == "O" and any(isinstance(cell, list | dict | np.ndarray) for cell in column)
    }
    columns = {name: column if name in nested else _convert_to_numbers(column) for name, column in columns.items()}
    cells = {
        name: build_numbers(column)
        if column.dtype.kind in "biuf"
        else build_truths(column.tolist())
        if name not in nested and _has_truths(column)
        else Texts.from_values(map(str.strip, _format_cells(column)))
        for name, column in columns.items()
    }
    if not columns or not len(next(iter(columns.values()))):
        raise InputError(f"{FRAME_PATH}: has no rows or no columns; expected {EXPECTED}")
    return FileTable(FRAME_PATH, cells, range(1, len(next(iter(cells.values()))) + 1), nested=nested)


def _convert_to_numbers(column: Array) -> Array:
    """Convert objects that are numbers or None to float; return others unchanged, among them truth values."""
    is_other = column.dtype.kind != "O" or _has_truths(column)
    if is_other or not all(value is None or isinstance(value, int | float) for value in column):
        return column
    return column.astype(np.float64)


def _has_truths(column: Array) -> bool:
    """Return whether a column of objects holds truth values and nothing else but gaps."""
    kinds = {type(value) for value in column} - {type(None)} if column.dtype.kind == "O" else set()
    return bool(kinds) and kinds <= {bool, np.bool_}


def _read_frame_table(table: FileTable, format_: str, options: Options, notes: Sequence[str]) -> Counts:
    """Read a table in the given shape, or in the one that its columns have for "auto"."""
    layout, format_options = parse_format(format_)
    if layout not in {"auto", *FRAME_FORMATS}:
        raise InputError(f"format = {format_!r}: of a data frame it must be one of auto, {', '.join(FRAME_FORMATS)}")
    options = replace(options, own=format_options, is_detected=layout == "auto")
    with provide_tables({table.path: table}):
        counts = formats.read(Source(FRAME_PATH), format=formats.TABLE if layout == "auto" else layout, options=options)
    return replace(counts, name=options.name, warnings=(*notes, *counts.warnings))


def _extract_columns(scores: Any, names: Sequence[str] | None) -> dict[str, Array]:
    """Return the columns of a mapping, data frame or array, by name."""
    if names is None and isinstance(scores, Mapping):
        check_indices({str(name): column for name, column in scores.items()})
        return _name_columns([*scores], [_as_array(list_values(column, repr(name))) for name, column in scores.items()])
    frame = None if isinstance(scores, np.ndarray) else _as_narwhals_frame(scores)
    if frame is not None and names is None:
        return _name_columns(frame.columns, [_convert_series(series) for series in frame.iter_columns()])
    if frame is not None or not hasattr(scores, "__array__"):
        problem = "names are of an array's systems" if names is not None else f"{type(scores).__name__} holds no scores"
        remedy = "; sigdask.read reads files" if isinstance(scores, str | Path) else ""
        raise InputError(f"{problem}: expected {EXPECTED}{remedy}")
    values = _as_array(scores)
    if values.ndim != 2:
        raise InputError(f"an array of shape {values.shape}: expected {EXPECTED}")
    column_names = names if names is not None else [f"system {k + 1}" for k in range(values.shape[1])]
    if len(column_names) != values.shape[1]:
        raise InputError(f"{len(column_names)} names for {values.shape[1]} columns")
    return _name_columns(column_names, list(values.T))


def _name_columns(names: Sequence[Any], columns: Sequence[Array]) -> dict[str, Array]:
    texts = [str(name) for name in names]
    check_names(texts)
    return dict(zip(texts, columns, strict=True))


def _as_narwhals_frame(scores: Any) -> Any:
    """Return a data frame wrapped by narwhals, or None if the object is not a data frame."""
    import narwhals

    try:
        frame = narwhals.from_native(scores)
    except TypeError:
        return narwhals.from_native(_convert_by_interchange(scores)) if hasattr(scores, "__dataframe__") else None
    except narwhals.exceptions.NarwhalsError as error:
        raise InputError(f"this data frame cannot be read: {' '.join(str(error).split())}") from None
    return frame.collect() if isinstance(frame, narwhals.LazyFrame) else frame


def _convert_by_interchange(scores: Any) -> Any:
    """Convert an object with the data frame interchange protocol to a pyarrow table."""
    with explain_missing("pyarrow", "parquet", f"a data frame of class {type(scores).__name__}"):
        from pyarrow.interchange import from_dataframe
    return from_dataframe(scores)


def _convert_series(series: Any) -> Array:
    """Convert a narwhals column to an array; truth values with gaps become objects, gaps None."""
    import narwhals

    has_gaps = series.dtype == narwhals.Boolean and series.null_count()
    if not has_gaps:
        return _as_array(series.to_numpy())
    numbers = series.cast(narwhals.Float64()).to_numpy().tolist()
    return np.array([None if value is None or value != value else value == 1.0 for value in numbers], object)  # noqa: PLR0124  # NaN


def _as_array(column: Any) -> Array:
    """Convert a column to an array; masked values become NaN."""
    if isinstance(column, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(column.astype(np.float64), np.nan))
    array = np.asarray(column)
    if array.dtype.kind in "UT":
        return array.astype(object)
    return array


def _pop_column(columns: dict[str, Array], name: str) -> Array:
    """Remove a column from the scores and return it; raise an error if there is none of that name."""
    if name not in columns:
        raise InputError(f"no column {name!r}; columns: {', '.join(columns)}")
    return columns.pop(name)


def _format_cells(column: Array) -> list[str]:
    return ["" if value is None or value != value else str(value) for value in column.tolist()]  # noqa: PLR0124  # NaN


def _has_texts(column: Array) -> bool:
    return column.dtype.kind == "O" and any(isinstance(value, str) for value in column)


def _check_score_column(name: str, column: Array) -> None:
    """Raise an error for a column that holds neither numbers nor numbers written as text."""
    is_text = _has_texts(column) and not any(map(is_number, _format_cells(column)))
    if column.dtype.kind in "biufO" and not is_text:
        return
    kind = "texts" if column.dtype.kind == "O" else f"values of type {column.dtype}"
    raise _build_no_scores_error(name, kind)


def _build_no_scores_error(name: str, kind: str) -> InputError:
    return InputError(
        f"column {name!r} holds {kind}, not scores. Name it in groups= or columns={{'item': NAME}}, or leave it out. "
        "Labels and texts are compared with gold=, as in compare_all(systems, gold=references, metrics='BLEU')"
    )
