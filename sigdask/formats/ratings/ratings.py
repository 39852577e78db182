"""Ratings by people: rows of system, segment and score, or of MQM errors, by one or several raters.

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
from sigdask.counts.shown import FirstLine
from sigdask.errors import InputError
from sigdask.formats.ratings.rows import (
    absent,
    are_languages,
    check_alone,
    check_once,
    cleaned,
    columns_of,
    header_of,
    is_bare,
    is_split_by_blanks,
    kind_of,
    start_of,
)
from sigdask.formats.reading.aggregated import is_metric
from sigdask.formats.reading.averages import Cells, Key, ScoreColumn, add, averaged, repeated
from sigdask.formats.reading.numbers import MISSING, is_number
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.summaries import summary_keys
from sigdask.formats.reading.tables import ID_NAMES, SCORE_NAMES, SYSTEM_NAMES, FileTable
from sigdask.formats.tables.labels import GOLD_NAMES
from sigdask.formats.tables.notation import in_numbers
from sigdask.metrics import is_lower_better
from sigdask.text import count_noun

NAMES = {
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

PARTS = ("lp", "src", "tgt", "testset", "turn")
"""What segments are numbered within."""

WEIGHTS = {"major": "5", "minor": "1", "neutral": "0", "punctuation": "0.1", "nontranslation": "25", "critical": ""}
"""Weights of MQM errors; "" has no default."""

HARMLESS = frozenset({"no-error", "no error", "no_error", "noerror", "hotw-test", ""})
"""Severities that stand for no error."""

RATERS = ("mean", "error")
SHOWN = 4


def read_ratings(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read ratings; see above."""
    options.only("ratings", raters=RATERS, **dict.fromkeys(WEIGHTS, ()))
    if gold is not None:
        raise InputError(f"--gold {gold}: format ratings holds scores and takes no gold file")
    weights = _weights(options)
    tables = [_table(source, options, len(sources)) for source in sources]
    found = Ratings(options, _id_parts(tables))
    scores = {table.names.get("score", "") for table in tables}
    if len(scores) == 1 and is_lower_better(name := next(iter(scores))):
        found.column = name
    homes: dict[tuple[str, ...], Path] = {}
    for table in tables:
        within = (table.cells(part) for part in found.parts if part in PARTS)
        if options.own.get("raters") != "mean":
            check_alone(table.path, zip(table.systems(), *within, strict=True), homes)
        if table.is_errors:
            found.add_errors(table, weights)
        else:
            found.add_scores(table)
    return found.counts([note for table in tables for note in table.notes])


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Say whether these are ratings that format long does not take: several raters, MQM, split by blanks."""
    if gold is not None:
        return False
    try:
        header = header_of(sources[0].path)
        named = _named(header, options)
        if "system" not in named or "item" not in named:
            return False
        if "score" not in named and any(map(is_metric, header)):
            rows = start_of(sources[0].path)[1:]
            named = _named(header, options, rows)
            if "score" not in named and "rater" in named and _metrics(header, rows, named):
                return True  # whose reader asks for the score
    except InputError:
        return False
    if ("severity" in named and "category" in named) or (
        kind_of(sources[0].path) == "loose" and is_bare(sources[0].path)
    ):
        return True
    lowered = {name.lower() for name in header}
    plain = bool(lowered & {*SCORE_NAMES}) and bool(lowered & {*SYSTEM_NAMES}) and bool(lowered & {*ID_NAMES})
    return "score" in named and ("rater" in named or not plain or is_split_by_blanks(sources[0].path))


@dataclass(frozen=True, slots=True)
class RatingTable:
    """The columns of a file that matter, under what they are for."""

    path: Path
    table: FileTable
    names: Mapping[str, str]
    system: str | None = None
    notes: Sequence[str] = ()

    @property
    def is_errors(self) -> bool:
        """Whether rows are errors rather than scores."""
        return "score" not in self.names

    def cells(self, what: str, default: str = "") -> Sequence[str]:
        """Return a column, or the default in every row where there is none."""
        if what not in self.names:
            return [default] * self.table.n_rows
        return self.table.columns[self.names[what]]

    def systems(self) -> Sequence[str]:
        """Return the system of each row."""
        return self.cells("system", self.system or "")

    def places(self, parts: Sequence[str]) -> Iterator[tuple[int, str, str]]:
        """Yield line, system and item of each row."""
        columns = [self.cells(part) for part in parts]
        for line, system, *of_item in zip(self.table.lines, self.systems(), *columns, strict=True):
            if not system or not of_item[-1]:
                what = self.names.get("item", "item") if system else self.names.get("system", "system")
                raise InputError(f"{self.path}, line {line}: column {what!r} is empty, expected a name")
            yield line, system, ":".join(of_item)


@dataclass(slots=True)
class Ratings:
    """Ratings gathered from any number of files."""

    options: Options
    parts: Sequence[str]
    cells: Cells = field(default_factory=dict)
    items: dict[str, tuple[str, ...]] = field(default_factory=dict)
    groups: tuple[str, ...] | None = None
    lines: dict[tuple[str, str], tuple[Path, int]] = field(default_factory=dict)
    column: str = ""

    def add_scores(self, table: RatingTable) -> None:
        """Add rows of scores; a row without one says that the item is there."""
        values = table.table.numbers(table.names["score"]).tolist()
        check = None if "rater" in table.names and self.options.own.get("raters", "mean") == "mean" else self._once
        check = None if self.options.own.get("raters") == "mean" else check
        for (line, system, item), group, value in zip(
            table.places(self.parts), self._groups_of(table), values, strict=True
        ):
            self._place(table.path, line, item, group)
            self.cells.setdefault(system, {})
            if math.isnan(value):
                continue
            if check is not None:
                check(table.path, line, system, item)
            add(self.cells, system, item, value + 0.0)  # -0.0 is 0

    def add_errors(self, table: RatingTable, weights: Mapping[str, Decimal]) -> None:
        """Add rows of MQM errors: a rater's score is the negated sum of their weights."""
        penalties: dict[tuple[str, str, str], Decimal] = {}
        known: dict[tuple[str, str], Decimal] = {}
        for (line, system, item), group, rater, *kind in zip(
            table.places(self.parts),
            self._groups_of(table),
            table.cells("rater"),
            table.cells("category"),
            table.cells("severity"),
            strict=True,
        ):
            self._place(table.path, line, item, group)
            category, severity = kind
            if (category, severity) not in known:
                known[category, severity] = _weight(category, severity, weights, f"{table.path}, line {line}")
            key = (system, item, rater)
            if key not in penalties and self.options.own.get("raters") == "error":
                self._once(table.path, line, system, item)
            penalties[key] = penalties.get(key, Decimal(0)) + known[category, severity]
        for (system, item, _), penalty in penalties.items():
            add(self.cells, system, item, float(-penalty) + 0.0)

    def counts(self, notes: Iterable[str] = ()) -> Counts:
        """Return the counts of all items that some system has a rating of."""
        rated: set[Key] = set().union(*self.cells.values())
        items: dict[Key, str] = {item: item for item in self.items if item in rated}
        if not items:
            raise InputError(f"none of {count_noun(len(self.items), 'item')} has a rating")
        absent = len(self.items) - len(items)
        summaries, said = summary_keys(items, self.cells.values())
        items = {item: name for item, name in items.items() if item not in summaries}
        notes = [*notes, *said]
        if absent:
            notes.append(f"{absent:,} of {len(self.items):,} items are unrated in all systems and left out")
        n_ratings, several = repeated(self.cells)
        if n_ratings:
            notes.append(
                FirstLine(f"{n_ratings:,} ratings of {count_noun(several, 'output')} rated more than once are averaged")
            )
        groups = {name: [self.items[item][k] for item in items.values()] for k, name in enumerate(self.groups or ())}
        columns = {self.column: ScoreColumn(self.cells)}
        return averaged(columns, list(self.cells), items, groups=groups, options=self.options, warnings=notes)

    def _groups_of(self, table: RatingTable) -> Iterable[tuple[str, ...]]:
        """Return the groups of each row: what was asked for, and the document where there is one."""
        named = [table.names["doc"]] if "doc" in table.names else []
        names = tuple(dict.fromkeys((*named, *self.options.groups)))
        if self.groups is None:
            self.groups = names
        if names != self.groups:
            raise InputError(f"{table.path}: its document column {names} is called {self.groups} in other files")
        if not names:
            return [()] * table.table.n_rows
        return zip(*(table.table.column(name) for name in names), strict=True)

    def _place(self, path: Path, line: int, item: str, group: tuple[str, ...]) -> None:
        if self.items.setdefault(item, group) != group:
            raise InputError(f"{path}, line {line}: item {item!r} is in {group}, elsewhere in {self.items[item]}")

    def _once(self, path: Path, line: int, system: str, item: str) -> None:
        first = self.lines.setdefault((system, item), (path, line))
        if first != (path, line):
            raise InputError(
                f"{path}, line {line}: system {system!r}, item {item!r} has a rating already, on line {first[1]} of "
                f"{first[0]}; --format ratings:raters=mean averages them"
            )


