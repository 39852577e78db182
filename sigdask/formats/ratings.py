"""Judgements of people and of models: ratings of segments, and battles.

Ratings by people: rows of system, segment and score, or of MQM errors, by one or more raters.

The files of WMT are read as published: MQM averages, MQM errors, direct assessment, SQM and ESA. They are recognised by
the names of their columns (`signatures.RATING_COLUMNS`). Rows may be split by tabs, blanks or both, or be delimited
text, JSON or Parquet. Scores keep their sign: for MQM averages, 0 is best.

- Several ratings of one segment are averaged, if a column names the raters.
- MQM errors become the negated sum of their weights for each rater: major 5, minor 1, 0.1 for minor punctuation, and 25
  for major non-translation (Freitag et al. 2021). `ratings:critical=10` weighs critical ones.
- A grade of -1 by a model as judge (MT-bench) is no rating. Quality controls and whole documents of Appraise are left
  out, and a note says how many.
- A segment that no system has a rating for is left out with a note. If only some systems lack it, `--missing` decides.
- The document is a unit (`--unit doc`). Segments that are numbered within documents or languages are refused, unless
  the user joins both columns: `--columns item=doc+segment`.

Wins, ties and losses: each row is a judgement of two models' answers to one question.

A win counts 1, a tie one half, a loss 0. `signatures.BATTLE_LAYOUTS` declares the fields of the files that are read:
Chatbot Arena, AlpacaEval, evalscope, and tables of two systems and a winner.

Two models are compared only on the questions in which they met. Several judgements of one question (judges, orders) are
averaged exactly, unless `--unit` or `--by` separates them. AlpacaEval annotations of several models give each model's
wins over the baseline by question, to compare the models with each other.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading import files
from sigdask.formats.reading.json_records import Record, find_field, iter_records, parse_number
from sigdask.formats.reading.options import Options, Source, build_repeated_system_error, list_row_systems
from sigdask.formats.reading.replicates import Cells, Key, add_value, build_averaged_counts, count_repeated
from sigdask.formats.reading.signatures import (
    ALPACA,
    BATTLE_LAYOUTS,
    BattleLayout,
    find_battle_layout,
    find_rating_columns,
    split_rating_header,
)
from sigdask.formats.reading.tables import FileTable, build_table, read_table
from sigdask.formats.roles import build_roles_error
from sigdask.interface import spell
from sigdask.metrics import is_lower_better
from sigdask.text import format_count

WEIGHTS = {"major": Decimal(5), "minor": Decimal(1), "neutral": Decimal(0)}
SPECIAL_WEIGHTS = {("minor", "fluency/punctuation"): Decimal("0.1"), ("major", "non-translation"): Decimal(25)}
"""Weights of MQM errors by severity, and by severity and the start of the category."""

HARMLESS = frozenset({"no-error", "no error", "no_error", "noerror", "hotw-test", ""})
"""Severities that mean no error."""

RATED = {"type": {"TGT", "SYSTEM", "REPEAT"}, "whole": {"", "False", "false", "0"}}
"""Values of rows that are ratings of outputs, by role. Others are quality controls, and ratings of whole documents."""


class RatingFile(NamedTuple):
    """A file of ratings: the columns of each role, and the system of each row."""

    table: FileTable
    columns: Mapping[str, Sequence[str]]
    systems: Sequence[str]
    is_direct_assessment: bool
    """Whether outputs are repeated on purpose."""

    def get_cells(self, role: str) -> Sequence[str]:
        """Return a column by its role, or empty cells if there is no such column."""
        name = self.columns.get(role, ("",))[0]
        return self.table.columns.get(name) or (self.table.get_column(name) if name else [""] * self.table.n_rows)


def read_ratings(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read ratings (scores or MQM errors) by people, and return counts of the mean rating of each item."""
    critical = options.own.get("critical", "none")
    weights = WEIGHTS if critical == "none" else {**WEIGHTS, "critical": Decimal(critical)}
    notes: list[str] = []
    read = _read_files(sources, options, notes)
    is_direct = options.missing is None and all(file.is_direct_assessment for file in read)
    if is_direct:
        options = replace(options, missing="pairwise", few_in_common=True)
    columns = read[0].columns
    group_names = [*dict.fromkeys((*columns.get("doc", ())[:1], *columns.get("scope", ()), *options.groups))]
    cells: Cells = {}
    items: dict[str, Mapping[str, str]] = {}
    for file in read:
        rows = _iter_rows(file, group_names, items)
        if "score" in file.columns:
            _add_scores(cells, file, rows, are_averaged="raters" in options.own or file.is_direct_assessment)
        else:
            _add_errors(cells, file, rows, weights)
    rated: set[Key] = set().union(*cells.values())
    ids: dict[Key, str] = {item: item for item in items if item in rated}
    if not ids:
        raise InputError(f"none of {format_count(len(items), 'item')} has a rating", file=read[0].table.path)
    if n_unrated := len(items) - len(ids):
        notes.append(f"{n_unrated:,} of {len(items):,} items are unrated in all systems and left out")
    n_ratings, n_repeated = count_repeated(cells)
    if n_ratings:
        outputs = format_count(n_repeated, "output")
        notes.append(ScopeNote(f"{n_ratings:,} ratings of {outputs} rated more than once are averaged"))
    [name, *others] = {file.columns.get("score", ("",))[0] for file in read}
    return build_averaged_counts(
        {name if not others and is_lower_better(name) else "": cells},
        [*cells],
        ids,
        groups={name: [items[item][name] for item in ids.values()] for name in group_names},
        options=options,
        warnings=[*notes, *(_describe_means(cells) if is_direct else [])],
    )


