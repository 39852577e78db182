"""Ratings by people: rows of system, segment and score, or of MQM errors, by one or more raters.

Takes the files of WMT as they are: MQM averages (header by blanks, rows by tab or blanks, `None` for
a segment that was not rated), MQM errors (rater, category, severity), and direct assessment, SQM and
ESA exports (rater, score), with their columns in any order and others among them; and
mt-metrics-eval's rows of system and score alone. Scores are kept with their sign: of MQM averages,
0 is best.

- Several ratings of one segment are averaged (`ratings:raters=error` refuses them).
- MQM errors become the negated sum of their weights for each rater: major 5, minor 1, 0.1 for minor
  punctuation, 25 for major non-translation (Freitag et al. 2021); `ratings:major=10,critical=25`
  sets weights.
- Grades of a model as judge (MT-bench) that are -1 are missing; controls of quality and whole
  documents among the rows of Appraise are left out; a note says how many.
- A segment that no system has a rating of is left out, with a note; one that some systems lack is
  `--missing`'s to decide.
- Segments of other languages (lp; src and tgt) are other segments.
- The document is a column to exchange by (`--unit doc`), and part of the id where segments are
  numbered within documents.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path

from sigdask.counts import Counts
from sigdask.counts.item_texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.ratings.rows import (
    are_languages,
    check_once,
    check_one_file,
    detect_kind,
    is_bare,
    is_split_by_blanks,
    missing_column_error,
    read_columns,
    read_header,
    read_start,
    select_ratings,
)
from sigdask.formats.reading.averages import Cells, Key, ScoreColumn, add_value, build_averaged_counts, count_repeated
from sigdask.formats.reading.averages_only import is_metric_name
from sigdask.formats.reading.numbers import MISSING, is_number
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.summaries import find_summary_keys
from sigdask.formats.reading.tables import ID_NAMES, SCORE_NAMES, SYSTEM_NAMES, FileTable
from sigdask.formats.tables.labels import GOLD_NAMES
from sigdask.formats.tables.score_notation import convert_scores
from sigdask.metrics import is_lower_better
from sigdask.text import format_count

COLUMN_NAMES = {
    "system": (*SYSTEM_NAMES, "mt_system"),
    "item": ("globalsegid", "global_seg_id", "seg_id", "segid", "segment_id", "segmentid", "seg", "sid", "docsegid",
             "itemid", *ID_NAMES, "question_id"),
    "score": SCORE_NAMES,
    "rater": ("rater", "rater_id", "annotator", "annotator_id", "annotatorid", "judge", "judge_id", "judgeid", "user",
              "user_id", "userid", "username", "worker", "workerid", "worker_id", "evaluator", "login"),
    "doc": ("doc", "document", "doc_id", "docid", "document_id", "documentid"),
    "category": ("category",),
    "severity": ("severity",),
    "lp": ("lp", "langpair", "language_pair"),
    "src": ("src", "src_lang", "source_lang", "source_language", "sourcelanguage"),
    "tgt": ("tgt", "tgt_lang", "target_lang", "target_language", "targetlanguage"),
    "testset": ("testset", "test_set"),
    "turn": ("turn",),
    "type": ("type", "item_type", "itemtype"),
    "whole": ("isdoc", "is_doc", "iscompletedocument", "is_complete_document"),
}  # fmt: skip
"""What a column is for, and its conventional names, the first found."""

ID_SCOPES = ("lp", "src", "tgt", "testset", "turn")
"""What segments are numbered within."""

WEIGHTS = {"major": "5", "minor": "1", "neutral": "0", "punctuation": "0.1", "nontranslation": "25", "critical": ""}
"""Weights of MQM errors; "" has no default."""

HARMLESS = frozenset({"no-error", "no error", "no_error", "noerror", "hotw-test", ""})
"""Severities that stand for no error."""

RATERS = ("mean", "error")
SHOWN = 4


def read_ratings(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read ratings (scores or MQM errors) by people, and return counts of the mean rating of each item."""
    options.check_format_options("ratings", raters=RATERS, **dict.fromkeys(WEIGHTS, ()))
    if gold is not None:
        raise InputError(f"--gold {gold}: format ratings holds scores and takes no gold file")
    weights = _read_weights(options)
    tables = [_read_table(source, options, len(sources)) for source in sources]
    ratings = Ratings(options, _find_id_parts(tables))
    scores = {table.names.get("score", "") for table in tables}
    if len(scores) == 1 and is_lower_better(name := next(iter(scores))):
        ratings.column = name
    homes: dict[tuple[str, ...], Path] = {}
    for table in tables:
        scope_columns = (table.get_cells(part) for part in ratings.parts if part in ID_SCOPES)
        if options.own.get("raters") != "mean":
            check_one_file(table.path, zip(table.get_systems(), *scope_columns, strict=True), homes)
        if table.has_error_rows:
            ratings.add_errors(table, weights)
        else:
            ratings.add_scores(table)
    return ratings.build_counts([note for table in tables for note in table.notes])


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Return whether the first file holds ratings that format long cannot read, as of MQM or several raters."""
    if gold is not None:
        return False
    try:
        header = read_header(sources[0].path)
        roles = _find_roles(header, options)
        if "system" not in roles or "item" not in roles:
            return False
        if "score" not in roles and any(map(is_metric_name, header)):
            rows = read_start(sources[0].path)[1:]
            roles = _find_roles(header, options, rows)
            if "score" not in roles and "rater" in roles and _find_metrics(header, rows, roles):
                return True  # whose reader asks for the score
    except InputError:
        return False
    if ("severity" in roles and "category" in roles) or (
        detect_kind(sources[0].path) == "loose" and is_bare(sources[0].path)
    ):
        return True
    lowered = {name.lower() for name in header}
    is_long = bool(lowered & {*SCORE_NAMES}) and bool(lowered & {*SYSTEM_NAMES}) and bool(lowered & {*ID_NAMES})
    return "score" in roles and ("rater" in roles or not is_long or is_split_by_blanks(sources[0].path))


@dataclass(frozen=True, slots=True)
class RatingTable:
    """The columns that are read from a rating file, by their role (system, item, score, ...)."""

    path: Path
    table: FileTable
    names: Mapping[str, str]
    system: str | None = None
    notes: Sequence[str] = ()

    @property
    def has_error_rows(self) -> bool:
        """Whether each row is an MQM error rather than a score."""
        return "score" not in self.names

    def get_cells(self, role: str, default: str = "") -> Sequence[str]:
        """Return a column by its role, or the default in every row if there is no such column."""
        if role not in self.names:
            return [default] * self.table.n_rows
        return self.table.columns[self.names[role]]

    def get_systems(self) -> Sequence[str]:
        """Return the system of each row."""
        return self.get_cells("system", self.system or "")

    def iter_rows(self, parts: Sequence[str]) -> Iterator[tuple[int, str, str]]:
        """Yield the line number, system and item id of each row; an id is joined from the cells of `parts`."""
        columns = [self.get_cells(part) for part in parts]
        for line, system, *id_cells in zip(self.table.lines, self.get_systems(), *columns, strict=True):
            if not system or not id_cells[-1]:
                column = self.names.get("item", "item") if system else self.names.get("system", "system")
                raise InputError(f"{self.path}, line {line}: column {column!r} is empty, expected a name")
            yield line, system, ":".join(id_cells)


@dataclass(slots=True)
class Ratings:
    """The ratings of all files, by system and item."""

    options: Options
    parts: Sequence[str]
    cells: Cells = field(default_factory=dict)
    items: dict[str, tuple[str, ...]] = field(default_factory=dict)
    groups: tuple[str, ...] | None = None
    lines: dict[tuple[str, str], tuple[Path, int]] = field(default_factory=dict)
    column: str = ""

    def add_scores(self, table: RatingTable) -> None:
        """Add rows of scores; a row without a score still adds its item."""
        values = table.table.get_numbers(table.names["score"]).tolist()
        check = (
            None if "rater" in table.names and self.options.own.get("raters", "mean") == "mean" else self._check_once
        )
        check = None if self.options.own.get("raters") == "mean" else check
        for (line, system, item), group, value in zip(
            table.iter_rows(self.parts), self._read_groups(table), values, strict=True
        ):
            self._add_item(table.path, line, item, group)
            self.cells.setdefault(system, {})
            if math.isnan(value):
                continue
            if check is not None:
                check(table.path, line, system, item)
            add_value(self.cells, system, item, value + 0.0)  # -0.0 is 0

    def add_errors(self, table: RatingTable, weights: Mapping[str, Decimal]) -> None:
        """Add rows of MQM errors; a rater's score of an item is minus the sum of the weights of its errors."""
        penalties: dict[tuple[str, str, str], Decimal] = {}
        kind_weights: dict[tuple[str, str], Decimal] = {}
        for (line, system, item), group, rater, *kind in zip(
            table.iter_rows(self.parts),
            self._read_groups(table),
            table.get_cells("rater"),
            table.get_cells("category"),
            table.get_cells("severity"),
            strict=True,
        ):
            self._add_item(table.path, line, item, group)
            category, severity = kind
            if (category, severity) not in kind_weights:
                kind_weights[category, severity] = _compute_weight(
                    category, severity, weights, f"{table.path}, line {line}"
                )
            key = (system, item, rater)
            if key not in penalties and self.options.own.get("raters") == "error":
                self._check_once(table.path, line, system, item)
            penalties[key] = penalties.get(key, Decimal(0)) + kind_weights[category, severity]
        for (system, item, _), penalty in penalties.items():
            add_value(self.cells, system, item, float(-penalty) + 0.0)

    def build_counts(self, notes: Iterable[str] = ()) -> Counts:
        """Return the counts of all items that at least one system has a rating for."""
        rated: set[Key] = set().union(*self.cells.values())
        items: dict[Key, str] = {item: item for item in self.items if item in rated}
        if not items:
            raise InputError(f"none of {format_count(len(self.items), 'item')} has a rating")
        n_unrated = len(self.items) - len(items)
        summaries, summary_notes = find_summary_keys(items, self.cells.values())
        items = {item: name for item, name in items.items() if item not in summaries}
        notes = [*notes, *summary_notes]
        if n_unrated:
            notes.append(f"{n_unrated:,} of {len(self.items):,} items are unrated in all systems and left out")
        n_ratings, n_repeated = count_repeated(self.cells)
        if n_ratings:
            notes.append(
                ScopeNote(
                    f"{n_ratings:,} ratings of {format_count(n_repeated, 'output')} rated more than once are averaged"
                )
            )
        groups = {name: [self.items[item][k] for item in items.values()] for k, name in enumerate(self.groups or ())}
        columns = {self.column: ScoreColumn(self.cells)}
        return build_averaged_counts(
            columns, list(self.cells), items, groups=groups, options=self.options, warnings=notes
        )

    def _read_groups(self, table: RatingTable) -> Iterable[tuple[str, ...]]:
        """Return the cells of each row's grouping columns: the document, if there is one, and the requested columns."""
        document_column = [table.names["doc"]] if "doc" in table.names else []
        names = tuple(dict.fromkeys((*document_column, *self.options.groups)))
        if self.groups is None:
            self.groups = names
        if names != self.groups:
            raise InputError(f"{table.path}: its document column {names} is called {self.groups} in other files")
        if not names:
            return [()] * table.table.n_rows
        return zip(*(table.table.get_column(name) for name in names), strict=True)

    def _add_item(self, path: Path, line: int, item: str, group: tuple[str, ...]) -> None:
        if self.items.setdefault(item, group) != group:
            raise InputError(f"{path}, line {line}: item {item!r} is in {group}, elsewhere in {self.items[item]}")

    def _check_once(self, path: Path, line: int, system: str, item: str) -> None:
        first_place = self.lines.setdefault((system, item), (path, line))
        if first_place != (path, line):
            raise InputError(
                f"{path}, line {line}: system {system!r}, item {item!r} has a rating already, on line "
                f"{first_place[1]} of "
                f"{first_place[0]}; --format ratings:raters=mean averages them"
            )


