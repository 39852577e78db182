"""The specification of comparisons: metrics, pairs, units, trials and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from sigdask import metrics as metric_registry
from sigdask.analysis.comparison.pairs import bind_metric
from sigdask.counts import Counts
from sigdask.counts.checks import check_names
from sigdask.errors import InputError
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets, Metric
from sigdask.options import Method

AnyMetric = str | Metric | BoundMetric | BoundSets | BlackBox


MOST_BY_DEFAULT = 100
"""Comparisons that have intervals without being asked for."""


@dataclass(frozen=True, slots=True)
class IntervalSpec:
    """Which intervals of differences and scores are computed.

    Attributes
    ----------
    kind : {"auto", "bootstrap", "inversion", "conditional-exact"}
        auto: of scores of 0 and 1 by item Tango's, else the bootstrap's.
    confidence : float
        Of the intervals.
    resamples : int or None
        Resamples; by default what the kind takes.
    max_comparisons : int or None
        Comparisons of which there are intervals at most, all or none; None for any number.
    """

    kind: Literal["auto", "bootstrap", "inversion", "conditional-exact"] = "auto"
    confidence: float = 0.95
    resamples: int | None = None
    max_comparisons: int | None = None

    @staticmethod
    def from_options(kind: str | None, confidence: float, resamples: int | None) -> IntervalSpec | None:
        """Return the interval specification from options; None if no intervals are wanted."""
        if kind == "none":
            return None
        max_comparisons = MOST_BY_DEFAULT if kind is None else None
        return IntervalSpec(cast("Any", kind or "auto"), confidence, resamples, max_comparisons)

    def covers(self, n_comparisons: int) -> bool:
        """Return whether intervals are computed for a call with this many comparisons."""
        return self.max_comparisons is None or n_comparisons <= self.max_comparisons


@dataclass(frozen=True, slots=True)
class CompareSpec:
    """The specification of the comparisons of one test set.

    Attributes
    ----------
    metrics : sequence of str, Metric, BoundMetric, BoundSets or BlackBox
        Scores.
    pairs : sequence of (str, str), or None
        Systems to compare; None for all pairs, or all against the baseline.
    baseline : str or None
        The system that all others are compared with.
    levels : tuple of str
        Units named; the coarsest is exchanged.
    by : str or None
        Column of subsets.
    method, exact_limit, trials, seed
        As in `compare_sets`.
    has_contrasts : bool
        Show p with other units exchanged.
    tests : tuple of str
        Names of classical tests, as `statistics.classical.names.parse_tests` gives them.
    interval_spec : IntervalSpec or None
        Intervals that are wanted; None for none.
    """

    metrics: Sequence[AnyMetric]
    pairs: Sequence[tuple[str, str]] | None = None
    baseline: str | None = None
    levels: tuple[str, ...] = ()
    by: str | None = None
    method: Method = "auto"
    exact_limit: float | None = None
    trials: int | None = None
    seed: int = 0
    has_contrasts: bool = True
    tests: tuple[str, ...] = ()
    interval_spec: IntervalSpec | None = None

    def find_metrics(self, counts: Counts) -> list[Metric | BoundMetric | BoundSets | BlackBox]:
        """Return the metrics as objects; names are looked up among the built-in metrics."""
        metrics = [metric_registry.find_metric(m, counts.of_one) if isinstance(m, str) else m for m in self.metrics]
        for metric in metrics:
            if not isinstance(metric, (Metric, BoundMetric, BoundSets, BlackBox)):
                raise InputError(
                    f"metric {metric!r}: expected a name or a metric; `sigdask.metric` and `sigdask.black_box` make "
                    "metrics of functions"
                )
        return metrics

    def bind_metrics(self, counts: Counts) -> CompareSpec:
        """Return a copy with metrics bound to the data; binding may take long, so do it once for all units."""
        return replace(self, metrics=[bind_metric(m, counts) for m in self.find_metrics(counts)])


def list_pairs(counts: Counts, pairs: Sequence[tuple[str, str]] | None, baseline: str | None) -> NDArray[np.int64]:
    """Return the pairs of systems to compare, as indices, shape (n_pairs, 2)."""
    check_names(counts.systems)
    index_of = {name: k for k, name in enumerate(counts.systems)}
    for name in [n for pair in pairs or [] for n in pair] + ([baseline] if baseline is not None else []):
        if name not in index_of:
            raise InputError(f"no system {name!r}; systems: {', '.join(counts.systems)}")
    if pairs is not None:
        for a, b in pairs:
            if a == b:
                raise InputError(f"pair {a!r}, {b!r}: a system is not compared with itself")
        return np.array([(index_of[a], index_of[b]) for a, b in pairs], np.int64).reshape(-1, 2)
    if baseline is not None:
        others = np.delete(np.arange(counts.n_systems), index_of[baseline])
        return np.column_stack([others, np.full_like(others, index_of[baseline])])
    return np.column_stack(np.triu_indices(counts.n_systems, 1))
