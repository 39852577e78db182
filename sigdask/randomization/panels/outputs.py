"""Panels of whole outputs, for metrics computed by a function: one pair each, and a call for each system and trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import Array, Bools, Floats, Integers
from sigdask.errors import InputError
from sigdask.io import addresses
from sigdask.metrics.base import BlackBox
from sigdask.metrics.user import check_repeatable
from sigdask.randomization.panels import RescoredPanel, draw_item_swaps, number_bits
from sigdask.randomization.panels.digests import Digests, digest_values, hash_outputs
from sigdask.randomization.panels.sums import Pair, SwapUnits
from sigdask.randomization.stream import Key
from sigdask.randomization.tallies import CountingMethod

ENUMERATED_UNITS = 12
"""Maximum number of discordant units for which a metric of whole outputs is enumerated."""

DEFAULT_TRIALS = 10_000

DEVIATION_TRIALS = 256
"""Trials that estimate a deviation, to 4.4 %. There are few because each is slow."""

SWAPS = 256
"""Trials whose swaps are drawn at a time."""


@dataclass(frozen=True, eq=False)
class OutputsPanel(RescoredPanel):
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
                remedy="give a table of the score of each item, with columns of systems and runs",
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

    @property
    def extent(self) -> tuple[int, int]:
        """Numbers of items and units, concordant ones included."""
        return len(self.a), len(np.unique(self.index))

    @cached_property
    def observed_differences(self) -> Floats:
        """Observed difference, shape (1, 1). Scores are computed again, because a random metric cannot be tested."""
        scores = tuple(self.scores[:, 0].tolist())
        check_repeatable(self.metric.name, scores, self.score(np.zeros(len(self.a), np.bool_)))
        return np.array([[scores[0] - scores[1]]])

    def iter_trial_scores(self, *, run: int, first: int, n_trials: int) -> Iterator[tuple[int, int, Floats]]:
        """Yield the pair with the scores of both systems after the swaps of some trials, shape (2, n_some)."""
        for start in range(first, first + n_trials, SWAPS):
            n_block = min(SWAPS, first + n_trials - start)
            swaps = draw_item_swaps(
                self.key, self.index, run=run, first=start, n_trials=n_block, enumerated=self.enumerated
            )
            yield 0, 0, np.array([self.score(swapped) for swapped in swaps]).T

    def compute_digests(self) -> Digests:
        """Return the digest of the pair, shape (1, 1)."""
        return digest_values([self])

    def hash_contents(self, _column: int) -> NDArray[np.uint64]:
        """Return content hashes of the outputs of both systems, shape (1, 2)."""
        return np.array([[hash_outputs(outputs, self.gold, self.index) for outputs in (self.a, self.b)]])

    @property
    def pair_scores(self) -> Floats:
        """Observed scores of both systems, shape (1, 1, 2)."""
        return self.scores[:, 0].reshape(1, 1, 2)

    @property
    def pairs(self) -> Integers:
        """Indices of the two systems, shape (1, 2)."""
        return np.array([[0, 1]])

    def select_items(self, items: Bools | Integers) -> Self:
        """Return the panel of some items, given by a mask or by indices, which may be repeated."""
        gold = None if self.gold is None else self.gold[items]
        return replace(self, a=self.a[items], b=self.b[items], gold=gold, index=self.index[items])

    def select(self, _rows: Sequence[int] | Integers, _columns: Sequence[int] | None = None) -> OutputsPanel:
        """Return the panel itself, which has one pair and one metric."""
        return self

    def build_enumeration(self, _row: int = 0, _column: int = 0) -> OutputsPanel:
        """Return the panel whose trials are all arrangements of the discordant units. The arguments are ignored."""
        return replace(self, index=number_bits(self.discordant_units, self.n_units)[self.index], enumerated=True)


def _describe_items(items: list[Any] | None) -> str:
    """Return the contents of a list given to a user's function, for errors, in the same words for all systems."""
    if items is None:
        return "None, as there is no gold standard"
    return f"a list of {len(items):,} ({', '.join(dict.fromkeys(type(item).__name__ for item in items))})"
