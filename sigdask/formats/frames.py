"""Scores held in Python: mappings, arrays, and data frames of any library that exports Arrow.

A data frame becomes a `FileTable`, whose layout (wide, long, labels, responses) is detected like that of a file.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from sigdask import formats
from sigdask.counts import Counts, check_names
from sigdask.counts.precision import list_values
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options, Source, parse_format
from sigdask.formats.reading.tables import TABLE_FORMATS, FileTable, provide_tables
from sigdask.formats.roles import name_role
from sigdask.options import Missing

FRAME_PATH = Path("data frame")
"""Path in messages if the data come from a data frame."""

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
        Item scores, or labels. A data frame may come from any library that exports Arrow (pandas, polars, pyarrow,
        duckdb, ...), or from dask.
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
    table = None if isinstance(scores, Mapping | np.ndarray) else _to_arrow(scores)
    cells = _list_columns(scores if table is None else table, names)
    are_columns = not isinstance(groups, Mapping) and (ids is None or isinstance(ids, str))
    are_named = isinstance(ids, str) or (bool(groups) and not isinstance(groups, Mapping))
    roles = {role for column in cells for role in name_role(column)}
    is_table = table is not None or (isinstance(scores, Mapping) and bool(roles & {"item", "system", "gold"}))
    if format == "auto" and not columns and not are_named and not (are_columns and is_table):
        scored = {column: values for column, values in cells.items() if column not in ignore}
        columns_of_groups = groups if isinstance(groups, Mapping) else {}
        return Counts.from_scores(scored, ids=ids, groups=columns_of_groups, name=name, missing=missing or "error")
    if not are_columns:
        raise InputError(
            "ids or groups are columns of the data, and the others are not",
            remedy="name the column of ids as columns={'item': NAME}, and those of groups in groups=",
        )
    options = Options(
        columns=({} if ids is None else {"item": cast("str", ids)}) | {**(columns or {})},
        groups=(groups,) if isinstance(groups, str) else tuple(groups or ()),
        ignore=tuple(ignore),
        metrics=tuple(metrics),
        missing=missing,
        name=name,
    )
    return _read_table(cells, format, options)


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


def _to_arrow(scores: Any) -> Any:
    """Return a data frame of any library as a table of Arrow."""
    frame = scores.collect() if hasattr(scores, "collect") else scores
    try:
        if hasattr(frame, "reset_index"):  # of pandas, whose index `move_index` has made columns
            return pa.Table.from_pandas(frame, preserve_index=False)
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"this data frame cannot be read: {' '.join(str(error).split())}") from None
    if hasattr(frame, "__array__"):
        return None
    remedy = "; sigdask.read reads files" if isinstance(scores, str | Path) else ""
    raise InputError(f"{type(scores).__name__} holds no scores: expected {EXPECTED}{remedy}")


def _list_columns(scores: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the columns of a mapping, table or array, by name."""
    columns: Any
    if isinstance(scores, Mapping) or hasattr(scores, "column_names"):
        if names is not None:
            raise InputError(f"names are of an array's systems: expected {EXPECTED}")
        if isinstance(scores, Mapping):
            check_indices({str(name): column for name, column in scores.items()})
            names, columns = [*scores], [list_values(column, repr(name)) for name, column in scores.items()]
        else:
            names, columns = scores.column_names, scores.columns
    else:
        values = scores if isinstance(scores, np.ma.MaskedArray) else np.asarray(scores)
        if values.ndim != 2:
            raise InputError(f"an array of shape {values.shape}: expected {EXPECTED}")
        columns = [*values.T]
        names = [f"system {k + 1}" for k in range(len(columns))] if names is None else names
        if len(names) != len(columns):
            raise InputError(f"{len(names)} names for {len(columns)} columns")
    texts = [str(name) for name in names]
    check_names(texts)
    return dict(zip(texts, columns, strict=True))


def _read_table(columns: Mapping[str, Any], format_: str, options: Options) -> Counts:
    """Read columns in the given shape of a table, or in the one that they have for "auto"."""
    layout, own = parse_format(format_)
    if layout not in {"auto", *TABLE_FORMATS}:
        raise InputError(f"format = {format_!r}: of a data frame it must be one of auto, {', '.join(TABLE_FORMATS)}")
    if not columns:
        raise InputError(f"{FRAME_PATH}: has no columns; expected {EXPECTED}")
    try:
        table = FileTable.from_arrow(FRAME_PATH, pa.table({**columns}))
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"{FRAME_PATH}: cannot be read: {error}") from None
    with provide_tables({FRAME_PATH: table}):
        layout = formats.TABLE if layout == "auto" else layout
        return formats.read(Source(FRAME_PATH), format=layout, options=replace(options, own=own))


def check_indices(columns: Mapping[str, Any]) -> None:
    """Raise if two series of pandas have the same labels in different places, since items are matched by position."""
    indices = {n: column.index for n, column in columns.items() if hasattr(getattr(column, "index", None), "equals")}
    first, *others = indices or [""]
    for name in others:
        own, expected = indices[name], indices[first]
        if len(own) == len(expected) and not own.equals(expected) and own.isin(expected).any():
            raise InputError(
                f"{first!r} and {name!r}: the series have the same index labels in different places",
                remedy="bring both into one order (series.reindex), or give series.to_numpy()",
            )


def build_frame_from_data(data: pa.Table, library: str) -> Any:
    """Return columns as a data frame of pandas, polars or pyarrow, with null or, for pandas, NaN if missing."""
    convert = {
        "pandas": data.to_pandas,
        "polars": lambda: importlib.import_module("polars").from_arrow(data),
        "pyarrow": lambda: data,
    }
    if library not in convert:
        raise InputError(f"to_frame({library!r}): expected pandas, polars or pyarrow")
    try:
        return convert[library]()
    except ImportError:
        raise InputError(f"to_frame({library!r}) needs {library}", remedy=f"pip install {library}") from None