def _read_table(path: Path, options: Options) -> FileTable:
    """Read a file as a table. Rows whose header is split by blanks are split by tabs or blanks."""
    if not (header := split_rating_header(path)):
        return read_table(path, options.ignore)
    rows: list[files.Row] = []
    by_tabs = "\t" in files.read_head(path).lines[0]
    for number, line in files.enumerate_lines(path):
        cells = line.rstrip("\r\n").split("\t") if line.strip() else []
        rows.append((number, cells if by_tabs or len(cells) == len(header) else line.split()))
    return build_table(path, [(1, header), *files.check_widths(path, iter(rows[1:]), len(header))])


def _read_files(sources: Sequence[Source], options: Options, notes: list[str]) -> list[RatingFile]:
    """Read rating files, with the roles of their columns, and without rows that are no ratings of outputs."""
    read = []
    path_by_system: dict[str, Path] = {}
    for source in sources:
        table = _read_table(source.path, options)
        columns = _find_roles(table, options)
        types = (table.columns[name] for name in columns.get("type", ()))
        is_direct = "z.scr" in map(str.lower, table.columns) or any("SYSTEM" in cells for cells in types)
        if "score" not in options.columns and "RAW.SCR" in table.columns:
            choice = spell("columns", "score=RAW.SCR")
            notes.append(ScopeNote(f"{table.path}: Z.SCR is compared ({choice} compares raw scores)"))
        table = _select_ratings(table, columns, notes)
        named = columns.get("system")
        names = table.get_names(named[0], "the name of a system") if named else [source.system] * table.n_rows
        known = {} if "raters" in options.own else path_by_system  # else ratings of both files would be averaged
        systems = list_row_systems(source, names, known, is_only_file=len(sources) == 1)
        read.append(RatingFile(table, columns, systems, is_direct))
    return read


def _find_roles(table: FileTable, options: Options) -> dict[str, list[str]]:
    """Return the columns of each role; raise if the item or score is missing, or if several are the score."""
    found = find_rating_columns(table.columns)
    if "type" in found:  # in Appraise's files src and tgt are languages; elsewhere they are texts
        found["scope"] = [*found.get("scope", ()), *(name for name in ("src", "tgt") if name in table.columns)]
    for role in ("system", "item", "score"):
        if (column := options.columns.get(role)) is not None:
            table.get_column(column)  # raises if there is none
            found[role] = [column]
    scores = found.get("score", [])
    if len(scores) > 1 and scores[0].lower() != "z.scr":
        ways = [spell("columns", f"score={name}") for name in scores]
        raise build_roles_error(table, f"which column is the score, {' or '.join(scores)}?", ways)
    are_errors = {"category", "severity"} <= found.keys()
    for role in ("item",) if are_errors else ("item", "score"):
        if role not in found:
            raise build_roles_error(table, f"no {role} column", [spell("columns", f"{role}=COLUMN")])
    return found


