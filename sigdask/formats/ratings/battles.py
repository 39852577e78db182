"""Wins, ties and losses: each row is a judgement of two models' answers to one question.

A win counts 1, a tie one half, a loss 0. Read as they are: Chatbot Arena (model_a, model_b, winner:
model_a, model_b, tie, tie (bothbad); or winner_model_a, winner_model_b, winner_tie), MT-bench
(model_1, model_2, g1_winner, g2_winner: what does not win in both orders is a tie), AlpacaEval
annotations (generator_1, generator_2, preference: 1 to 2, 0 or 1.5 a tie), and tables of system_a,
system_b, winner.

- Two models are compared on the questions that they met in, and on no others; several judgements
  of one question (judges, orders) are averaged exactly, unless `--unit` or `--by` tells them apart.
- `battles:against=MODEL` gives the models' wins over one model instead, by question, to compare
  them with each other; AlpacaEval annotations of several models are read so.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.counts.shown import FirstLine
from sigdask.errors import InputError
from sigdask.formats.reading.averages import Cells, Key, ScoreColumn, add, averaged, repeated
from sigdask.formats.reading.json.rows import Record, first_record, lookup, number, records
from sigdask.formats.reading.options import Options, Source, twice

MODELS = (("model_a", "model_b"), ("model_1", "model_2"), ("generator_1", "generator_2"), ("system_a", "system_b"),
          ("system1", "system2"), ("system_1", "system_2"), ("model1", "model2"),
          ("model_left", "model_right"))  # fmt: skip
"""Fields of the two models."""

ALPACA = ("generator_1", "generator_2")
VERDICTS = ("winner", "preference", "verdict", "outcome", "result", "judgment", "judgement", "label", "vote")
BOTH_ORDERS = ("g1_winner", "g2_winner")
ITEMS = ("question_id", "question", "prompt_id", "item_id", "item", "id", "conversation_id", "battle_id",
         "instruction", "prompt", "segment", "seg_id")  # fmt: skip
FIRST = frozenset({"model_a", "model_1", "a", "left", "leftvote", "first", "system_a", "system_1", "system1", "model1",
                   "response_a", "output_1", "generator_1", "assistant_a", "[[a]]", "win", "model_left"})  # fmt: skip
SECOND = frozenset({"model_b", "model_2", "b", "right", "rightvote", "second", "system_b", "system_2", "system2",
                    "model2", "response_b", "output_2", "generator_2", "assistant_b", "[[b]]", "loss", "lose",
                    "model_right"})  # fmt: skip
TIES = frozenset({"tie", "ties", "tied", "draw", "both", "equal", "same", "neither", "c", "[[c]]", "tievote",
                  "bothbad_vote", "both_bad", "bothbad", "both bad", "both_good", "both good",
                  "inconsistent"})  # fmt: skip
INCONSISTENT = "inconsistent"
"""The verdict on two models of which each wins in one order; a tie, as where both orders are given."""

NO_VERDICT = frozenset({"", "error", "na", "n/a", "null", "nan", "$error$", "invalid", "-1"})
Groups = dict[tuple[str, ...], tuple[str, ...]]
"""What an item is known by, to its groups."""

WHEN = re.compile(r"(.*_)?(t_?stamp|time(_?stamp)?|date(time)?|(created|updated)(_at)?|order|position|index|idx)")
"""Columns that never tell questions apart."""

NAME = "win_rate"
LONGEST_ID = 40
SHOWN = 5


def read_battles(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read judgements; see above."""
    options.only("battles", against=())
    if gold is not None:
        raise InputError(f"--gold {gold}: format battles holds judgements and takes no gold file")
    for name in filter(WHEN.fullmatch, options.groups):
        raise InputError(
            f"column {name!r} says when, or in which order, a judgement was made. Judgements of one question are "
            "averaged, and are no questions of their own: leave it out of --unit and --by"
        )
    found = Judgements(options)
    for source in sources:
        for where, record in records(source.path):
            found.add(where, record, source)
    return found.counts()


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Say whether the first record names two models and a winner."""
    record = None if gold is not None or sources[0].path.is_dir() else first_record(sources[0].path, tables=True)
    return record is not None and _models(record) is not None and _has_verdict(record)


@dataclass(frozen=True, slots=True)
class BattleVote:
    """What one row says: `score` is the first model's."""

    a: str
    b: str
    score: float
    question: tuple[str, ...]
    group: tuple[str, ...]


