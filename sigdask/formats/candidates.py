"""Readers for lists of candidates with the scores of several measures: tables, UCS data sets and XML of mwetoolkit.

Each file is first read as a table of text with columns of ids, of the gold standard and of the measures. Candidates are
then built from the table.

- UCS (`.ds`): comments, then a tab-separated table with scores in `am.*` and annotations in `b.*`.
- mwetoolkit (`mwetoolkit-candidates.dtd`): candidates with measures and gold-standard classes. The document type is
  never fetched, and a file that declares entities is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.candidates import UNKNOWN, Candidates
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.formats.reading.columns import MISSING
from sigdask.formats.reading.converted import choose_sheet
from sigdask.formats.reading.files import Row, build_width_error, enumerate_lines, open_bytes
from sigdask.formats.reading.json_records import read_head
from sigdask.formats.reading.options import parse_format
from sigdask.formats.reading.tables import FileTable, build_table, read_table
from sigdask.formats.roles import check_roles
from sigdask.formats.tables.notation import convert_decimal_commas
from sigdask.interface import spell
from sigdask.io import as_path
from sigdask.text import format_list, suggest_name

TRUE = frozenset({"1", "true", "t", "yes", "y", "+", "tp", "1.0"})
FALSE = frozenset({"0", "false", "f", "no", "n", "-", "fp", "0.0"})


ROLES = ("gold", "item")
"""Roles of columns that a user can name."""


@dataclass(frozen=True, slots=True)
class Conventions:
    """The column names that a format of candidates uses for ids, gold standard and measures.

    Attributes
    ----------
    gold : tuple of str
        Columns of the gold standard, by name or pattern (`b.*`).
    measures : tuple of str
        Columns of measures. If there is none, every other column of numbers is one.
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
    columns : mapping of str to str
        Roles of columns: "gold", by default `gold`, or the only column that the format names so; and "item", by default
        one with a usual name. {"item": "A+B"} joins columns that together name a candidate.
    format : str
        "table", "ucs", "mwetoolkit" or "auto". A table has options after the name: "table:sheet=NAME,decimal=,".
    measures : tuple of str
        Empty takes every column of numbers.
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
        allowed = {"auto": ("sheet", "decimal"), "table": ("sheet", "decimal"), "ucs": (), "mwetoolkit": ()}
        if name not in allowed:
            raise InputError(f"unknown format {name!r}{suggest_name(name, allowed)}; formats: {', '.join(allowed)}")
        if wrong := [key for key in settings if key not in allowed[name]]:
            raise InputError(f"format {name}: no option {wrong[0]!r}; it has: {', '.join(allowed[name]) or 'none'}")


def build_candidates(table: FileTable, choices: CandidateColumns, name: str, usual: Conventions) -> Candidates:
    """Build candidates from a table.

    Raises
    ------
    InputError
        A column is missing, or a cell is invalid. The message names file and line.
    """
    _check_names(table, choices)
    gold_name = choices.gold_column or _find_gold_name(table, usual)
    gold = _read_gold(table, gold_name, choices)
    id_names = choices.ids or (usual.ids if {*usual.ids} <= {*table.columns} else ())
    if not id_names and (id_name := table.find_column(("id", "candidate", "cand", "item", "candid"))) is not None:
        id_names = (id_name,)
    ids = _build_ids(table, id_names)
    excluded = {gold_name, *id_names, *choices.ignore}
    others = [column for column in table.list_other_columns(*excluded) if column not in excluded]
    texts = {column: Texts.from_values(table.columns[column]) for column in others if not table.is_numeric(column)}
    table = convert_decimal_commas(table, texts, parse_format(choices.format)[1].get("decimal"))
    names, left_out = _select_measures(table, choices, usual, others)
    for measure in choices.smaller:
        if measure not in names:
            raise _missing_column_error(table.path, measure, "measure", names)
    text = (
        "no score, but every measure must score every candidate; remove the candidate, or leave the column out "
        f"with {spell('ignore')}"
    )
    scores = [table.get_complete_numbers(measure, text) for measure in names]
    notes = [*table.notes]
    if left_out:
        notes.append(
            f"{table.path}: {format_list(left_out, limit=6)}: no measures, left out (choose with {spell('measures')})"
        )
    try:
        candidates = Candidates(
            tuple(names), gold, np.array(scores), frozenset(choices.smaller), ids, name, tuple(notes)
        )
        candidates.check()
        if not choices.one_of_many:
            candidates.check_gold()
    except InputError as error:
        raise InputError(f"{error}", file=table.path) from None
    return candidates


