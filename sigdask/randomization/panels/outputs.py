"""Panels of whole outputs, for metrics computed by a function: one pair each, and a call for each system and trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import Array, Bools, Floats, Integers
from sigdask.errors import InputError
from sigdask.io import addresses
from sigdask.metrics.base import BlackBox
from sigdask.metrics.user import check_repeatable
from sigdask.randomization.kernels.scored import count_scores
from sigdask.randomization.panels import ComparedPanel
from sigdask.randomization.panels.digests import Digests, digest_values, hash_outputs
from sigdask.randomization.panels.sums import Pair, SwapUnits
from sigdask.randomization.stream import Key, draw_swap_bits
from sigdask.randomization.tallies import TAILS, CountingMethod, Tally

ENUMERATED_UNITS = 12
"""Maximum number of discordant units for which a metric of whole outputs is enumerated."""

DEFAULT_TRIALS = 10_000

DEVIATION_TRIALS = 256
"""Trials that estimate a deviation, to 4.4 %. There are few because each is slow."""

SWAPS = 256
"""Trials whose swaps are drawn at a time."""


@dataclass(frozen=True, eq=False)
class OutputsPanel(ComparedPanel):
    """Two systems' whole outputs under one metric computed by a function.

    Attributes
    ----------
    key : tuple of int
        Key of the stream.
    metric : BlackBox
        The score.
    a, b : object array, shape (n_items,)
        Outputs of the two systems.
    gold : object array, shape (n_items,), or None
        The gold standard.
    index : int64 array, shape (n_items,)
        Address of each item's unit. In an enumeration, its bit, or -1 if it needs no swap.
    n_units : int
        Number of units.
    enumerated : bool
        Whether trials are all arrangements of the discordant units instead of random ones.
    """

    key: Key
    metric: BlackBox
    a: Array
    b: Array
    gold: Array | None
    index: Integers
    n_units: int
    enumerated: bool = False

    manner: ClassVar[CountingMethod] = CountingMethod(grain=1, timed=2, vectorised=False)
    kind: ClassVar[str] = "a metric of whole outputs"
    deviation_trials: ClassVar[int] = DEVIATION_TRIALS

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return ("outputs", self.key, self.metric, self.a, self.b, self.gold, self.index, self.n_units, self.enumerated)

    @staticmethod
    def from_counts(
        counts: Counts, units: SwapUnits, metric: Any, pair: Pair, subset: Bools | None = None
    ) -> OutputsPanel:
        """Return the panel of one pair of systems in `counts`, on the items that both have."""
        if counts.replicates:
            raise InputError(
                f"metric {metric.name!r} uses whole outputs and does not support replicates",
                remedy="give one file for each system, or a metric of sums (`sigdask list metrics`)",
            )
        if counts.outputs is None:
            raise InputError(
                f"metric {metric.name!r} needs the outputs themselves, but this format has only counts or scores",
                remedy="give the outputs",
            )
        mask = counts.in_common(pair, subset)
        a, b = (counts.outputs.systems[k][mask] for k in pair)
        gold = None if counts.outputs.gold is None else counts.outputs.gold[mask]
        return OutputsPanel(units.key, metric, a, b, gold, units.index[mask], units.n_units)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of pairs and metrics."""
        return 1, 1

    @cached_property
    def discordant_units(self) -> Integers:
        """Addresses of the units in which the systems differ."""
        differs = np.fromiter((x != y for x, y in zip(self.a, self.b, strict=True)), np.bool_, len(self.a))
        return np.unique(self.index[differs])

    @property
    def n_discordant(self) -> Integers:
        """Number of units in which the systems differ, shape (1, 1)."""
        return np.array([[len(self.discordant_units)]])

    @cached_property
    def scores(self) -> Floats:
        """Observed scores, shape (2, 1)."""
        return np.array([[s] for s in self.score(np.zeros(len(self.a), np.bool_))])

    @cached_property
    def difference(self) -> float:
        """Observed difference. The scores are computed again, because a random metric cannot be tested."""
        a, b = self.scores[:, 0].tolist()
        check_repeatable(self.metric.name, (a, b), self.score(np.zeros(len(self.a), np.bool_)))
        return float(a - b)

    def score(self, swapped: Bools) -> tuple[float, float]:
        """Return the scores of both systems after the items marked in `swapped`, shape (n_items,), are swapped."""
        gold = None if self.gold is None else self.gold.tolist()
        pseudo = (np.where(swapped, self.b, self.a), np.where(swapped, self.a, self.b))
        first, second = (self._score_outputs(outputs.tolist(), gold) for outputs in pseudo)
        return first, second

    def _score_outputs(self, outputs: list[Any], gold: list[Any] | None) -> float:
        name = self.metric.name
        try:
            value: Any = self.metric.function(outputs, gold)
        except Exception as error:
            failure = addresses.describe_failure(error)
            arguments = f"{_describe_items(outputs)} and {_describe_items(gold)}"
            raise InputError(
                f"metric {name!r} failed: {failure}; it was called as f(outputs, gold) with {arguments}"
            ) from error
        try:
            score = float(value)
        except (TypeError, ValueError):
            raise InputError(f"metric {name!r} returned {value!r}, expected a number") from None
        if not np.isfinite(score):
            raise InputError(f"metric {name!r} returned {score}")
        return score

    def iter_swaps(self, *, run: int, first: int, n_trials: int) -> Iterator[Bools]:
        """Yield which items are swapped, trial by trial."""
        if self.enumerated:
            for trial in range(first, first + n_trials):
                yield (self.index >= 0) & ((trial >> np.maximum(self.index, 0)) & 1).astype(np.bool_)
            return
        bits = draw_swap_bits(self.key, run=run, first=first, n_trials=n_trials, n_units=self.n_units)
        for row in bits:
            yield row[self.index]

    @property
    def extent(self) -> tuple[int, int]:
        """Numbers of items and units, concordant ones included."""
        return len(self.a), len(np.unique(self.index))

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count exceedances of the pair in a range of trials, the same on any machine and in any partition."""
        [(a, b)] = self.compute_trial_scores(run=run, first=first, n_trials=n_trials)
        counts = np.zeros((*self.shape, len(TAILS)), np.int64)
        count_scores(a, b, np.zeros_like(a), self.difference, counts[0, 0])
        return Tally(n_trials, counts)

    def compute_trial_scores(self, *, run: int, first: int, n_trials: int) -> Floats:
        """Return the scores of both systems after the swaps of each trial, shape (1, 2, n_trials)."""
        scores = np.empty((1, 2, n_trials))
        for start in range(0, n_trials, SWAPS):
            n_block = min(SWAPS, n_trials - start)
            for k, swapped in enumerate(self.iter_swaps(run=run, first=first + start, n_trials=n_block)):
                scores[0, :, start + k] = self.score(swapped)
        return scores

    def compute_digests(self) -> Digests:
        """Return the digest of the pair, shape (1, 1)."""
        return digest_values([self])

    def hash_contents(self, _column: int) -> NDArray[np.uint64]:
        """Return content hashes of the outputs of both systems, shape (1, 2)."""
        return np.array([[hash_outputs(outputs, self.gold, self.index) for outputs in (self.a, self.b)]])

    def estimate_swap_deviations(self) -> Floats:
        """Estimate the standard deviation of the difference under swaps from the first trials, shape (1, 1)."""
        [(a, b)] = self.compute_trial_scores(run=0, first=0, n_trials=self.deviation_trials)
        return np.array([[float(np.sqrt(np.mean((a - b) ** 2)))]])  # the mean of the differences after swaps is about 0

    @property
    def pair_scores(self) -> Floats:
        """Observed scores of both systems, shape (1, 1, 2)."""
        return self.scores[:, 0].reshape(1, 1, 2)

    def select(self, _rows: Sequence[int] | Integers, _columns: Sequence[int] | None = None) -> OutputsPanel:
        """Return the panel itself, which has one pair and one metric."""
        return self

    def iter_enumerations(self, rows: Integers, _column: int = 0) -> Iterator[tuple[Integers, OutputsPanel]]:
        """Yield the pair with the panel whose trials are all arrangements of its discordant units."""
        yield rows, self.build_enumeration()

    def build_enumeration(self, _pair: int = 0, _metric: int = 0) -> OutputsPanel:
        """Return the panel whose trials are all arrangements of the discordant units. The arguments are ignored."""
        bit_of = np.full(self.n_units, -1, np.int64)
        bit_of[self.discordant_units] = np.arange(len(self.discordant_units))
        return replace(self, index=bit_of[self.index], enumerated=True)


def _describe_items(items: list[Any] | None) -> str:
    """Return the contents of a list given to a user's function, for errors, in the same words for all systems."""
    if items is None:
        return "None, as there is no gold standard"
    return f"a list of {len(items):,} ({', '.join(dict.fromkeys(type(item).__name__ for item in items))})"
