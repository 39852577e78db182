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
from sigdask.formats.reading.options import Options, parse_format
from sigdask.formats.reading.tables import FileTable, build_table, read_table
from sigdask.formats.roles import Roles, check_roles, describe_columns, resolve_roles
from sigdask.interface import spell
from sigdask.io import as_path
from sigdask.text import format_list, suggest_name

TRUE = frozenset({"1", "true", "t", "yes", "y", "+", "tp", "1.0"})
FALSE = frozenset({"0", "false", "f", "no", "n", "-", "fp", "0.0"})

__all__ = ["CandidateColumns", "read"]

XML_START = re.compile(r"(?s)(?:\s|<\?[^>]*+>|(?><!--.*?-->)|(?><!DOCTYPE[^>\[]*+(?:>|\[.*?\]\s*+>)))*+<candidates\b")
UCS_ENDINGS = (".ds", ".ds.gz")

CANDIDATE = "candidate"
"""Name of the id column."""

ROLES = ("gold", "item")
"""Roles of columns that a user can name."""

OPTIONS = {"auto": ("sheet", "decimal"), "table": ("sheet", "decimal"), "ucs": (), "mwetoolkit": ()}
"""Formats and their options."""


@dataclass(frozen=True, slots=True)
class Conventions:
    """The column names that a format of candidates uses for ids, gold standard and measures, as patterns.

    Attributes
    ----------
    gold : tuple of str
        Columns of the gold standard.
    measures : tuple of str
        Columns of measures.
    ids : tuple of str
        Columns that together name a candidate.
    """

    gold: tuple[str, ...]
    measures: tuple[str, ...]
    ids: tuple[str, ...]

    def find_roles(self, table: FileTable, choices: CandidateColumns) -> Roles:
        """Return the roles of the columns by this format."""
        gold = (choices.gold_column,) if choices.gold_column else _select_names(self.gold, table)
        if len(gold) > 1:
            raise _build_gold_error(table, gold)
        measures = (*_select_names(self.measures, table), *choices.smaller)
        columns = {"gold": gold, "item": choices.ids or _select_names(self.ids, table), "score": measures}
        return Roles({role: names for role, names in columns.items() if names})


def _select_names(patterns: Sequence[str], table: FileTable) -> tuple[str, ...]:
    return tuple(name for name in table.columns if any(fnmatchcase(name, pattern) for pattern in patterns))


UCS_COLUMNS = Conventions(gold=("b.*",), measures=("am.*",), ids=("l1", "l2"))