def _select_ratings(table: FileTable, columns: Mapping[str, Sequence[str]], notes: list[str]) -> FileTable:
    """Return the table without failed grades, quality controls and ratings of whole documents, with notes on these."""
    left_out = {}
    for role in filter(columns.__contains__, RATED):
        values = {*table.columns[columns[role][0]]}
        if role != "type" or values & RATED[role]:  # else a column of another kind
            left_out[columns[role][0]] = values - RATED[role]
    if {"judge", "turn"} <= {*map(str.lower, table.columns)} and "score" in columns:  # of MT-bench
        left_out[columns["score"][0]] = {"-1", "-1.0"}
    for name, values in left_out.items():
        is_rated = np.array([cell not in values for cell in table.columns[name]], np.bool_)
        if not is_rated.all():
            n_rows = format_count(int((~is_rated).sum()), "row")
            notes.append(f"{table.path}: {n_rows} left out ({name} is {' or '.join(sorted(values))})")
            table = table.select_rows(is_rated)
    return table


def _iter_rows(
    file: RatingFile, group_names: Sequence[str], items: dict[str, Mapping[str, str]]
) -> Iterator[tuple[int, str, str, str]]:
    """Yield the line, system, item and rater of each row, and add the groups of its item."""
    path, segments = file.table.path, file.columns["item"][0]
    groups = [[*file.table.get_column(name)] for name in group_names]
    rows = zip(file.table.lines, file.systems, file.get_cells("item"), file.get_cells("rater"), strict=True)
    for row, (line, system, item, rater) in enumerate(rows):
        if not system or not item:
            column = segments if system else file.columns["system"][0]
            raise InputError(f"column {column!r} is empty, expected a name", file=path, line=line)
        own = {name: cells[row] for name, cells in zip(group_names, groups, strict=True)}
        first = items.setdefault(item, own)
        if other := [name for name in own if own[name] != first[name]]:
            problem = f"item {item!r} has {own[other[0]]!r} in column {other[0]!r}, but {first[other[0]]!r} elsewhere"
            remedy = f"if these are two items, join the columns: {spell('columns', f'item={other[0]}+{segments}')}"
            raise InputError(problem, file=path, line=line, remedy=remedy)
        yield line, system, item, rater


RatingRows = Iterable[tuple[int, str, str, str]]
"""The line, system, item and rater of each row."""


def _add_scores(cells: Cells, file: RatingFile, rows: RatingRows, *, are_averaged: bool) -> None:
    """Add rows of scores; two by one rater are an error unless they are averaged."""
    lines: dict[tuple[str, ...], int] = {}
    values = file.table.get_numbers(file.columns["score"][0]).tolist()
    for (line, system, item, rater), value in zip(rows, values, strict=True):
        cells.setdefault(system, {})
        if math.isnan(value):
            continue
        first = lines.setdefault((system, item, rater), line)
        if first != line and not are_averaged:
            problem = f"system {system!r}, item {item!r} has a rating {f'by {rater!r} ' * bool(rater)}already"
            remedy = f"{spell('format', 'ratings:raters=mean')} averages several ratings, as of raters or runs"
            raise InputError(f"{problem}, on line {first}", file=file.table.path, line=line, remedy=remedy)
        add_value(cells, system, item, value + 0.0)  # -0.0 is 0


def _add_errors(cells: Cells, file: RatingFile, rows: RatingRows, weights: Mapping[str, Decimal]) -> None:
    """Add rows of MQM errors; a rater's score of an item is minus the sum of the weights of its errors."""
    penalties: dict[tuple[str, ...], Decimal] = {}
    errors = zip(file.get_cells("category"), file.get_cells("severity"), strict=True)
    for (line, *key), (category, severity) in zip(rows, errors, strict=True):
        weight = _find_weight(category.lower(), severity.lower(), weights)
        if weight is None:
            problem = f"severity {severity!r} has no weight, expected one of {', '.join(weights)}"
            remedy = f"name it so, or add the weight of critical errors: {spell('format', 'ratings:critical=10')}"
            raise InputError(problem, file=file.table.path, line=line, remedy=remedy)
        penalties[*key] = penalties.get((*key,), Decimal(0)) + weight
    for (system, item, _), penalty in penalties.items():
        add_value(cells, system, item, float(-penalty) + 0.0)


def _find_weight(category: str, severity: str, weights: Mapping[str, Decimal]) -> Decimal | None:
    """Return the weight of an error, or None for an unknown severity."""
    if severity in HARMLESS or category in HARMLESS - {""}:
        return Decimal(0)
    for (own, start), weight in SPECIAL_WEIGHTS.items():
        if severity == own and category.startswith(start):
            return weight
    return weights.get(severity)


