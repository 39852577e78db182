"""Rows of rating files: split by tabs, blanks or both; delimited, JSON or Parquet; header optional."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Literal

from sigdask.errors import InputError
from sigdask.formats.reading.files import build_empty_error, is_parquet, open_text
from sigdask.formats.reading.json.records import is_json, read_record_rows
from sigdask.formats.reading.numbers import is_number
from sigdask.formats.reading.options import build_repeated_system_error
from sigdask.formats.reading.rows import Row, build_width_error, find_delimiter, read_delimited_rows
from sigdask.formats.reading.tables import FileTable, build_table, read_table
from sigdask.text import format_count

APPRAISE_TYPES = frozenset({"TGT", "BAD", "REF", "CHK", "TUT"})
"""Appraise's types of items."""

CAMPAIGN_COLUMNS = ("user", "system", "item", "type", "src", "tgt", "score", "doc", "isdoc")
"""What Appraise's export of a campaign begins with, without saying so; the times of start and end are its last."""

LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,2}")
N_START_ROWS = 50
"""Rows looked at to tell what a column holds."""


def read_header(path: Path) -> list[str]:
    """Return the names of a file's columns."""
    return read_start(path, 0)[0]


def read_start(path: Path, n_rows: int = N_START_ROWS) -> list[list[str]]:
    """Return the first rows of a file as stripped cells, the header first."""
    rows = list(islice(_iter_rows(path), n_rows + 1))
    if not rows:
        raise build_empty_error(path)
    return [[cell.strip() for cell in cells] for _, cells in rows]


def are_languages(cells: Sequence[str]) -> bool:
    """Return whether cells are language codes rather than texts.

    Examples
    --------
    >>> are_languages(["eng", "deu"]), are_languages(["pt-BR", "zh_Hans_CN"]), are_languages(["yes", "Good morning"])
    (True, True, False)
    """
    return bool(cells) and all(LANGUAGE.fullmatch(cell) for cell in cells)


def check_once(path: Path, header: Sequence[str], names: Iterable[str]) -> None:
    """Raise if a column is missing from the header or occurs twice in it."""
    for column in names:
        if header.count(column) != 1:
            problem = (
                "occurs twice in the header" if column in header else f"is not there; columns: {', '.join(header)}"
            )
            raise InputError(f"{path}: column {column!r} {problem}")


def missing_column_error(
    path: Path, header: Sequence[str], role: str, option: str, possible: Sequence[str]
) -> InputError:
    """Return the error for a column that is missing or ambiguous."""
    problem = f"which column is the {role}, {' or '.join(possible)}?" if len(possible) > 1 else f"no {role} column;"
    return InputError(f"{path}: {problem} columns: {', '.join(header)}; name it with {option}")


def check_one_file(path: Path, owners: Iterable[tuple[str, ...]], homes: dict[tuple[str, ...], Path]) -> None:
    """Raise if an earlier file has ratings of the same system and test set, because they would be averaged."""
    for owner in dict.fromkeys(owners):
        if homes.setdefault(owner, path) != path:
            raise InputError(
                f"{build_repeated_system_error(path, owner[0], homes[owner])}; or average them as ratings of one "
                "system: --format "
                "ratings:raters=mean"
            )


def _iter_rows(path: Path) -> Iterator[Row]:
    kind = detect_kind(path)
    if kind == "parquet":
        table = read_table(path)
        yield 1, list(table.columns)
        yield from zip(table.lines, zip(*table.columns.values(), strict=True), strict=True)
    elif kind == "json":
        yield from read_record_rows(path)
    elif is_bare(path):
        yield from _iter_bare_rows(path)
    else:
        if (names := _find_campaign_columns(path)) is not None:
            yield 0, names
        yield from iter_loose_rows(path) if kind == "loose" else read_delimited_rows(path)


def read_columns(path: Path, columns: Sequence[str]) -> FileTable:
    """Read only some columns of a file."""
    rows = _iter_rows(path)
    _, header = next(rows)
    names = [name.strip() for name in header]
    check_once(path, names, columns)
    indices = [names.index(name) for name in columns]
    return build_table(path, [(1, columns), *((line, [cells[k] for k in indices]) for line, cells in rows)])


def is_bare(path: Path) -> bool:
    """Return whether rows are only a system and a score, in segment order (mt-metrics-eval)."""
    with open_text(path) as text:
        rows = [line.split() for line in islice(text, 2)]
    return len(rows) == 2 and all(len(row) == 2 and is_number(row[1]) for row in rows) and rows[0][0] == rows[1][0]


def _find_campaign_columns(path: Path) -> list[str] | None:
    """Return column names if a file is an Appraise campaign export, which has no header, else None."""
    first = _read_first_line(path).strip()
    try:
        cells = next(csv.reader([first], delimiter=find_delimiter(first) or ","), [])
    except csv.Error:
        return None
    n = len(cells)
    if n < len(CAMPAIGN_COLUMNS) - 2 or cells[3] not in APPRAISE_TYPES or not are_languages(cells[4:6]):
        return None
    if not cells[6] or not is_number(cells[6]):
        return None
    times = ["start", "end"] if n > len(CAMPAIGN_COLUMNS) + 1 else []
    return [
        *CAMPAIGN_COLUMNS[:n],
        *(f"column {k}" for k in range(len(CAMPAIGN_COLUMNS) + 1, n - len(times) + 1)),
        *times,
    ]


def _iter_bare_rows(path: Path) -> Iterator[Row]:
    yield 0, ("system", "seg_id", "score")
    counts: Counter[str] = Counter()
    for line, cells in iter_loose_rows(path):
        counts[cells[0]] += 1
        yield line, (cells[0], str(counts[cells[0]]), cells[1])
    if len(set(counts.values())) > 1:
        (most, n), (fewest, m) = counts.most_common()[0], counts.most_common()[-1]
        raise InputError(
            f"{path}: system {most!r} has {n:,} rows and {fewest!r} {m:,}; rows without ids are paired by order, so "
            "every system needs one a segment (None where there is no score)"
        )


