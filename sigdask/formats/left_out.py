"""Rows of ratings that are no rating of a segment, as the tools that write them mark them.

- Grades of a model as judge (FastChat's MT-bench): -1 says that the judge gave none.
- Appraise: every type but TGT is a control of quality (BAD, REF, CHK, tutorials); a whole document
  is rated in a row of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sigdask.formats.reading.numbers import is_number
from sigdask.formats.reading.tables import Table

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


def cleaned(table: Table, header: Sequence[str], named: Mapping[str, str]) -> tuple[Table, list[str]]:
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


def without_grades(table: Table, score: str) -> tuple[Table, list[str]]:
    """Take the grades that a judge failed to give as missing."""
    cells = table.columns[score]
    failed = {cell for cell in set(cells) if cell and is_number(cell) and cell[0] == "-" and float(cell) == NO_GRADE}
    n_failed = sum(cell in failed for cell in cells)
    if not n_failed:
        return table, []
    kept = ["" if cell in failed else cell for cell in cells]
    note = f"{table.path}: {n_failed:,} grades are -1 (the judge gave none) and taken as missing"
    return replace(table, columns={**table.columns, score: kept}), [note]


def without_controls(table: Table, type_: str) -> tuple[Table, list[str]]:
    """Leave out all rows but those of systems' translations, where a column says which these are."""
    types = table.columns[type_]
    keep = [cell == TARGET for cell in types]
    if all(keep) or not any(keep):
        return table, []
    others = ", ".join(sorted({cell for cell, kept in zip(types, keep, strict=True) if not kept}))
    return _kept(table, keep, f"rows are controls of quality ({type_} is {others}, not {TARGET})")


def without_documents(table: Table, whole: str) -> tuple[Table, list[str]]:
    """Leave out ratings of whole documents that stand among those of segments."""
    cells = [cell.lower() for cell in table.columns[whole]]
    if set(cells) - TRUE - FALSE:
        return table, []
    keep = [cell in FALSE for cell in cells]
    if all(keep) or not any(keep):
        return table, []
    return _kept(table, keep, f"ratings are of whole documents ({whole})")


def _kept(table: Table, keep: Sequence[bool], why: str) -> tuple[Table, list[str]]:
    note = f"{table.path}: {len(keep) - sum(keep):,} {why} and left out"
    columns = {
        name: [cell for cell, kept in zip(column, keep, strict=True) if kept] for name, column in table.columns.items()
    }
    return replace(table, columns=columns, lines=[n for n, kept in zip(table.lines, keep, strict=True) if kept]), [note]
