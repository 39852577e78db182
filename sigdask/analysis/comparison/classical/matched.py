"""Classical tests of matched pairs (t, sign and Wilcoxon), from sums of the units' differences.

With `unit`, items that depend on each other are summed before they are tested, as Yeh 2000, section 4, has it: the
tests are those of documents or topics, as the swaps are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.classical.agreement import Floats, Integers, MatchedComparisons
from sigdask.results.columns.coded import CodedColumn
from sigdask.results.table import ClassicalColumn
from sigdask.statistics.classical.sign import sign_test
from sigdask.statistics.classical.student import compute_t
from sigdask.statistics.classical.wilcoxon import EXACT_UP_TO, SignedRanks, wilcoxon_sorted

RULES = {"wilcoxon": "wilcox", "wilcoxon:pratt": "pratt"}
"""Names of Wilcoxon's test to the rule for zeros."""

ZEROS = {"wilcox": "before", "pratt": "after"}

FREEDOM = "n - 1 degrees of freedom"
CONSTANT = "not defined: all differences are the same"
NO_DIFFERENCE = "no unit differs"
TOO_FEW = "fewer than 2 units"


@dataclass(frozen=True, slots=True, eq=False)
class MatchedSums:
    """Sums, counts and ranks of the differences between units, for the tests of matched pairs: arrays of shape (n,).

    Attributes
    ----------
    unit_text : str
        What is said of the units where these are not items.
    n_units : int64
        Units that the denominator counts, or that differ.
    total, squares : float64
        Sum of the differences, and of their squares about the mean.
    wins, losses : int64
        Units in which the first system scores more, and less.
    step : float
        Sizes of differences that are no further apart are equal.
    ranks : mapping of str to SignedRanks
        By the name of the test.
    """

    unit_text: str
    n_units: Integers
    total: Floats
    squares: Floats
    wins: Integers
    losses: Integers
    step: float
    ranks: dict[str, SignedRanks] = field(default_factory=dict)

    @staticmethod
    def from_comparisons(matched: MatchedComparisons, names: Sequence[str], alternative: str) -> MatchedSums:
        """Return the sums of matched comparisons, with the ranks that the named tests need."""
        assert matched.mean is not None
        panel, column = matched.mean
        pairs = panel.pairs[matched.comparisons.row[matched.rows]]
        above = panel.compute_observed_numerators(column)
        total = (above[pairs[:, 0]] - above[pairs[:, 1]]).astype(np.float64)
        step = float(panel.count_slack_steps(column) * panel.sizes.max(initial=0))
        n_units, squares = np.full(len(pairs), matched.spread.n_units), np.zeros(len(pairs))
        wins, losses = np.zeros((2, len(pairs)), np.int64)
        rules = {name: rule for name, rule in RULES.items() if name in names}
        ranks: dict[str, list[SignedRanks]] = {name: [] for name in rules}
        empty = _find_empty_units(matched)
        for tile, d in matched.iter_differences():
            n_units[tile] += (np.abs(d[:, empty]) > step).sum(axis=1)
            mean = total[tile] / np.maximum(n_units[tile], 1)
            squares[tile] = ((d - mean[:, None]) ** 2).sum(axis=1) + (n_units[tile] - d.shape[1]) * mean**2
            wins[tile], losses[tile] = (d > step).sum(axis=1), (d < -step).sum(axis=1)
            if rules:
                d.sort(axis=1)
            for name, rule in rules.items():
                ranks[name].append(wilcoxon_sorted(d, n_units[tile], alternative, rule, step))
        unit_text = "" if matched.unit == "item" else f", by {matched.unit}"
        merged_ranks = {name: _join_ranks(blocks) for name, blocks in ranks.items()}
        return MatchedSums(unit_text, n_units, total, squares, wins, losses, step, merged_ranks)

    def student_t(self, name: str, alternative: str) -> ClassicalColumn:
        """Test the mean difference with Student's t-test."""
        n = self.n_units
        t, p = compute_t(self.total, np.maximum(self.squares, 0), n, n - 1, alternative, min_deviation=self.step)
        words = FREEDOM + self.unit_text, CONSTANT, NO_DIFFERENCE, TOO_FEW
        codes = np.select([self.n_units < 2, ~np.isnan(t), p == 1], [3, 0, 2], 1).astype(np.int32)
        n = np.where(np.isnan(p), 0, self.n_units)
        return ClassicalColumn(name, t, p, n, np.zeros_like(n), CodedColumn(codes, words))

    def sign_test(self, name: str, alternative: str) -> ClassicalColumn:
        """Test whether A wins as many units as it loses; for single 0/1 items this is McNemar's test."""
        n = self.wins + self.losses
        words = f"exact; {{dropped}} without a difference dropped{self.unit_text}"
        p = sign_test(self.wins, self.losses, alternative)
        return ClassicalColumn(
            name, self.wins.astype(np.float64), p, n, self.n_units - n, CodedColumn.from_constant(words, len(n))
        )

    def wilcoxon(self, name: str, _alternative: str) -> ClassicalColumn:
        """Test with Wilcoxon's signed-rank test."""
        ranks = self.ranks[name]
        zeros = f"{{dropped}} zeros dropped {ZEROS[RULES[name]]} ranking{self.unit_text}"
        words = (
            f"exact, ties share their ranks; {zeros}",
            f"normal approximation for more than {EXACT_UP_TO} ranks, its variance that of the tied ranks; {zeros}",
        )
        codes = (ranks.n > EXACT_UP_TO).astype(np.int32)
        return ClassicalColumn(
            name, ranks.statistic, ranks.p_value, ranks.n, self.n_units - ranks.n, CodedColumn(codes, words)
        )


TESTS: dict[str, Callable[[MatchedSums, str, str], ClassicalColumn]] = {
    "t": MatchedSums.student_t,
    "sign": MatchedSums.sign_test,
    "wilcoxon": MatchedSums.wilcoxon,
    "wilcoxon:pratt": MatchedSums.wilcoxon,
    "mcnemar": MatchedSums.sign_test,
}
"""Tests of matched pairs, by the names in `sigdask.options.MATCHED_TESTS`."""


def _find_empty_units(matched: MatchedComparisons) -> NDArray[np.intp]:
    """Return the kept units that the denominator does not count, such as references without a word."""
    assert matched.mean is not None
    panel, column = matched.mean
    fields = list(panel.metrics[column].fields)
    return np.flatnonzero(panel.values[:, 0, fields] @ np.array(panel.get_ratio(column).denominators[0]) == 0)


def _join_ranks(parts: Sequence[SignedRanks]) -> SignedRanks:
    return SignedRanks(
        np.concatenate([part.statistic for part in parts]),
        np.concatenate([part.p_value for part in parts]),
        np.concatenate([part.n for part in parts]),
    )
