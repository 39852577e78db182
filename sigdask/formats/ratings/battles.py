"""Wins, ties and losses: each row is a judgement of two models' answers to one question.

A win counts 1, a tie one half, a loss 0. `LAYOUTS` declares the fields of the files that are read: Chatbot Arena,
AlpacaEval, evalscope, and tables of two systems and a winner.

Two models are compared only on the questions in which they met. Several judgements of one question (judges, orders) are
averaged exactly, unless `--unit` or `--by` separates them. AlpacaEval annotations of several models give each model's
wins over the baseline by question, to compare the models with each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.json_records import Record, find_field, iter_records, parse_number, read_keys
from sigdask.formats.reading.options import Options, Source, build_repeated_system_error
from sigdask.formats.reading.replicates import Cells, Key, add_value, build_averaged_counts, count_repeated


class BattleLayout(NamedTuple):
    """The fields of a judgement.

    Attributes
    ----------
    models : tuple of str
        Fields that name the two models.
    verdicts : tuple of str
        Fields of the verdict, a choice of a model. The mean of two verdicts counts, of both orders of the models.
    must_agree : bool
        Whether verdicts that differ are a tie, as in `show_result.py` of MT-bench, instead of their mean.
    """

    models: tuple[str, str]
    verdicts: tuple[str, ...]
    must_agree: bool = False


ALPACA = BattleLayout(("generator_1", "generator_2"), ("preference",))
"""AlpacaEval's layout, whose verdict is a number from 1 to 2; a file has the judgements of one model."""

LAYOUTS = (
    BattleLayout(("model_a", "model_b"), ("winner",)),
    BattleLayout(("model_a", "model_b"), ("win_1", "win_2")),  # evalscope, whose two games have both orders
    BattleLayout(("model_1", "model_2"), ("g1_winner", "g2_winner"), must_agree=True),  # MT-bench
    ALPACA,
    BattleLayout(("system_a", "system_b"), ("winner",)),
)
"""Layouts of judgements, of which a file has the first that fits."""

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


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first record names two models and a winner."""
    return _find_layout(dict.fromkeys(read_keys(sources[0].path))) is not None


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


def _find_layout(record: Record) -> BattleLayout | None:
    """Return the layout of a record, or None if it is no judgement."""
    return next((layout for layout in LAYOUTS if record.keys() >= {*layout.models, *layout.verdicts}), None)


def _find_models(where: str, record: Record, source: Source, homes: dict[str, Path]) -> tuple[BattleLayout, str, str]:
    """Return the layout and both models of a record; `homes` are the files of AlpacaEval's models so far."""
    if (layout := _find_layout(record)) is None:
        layouts = ", or ".join(", ".join((*layout.models, *layout.verdicts)) for layout in LAYOUTS)
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
    if text in {a, b}:
        return float(text == a)
    if text.lower() in VERDICTS:
        return VERDICTS[text.lower()]
    if text.lower().startswith("tie"):
        return 0.5
    value = parse_number(verdict)
    if value is not None and (value in {1.0, 2.0} or (is_preference and (value == 0 or 1 <= value <= 2))):
        return 0.5 if value == 0 else float(2 - Decimal(repr(value)))
    expected = "a preference from 1 to 2" if is_preference else "model_a, model_b, tie or a model's name"
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
