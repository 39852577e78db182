"""Intervals without a test: of item scores, or of counts under any metric, in this process."""

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


def interval_of(a: Scores, b: Scores, *, sureness: IntervalSpec | None = None, seed: int = 0) -> Intervals:
    """Return the interval of the difference of two systems' mean item scores, as columns of one row.

    Parameters
    ----------
    a, b : sequence of float, length n_items
        Item scores.
    sureness : IntervalSpec, optional
        Which interval; by default that of `compare`.
    seed : int
        Of the stream.

    Examples
    --------
    >>> found = interval_of([4, 5, 4, 5, 6, 4], [1, 1, 2, 3, 3, 1], sureness=IntervalSpec("inversion", 0.9))
    >>> found.method[0], round(float(found.low[0]), 3), round(float(found.high[0]), 3)
    ('inversion', 2.0, 3.5)
    """
    return intervals_of(Counts.from_scores({"A": a, "B": b}), "mean", sureness=sureness, seed=seed)


def intervals_of(
    counts: Counts, metric: AnyMetric, *, sureness: IntervalSpec | None = None, seed: int = 0
) -> Intervals:
    """Return the intervals of all pairs of systems under a metric, in their order.

    Parameters
    ----------
    counts : Counts
        With the unit that is resampled.
    metric : str or Metric
        As in `compare_all`.
    sureness, seed
        As in `interval_of`.
    """
    wanted = CompareSpec(metrics=[metric], seed=seed).bind(counts)
    sought = IntervalJobs.of(ComparisonJobs.of(counts, wanted, second_run=False), sureness or IntervalSpec())
    return sought.columns({job: job.panel.tally(run=0, first=0, n_trials=job.n_trials) for job in sought.jobs})
