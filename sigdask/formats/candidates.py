"""Readers for lists of candidates with the scores of several measures: tables, and data sets of UCS.

A data set of UCS (`.ds`) has comments, then a tab-separated table with scores in `am.*` and annotations in `b.*`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.candidates import UNKNOWN, Candidates
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.formats.reading.columns import MISSING
from sigdask.formats.reading.files import Row, build_width_error, enumerate_lines
from sigdask.formats.reading.json_records import read_head
from sigdask.formats.reading.options import Options, parse_format
from sigdask.formats.reading.tables import FileTable, build_table, read_table
from sigdask.formats.registry import SHARED_OPTIONS
from sigdask.formats.roles import Roles, build_roles_error, check_roles, resolve_roles
from sigdask.interface import spell
from sigdask.io import as_path
from sigdask.io.compression import use_options
from sigdask.text import format_list, suggest_name

TRUTHS = dict.fromkeys(("1", "true", "t", "yes", "y", "+", "tp", "1.0"), 1)
TRUTHS |= dict.fromkeys(("0", "false", "f", "no", "n", "-", "fp", "0.0"), 0)
"""Values of a column of truth values."""

__all__ = ["CandidateColumns", "read"]

UCS_ENDINGS = (".ds", ".ds.gz")

ROLES = ("gold", "item")
"""Roles of columns that a user can name."""

TABLE_OPTIONS = tuple(option.partition("=")[0] for option in SHARED_OPTIONS)
OPTIONS = {"auto": TABLE_OPTIONS, "table": TABLE_OPTIONS, "ucs": ()}
"""Formats and their options."""


@dataclass(frozen=True, slots=True)
class CandidateColumns:
    """The user's choices for a file of candidates: which columns to read, and how to interpret them.

    Attributes
    ----------
    columns : mapping of str to str
        Roles of columns: "gold" and "item", by default those with a usual name. {"item": "A+B"} joins columns that
        together name a candidate.
    format : str
        "table", "ucs" or "auto". A table has options after the name: "table:sheet=NAME,decimal=,".
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
    def gold_column(self) -> str | None:
        """Column of the gold standard."""
        return self.columns.get("gold")

    @property
    def ids(self) -> tuple[str, ...]:
        """Columns that together name a candidate."""
        return tuple(self.columns["item"].split("+")) if "item" in self.columns else ()

    def __post_init__(self) -> None:
        check_roles(self.columns, ROLES)
        name, settings = parse_format(self.format)
        if name not in OPTIONS:
            raise InputError(f"unknown format {name!r}{suggest_name(name, OPTIONS)}; formats: {', '.join(OPTIONS)}")
        if wrong := [key for key in settings if key not in OPTIONS[name]]:
            raise InputError(f"format {name}: no option {wrong[0]!r}; it has: {', '.join(OPTIONS[name]) or 'none'}")


def build_candidates(table: FileTable, roles: Roles, choices: CandidateColumns, name: str) -> Candidates:
    """Build candidates from a table whose columns have roles.

    Raises
    ------
    InputError
        A column is missing, or a cell is invalid. The message names file and line.
    """
    gold_names, id_names = roles.list_all("gold"), roles.list_all("item")
    if len(gold_names) != 1:
        names = gold_names or [c for c in roles.unknown if {*map(str.lower, table.columns[c])} <= {*TRUTHS}]
        ways = [spell("columns", f"gold={name}") for name in names] or [spell("columns", "gold=COLUMN")]
        problem = f"{'several columns' if gold_names else 'no column'} of the gold standard, which says what is true"
        raise build_roles_error(table, problem, ways)
    measures = choices.measures or tuple(dict.fromkeys((*roles.list_all("score"), *roles.unknown)))
    if not measures:
        remedy = "add a column for each measure"
        raise InputError("no column of scores besides the gold standard and ids", file=table.path, remedy=remedy)
    for measure in choices.smaller:
        if measure not in measures:
            names_text = format_list(measures, limit=20) + suggest_name(measure, measures)
            raise InputError(f"no measure {measure!r}; measures: {names_text}", file=table.path)
    left_out = [c for c in table.columns if c not in {*gold_names, *id_names, *measures, *choices.ignore}]
    notes = [f"{table.path}: {format_list(left_out, limit=6)}: no measures, left out"] if left_out else []
    remedy = f"remove the candidate, or leave the column out with {spell('ignore')}"
    problem = f"no score, but every measure needs one; {remedy}"
    scores = np.array([table.get_complete_numbers(measure, problem) for measure in measures])
    gold, ids = _read_gold(table, gold_names[0], choices), _build_ids(table, id_names)
    try:
        smaller = frozenset(choices.smaller)
        candidates = Candidates(measures, gold, scores, smaller, ids, name, (*table.notes, *notes))
        candidates.check()
        if not choices.one_of_many:
            candidates.check_gold()
    except InputError as error:
        raise InputError(f"{error}", file=table.path) from None
    return candidates