def _check_names(table: FileTable, choices: CandidateColumns) -> None:
    """Raise if a column is missing or is requested twice."""
    for measure in choices.measures:
        if choices.measures.count(measure) > 1:
            raise InputError(f"measure {measure!r} is named twice")
    for column in (*choices.measures, *choices.ids, *([choices.gold_column] if choices.gold_column else [])):
        if column not in table.columns:
            raise _missing_column_error(table.path, column, "column", list(table.columns))
    conflicts = {*choices.measures} & {choices.gold_column, *choices.ids, *choices.ignore}
    if conflicts:
        raise InputError(f"column {min(map(str, conflicts))!r} is a measure and something else", remedy="choose one")


def _missing_column_error(path: object, column: str, noun: str, names: Sequence[str]) -> InputError:
    names_text = format_list(names, limit=20) + suggest_name(column, names)
    return InputError(f"no {noun} {column[:1000]!r}; {noun}s: {names_text}", file=path)


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
        "no column 'gold' that says which candidates are true",
        file=table.path,
        remedy=f"name it with {spell('columns', 'gold=COLUMN')}{hint}",
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
        where = f"{table.path}, line {table.lines[cells.index(cell)]}, column {name!r}: found {cell[:40]!r}"
        if cell in MISSING and cell not in choices.positive:
            if not choices.partial:
                remedy = f"if only a random sample was judged, add {spell('partial')}"
                raise InputError(f"{where}, expected 1 or 0, true or false; {remedy}")
            codes[cell] = UNKNOWN
        elif choices.positive:
            codes[cell] = int(cell in choices.positive)
        elif cell.lower() in TRUE | FALSE:
            codes[cell] = int(cell.lower() in TRUE)
        else:
            remedy = f"if the column holds labels, name those of true candidates with {spell('positive')}"
            raise InputError(f"{where}, expected 1 or 0, true or false; {remedy}")
    for label in choices.positive:
        if label not in codes:
            raise InputError(
                f"{table.path}, column {name!r}: no label {label!r}; labels: {format_list(sorted(codes), limit=10)}"
            )
    return np.array([codes[cell] for cell in cells], np.int8)


def _build_ids(table: FileTable, names: Sequence[str]) -> Texts | None:
    """Return unique ids, joined from several columns if there are several."""
    if not names:
        return None
    cells = [table.columns[name] for name in names]
    ids = list(cells[0]) if len(cells) == 1 else ["\t".join(parts) for parts in zip(*cells, strict=True)]
    columns_text = f"column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"
    first_lines: dict[str, int] = {}
    for line, item in zip(table.lines, ids, strict=True):
        shown = " ".join(item.split("\t"))
        if not shown.strip():
            raise InputError(f"{columns_text} is empty, expected a candidate's id", file=table.path, line=line)
        if item in first_lines:
            raise InputError(
                f"id {shown[:200]!r} ({columns_text}) is on line {first_lines[item]} already; ids must be unique, "
                f"join further columns: {spell('columns', 'item=A+B')}",
                file=table.path,
                line=line,
            )
        first_lines[item] = line
    return Texts.from_values(ids)


