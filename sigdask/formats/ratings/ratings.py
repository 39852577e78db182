"""Ratings by people: rows of system, segment and score, or of MQM errors, by one or more raters.

The files of WMT are read as published: MQM averages, MQM errors, direct assessment, SQM and ESA, and mt-metrics-eval's
rows of system and score. They are recognised by the names of their columns (`RATING_COLUMNS`), the files without a
header by their name or by the form of their lines. Rows may be split by tabs, blanks or both, or be delimited text,
JSON or Parquet. Scores keep their sign: for MQM averages, 0 is best.

- Several ratings of one segment are averaged if a column names the raters (`ratings:raters=error` refuses them).
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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from itertools import islice
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError, RefusedFileError
from sigdask.formats.reading import files, replicates
from sigdask.formats.reading.json_records import is_json, read_keys
from sigdask.formats.reading.options import Options, Source, build_repeated_system_error
from sigdask.formats.reading.replicates import Cells, Key, ScoreColumn, add_value
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.roles import describe_columns, name_role
from sigdask.interface import spell
from sigdask.metrics import is_lower_better
from sigdask.text import format_count

RATING_COLUMNS = {
    "system": ("system", "sys", "system_id", "system_name", "mt_system", "sys_id", "model", "model_id", "model_name"),
    "item": ("globalsegid", "global_seg_id", "seg_id", "segid", "segment_id", "segmentid", "seg", "segment", "sid",
             "docsegid", "itemid", "item_id", "item", "question_id", "id"),
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

RATING_NAMES = ("z.scr", "mqm_avg_score", "mqm_score", "esa_score", "da_score", "sqm_score", "globalsegid")
"""Names that only files of ratings have. Without one of them, a column of raters tells that rows are ratings."""

ID_SCOPES = ("lp", "src", "tgt", "testset", "turn")
"""Columns within which segments are numbered."""

APPRAISE_COLUMNS = ("user", "system", "item", "type", "src", "tgt", "score", "doc", "isdoc")
"""First columns of Appraise's export of a campaign, which has no header. Its last columns are the start and end times.
"""

APPRAISE_LINE = re.compile(
    r"[^,]*,[^,]*,[^,]*,(TGT|BAD|REF|CHK|TUT),[A-Za-z]{2,3}[\w-]*,[A-Za-z]{2,3}[\w-]*,-?[\d.]+(,.*)?"
)
SCORES_FILE = ".seg.score"
"""Ending of mt-metrics-eval's files of system and score, in the order of segments, without a header."""

WEIGHTS = {"major": "5", "minor": "1", "neutral": "0", "punctuation": "0.1", "nontranslation": "25", "critical": ""}
"""Weights of MQM errors by scheme. "" has no default."""

HARMLESS = frozenset({"no-error", "no error", "no_error", "noerror", "hotw-test", ""})
"""Severities that mean no error."""


