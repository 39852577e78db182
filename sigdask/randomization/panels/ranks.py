"""Panels of the ranks of two systems' predicted numbers, under a metric of their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.metrics.base import BoundRanks
from sigdask.metrics.regression import CORRELATIONS, read_predictions
from sigdask.randomization.kernels.agreement import score_auc, score_average_precision, score_spearman
from sigdask.randomization.panels.agreement import OrderCounter
from sigdask.randomization.panels.cells import AgreementCells
from sigdask.randomization.panels.digests import Digests, digest_values, hash_terms, mix_bits
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sums import Pair, SwapUnits
from sigdask.randomization.stream import COLUMN, fill_counting_words, fill_swap_words
from sigdask.randomization.tallies import CountingMethod

ENUMERATED_UNITS = 16
"""Maximum number of discordant units for which all arrangements are counted."""

DEFAULT_TRIALS = 2**17

DEVIATION_TRIALS = 4096
"""Trials that estimate a deviation, to 1.1 %."""

SLAB = 256
"""Trials scored at a time."""

FIXED = COLUMN // 4
"""Address of units that are never swapped. All addresses of swapped units are lower."""


@dataclass(frozen=True, eq=False)
class RankPanel(OutputsPanel):
    """Ranks of two systems' predicted numbers under one metric of their order; arrays as in `OutputsPanel`."""

    metric: BoundRanks  # type: ignore[assignment]
    gold: Floats

    manner: ClassVar[CountingMethod] = CountingMethod(grain=64, timed=64)
    kind: ClassVar[str] = "a score of ranks"
    deviation_trials: ClassVar[int] = DEVIATION_TRIALS

    @staticmethod
    def from_counts(
        counts: Counts, units: SwapUnits, metric: Any, pair: Pair, subset: Bools | None = None
    ) -> RankPanel:
        """Return the panel of one pair of systems in `counts`, of their ranks on the items that both have.

        Ranks are swapped instead of predictions, so that the scale of a system's predictions does not matter.
        """
        mask = counts.in_common(pair, subset)
        gold, predictions = read_predictions(metric.name, counts)
        a, b = (scipy.stats.rankdata(predictions[k][mask]) for k in pair)
        return RankPanel(units.key, metric, a, b, gold[mask] + 0.0, units.index[mask], units.n_units)

    @cached_property
    def discordant_units(self) -> Integers:
        """Addresses of the units in which the systems differ."""
        return np.unique(self.index[self.a != self.b])

    @cached_property
    def scores(self) -> Floats:
        """Observed scores, shape (2, 1)."""
        return self._score(np.zeros((self.n_words, 1), np.uint32))

    @property
    def observed_differences(self) -> Floats:
        """Observed difference, shape (1, 1). No user's function computes it, which could be random."""
        return self.scores[:1] - self.scores[1:]

    @property
    def n_words(self) -> int:
        """Number of words that hold the swap bits of a trial."""
        return COLUMN // 32 if self.enumerated else -(-self.n_units // COLUMN) * (COLUMN // 32)

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of the metric's kernel between swaps and scores."""
        values, n = np.concatenate([self.a, self.b]), len(self.gold)
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1], [True][: 2 * n]]))  # of equal ones
        item = order % max(n, 1)
        codes = 2 * np.where(self.index < 0, FIXED, self.index)[item] + order // max(n, 1)
        if self.metric.statistic == "spearman":
            weights = np.rint(2 * scipy.stats.rankdata(self.gold)).astype(np.int64) - n - 1
            return codes, starts, weights[item], int((weights**2).sum())
        positive = self.gold.astype(np.int64)
        return codes, starts, positive[item], int(positive.sum())

    def _score(self, words: NDArray[np.uint32]) -> Floats:
        """Return the scores of both systems after the swaps of each trial, shape (2, n_trials)."""
        out = np.zeros((2, words.shape[1]))
        if self.metric.statistic == "kendall":
            unit = np.where(self.index < 0, FIXED, self.index)
            swaps = (words[unit >> 5] >> (unit & 31).astype(np.uint32)[:, None] & 1).astype(np.uint8)
            self._order_counter.count(swaps.T, np.array([[0, 1]]), out[None])
        else:
            kernels: dict[str, Callable[..., None]] = {"spearman": score_spearman, "AUC": score_auc}
            kernels.get(self.metric.statistic, score_average_precision)(words, *self.arguments, out)
        return out

    @cached_property
    def _order_counter(self) -> OrderCounter:
        """Counter of Kendall's tau-b, with all items in one group."""
        ranks, starts = np.column_stack([self.a, self.b]), np.array([0, len(self.gold)])
        return OrderCounter(AgreementCells(self.gold, ranks, self.index, starts, np.zeros(1, np.int64)), is_zero=True)

    def iter_trial_scores(self, *, run: int, first: int, n_trials: int) -> Iterator[tuple[int, int, Floats]]:
        """Yield the pair with the scores of both systems after the swaps of some trials, shape (2, n_some)."""
        for start in range(first, first + n_trials, SLAB):
            words = np.empty((self.n_words // 4, 4, min(SLAB, first + n_trials - start)), np.uint32)
            for column, block in enumerate(words):
                if self.enumerated:
                    fill_counting_words(start, block)
                else:
                    fill_swap_words(self.key, run, start, column, block)
            yield 0, 0, self._score(words.reshape(self.n_words, -1))

    @property
    def zero_division_scores(self) -> Floats:
        """Scores that were given in place of 0/0, and NaN for all other scores, shape (1, 1, 2)."""
        is_precision, must_vary = self.metric.statistic == "average-precision", self.metric.statistic in CORRELATIONS
        has_gold = self.gold.any() if is_precision else len(self.gold) > 0 and np.ptp(self.gold) > 0
        is_defined = np.array([has_gold and (not must_vary or np.ptp(x) > 0) for x in (self.a, self.b)])
        return np.where(is_defined, np.nan, 0.0).reshape(1, 1, 2)

    def compute_digests(self) -> Digests:
        """Return the digest of the pair, shape (1, 1), which does not depend on the order of the items."""
        return digest_values([("ranks", self.key, self.enumerated, self.metric, self.hash_contents(0))])

    def hash_contents(self, _column: int) -> NDArray[np.uint64]:
        """Return content hashes of the predictions of both systems, shape (1, 2)."""
        gold = mix_bits(self.gold.view(np.uint64))
        return np.array([[hash_terms(mix_bits(gold ^ x.view(np.uint64)), self.index) for x in (self.a, self.b)]])
