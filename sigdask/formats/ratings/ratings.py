"""Ratings by people: rows of system, segment and score, or of MQM errors, by one or more raters.

The files of WMT are read as published: MQM averages, MQM errors, direct assessment, SQM and ESA. They are recognised by
the names of their columns (`RATING_COLUMNS`). Rows may be split by tabs, blanks or both, or be delimited text, JSON or
Parquet. Scores keep their sign: for MQM averages, 0 is best.

- Several ratings of one segment are averaged if a column names the raters.
- MQM errors become the negated sum of their weights for each rater: major 5, minor 1, 0.1 for minor punctuation, and 25
  for major non-translation (Freitag et al. 2021). `ratings:major=10,critical=25` sets weights.
- A grade of -1 by a model as judge (MT-bench) is missing. Quality controls and whole documents of Appraise are left
  out, and a note says how many.
- A segment that no system has a rating for is left out with a note. If only some systems lack it, `--missing` decides.
- Segments of different languages (lp, or src and tgt) are different segments.
- The document is a unit (`--unit doc`). Where segments are numbered within documents, it is also part of the id.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading import files, replicates
from sigdask.formats.reading.json_records import read_keys
from sigdask.formats.reading.options import Options, Source, list_row_systems
from sigdask.formats.reading.replicates import Cells, Key, add_value
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.roles import build_roles_error, name_role
from sigdask.interface import spell
from sigdask.metrics import is_lower_better
from sigdask.text import format_count

RATING_COLUMNS = {
    "system": ("system", "sys", "system_id", "system_name", "mt_system", "sys_id", "model", "model_id", "model_name"),
    "item": ("globalsegid", "seg_id", "segid", "segment_id", "segmentid", "seg", "segment", "sid", "docsegid", "itemid",
             "item_id", "item", "question_id", "id"),
    "score": ("z.scr", "score", "rating", "mqm_avg_score", "mqm_score", "mqm", "esa_score", "esa", "da_score", "da",
              "sqm_score", "sqm", "hter"),
    "rater": ("rater", "rater_id", "annotator", "annotator_id", "annotatorid", "judge", "judge_id", "user", "user_id",
              "username", "worker", "workerid", "worker_id", "evaluator", "login"),
    "doc": ("doc", "document", "doc_id", "docid", "document_id", "documentid"),
    "category": ("category",),
    "severity": ("severity",),
    "lp": ("lp", "langpair", "language_pair"),
    "src": ("input.src", "src_lang", "source_lang", "source_language", "sourcelanguage"),
    "tgt": ("input.trg", "tgt_lang", "target_lang", "target_language", "targetlanguage"),
    "testset": ("testset", "test_set"),
    "turn": ("turn",),
    "type": ("type", "item_type", "itemtype"),
    "whole": ("isdoc", "is_doc", "iscompletedocument", "is_complete_document"),
}  # fmt: skip
"""Names of columns by their role, compared without case. The first one present is used, except for scores."""

RATING_NAMES = frozenset({"z.scr", "mqm_avg_score", "mqm_score", "esa_score", "da_score", "sqm_score", "globalsegid"})
"""Names that only files of ratings have. Without one of them, a column of raters tells that rows are ratings."""

ID_SCOPES = ("lp", "src", "tgt", "testset", "turn")
"""Columns within which segments are numbered."""

WEIGHTS = {"major": "5", "minor": "1", "neutral": "0"}
SPECIAL_WEIGHTS = {("minor", "fluency/punctuation"): Decimal("0.1"), ("major", "non-translation"): Decimal(25)}
"""Weights of MQM errors by severity, and by severity and the start of the category."""

HARMLESS = frozenset({"no-error", "no error", "no_error", "noerror", "hotw-test", ""})
"""Severities that mean no error."""

RATED = {"type": {"TGT", "SYSTEM", "REPEAT"}, "whole": {"", "False", "false", "0"}}
"""Values of rows that are ratings of outputs, by role. Others are quality controls, and ratings of whole documents."""


def read_ratings(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read ratings (scores or MQM errors) by people, and return counts of the mean rating of each item."""
    weights = _read_weights(options)
    tables = _read_tables(sources, options)
    is_direct = options.missing is None and all(table.is_direct_assessment for table in tables)
    if is_direct:
        options = replace(options, missing="pairwise", few_in_common=True)
    document = [tables[0].names["doc"]] if "doc" in tables[0].names else []
    ratings = Ratings(options, _find_id_parts(tables), tuple(dict.fromkeys((*document, *options.groups))))
    scores = {table.names.get("score", "") for table in tables}
    if len(scores) == 1 and is_lower_better(name := next(iter(scores))):
        ratings.column = name
    for table in tables:
        if "score" in table.names:
            ratings.add_scores(table)
        else:  # rows are MQM errors
            ratings.add_errors(table, weights)
    notes = [note for table in tables for note in table.notes]
    return ratings.build_counts([*notes, *(ratings.describe_means() if is_direct else [])])


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the columns of the first file are those of ratings."""
    header = read_header(sources[0].path)
    roles = {role for role in RATING_COLUMNS if _list_columns(header, role)}
    if not {"system", "item"} <= roles or any("metric" in name_role(name) for name in header):
        return False  # format long keeps the scores of several metrics apart
    is_rated = "rater" in roles or not RATING_NAMES.isdisjoint(name.lower() for name in header)
    return {"category", "severity"} <= roles or ("score" in roles and is_rated)


def _list_columns(header: Iterable[str], role: str) -> list[str]:
    """Return the columns of a role, in the order of its names."""
    lowered = {re.sub(r"[ -]", "_", name.lower()): name for name in header}
    return [lowered[name] for name in RATING_COLUMNS[role] if name in lowered]


def read_header(path: Path) -> list[str]:
    """Return the names of a file's columns."""
    head = files.read_head(path)
    if head.is_arrow or head.is_json:
        return [name for name in read_keys(path) if "." not in name]
    line = next(iter(head.lines), "")
    return _split_header(line) if _is_loose(line) else files.parse_header(line)


