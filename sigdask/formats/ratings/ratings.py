"""Ratings by people: rows of system, segment and score, or of MQM errors, by one or more raters.

The files of WMT are read as published: MQM averages, MQM errors, direct assessment, SQM and ESA, and mt-metrics-eval's
rows of system and score. Columns may have any order, and rows may be split by tabs, blanks or both, or be delimited
text, JSON or Parquet. A header is optional. Scores keep their sign: for MQM averages, 0 is best.

- Several ratings of one segment are averaged (`ratings:raters=error` refuses them).
- MQM errors become the negated sum of their weights for each rater: major 5, minor 1, 0.1 for minor punctuation, and 25
  for major non-translation (Freitag et al. 2021). `ratings:major=10,critical=25` sets weights.
- A grade of -1 by a model as judge (MT-bench) is missing. Quality controls and whole documents of Appraise are left
  out, and a note says how many.
- A segment that no system has a rating for is left out with a note. If only some systems lack it, `--missing` decides.
- Segments of different languages (lp, or src and tgt) are different segments.
- The document is a unit (`--unit doc`). Where segments are numbered within documents, it is also part of the id.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError, RefusedFileError
from sigdask.formats.reading import files, replicates
from sigdask.formats.reading.averages_only import build_leaderboard_error, describe_summary_items, is_metric_name
from sigdask.formats.reading.columns import MISSING, is_number
from sigdask.formats.reading.json_records import is_json, read_record_cells
from sigdask.formats.reading.options import Options, Source, build_repeated_system_error
from sigdask.formats.reading.replicates import Cells, Key, ScoreColumn, add_value
from sigdask.formats.reading.tables import (
    ID_NAMES,
    SAMPLE_NAMES,
    SCORE_NAMES,
    SYSTEM_NAMES,
    FileTable,
    build_table,
    read_table,
)
from sigdask.formats.tables.bookkeeping import list_unnamed_scores
from sigdask.formats.tables.labels import GOLD_NAMES
from sigdask.formats.tables.notation import convert_scores, holds_scores
from sigdask.interface import spell
from sigdask.metrics import is_lower_better
from sigdask.text import format_count

APPRAISE_TYPES = frozenset({"TGT", "BAD", "REF", "CHK", "TUT"})
"""Appraise's types of items."""

DIRECT_ASSESSMENT_TYPES = ("REPEAT", "SYSTEM")
"""Types of WMT's direct assessment that count: outputs, and repeated outputs."""

STANDARDISED = "z.scr"
"""WMT's column of scores standardised by worker, next to raw scores."""

CAMPAIGN_COLUMNS = ("user", "system", "item", "type", "src", "tgt", "score", "doc", "isdoc")
"""First columns of Appraise's export of a campaign, which has no header. Its last columns are the start and end times.
"""

LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,2}")
N_START_ROWS = 50
"""Rows read to determine the contents of a column."""


def read_start(path: Path, n_rows: int = N_START_ROWS) -> list[list[str]]:
    """Return the first rows of a file as stripped cells, the header first."""
    rows = list(islice(_iter_rows(path), n_rows + 1))
    files.check_filled(path, rows)
    return [[cell.strip() for cell in cells] for _, cells in rows]


def are_languages(cells: Sequence[str]) -> bool:
    """Return whether cells are language codes rather than texts.

    Examples
    --------
    >>> are_languages(["eng", "deu"]), are_languages(["pt-BR", "zh_Hans_CN"]), are_languages(["yes", "Good morning"])
    (True, True, False)
    """
    return bool(cells) and all(LANGUAGE.fullmatch(cell) for cell in cells)


def check_once(path: Path, header: Sequence[str], names: Iterable[str]) -> None:
    """Raise if a name is missing from the header or occurs twice in it."""
    for name in names:
        if header.count(name) != 1:
            problem = "occurs twice in the header" if name in header else f"is not there; columns: {', '.join(header)}"
            raise InputError(f"column {name!r} {problem}", file=path)


def build_missing_column_error(
    path: Path, header: Sequence[str], role: str, option: str, possible: Sequence[str]
) -> InputError:
    """Return the error for a column that is missing or ambiguous."""
    problem = f"which column is the {role}, {' or '.join(possible)}?" if len(possible) > 1 else f"no {role} column;"
    return InputError(f"{problem} columns: {', '.join(header)}", file=path, remedy=f"name it with {option}")


def _iter_rows(path: Path) -> Iterator[files.Row]:
    kind = detect_kind(path)
    if kind == "parquet":
        table = read_table(path)
        yield 1, list(table.columns)
        yield from zip(table.lines, zip(*table.columns.values(), strict=True), strict=True)
    elif kind == "json":
        yield from ((number, list(map(files.format_cell, cells))) for number, cells in read_record_cells(path))
    elif is_bare(path):
        yield from _iter_bare_rows(path)
    else:
        if (names := _find_campaign_columns(path)) is not None:
            yield 0, names
        yield from iter_loose_rows(path) if kind == "loose" else files.read_delimited_rows(path)