@dataclass(slots=True)
class Judgements:
    """Judgements of all files."""

    options: Options
    rows: list[BattleVote] = field(default_factory=list)
    undecided: int = 0
    inconsistent: int = 0
    kinds: set[tuple[str, str]] = field(default_factory=set)
    homes: dict[str, Path] = field(default_factory=dict)

    def add(self, where: str, record: Record, source: Source) -> None:
        """Add a row; one without a verdict is counted and left out."""
        names = _models(record)
        if names is None or not _has_verdict(record):
            raise InputError(
                f"{where}: expected two models and a winner (model_a, model_b, winner); fields: {', '.join(record)}"
            )
        self.kinds.add(names)
        a, b = (str(record[key] or "").strip() for key in names)
        if source.name is not None:
            b = _named(where, names, source.name)
        if names == ALPACA and self.homes.setdefault(b, source.path) != source.path:
            raise twice(source.path, b, self.homes[b])  # a file holds the annotations of one run of a model
        if not a or not b or a == b:
            raise InputError(f"{where}: {names[0]} is {a!r} and {names[1]} {b!r}, expected two different models")
        score = _score(where, record, a, b)
        if score is None:
            self.undecided += 1
            return
        self.inconsistent += str(record.get(_verdict_name(record) or "")).strip().lower() == INCONSISTENT
        group = tuple(_group(where, record, column) for column in self.options.groups)
        self.rows.append(BattleVote(a, b, score, self._question(where, record), group))

    def counts(self) -> Counts:
        """Return head-to-head counts, or those against one model."""
        if not self.rows:
            raise InputError(f"none of {self.undecided:,} judgements has a winner or a tie")
        notes = [f"{self.undecided:,} judgements without a verdict are left out"] if self.undecided else []
        against = self._against()
        if self.inconsistent:
            notes.append(f"{self.inconsistent:,} verdicts are {INCONSISTENT!r} (not the same in both orders): ties")
        cells, groups = self._met() if against is None else self._over(against)
        sides = 2 if against is None else 1  # both models of a judgement have its score
        n_values, n_repeated = (n // sides for n in repeated(cells))
        if n_values:
            what = f"{n_values:,} judgements of {n_repeated:,} questions judged more than once are averaged"
            notes.append(FirstLine(what))
        if against is not None:
            notes.append(f"{NAME} is over {against!r}")
        options = self.options if against is not None else replace(self.options, missing="pairwise", min_items=0)
        columns = {name: [group[k] for group in groups.values()] for k, name in enumerate(self.options.groups)}
        return averaged(
            {NAME: ScoreColumn(cells)},
            list(cells),
            _ids(groups, int(against is None)),
            groups=columns,
            options=options,
            warnings=notes,
        )

    def _against(self) -> str | None:
        """Return the model that all others are held against: the one asked for, or AlpacaEval's baseline."""
        asked = self.options.own.get("against")
        if asked is None:
            firsts, seconds = {row.a for row in self.rows}, {row.b for row in self.rows}
            one = self.kinds == {ALPACA} and len(firsts) == 1 and len(seconds) > 1
            return next(iter(firsts)) if one else None
        models = {name for row in self.rows for name in (row.a, row.b)}
        if asked not in models:
            listed = ", ".join(sorted(models)[:SHOWN])
            raise InputError(f"format battles: against = {asked!r}: no such model; models: {listed}, ...")
        return asked

    def _met(self) -> tuple[Cells, Groups]:
        """Return both sides of every judgement, by question and pair.

        The pair comes first in the ids, so that its questions are neighbours: swap bits are drawn for
        128 units in the order of their ids, and a pair is compared on its own questions alone.
        """
        cells: Cells = {}
        rows = [(row, (" / ".join(sorted((row.a, row.b))), *row.question)) for row in self.rows]
        groups = _grouped(rows)
        for row, key in _told_apart(rows, groups):
            add(cells, row.a, key, row.score)
            add(cells, row.b, key, _complement(row.score))
        return cells, groups

    def _over(self, against: str) -> tuple[Cells, Groups]:
        """Return the scores over one model, by question."""
        cells: Cells = {}
        rows = [(row, row.question) for row in self.rows if against in {row.a, row.b}]
        groups = _grouped(rows)
        for row, key in _told_apart(rows, groups):
            if row.b == against:
                add(cells, row.a, key, row.score)
            else:
                add(cells, row.b, key, _complement(row.score))
        return cells, groups

    def _question(self, where: str, record: Record) -> tuple[str, ...]:
        chosen = self.options.id_column
        if chosen is not None and chosen not in record:
            raise InputError(f"{where}: no field {chosen!r}; fields: {', '.join(record)}")
        name = chosen or next((name for name in ITEMS if name in record), None)
        if name is None:
            return (f"judgement {len(self.rows) + self.undecided + 1}",)
        question = lookup(record, name)
        if not question:
            raise InputError(f"{where}: field {name!r} is empty, expected the question's id")
        turn = lookup(record, "turn")
        return (question,) if not turn else (question, f"turn {turn}")


def _models(record: Record) -> tuple[str, str] | None:
    return next((names for names in MODELS if names[0] in record and names[1] in record), None)


def _named(where: str, names: tuple[str, str], name: str) -> str:
    """Return the name given to the second model of a file of annotations; elsewhere rows name their models."""
    if names != ALPACA:
        raise InputError(
            f"{where}: the models are named in the fields {' and '.join(names)}; give the file without NAME="
        )
    return name


def _has_verdict(record: Record) -> bool:
    return _verdict_name(record) is not None or BOTH_ORDERS[0] in record or bool(_flags(record))


def _verdict_name(record: Record) -> str | None:
    return next((name for name in VERDICTS if name in record), None)


def _flags(record: Record) -> Mapping[str, str]:
    """Return the fields that flag the winner one by one, by what they stand for."""
    flags = {name.removeprefix("winner_"): name for name in record if name.startswith("winner_")}
    return flags if len(flags) > 1 else {}


def _group(where: str, record: Record, column: str) -> str:
    value = lookup(record, column)
    if value is None:
        raise InputError(f"{where}: no field {column!r}; fields: {', '.join(record)}")
    return value


def _score(where: str, record: Record, a: str, b: str) -> float | None:
    """Return the first model's score; None where there is no verdict."""
    if BOTH_ORDERS[0] in record:
        first, second = (_of_verdict(where, record.get(name), a, b, numbers="choice") for name in BOTH_ORDERS)
        return None if first is None or second is None else first if first == second else 0.5
    name = _verdict_name(record)
    if name is not None:
        return _of_verdict(where, record[name], a, b, numbers="preference" if name == "preference" else "choice")
    flagged = [what for what, flag in _flags(record).items() if number(record[flag])]
    if len(flagged) != 1:
        found = ", ".join(flagged) or "none"
        raise InputError(f"{where}: {found} of the winner_ fields flagged, expected one")
    return _of_verdict(where, flagged[0], a, b, numbers="choice")


def _of_verdict(where: str, verdict: Any, a: str, b: str, *, numbers: str) -> float | None:
    text = "" if verdict is None else str(verdict).strip()
    if text in {a, b}:
        return float(text == a)
    low = text.lower()
    if low in NO_VERDICT:
        return None
    if low in FIRST | SECOND:
        return float(low in FIRST)
    if low in TIES or low.startswith("tie"):
        return 0.5
    value = number(verdict)
    if value is not None and (value in {1.0, 2.0} or (numbers == "preference" and (value == 0 or 1 <= value <= 2))):
        return 0.5 if value == 0 else float(2 - Decimal(repr(value)))
    raise InputError(
        f"{where}: found the verdict {text[:LONGEST_ID]!r}, expected model_a, model_b, tie, a model's name"
        + (", or a preference from 1 to 2" if numbers == "preference" else "")
        + "; write it so, or leave it empty where there is no verdict (the row is then left out)"
    )


def _grouped(rows: Sequence[tuple[BattleVote, tuple[str, ...]]]) -> Groups:
    """Return the group of each question; questions in several are told apart by it."""
    groups = {key: row.group for row, key in rows}
    if all(groups[key] == row.group for row, key in rows):
        return groups
    return {(*key, *row.group): row.group for row, key in rows}


def _told_apart(
    rows: Sequence[tuple[BattleVote, tuple[str, ...]]], groups: Groups
) -> Iterator[tuple[BattleVote, tuple[str, ...]]]:
    return ((row, key if key in groups else (*key, *row.group)) for row, key in rows)


def _complement(score: float) -> float:
    return float(1 - Decimal(repr(score)))


def _ids(keys: Groups, question: int) -> dict[Key, str]:
    """Write keys as ids: what is the same in all is left out, but not the question; long texts are cut."""
    if len({len(key) for key in keys}) > 1:
        return {key: ":".join(map(_short, key)) for key in keys}
    first = next(iter(keys))
    kept = [k for k in range(len(first)) if k == question or any(key[k] != first[k] for key in keys)]
    return {key: ":".join(_short(key[k]) for k in kept) for key in keys}


def _short(text: str) -> str:
    if len(text) <= 2 * LONGEST_ID and "\n" not in text:
        return text
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    return f"{' '.join(text[:LONGEST_ID].split())}... {digest}"
