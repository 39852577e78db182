"""The summary card at the top of the page: a sentence for each test set, checks, and verdict counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from sigdask.report.summary.verdict import Verdict, build_verdict
from sigdask.report.terminal.remarks import describe_borderline
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.table import Table
from sigdask.text import format_count

MOST_HEADLINES, MOST_SETS = 3, 200
"""Test sets whose sentence stands in the card at once, and when it is opened."""

MOST_SENTENCES = 4
"""Sentences of single metrics that stand below a headline at once."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerCard:
    """Content of the summary card.

    Attributes
    ----------
    verdicts : mapping of str to Verdict
        By test set, the first ones.
    n_sets : int
        All of them.
    counts : sequence of str
        Comparisons and their verdicts; how many are close.
    """

    verdicts: Mapping[str, Verdict]
    n_sets: int
    counts: Sequence[str]

    @property
    def first(self) -> list[tuple[str, Verdict]]:
        """Verdicts of the first test sets, which the card shows before it is opened."""
        return [*self.verdicts.items()][:MOST_HEADLINES]

    @property
    def more(self) -> list[tuple[str, Verdict]]:
        """Verdicts of the other test sets, which the card shows when it is opened."""
        return [*self.verdicts.items()][MOST_HEADLINES:]

    @property
    def checks(self) -> list[tuple[str, Verdict]]:
        """Verdicts with distinct lines on checks, one for each line, disagreements first."""
        by_line: dict[str, tuple[str, Verdict]] = {}
        for name, verdict in sorted(self.verdicts.items(), key=lambda item: item[1].is_checked):
            by_line.setdefault(verdict.checks, (name, verdict))
        distinct = [*by_line.values()][:MOST_HEADLINES]
        return [("", verdict) for _, verdict in distinct] if len(by_line) == 1 else distinct


def build_card(sets: Mapping[str, ComparisonResults], table: Table) -> AnswerCard:
    """Return the card of all test sets, given one table of their comparisons."""
    verdicts = {name: build_verdict(results) for name, results in islice(sets.items(), MOST_SETS)}
    causes = [cause for verdict in verdicts.values() for cause in verdict.causes]
    return AnswerCard(verdicts, len(sets), [*_describe_counts(table, causes)])


def list_borderline(sets: Mapping[str, ComparisonResults], verdicts: Mapping[str, Verdict]) -> Sequence[int]:
    """Return the rows of borderline results in the joined table of all test sets."""
    rows, offset = [], 0
    for name, results in sets.items():
        if name in verdicts:
            rows.append(offset + verdicts[name].close)
        offset += len(results)
    return np.concatenate(rows).tolist() if rows else []


def _describe_counts(table: Table, causes: Sequence[str]) -> Iterator[str]:
    """Yield text on the number of comparisons by verdict, and on the number of borderline results."""
    n, decision = len(table), table.decision
    kinds = {"significantly different": 1, "not significantly different": 0, "undecided": -1}
    kind_texts = [f"{(decision == code).sum():,} {name}" for name, code in kinds.items() if (decision == code).any()]
    yield format_count(n, "comparison") + (f": {', '.join(kind_texts)} at {table.alpha:g}" if kind_texts else "")
    if causes:
        yield f"{len(causes):,} {describe_borderline(causes)}"
