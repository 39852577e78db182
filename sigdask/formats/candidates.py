"""Readers for lists of candidates with the scores of several measures: tables, and data sets of UCS.

A data set of UCS (`.ds`) has comments, then a tab-separated table with scores in `am.*` and annotations in `b.*`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import UNKNOWN, Candidates
from sigdask.counts.texts import Texts
from sigdask.errors import InputError, SeveralError
from sigdask.formats.reading.columns import MISSING
from sigdask.formats.reading.files import check_widths, enumerate_lines, read_head
from sigdask.formats.reading.options import Options, parse_format
from sigdask.formats.reading.tables import FileTable, build_table, read_table
from sigdask.formats.registry import SHARED_OPTIONS
from sigdask.formats.roles import build_roles_error, check_roles, resolve_roles
from sigdask.interface import spell
from sigdask.io import as_path, use_options
from sigdask.text import format_list, suggest_name

TRUTHS = dict.fromkeys(("1", "true", "t", "yes", "y", "+", "tp", "1.0"), 1)
TRUTHS |= dict.fromkeys(("0", "false", "f", "no", "n", "-", "fp", "0.0"), 0)
"""Values of a column of truth values."""

__all__ = ["CandidateColumns", "read"]

UCS_ENDINGS = (".ds", ".ds.gz")

ROLES = ("gold", "item")
"""Roles of columns that a user can name."""

FORMATS = ("auto", "table", "ucs")

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CandidateColumns:
    """The user's choices for a file of candidates: which columns to read, and how to interpret them.

    Attributes
    ----------
    columns : mapping of str to str
        Roles of columns: "gold" and "item", by default those with a usual name. {"item": "A+B"} joins columns that
        together name a candidate.
    format : str
        "auto", "table" or "ucs", which is detected. A table has options after the name: "table:sheet=NAME,decimal=,".
    measures : tuple of str
        Empty takes the columns that the format names, or every column of a table whose name has no other role.
    smaller : tuple of str
        Measures for which a smaller score is better.
    ignore : tuple of str
        Columns left out.
    positive : tuple of str
        Labels of true candidates, if gold holds labels. All others are false.
    partial : bool
        Gold is empty but for a random sample of the candidates.
    one_of_many : bool
        Whether it is one of many samples, in which all candidates may be true, or all false.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    format: str = "auto"
    measures: tuple[str, ...] = ()
    smaller: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    partial: bool = False
    one_of_many: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        """Columns that together name a candidate."""
        return tuple(self.columns["item"].split("+")) if "item" in self.columns else ()

    def __post_init__(self) -> None:
        check_roles(self.columns, ROLES)
        name, settings = parse_format(self.format)
        if name not in FORMATS:
            raise InputError(f"unknown format {name!r}{suggest_name(name, FORMATS)}; formats: {', '.join(FORMATS)}")
        Options(own=settings).check_format_options(name, {text.partition("=")[0]: () for text in SHARED_OPTIONS})


def read(path: str | Path, columns: CandidateColumns | None = None, *, name: str = "") -> Candidates:
    """Read the candidates of one file; whether it is a table or a UCS data set is detected.

    Parameters
    ----------
    path : str or Path
        TSV, CSV, JSON or Parquet; a data set of UCS (.ds); gzipped or not.
    columns : CandidateColumns, optional
        Roles of the columns.
    name : str
        Name of the test set.

    Raises
    ------
    InputError
        The file is invalid. The message names it and, if possible, the line.
    """
    file, choices = as_path(path), columns or CandidateColumns()
    with use_options(parse_format(choices.format)[1]):
        is_ucs = file.name.endswith(UCS_ENDINGS) or read_head(file).text.startswith("##")
        table = read_ucs(file) if is_ucs else read_table(file, choices.ignore)
        _check_names(table, choices)
        gold, ids, measures = _find_ucs_columns(table, choices) if is_ucs else _find_columns(table, choices)
        measures = choices.measures or measures
        left_out = [c for c in table.columns if c not in {gold, *ids, *measures, *choices.ignore}]
        notes = [f"{file}: {format_list(left_out, limit=6)}: no measures, left out"] if left_out else []
        problem = "no score, but every measure needs one; remove the candidate, or leave the column out: "
        scores = {name: table.get_complete_numbers(name, problem + spell("ignore", name)) for name in measures}
    labels, texts = _read_gold(table, gold, choices), _build_ids(table, ids)
    try:
        candidates = Candidates(labels, scores, choices.smaller, texts, name, tuple(notes))
        if not choices.one_of_many:
            candidates.check_gold()
    except InputError as error:
        raise InputError(f"{error}", file=file) from None
    return candidates