def _describe_means(cells: Cells) -> list[str]:
    """Return a note with each system's mean over all of its own segments, where systems have different ones."""
    if len({frozenset(values) for values in cells.values()}) == 1:
        return []
    means = {system: np.mean([np.mean(own) for own in values.values()]) for system, values in cells.items() if values}
    listed = ", ".join(f"{system} {means[system]:.4f}" for system in sorted(means, key=means.__getitem__, reverse=True))
    scope = f"each pair is compared on the segments of both ({spell('missing', 'pairwise')})"
    return [f"systems have different segments: {scope}. Means over all segments of each system: {listed}"]


ITEMS = ("question_id", "prompt_id", "item_id", "conversation_id", "battle_id", "id", "item", "segment", "seg_id",
         "instruction", "prompt", "question")  # fmt: skip
"""Fields that identify a question; the first one present is used."""

VERDICTS: dict[str, float | None] = {
    **dict.fromkeys(("a", "[[a]]", "model_a", "system_a", "model_1"), 1.0),
    **dict.fromkeys(("b", "[[b]]", "model_b", "system_b", "model_2"), 0.0),
    **dict.fromkeys(("c", "[[c]]", "both", "bothbad", "both_bad", "both bad", "bothbad_vote"), 0.5),
    **dict.fromkeys(("", "error", "na", "n/a", "null", "nan", "$error$", "invalid", "-1"), None),
}
"""The first model's score by the verdict in lower case; None is no verdict. What begins with "tie" is a tie as well."""

METRIC_NAME = "win_rate"
MAX_ID_LENGTH = 40


class BattleVote(NamedTuple):
    """One judgement of two models' answers to a question; `score` is the first model's score."""

    a: str
    b: str
    score: float
    question: tuple[str, ...]
    group: tuple[str, ...]


