"""From tallies to a table: p-values, their Monte Carlo intervals and checks of all comparisons at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.classical import compute_r12
from sigdask.analysis.comparison.jobs import ExactValues, JoinedComparisons, read_exact_values
from sigdask.analysis.comparison.pairs import (
    Comparisons,
    CountedCells,
    CountKind,
    KnownMetric,
    bind_metric,
    build_full_panels,
    join_cells,
)
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric, Metric
from sigdask.options import Alternative
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling import Jackknife
from sigdask.randomization.slabs import Tallies
from sigdask.randomization.tallies import TAILS
from sigdask.results.columns import RECIPE, Columns, Subset, encode, fill, repeat
from sigdask.results.table import METHODS, NOT_APPLICABLE, VERDICTS, Table
from sigdask.statistics import bounds
from sigdask.statistics.classical import sign_test
from sigdask.statistics.dependence import compare_runs
from sigdask.statistics.numbering import group_rows, number_rows

Failed = Callable[[str, str], object]
"""Called with a metric's name and the reason, if a metric of whole outputs gives no score."""

NOT_A_MEAN = "the score is not a mean of items scored 0 or 1"
REASONS = (
    "", NOT_A_MEAN, "no trials were requested", "{unit}s are swapped, not items: this is another null hypothesis",
    "not requested", "all arrangements were counted", "p is exact, so a second run checks nothing",
)  # fmt: skip
"""Reasons why a check does not apply."""
REPEATED = "the exact p is that of the sign test, and the trials are compared with it"
APPLIES, HAS_NO_MEAN, IS_IDLE, HAS_UNITS, IS_NOT_REQUESTED, IS_COMPLETE, IS_EXACT = range(len(REASONS))


def build_table(
    joined: JoinedComparisons, tallies: Tallies, n_sampled: Integers, failed: Failed | None = None
) -> Table:
    """Return the table of results of test sets with one kind of unit, from the tallies of their jobs.

    Parameters
    ----------
    joined : JoinedComparisons
        All comparisons of these test sets, under one alternative.
    tallies : mapping of Job to Tally
        Tallies of their jobs.
    n_sampled : int64 array, shape (n,)
        For each comparison, the number of sampled comparisons that are judged together and share the rate of alarms.
    failed : callable, optional
        Called if a metric of whole outputs gives no score, which is then NaN. Without this function it is an error.
    """
    sets, n, spec = joined.sets, len(joined), joined.sets[0].spec
    (n_trials, n_extreme), exact, exact_values = count_comparisons(joined, tallies, spec.alternative)
    p = bounds.compute_p_value(n_extreme, n_trials, exact=exact)
    low, high = p.copy(), p.copy()
    low[~exact], high[~exact] = bounds.clopper_pearson(n_extreme[~exact], n_trials[~exact])
    is_only_exact = (n_trials == 0) & ~np.isnan(exact_values.high)
    p = np.where(exact_values.is_p | is_only_exact, exact_values.high, p)
    low = np.where(is_only_exact, np.where(exact_values.is_p, p, exact_values.low), low)
    high = np.where(is_only_exact, p, high)
    second = read_counts(joined, "second run", tallies, TAILS.index(spec.alternative)) * (~exact & (n_trials > 0))
    has_second, least = second[0] > 0, np.maximum(second[0], 1)
    agreement = bounds.compute_agreement_p(n_extreme, second[1], np.maximum(n_trials, 1), least)
    agreement[~has_second] = np.nan
    signs, observed_columns = _observe(joined, failed)
    level = bounds.ALARM / np.maximum(n_sampled, 1)
    is_checked = has_second & ~exact_values.is_p
    second_p = np.where(is_checked, bounds.compute_bound(second[1], least), np.nan)
    why = np.select([is_checked, has_second, exact], [APPLIES, IS_EXACT, IS_COMPLETE], IS_NOT_REQUESTED)
    sign_check = _check_sign_test(joined, signs, n_trials, n_extreme, exact, level)
    exact_check = _check_exact_value(exact_values, n_trials, n_extreme, exact, sign_check, level)
    apart = np.abs(sign_check["p_value"] - exact_check["p_value"])  # NaN if there is no such check
    is_same = exact_values.is_p & (apart <= 1e-9 * exact_check["p_value"])
    checks = {
        "second run": _build_check(is_checked, agreement >= level, second_p, np.full(n, np.nan), why),
        "sign test": {
            **sign_check,
            "verdict": fill(sign_check["verdict"], is_same, NOT_APPLICABLE),
            "p_value": np.where(is_same, np.nan, sign_check["p_value"]),
            "why": fill(sign_check["why"], is_same, REPEATED),
        },
        "exact value": exact_check,
    }
    columns = {
        **_name_comparisons(joined),
        "unit": repeat(sets[0].counts.unit, n),
        "alternative": repeat(spec.alternative, n),
        **{name: joined.get_column(name) for name in ("n_items", "n_units", "n_discordant")},
        "method": encode(METHODS, exact | exact_values.is_p),
        "n_trials": n_trials,
        "n_extreme": n_extreme,
        "p_value": p,
        "p_interval.0": low,
        "p_interval.1": high,
        "r12": compute_r12(sets),
        "second_run.n_trials": second[0],
        "second_run.n_extreme": second[1],
        "second_run.agreement_p": agreement,
        "exact.p_lo": exact_values.low,
        "exact.p_hi": exact_values.high,
        "exact.method": exact_values.method,
        "exact.guarantee": exact_values.guarantee,
        **{f"checks.{name}.{key}": column for name, check in checks.items() for key, column in check.items()},
        **observed_columns,
    }
    return Table.from_columns(spec.alpha, columns)


