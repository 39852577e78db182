"""Wins, ties and losses: each row is a judgement of two models' answers to one question.

A win counts 1, a tie one half, a loss 0. `LAYOUTS` declares the fields of the files that are read: Chatbot Arena,
AlpacaEval, evalscope, and tables of two systems and a winner.

Two models are compared only on the questions in which they met. Several judgements of one question (judges, orders) are
averaged exactly, unless `--unit` or `--by` separates them. `battles:against=MODEL` gives each model's wins over one
model by question, to compare them with each other. AlpacaEval annotations of several models are read so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.json_records import Record, find_field, iter_records, parse_number, read_keys
from sigdask.formats.reading.options import Options, Source, build_repeated_system_error
from sigdask.formats.reading.replicates import Cells, Key, add_value, build_averaged_counts, count_repeated
from sigdask.text import format_list


@dataclass(frozen=True, slots=True)
class BattleLayout:
    """The fields of a judgement.

    Attributes
    ----------
    models : tuple of str
        Fields that name the two models.
    verdicts : tuple of str
        Fields of the verdict, a choice of a model. The mean of two verdicts counts, of both orders of the models.
    is_preference : bool
        Whether the verdict is a number from 1 to 2.
    must_agree : bool
        Whether verdicts that differ are a tie, as in `show_result.py` of MT-bench, instead of their mean.
    """

    models: tuple[str, str]
    verdicts: tuple[str, ...]
    is_preference: bool = False
    must_agree: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields that a record must have."""
        return (*self.models, *self.verdicts)


ALPACA = BattleLayout(("generator_1", "generator_2"), ("preference",), is_preference=True)
LAYOUTS = (
    BattleLayout(("model_a", "model_b"), ("winner",)),
    BattleLayout(("model_a", "model_b"), ("win_1", "win_2")),  # evalscope, whose two games have both orders
    BattleLayout(("model_1", "model_2"), ("g1_winner", "g2_winner"), must_agree=True),  # MT-bench
    ALPACA,
    BattleLayout(("system_a", "system_b"), ("winner",)),
)
"""Layouts of judgements, of which a file has the first that fits."""

VERDICT_WORDS = ("win", "verdict", "judg", "prefer", "choice", "vote")
"""Parts of names of verdicts. A file of two models with such a field is a battle, though of an unknown layout."""

ITEMS = ("question_id", "prompt_id", "item_id", "conversation_id", "battle_id", "id", "item", "segment", "seg_id",
         "instruction", "prompt", "question")  # fmt: skip
"""Fields that identify a question; the first one present is used."""

FIRST, SECOND = (
    frozenset({mark, f"[[{mark}]]", f"model_{mark}", f"system_{mark}", f"model_{number}"})
    for mark, number in (("a", 1), ("b", 2))
)
TIES = frozenset({"c", "[[c]]", "both", "bothbad", "both_bad", "both bad", "bothbad_vote"})
"""Verdicts in lower case. Those that begin with "tie" are ties as well."""

NO_VERDICT = frozenset({"", "error", "na", "n/a", "null", "nan", "$error$", "invalid", "-1"})
Groups = dict[tuple[str, ...], tuple[str, ...]]
"""Groups of each item, by its key."""

METRIC_NAME = "win_rate"
MAX_ID_LENGTH = 40
SHOWN = 5