def read_ucs(path: Path) -> FileTable:
    """Read a UCS data set as a table; quotation marks are ordinary characters.

    Raises
    ------
    InputError
        A row is of another width than the names.
    """
    lines = ((number, line.rstrip("\r\n")) for number, line in enumerate_lines(path))
    is_comment = lambda row: not row[1].strip() or row[1].startswith("#")  # noqa: E731
    rows = [(number, line.split("\t") if line else []) for number, line in dropwhile(is_comment, lines)]
    if not rows:
        raise InputError("has only comments, expected a header with the names of columns", file=path)
    return build_table(path, [*check_widths(path, iter(rows), len(rows[0][1]))])


def _check_names(table: FileTable, choices: CandidateColumns) -> None:
    """Raise if a column is missing or is requested twice."""
    others = (*choices.ids, *filter(None, [choices.columns.get("gold")]))
    for column in (*choices.measures, *others):
        table.get_column(column)
        if choices.measures.count(column) + (column in {*others, *choices.ignore}) > 1:
            raise InputError(f"column {column!r} is named twice", remedy="choose one role")


def _find_columns(table: FileTable, choices: CandidateColumns) -> tuple[str, Names, Names]:
    """Return the columns of gold, ids and measures of a table by their names; those without a role are measures."""
    roles = resolve_roles(table, Options(columns=choices.columns, ignore=(*choices.ignore, *choices.measures)))
    gold = _choose_gold(table, roles.list_all("gold"), roles.unknown)
    measures = (*roles.list_all("score"), *roles.unknown)
    faults = {name: fault for name in roles.unknown if (fault := table.describe_fault(name))}
    if faults and not choices.measures:
        leave_out = spell("ignore", *faults)
        raise SeveralError(*faults.values(), f"If these columns are no measures, leave them out: {leave_out}.")
    return gold, roles.list_all("item"), measures


def _find_ucs_columns(table: FileTable, choices: CandidateColumns) -> tuple[str, Names, Names]:
    """Return the columns of gold, ids and measures of a data set of UCS."""
    names = [name for name in table.columns if name not in choices.ignore]
    gold, measures = (tuple(name for name in names if name.startswith(start)) for start in ("b.", "am."))
    ids = choices.ids or tuple(name for name in ("l1", "l2") if name in table.columns)
    measures = tuple(dict.fromkeys((*measures, *choices.smaller)))
    return choices.columns.get("gold") or _choose_gold(table, gold, ()), ids, measures


def _choose_gold(table: FileTable, names: Sequence[str], others: Sequence[str]) -> str:
    """Return the only column of the gold standard; raise an error that names others with truth values."""
    if len(names) == 1:
        return names[0]
    known = names or [c for c in others if {*map(str.lower, table.columns[c])} <= {*TRUTHS}] or ["COLUMN"]
    problem = f"{'several columns' if names else 'no column'} of the gold standard, which says what is true"
    raise build_roles_error(table, problem, [spell("columns", f"gold={name}") for name in known])


def _read_gold(table: FileTable, name: str, choices: CandidateColumns) -> NDArray[np.int8]:
    """Return the gold standard, with `UNKNOWN` for empty cells where they are allowed."""
    cells = list(table.columns[name])
    codes: dict[str, int] = {}
    for cell in dict.fromkeys(cells):
        is_missing = cell in MISSING and cell not in choices.positive
        if is_missing and choices.partial:
            codes[cell] = UNKNOWN
        elif choices.positive and not is_missing:
            codes[cell] = int(cell in choices.positive)
        elif cell.lower() in TRUTHS:
            codes[cell] = TRUTHS[cell.lower()]
        else:
            remedy = f"if the column holds labels, name those of true candidates with {spell('positive')}"
            remedy = f"if only a random sample was judged, add {spell('partial')}" if is_missing else remedy
            problem = f"column {name!r}: found {cell[:40]!r}, expected 1 or 0, true or false"
            raise InputError(problem, file=table.path, line=table.lines[cells.index(cell)], remedy=remedy)
    for label in choices.positive:
        if label not in codes:
            labels = format_list(sorted(codes), limit=10)
            raise InputError(f"column {name!r}: no label {label!r}; labels: {labels}", file=table.path)
    return np.array([codes[cell] for cell in cells], np.int8)


def _build_ids(table: FileTable, names: Sequence[str]) -> Texts | None:
    """Return unique ids, joined from several columns if there are several."""
    if not names:
        return None
    ids = ["\t".join(parts) for parts in zip(*(table.columns[name] for name in names), strict=True)]
    first_lines: dict[str, int] = {}
    for line, item in zip(table.lines, ids, strict=True):
        first = first_lines.setdefault(item, line)
        if first != line or not item.strip():
            problem = f"id {item[:200]!r} ({' and '.join(names)}) is {'empty' if first == line else f'on line {first}'}"
            remedy = f"ids must be unique; join further columns: {spell('columns', 'item=A+B')}"
            raise InputError(problem, file=table.path, line=line, remedy=remedy)
    return Texts.from_values(ids)