def _weights(options: Options) -> dict[str, Decimal]:
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


def _weight(category: str, severity: str, weights: Mapping[str, Decimal], where: str) -> Decimal:
    kind, low = category.lower(), severity.lower()
    if low in HARMLESS or kind in HARMLESS - {""}:
        return Decimal(0)
    name = low
    if low == "minor" and kind.startswith("fluency/punctuation"):
        name = "punctuation"
    if low == "major" and kind.startswith("non-translation"):
        name = "nontranslation"
    if weights.get(name, Decimal(-1)) < 0:
        known = ", ".join(key for key, weight in weights.items() if weight >= 0)
        hint = f"give its weight, as in --format ratings:{low}=10" if low in weights else f"expected one of {known}"
        raise InputError(f"{where}: severity {severity!r} has no weight; {hint}")
    return weights[name]


def _table(source: Source, options: Options, n_sources: int) -> RatingTable:
    """Read the columns of a file that matter, and no others: the texts of ratings are large."""
    path = source.path
    header, *rows = start_of(path)
    named = _named(header, options, rows)
    for what in ("src", "tgt"):
        if what in named and not are_languages([row[header.index(named[what])] for row in rows]):
            del named[what]  # a text
    check_once(path, header, named.values())
    system = None
    if "system" not in named and n_sources > 1:
        system = source.system
    if "score" not in named and not ("severity" in named and "category" in named):
        raise absent(path, header, "score", "--score-column", _scores(header) or _metrics(header, rows, named))
    for what, option in (("system", "--system-column"), ("item", "--id")):
        if what not in named and (what, system) != ("system", system or ""):
            raise absent(path, header, what, option, [])
    wanted = list(dict.fromkeys((*named.values(), *options.groups)))
    table, notes = cleaned(columns_of(path, wanted), header, named)
    if "score" in named:
        table = in_numbers(table, options, [named["score"]])
        if options.score_column is None and named["score"] in _metrics(header, rows, named):
            notes.append(FirstLine(f"{path}: {named['score']!r} is compared (--score-column chooses another column)"))
    if source.name is not None and "system" in named and len(set(table.columns[named["system"]])) == 1:
        del named["system"]
        system = source.name
    return RatingTable(path, table, named, system, [*notes, *table.notes])