def _is_loose(line: str) -> bool:
    """Return whether the header shows that rows are split by tabs or blanks, with quotes as part of the text."""
    return files.find_delimiter(line) in {"\t", None}


def _split_header(line: str) -> list[str]:
    header = [name.strip() for name in (line.split("\t") if "\t" in line else line.split())]
    while header and header[-1].startswith("#"):  # a remark, as Marot writes it
        header.pop()
    return header


def _read_columns(path: Path, options: Options) -> FileTable:
    """Read a file as a table. Rows whose header is split by blanks are split by tabs or blanks."""
    head = files.read_head(path)
    line = next(iter(head.lines), "")
    if head.is_arrow or head.is_json or not _is_loose(line):
        return read_table(path, options.ignore)
    header = _split_header(line)
    files.check_filled(path, header)
    files.check_header(path, header)
    with files.open_text(path) as text:
        next(text)
        rows = [*files.check_widths(path, _iter_loose_rows(text, len(header), by_tabs="\t" in line), len(header))]
    if not rows:
        raise InputError("has a header and no rows, expected one row per rating", file=path)
    columns = zip(*([cell.strip() for cell in cells] for _, cells in rows), strict=True)
    return FileTable(path, dict(zip(header, map(list, columns), strict=True)), [line for line, _ in rows])


def _iter_loose_rows(lines: Iterable[str], width: int, *, by_tabs: bool) -> Iterator[files.Row]:
    for number, line in enumerate(lines, start=2):
        cells = line.rstrip("\r\n").split("\t") if line.strip() else []
        yield number, cells if by_tabs or len(cells) == width else line.split()


@dataclass(frozen=True, slots=True)
class RatingTable:
    """The columns that are read from a rating file, by their role (system, item, score, ...)."""

    path: Path
    table: FileTable
    names: Mapping[str, str]
    systems: Sequence[str] = ()
    notes: Sequence[str] = ()
    is_direct_assessment: bool = False

    def get_cells(self, role: str) -> Sequence[str]:
        """Return a column by its role, or empty cells if there is no such column."""
        return self.table.columns[self.names[role]] if role in self.names else [""] * self.table.n_rows


