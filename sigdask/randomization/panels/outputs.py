"""Panels of whole outputs, for black-box metrics: one pair, one function, one call a system and trial."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import Array
from sigdask.errors import InputError
from sigdask.identity import known_as
from sigdask.metrics.base import BlackBox
from sigdask.randomization.panels.sums import Pair, Units
from sigdask.randomization.shuffles import Key, swap_bits
from sigdask.randomization.tallies import Manner

ENUMERATED_UNITS = 12
"""Discordant units up to which a black-box metric is enumerated."""

DEFAULT_TRIALS = 10_000


@known_as("OutputsPanel", "key metric a b gold index n_units enumerated")
@dataclass(frozen=True, eq=False)
class OutputsPanel:
    """Two systems' whole outputs under one black-box metric.

    Attributes
    ----------
    key : tuple of int
        Key of the stream.
    metric : BlackBox
        The score.
    a, b : object array, shape (n_items,)
        Outputs of the two systems.
    gold : object array, shape (n_items,), or None
        What was right.
    index : int64 array, shape (n_items,)
        Address of each item's unit; when enumerated, the bit of each discordant unit or -1.
    n_units : int
        Number of units.
    enumerated : bool
        Trials are all arrangements of the discordant units.
    """

    key: Key
    metric: BlackBox
    a: Array
    b: Array
    gold: Array | None
    index: NDArray[np.int64]
    n_units: int
    enumerated: bool = False

    manner: ClassVar[Manner] = Manner(grain=1, timed=2, vectorised=False)

    @staticmethod
    def of(
        counts: Counts, units: Units, metric: BlackBox, pair: Pair, subset: NDArray[np.bool_] | None = None
    ) -> OutputsPanel:
        """Take one pair out of `counts`, on the items both have."""
        if counts.replicates:
            raise InputError(
                f"metric {metric.name!r} is a black box, which takes no replicates; give one file a system, or a "
                "metric of sums (`sigdask metrics`)"
            )
        if counts.outputs is None:
            raise InputError(f"metric {metric.name!r} needs whole outputs, which this format does not keep")
        mask = counts.in_common(pair, subset)
        a, b = (counts.outputs.systems[k][mask] for k in pair)
        gold = None if counts.outputs.gold is None else counts.outputs.gold[mask]
        return OutputsPanel(units.key, metric, a, b, gold, units.index[mask], units.n_units)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of pairs and metrics."""
        return 1, 1

    @property
    def nbytes(self) -> float:
        """Size of its outputs: not known, and never small."""
        return math.inf

    @cached_property
    def discordant(self) -> NDArray[np.int64]:
        """Addresses of the units in which the systems differ."""
        differs = np.fromiter((x != y for x, y in zip(self.a, self.b, strict=True)), np.bool_, len(self.a))
        return np.unique(self.index[differs])

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Observed scores, shape (2, 1)."""
        return np.array([[s] for s in self.score(np.zeros(len(self.a), np.bool_))])

    def score(self, swapped: NDArray[np.bool_]) -> tuple[float, float]:
        """Score both pseudo-systems where the items of `swapped`, shape (n_items,), are exchanged."""
        gold = None if self.gold is None else self.gold.tolist()
        pseudo = (np.where(swapped, self.b, self.a), np.where(swapped, self.a, self.b))
        first, second = (self._one(outputs.tolist(), gold) for outputs in pseudo)
        return first, second

    def _one(self, outputs: list[Any], gold: list[Any] | None) -> float:
        try:
            score = float(self.metric.function(outputs, gold))
        except Exception as error:
            raise InputError(f"metric {self.metric.name!r} failed: {type(error).__name__}: {error}") from error
        if not np.isfinite(score):
            raise InputError(f"metric {self.metric.name!r} returned {score}")
        return score

    def swaps(self, *, run: int, first: int, n_trials: int) -> Iterator[NDArray[np.bool_]]:
        """Yield which items are exchanged, trial by trial."""
        if self.enumerated:
            for trial in range(first, first + n_trials):
                yield (self.index >= 0) & ((trial >> np.maximum(self.index, 0)) & 1).astype(np.bool_)
            return
        bits = swap_bits(self.key, run=run, first=first, n_trials=n_trials, n_units=self.n_units)
        for row in bits:
            yield row[self.index]

    def part(self, _rows: Sequence[int], _columns: Sequence[int] | None = None) -> OutputsPanel:
        """Return itself: it holds one pair and one metric."""
        return self

    def enumeration(self, _pair: int = 0, _metric: int = 0) -> OutputsPanel:
        """Return the panel of all arrangements, as other panels do of one of their pairs and metrics."""
        place = np.full(self.n_units, -1, np.int64)
        place[self.discordant] = np.arange(len(self.discordant))
        return replace(self, index=place[self.index], enumerated=True)