def _named(header: Sequence[str], options: Options, rows: Sequence[Sequence[str]] = ()) -> dict[str, str]:
    """Find what each column is for, by its name; the score also by being the only column called like a metric."""
    lowered = {name.lower().replace(" ", "_").replace("-", "_"): name for name in reversed(header)}
    named = {}
    asked = {"system": options.system_column, "item": options.id_column, "score": options.score_column}
    for what, names in NAMES.items():
        chosen = asked.get(what) or next((lowered[n] for n in names if n in lowered), None)
        if chosen is not None:
            named[what] = chosen
    if "score" not in named and len(found := _scores(header)) == 1:
        named["score"] = found[0]
    if "score" not in named and not found and len(metrics := _metrics(header, rows, named)) == 1:
        named["score"] = metrics[0]
    return named


def _metrics(header: Sequence[str], rows: Sequence[Sequence[str]], named: Mapping[str, str]) -> list[str]:
    """Return the columns of numbers that are called like metrics, where systems and items are named in the rows."""
    if not {named.get("system"), named.get("item")} <= {*header} or not {*GOLD_NAMES}.isdisjoint(
        name.lower() for name in header
    ):
        return []
    systems = [row[header.index(named["system"])] for row in rows]
    if len({*systems}) == len(systems) or all(map(is_number, systems)):
        return []  # averages of systems, or a system's scores
    aside = {*_scores(header), *SCORE_NAMES, *(name for what, name in named.items() if what != "score")}
    cells = {name: [row[k] for row in rows] for k, name in enumerate(header) if is_metric(name) and name not in aside}
    return [name for name, own in cells.items() if all(is_number(cell) or cell in MISSING for cell in own)]


def _scores(header: Sequence[str]) -> list[str]:
    return [name for name in header if name.lower().endswith(("score", "rating"))]


def _id_parts(tables: Sequence[RatingTable]) -> tuple[str, ...]:
    """Say what makes an id: the segment, and what it is numbered within."""
    parts: list[str] = []
    known = 1
    for part in PARTS:
        if any(part in table.names for table in tables):
            found = len(set(_within(tables, *parts, part)))
            if found > known:  # it tells more apart than the parts before it
                parts.append(part)
                known = found
    home: dict[tuple[str, ...], str] = {}
    for *item, doc in _within(tables, *parts, "item", "doc"):
        if home.setdefault(tuple(item), doc) != doc:
            return (*parts, "doc", "item")
    return (*parts, "item")


def _within(tables: Sequence[RatingTable], *parts: str) -> Iterator[tuple[str, ...]]:
    for table in tables:
        yield from zip(*(table.cells(part) for part in parts), strict=True)
