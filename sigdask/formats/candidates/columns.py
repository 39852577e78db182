"""The columns of a table of candidates: ids, the gold standard and the scores of each measure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.candidates import UNKNOWN, Candidates
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.formats.reading.numbers import MISSING
from sigdask.formats.reading.tables import FileTable
from sigdask.formats.tables.decimals import convert_decimal_commas
from sigdask.text import format_list

TRUE = frozenset({"1", "true", "t", "yes", "y", "+", "tp", "1.0"})
FALSE = frozenset({"0", "false", "f", "no", "n", "-", "fp", "0.0"})


@dataclass(frozen=True, slots=True)
class Conventions:
    """The column names that a format of candidates uses for ids, gold standard and measures.

    Attributes
    ----------
    gold : tuple of str
        Columns that say what is true, by name or pattern (`b.*`).
    measures : tuple of str
        Measures, likewise; where there is none, every other column of numbers is one.
    ids : tuple of str
        Columns that together name a candidate.
    """

    gold: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()

    def select_names(self, patterns: Sequence[str], names: Sequence[str]) -> list[str]:
        """Return the names that match one of the patterns."""
        return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


@dataclass(frozen=True, slots=True)
class CandidateColumns:
    """The user's choices for a file of candidates: which columns to read, and how to interpret them.

    Attributes
    ----------
    gold : str or None
        What is true; None takes `gold`, or the only column that the format calls so.
    ids : tuple of str
        Columns that name a candidate, together where they are several; empty takes one with a usual name.
    measures : tuple of str
        Empty takes every column of numbers.
    smaller : tuple of str
        Measures of which a smaller score is a better one.
    ignore : tuple of str
        Columns left out.
    positive : tuple of str
        Labels of what is true, where gold holds labels; all others are false.
    partial : bool
        Gold is empty but for a random sample of the candidates.
    one_of_many : bool
        It is one sample of many, of which all candidates may be true, or false.
    decimal : {".", ","}, or None
        What parts decimals.
    most_unpacked : int or None
        Bytes that a packed file may become.
    """

    gold: str | None = None
    ids: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    smaller: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    partial: bool = False
    one_of_many: bool = False
    decimal: str | None = None
    most_unpacked: int | None = None


def build_candidates(
    table: FileTable, choices: CandidateColumns, name: str, conventions: Conventions | None = None
) -> Candidates:
    """Build candidates from a table.

    Raises
    ------
    InputError
        A column is missing, or a cell is not what it is to be; it names file and line.
    """
    usual = conventions or Conventions()
    _check_names(table, choices)
    gold_name = choices.gold or _find_gold_name(table, usual)
    gold = _read_gold(table, gold_name, choices)
    id_names = choices.ids or _find_id_names(table, usual)
    ids = _build_ids(table, id_names)
    excluded = {gold_name, *id_names, *choices.ignore}
    other_columns = [column for column in table.list_other_columns(*excluded) if column not in excluded]
    text_columns = {
        column: Texts.from_values(table.columns[column]) for column in other_columns if not table.is_numeric(column)
    }
    table = convert_decimal_commas(table, text_columns, choices.decimal)
    names, left_out = _select_measures(table, choices, usual, other_columns)
    for measure in choices.smaller:
        if measure not in names:
            raise _missing_column_error(table.path, measure, "measure", names)
    scores = [_read_scores(table, measure) for measure in names]
    notes = [*table.notes]
    if left_out:
        notes.append(f"{table.path}: {format_list(left_out, limit=6)}: no measures, left out (choose with --measure)")
    try:
        candidates = Candidates(
            tuple(names), gold, np.array(scores), frozenset(choices.smaller), ids, name, tuple(notes)
        )
        candidates.check()
        if not choices.one_of_many:
            candidates.check_gold()
    except InputError as error:
        raise InputError(f"{table.path}: {error}") from None
    return candidates


def _check_names(table: FileTable, choices: CandidateColumns) -> None:
    """Raise if a column is missing or is requested twice."""
    for measure in choices.measures:
        if choices.measures.count(measure) > 1:
            raise InputError(f"measure {measure!r} is named twice")
    for column in (*choices.measures, *choices.ids, *([choices.gold] if choices.gold else [])):
        if column not in table.columns:
            raise _missing_column_error(table.path, column, "column", list(table.columns))
    conflicts = {*choices.measures} & {choices.gold, *choices.ids, *choices.ignore}
    if conflicts:
        raise InputError(f"column {min(map(str, conflicts))!r} is a measure and something else; choose one")


def _missing_column_error(path: object, column: str, noun: str, names: Sequence[str]) -> InputError:
    close = difflib.get_close_matches(column[:200], [name for name in names if len(name) < 200], 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return InputError(f"{path}: no {noun} {column[:1000]!r}; {noun}s: {format_list(names, limit=20)}{hint}")


def _find_gold_name(table: FileTable, usual: Conventions) -> str:
    """Return the name of the gold-standard column."""
    matching = usual.select_names(usual.gold, list(table.columns))
    if len(matching) == 1:
        return matching[0]
    lowered = {column.lower(): column for column in table.columns}
    if "gold" in lowered:
        return lowered["gold"]
    likely = matching or [column for column, cells in table.columns.items() if _are_truth_values(cells)]
    hint = f"; {' or '.join(map(repr, likely[:6]))} may be it" if likely else ""
    raise InputError(
        f"{table.path}: no column 'gold', which says of each candidate whether it is true; name it with "
        f"--gold-column{hint}"
    )


def _are_truth_values(cells: Sequence[str]) -> bool:
    """Return whether the cells are two different truth values."""
    words = {cell.lower() for cell in {*cells}}
    return len(words) == 2 and words <= TRUE | FALSE


def _read_gold(table: FileTable, name: str, choices: CandidateColumns) -> NDArray[np.int8]:
    """Return the gold standard, with `UNKNOWN` for empty cells where they are allowed."""
    cells = list(table.columns[name])
    codes: dict[str, int] = {}
    for cell in {*cells}:
        if cell in MISSING and cell not in choices.positive:
            if not choices.partial:
                line = table.lines[cells.index(cell)]
                raise InputError(
                    f"{table.path}, line {line}, column {name!r}: found {cell!r}, expected whether the candidate is "
                    "true; where only a random sample was judged, say so with --partial"
                )
            codes[cell] = UNKNOWN
        elif choices.positive:
            codes[cell] = int(cell in choices.positive)
        elif cell.lower() in TRUE | FALSE:
            codes[cell] = int(cell.lower() in TRUE)
        else:
            line = table.lines[cells.index(cell)]
            raise InputError(
                f"{table.path}, line {line}, column {name!r}: found {cell[:40]!r}, expected 1 or 0, true or false; "
                "where gold holds labels, say with --positive which are true"
            )
    for label in choices.positive:
        if label not in codes:
            raise InputError(
                f"{table.path}, column {name!r}: no label {label!r}; labels: {format_list(sorted(codes), limit=10)}"
            )
    return np.array([codes[cell] for cell in cells], np.int8)


def _find_id_names(table: FileTable, usual: Conventions) -> tuple[str, ...]:
    """Return the columns with conventional names for a candidate's id, or an empty tuple if there are none."""
    if usual.ids and {*usual.ids} <= {*table.columns}:
        return usual.ids
    name = table.find_column(("id", "candidate", "cand", "item", "candid"))
    return () if name is None else (name,)


