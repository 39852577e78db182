"""The columns of a table of candidates: ids, what is true, and a score of each measure."""

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
from sigdask.formats.tables.decimals import with_points
from sigdask.text import listed

TRUE = frozenset({"1", "true", "t", "yes", "y", "+", "tp", "1.0"})
FALSE = frozenset({"0", "false", "f", "no", "n", "-", "fp", "0.0"})


@dataclass(frozen=True, slots=True)
class Conventions:
    """How a format calls its columns.

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

    def among(self, patterns: Sequence[str], names: Sequence[str]) -> list[str]:
        """Return the names that are called by one of some patterns."""
        return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


@dataclass(frozen=True, slots=True)
class CandidateColumns:
    """What the user says about the columns.

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


def candidates_of(
    table: FileTable, asked: CandidateColumns, name: str, conventions: Conventions | None = None
) -> Candidates:
    """Return the candidates of a table.

    Raises
    ------
    InputError
        A column is missing, or a cell is not what it is to be; it names file and line.
    """
    usual = conventions or Conventions()
    _check_names(table, asked)
    gold_name = asked.gold or _gold_name(table, usual)
    gold = _gold(table, gold_name, asked)
    id_names = asked.ids or _id_names(table, usual)
    ids = _ids(table, id_names)
    aside = {gold_name, *id_names, *asked.ignore}
    others = [column for column in table.others(*aside) if column not in aside]
    written = {column: Texts.of(table.columns[column]) for column in others if not table.is_numeric(column)}
    table = with_points(table, written, asked.decimal)
    names, left_out = _measures(table, asked, usual, others)
    for measure in asked.smaller:
        if measure not in names:
            raise _no_column(table.path, measure, "measure", names)
    scores = [_scores(table, measure) for measure in names]
    notes = [*table.notes]
    if left_out:
        notes.append(f"{table.path}: {listed(left_out, most=6)}: no measures, left out (choose with --measure)")
    try:
        found = Candidates(tuple(names), gold, np.array(scores), frozenset(asked.smaller), ids, name, tuple(notes))
        found.check()
        if not asked.one_of_many:
            found.check_gold()
    except InputError as error:
        raise InputError(f"{table.path}: {error}") from None
    return found


def _check_names(table: FileTable, asked: CandidateColumns) -> None:
    """Refuse columns that are not there or are asked for twice."""
    for measure in asked.measures:
        if asked.measures.count(measure) > 1:
            raise InputError(f"measure {measure!r} is named twice")
    for column in (*asked.measures, *asked.ids, *([asked.gold] if asked.gold else [])):
        if column not in table.columns:
            raise _no_column(table.path, column, "column", list(table.columns))
    both = {*asked.measures} & {asked.gold, *asked.ids, *asked.ignore}
    if both:
        raise InputError(f"column {min(map(str, both))!r} is a measure and something else; choose one")


def _no_column(path: object, column: str, what: str, names: Sequence[str]) -> InputError:
    close = difflib.get_close_matches(column[:200], [name for name in names if len(name) < 200], 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return InputError(f"{path}: no {what} {column[:1000]!r}; {what}s: {listed(names, most=20)}{hint}")


def _gold_name(table: FileTable, usual: Conventions) -> str:
    """Return the column that says what is true."""
    named = usual.among(usual.gold, list(table.columns))
    if len(named) == 1:
        return named[0]
    lowered = {column.lower(): column for column in table.columns}
    if "gold" in lowered:
        return lowered["gold"]
    likely = named or [column for column, cells in table.columns.items() if _says_truth(cells)]
    hint = f"; {' or '.join(map(repr, likely[:6]))} may be it" if likely else ""
    raise InputError(
        f"{table.path}: no column 'gold', which says of each candidate whether it is true; name it with "
        f"--gold-column{hint}"
    )


def _says_truth(cells: Sequence[str]) -> bool:
    """Whether a column holds truth values."""
    words = {cell.lower() for cell in {*cells}}
    return len(words) == 2 and words <= TRUE | FALSE


def _gold(table: FileTable, name: str, asked: CandidateColumns) -> NDArray[np.int8]:
    """Return what is true, `UNKNOWN` where a cell is empty and may be."""
    cells = list(table.columns[name])
    known: dict[str, int] = {}
    for cell in {*cells}:
        if cell in MISSING and cell not in asked.positive:
            if not asked.partial:
                line = table.lines[cells.index(cell)]
                raise InputError(
                    f"{table.path}, line {line}, column {name!r}: found {cell!r}, expected whether the candidate is "
                    "true; where only a random sample was judged, say so with --partial"
                )
            known[cell] = UNKNOWN
        elif asked.positive:
            known[cell] = int(cell in asked.positive)
        elif cell.lower() in TRUE | FALSE:
            known[cell] = int(cell.lower() in TRUE)
        else:
            line = table.lines[cells.index(cell)]
            raise InputError(
                f"{table.path}, line {line}, column {name!r}: found {cell[:40]!r}, expected 1 or 0, true or false; "
                "where gold holds labels, say with --positive which are true"
            )
    for label in asked.positive:
        if label not in known:
            raise InputError(
                f"{table.path}, column {name!r}: no label {label!r}; labels: {listed(sorted(known), most=10)}"
            )
    return np.array([known[cell] for cell in cells], np.int8)


def _id_names(table: FileTable, usual: Conventions) -> tuple[str, ...]:
    """Return the columns that name a candidate, where they are called as usual."""
    if usual.ids and {*usual.ids} <= {*table.columns}:
        return usual.ids
    found = table.conventional(("id", "candidate", "cand", "item", "candid"))
    return () if found is None else (found,)


def _ids(table: FileTable, names: Sequence[str]) -> Texts | None:
    """Return unique ids, of several columns together."""
    if not names:
        return None
    cells = [table.columns[name] for name in names]
    ids = list(cells[0]) if len(cells) == 1 else ["\t".join(parts) for parts in zip(*cells, strict=True)]
    seen: dict[str, int] = {}
    for line, item in zip(table.lines, ids, strict=True):
        shown = " ".join(item.split("\t"))
        if not shown.strip():
            raise InputError(f"{table.path}, line {line}: {_called(names)} is empty, expected a candidate's id")
        if item in seen:
            raise InputError(
                f"{table.path}, line {line}: id {shown[:200]!r} ({_called(names)}) stands on line {seen[item]} "
                "already; ids must be unique, name further columns with --id"
            )
        seen[item] = line
    return Texts.of(ids)


def _called(names: Sequence[str]) -> str:
    return f"column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"


def _measures(
    table: FileTable, asked: CandidateColumns, usual: Conventions, others: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the measures, and the other columns that are none."""
    if asked.measures:
        return list(asked.measures), []
    named = usual.among(usual.measures, others)
    found = named or [column for column in others if _is_measure(table, column)]
    found += [column for column in asked.smaller if column in others and column not in found]
    if not found:
        raise InputError(f"{table.path}: no column of scores beside what is true and ids")
    return found, [column for column in others if column not in found]


def _is_measure(table: FileTable, column: str) -> bool:
    """Whether a column holds numbers, and not truth values alone."""
    return table.is_numeric(column) and not _says_truth(table.columns[column])


def _scores(table: FileTable, name: str) -> NDArray[np.float64]:
    scores = np.asarray(table.numbers(name), np.float64)
    missing = np.flatnonzero(np.isnan(scores))
    if len(missing):
        line = table.lines[int(missing[0])]
        raise InputError(
            f"{table.path}, line {line}, column {name!r}: no score; every measure scores every candidate, remove the "
            "candidate or leave the column out with --ignore"
        )
    return scores
