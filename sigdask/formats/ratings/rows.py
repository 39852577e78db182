"""Rows of rating files: split by tabs, by blanks or by both, delimited, JSON or Parquet, with a header or bare."""

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
from sigdask.formats.reading.files import empty, is_parquet, open_text
from sigdask.formats.reading.json.records import is_json, record_rows
from sigdask.formats.reading.numbers import is_number
from sigdask.formats.reading.options import twice
from sigdask.formats.reading.rows import Row, delimited_rows, delimiter_of, ragged
from sigdask.formats.reading.tables import FileTable, read_table, table_of
from sigdask.text import count_noun

CONTROLLED = frozenset({"TGT", "BAD", "REF", "CHK", "TUT"})
"""Appraise's types of items."""

CAMPAIGN = ("user", "system", "item", "type", "src", "tgt", "score", "doc", "isdoc")
"""What Appraise's export of a campaign begins with, without saying so; the times of start and end are its last."""

LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,2}")
STARTED = 50
"""Rows looked at to tell what a column holds."""


def header_of(path: Path) -> list[str]:
    """Return the names of a file's columns."""
    return start_of(path, 0)[0]


def start_of(path: Path, n_rows: int = STARTED) -> list[list[str]]:
    """Return the names of a file's columns, and its first rows."""
    rows = list(islice(_rows(path), n_rows + 1))
    if not rows:
        raise empty(path)
    return [[cell.strip() for cell in cells] for _, cells in rows]


def are_languages(cells: Sequence[str]) -> bool:
    """Whether cells are codes of languages rather than texts.

    Examples
    --------
    >>> are_languages(["eng", "deu"]), are_languages(["pt-BR", "zh_Hans_CN"]), are_languages(["yes", "Good morning"])
    (True, True, False)
    """
    return bool(cells) and all(LANGUAGE.fullmatch(cell) for cell in cells)


def check_once(path: Path, header: Sequence[str], wanted: Iterable[str]) -> None:
    """Refuse a header that lacks a column, or has it twice."""
    for name in wanted:
        if header.count(name) != 1:
            problem = "occurs twice in the header" if name in header else f"is not there; columns: {', '.join(header)}"
            raise InputError(f"{path}: column {name!r} {problem}")


def absent(path: Path, header: Sequence[str], what: str, option: str, several: Sequence[str]) -> InputError:
    """Return the error for a column that is not there, or may be one of several."""
    problem = f"which column is the {what}, {' or '.join(several)}?" if len(several) > 1 else f"no {what} column;"
    return InputError(f"{path}: {problem} columns: {', '.join(header)}; name it with {option}")


def check_alone(path: Path, owners: Iterable[tuple[str, ...]], homes: dict[tuple[str, ...], Path]) -> None:
    """Refuse a system (and its test set) that another file holds too: their ratings would be averaged."""
    for owner in dict.fromkeys(owners):
        if homes.setdefault(owner, path) != path:
            raise InputError(
                f"{twice(path, owner[0], homes[owner])}; or average them as ratings of one system: --format "
                "ratings:raters=mean"
            )


def _rows(path: Path) -> Iterator[Row]:
    kind = kind_of(path)
    if kind == "parquet":
        table = read_table(path)
        yield 1, list(table.columns)
        yield from zip(table.lines, zip(*table.columns.values(), strict=True), strict=True)
    elif kind == "json":
        yield from record_rows(path)
    elif is_bare(path):
        yield from _bare_rows(path)
    else:
        if (names := _campaign(path)) is not None:
            yield 0, names
        yield from loose_rows(path) if kind == "loose" else delimited_rows(path)


def columns_of(path: Path, wanted: Sequence[str]) -> FileTable:
    """Read some columns and no others."""
    rows = _rows(path)
    _, header = next(rows)
    names = [name.strip() for name in header]
    check_once(path, names, wanted)
    taken = [names.index(name) for name in wanted]
    return table_of(path, [(1, wanted), *((line, [cells[k] for k in taken]) for line, cells in rows)])


def is_bare(path: Path) -> bool:
    """Whether rows are a system and a score alone, without a header, in the order of segments (mt-metrics-eval)."""
    with open_text(path) as text:
        rows = [line.split() for line in islice(text, 2)]
    return len(rows) == 2 and all(len(row) == 2 and is_number(row[1]) for row in rows) and rows[0][0] == rows[1][0]


def _campaign(path: Path) -> list[str] | None:
    """Return the names of the columns of Appraise's export of a campaign, which has no header; None of other files."""
    first = _first_line(path).strip()
    try:
        cells = next(csv.reader([first], delimiter=delimiter_of(first) or ","), [])
    except csv.Error:
        return None
    n = len(cells)
    if n < len(CAMPAIGN) - 2 or cells[3] not in CONTROLLED or not are_languages(cells[4:6]):
        return None
    if not cells[6] or not is_number(cells[6]):
        return None
    last = ["start", "end"] if n > len(CAMPAIGN) + 1 else []
    return [*CAMPAIGN[:n], *(f"column {k}" for k in range(len(CAMPAIGN) + 1, n - len(last) + 1)), *last]


def _bare_rows(path: Path) -> Iterator[Row]:
    yield 0, ("system", "seg_id", "score")
    counts: Counter[str] = Counter()
    for line, cells in loose_rows(path):
        counts[cells[0]] += 1
        yield line, (cells[0], str(counts[cells[0]]), cells[1])
    if len(set(counts.values())) > 1:
        (most, n), (fewest, m) = counts.most_common()[0], counts.most_common()[-1]
        raise InputError(
            f"{path}: system {most!r} has {n:,} rows and {fewest!r} {m:,}; rows without ids are paired by order, so "
            "every system needs one a segment (None where there is no score)"
        )