def read_battles(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read judgements of pairs of models (Arena, AlpacaEval, tables), and return counts of their scores."""
    votes: list[BattleVote] = []
    homes: dict[str, Path] = {}
    notes: list[str] = []
    n_records = 0
    for source in sources:
        for where, record in iter_records(source.path):
            n_records += 1
            layout, a, b = _find_models(where, record, source, homes)
            if (score := _compute_score(where, record, layout, a, b)) is not None:
                group = tuple(_get_field(where, record, name) for name in options.groups)
                votes.append(BattleVote(a, b, score, _get_question(where, record, options, n_records), group))
    if not votes:
        raise InputError(f"none of {n_records:,} judgements has a winner or a tie", file=sources[0].path)
    if n_records > len(votes):
        notes.append(f"{n_records - len(votes):,} judgements without a verdict are left out")
    baseline = votes[0].a if len(homes) > 1 and len({vote.a for vote in votes}) == 1 else None
    cells, groups = _group_scores(votes, baseline)
    n_sides = 2 if baseline is None else 1  # both models of a judgement have its score
    n_values, n_repeated = (n // n_sides for n in count_repeated(cells))
    if n_values:
        repeated = f"{n_repeated:,} questions judged more than once"
        notes.append(ScopeNote(f"{n_values:,} judgements of {repeated} are averaged"))
    if baseline is not None:
        notes.append(f"{METRIC_NAME} is the win rate against {baseline!r}")
    else:
        options = replace(options, missing="pairwise", few_in_common=True)
    return build_averaged_counts(
        {METRIC_NAME: cells},
        list(cells),
        _format_ids(groups, n_sides - 1),
        groups={name: [group[k] for group in groups.values()] for k, name in enumerate(options.groups)},
        options=options,
        warnings=notes,
    )


def _find_models(where: str, record: Record, source: Source, homes: dict[str, Path]) -> tuple[BattleLayout, str, str]:
    """Return the layout and both models of a record; `homes` are the files of AlpacaEval's models so far."""
    if (layout := find_battle_layout(record)) is None:
        layouts = ", or ".join(", ".join((*layout.models, *layout.verdicts)) for layout in BATTLE_LAYOUTS)
        problem = f"{where}: expected two models and a winner; fields: {', '.join(record)}"
        raise InputError(problem, remedy=f"name the columns {layouts}")
    a, b = (str(record[key] or "").strip() for key in layout.models)
    first, second = layout.models
    if source.name is not None:
        if layout != ALPACA:
            problem = f"{where}: the models are named in the fields {first} and {second}"
            raise InputError(problem, remedy="give the file without NAME=")
        b = source.name
    if layout == ALPACA and homes.setdefault(b, source.path) != source.path:
        raise build_repeated_system_error(source.path, b, homes[b])
    if not a or not b or a == b:
        raise InputError(f"{where}: {first} is {a!r} and {second} {b!r}, expected two different models")
    return layout, a, b


def _compute_score(where: str, record: Record, layout: BattleLayout, a: str, b: str) -> float | None:
    """Return the first model's score from a record's verdicts, or None if the record has no verdict."""
    scores = [_score_verdict(where, record[name], a, b, is_preference=layout == ALPACA) for name in layout.verdicts]
    decided = [score for score in scores if score is not None]
    if len(decided) < len(scores):
        return None
    return 0.5 if layout.must_agree and len({*decided}) > 1 else sum(decided) / len(decided)


def _score_verdict(where: str, verdict: Any, a: str, b: str, *, is_preference: bool) -> float | None:
    text = "" if verdict is None else str(verdict).strip()
    meanings: list[float | None] = [float(text == a)] if text in {a, b} else []
    value = parse_number(verdict)
    if text.lower() in VERDICTS:
        meanings.append(VERDICTS[text.lower()])
    elif value is not None and (value in {1.0, 2.0} or (is_preference and (value == 0 or 1 <= value <= 2))):
        meanings.append(0.5 if value == 0 else float(2 - Decimal(repr(value))))
    elif not meanings and text.lower().startswith("tie"):
        return 0.5
    if len({*meanings}) == 1:
        return meanings[0]
    expected = "a preference from 1 to 2" if is_preference else "model_a, model_b, tie or a model's name"
    expected = "a verdict that names one model by its name and by its place" if meanings else expected
    problem = f"{where}: found the verdict {text[:MAX_ID_LENGTH]!r}, expected {expected}"
    raise InputError(problem, remedy="leave the cell empty if there is no verdict, and the row is left out")


def _get_question(where: str, record: Record, options: Options, number: int) -> tuple[str, ...]:
    name = options.id_column or next((name for name in ITEMS if name in record), None)
    if name is None:
        return (f"judgement {number}",)
    question, turn = _get_field(where, record, name), find_field(record, "turn")
    if not question:
        raise InputError(f"{where}: field {name!r} is empty, expected the question's id")
    return (question, f"turn {turn}") if turn else (question,)


def _get_field(where: str, record: Record, name: str) -> str:
    value = find_field(record, name)
    if value is None:
        raise InputError(f"{where}: no field {name!r}; fields: {', '.join(record)}")
    return value


Groups = dict[tuple[str, ...], tuple[str, ...]]
"""Groups of each item, by its key."""


def _group_scores(votes: Sequence[BattleVote], baseline: str | None) -> tuple[Cells, Groups]:
    """Return the scores of models by question, and the groups of each question.

    Without a baseline, both models of a judgement have a score, and ids begin with the pair, so that its questions are
    neighbours. Swap bits are drawn for 128 units in the order of ids, and a pair is compared only on its own questions.
    Questions that occur in several groups are distinguished by group.
    """
    pairs = [() if baseline is not None else (" / ".join(sorted((vote.a, vote.b))),) for vote in votes]
    keys = [(*pair, *vote.question) for pair, vote in zip(pairs, votes, strict=True)]
    groups = dict(zip(keys, (vote.group for vote in votes), strict=True))
    if any(groups[key] != vote.group for key, vote in zip(keys, votes, strict=True)):
        keys = [(*key, *vote.group) for key, vote in zip(keys, votes, strict=True)]
        groups = dict(zip(keys, (vote.group for vote in votes), strict=True))
    cells: Cells = {}
    for key, vote in zip(keys, votes, strict=True):
        for model, score in ((vote.a, vote.score), (vote.b, float(1 - Decimal(repr(vote.score))))):
            if model != baseline:
                add_value(cells, model, key, score)
    return cells, groups


def _format_ids(keys: Groups, question: int) -> dict[Key, str]:
    """Return an id for each key, joined from the question and the parts that differ between keys, shortened."""
    if len({len(key) for key in keys}) > 1:
        return {key: ":".join(map(_shorten, key)) for key in keys}
    first = next(iter(keys))
    positions = [k for k in range(len(first)) if k == question or any(key[k] != first[k] for key in keys)]
    return {key: ":".join(_shorten(key[k]) for k in positions) for key in keys}


def _shorten(text: str) -> str:
    if len(text) <= 2 * MAX_ID_LENGTH and "\n" not in text:
        return text
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    return f"{' '.join(text[:MAX_ID_LENGTH].split())}... {digest}"
