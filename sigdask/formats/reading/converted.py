"""Files that are converted when they are opened: Excel workbooks to CSV, Arrow and Feather to Parquet, UTF-16 to UTF-8.

All readers then read them as they read CSV and Parquet. A folder of Hugging Face datasets (`save_to_disk`) stands for
the rows of all its Arrow files, in the order of its `state.json`.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from datetime import date, datetime, time
from functools import lru_cache
from pathlib import Path
from typing import Any

from sigdask.errors import RefusedFileError
from sigdask.interface import spell
from sigdask.io import MissingError, SheetPath
from sigdask.io.compression import check_unpacked_size, set_variable

ARROW_STARTS = (b"ARROW1\0\0", b"FEA1\0", b"\xff\xff\xff\xff")
"""First bytes of an Arrow or Feather file, of a Feather file of version 1, and of an Arrow stream."""

UTF_16_STARTS, UTF_32_START = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), codecs.BOM_UTF32_LE
"""First bytes of text as Excel and Windows write it, and of a kind of text that is not read."""

ZIP = b"PK\x03\x04"
STATE = "state.json"
DATASET_DICT = "dataset_dict.json"
"""With `STATE`, the files that `save_to_disk` writes into the folder of one split and of several splits."""

WORKBOOK_ERRORS = (OSError, ValueError, LookupError, TypeError, AttributeError, SyntaxError, zipfile.BadZipFile)
"""Errors that openpyxl raises for damaged workbooks."""

MAX_CONVERTED = 8
"""Number of files whose conversion is remembered, because detection opens a file many times."""


_sheet: ContextVar[str | None] = ContextVar("sheet", default=None)


def choose_sheet(name: str | None) -> AbstractContextManager[None]:
    """Read this sheet of workbooks within the body, if a name is given."""
    return set_variable(_sheet, name or _sheet.get())


def get_sheet() -> str | None:
    """Return the sheet of workbooks that is read; None is the only one with data."""
    return _sheet.get()


def describe_unused_sheet(name: str | None, paths: Iterable[Path | None]) -> str | None:
    """Return text on a sheet that was chosen although no file is a workbook, or None; folders may hold one."""
    if name is None or any(_may_be_workbook(find_dataset(path)) for path in paths if path is not None):
        return None
    return f"sheet={name}: not used, as no file is an Excel workbook; leave it out"


def _may_be_workbook(path: Path) -> bool:
    if path.is_dir():
        return True
    with path.open("rb") as file:
        return file.read(len(ZIP)) == ZIP


def convert_file(path: Path, start: bytes) -> bytes | None:
    """Return the content of a file as CSV, Parquet or UTF-8, or None for a file that is not converted.

    Parameters
    ----------
    path : Path
        The file.
    start : bytes
        Its first bytes.

    Raises
    ------
    RefusedFileError
        The file is damaged, or the library that reads it is not installed.
    """
    if start.startswith(UTF_16_STARTS) and not start.startswith((ARROW_STARTS[-1], UTF_32_START)):
        try:
            return path.read_bytes().decode("utf-16").encode()
        except UnicodeDecodeError as error:
            problem = f"begins as UTF-16 and is damaged ({error}); write it again as UTF-8"
            raise RefusedFileError(f"{problem}", file=path) from None
    if not start.startswith((ZIP, *ARROW_STARTS)):
        return None
    status = path.stat()
    if start.startswith(ZIP):
        sheet = path.sheet if isinstance(path, SheetPath) else get_sheet()
        return _convert_workbook(path, status.st_mtime_ns, status.st_size, sheet)
    return _convert_arrow(path, status.st_mtime_ns, status.st_size)


def find_dataset(path: Path) -> Path:
    """Return the first Arrow file of a folder of Hugging Face datasets, which represents it; other paths unchanged."""
    try:
        if not path.is_dir():
            return path
    except OSError:  # such as a name that is too long, which fails on opening
        return path
    if (path / DATASET_DICT).is_file():
        splits = [inner.parent.name for inner in sorted(path.glob(f"*/{STATE}"))]
        raise RefusedFileError(
            f"{path}: is a folder of several splits ({', '.join(splits)}); give the folder of one: {path / splits[0]}"
            if splits
            else f"{path}: is a folder of several splits of Hugging Face datasets, which are missing; save it again"
        )
    files = _list_shards(path)
    return files[0] if files else path


def _list_shards(folder: Path) -> list[Path]:
    """Return the Arrow files of a data set by its `state.json`, or none if there is no such file."""
    try:
        state = json.loads((folder / STATE).read_text("utf-8"))
        files = [folder / file["filename"] for file in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError, MissingError):
        return []
    if state.get("_indices_data_files"):
        remedy = "save it again with dataset.flatten_indices()"
        raise RefusedFileError(f"the data set has a mapping of its rows; {remedy}", file=folder)
    return files


@lru_cache(MAX_CONVERTED)
def _convert_arrow(path: Path, _modified: int, size: int) -> bytes:
    try:
        import pyarrow as pa
        from pyarrow import feather, parquet
    except ImportError:
        raise RefusedFileError(
            "an Arrow file needs pyarrow, which is not installed: pip install 'sigdask[parquet]'", file=path
        ) from None
    shards = _list_shards(path.parent)
    files = shards if path in shards else [path]
    tables = []
    try:
        for file in files:
            content = pa.py_buffer(file.read_bytes())
            start = content[: len(ARROW_STARTS[0])].to_pybytes()
            if start.startswith(ARROW_STARTS[1]):
                tables.append(feather.read_table(pa.BufferReader(content)))
            else:
                open_arrow = pa.ipc.open_file if start == ARROW_STARTS[0] else pa.ipc.open_stream
                tables.append(open_arrow(content).read_all())
        table = pa.concat_tables(tables)
        check_unpacked_size(path, table.nbytes, max(size, sum(file.stat().st_size for file in files)))
        parquet.write_table(table, output := io.BytesIO())
    except (OSError, pa.ArrowException) as error:
        raise RefusedFileError(
            f"cannot be read as an Arrow file ({error})", file=path, remedy="write it again"
        ) from None
    return output.getvalue()


@lru_cache(MAX_CONVERTED)
def _convert_workbook(path: Path, _modified: int, size: int, sheet_name: str | None) -> bytes | None:
    try:
        with zipfile.ZipFile(path) as packed:
            members = packed.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None
    if not any(member.filename == "xl/workbook.xml" for member in members):
        return None
    check_unpacked_size(path, sum(member.file_size for member in members), size)
    try:
        import openpyxl
    except ImportError:
        raise RefusedFileError(
            "an Excel workbook needs openpyxl, which is not installed: pip install 'sigdask[xlsx]'; or save the "
            "sheet as CSV (UTF-8)",
            file=path,
        ) from None
    try:
        workbook = openpyxl.load_workbook(io.BytesIO(path.read_bytes()), read_only=True, data_only=True)
        sheets = {
            sheet.title: rows
            for sheet in workbook.worksheets
            if sheet.sheet_state == "visible"
            and sheet_name in {None, sheet.title}
            and (rows := _strip_rows([list(map(_format_cell, row)) for row in sheet.iter_rows(values_only=True)]))
        }
    except (*WORKBOOK_ERRORS, openpyxl.utils.exceptions.InvalidFileException) as error:
        raise RefusedFileError(
            f"damaged Excel workbook ({error})", file=path, remedy="save the sheet as CSV (UTF-8)"
        ) from None
    if len(sheets) != 1:
        titles = ", ".join(sheet.title for sheet in workbook.worksheets if sheet.sheet_state == "visible")
        if sheet_name is not None:
            problem = (
                f"no sheet {sheet_name!r} with data; sheets: {titles}; choose one with "
                f"{spell('format', 'table:sheet=NAME')}"
            )
        elif sheets:
            remedy = f"choose one with {spell('format', 'table:sheet=NAME')}, or give {path.name}#NAME"
            problem = f"{len(sheets)} sheets hold data ({', '.join(sheets)}); {remedy}"
        else:
            problem = f"no sheet holds data (sheets: {titles}); save the workbook again with one row per item"
        raise RefusedFileError(f"{problem}", file=path)
    ((title, rows),) = sheets.items()
    _check_sheet(path, title, rows)
    if max(map(len, rows)) == 1:
        return "".join(f"{' '.join(row[0].split())}\n" for row in rows).encode()
    csv.writer(output := io.StringIO(), lineterminator="\n").writerows(rows)
    return output.getvalue().encode()


def _check_sheet(path: Path, title: str, rows: Sequence[Sequence[str]]) -> None:
    """Raise an error for a sheet with hidden rows, or with formulas that have no values."""
    if (row := _find_hidden_row(path, title)) is not None:
        raise RefusedFileError(
            f"{path}, sheet {title!r}, row {row}: is hidden, as by a filter. Do hidden rows belong to the data? "
            "Then show all rows. Else delete them"
        )
    if not all(map(all, rows)) and (cell := _find_formula_without_value(path, title)):
        raise RefusedFileError(
            f"{path}, sheet {title!r}, cell {cell}: no formula has a value, because no spreadsheet program has "
            "computed them; open the workbook in one and save it, or write numbers"
        )


def _find_hidden_row(path: Path, title: str) -> int | None:
    """Return the first row of a sheet that has values and is hidden, or None."""
    import openpyxl

    with zipfile.ZipFile(path) as packed:
        sheets = (packed.read(name) for name in packed.namelist() if name.startswith("xl/worksheets/"))
        if not any(b' hidden="' in sheet for sheet in sheets):
            return None
    sheet = openpyxl.load_workbook(io.BytesIO(path.read_bytes()), data_only=True)[title]
    hidden = sorted(number for number, row in sheet.row_dimensions.items() if row.hidden)
    return next((number for number in hidden if any(cell.value is not None for cell in sheet[number])), None)


def _find_formula_without_value(path: Path, title: str) -> str | None:
    """Return the first cell with a formula in a sheet if no formula has a value; else None."""
    import openpyxl

    first = None
    texts, values = (
        openpyxl.load_workbook(io.BytesIO(path.read_bytes()), read_only=True, data_only=data_only)[title].iter_rows()
        for data_only in (False, True)
    )
    for text_row, value_row in zip(texts, values, strict=True):
        for text, value in zip(text_row, value_row, strict=True):
            if text.data_type == "f":
                if value.value is not None:
                    return None
                first = first or text.coordinate
    return first


def _format_cell(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    return "" if value is None else str(value)


def _strip_rows(rows: Sequence[list[str]]) -> list[list[str]]:
    """Return equally wide rows without empty rows and columns at the end."""
    width = max((k for row in rows for k, cell in enumerate(row, start=1) if cell), default=0)
    n_rows = max((k for k, row in enumerate(rows, start=1) if any(row)), default=0)
    return [[*row, *[""] * width][:width] for row in rows[:n_rows]]
