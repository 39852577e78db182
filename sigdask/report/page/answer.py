"""The card at the top: what was found, in a sentence a test set, whether it was checked, and a count of verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from sigdask.report.summary.verdict import Verdict, of
from sigdask.report.terminal.remarks import borderline
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.table import Table
from sigdask.text import count_noun

MOST_HEADLINES, MOST_SETS = 3, 200
"""Test sets whose sentence stands in the card at once, and when it is opened."""

MOST_SENTENCES = 4
"""Sentences of single metrics that stand below a headline at once."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerCard:
    """What the card says.

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
        """Return the test sets whose verdicts stand in the card at once."""
        return [*self.verdicts.items()][:MOST_HEADLINES]

    @property
    def more(self) -> list[tuple[str, Verdict]]:
        """Return those that stand in it when it is opened."""
        return [*self.verdicts.items()][MOST_HEADLINES:]

    @property
    def checks(self) -> list[tuple[str, Verdict]]:
        """Return the verdicts whose lines of checks are shown, those that disagree first; one, if all say the same."""
        of_lines: dict[str, tuple[str, Verdict]] = {}
        for name, own in sorted(self.verdicts.items(), key=lambda item: item[1].is_checked):
            of_lines.setdefault(own.checks, (name, own))
        found = [*of_lines.values()][:MOST_HEADLINES]
        return [("", own) for _, own in found] if len(of_lines) == 1 else found


def answer(sets: Mapping[str, ComparisonResults], table: Table) -> AnswerCard:
    """Return the card of all test sets, whose comparisons are in one table."""
    verdicts = {name: of(results) for name, results in islice(sets.items(), MOST_SETS)}
    causes = [cause for own in verdicts.values() for cause in own.causes]
    return AnswerCard(verdicts, len(sets), [*_counts(table, causes)])


def close(sets: Mapping[str, ComparisonResults], verdicts: Mapping[str, Verdict]) -> Sequence[int]:
    """Return the rows of all comparisons whose verdict a different seed or a few more units could change."""
    found, before = [], 0
    for name, results in sets.items():
        if name in verdicts:
            found.append(before + verdicts[name].close)
        before += len(results)
    return np.concatenate(found).tolist() if found else []


def _counts(table: Table, causes: Sequence[str]) -> Iterator[str]:
    """Count comparisons, verdicts and those that are borderline."""
    n, decision = len(table), table.decision
    kinds = {"significantly different": 1, "not significantly different": 0, "undecided": -1}
    said = [f"{(decision == code).sum():,} {name}" for name, code in kinds.items() if (decision == code).any()]
    yield count_noun(n, "comparison") + (f": {', '.join(said)} at {table.alpha:g}" if said else "")
    if causes:
        yield f"{len(causes):,} {borderline(causes)}"