def kind_of(path: Path) -> Literal["parquet", "json", "loose", "delimited"]:
    """Say how a file is cut; loose: columns are split by tabs or blanks, and quotes are part of the text."""
    if is_parquet(path):
        return "parquet"
    if is_json(path):
        return "json"
    return "loose" if delimiter_of(_first_line(path)) in {"\t", None} else "delimited"


def is_split_by_blanks(path: Path) -> bool:
    """Whether blanks alone part the columns."""
    return kind_of(path) == "loose" and "\t" not in _first_line(path)


def _first_line(path: Path) -> str:
    with open_text(path) as text:
        return "".join(islice(text, 1))


def loose_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file split by tabs, by blanks, or by both; the header first.

    Raises
    ------
    InputError
        For a row that is as wide as the header under no reading.
    """
    with open_text(path) as text:
        split: Callable[[str], list[str]] | None = None
        width = blank = 0
        for number, raw in enumerate(text, start=1):
            line = raw.rstrip("\r\n")
            if split is None:
                cells = line.split("\t") if line.count("\t") > 1 else line.split()
                while cells and cells[-1].startswith("#"):  # a remark, as Marot writes it
                    cells.pop()
                width, split = len(cells), _split_rows(len(cells))
            elif not line.strip():
                blank = blank or number
                continue
            else:
                if blank:
                    raise ragged(path, blank, 0, width)
                cells = split(line)
            if len(cells) != width:
                raise ragged(path, number, len(cells), width)
            yield number, cells


def _split_rows(width: int) -> Callable[[str], list[str]]:
    def split(line: str) -> list[str]:
        cells = line.split("\t")
        if len(cells) == width:
            return [_bare(cell) for cell in cells]
        words = line.split()
        if len(words) == width or len(cells) == 1:
            return words
        mixed = [cells[0], *" ".join(cells[1:]).split()]
        return mixed if len(mixed) == width else cells

    return split


def _bare(cell: str) -> str:
    return cell[1:-1] if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell


NO_GRADE = -1.0
"""What FastChat writes where it found no grade in what the judge said."""

TARGET = "TGT"
"""Appraise's type of a system's translation."""

TRUE = frozenset({"true", "1"})
FALSE = frozenset({"false", "0"})


def is_of_judge(header: Sequence[str]) -> bool:
    """Whether columns are those of a model's grades.

    Examples
    --------
    >>> is_of_judge(["question_id", "model", "judge", "score", "turn"]), is_of_judge(["judge", "score"])
    (True, False)
    """
    names = {name.lower() for name in header}
    return "judge" in names and bool(names & {"turn", "judgment"})


def cleaned(table: FileTable, header: Sequence[str], named: Mapping[str, str]) -> tuple[FileTable, list[str]]:
    """Leave out what is no rating of a segment, and say what."""
    notes = []
    if "score" in named and is_of_judge(header):
        table, said = without_grades(table, named["score"])
        notes += said
    for what, leave in (("type", without_controls), ("whole", without_documents)):
        if what in named:
            table, said = leave(table, named[what])
            notes += said
    return table, notes


def without_grades(table: FileTable, score: str) -> tuple[FileTable, list[str]]:
    """Take the grades that a judge failed to give as missing."""
    cells = table.columns[score]
    failed = {cell for cell in set(cells) if cell and is_number(cell) and cell[0] == "-" and float(cell) == NO_GRADE}
    n_failed = sum(cell in failed for cell in cells)
    if not n_failed:
        return table, []
    kept = ["" if cell in failed else cell for cell in cells]
    note = f"{table.path}: {count_noun(n_failed, 'grade')} of -1 (the judge gave none) taken as missing"
    return replace(table, columns={**table.columns, score: kept}), [note]


def without_controls(table: FileTable, type_: str) -> tuple[FileTable, list[str]]:
    """Leave out all rows but those of systems' translations, where a column says which these are."""
    types = table.columns[type_]
    keep = [cell == TARGET for cell in types]
    if all(keep) or not any(keep):
        return table, []
    others = ", ".join(sorted({cell for cell, kept in zip(types, keep, strict=True) if not kept}))
    return _kept(table, keep, "row", f"of quality controls ({type_} is {others}, not {TARGET})")


def without_documents(table: FileTable, whole: str) -> tuple[FileTable, list[str]]:
    """Leave out ratings of whole documents that stand among those of segments."""
    cells = [cell.lower() for cell in table.columns[whole]]
    if set(cells) - TRUE - FALSE:
        return table, []
    keep = [cell in FALSE for cell in cells]
    if all(keep) or not any(keep):
        return table, []
    return _kept(table, keep, "rating", f"of whole documents ({whole})")


def _kept(table: FileTable, keep: Sequence[bool], noun: str, why: str) -> tuple[FileTable, list[str]]:
    note = f"{table.path}: {count_noun(len(keep) - sum(keep), noun)} {why} left out"
    columns = {
        name: [cell for cell, kept in zip(column, keep, strict=True) if kept] for name, column in table.columns.items()
    }
    return replace(table, columns=columns, lines=[n for n, kept in zip(table.lines, keep, strict=True) if kept]), [note]