def _read_weights(options: Options) -> dict[str, Decimal]:
    weights = {}
    for name, default in WEIGHTS.items():
        text = options.own.get(name, default)
        try:
            weights[name] = Decimal(text) if text else Decimal(-1)
        except InvalidOperation:
            raise InputError(f"format ratings: {name} = {text!r} is not a number") from None
        if name in options.own and not (weights[name].is_finite() and weights[name] >= 0):
            raise InputError(f"format ratings: {name} = {text!r} is not a number of 0 or more")
    return weights


def _compute_weight(category: str, severity: str, weights: Mapping[str, Decimal], where: str) -> Decimal:
    kind, low = category.lower(), severity.lower()
    if low in HARMLESS or kind in HARMLESS - {""}:
        return Decimal(0)
    name = low
    if low == "minor" and kind.startswith("fluency/punctuation"):
        name = "punctuation"
    if low == "major" and kind.startswith("non-translation"):
        name = "nontranslation"
    if weights.get(name, Decimal(-1)) < 0:
        names = ", ".join(key for key, weight in weights.items() if weight >= 0)
        hint = f"give its weight, as in --format ratings:{low}=10" if low in weights else f"expected one of {names}"
        raise InputError(f"{where}: severity {severity!r} has no weight; {hint}")
    return weights[name]