def _build_ids(table: FileTable, names: Sequence[str]) -> Texts | None:
    """Return unique ids, joined from several columns if there are several."""
    if not names:
        return None
    cells = [table.columns[name] for name in names]
    ids = list(cells[0]) if len(cells) == 1 else ["\t".join(parts) for parts in zip(*cells, strict=True)]
    first_lines: dict[str, int] = {}
    for line, item in zip(table.lines, ids, strict=True):
        shown = " ".join(item.split("\t"))
        if not shown.strip():
            raise InputError(
                f"{table.path}, line {line}: {_describe_columns(names)} is empty, expected a candidate's id"
            )
        if item in first_lines:
            raise InputError(
                f"{table.path}, line {line}: id {shown[:200]!r} ({_describe_columns(names)}) stands on line "
                f"{first_lines[item]} "
                "already; ids must be unique, name further columns with --id"
            )
        first_lines[item] = line
    return Texts.from_values(ids)


def _describe_columns(names: Sequence[str]) -> str:
    return f"column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"


def _select_measures(
    table: FileTable, choices: CandidateColumns, usual: Conventions, other_columns: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the columns of measures, and the columns left over (none if the user names the measures)."""
    if choices.measures:
        return list(choices.measures), []
    conventional = usual.select_names(usual.measures, other_columns)
    measures = conventional or [column for column in other_columns if _is_measure(table, column)]
    measures += [column for column in choices.smaller if column in other_columns and column not in measures]
    if not measures:
        raise InputError(f"{table.path}: no column of scores beside what is true and ids")
    return measures, [column for column in other_columns if column not in measures]


def _is_measure(table: FileTable, column: str) -> bool:
    """Return whether a column holds numbers other than truth values."""
    return table.is_numeric(column) and not _are_truth_values(table.columns[column])


def _read_scores(table: FileTable, name: str) -> NDArray[np.float64]:
    scores = np.asarray(table.get_numbers(name), np.float64)
    missing = np.flatnonzero(np.isnan(scores))
    if len(missing):
        line = table.lines[int(missing[0])]
        raise InputError(
            f"{table.path}, line {line}, column {name!r}: no score; every measure scores every candidate, remove the "
            "candidate or leave the column out with --ignore"
        )
    return scores