def read_columns(path: Path, columns: Sequence[str]) -> FileTable:
    """Read only some columns of a file."""
    rows = _iter_rows(path)
    _, header = next(rows)
    names = [name.strip() for name in header]
    check_once(path, names, columns)
    indices = [names.index(name) for name in columns]
    return build_table(path, [(1, columns), *((line, [cells[k] for k in indices]) for line, cells in rows)])


def is_bare(path: Path) -> bool:
    """Return whether rows are only a system and a score, in segment order (mt-metrics-eval)."""
    with files.open_text(path) as text:
        rows = [line.split() for line in islice(text, 2)]
    return len(rows) == 2 and all(len(row) == 2 and is_number(row[1]) for row in rows) and rows[0][0] == rows[1][0]


def _find_campaign_columns(path: Path) -> list[str] | None:
    """Return column names if a file is an Appraise campaign export, which has no header, else None."""
    first = _read_first_line(path).strip()
    try:
        cells = next(csv.reader([first], delimiter=files.find_delimiter(first) or ","), [])
    except csv.Error:
        return None
    n = len(cells)
    if n < len(CAMPAIGN_COLUMNS) - 2 or cells[3] not in APPRAISE_TYPES or not are_languages(cells[4:6]):
        return None
    if not cells[6] or not is_number(cells[6]):
        return None
    times = ["start", "end"] if n > len(CAMPAIGN_COLUMNS) + 1 else []
    further = [f"column {k}" for k in range(len(CAMPAIGN_COLUMNS) + 1, n - len(times) + 1)]
    return [*CAMPAIGN_COLUMNS[:n], *further, *times]


def _iter_bare_rows(path: Path) -> Iterator[files.Row]:
    yield 0, ("system", "seg_id", "score")
    counts: Counter[str] = Counter()
    for line, cells in iter_loose_rows(path):
        counts[cells[0]] += 1
        yield line, (cells[0], str(counts[cells[0]]), cells[1])
    if len(set(counts.values())) > 1:
        (most, n), (fewest, m) = counts.most_common()[0], counts.most_common()[-1]
        raise InputError(
            f"system {most!r} has {n:,} rows and {fewest!r} {m:,}; rows without ids are matched by their order, so "
            "write one row per segment for every system (None where there is no score)",
            file=path,
        )


def detect_kind(path: Path) -> Literal["parquet", "json", "loose", "delimited"]:
    """Return a file's kind; "loose" means split by tabs or blanks, with quotes as part of the text."""
    if files.is_parquet(path):
        return "parquet"
    if is_json(path):
        return "json"
    return "loose" if files.find_delimiter(_read_first_line(path)) in {"\t", None} else "delimited"


def _read_first_line(path: Path) -> str:
    with files.open_text(path) as text:
        return "".join(islice(text, 1))


def iter_loose_rows(path: Path) -> Iterator[files.Row]:
    """Yield the rows of a file split by tabs, blanks or both; the header comes first.

    Raises
    ------
    InputError
        A row never has the width of the header, however it is read.
    """
    with files.open_text(path) as text:
        first_line = "".join(islice(text, 1))
        if not first_line:
            return
        header_line = first_line.rstrip("\r\n")
        header = header_line.split("\t") if header_line.count("\t") > 1 else header_line.split()
        while header and header[-1].startswith("#"):  # a remark, as Marot writes it
            header.pop()
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


def select_ratings(table: FileTable, header: Sequence[str], roles: Mapping[str, str]) -> tuple[FileTable, list[str]]:
    """Return the table without failed grades, quality controls and ratings of whole documents, and notes on these.

    A judge's grade of -1 means that it gave none. Appraise marks translations by the type TGT, and whole documents.
    """
    notes = []
    names = {name.lower() for name in header}
    if "score" in roles and "judge" in names and names & {"turn", "judgment"}:
        cells = table.columns[roles["score"]]
        failed = {cell for cell in set(cells) if cell[:1] == "-" and is_number(cell) and float(cell) == -1}
        n_bad = sum(cell in failed for cell in cells)
        grades = ["" if cell in failed else cell for cell in cells]
        if n_bad:
            table = replace(table, columns={**table.columns, roles["score"]: grades})
            notes.append(f"{table.path}: {format_count(n_bad, 'grade')} of -1 (the judge gave none) taken as missing")
    controls = ("type", {"TGT"}), ("type", {*DIRECT_ASSESSMENT_TYPES}), ("whole", {"false", "0"})
    for role, kept_cells in controls:
        if role not in roles:
            continue
        name = roles[role]
        cells = [cell.lower() if role == "whole" else cell for cell in table.columns[name]]
        other_cells = sorted({*cells} - kept_cells)
        if not other_cells or kept_cells.isdisjoint(cells) or (role == "whole" and {*other_cells} - {"true", "1"}):
            continue
        is_kept = np.array([cell in kept_cells for cell in cells])
        kinds = f"{', '.join(other_cells)}, not {' or '.join(sorted(kept_cells))}"
        reason = f"of quality controls ({name} is {kinds})" if role == "type" else f"of whole documents ({name})"
        n_left_out = format_count(int(np.count_nonzero(~is_kept)), "row" if role == "type" else "rating")
        notes.append(f"{table.path}: {n_left_out} {reason} left out")
        table = table.select_rows(is_kept)
    return table, notes