def _read_table(source: Source, options: Options, n_sources: int) -> RatingTable:
    """Read the columns of a rating file that are needed, and skip the others, whose texts can be large."""
    path = source.path
    header, *rows = read_start(path)
    roles = _find_roles(header, options, rows)
    for role in ("src", "tgt"):
        if role in roles and not are_languages([row[header.index(roles[role])] for row in rows]):
            del roles[role]  # a text
    check_once(path, header, roles.values())
    system = None
    if "system" not in roles and n_sources > 1:
        system = source.system
    if "score" not in roles and not ("severity" in roles and "category" in roles):
        raise missing_column_error(
            path, header, "score", "--score-column", _find_scores(header) or _find_metrics(header, rows, roles)
        )
    for role, option in (("system", "--system-column"), ("item", "--id")):
        if role not in roles and (role, system) != ("system", system or ""):
            raise missing_column_error(path, header, role, option, [])
    needed = list(dict.fromkeys((*roles.values(), *options.groups)))
    table, notes = select_ratings(read_columns(path, needed), header, roles)
    if "score" in roles:
        table = convert_scores(table, options, [roles["score"]])
        if options.score_column is None and roles["score"] in _find_metrics(header, rows, roles):
            notes.append(ScopeNote(f"{path}: {roles['score']!r} is compared (--score-column chooses another column)"))
    if source.name is not None and "system" in roles and len(set(table.columns[roles["system"]])) == 1:
        del roles["system"]
        system = source.name
    return RatingTable(path, table, roles, system, [*notes, *table.notes])