@dataclass(slots=True)
class Ratings:
    """The ratings of all files, by system and item."""

    options: Options
    parts: Sequence[str]
    groups: tuple[str, ...]
    cells: Cells = field(default_factory=dict)
    items: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lines: dict[tuple[str, str, str], tuple[Path, int]] = field(default_factory=dict)
    column: str = ""

    def add_scores(self, table: RatingTable) -> None:
        """Add rows of scores; a row without a score still adds its item."""
        values = table.table.get_numbers(table.names["score"]).tolist()
        raters = table.get_cells("rater")
        for (line, system, item), value, rater in zip(self._iter_rows(table), values, raters, strict=True):
            self.cells.setdefault(system, {})
            if math.isnan(value):
                continue
            if "raters" not in self.options.own and not table.is_direct_assessment:  # which repeats outputs on purpose
                self._check_once(table.path, line, system, item, rater)
            add_value(self.cells, system, item, value + 0.0)  # -0.0 is 0

    def add_errors(self, table: RatingTable, weights: Mapping[str, Decimal]) -> None:
        """Add rows of MQM errors; a rater's score of an item is minus the sum of the weights of its errors."""
        penalties: dict[tuple[str, str, str], Decimal] = {}
        columns = [table.get_cells(role) for role in ("rater", "category", "severity")]
        for (line, system, item), rater, category, severity in zip(self._iter_rows(table), *columns, strict=True):
            weight = _find_weight(category.lower(), severity.lower(), weights)
            if weight is None:
                problem = f"severity {severity!r} has no weight, expected one of {', '.join(weights)}"
                remedy = f"name it so, or add the weight of critical errors: {spell('format', 'ratings:critical=10')}"
                raise InputError(problem, file=table.path, line=line, remedy=remedy)
            key = (system, item, rater)
            penalties[key] = penalties.get(key, Decimal(0)) + weight
        for (system, item, _), penalty in penalties.items():
            add_value(self.cells, system, item, float(-penalty) + 0.0)

    def build_counts(self, notes: Iterable[str]) -> Counts:
        """Return the counts of all items that at least one system has a rating for."""
        rated: set[Key] = set().union(*self.cells.values())
        items: dict[Key, str] = {item: item for item in self.items if item in rated}
        if not items:
            raise InputError(f"none of {format_count(len(self.items), 'item')} has a rating")
        notes = [*notes]
        if n_unrated := len(self.items) - len(items):
            notes.append(f"{n_unrated:,} of {len(self.items):,} items are unrated in all systems and left out")
        n_ratings, n_repeated = replicates.count_repeated(self.cells)
        if n_ratings:
            note = f"{n_ratings:,} ratings of {format_count(n_repeated, 'output')} rated more than once are averaged"
            notes.append(ScopeNote(note))
        groups = {name: [self.items[item][k] for item in items.values()] for k, name in enumerate(self.groups)}
        scores, systems = {self.column: self.cells}, [*self.cells]
        return replicates.build_averaged_counts(
            scores, systems, items, groups=groups, options=self.options, warnings=notes
        )

    def describe_means(self) -> list[str]:
        """Return a note with each system's mean over all of its own segments, where systems have different ones."""
        if len({frozenset(values) for values in self.cells.values()}) == 1:
            return []
        means = {
            system: float(np.mean([np.mean(ratings) for ratings in values.values()]))
            for system, values in self.cells.items()
            if values
        }
        listed = ", ".join(f"{system} {means[system]:.4f}" for system in sorted(means, key=means.__getitem__)[::-1])
        scope = f"each pair is compared on the segments of both ({spell('missing', 'pairwise')})"
        return [f"systems have different segments: {scope}. Means over all segments of each system: {listed}"]

    def _iter_rows(self, table: RatingTable) -> Iterator[tuple[int, str, str]]:
        """Yield the line, system and item of each row, whose groups are those of all rows of the item."""
        columns = [[*table.table.get_column(name)] for name in self.groups]
        parts = zip(*map(table.get_cells, self.parts), strict=True)
        for row, (line, system, cells) in enumerate(zip(table.table.lines, table.systems, parts, strict=True)):
            item, group = ":".join(cells), tuple(column[row] for column in columns)
            if not system or not cells[-1]:
                column = table.names["item"] if system else table.names["system"]
                raise InputError(f"column {column!r} is empty, expected a name", file=table.path, line=line)
            if self.items.setdefault(item, group) != group:
                problem = f"item {item!r} is in {group}, but in {self.items[item]} elsewhere"
                remedy = "give the item the same group everywhere"
                raise InputError(problem, file=table.path, line=line, remedy=remedy)
            yield line, system, item

    def _check_once(self, path: Path, line: int, system: str, item: str, rater: str) -> None:
        first_place = self.lines.setdefault((system, item, rater), (path, line))
        if first_place != (path, line):
            by, first = f"by {rater!r} " * bool(rater), f"on line {first_place[1]} of {first_place[0]}"
            problem = f"system {system!r}, item {item!r} has a rating {by}already, {first}"
            remedy = f"{spell('format', 'ratings:raters=mean')} averages several ratings, as of raters or runs"
            raise InputError(problem, file=path, line=line, remedy=remedy)


def _read_weights(options: Options) -> dict[str, Decimal]:
    texts = {**WEIGHTS, **{name: text for name, text in options.own.items() if name in {*WEIGHTS, "critical"}}}
    for name, text in texts.items():
        if not re.fullmatch(r"\d+(\.\d+)?", text):
            raise InputError(f"format ratings: {name} = {text!r} is not a number of 0 or more")
    return {name: Decimal(text) for name, text in texts.items()}


