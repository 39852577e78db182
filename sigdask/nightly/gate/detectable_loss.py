"""Smallest losses that a test would detect, found by simulation: it is run on reweighted samples of the units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import cast

import numpy as np

from sigdask.analysis.power import Count, PowerQuestion, PowerSearch, PowerTarget, RejectionRule, run_searches
from sigdask.counts import Counts
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets
from sigdask.nightly.gate.rules import POWER, ComparisonKey, get_key
from sigdask.options import Alternative
from sigdask.randomization.panels.build import PanelGroups
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.power import SystemPairs, can_decide
from sigdask.results.record import Result

SAMPLES = 2_000
"""Of each power that is looked at closely."""


@dataclass(frozen=True, slots=True, eq=False)
class LossDetection:
    """Simulation of the smallest losses that the comparisons of one test set would detect.

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
    interruptible : callable
        Surrounds what may be interrupted.
    """

    counts: Counts
    metrics: Mapping[str, BoundMetric | BoundSets | BlackBox]
    by: str | None
    seed: int
    count: Count
    interruptible: Callable[[], AbstractContextManager[None]]

    def find_losses(
        self, results: Sequence[Result], systems: Sequence[str], level: float
    ) -> dict[ComparisonKey, float]:
        """Return the smallest loss that the test detects with power 0.8, for each comparison that samples can judge.

        Parameters
        ----------
        results : sequence of Result
            The comparisons, all of one alternative.
        systems : sequence of str
            Which of each would lose.
        level : float
            That p is held against.
        """
        if not results or not can_decide(level):
            return {}
        rejection = RejectionRule(cast("Alternative", results[0].alternative), level, SAMPLES)
        searches: dict[ComparisonKey, PowerSearch] = {}
        groups: dict[tuple[str, str | None], list[int]] = {}
        for k, result in enumerate(results):
            groups.setdefault((result.metric, get_key(result)[1]), []).append(k)
        for (metric, subset), members in groups.items():
            bound = self.metrics[metric]
            if isinstance(bound, BoundMetric):
                better = 1 if bound.higher_is_better else -1
                locations = self._locate_units(bound, subset, [results[k] for k in members])
                for k, (pairs, row) in zip(members, locations, strict=True):
                    side = -better if systems[k] == results[k].a else better
                    searches[get_key(results[k])] = PowerSearch(
                        PowerTarget(pairs, row, side), PowerQuestion(POWER), rejection
                    )
        with self.interruptible():
            run_searches([*searches.values()], rejection, self.count, with_first=False)
        return {
            key: loss
            for key, power_search in searches.items()
            if (loss := power_search.detectable_difference) is not None
        }

    def _locate_units(
        self, metric: BoundMetric, subset: str | None, results: Sequence[Result]
    ) -> list[tuple[SystemPairs, int]]:
        """Return, for each comparison under one metric, the panel with its units and its row in that panel."""
        system_index = {name: k for k, name in enumerate(self.counts.systems)}
        pairs = np.array([(system_index[r.a], system_index[r.b]) for r in results], np.int64)
        mask = None
        if subset is not None and self.by is not None:
            mask = np.array([value == subset for value in self.counts.group(self.by)])
        locations: dict[int, tuple[SystemPairs, int]] = {}
        units = SwapUnits.from_counts(self.counts, self.seed)
        for placed in PanelGroups.from_metrics(self.counts, [metric], pairs).build(units, mask, every_unit=True):
            system_pairs = SystemPairs(placed.panel)
            locations |= {k: (system_pairs, row) for row, k in enumerate(placed.pair_indices.tolist())}
        return [locations[k] for k in range(len(results))]
