"""Export of results and of the scores of single units: data frames, CSV, Parquet and JSON lines.

Files are written in parts.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeVar, overload

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sigdask.counts.fields import Floats, Integers
from sigdask.errors import InputError, build_extra_error
from sigdask.results.fields import build_frame_data
from sigdask.results.table import Table, list_tests
from sigdask.text import as_json_line, iter_json, to_plain

PART_ROWS = 65_536
"""Rows written at a time. In Parquet, a row group."""


def build_frame_from_data(data: pa.Table, library: str) -> Any:
    """Return columns as a data frame of pandas, polars or pyarrow, with null or, for pandas, NaN if missing."""
    if library == "pyarrow":
        return data
    try:
        module = importlib.import_module(library) if library in {"pandas", "polars"} else None
    except ImportError:
        if library == "pandas":
            raise build_extra_error("pandas", "frame", "to_frame()") from None
        raise InputError("to_frame('polars') needs polars", remedy="pip install polars") from None
    if module is None:
        raise InputError(f"to_frame({library!r}): expected pandas, polars or pyarrow")
    return data.to_pandas() if library == "pandas" else module.from_arrow(data)


def build_frame_from_rows(rows: Sequence[Mapping[str, Any]], library: str) -> Any:
    """Return a data frame from dictionaries with equal keys, without columns of lists.

    Numbers within a dictionary are columns too. A `value` has the name of its dictionary: `needed`, `needed_low`.
    """
    data = pa.Table.from_pylist([*rows]).flatten()
    data = data.select([k for k, field in enumerate(data.schema) if not pa.types.is_list(field.type)])
    names = [name.removesuffix(".value").replace(".", "_") for name in data.column_names]
    return build_frame_from_data(data.rename_columns(names), library)


Entry = TypeVar("Entry")


class ListedResults(Sequence[Entry]):
    """Base of dataclasses of results that are a list of entries, in their field `found`."""

    __slots__ = ()
    found: tuple[Entry, ...]

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        return self.found[index]

    def __len__(self) -> int:
        return len(self.found)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame, one row per entry; libraries as in `Results.to_frame`."""
        return build_frame_from_rows([to_plain(entry) for entry in self.found], library)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `--json` writes, made of plain Python values."""
        raise NotImplementedError

    def json_parts(self) -> Iterator[str]:
        """Yield the JSON text that `--json` writes, in parts."""
        return iter_json(self.to_dict())

    def to_json(self) -> str:
        """Return the JSON text that `--json` writes."""
        return "".join(self.json_parts())


def iter_csv(tables: Iterable[Table]) -> Iterator[str]:
    """Yield parts of a CSV file of results, one row per comparison, with the columns of a data frame."""
    for k, part in enumerate(_iter_frame_data(tables)):
        yield _format_csv_part(part, is_first=k == 0)


def _format_csv_part(data: pa.Table, *, is_first: bool) -> str:
    """Return columns as lines of CSV; the first part of a file begins with their names."""
    rows = zip(*(column.to_pylist() for column in data.columns), strict=True)
    return format_csv_rows(chain([data.column_names], rows) if is_first else rows)


def format_csv_rows(rows: Iterable[Iterable[Any]]) -> str:
    r"""Return rows of texts, numbers, truth values and None as lines of CSV.

    Examples
    --------
    >>> print(format_csv_rows([["a", "score"], ["=1", -1.5], ["x,y", None]]), end="")
    a,score
    =1,-1.5
    "x,y",
    """
    return "".join(f"{','.join(map(_format_cell, row))}\n" for row in rows)


def _format_cell(cell: Any) -> str:
    """Return a cell of CSV; the writer of `csv` leaves a carriage return without quotation marks."""
    text = "" if cell is None else str(cell)
    return '"' + text.replace('"', '""') + '"' if not set(text).isdisjoint(',"\r\n') else text


def write_parquet(tables: Iterable[Table], file: IO[bytes]) -> None:
    """Write a Parquet file, one row per comparison, with the columns of a data frame."""
    _write_parquet_parts(_iter_frame_data(tables), file)


def _write_parquet_parts(parts: Iterator[pa.Table], file: IO[bytes]) -> None:
    """Write columns that come in parts as a Parquet file, a row group for each part."""
    first = next(parts)
    with parquet.ParquetWriter(file, first.schema) as writer:
        for part in chain([first], parts):
            writer.write_table(part)


def _iter_frame_data(tables: Iterable[Table]) -> Iterator[pa.Table]:
    """Yield the columns of data frames, of at most `PART_ROWS` rows; without any row, those of one empty table."""
    tables = [*tables]
    tests = list_tests(tables)
    parts = (part for table in tables for part in table.split(PART_ROWS))
    for part in parts if any(map(len, tables)) else [Table.build_empty()]:
        yield build_frame_data(part, tests)


UNIT_FORMATS = {".csv": "csv", ".jsonl": "json", ".parquet": "parquet"}
"""Endings of files of units. CSV and JSON lines may also end in .gz."""

SHARE, LEAVE_ONE_OUT, NO_CONTRIBUTION = "share", "leave-one-out", "none"
"""Kinds of contributions: a unit's part of a sum, the change of the difference without the unit, or none."""


