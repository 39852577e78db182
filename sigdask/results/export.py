"""Export of results and of the scores of single units: data frames, CSV and Parquet.

Files are written in parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import IO, Any, TypeVar, overload

import numpy as np
import pyarrow as pa

from sigdask.counts.fields import Floats, Integers
from sigdask.formats.frames import build_frame_from_data
from sigdask.results.fields import build_frame_data
from sigdask.results.table import Table
from sigdask.statistics.classical import sort_tests
from sigdask.text import iter_json, to_plain

PART_ROWS = 16_384
"""Rows written at a time. In Parquet, a row group."""


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

    def to_json(self) -> str:
        """Return the JSON text that `--json` writes."""
        return "".join(iter_json(self.to_dict()))


def iter_csv(parts: Iterable[pa.Table]) -> Iterator[str]:
    """Yield parts of a CSV file of columns that come in parts."""
    for k, data in enumerate(parts):
        rows = zip(*(column.to_pylist() for column in data.columns), strict=True)
        yield format_csv_rows(chain([data.column_names], rows) if k == 0 else rows)


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


def write_parquet(parts: Iterable[pa.Table], file: IO[bytes]) -> None:
    """Write columns that come in parts as a Parquet file, a row group for each part."""
    from pyarrow import parquet  # which loads file systems and TLS

    remaining = iter(parts)
    first = next(remaining)
    with parquet.ParquetWriter(file, first.schema) as writer:
        for part in chain([first], remaining):
            writer.write_table(part)


def iter_frame_data(tables: Iterable[Table]) -> Iterator[pa.Table]:
    """Yield the columns of data frames, of at most `PART_ROWS` rows; without any row, those of one empty table."""
    tables = [*tables]
    tests = sort_tests(name for table in tables for name in table.list_keys("tests"))
    parts = (part for table in tables for part in table.split(PART_ROWS))
    for part in parts if any(map(len, tables)) else [Table.build_empty()]:
        yield build_frame_data(part, tests)


SHARE, SWAP, NO_CONTRIBUTION = "share", "swap", "none"
"""Kinds of contributions: a unit's part of a sum, half of what the difference loses by swapping the unit, or none."""

UNIT_SCHEMA = pa.schema(
    dict.fromkeys(("test_set", "subset", "unit", "metric", "a", "b", "id"), pa.string())
    | {"n_items": pa.int64()}
    | dict.fromkeys(("score_a", "score_b", "difference", "contribution"), pa.float64())
    | dict.fromkeys(("contribution_kind", "note"), pa.string())
)
"""Columns of tables of units."""


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
    kind : {"share", "swap", "none"}
        Kind of the contributions.
    note : str
        Why there are no contributions.
    """
    with np.errstate(invalid="ignore"):
        numbers = (*scores.T, scores[:, 0] - scores[:, 1], contributions)
    before, after = (
        [pa.repeat(pa.scalar(text, pa.string()), len(ids)) for text in texts] for texts in (labels, (kind, note))
    )
    values = [list(ids), n_items, *(pa.array(values, from_pandas=True) for values in numbers)]
    return pa.table([*before, *values, *after], schema=UNIT_SCHEMA)