def _check_names(table: FileTable, choices: CandidateColumns) -> None:
    """Raise if a column is missing or is requested twice."""
    others = (*choices.ids, *filter(None, [choices.gold_column]))
    for column in (*choices.measures, *others):
        table.get_column(column)
        if choices.measures.count(column) + (column in {*others, *choices.ignore}) > 1:
            raise InputError(f"column {column!r} is named twice", remedy="choose one role")


def _find_roles(table: FileTable, choices: CandidateColumns) -> Roles:
    """Return the roles of the columns of a table by their names; columns without a role must be measures."""
    chosen = Options(columns=choices.columns, ignore=(*choices.ignore, *choices.measures))
    roles = resolve_roles(table, chosen)
    texts = [name for name in roles.unknown if not table.is_numeric(name)]
    if texts and not choices.measures and "gold" in roles:
        ways = [" ".join(spell("ignore", name) for name in texts)]
        problem = f"no numbers in {format_list(list(map(repr, texts)))}, so these are no measures"
        raise build_roles_error(table, problem, ways)
    return roles


def _find_ucs_roles(table: FileTable, choices: CandidateColumns) -> Roles:
    """Return the roles of the columns of a data set of UCS."""
    gold = (choices.gold_column,) if choices.gold_column else _select_names(table, "b.")
    ids = choices.ids or tuple(name for name in ("l1", "l2") if name in table.columns)
    columns = {"gold": gold, "item": ids, "score": (*_select_names(table, "am."), *choices.smaller)}
    return Roles({role: names for role, names in columns.items() if names})


def _select_names(table: FileTable, start: str) -> tuple[str, ...]:
    return tuple(name for name in table.columns if name.startswith(start))


def _read_gold(table: FileTable, name: str, choices: CandidateColumns) -> NDArray[np.int8]:
    """Return the gold standard, with `UNKNOWN` for empty cells where they are allowed."""
    cells = list(table.columns[name])
    codes: dict[str, int] = {}
    for cell in dict.fromkeys(cells):
        if cell in MISSING and cell not in choices.positive and choices.partial:
            codes[cell] = UNKNOWN
        elif choices.positive and cell not in MISSING:
            codes[cell] = int(cell in choices.positive)
        elif cell.lower() in TRUTHS:
            codes[cell] = TRUTHS[cell.lower()]
        else:
            remedy = f"if the column holds labels, name those of true candidates with {spell('positive')}"
            if cell in MISSING:
                remedy = f"if only a random sample was judged, add {spell('partial')}"
            raise InputError(
                f"column {name!r}: found {cell[:40]!r}, expected 1 or 0, true or false",
                file=table.path,
                line=table.lines[cells.index(cell)],
                remedy=remedy,
            )
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
    columns_text = f"column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"
    first_lines: dict[str, int] = {}
    for line, item in zip(table.lines, ids, strict=True):
        if not item.strip():
            raise InputError(f"{columns_text} is empty, expected a candidate's id", file=table.path, line=line)
        if (first := first_lines.setdefault(item, line)) != line:
            raise InputError(
                f"id {' '.join(item.split())[:200]!r} ({columns_text}) is on line {first} already; ids must be unique",
                file=table.path,
                line=line,
                remedy=f"join further columns: {spell('columns', 'item=A+B')}",
            )
    return Texts.from_values(ids)


def read_ucs(path: Path) -> FileTable:
    """Read a UCS data set as a table; quotation marks are ordinary characters.

    Raises
    ------
    InputError
        A row is of another width than the names.
    """
    rows: list[Row] = []
    for number, raw in enumerate_lines(path):
        line = raw.rstrip("\r\n")
        if not rows and (line.startswith("#") or not line.strip()):
            continue
        cells = line.split("\t")
        if rows and len(cells) != len(rows[0][1]):
            raise build_width_error(path, number, len(cells) if line else 0, len(rows[0][1]))
        rows.append((number, cells))
    if not rows:
        raise InputError(
            "has only comments; expected a header with the names of columns, and one row per candidate", file=path
        )
    return build_table(path, rows)


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
    layout, settings = parse_format(choices.format)
    with use_options(settings):
        is_ucs = layout == "ucs" or file.name.endswith(UCS_ENDINGS) or read_head(file).startswith("##")
        is_ucs &= layout != "table"
        table = read_ucs(file) if is_ucs else read_table(file, choices.ignore)
        _check_names(table, choices)
        roles = _find_ucs_roles(table, choices) if is_ucs else _find_roles(table, choices)
        return build_candidates(table, roles, choices, name)
