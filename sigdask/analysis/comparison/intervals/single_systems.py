"""Intervals of differences without a test, from item scores or counts, computed in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from sigdask.analysis.comparison.intervals.plan import IntervalJobs
from sigdask.analysis.comparison.jobs import ComparisonJobs
from sigdask.analysis.comparison.spec import AnyMetric, CompareSpec, IntervalSpec
from sigdask.counts import Counts
from sigdask.results.columns.intervals import Intervals

Scores = Sequence[float] | NDArray[Any]


def compute_interval(a: Scores, b: Scores, *, spec: IntervalSpec | None = None, seed: int = 0) -> Intervals:
    """Return the interval of the difference of two systems' mean item scores, as columns of one row.

    Parameters
    ----------
    a, b : sequence of float, length n_items
        Item scores.
    spec : IntervalSpec, optional
        Which interval; by default that of `compare`.
    seed : int
        Of the stream.

    Examples
    --------
    >>> found = compute_interval([4, 5, 4, 5, 6, 4], [1, 1, 2, 3, 3, 1], spec=IntervalSpec("inversion", 0.9))
    >>> found.method[0], round(float(found.low[0]), 3), round(float(found.high[0]), 3)
    ('inversion', 2.0, 3.5)
    """
    return compute_intervals(Counts.from_scores({"A": a, "B": b}), "mean", spec=spec, seed=seed)


def compute_intervals(
    counts: Counts, metric: AnyMetric, *, spec: IntervalSpec | None = None, seed: int = 0
) -> Intervals:
    """Return the intervals of the differences of all pairs of systems under a metric, in the order of pairs.

    Parameters
    ----------
    counts : Counts
        With the unit that is resampled.
    metric : str or Metric
        As in `compare_all`.
    spec, seed
        As in `compute_interval`.
    """
    compare_spec = CompareSpec(metrics=[metric], seed=seed).bind_metrics(counts)
    interval_jobs = IntervalJobs.from_comparisons(
        ComparisonJobs.from_spec(counts, compare_spec, second_run=False), spec or IntervalSpec()
    )
    return interval_jobs.build_columns(
        {job: job.panel.tally(run=0, first=0, n_trials=job.n_trials) for job in interval_jobs.jobs}
    )