def _name_comparisons(joined: JoinedComparisons) -> Columns:
    """Return the names of test set, subset, systems and metric of each comparison."""
    sets = joined.sets
    subsets = [[part or Subset("", "") for part in c.subsets] for c in sets]
    systems = [c.counts.systems for c in sets]
    return {
        "test_set": encode((c.counts.name for c in sets), joined.set_index),
        "subset.column": joined.look_up([[part.column for part in parts] for parts in subsets], "subset"),
        "subset.value": joined.look_up([[part.value for part in parts] for parts in subsets], "subset"),
        "a": joined.look_up(systems, "a"),
        "b": joined.look_up(systems, "b"),
        "metric": joined.look_up([[metric.name for metric in c.metrics] for c in sets], "metric"),
        "higher_is_better": np.concatenate([np.array([m.higher_is_better for m in c.metrics])[c.metric] for c in sets]),
        "signature": joined.look_up([[metric.signature or "" for metric in c.metrics] for c in sets], "metric"),
    }


def _build_check(applies: Bools, agrees: Bools, p: Floats, fit: Floats, why: NDArray[Any]) -> Columns:
    """Return the columns of a check; `why` are indices in `REASONS`."""
    verdict = encode(VERDICTS, np.where(applies, np.where(agrees, 2, 3), 1))
    return {"verdict": verdict, "p_value": p, "fit": fit, "why": encode(REASONS, why)}


def _check_sign_test(
    joined: JoinedComparisons, signs: Integers, n_trials: Integers, n_extreme: Integers, exact: Bools, level: Floats
) -> Columns:
    """Check counts against the sign test, which has the same null hypothesis for means of 0/1 items."""
    spec, n = joined.sets[0].spec, len(joined)
    is_idle = ~joined.get_column("sampled") & ~joined.get_column("enumerated")
    why = np.where(is_idle, IS_IDLE, np.where(signs[:, 0] >= 0, APPLIES, HAS_NO_MEAN))
    if joined.sets[0].counts.unit != "item":
        why = np.where(signs[:, 0] >= 0, HAS_UNITS, HAS_NO_MEAN)
    tested, fits = why == APPLIES, np.zeros(n, np.bool_)
    p, fit = np.full(n, np.nan), np.full(n, np.nan)
    p[tested] = sign_test(signs[tested, 0], signs[tested, 1], spec.alternative)
    sampled, all_counted = tested & ~exact, tested & exact
    fit[sampled] = bounds.compute_fit_p(n_extreme[sampled], n_trials[sampled], p[sampled])
    fits[sampled] = fit[sampled] >= level[sampled]
    fits[all_counted] = bounds.matches_share(n_extreme[all_counted], n_trials[all_counted], p[all_counted])
    check = _build_check(tested, fits, p, fit, why)
    return check | {"why": encode([text.format(unit=joined.sets[0].counts.unit) for text in REASONS], why)}


def _check_exact_value(
    values: ExactValues, n_trials: Integers, n_extreme: Integers, exact: Bools, sign_check: Columns, level: Floats
) -> Columns:
    """Check counts against exact values. If these are the sign test's p, return its check."""
    low, high = values.low, values.high
    is_checked = ~np.isnan(high) & ~exact & (n_trials > 0)
    has_fit = is_checked & (low == high) & (high == sign_check["p_value"]) & ~np.isnan(sign_check["fit"])
    fit, rows = np.where(has_fit, sign_check["fit"], np.nan), is_checked & ~has_fit
    fit[rows] = bounds.compute_fit_p_within(n_extreme[rows], n_trials[rows], low[rows], high[rows])
    p = np.where(is_checked, high, np.nan)
    check = _build_check(is_checked, fit >= level, p, fit, np.zeros(len(p)))
    return check | {"verdict": fill(check["verdict"], ~is_checked, "")}  # there is no such check


def _iter_cells(joined: JoinedComparisons, kind: CountKind) -> Iterator[CountedCells]:
    """Yield the cells of one kind of counts of all comparisons."""
    cells = join_cells((comparisons.cells for comparisons in joined.sets), map(len, joined.sets))
    yield from (part for part in cells if part.kind == kind)