def _select_measures(
    table: FileTable, choices: CandidateColumns, usual: Conventions, other_columns: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the columns of measures, and the columns left over (none if the user names the measures)."""
    if choices.measures:
        return list(choices.measures), []
    conventional = usual.select_names(usual.measures, other_columns)
    numeric = filter(table.is_numeric, other_columns)
    measures = conventional or [column for column in numeric if not _are_truth_values(table.columns[column])]
    measures += [column for column in choices.smaller if column in other_columns and column not in measures]
    if not measures:
        raise InputError(
            "no column of scores besides the gold standard and ids",
            file=table.path,
            remedy="add a column for each measure",
        )
    return measures, [column for column in other_columns if column not in measures]


XML_START = re.compile(r"(?s)(?:\s|<\?[^>]*+>|(?><!--.*?-->)|(?><!DOCTYPE[^>\[]*+(?:>|\[.*?\]\s*+>)))*+<candidates\b")

CANDIDATE = "candidate"
"""Name of the id column."""


def read_mwetoolkit(path: Path) -> tuple[FileTable, Conventions]:
    """Read candidates as rows, each with the line it begins on, and a column per feature and class.

    Returns
    -------
    FileTable
    Conventions
        Columns that are classes, and features declared as real numbers.

    Raises
    ------
    InputError
        The file is not XML, declares entities, or contains duplicates.
    """
    reader = _CandidateParser(path)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = reader.start_element, reader.end_element
    parser.EntityDeclHandler = parser.SkippedEntityHandler = parser.ExternalEntityRefHandler = reader.refuse_entity
    reader.parser = parser
    try:
        with open_bytes(path) as stream:
            parser.ParseFile(stream)
    except expat.ExpatError as error:
        raise InputError(f"invalid XML ({expat.errors.messages[error.code]})", file=path, line=error.lineno) from None
    except (LookupError, ValueError) as error:
        raise InputError(f"invalid XML ({error})", file=path) from None
    if not reader.lines:
        raise InputError("no candidate; expected an element <cand> for each", file=path)
    names = list(dict.fromkeys([CANDIDATE, *reader.features, *reader.classes]))
    columns = {name: [cells.get(name, "") for cells in reader.rows] for name in names}
    real = tuple(name for name in reader.features if reader.types.get(name) == "real")
    return FileTable(path, columns, reader.lines), Conventions(
        gold=tuple(reader.classes), measures=real or tuple(reader.features), ids=(CANDIDATE,)
    )


@dataclass(slots=True)
class _CandidateParser:
    """Collects candidates during parsing.

    Attributes
    ----------
    path : Path
    rows : list of dict
        Id, features and classes of each candidate.
    lines : list of int
        First line of each candidate.
    features, classes, types : dict
        Names in the order in which they are met, and the declared types of features.
    """

    path: Path
    parser: Any = None
    rows: list[dict[str, str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    features: dict[str, None] = field(default_factory=dict)
    classes: dict[str, None] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    _words: list[str] = field(default_factory=list)

    def start_element(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Record the attributes of a start tag."""
        inside = self._open[-1] if self._open else ""
        self._open.append(tag)
        if tag == "metafeat":
            self.types[attributes.get("name", "")] = attributes.get("type", "")
        elif tag == "cand":
            self.rows.append({CANDIDATE: attributes.get("candid", "")})
            self.lines.append(self.parser.CurrentLineNumber)
            self._words = []
        elif tag == "w" and self._open[-3:-1] == ["cand", "ngram"]:
            self._words.append(attributes.get("lemma") or attributes.get("surface") or attributes.get("pos", ""))
        elif tag == "feat" and inside == "features":
            self._add_value(attributes, tag, self.features)
        elif tag == "tpclass" and inside == "cand":
            self._add_value(attributes, tag, self.classes)

    def end_element(self, tag: str) -> None:
        """Handle an end tag; a candidate without an id gets its words as its id."""
        self._open.pop()
        if tag == "cand" and not self.rows[-1][CANDIDATE]:
            self.rows[-1][CANDIDATE] = " ".join(self._words)

    def _add_value(self, attributes: Mapping[str, str], tag: str, names: dict[str, None]) -> None:
        name = attributes.get("name", "")
        if not name or "value" not in attributes:
            raise InputError(f"{self._location}: <{tag}> without {'a value' if name else 'a name'}")
        if name in self.rows[-1]:
            raise InputError(f"{self._location}: {tag} {name!r} occurs twice in one candidate")
        names[name] = None
        self.rows[-1][name] = attributes["value"].strip()

    @property
    def _location(self) -> str:
        return f"{self.path}, line {self.parser.CurrentLineNumber}"

    def refuse_entity(self, *_: Any) -> int:
        """Raise an error for an XML entity or a reference to an external file."""
        raise InputError(
            f"{self._location}: XML entities and external files are not read", remedy="write their text into the file"
        )


ENDINGS = (".ds", ".ds.gz")

CONVENTIONS = Conventions(gold=("b.*",), measures=("am.*",), ids=("l1", "l2"))


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


__all__ = ["CandidateColumns", "read"]


def _detect_layout(file: Path) -> str:
    """Return whether a file is XML of mwetoolkit, a data set of UCS, or another table."""
    head = read_head(file)
    if XML_START.match(head):
        return "mwetoolkit"
    return "ucs" if file.name.endswith(ENDINGS) or head.startswith("##") else "table"


def read(path: str | Path, columns: CandidateColumns | None = None, *, name: str = "") -> Candidates:
    """Read the candidates of one file; whether it is a table, a UCS data set or mwetoolkit XML is detected.

    Parameters
    ----------
    path : str or Path
        TSV, CSV, JSON or Parquet; a data set of UCS (.ds); XML of mwetoolkit; gzipped or not.
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
    with choose_sheet(settings.get("sheet")):
        if layout == "auto":
            layout = _detect_layout(file)
        if layout == "mwetoolkit":
            table, conventions = read_mwetoolkit(file)
        elif layout == "ucs":
            table, conventions = read_ucs(file), CONVENTIONS
        else:
            table, conventions = read_table(file, choices.ignore, settings.get("decimal")), Conventions()
        return build_candidates(table, choices, name, conventions)