COLUMN_NAMES = {
    "system": (*SYSTEM_NAMES, "mt_system", "sys_id"),
    "item": ("globalsegid", "global_seg_id", "seg_id", "segid", "segment_id", "segmentid", "seg", "sid", "docsegid",
             "itemid", *ID_NAMES, "question_id"),
    "score": (*SCORE_NAMES, STANDARDISED),
    "rater": ("rater", "rater_id", "annotator", "annotator_id", "annotatorid", "judge", "judge_id", "judgeid", "user",
              "user_id", "userid", "username", "worker", "workerid", "worker_id", "evaluator", "login"),
    "doc": ("doc", "document", "doc_id", "docid", "document_id", "documentid"),
    "category": ("category",),
    "severity": ("severity",),
    "lp": ("lp", "langpair", "language_pair"),
    "src": ("src", "input.src", "src_lang", "source_lang", "source_language", "sourcelanguage"),
    "tgt": ("tgt", "input.trg", "tgt_lang", "target_lang", "target_language", "targetlanguage"),
    "testset": ("testset", "test_set"),
    "turn": ("turn",),
    "type": ("type", "item_type", "itemtype"),
    "whole": ("isdoc", "is_doc", "iscompletedocument", "is_complete_document"),
}  # fmt: skip
"""Conventional names of columns by their role. The first one present is used."""

ID_SCOPES = ("lp", "src", "tgt", "testset", "turn")
"""Columns within which segments are numbered."""

WEIGHTS = {"major": "5", "minor": "1", "neutral": "0", "punctuation": "0.1", "nontranslation": "25", "critical": ""}
"""Weights of MQM errors by scheme. "" has no default."""

HARMLESS = frozenset({"no-error", "no error", "no_error", "noerror", "hotw-test", ""})
"""Severities that mean no error."""


