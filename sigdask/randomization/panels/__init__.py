"""Panels: sums, sets and whole outputs of the systems of a test set, and families of hypotheses.

Approximate randomization, Yeh 2000 ("More accurate tests for the statistical significance of result
differences"), after Noreen 1989: swap the outputs of each unit with probability 1/2, score again, and
count the trials whose difference is at least as extreme as the observed one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.randomization.kernels.scored import count_scores
from sigdask.randomization.stream import Key, draw_swap_bits
from sigdask.randomization.tallies import TAILS, CountingMethod, Tally
from sigdask.statistics.lattice import TIE


class AnyPanel(Protocol):
    """Interface of everything that is counted: panels of pairs and metrics, and families of hypotheses.

    Attributes
    ----------
    manner : CountingMethod
        How its work is divided into tasks.
    is_whole : bool
        Whether it is counted as a whole, like families, and not pair by pair.
    """

    manner: ClassVar[CountingMethod]
    is_whole: ClassVar[bool]

    @property
    def enumerated(self) -> bool:
        """Whether its trials are all arrangements instead of random ones."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of pairs and metrics; for a family, the number of hypotheses and 1."""

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count exceedances in trials `first` to `first + n_trials - 1` of a run."""

    def select(self, rows: Sequence[int] | Integers, columns: Sequence[int] | None = None, /) -> AnyPanel:
        """Return the panel of some of its pairs and metrics; a family returns itself."""

    def compute_digests(self) -> NDArray[np.void]:
        """Return a digest of the content of each pair and metric; of a family as a whole, shape (1, 1)."""


class ComparedPanel(AnyPanel, Protocol):
    """Interface of a panel whose pairs are compared one by one: the part that results use.

    Panels of scores that are not means inherit their common properties.

    Attributes
    ----------
    kind : str
        Kind of its scores: "sums", which families need, or another kind.
    """

    kind: ClassVar[str]
    is_whole: ClassVar[bool] = False

    @property
    def extent(self) -> tuple[int, int]:
        """Numbers of items and units, concordant ones included."""

    @property
    def n_discordant(self) -> Integers:
        """Number of units in which a pair differs in the metric's own fields, shape (n_pairs, n_metrics)."""

    def select(self, rows: Sequence[int] | Integers, columns: Sequence[int] | None = None, /) -> ComparedPanel:
        """Return the panel of some of its pairs and metrics."""

    def hash_contents(self, column: int, /) -> NDArray[np.uint64]:
        """Return content hashes of both systems of each pair, from what one metric uses, shape (n_pairs, 2)."""

    def iter_enumerations(self, rows: Integers, column: int, /) -> Iterator[tuple[Integers, AnyPanel]]:
        """Yield some pairs in groups, each with a panel whose trials are all arrangements under one metric.

        The pairs of a group have equally many discordant units. They are the rows of its panel, in this order.
        """

    def estimate_swap_deviations(self) -> Floats:
        """Return the standard deviation of each difference under swaps, shape (n_pairs, n_metrics)."""

    @property
    def pair_scores(self) -> Floats:
        """Observed scores of both systems of each pair, shape (n_pairs, n_metrics, 2)."""

    @property
    def tie_widths(self) -> Floats:
        """How far apart a pair's observed scores may be and still tie, shape (n_pairs, n_metrics)."""
        return np.asarray(float(TIE) * np.abs(self.pair_scores).sum(axis=2))

    @property
    def sign_counts(self) -> Integers:
        """Numbers of wins and losses if a mean's nonzero unit differences have one size, (n_pairs, n_metrics, 2).

        -1 if they have several sizes, and for scores that are not means.
        """
        return np.full((*self.shape, 2), -1, np.int64)

    @property
    def zero_division_scores(self) -> Floats:
        """Scores that were given in place of 0/0, and NaN for all other scores of pairs, (n_pairs, n_metrics, 2)."""
        return np.full((*self.shape, 2), np.nan)

    def is_mean(self, _column: int, /) -> bool:
        """Return whether a score is a mean with a denominator that no swap can change."""
        return False

    def get_score_step(self, _column: int, /) -> float:
        """Return the step to which a metric's item scores are rounded; 0 if they are exact."""
        return 0.0


