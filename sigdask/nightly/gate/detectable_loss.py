"""Which loss a test set would detect, by simulation: samples of its own units, tilted to it, judged by the test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import cast

import numpy as np

from sigdask.analysis.power.points import Count, PowerTarget, RejectionRule
from sigdask.analysis.power.search import PowerQuestion, PowerSearch, search
from sigdask.counts import Counts
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets
from sigdask.nightly.gate.rules import POWER, Key, key_of
from sigdask.options import Alternative
from sigdask.randomization.panels.build import PanelSharing
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.power.population import SystemPairs
from sigdask.randomization.power.rejection import is_judged
from sigdask.results.record import Result

SAMPLES = 2_000
"""Of each power that is looked at closely."""


@dataclass(frozen=True, slots=True, eq=False)
class LossDetection:
    """What tells the smallest losses that the comparisons of one test set would detect.

    Attributes
    ----------
    counts : Counts
        The test set, with its unit.
    metrics : mapping of str to BoundMetric, BoundSets or BlackBox
        By name.
    by : str or None
        Column of subsets.
    seed : int
        Of the stream.
    count : callable
        Counts jobs.
    waiting : callable
        Surrounds what may be interrupted.
    """

    counts: Counts
    metrics: Mapping[str, BoundMetric | BoundSets | BlackBox]
    by: str | None
    seed: int
    count: Count
    waiting: Callable[[], AbstractContextManager[None]]

    def detected(self, results: Sequence[Result], systems: Sequence[str], level: float) -> dict[Key, float]:
        """Return the smallest loss of each comparison that is detected with power 0.8, where samples tell.

        Parameters
        ----------
        results : sequence of Result
            The comparisons, all of one alternative.
        systems : sequence of str
            Which of each would lose.
        level : float
            That p is held against.
        """
        if not results or not is_judged(level):
            return {}
        judged = RejectionRule(cast("Alternative", results[0].alternative), level, SAMPLES)
        asks: dict[Key, PowerSearch] = {}
        groups: dict[tuple[str, str | None], list[int]] = {}
        for k, result in enumerate(results):
            groups.setdefault((result.metric, key_of(result)[1]), []).append(k)
        for (metric, subset), own in groups.items():
            bound = self.metrics[metric]
            if isinstance(bound, BoundMetric):
                better = 1 if bound.higher_is_better else -1
                places = self._places(bound, subset, [results[k] for k in own])
                for k, (pairs, row) in zip(own, places, strict=True):
                    side = -better if systems[k] == results[k].a else better
                    asks[key_of(results[k])] = PowerSearch(PowerTarget(pairs, row, side), PowerQuestion(POWER), judged)
        with self.waiting():
            search([*asks.values()], judged, self.count, asked=False)
        return {key: loss for key, ask in asks.items() if (loss := ask.detected) is not None}

    def _places(
        self, metric: BoundMetric, subset: str | None, results: Sequence[Result]
    ) -> list[tuple[SystemPairs, int]]:
        """Return where the units of comparisons under one metric are."""
        place = {name: k for k, name in enumerate(self.counts.systems)}
        pairs = np.array([(place[r.a], place[r.b]) for r in results], np.int64)
        mask = None
        if subset is not None and self.by is not None:
            mask = np.array([value == subset for value in self.counts.group(self.by)])
        found: dict[int, tuple[SystemPairs, int]] = {}
        units = SwapUnits.of(self.counts, self.seed)
        for placed in PanelSharing.of(self.counts, [metric], pairs).panels(units, mask, every_unit=True):
            own = SystemPairs(placed.panel)
            found |= {k: (own, row) for row, k in enumerate(placed.of_pairs.tolist())}
        return [found[k] for k in range(len(results))]