SHOWN = 4


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
    """Return whether the first file holds ratings that format long cannot read, as of MQM or several raters."""
    try:
        header = read_start(sources[0].path, 0)[0]
        roles = _find_roles(header, options)
        if "system" in roles and STANDARDISED in map(str.lower, header) and "item" not in roles:
            raise build_leaderboard_error(sources[0].path, roles["system"], "; WMT has the segments in *-seg-scores-*")
        if "system" not in roles or "item" not in roles:
            return False
        if "score" not in roles and any(map(is_metric_name, header)):
            rows = read_start(sources[0].path)[1:]
            roles = _find_roles(header, options, rows)
            if "score" not in roles and "rater" in roles and _find_metrics(header, rows, roles):
                return True  # whose reader asks for the score
    except RefusedFileError:
        raise
    except InputError:
        return False
    is_loose = detect_kind(sources[0].path) == "loose"
    if ("severity" in roles and "category" in roles) or (is_loose and is_bare(sources[0].path)):
        return True
    lowered = {name.lower() for name in header}
    is_long = not any(map(lowered.isdisjoint, (SCORE_NAMES, SYSTEM_NAMES, ID_NAMES)))
    is_split_by_blanks = is_loose and "\t" not in _read_first_line(sources[0].path)
    may_be_samples = "rater" not in roles and lowered & SAMPLE_NAMES - {name.lower() for name in roles.values()}
    are_samples = may_be_samples and list_unnamed_scores(
        read_table(sources[0].path, options.ignore), options, holds_scores
    )
    if are_samples or "run" in options.columns or (is_long and not is_loose and lowered & replicates.METRIC_COLUMNS):
        return False  # format long averages samples, and keeps the scores of several metrics or criteria apart
    return "score" in roles and ("rater" in roles or not is_long or is_split_by_blanks)


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
    lines: dict[tuple[str, str], tuple[Path, int]] = field(default_factory=dict)
    column: str = ""

    def add_scores(self, table: RatingTable) -> None:
        """Add rows of scores; a row without a score still adds its item."""
        values = table.table.get_numbers(table.names["score"]).tolist()
        raters = self.options.own.get("raters")
        are_averaged = raters == "mean" or (raters is None and "rater" in table.names)
        rows = zip(table.iter_rows(self.parts), self._read_groups(table), values, strict=True)
        for (line, system, item), group, value in rows:
            self._add_item(table.path, line, item, group)
            self.cells.setdefault(system, {})
            if math.isnan(value):
                continue
            if not are_averaged:
                self._check_once(table.path, line, system, item)
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
        notes = [*notes, *describe_summary_items([*items.values()])]
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

    def _check_once(self, path: Path, line: int, system: str, item: str) -> None:
        first_place = self.lines.setdefault((system, item), (path, line))
        if first_place != (path, line):
            raise InputError(
                f"system {system!r}, item {item!r} has a rating already, on line {first_place[1]} of "
                f"{first_place[0]}; {spell('format', 'ratings:raters=mean')} averages several ratings, such as "
                "those of raters or runs",
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


def _read_table(source: Source, options: Options, n_sources: int) -> RatingTable:
    """Read the columns of a rating file that are needed, and skip the others, whose texts can be large."""
    path = source.path
    header, *rows = read_start(path)
    roles = _find_roles(header, options, rows)
    for role in ("src", "tgt"):
        if role in roles and not are_languages([row[header.index(roles[role])] for row in rows]):
            del roles[role]  # a text
    check_once(path, header, roles.values())
    system = source.system if "system" not in roles and n_sources > 1 else ""
    if "score" not in roles and not ("severity" in roles and "category" in roles):
        raise build_missing_column_error(
            path,
            header,
            "score",
            f"{spell('columns', 'score=COLUMN')}",
            _find_scores(header) or _find_metrics(header, rows, roles),
        )
    for role, option in (
        ("system", f"{spell('columns', 'system=COLUMN')}"),
        ("item", f"{spell('columns', 'item=COLUMN')}"),
    ):
        if role not in roles and not (role == "system" and system):
            raise build_missing_column_error(path, header, role, option, [])
    needed = list(dict.fromkeys((*roles.values(), *options.groups)))
    table, notes = select_ratings(read_columns(path, needed), header, roles)
    is_direct = STANDARDISED in map(str.lower, header) or "SYSTEM" in table.columns.get(roles.get("type", ""), ())
    if "score" in roles:
        table = convert_scores(table, options, [roles["score"]])
        name = roles["score"]
        is_one_of_several = name.lower() == STANDARDISED or name in _find_metrics(header, rows, roles)
        if options.score_column is None and is_one_of_several:
            notes.append(
                ScopeNote(
                    f"{path}: {roles['score']!r} is compared ({spell('columns', 'score=COLUMN')} chooses another)"
                )
            )
    if source.name is not None and "system" in roles and len(set(table.columns[roles["system"]])) == 1:
        del roles["system"]
        system = source.name
    return RatingTable(path, table, roles, system, [*notes, *table.notes], is_direct)


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
    has_gold = not {*GOLD_NAMES}.isdisjoint(name.lower() for name in header)
    if has_gold or not {roles.get("system"), roles.get("item")} <= {*header}:
        return []
    systems = [row[header.index(roles["system"])] for row in rows]
    if len({*systems}) == len(systems) or all(map(is_number, systems)):
        return []  # averages of systems, or a system's scores
    aside = {*_find_scores(header), *SCORE_NAMES, *(name for role, name in roles.items() if role != "score")}
    named = [(k, name) for k, name in enumerate(header) if is_metric_name(name) and name not in aside]
    cells = {name: [row[k] for row in rows] for k, name in named}
    return [name for name, column in cells.items() if all(is_number(cell) or cell in MISSING for cell in column)]


def _find_scores(header: Sequence[str]) -> list[str]:
    return [name for name in header if name.lower().endswith(("score", "rating"))]


def _find_id_parts(tables: Sequence[RatingTable]) -> tuple[str, ...]:
    """Return the roles whose cells form an item's id: the segment, and the document or other scope of its number."""
    parts: list[str] = []
    n_before = 1
    for part in ID_SCOPES:
        if any(part in table.names for table in tables):
            n_distinct = len(set(_iter_parts(tables, *parts, part)))
            if n_distinct > n_before:  # it distinguishes more than the parts before it
                parts.append(part)
                n_before = n_distinct
    documents: dict[tuple[str, ...], str] = {}
    for *item, doc in _iter_parts(tables, *parts, "item", "doc"):
        if documents.setdefault(tuple(item), doc) != doc:
            return (*parts, "doc", "item")
    return (*parts, "item")


def _iter_parts(tables: Sequence[RatingTable], *parts: str) -> Iterator[tuple[str, ...]]:
    for table in tables:
        yield from zip(*map(table.get_cells, parts), strict=True)