def _find_roles(header: Sequence[str], options: Options, rows: Sequence[Sequence[str]] = ()) -> dict[str, str]:
    """Return the column name for each role (system, item, score, ...); a single metric column can be the score."""
    lowered = {name.lower().replace(" ", "_").replace("-", "_"): name for name in reversed(header)}
    roles = {}
    requested = {"system": options.system_column, "item": options.id_column, "score": options.score_column}
    for role, names in COLUMN_NAMES.items():
        column = requested.get(role) or next((lowered[n] for n in names if n in lowered), None)
        if column is not None:
            roles[role] = column
    if "score" not in roles and len(score_columns := _find_scores(header)) == 1:
        roles["score"] = score_columns[0]
    if "score" not in roles and not score_columns and len(metrics := _find_metrics(header, rows, roles)) == 1:
        roles["score"] = metrics[0]
    return roles


def _find_metrics(header: Sequence[str], rows: Sequence[Sequence[str]], roles: Mapping[str, str]) -> list[str]:
    """Return the numeric columns with names of metrics; empty unless there are columns of systems and items."""
    if not {roles.get("system"), roles.get("item")} <= {*header} or not {*GOLD_NAMES}.isdisjoint(
        name.lower() for name in header
    ):
        return []
    systems = [row[header.index(roles["system"])] for row in rows]
    if len({*systems}) == len(systems) or all(map(is_number, systems)):
        return []  # averages of systems, or a system's scores
    excluded = {*_find_scores(header), *SCORE_NAMES, *(name for role, name in roles.items() if role != "score")}
    cells = {
        name: [row[k] for row in rows] for k, name in enumerate(header) if is_metric_name(name) and name not in excluded
    }
    return [
        name for name, column_cells in cells.items() if all(is_number(cell) or cell in MISSING for cell in column_cells)
    ]


def _find_scores(header: Sequence[str]) -> list[str]:
    return [name for name in header if name.lower().endswith(("score", "rating"))]


def _find_id_parts(tables: Sequence[RatingTable]) -> tuple[str, ...]:
    """Return the roles whose cells make up an item's id: the segment, and what it is numbered within (a document)."""
    parts: list[str] = []
    n_before = 1
    for part in ID_SCOPES:
        if any(part in table.names for table in tables):
            n_distinct = len(set(_iter_parts(tables, *parts, part)))
            if n_distinct > n_before:  # it tells more apart than the parts before it
                parts.append(part)
                n_before = n_distinct
    documents: dict[tuple[str, ...], str] = {}
    for *item, doc in _iter_parts(tables, *parts, "item", "doc"):
        if documents.setdefault(tuple(item), doc) != doc:
            return (*parts, "doc", "item")
    return (*parts, "item")


def _iter_parts(tables: Sequence[RatingTable], *parts: str) -> Iterator[tuple[str, ...]]:
    for table in tables:
        yield from zip(*(table.get_cells(part) for part in parts), strict=True)