def read_counts(joined: JoinedComparisons, kind: CountKind, tallies: Tallies, tail: int) -> Integers:
    """Return each comparison's trials and exceedances of one kind, shape (2, n); 0 where it has no such counts."""
    counts = np.zeros((2, len(joined)), np.int64)
    for part in _iter_cells(joined, kind):
        tally, row, column = tallies[part.job], part.row, part.column
        counts[0, part.index] = tally.n_trials if tally.trials is None else tally.trials[row, column]
        counts[1, part.index] = tally.counts[row, column, tail]
    return counts


def count_comparisons(
    joined: JoinedComparisons, tallies: Tallies, alternative: Alternative
) -> tuple[Integers, Bools, ExactValues]:
    """Return trials and exceedances (2, n), which of them are of all arrangements, and the exact p-values."""
    tail, sampled, enumerated = TAILS.index(alternative), joined.get_column("sampled"), joined.get_column("enumerated")
    complete = read_counts(joined, "all arrangements", tallies, tail)
    has_all = enumerated & (complete[0] == 1 << np.where(enumerated, joined.get_column("n_discordant"), 0))
    complete = complete * has_all  # 0 unless all arrangements are counted
    judged = np.where(sampled, read_counts(joined, "first run", tallies, tail), complete)
    shares = np.where(has_all, complete[1] / np.maximum(complete[0], 1), np.nan)
    exact_values = read_exact_values(shares, joined.get_column("signs"), _iter_cells(joined, "exact p"), tallies, tail)
    return judged, ~sampled & has_all, exact_values


def judge_counts(joined: JoinedComparisons, tallies: Tallies, alternative: Alternative) -> tuple[Floats, Integers]:
    """Return the unadjusted p of each comparison, exact if known, and its number of trials, shape (n,) each."""
    (n_trials, n_extreme), exact, exact_values = count_comparisons(joined, tallies, alternative)
    p = bounds.compute_p_value(n_extreme, n_trials, exact=exact)
    return np.where(exact_values.is_p, exact_values.high, p), n_trials


def _observe(joined: JoinedComparisons, failed: Failed | None) -> tuple[Integers, dict[str, Any]]:
    """Return the signs of comparisons, shape (n, 2), and columns of scores; each panel computes its scores once."""
    n, start = len(joined), 0
    scores, undefined = (np.full((2, n), np.nan) for _ in "ab")
    ties, step, signs = np.zeros(n), np.zeros(n), np.full((n, 2), -1, np.int64)
    for comparisons in joined.sets:
        for group in group_rows(number_rows(comparisons.panel)):
            panel, column = comparisons.get_panel(group[0]), comparisons.column[group]
            rows, cells = start + group, (comparisons.row[group], column)
            signs[rows], undefined[:, rows] = panel.sign_counts[cells], panel.zero_division_scores[cells].T
            step[rows] = np.array([panel.get_score_step(m) for m in range(panel.shape[1])])[column]
            try:
                pair_scores = panel.pair_scores
            except InputError as error:  # a metric of whole outputs
                if failed is None or panel.manner.vectorised:
                    raise
                failed(comparisons.get_metric(group[0]).name, str(error))
                continue
            scores[:, rows], ties[rows] = pair_scores[cells].T, panel.tie_widths[cells]
        start += len(comparisons)
    difference = scores[0] - scores[1]
    difference = np.where(np.abs(difference) <= ties, 0.0, difference)  # ties are within rounding, as after swaps
    columns = {"score_a": scores[0], "score_b": scores[1], "difference": difference, "step": step}
    return signs, columns | {"undefined_a": undefined[0], "undefined_b": undefined[1]}


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
        "runs.column": repeat(runs.column, n),
        "runs.method": repeat(str(tested.method), n),
        "runs.n_runs": np.full(n, len(runs.names)),
        "runs.is_paired": np.full(n, runs.is_shared),
        "runs.interval.0": low,
        "runs.interval.1": high,
        **{f"runs.{name}": getattr(tested, name) for name in ("p_runs", "p_value", "df", "se_items", "se_runs")},
    }


def use_recipe_intervals(intervals: Columns, runs: Columns, confidence: float) -> Columns:
    """Return the intervals with those of recipes in place of those that hold for these runs only."""
    known = ~np.isnan(runs["runs.interval.0"])
    new = {"low": runs["runs.interval.0"], "high": runs["runs.interval.1"], "n_resamples": 0}
    new |= {"percentile.0": np.nan, "percentile.1": np.nan, "confidence": confidence}
    return {
        **intervals,
        "interval.method": fill(intervals["interval.method"], known, RECIPE),
        "interval.why": fill(intervals["interval.why"], known, ""),
        **{f"interval.{name}": np.where(known, v, intervals[f"interval.{name}"]) for name, v in new.items()},
    }