class Uncached:
    """Base of dataclasses that are pickled without cached properties, which are computed again when needed."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]


class RescoredPanel(ComparedPanel):
    """Base of panels whose trials score both systems of each pair anew, because a score is no sum over units.

    Attributes
    ----------
    deviation_trials : int
        Number of trials that estimate standard deviations.
    trial_slack : float
        Distance within which a difference after swaps ties, in addition to relative rounding.
    """

    deviation_trials: ClassVar[int]
    trial_slack: ClassVar[float] = 0.0

    def iter_trial_scores(self, *, run: int, first: int, n_trials: int) -> Iterator[tuple[int, int, Floats]]:
        """Yield pairs and metrics, each with both systems' scores after the swaps of some trials, shape (2, n_some)."""
        raise NotImplementedError

    def select(self, rows: Sequence[int] | Integers, columns: Sequence[int] | None = None, /) -> RescoredPanel:
        """Return the panel of some of its pairs and metrics."""
        raise NotImplementedError

    def build_enumeration(self, row: int, column: int, /) -> RescoredPanel:
        """Return the panel of one pair under one metric, whose trials are all arrangements of its discordant units."""
        raise NotImplementedError

    @property
    def observed_differences(self) -> Floats:
        """Observed differences as trials compute them, shape (n_pairs, n_metrics)."""
        return np.asarray(self.pair_scores[..., 0] - self.pair_scores[..., 1])

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count exceedances of each pair and metric in a range of trials, the same on any machine, in any partition."""
        counts, observed = np.zeros((*self.shape, len(TAILS)), np.int64), self.observed_differences
        for p, m, (a, b) in self.iter_trial_scores(run=run, first=first, n_trials=n_trials):
            count_scores(a, b, np.full(len(a), self.trial_slack), observed[p, m], counts[p, m])
        return Tally(n_trials, counts)

    def estimate_swap_deviations(self) -> Floats:
        """Estimate each difference's standard deviation under swaps from the first trials, (n_pairs, n_metrics)."""
        squares = np.zeros(self.shape)
        for p, m, (a, b) in self.iter_trial_scores(run=0, first=0, n_trials=self.deviation_trials):
            squares[p, m] += float(((a - b) ** 2).sum())  # the mean of the differences after swaps is about 0
        return np.sqrt(squares / self.deviation_trials)

    def iter_enumerations(self, rows: Integers, column: int) -> Iterator[tuple[Integers, RescoredPanel]]:
        """Yield each of some pairs with the panel whose trials are all its arrangements under one metric."""
        for row in rows.tolist():
            yield np.array([row]), self.build_enumeration(row, column)


def number_bits(units: Integers, n_units: int) -> Integers:
    """Return the bit of each address in an enumeration of some units, -1 for other units, shape (n_units,)."""
    bit_of = np.full(n_units, -1, np.int64)
    bit_of[units] = np.arange(len(units))
    return bit_of


def draw_item_swaps(key: Key, index: Integers, *, run: int, first: int, n_trials: int, enumerated: bool) -> Bools:
    """Return which items each trial swaps, shape (n_trials, n_items).

    `index` has the address of each item's unit, or if all arrangements are counted, its bit or -1.
    """
    if enumerated:
        trials = np.arange(first, first + n_trials, dtype=np.int64)[:, None]
        return np.asarray((trials >> np.maximum(index, 0) & 1).astype(np.bool_) & (index >= 0))
    n_units = int(index.max(initial=-1)) + 1
    return draw_swap_bits(key, run=run, first=first, n_trials=n_trials, n_units=n_units)[:, index]