def _find_weight(category: str, severity: str, weights: Mapping[str, Decimal]) -> Decimal | None:
    """Return the weight of an error, or None for an unknown severity."""
    if severity in HARMLESS or category in HARMLESS - {""}:
        return Decimal(0)
    for (own, start), weight in SPECIAL_WEIGHTS.items():
        if severity == own and category.startswith(start):
            return weight
    return weights.get(severity)


def _read_tables(sources: Sequence[Source], options: Options) -> list[RatingTable]:
    """Read rating files, with the roles of their columns, and without rows that are no ratings of outputs."""
    tables = []
    path_by_system: dict[str, Path] = {}
    for source in sources:
        table = _read_columns(source.path, options)
        roles = _find_roles(table, options, has_system=len(sources) > 1)
        is_direct = "z.scr" in map(str.lower, table.columns) or "SYSTEM" in table.columns.get(roles.get("type", ""), ())
        notes = []
        if "score" not in options.columns and roles.get("score", "").lower() == "z.scr":
            choice = spell("columns", "score=RAW.SCR")
            notes.append(ScopeNote(f"{table.path}: {roles['score']!r} is compared ({choice} compares raw scores)"))
        table, left_out = _select_ratings(table, roles)
        names = table.columns[roles["system"]] if "system" in roles else [source.system] * table.n_rows
        known = {} if "raters" in options.own else path_by_system  # else ratings of both files would be averaged
        systems = list_row_systems(source, names, known, is_only_file=len(sources) == 1)
        tables.append(RatingTable(source.path, table, roles, systems, [*notes, *left_out, *table.notes], is_direct))
    return tables


def _find_roles(table: FileTable, options: Options, *, has_system: bool) -> dict[str, str]:
    """Return the column of each role; raise if the system, item or score is missing, or if several are the score."""
    found = {role: columns for role in RATING_COLUMNS if (columns := _list_columns(table.columns, role))}
    if "type" in found:  # in Appraise's files src and tgt are languages; elsewhere they are texts
        found |= {name: [name] for name in ("src", "tgt") if name in table.columns}
    for role in ("system", "item", "score"):
        if (column := options.columns.get(role)) is not None:
            table.get_column(column)  # raises if there is none
            found[role] = [column]
    scores = found.get("score", [])
    if len(scores) > 1 and scores[0].lower() != "z.scr":
        ways = [spell("columns", f"score={name}") for name in scores]
        raise build_roles_error(table, f"which column is the score, {' or '.join(scores)}?", ways)
    optional = {"item": False, "system": has_system, "score": {"category", "severity"} <= found.keys()}
    for role, is_optional in optional.items():
        if role not in found and not is_optional:
            raise build_roles_error(table, f"no {role} column", [spell("columns", f"{role}=COLUMN")])
    return {role: columns[0] for role, columns in found.items()}


def _select_ratings(table: FileTable, roles: Mapping[str, str]) -> tuple[FileTable, list[str]]:
    """Return the table without failed grades, quality controls and ratings of whole documents, and notes on these."""
    notes = []
    names = {name.lower() for name in table.columns}
    if {"judge", "turn"} <= names and "score" in roles:  # of MT-bench
        cells = table.columns[roles["score"]]
        grades = ["" if cell in {"-1", "-1.0"} else cell for cell in cells]
        if n_bad := grades.count("") - [*cells].count(""):
            table = replace(table, columns={**table.arrays, roles["score"]: grades})
            notes.append(f"{table.path}: {format_count(n_bad, 'grade')} of -1 (the judge gave none) taken as missing")
    for role in (role for role in RATED if role in roles):
        is_rated = np.array([cell in RATED[role] for cell in table.columns[roles[role]]], np.bool_)
        if role == "type" and not is_rated.any():
            continue  # a column of another kind
        others = sorted({cell for cell, is_in in zip(table.columns[roles[role]], is_rated, strict=True) if not is_in})
        if others:
            reason = f"({roles[role]} is {', '.join(others)})"
            notes.append(f"{table.path}: {format_count(int((~is_rated).sum()), 'row')} left out {reason}")
            table = table.select_rows(is_rated)
    return table, notes


def _find_id_parts(tables: Sequence[RatingTable]) -> tuple[str, ...]:
    """Return the roles whose cells form an item's id: the segment, and the document or other scope of its number."""
    parts = tuple(part for part in ID_SCOPES if len({*_iter_parts(tables, part)}) > 1)
    documents: dict[tuple[str, ...], str] = {}
    for *item, doc in _iter_parts(tables, *parts, "item", "doc"):
        if documents.setdefault(tuple(item), doc) != doc:
            return (*parts, "doc", "item")
    return (*parts, "item")


def _iter_parts(tables: Sequence[RatingTable], *parts: str) -> Iterator[tuple[str, ...]]:
    for table in tables:
        yield from zip(*map(table.get_cells, parts), strict=True)
