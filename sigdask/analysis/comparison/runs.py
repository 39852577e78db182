"""Comparisons of systems with several runs each: their scores in each run, and the tests over runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sigdask.analysis.comparison.pairs import Comparisons, KnownMetric, bind_metric, build_full_panels
from sigdask.counts.factors import group_rows, number_rows
from sigdask.counts.fields import Floats
from sigdask.metrics.base import BoundMetric, Metric
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling import Jackknife
from sigdask.results.columns import RECIPE, CodedColumn, Columns
from sigdask.statistics.dependence import compare_runs


def compute_run_scores(comparisons: Comparisons, metrics: Sequence[KnownMetric]) -> Floats | None:
    """Return the scores of both systems of each comparison in each run, shape (n, 2, n_runs).

    None if the systems have one run, or if a metric has no score of a run, such as pass@k.
    """
    counts = comparisons.counts
    if counts.runs is None or any(not isinstance(m, Metric) or m.takes_replicates for m in metrics):
        return None
    scores = []
    for run in counts.split_runs():
        bound = [bind_metric(metric, run) for metric in metrics]
        held = (metric.held if isinstance(metric, BoundMetric) else None for metric in comparisons.metrics)
        same_items = tuple(replace(b, held=mask) for b, mask in zip(bound, held, strict=True))  # type: ignore[arg-type]
        run_scores, _ = compute_scores_and_errors(replace(comparisons, counts=run, metrics=same_items))
        scores.append(run_scores)
    return np.stack(scores, axis=2) if scores else None


def compute_scores_and_errors(comparisons: Comparisons) -> tuple[Floats, Floats]:
    """Return both scores of each comparison, and the jackknife's standard error of the difference."""
    panels, panel, row, column = build_full_panels(comparisons)
    scores, errors = np.empty((len(comparisons), 2)), np.empty(len(comparisons))
    for rows in group_rows(number_rows(panel, column)):
        one, m = panels[int(panel[rows[0]])], int(column[rows[0]])
        assert isinstance(one, Panel)
        scores[rows] = one.pair_scores[row[rows], m]
        errors[rows] = Jackknife.from_panel(one, m).error[row[rows]]
    return scores, errors


def compare_all_runs(comparisons: Comparisons, scores: Floats) -> Columns:
    """Return the tests over runs and of recipes for all comparisons of a test set.

    Parameters
    ----------
    comparisons : Comparisons
        The comparisons.
    scores : float64 array, shape (n, 2, n_runs)
        As `compute_run_scores` returns them.
    """
    n, runs, spec = len(scores), comparisons.counts.runs, comparisons.spec
    assert runs is not None
    _, errors = compute_scores_and_errors(comparisons)
    tested = compare_runs(
        scores, errors, comparisons.n_units, is_paired=runs.is_shared, alternative=spec.alternative, alpha=spec.alpha
    )
    low, high = tested.compute_interval(scores[:, 0].mean(axis=1) - scores[:, 1].mean(axis=1), spec.confidence)
    return {
        "runs.column": CodedColumn.from_constant(runs.column, n),
        "runs.method": CodedColumn.from_constant(str(tested.method), n),
        "runs.n_runs": np.full(n, len(runs.names)),
        "runs.is_paired": np.full(n, runs.is_shared),
        "runs.interval.0": low,
        "runs.interval.1": high,
        **{f"runs.{name}": getattr(tested, name) for name in ("p_runs", "p_value", "df", "se_items", "se_runs")},
    }


def use_recipe_intervals(intervals: Columns, runs: Columns) -> Columns:
    """Return the intervals with those of recipes in place of those that hold for these runs only."""
    known = ~np.isnan(runs["runs.interval.0"])
    new = {"low": runs["runs.interval.0"], "high": runs["runs.interval.1"], "n_resamples": 0}
    new |= {"percentile.0": np.nan, "percentile.1": np.nan}
    return {
        **intervals,
        "interval.method": intervals["interval.method"].fill(known, RECIPE),
        "interval.why": intervals["interval.why"].fill(known, ""),
        **{f"interval.{name}": np.where(known, v, intervals[f"interval.{name}"]) for name, v in new.items()},
    }
