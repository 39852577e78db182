"""Scores that Python holds already: mappings, arrays, and data frames of any library.

A data frame becomes a `FileTable`, whose layout (wide, long, labels, responses) is detected as that of a file is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sigdask import formats
from sigdask.counts import Counts
from sigdask.counts.checks import check_names
from sigdask.counts.factors import Factor
from sigdask.counts.fields import Array
from sigdask.counts.texts import Texts
from sigdask.errors import InputError, missing_extra
from sigdask.formats.reading.columns.typed import TypedColumn
from sigdask.formats.reading.numbers import holds_numbers
from sigdask.formats.reading.options import Options, Source, parse_format
from sigdask.formats.reading.tables import ID_NAMES, INPUT_IDS, SCORE_NAMES, SYSTEM_NAMES, FileTable, table_at_hand
from sigdask.formats.tables.notation import score_table
from sigdask.formats.tables.scores import further_groups

FRAME = Path("data frame")
"""What a data frame is called in messages, in the place of a file."""

OF_TABLES = ("wide", "long", "labels", "responses")
"""Formats of files that a data frame may be in."""

EXPECTED = "counts, a mapping of names to scores, a data frame, or an array of shape (n_items, n_systems)"


def as_counts(
    scores: Any,
    *,
    ids: str | Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    format: str = "auto",  # noqa: A002  # as of `sigdask.read`
    **options: Any,
) -> Counts:
    """Return counts of item scores, or of labels.

    A data frame is read as the same table in a file is: a column a system; a row for each `system`, `item` and
    `score`; or labels with a column `gold`. A column with a usual name of ids ("id", "item", "topic", ...) holds the
    items' ids, columns of texts that repeat are groups of items, and counters, times and settings are left out with a
    warning. A mapping without columns of system, item and score, and an array, hold a system in each column.

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
    format : str
        How a data frame is laid out: "wide", "long", "labels" or "responses", with options as on the command line
        ("wide:systems=new+old" names the columns of systems); "auto" detects it.
    **options
        `name`, `missing` and `warnings`, as in `Counts.from_scores`.

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
    if hasattr(scores, "__dask_graph__"):
        scores = scores.compute()
    columns = _columns(scores, names)
    are_columns = not isinstance(groups, Mapping) and (ids is None or isinstance(ids, str))
    if format != "auto" or (are_columns and _is_frame(scores, columns)):
        if not are_columns:
            raise InputError("format = is of data frames whose ids and groups are columns: name them in ids and groups")
        of_groups = (groups,) if isinstance(groups, str) else tuple(groups or ())
        return _of_table(_table(columns), format, Options(id_column=ids, groups=of_groups), **options)  # type: ignore[arg-type]
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


def _is_frame(scores: Any, columns: Mapping[str, Array]) -> bool:
    """Whether columns are those of a data frame, or of a mapping with rows of system, item and score."""
    if isinstance(scores, np.ndarray) or (not isinstance(scores, Mapping) and _frame(scores) is None):
        return False
    lowered = {name.lower() for name in columns}
    is_long = not any(map(lowered.isdisjoint, (SYSTEM_NAMES, ID_NAMES, SCORE_NAMES)))
    return is_long or not isinstance(scores, Mapping)


class NumberColumn(TypedColumn):
    """A column of numbers in memory, whose texts are made when they are asked for; NaN is a missing score."""

    def __init__(self, values: Array) -> None:
        vars(self).update(values=values, size=len(values), is_numeric=True)

    values: Array

    def __getitem__(self, which: Any) -> Any:
        return NumberColumn(self.values[which]) if isinstance(which, slice) else Texts.__getitem__(self, which)

    @cached_property
    def texts(self) -> Texts:
        """The numbers as a file would hold them, empty where there is none."""
        return Texts.of(_texts(self.values))

    def numbers(self) -> tuple[Array, Array]:
        """Return the numbers, and which are infinite."""
        values = self.values.astype(np.float64)
        return values, np.isinf(values)