def detect_kind(path: Path) -> Literal["parquet", "json", "loose", "delimited"]:
    """Return a file's kind; "loose" means split by tabs or blanks, with quotes as part of the text."""
    if is_parquet(path):
        return "parquet"
    if is_json(path):
        return "json"
    return "loose" if find_delimiter(_read_first_line(path)) in {"\t", None} else "delimited"


def is_split_by_blanks(path: Path) -> bool:
    """Return whether only blanks separate the columns."""
    return detect_kind(path) == "loose" and "\t" not in _read_first_line(path)


def _read_first_line(path: Path) -> str:
    with open_text(path) as text:
        return "".join(islice(text, 1))


def iter_loose_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file split by tabs, blanks or both; the header comes first.

    Raises
    ------
    InputError
        For a row that is as wide as the header under no reading.
    """
    with open_text(path) as text:
        split_row: Callable[[str], list[str]] | None = None
        width = blank_line = 0
        for number, raw in enumerate(text, start=1):
            line = raw.rstrip("\r\n")
            if split_row is None:
                cells = line.split("\t") if line.count("\t") > 1 else line.split()
                while cells and cells[-1].startswith("#"):  # a remark, as Marot writes it
                    cells.pop()
                width, split_row = len(cells), _build_splitter(len(cells))
            elif not line.strip():
                blank_line = blank_line or number
                continue
            else:
                if blank_line:
                    raise build_width_error(path, blank_line, 0, width)
                cells = split_row(line)
            if len(cells) != width:
                raise build_width_error(path, number, len(cells), width)
            yield number, cells


def _build_splitter(width: int) -> Callable[[str], list[str]]:
    def split(line: str) -> list[str]:
        cells = line.split("\t")
        if len(cells) == width:
            return [_unquote(cell) for cell in cells]
        words = line.split()
        if len(words) == width or len(cells) == 1:
            return words
        mixed = [cells[0], *" ".join(cells[1:]).split()]
        return mixed if len(mixed) == width else cells

    return split


def _unquote(cell: str) -> str:
    return cell[1:-1] if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell


NO_GRADE = -1.0
"""What FastChat writes where it found no grade in what the judge said."""

TARGET = "TGT"
"""Appraise's type of a system's translation."""

TRUE = frozenset({"true", "1"})
FALSE = frozenset({"false", "0"})


def is_by_judge(header: Sequence[str]) -> bool:
    """Return whether the columns are those of grades given by a model as judge.

    Examples
    --------
    >>> is_by_judge(["question_id", "model", "judge", "score", "turn"]), is_by_judge(["judge", "score"])
    (True, False)
    """
    names = {name.lower() for name in header}
    return "judge" in names and bool(names & {"turn", "judgment"})


def select_ratings(table: FileTable, header: Sequence[str], roles: Mapping[str, str]) -> tuple[FileTable, list[str]]:
    """Return the table without failed grades, quality controls and ratings of whole documents, and notes on these."""
    notes = []
    if "score" in roles and is_by_judge(header):
        table, removed_notes = remove_failed_grades(table, roles["score"])
        notes += removed_notes
    for role, remove in (("type", remove_controls), ("whole", remove_documents)):
        if role in roles:
            table, removed_notes = remove(table, roles[role])
            notes += removed_notes
    return table, notes


def remove_failed_grades(table: FileTable, score: str) -> tuple[FileTable, list[str]]:
    """Return the table with grades of -1, by which a judge gave none, set to missing, and a note on their number."""
    cells = table.columns[score]
    failed = {cell for cell in set(cells) if cell and is_number(cell) and cell[0] == "-" and float(cell) == NO_GRADE}
    n_failed = sum(cell in failed for cell in cells)
    if not n_failed:
        return table, []
    grades = ["" if cell in failed else cell for cell in cells]
    note = f"{table.path}: {format_count(n_failed, 'grade')} of -1 (the judge gave none) taken as missing"
    return replace(table, columns={**table.columns, score: grades}), [note]


def remove_controls(table: FileTable, type_: str) -> tuple[FileTable, list[str]]:
    """Return the table without rows of quality controls, which its column `type_` marks, and a note on their number."""
    types = table.columns[type_]
    keep = [cell == TARGET for cell in types]
    if all(keep) or not any(keep):
        return table, []
    other_types = ", ".join(sorted({cell for cell, is_kept in zip(types, keep, strict=True) if not is_kept}))
    return _select_rows(table, keep, "row", f"of quality controls ({type_} is {other_types}, not {TARGET})")


def remove_documents(table: FileTable, whole: str) -> tuple[FileTable, list[str]]:
    """Return the table without ratings of whole documents among those of segments, and a note on their number."""
    cells = [cell.lower() for cell in table.columns[whole]]
    if set(cells) - TRUE - FALSE:
        return table, []
    keep = [cell in FALSE for cell in cells]
    if all(keep) or not any(keep):
        return table, []
    return _select_rows(table, keep, "rating", f"of whole documents ({whole})")


def _select_rows(table: FileTable, keep: Sequence[bool], noun: str, reason: str) -> tuple[FileTable, list[str]]:
    note = f"{table.path}: {format_count(len(keep) - sum(keep), noun)} {reason} left out"
    columns = {
        name: [cell for cell, is_kept in zip(column, keep, strict=True) if is_kept]
        for name, column in table.columns.items()
    }
    return replace(
        table, columns=columns, lines=[n for n, is_kept in zip(table.lines, keep, strict=True) if is_kept]
    ), [note]