UNIT_LABELS = ("test_set", "subset", "unit", "metric", "a", "b")


def build_unit_data(
    labels: Sequence[str | None],
    ids: Sequence[str],
    n_items: Integers,
    scores: Floats,
    contributions: Floats,
    kind: str,
    note: str = "",
) -> pa.Table:
    """Return the scores of two systems on each unit under one metric, and each unit's contribution to their difference.

    Parameters
    ----------
    labels : sequence of str or None
        Test set, subset, unit, metric and systems. The subset is None if all items were compared.
    ids : sequence of str
        The id of each unit, or its position.
    n_items : int64 array, shape (n_units,)
        Items of each unit.
    scores : float64 array, shape (n_units, 2)
        Both systems' scores on each unit alone; NaN if undefined.
    contributions : float64 array, shape (n_units,)
        Contributions to the whole difference; NaN if not computed.
    kind : {"share", "leave-one-out", "none"}
        Kind of the contributions.
    note : str
        Why there are no contributions.
    """
    with np.errstate(invalid="ignore"):
        numbers = {
            "score_a": scores[:, 0], "score_b": scores[:, 1], "difference": scores[:, 0] - scores[:, 1],
            "contribution": contributions,
        }  # fmt: skip
    named = zip(UNIT_LABELS, labels, strict=True)
    return pa.table({
        **{name: pa.repeat(pa.scalar(value, pa.string()), len(ids)) for name, value in named},
        "id": pa.array(list(ids), pa.string()),
        "n_items": pa.array(n_items),
        **{name: pa.array(values, pa.float64(), from_pandas=True) for name, values in numbers.items()},
        "contribution_kind": pa.repeat(pa.scalar(kind), len(ids)),
        "note": pa.repeat(pa.scalar(note), len(ids)),
    })  # fmt: skip


def build_no_units() -> pa.Table:
    """Return a table of units without rows."""
    none = np.zeros(0)
    return build_unit_data(
        ("", None, "", "", "", ""), (), none.astype(np.int64), np.zeros((0, 2)), none, NO_CONTRIBUTION
    )


def parse_unit_file(path: Path) -> tuple[str, bool]:
    """Return the format of a file of units by its ending, and whether it is compressed.

    Raises
    ------
    InputError
        The ending is none of these.

    Examples
    --------
    >>> parse_unit_file(Path("units.csv")), parse_unit_file(Path("units.jsonl.gz"))
    (('csv', False), ('json', True))
    """
    is_compressed = path.suffix.lower() == ".gz"
    name = UNIT_FORMATS.get((path.with_suffix("") if is_compressed else path).suffix.lower())
    if name is None or (is_compressed and name == "parquet"):
        raise InputError(file=path, expected="a file that ends in .csv, .csv.gz, .jsonl, .jsonl.gz or .parquet")
    return name, is_compressed


def write_units(units: Iterable[pa.Table], file: IO[bytes], format_: str) -> None:
    """Write a table of units, part by part.

    Parameters
    ----------
    units : iterable of pyarrow.Table
        One comparison after another, as `build_unit_data` returns them.
    file : binary file
        The file to write.
    format_ : {"csv", "json", "parquet"}
        JSON means JSON lines.
    """
    parts = chain([build_no_units()], units)  # the first has names alone
    if format_ == "parquet":
        _write_parquet_parts(parts, file)
        return
    for k, data in enumerate(parts):
        if format_ == "csv":
            text = _format_csv_part(data, is_first=k == 0)
        else:
            text = "".join(f"{as_json_line(row)}\n" for row in data.to_pylist())
        file.write(text.encode())