def read_ratings(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read ratings (scores or MQM errors) by people, and return counts of the mean rating of each item."""
    weights = _read_weights(options)
    tables = [_read_table(source, options, len(sources)) for source in sources]
    is_direct = options.missing is None and all(table.is_direct_assessment for table in tables)
    if is_direct:
        options = replace(options, missing="pairwise", few_in_common=True)
    ratings = Ratings(options, _find_id_parts(tables))
    scores = {table.names.get("score", "") for table in tables}
    if len(scores) == 1 and is_lower_better(name := next(iter(scores))):
        ratings.column = name
    homes: dict[tuple[str, ...], Path] = {}
    for table in tables:
        scope_columns = (table.get_cells(part) for part in ratings.parts if part in ID_SCOPES)
        if options.own.get("raters") != "mean":
            for owner in dict.fromkeys(zip(table.get_cells("system", table.system), *scope_columns, strict=True)):
                if homes.setdefault(owner, table.path) != table.path:  # ratings of both files would be averaged
                    remedy = f"or average them as ratings of one system: {spell('format', 'ratings:raters=mean')}"
                    raise InputError(f"{build_repeated_system_error(table.path, owner[0], homes[owner])}; {remedy}")
        if "score" in table.names:
            ratings.add_scores(table)
        else:  # rows are MQM errors
            ratings.add_errors(table, weights)
    notes = [note for table in tables for note in table.notes]
    return ratings.build_counts([*notes, *ratings.describe_own_means(is_direct)])


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the columns of the first file are those of ratings."""
    path = sources[0].path
    try:
        header = read_header(path)
    except InputError:
        return False
    roles = {role for role in RATING_COLUMNS if _list_columns(header, role)}
    names = {name.lower() for name in header}
    if {"system", "score"} <= roles and "z.scr" in names and "item" not in roles:
        problem = "holds averages of systems, but a test needs the score of each segment"
        raise RefusedFileError(problem, file=path, remedy="give *-seg-scores-*, which WMT publishes beside it")
    if _is_scores_file(path):
        return True
    if not {"system", "item"} <= roles or any("metric" in name_role(name) for name in header):
        return False  # format long keeps the scores of several metrics apart
    is_rated = "rater" in roles or not names.isdisjoint(RATING_NAMES) or _is_split_by_blanks(path)
    return {"category", "severity"} <= roles or ("score" in roles and is_rated)


def _list_columns(header: Sequence[str], role: str) -> list[str]:
    """Return the columns of a role, in the order of its names."""
    lowered = {re.sub(r"[ -]", "_", name.lower()): name for name in reversed(header)}
    return [lowered[name] for name in RATING_COLUMNS[role] if name in lowered]


def read_header(path: Path) -> list[str]:
    """Return the names of a file's columns; of files without a header, those of their layout."""
    if files.is_parquet(path) or is_json(path):
        return [name for name in read_keys(path) if "." not in name]
    line = _read_first_line(path)
    if _is_scores_file(path):
        return ["system", "seg_id", "score"]
    if APPRAISE_LINE.fullmatch(line):
        n = line.count(",", 0, line.find('"') if '"' in line else None) + 1
        return [*APPRAISE_COLUMNS[:n]]
    return _split_header(line) if _is_loose(path) else files.parse_header(line)


def _is_scores_file(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(SCORES_FILE)


def _read_first_line(path: Path) -> str:
    return next(iter(files.read_head_lines(path)), "")


def _is_loose(path: Path) -> bool:
    """Return whether rows are split by tabs or blanks, with quotes as part of the text."""
    return files.find_delimiter(_read_first_line(path)) in {"\t", None}


def _is_split_by_blanks(path: Path) -> bool:
    return not files.is_parquet(path) and not is_json(path) and _is_loose(path) and "\t" not in _read_first_line(path)


def _read_columns(path: Path, options: Options) -> FileTable:
    """Read a file as a table, whatever separates its columns."""
    if files.is_parquet(path) or is_json(path):
        return read_table(path, options.ignore, options.decimal)
    if _is_scores_file(path):
        return _build_table(path, [(0, ("system", "seg_id", "score")), *_iter_bare_rows(path)])
    if APPRAISE_LINE.fullmatch(_read_first_line(path)):
        rows = list(files.read_delimited_rows(path))
        n = len(rows[0][1])
        times = ("start", "end") if n > len(APPRAISE_COLUMNS) + 1 else ()
        further = (f"column {k}" for k in range(len(APPRAISE_COLUMNS) + 1, n - len(times) + 1))
        return _build_table(path, [(0, (*APPRAISE_COLUMNS[:n], *further, *times)), *rows])
    if _is_loose(path):
        return _build_table(path, list(_iter_loose_rows(path)))
    return read_table(path, options.ignore, options.decimal)


def _build_table(path: Path, rows: Sequence[files.Row]) -> FileTable:
    (_, header), *body = rows
    files.check_header(path, list(header))
    if not body:
        raise InputError("has a header and no rows, expected one row per rating", file=path)
    columns = zip(*([cell.strip() for cell in cells] for _, cells in body), strict=True)
    return FileTable(path, dict(zip(header, map(list, columns), strict=True)), [line for line, _ in body])


def _iter_bare_rows(path: Path) -> Iterator[files.Row]:
    counts: Counter[str] = Counter()
    with files.open_text(path) as text:
        for line, cells in ((number, row.split()) for number, row in enumerate(text, start=1) if row.strip()):
            if len(cells) != 2:
                raise InputError(file=path, line=line, found=f"{len(cells)} cells", expected="a system and its score")
            counts[cells[0]] += 1
            yield line, (cells[0], str(counts[cells[0]]), cells[1])
    if len(set(counts.values())) > 1:
        (most, n), (fewest, m) = counts.most_common()[0], counts.most_common()[-1]
        raise InputError(
            f"system {most!r} has {n:,} rows and {fewest!r} {m:,}; rows without ids are matched by their order, so "
            "write one row per segment for every system (None where there is no score)",
            file=path,
        )


def _split_header(line: str) -> list[str]:
    header = [name.strip() for name in (line.split("\t") if line.count("\t") > 1 else line.split())]
    while header and header[-1].startswith("#"):  # a remark, as Marot writes it
        header.pop()
    return header


def _iter_loose_rows(path: Path) -> Iterator[files.Row]:
    """Yield the rows of a file split by tabs, blanks or both; the header comes first."""
    with files.open_text(path) as text:
        header = _split_header("".join(islice(text, 1)).rstrip("\r\n"))
        files.check_filled(path, header)
        yield 1, header
        lines = ((number, raw.rstrip("\r\n")) for number, raw in enumerate(text, start=2))
        rows = ((number, _split_loose(line, len(header)) if line.strip() else []) for number, line in lines)
        yield from files.check_widths(path, rows, len(header))


def _split_loose(line: str, width: int) -> list[str]:
    """Return the cells of a line by tabs, by blanks or by both, preferably as many as there are in the header."""
    cells = line.split("\t")
    if len(cells) == width:
        return [c[1:-1] if len(c) > 1 and c[0] == c[-1] == '"' else c for c in cells]
    words = line.split()
    if len(words) == width or len(cells) == 1:
        return words
    mixed = [cells[0], *" ".join(cells[1:]).split()]
    return mixed if len(mixed) == width else cells


@dataclass(frozen=True, slots=True)
class RatingTable:
    """The columns that are read from a rating file, by their role (system, item, score, ...)."""

    path: Path
    table: FileTable
    names: Mapping[str, str]
    system: str = ""
    notes: Sequence[str] = ()
    is_direct_assessment: bool = False

    def get_cells(self, role: str, default: str = "") -> Sequence[str]:
        """Return a column by its role, or the default in every row if there is no such column."""
        if role not in self.names:
            return [default] * self.table.n_rows
        return self.table.columns[self.names[role]]

    def iter_rows(self, parts: Sequence[str]) -> Iterator[tuple[int, str, str]]:
        """Yield the line number, system and item id of each row; an id is joined from the cells of `parts`."""
        columns = [self.get_cells(part) for part in parts]
        systems = self.get_cells("system", self.system)
        for line, system, *id_cells in zip(self.table.lines, systems, *columns, strict=True):
            if not system or not id_cells[-1]:
                column = self.names.get("item", "item") if system else self.names.get("system", "system")
                raise InputError(f"column {column!r} is empty, expected a name", file=self.path, line=line)
            yield line, system, ":".join(id_cells)


@dataclass(slots=True)
class Ratings:
    """The ratings of all files, by system and item."""

    options: Options
    parts: Sequence[str]
    cells: Cells = field(default_factory=dict)
    items: dict[str, tuple[str, ...]] = field(default_factory=dict)
    groups: tuple[str, ...] | None = None
    lines: dict[tuple[str, str, str], tuple[Path, int]] = field(default_factory=dict)
    column: str = ""

    def add_scores(self, table: RatingTable) -> None:
        """Add rows of scores; a row without a score still adds its item."""
        values = table.table.get_numbers(table.names["score"]).tolist()
        choice = self.options.own.get("raters")
        raters = table.get_cells("rater") if choice is None else [""] * len(values)
        rows = zip(table.iter_rows(self.parts), self._read_groups(table), values, raters, strict=True)
        for (line, system, item), group, value, rater in rows:
            self._add_item(table.path, line, item, group)
            self.cells.setdefault(system, {})
            if math.isnan(value):
                continue
            if choice != "mean" and not table.is_direct_assessment:  # which repeats outputs to the same people
                self._check_once(table.path, line, system, item, rater)
            add_value(self.cells, system, item, value + 0.0)  # -0.0 is 0

    def add_errors(self, table: RatingTable, weights: Mapping[str, Decimal]) -> None:
        """Add rows of MQM errors; a rater's score of an item is minus the sum of the weights of its errors."""
        penalties: dict[tuple[str, str, str], Decimal] = {}
        known: dict[tuple[str, str], Decimal] = {}
        columns = [table.get_cells(role) for role in ("rater", "category", "severity")]
        rows = zip(table.iter_rows(self.parts), self._read_groups(table), *columns, strict=True)
        for (line, system, item), group, rater, category, severity in rows:
            self._add_item(table.path, line, item, group)
            if (category, severity) not in known:
                known[category, severity] = _compute_weight(category, severity, weights, f"{table.path}, line {line}")
            key = (system, item, rater)
            if key not in penalties and self.options.own.get("raters") == "error":
                self._check_once(table.path, line, system, item)
            penalties[key] = penalties.get(key, Decimal(0)) + known[category, severity]
        for (system, item, _), penalty in penalties.items():
            add_value(self.cells, system, item, float(-penalty) + 0.0)

    def build_counts(self, notes: Iterable[str] = ()) -> Counts:
        """Return the counts of all items that at least one system has a rating for."""
        rated: set[Key] = set().union(*self.cells.values())
        items: dict[Key, str] = {item: item for item in self.items if item in rated}
        if not items:
            raise InputError(f"none of {format_count(len(self.items), 'item')} has a rating")
        n_unrated = len(self.items) - len(items)
        notes = [*notes]
        if n_unrated:
            notes.append(f"{n_unrated:,} of {len(self.items):,} items are unrated in all systems and left out")
        n_ratings, n_repeated = replicates.count_repeated(self.cells)
        if n_ratings:
            note = f"{n_ratings:,} ratings of {format_count(n_repeated, 'output')} rated more than once are averaged"
            notes.append(ScopeNote(note))
        groups = {name: [self.items[item][k] for item in items.values()] for k, name in enumerate(self.groups or ())}
        scores, systems = {self.column: ScoreColumn(self.cells)}, [*self.cells]
        return replicates.build_averaged_counts(
            scores, systems, items, groups=groups, options=self.options, warnings=notes
        )

    def describe_own_means(self, is_direct: bool) -> list[str]:
        """Return a note with each system's mean over all of its own segments, where systems have different ones."""
        if not is_direct or len({frozenset(values) for values in self.cells.values()}) == 1:
            return []
        means = {
            system: float(np.mean([np.mean(ratings) for ratings in values.values()]))
            for system, values in self.cells.items()
            if values
        }
        listed = ", ".join(f"{system} {means[system]:.4f}" for system in sorted(means, key=means.__getitem__)[::-1])
        scope = (
            "systems have different segments: each pair is compared on the segments of both "
            f"({spell('missing', 'pairwise')})"
        )
        return [f"{scope}. Means over all segments of each system: {listed}"]

    def _read_groups(self, table: RatingTable) -> Iterable[tuple[str, ...]]:
        """Return the cells of each row's grouping columns: the document, if there is one, and the requested columns."""
        document_column = [table.names["doc"]] if "doc" in table.names else []
        names = tuple(dict.fromkeys((*document_column, *self.options.groups)))
        if self.groups is None:
            self.groups = names
        if names != self.groups:
            raise InputError(
                f"its column of documents is called {names}, but {self.groups} in other files",
                file=table.path,
                remedy="use one name",
            )
        if not names:
            return [()] * table.table.n_rows
        return zip(*(table.table.get_column(name) for name in names), strict=True)

    def _add_item(self, path: Path, line: int, item: str, group: tuple[str, ...]) -> None:
        if self.items.setdefault(item, group) != group:
            raise InputError(
                f"item {item!r} is in {group}, but in {self.items[item]} elsewhere",
                file=path,
                line=line,
                remedy="give the item the same group everywhere",
            )

    def _check_once(self, path: Path, line: int, system: str, item: str, rater: str = "") -> None:
        first_place = self.lines.setdefault((system, item, rater), (path, line))
        if first_place != (path, line):
            raise InputError(
                f"system {system!r}, item {item!r} has a rating {f'by {rater!r} ' * bool(rater)}already, on line "
                f"{first_place[1]} of {first_place[0]}",
                remedy=f"{spell('format', 'ratings:raters=mean')} averages several ratings, as of raters or runs",
                file=path,
                line=line,
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
        hint = (
            f"give its weight, as in {spell('format', f'ratings:{low}=10')}"
            if low in weights
            else f"expected one of {names}"
        )
        raise InputError(f"{where}: severity {severity!r} has no weight; {hint}")
    return weights[name]


CONTROLS = {"TGT": ("TGT",), "SYSTEM": ("SYSTEM", "REPEAT")}
"""Types of rows that are ratings of outputs, in files that have the first of them: Appraise's and WMT's."""


def _read_table(source: Source, options: Options, n_sources: int) -> RatingTable:
    """Read a rating file, with the roles of its columns, and without rows that are no ratings of outputs."""
    path = source.path
    table = _read_columns(path, options)
    roles = _find_roles(table, options)
    system = source.system if "system" not in roles and n_sources > 1 else ""
    if "score" not in roles and not {"severity", "category"} <= roles.keys():
        raise _build_missing_error(table, "score")
    for role in ("system", "item"):
        if role not in roles and not (role == "system" and system):
            raise _build_missing_error(table, role)
    notes = []
    is_direct = "z.scr" in map(str.lower, table.columns) or "SYSTEM" in table.columns.get(roles.get("type", ""), ())
    if options.score_column is None and roles.get("score", "").lower() == "z.scr":
        choice = spell("columns", "score=RAW.SCR")
        notes.append(ScopeNote(f"{path}: {roles['score']!r} is compared ({choice} compares raw scores)"))
    table, controls = _select_ratings(table, roles)
    if source.name is not None and "system" in roles and len(set(table.columns[roles["system"]])) == 1:
        del roles["system"]
        system = source.name
    return RatingTable(path, table, roles, system, [*notes, *controls, *table.notes], is_direct)


def _find_roles(table: FileTable, options: Options) -> dict[str, str]:
    """Return the column of each role (system, item, score, ...)."""
    header = list(table.columns)
    roles = {role: columns[0] for role in RATING_COLUMNS if (columns := _list_columns(header, role))}
    if {*APPRAISE_COLUMNS[3:7]} <= {name.lower() for name in header}:
        roles |= {"src": "src", "tgt": "tgt"}  # languages there, and texts elsewhere
    requested = {"system": options.system_column, "item": options.id_column, "score": options.score_column}
    for role, column in requested.items():
        if column is not None:
            table.get_column(column)  # raises if there is none
            roles[role] = column
    scores = _list_columns(header, "score")
    if options.score_column is None and len(scores) > 1 and scores[0].lower() != "z.scr":
        raise InputError(
            f"which column is the score, {' or '.join(scores)}?",
            file=table.path,
            remedy=f"name it: {' or '.join(spell('columns', f'score={name}') for name in scores)}",
        )
    return roles


def _build_missing_error(table: FileTable, role: str) -> InputError:
    """Return the error for a column that is missing."""
    column = {"item": "item=COLUMN", "system": "system=COLUMN", "score": "score=COLUMN"}[role]
    return InputError(
        f"no {role} column; columns:\n{describe_columns(table)}\n",
        file=table.path,
        remedy=f"name it with {spell('columns', column)}",
    )


def _select_ratings(table: FileTable, roles: Mapping[str, str]) -> tuple[FileTable, list[str]]:
    """Return the table without failed grades, quality controls and ratings of whole documents, and notes on these."""
    notes = []
    names = {name.lower() for name in table.columns}
    if "score" in roles and "judge" in names and names & {"turn", "judgment"}:
        cells = table.columns[roles["score"]]
        grades = ["" if cell in {"-1", "-1.0"} else cell for cell in cells]
        if n_bad := sum(not grade and bool(cell) for grade, cell in zip(grades, cells, strict=True)):
            table = replace(table, columns={**table.columns, roles["score"]: grades})
            notes.append(f"{table.path}: {format_count(n_bad, 'grade')} of -1 (the judge gave none) taken as missing")
    types = table.columns.get(roles.get("type", ""), ())
    kept = next((kinds for first, kinds in CONTROLS.items() if first in types), None)
    if kept is not None and (others := sorted({*types} - {*kept})):
        n = sum(kind not in kept for kind in types)
        reason = f"({roles['type']} is {', '.join(others)}, not {' or '.join(sorted(kept))})"
        notes.append(f"{table.path}: {format_count(n, 'row')} of quality controls {reason} left out")
        table = table.select_rows(np.array([kind in kept for kind in types]))
    if "whole" in roles:
        are_whole = np.array([cell.lower() in {"true", "1"} for cell in table.columns[roles["whole"]]], np.bool_)
        if n := int(are_whole.sum()):
            notes.append(f"{table.path}: {format_count(n, 'rating')} of whole documents ({roles['whole']}) left out")
            table = table.select_rows(~are_whole)
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