def _table(columns: Mapping[str, Array]) -> FileTable:
    """Return the table that a file of these columns would be."""
    nested = {
        name: [cell.tolist() if isinstance(cell, np.ndarray) else cell for cell in column]
        for name, column in columns.items()
        if column.dtype.kind == "O" and any(isinstance(cell, list | dict | np.ndarray) for cell in column)
    }
    columns = {name: column if name in nested else _numbers_of(column) for name, column in columns.items()}
    cells = {
        name: NumberColumn(column) if column.dtype.kind in "iuf" else Texts.of(map(str.strip, _texts(column)))
        for name, column in columns.items()
    }
    kinds = {name: column.dtype.name for name, column in columns.items() if column.dtype.name in {"float32", "float16"}}
    if not columns or not len(next(iter(columns.values()))):
        raise InputError(f"{FRAME}: has no rows or no columns; expected {EXPECTED}")
    return FileTable(FRAME, cells, range(1, len(next(iter(cells.values()))) + 1), kinds=kinds, nested=nested)


def _numbers_of(column: Array) -> Array:
    """Return objects that are numbers or missing, and truth values, as numbers; other columns as they are."""
    if column.dtype.kind == "b":
        return column.astype(np.float64)
    if column.dtype.kind != "O" or not all(value is None or isinstance(value, int | float) for value in column):
        return column
    return np.array([np.nan if value is None else value for value in column], np.float64)


def _of_table(table: FileTable, format_: str, options: Options, **given: Any) -> Counts:
    """Read a table by the layout that it has, or is said to have."""
    layout, own = parse_format(format_)
    if layout not in {"auto", *OF_TABLES}:
        raise InputError(f"format = {format_!r}: of a data frame it must be one of auto, {', '.join(OF_TABLES)}")
    warnings = tuple(given.pop("warnings", ()))
    options = replace(options, own=own, is_detected=layout == "auto", **given)
    try:
        with table_at_hand(table):
            if layout == "auto":
                layout = formats.detect_layout(table, options)
            if layout == "wide":
                _check_scores(table, options)
            counts = formats.read(Source(FRAME), format=layout, options=options)
    except InputError as error:
        raise type(error)(_in_python(str(error))) from None
    scope, noticed = (tuple(map(_in_python, texts)) for texts in (counts.scope, counts.warnings))
    return replace(counts, scope=scope, warnings=(*warnings, *noticed))


def _check_scores(table: FileTable, options: Options) -> None:
    """Refuse columns that hold neither scores nor groups."""
    own = score_table(Source(table.path), options)
    aside = (own.id_name(options), *options.groups, *further_groups(own, options))
    for name in own.others(*aside) if "systems" not in options.own else ():
        if not own.is_numeric(name) and name not in own.nested:
            raise _no_scores(name, "texts")


def _in_python(text: str) -> str:
    """Name options of the command line as arguments of `as_counts`."""
    text = re.sub(r"--id (\S+)\+COLUMN", "a column that joins both", text)
    text = text.replace(" (or say --system-column)", "")
    text = re.sub(r"--unit (\w+)", r"groups=['\1']", text)
    text = re.sub(r"--format '?(\w+(:[\w=+]+)?)'?", r'format="\1"', text)
    text = re.sub(r"--ignore ('?)([^';,]+)\1", r"leave out \2", text)
    return re.sub(r"--(id|missing)\b", lambda found: "ids=" if found[1] == "id" else "missing=", text)


def _columns(scores: Any, names: Sequence[str] | None) -> dict[str, Array]:
    """Return the columns of whatever holds some, by name."""
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
    of_inputs = [name for name in columns if name.lower() in INPUT_IDS and _holds_texts(columns[name])]
    usual = [name for name in columns if name.lower() in {*ID_NAMES} - INPUT_IDS and columns[name].dtype.kind in "iuO"]
    usual = usual or of_inputs
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
    raise _no_scores(name, what)


def _no_scores(name: str, what: str) -> InputError:
    return InputError(
        f"column {name!r} holds {what}, no scores: name it in ids= or groups= of sigdask.as_counts, or leave it out; "
        "labels are compared by sigdask.Counts.from_labels"
    )