def read_battles(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read judgements of pairs of models (Arena, AlpacaEval, tables), and return counts of their scores."""
    judgements = Judgements(options)
    for source in sources:
        for where, record in iter_records(source.path):
            judgements.add(where, record, source)
    if not judgements.rows:
        files = format_list([str(source.path) for source in sources])
        raise InputError(f"{files}: none of {judgements.undecided:,} judgements has a winner or a tie")
    return judgements.build_counts()


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first record names two models and a winner."""
    record = dict.fromkeys(read_keys(sources[0].path))
    if find_layout(record) is not None:
        return True
    names = {*map(str.lower, record)}
    has_models = any(names >= {*layout.models} for layout in LAYOUTS)
    if has_models and any(word in name for name in names for word in VERDICT_WORDS):
        raise _build_layout_error(str(sources[0].path), record)
    return False


def find_layout(record: Record) -> BattleLayout | None:
    """Return the layout of a record, or None if it is no judgement."""
    return next((layout for layout in LAYOUTS if record.keys() >= {*layout.fields}), None)


@dataclass(frozen=True, slots=True)
class BattleVote:
    """One judgement of two models' answers to a question; `score` is the first model's score."""

    a: str
    b: str
    score: float
    question: tuple[str, ...]
    group: tuple[str, ...]


@dataclass(slots=True)
class Judgements:
    """The judgements collected from all files."""

    options: Options
    rows: list[BattleVote] = field(default_factory=list)
    undecided: int = 0
    layouts: set[BattleLayout] = field(default_factory=set)
    homes: dict[str, Path] = field(default_factory=dict)

    def add(self, where: str, record: Record, source: Source) -> None:
        """Add the judgement of one record; a judgement without a verdict is only counted."""
        layout = find_layout(record)
        if layout is None:
            raise _build_layout_error(where, record)
        self.layouts.add(layout)
        a, b = (str(record[key] or "").strip() for key in layout.models)
        if source.name is not None:
            if layout != ALPACA:
                remedy = "give the file without NAME="
                raise InputError(f"{where}: the models are named in the fields {' and '.join(layout.models)}; {remedy}")
            b = source.name
        if layout == ALPACA and self.homes.setdefault(b, source.path) != source.path:
            # a file holds the annotations of one run of a model
            raise build_repeated_system_error(source.path, b, self.homes[b])
        if not a or not b or a == b:
            names = layout.models
            raise InputError(f"{where}: {names[0]} is {a!r} and {names[1]} {b!r}, expected two different models")
        score = _compute_score(where, record, layout, a, b)
        if score is None:
            self.undecided += 1
            return
        group = tuple(_get_field(where, record, name) for name in self.options.groups)
        self.rows.append(BattleVote(a, b, score, self._get_question(where, record), group))

    def build_counts(self) -> Counts:
        """Return counts of both models' scores in each pair or, if there is a common opponent, of scores against it."""
        notes = [f"{self.undecided:,} judgements without a verdict are left out"] if self.undecided else []
        against = self._find_opponent()
        cells, groups = self._group_scores(against)
        sides = 2 if against is None else 1  # both models of a judgement have its score
        n_values, n_repeated = (n // sides for n in count_repeated(cells))
        if n_values:
            message = f"{n_values:,} judgements of {n_repeated:,} questions judged more than once are averaged"
            notes.append(ScopeNote(message))
        if against is not None:
            notes.append(f"{METRIC_NAME} is the win rate against {against!r}")
        options = self.options if against is not None else replace(self.options, missing="pairwise", few_in_common=True)
        columns = {name: [group[k] for group in groups.values()] for k, name in enumerate(self.options.groups)}
        return build_averaged_counts(
            {METRIC_NAME: cells},
            list(cells),
            _format_ids(groups, int(against is None)),
            groups=columns,
            options=options,
            warnings=notes,
        )

    def _find_opponent(self) -> str | None:
        """Return the common opponent of all models (`against`, or AlpacaEval's only baseline), or None for pairs."""
        opponent = self.options.own.get("against")
        if opponent is None:
            firsts, seconds = {row.a for row in self.rows}, {row.b for row in self.rows}
            has_baseline = self.layouts == {ALPACA} and len(firsts) == 1 and len(seconds) > 1
            return next(iter(firsts)) if has_baseline else None
        models = {name for row in self.rows for name in (row.a, row.b)}
        if opponent not in models:
            examples = ", ".join(sorted(models)[:SHOWN])
            raise InputError(f"format battles: against = {opponent!r}: no such model; models are {examples}, ...")
        return opponent

    def _group_scores(self, against: str | None) -> tuple[Cells, Groups]:
        """Return the scores of models by question, and the groups of each question.

        Without a common opponent, both models of a judgement have a score, and ids begin with the pair, so that its
        questions are neighbours. Swap bits are drawn for 128 units in the order of ids, and a pair is compared only on
        its own questions. Questions that occur in several groups are distinguished by group.
        """
        rows = [row for row in self.rows if against is None or against in {row.a, row.b}]
        pairs = [() if against is not None else (" / ".join(sorted((row.a, row.b))),) for row in rows]
        keys = [(*pair, *row.question) for pair, row in zip(pairs, rows, strict=True)]
        groups = dict(zip(keys, (row.group for row in rows), strict=True))
        if any(groups[key] != row.group for key, row in zip(keys, rows, strict=True)):
            keys = [(*key, *row.group) for key, row in zip(keys, rows, strict=True)]
            groups = dict(zip(keys, (row.group for row in rows), strict=True))
        cells: Cells = {}
        for key, row in zip(keys, rows, strict=True):
            for model, score in ((row.a, row.score), (row.b, float(1 - Decimal(repr(row.score))))):
                if model != against:
                    add_value(cells, model, key, score)
        return cells, groups

    def _get_question(self, where: str, record: Record) -> tuple[str, ...]:
        name = self.options.id_column or next((name for name in ITEMS if name in record), None)
        if name is None:
            return (f"judgement {len(self.rows) + self.undecided + 1}",)
        question, turn = _get_field(where, record, name), find_field(record, "turn")
        if not question:
            raise InputError(f"{where}: field {name!r} is empty, expected the question's id")
        return (question, f"turn {turn}") if turn else (question,)


def _get_field(where: str, record: Record, name: str) -> str:
    value = find_field(record, name)
    if value is None:
        raise InputError(f"{where}: no field {name!r}; fields: {', '.join(record)}")
    return value


def _build_layout_error(where: str, record: Record) -> InputError:
    """Return the error for a record without all fields of a layout, which names what it lacks most likely."""
    layout = max(LAYOUTS, key=lambda layout: len(record.keys() & {*layout.fields}))
    missing = [name for name in layout.fields if name not in record]
    verdict = f"{layout.models[0]}, {layout.models[1]} or tie"
    contents = {**dict.fromkeys(layout.models, "the name of a model"), "preference": "a number from 1 to 2"}
    columns = " and ".join(f"{name} with {contents.get(name, verdict)}" for name in missing)
    return InputError(
        f"{where}: expected two models and a winner, has no {' and no '.join(missing)}; fields: {', '.join(record)}",
        remedy=f"write a column {columns}",
    )


def _compute_score(where: str, record: Record, layout: BattleLayout, a: str, b: str) -> float | None:
    """Return the first model's score from a record's verdicts, or None if the record has no verdict."""
    scores = [_score_verdict(where, record[name], a, b, layout) for name in layout.verdicts]
    decided = [score for score in scores if score is not None]
    if len(decided) < len(scores):
        return None
    return 0.5 if layout.must_agree and len({*decided}) > 1 else sum(decided) / len(decided)


def _score_verdict(where: str, verdict: Any, a: str, b: str, layout: BattleLayout) -> float | None:
    text = "" if verdict is None else str(verdict).strip()
    low = text.lower()
    if text in {a, b}:
        return float(text == a)
    if low in NO_VERDICT:
        return None
    if low in TIES or low.startswith("tie"):
        return 0.5
    if low in FIRST | SECOND:
        return float(low in FIRST)
    value = parse_number(verdict)
    if value is not None and (value in {1.0, 2.0} or (layout.is_preference and (value == 0 or 1 <= value <= 2))):
        return 0.5 if value == 0 else float(2 - Decimal(repr(value)))
    expected = "a preference from 1 to 2" if layout.is_preference else "model_a, model_b, tie or a model's name"
    raise InputError(
        f"{where}: found the verdict {text[:MAX_ID_LENGTH]!r}, expected {expected}",
        remedy="leave the cell empty if there is no verdict, and the row is left out",
    )


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