@dataclass(frozen=True, slots=True)
class CandidateColumns:
    """The user's choices for a file of candidates: which columns to read, and how to interpret them.

    Attributes
    ----------
    columns : mapping of str to str
        Roles of columns: "gold" and "item", by default those with a usual name. {"item": "A+B"} joins columns that
        together name a candidate.
    format : str
        "table", "ucs", "mwetoolkit" or "auto". A table has options after the name: "table:sheet=NAME,decimal=,".
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


def build_candidates(
    table: FileTable, conventions: Conventions | None, choices: CandidateColumns, name: str
) -> Candidates:
    """Build candidates from a table.

    Raises
    ------
    InputError
        A column is missing, or a cell is invalid. The message names file and line.
    """
    _check_names(table, choices)
    roles = conventions.find_roles(table, choices) if conventions else _find_roles(table, choices)
    gold_name, id_names = roles.get("gold"), roles.list_all("item")
    if gold_name is None:
        raise _build_gold_error(
            table, [c for c in roles.unknown if {*map(str.lower, table.columns[c])} <= TRUE | FALSE]
        )
    measures = choices.measures or tuple(dict.fromkeys((*roles.list_all("score"), *roles.unknown)))
    if not measures:
        remedy = "add a column for each measure"
        raise InputError("no column of scores besides the gold standard and ids", file=table.path, remedy=remedy)
    for measure in choices.smaller:
        if measure not in measures:
            raise _build_missing_error(table.path, measure, "measure", measures)
    left_out = [c for c in table.columns if c not in {gold_name, *id_names, *measures, *choices.ignore}]
    notes = [f"{table.path}: {format_list(left_out, limit=6)}: no measures, left out"] if left_out else []
    remedy = f"remove the candidate, or leave the column out with {spell('ignore')}"
    scores = [
        table.get_complete_numbers(measure, f"no score, but every measure needs one; {remedy}") for measure in measures
    ]
    gold, ids = _read_gold(table, gold_name, choices), _build_ids(table, id_names)
    try:
        smaller = frozenset(choices.smaller)
        candidates = Candidates(measures, gold, np.array(scores), smaller, ids, name, (*table.notes, *notes))
        candidates.check()
        if not choices.one_of_many:
            candidates.check_gold()
    except InputError as error:
        raise InputError(f"{error}", file=table.path) from None
    return candidates


def _check_names(table: FileTable, choices: CandidateColumns) -> None:
    """Raise if a column is missing or is requested twice."""
    others = (*choices.ids, *([choices.gold_column] if choices.gold_column else []))
    for column in (*choices.measures, *others):
        if column not in table.columns:
            raise _build_missing_error(table.path, column, "column", list(table.columns))
        if choices.measures.count(column) > 1:
            raise InputError(f"measure {column!r} is named twice")
        if column in choices.measures and column in {*others, *choices.ignore}:
            raise InputError(f"column {column!r} is a measure and something else", remedy="choose one")


def _find_roles(table: FileTable, choices: CandidateColumns) -> Roles:
    """Return the roles of the columns of a table by their names; columns without a role must be measures."""
    chosen = Options(columns=choices.columns, ignore=(*choices.ignore, *choices.measures))
    roles = resolve_roles(table, chosen)
    texts = [name for name in roles.unknown if not table.is_numeric(name)]
    if texts and not choices.measures and "gold" in roles:
        ways = [" ".join(spell("ignore", name) for name in texts)]
        measures = [*roles.list_all("score"), *(name for name in roles.unknown if name not in texts)]
        ways += [" ".join(spell("measures", name) for name in measures)] if measures else []
        raise InputError(
            f"no numbers in {format_list(list(map(repr, texts)))}, so these are no measures",
            file=table.path,
            remedy=f"choose {', or '.join(ways)}.\n{describe_columns(table)}",
        )
    return roles


def _build_missing_error(path: object, column: str, noun: str, names: Sequence[str]) -> InputError:
    names_text = format_list(names, limit=20) + suggest_name(column, names)
    return InputError(f"no {noun} {column[:1000]!r}; {noun}s: {names_text}", file=path)


def _build_gold_error(table: FileTable, names: Sequence[str]) -> InputError:
    """Return the error for a table in which no column, or several, may say which candidates are true."""
    ways = [spell("columns", f"gold={name}") for name in names] or [spell("columns", "gold=COLUMN")]
    return InputError(
        f"{'several columns' if len(names) > 1 else 'no column'} of the gold standard, which says what is true",
        file=table.path,
        remedy=f"choose {', or '.join(ways)}.\n{describe_columns(table)}",
    )


def _read_gold(table: FileTable, name: str, choices: CandidateColumns) -> NDArray[np.int8]:
    """Return the gold standard, with `UNKNOWN` for empty cells where they are allowed."""
    cells = list(table.columns[name])
    codes: dict[str, int] = {}
    for cell in dict.fromkeys(cells):
        if cell in MISSING and cell not in choices.positive and choices.partial:
            codes[cell] = UNKNOWN
        elif choices.positive and cell not in MISSING:
            codes[cell] = int(cell in choices.positive)
        elif cell.lower() in TRUE | FALSE:
            codes[cell] = int(cell.lower() in TRUE)
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


def _detect_layout(file: Path) -> str:
    """Return whether a file is XML of mwetoolkit, a data set of UCS, or another table."""
    head = read_head(file)
    if XML_START.match(head):
        return "mwetoolkit"
    return "ucs" if file.name.endswith(UCS_ENDINGS) or head.startswith("##") else "table"


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
            return build_candidates(*read_mwetoolkit(file), choices, name)
        if layout == "ucs":
            return build_candidates(read_ucs(file), UCS_COLUMNS, choices, name)
        table = read_table(file, choices.ignore, settings.get("decimal"))
        return build_candidates(table, None, choices, name)
