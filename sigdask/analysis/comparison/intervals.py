"""Intervals of differences and scores, effect sizes, and the jobs that count them.

By default, scores of 0 and 1 have Tango's score interval. Other means have the interval of the inverted test, which
holds all differences that the randomization test does not reject, and bootstrap intervals of both scores. Everything
else has the paired bootstrap: BCa, or percentiles where BCa is not defined. With very many units intervals are normal,
with jackknife standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import CompareSpec, Comparisons, CountedCells, build_full_panels
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.errors import InputError
from sigdask.randomization.panels import ComparedPanel
from sigdask.randomization.panels.agreement import AGREEMENTS
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sums import SUMS, Panel
from sigdask.randomization.resampling import DEFAULT_RESAMPLES as DEFAULT_OUTPUT_RESAMPLES
from sigdask.randomization.resampling import (
    EDGES,
    UNDEFINED,
    Bootstrap,
    BootstrapOutputs,
    Jackknife,
    ShiftPanel,
    compute_numerators_and_weights,
    compute_quantiles,
    compute_score_value,
    compute_share_below,
)
from sigdask.randomization.slabs import Job, Tallies
from sigdask.randomization.tallies import Tally
from sigdask.results.columns import BCA, INVERSION, METHODS, NORMAL, PERCENTILE, TANGO, Columns, encode
from sigdask.statistics.bounds import (
    ENUMERATED_UNITS,
    compute_bca_shares,
    compute_level,
    count_rejected,
    invert_test,
    wilson,
)
from sigdask.statistics.classical import compute_score_interval
from sigdask.statistics.numbering import group_rows, number_rows

DEFAULT_RESAMPLES = 10_000

AUTO = ("auto", None)
"""Kinds of intervals for which the method is chosen by the scores."""

MAX_BY_DEFAULT = 100
"""Maximum number of comparisons for which intervals are computed by default."""

NO_BCA = (
    "no resample is below the observed value, or none is above it, or units are too skewed: the correction of "
    "bias and skewness (BCa) is not defined, so these are uncorrected percentiles"
)
TOO_FEW = "an end of the interval is the smallest or the largest of so few resamples; use at least {n:,}"
WHOLE_OUTPUTS = "metrics of whole outputs are too slow for a jackknife: percentiles are not corrected for skewness"


MANY_UNITS = 10_000
"""Units above which intervals are normal by default: resampling is slow, and matters only if tails are heavy."""


DEFAULT_TRIALS = 2**17
"""Trials by default: the Monte Carlo error of an end is then below 1 % of a standard error."""

MAX_SWAPS, MIN_TRIALS = 2 * 10**8, 10_000
"""Default limit on swaps of units (a second or two of a core), and the number of trials used regardless of it."""

UNBOUNDED = "there are too few units or trials to exclude any difference at this confidence"


TIE = 2.0**-44
"""Relative difference of real numbers that may be rounding error."""


def are_matched(panel: Panel) -> Bools:
    """Return which pairs and metrics have 0/1 scores by item, shape (n_pairs, n_metrics).

    These may also be 0 and another number that both systems share, such as 0 and 100. A system with only 0 matches any
    other system. Neither a single constant other than 0 and 1 nor constant differences of another size are such scores.
    """
    result = np.zeros(panel.shape, np.bool_)
    if panel.n_units != panel.n_items:
        return result
    i, j = panel.pairs.T
    for m in np.flatnonzero(panel.linear):
        above, below = compute_numerators_and_weights(panel, int(m))
        item_score = above.max(axis=0, initial=0)  # score of a right item by system; 0 if it has none
        is_two = ((above == 0) | (above == item_score)).all(axis=0) & (above[below == 0] == 0).all(axis=0)
        is_equal_weight = bool(((below == 0) | (below == below.max(initial=0))).all())
        larger, smaller = np.maximum(item_score[i], item_score[j]), np.minimum(item_score[i], item_score[j])
        is_same = (smaller == larger) | (smaller == 0)
        value = larger / below.max(initial=1) * compute_score_value(panel, int(m))
        result[:, m] = is_two[i] & is_two[j] & is_same & is_equal_weight & (panel.slack[:, m] == 0)
        unusual = np.flatnonzero(result[:, m] & (larger != 0) & (np.abs(value - 1) > TIE))
        result[unusual, m] = ~_have_constant_means(panel, int(m), unusual)
    return result


def are_constant(panel: Panel) -> Bools:
    """Return for which pairs and metrics all units have the same difference, shape (n_pairs, n_metrics).

    Then the variance of differences is unknown. Scores that are not means count only if no unit differs.
    """
    result = panel.n_discordant == 0
    for m in np.flatnonzero(panel.linear):
        result[:, m] |= _have_constant_means(panel, int(m), np.arange(len(result)))
    return np.asarray(result)


def _have_constant_means(panel: Panel, m: int, rows: Integers) -> Bools:
    """Return for which of some pairs all units have the same difference under a metric that is a mean."""
    above, below = compute_numerators_and_weights(panel, m)
    means = above[below > 0] / below[below > 0, None]
    if not len(means):
        return np.ones(len(rows), np.bool_)
    pairs = panel.pairs[rows]
    spread = np.array([np.ptp(means[:, i] - means[:, j]) for i, j in pairs.tolist()])
    largest = np.abs(means).max(axis=0) if panel.count_slack_steps(m) else np.zeros(means.shape[1])
    return np.asarray(spread <= TIE * largest[pairs].sum(axis=1))


MIN_UNITS = 2
NO_AGREEMENT = "scores of one segment or system depend on each other, so cells cannot be resampled"
NO_SUM = "the score is of a set collected over all units, not a sum over units, so units cannot be resampled"
CONSTANT = "every unit has the same difference, so the data do not show how much differences vary"
COARSE = "scores differ so much in size that rounding hides the small ones in sums"
NO_MEAN = "the test can be inverted only for means: the effect of a shift on other scores is not known"


NO_INTERVAL = {
    "interval.low": np.nan, "interval.high": np.nan, "interval.percentile.0": np.nan, "interval.percentile.1": np.nan,
    "interval.n_resamples": 0, "interval.method": 0, "interval.why": "",
}  # fmt: skip
"""Columns of the interval of a difference, where there is none."""

PATHS = (
    "interval.low", "interval.high", "score_a_interval.0", "score_a_interval.1", "score_b_interval.0",
    "score_b_interval.1",
)  # fmt: skip
"""Columns of the ends of the intervals of the difference and of both scores."""


@dataclass(frozen=True, eq=False)
class IntervalGroup:
    """Comparisons of one panel that have intervals of one kind.

    Attributes
    ----------
    kind : str
        A key of `KINDS`.
    panel : Panel or OutputsPanel
        With all its units.
    indices : int64 array, shape (n,)
        The comparisons.
    row, column : int64 array, shape (n,)
        Pair and metric of each in the panel.
    confidence : float
        Confidence level of the intervals.
    job : Job or None
        The job to count, whose panel is built from `panel`. None if nothing is counted.
    """

    kind: str
    panel: Panel | OutputsPanel
    indices: Integers
    row: Integers
    column: Integers
    confidence: float
    job: Job | None

    def compute_columns(self, tallies: Tallies) -> Columns:
        """Return the columns of the comparisons' intervals and effects; without those of scores for some kinds."""
        columns: Columns = NO_INTERVAL | (self._compute_effects(self.panel) if isinstance(self.panel, Panel) else {})
        if self.job is None:
            return columns | KINDS[self.kind](self, self.panel)
        tally = tallies[self.job]
        if tally.n_trials == 0:
            return columns | {"interval.why": "no resample is counted yet"}
        return columns | {"interval.n_resamples": tally.n_trials} | KINDS[self.kind](self, self.job.panel, tally)

    @cached_property
    def jackknives(self) -> list[Jackknife]:
        """Scores of the panel with each unit left out, by metric."""
        assert isinstance(self.panel, Panel)
        return [Jackknife.from_panel(self.panel, m) for m in range(len(self.panel.metrics))]

    def _compute_effects(self, panel: Panel) -> Columns:
        """Return standardised differences (paired d) and skewness.

        Paired d is the difference divided by the standard deviation of the units' contributions. For a mean over units
        of equal weight, contributions are the units' differences. For other scores, they are the changes when a unit is
        left out.
        """
        errors, skewness = (
            np.stack([getattr(jackknife, name) for jackknife in self.jackknives], axis=1)[self.row, self.column]
            for name in ("error", "skewness")
        )
        difference = panel.differences[self.row, self.column]
        deviation = errors * np.sqrt(panel.n_units)
        with np.errstate(divide="ignore", invalid="ignore"):
            d = np.where(deviation > 0, difference / deviation, np.where(difference == 0, 0.0, np.nan))
        return {"paired_d": d, "interval.skewness": skewness}

    def _place_ends(self, low: Floats, high: Floats) -> Columns:
        """Return the ends of the comparisons, from those of all pairs and then all systems, (n_metrics, n_rows)."""
        i, j = len(self.panel.pairs) + self.panel.pairs[self.row].T
        ends = [end[self.column, rows] for rows in (self.row, i, j) for end in (low, high)]
        return dict(zip(PATHS, ends, strict=True))

    def resample(self, bootstrap: Bootstrap, tally: Tally) -> Columns:
        """Return intervals of the paired bootstrap: BCa if defined, otherwise percentile."""
        counts, n_rows, alpha, n = tally.counts[:, 0], bootstrap.n_rows, compute_level(self.confidence), tally.n_trials
        acceleration, steps, no_bca = np.full(len(counts), np.nan), np.zeros(len(counts)), WHOLE_OUTPUTS
        if isinstance(self.panel, Panel):
            acceleration = np.concatenate([jackknife.acceleration for jackknife in self.jackknives])
            steps = np.repeat([_compute_step(self.panel, m) for m in range(len(self.jackknives))], n_rows)
            no_bca = NO_BCA
        bca_shares = compute_bca_shares(compute_share_below(counts), acceleration, self.confidence)
        is_bca = np.isfinite(bca_shares[0])
        grid = bootstrap.origins, bootstrap.widths, steps
        plain = [compute_quantiles(counts, np.full(len(counts), share), *grid) for share in (alpha / 2, 1 - alpha / 2)]
        ends = [
            np.where(is_bca, compute_quantiles(counts, np.where(is_bca, share, alpha / 2), *grid), percentile)
            for share, percentile in zip(bca_shares, plain, strict=True)
        ]
        rows = self.column * n_rows + self.row
        has_none, n_undefined = np.isnan(ends[0][rows]), counts[rows, UNDEFINED]
        n_needed = math.ceil(round(2 / alpha, 6))
        some_undefined = [f"{k:,} of {n:,} resamples have no score; the interval uses the others" for k in n_undefined]
        why = np.where(is_bca[rows], "", no_bca).astype(object)
        why = np.where(n_undefined > 0, some_undefined, why)
        why = np.where(n < n_needed, TOO_FEW.format(n=n_needed), why)
        methods = np.where(is_bca[rows], METHODS.index(BCA), METHODS.index(PERCENTILE))
        return {
            **self._place_ends(*(end.reshape(-1, n_rows) for end in ends)),
            "interval.percentile.0": plain[0][rows],
            "interval.percentile.1": plain[1][rows],
            "interval.method": np.where(has_none, 0, methods),
            "interval.why": np.where(has_none, "no resample has a score", why),
        }

    def approximate(self, panel: Panel) -> Columns:
        """Return normal intervals of means and smooth scores of sums."""
        errors = np.stack([jackknife.error for jackknife in self.jackknives])
        reach = scipy.special.ndtri(1 - compute_level(self.confidence) / 2) * errors
        middle = np.concatenate([panel.differences, panel.scores]).T
        return {**self._place_ends(middle - reach, middle + reach), "interval.method": METHODS.index(NORMAL)}

    def invert_trials(self, shift_panel: ShiftPanel, tally: Tally) -> Columns:
        """Return intervals of means by the inverted test, from random trials."""
        n_pairs = len(self.panel.pairs)
        k = count_rejected(self.confidence, tally.n_trials, is_exact=False)
        share = k / tally.n_trials
        columns: Columns = {"interval.method": METHODS.index(INVERSION)}
        bounded = np.full(len(self.indices), k > 0)
        for side, (path, target_share) in enumerate(zip(PATHS[:2], (share, 1 - share), strict=True)):
            rows = (2 * self.column + side) * n_pairs + self.row
            shares, steps = np.full(len(rows), target_share), np.zeros(len(rows))
            origins, widths = shift_panel.origins[rows], shift_panel.widths[rows]
            ends = compute_quantiles(tally.counts[rows, 0], shares, origins, widths, steps)
            is_bounded = (k > 0) & (np.abs(ends - origins) < EDGES[-2] * widths)  # the last cell has infinite shifts
            columns[path] = np.where(is_bounded, ends, np.inf if side else -np.inf)
            bounded &= is_bounded
        return columns | {"interval.why": np.where(bounded, "", UNBOUNDED)}

    def invert_arrangements(self, panel: Panel) -> Columns:
        """Return intervals of means by the inverted test, over so few units that all arrangements are counted."""
        low, high = np.empty((2, len(self.indices)))
        for k, (row, m) in enumerate(zip(self.row.tolist(), self.column.tolist(), strict=True)):
            above, below = compute_numerators_and_weights(panel, m)
            i, j = panel.pairs[row]
            ends = invert_test(above[:, i] - above[:, j], below, self.confidence)
            low[k], high[k] = np.array(ends) * compute_score_value(panel, m)
        why = np.where(np.isfinite(low) & np.isfinite(high), "", UNBOUNDED)
        method = METHODS.index(INVERSION)
        return {"interval.low": low, "interval.high": high, "interval.method": method, "interval.why": why}

    def score_binary(self, panel: Panel) -> Columns:
        """Return intervals of 0/1 item scores: Tango's for differences, Wilson's for scores."""
        ends = np.empty((len(PATHS), len(self.indices)))
        for m in range(len(panel.metrics)):
            in_metric = self.column == m
            i, j = panel.pairs[self.row[in_metric]].T
            above, below = compute_numerators_and_weights(panel, m)
            largest, n = above.max(axis=0), np.count_nonzero(below)
            item_score = np.maximum(largest[i], largest[j])  # 0 if neither system has a right item
            item_score = np.where(item_score > 0, item_score, max(largest.max(initial=0), 1))
            worth = item_score / below.max() * compute_score_value(panel, m)
            wins, losses = panel.sign_counts[self.row[in_metric], m].T
            right = panel.compute_numerators(m, panel.totals)
            a, b = (wilson(right[side] / item_score, n, self.confidence) for side in (i, j))
            ends[:, in_metric] = np.stack([*compute_score_interval(wins, losses, n, self.confidence), *a, *b]) * worth
        return {**dict(zip(PATHS, ends, strict=True)), "interval.method": METHODS.index(TANGO)}


def _compute_step(panel: Panel, m: int) -> float:
    """Return the smallest gap between resampled means; 0 if weights differ or scores are not means."""
    if not panel.linear[m]:
        return 0.0
    _, weights = compute_numerators_and_weights(panel, m)
    return panel.compute_step_value(m) if (weights == weights[0]).all() else 0.0


KINDS: dict[str, Callable[..., Columns]] = {
    "bootstrap": IntervalGroup.resample,
    "normal": IntervalGroup.approximate,
    "inversion": IntervalGroup.invert_trials,
    "enumerated": IntervalGroup.invert_arrangements,
    TANGO: IntervalGroup.score_binary,
}
"""Methods that compute the intervals of each kind. Those of a mean's difference follow the bootstrap of its scores."""


@dataclass(frozen=True, slots=True, eq=False)
class IntervalJobs:
    """The intervals of the comparisons of one test set and unit, with their jobs.

    Attributes
    ----------
    groups : tuple of IntervalGroup
        Comparisons that have an interval.
    why : object array, shape (n_comparisons,)
        Why other comparisons have no interval; "" for those of the groups.
    confidence : float
        Confidence of all intervals.
    """

    groups: tuple[IntervalGroup, ...]
    why: NDArray[np.object_]
    confidence: float

    @staticmethod
    def from_comparisons(comparisons: Comparisons, n_together: int = 1) -> IntervalJobs | None:
        """Return the intervals and jobs of all comparisons, with the kind of interval chosen for each.

        None if no intervals are wanted; by default they are not if more than `MAX_BY_DEFAULT` comparisons are judged
        together.
        """
        spec = comparisons.spec
        if spec.interval == "none" or (spec.interval is None and n_together > MAX_BY_DEFAULT):
            return None
        panels, panel, row, column = build_full_panels(comparisons)
        groups: list[IntervalGroup] = []
        why = np.full(len(comparisons), "", object)
        for group in group_rows(number_rows(panel)):
            positions = row[group].astype(np.int64), column[group].astype(np.int64)
            group_panel = panels[int(panel[group[0]])]
            kinds = _choose_kinds(group_panel, *positions, spec, is_item=comparisons.counts.unit == "item")
            # means have the bootstrap for both scores' intervals; the interval of the difference comes later
            resampled = ("bootstrap", *(INVERTED if spec.interval in AUTO else ()))
            for kind in dict.fromkeys(("bootstrap", *kinds)):
                selected = np.isin(kinds, resampled) if kind == "bootstrap" else kinds == kind
                if kind not in KINDS:
                    why[group[selected]] = kind
                elif selected.any():
                    places = group[selected], positions[0][selected], positions[1][selected]
                    groups.append(_build_group(kind, group_panel, places, comparisons))
        return IntervalJobs(tuple(groups), why, spec.confidence)

    @property
    def cells(self) -> list[CountedCells]:
        """The comparisons' counts, in the order of the jobs."""
        counted = ((group.job, group.indices) for group in self.groups)
        return [CountedCells.from_whole(job, indices) for job, indices in counted if job is not None]

    def build_columns(self, tallies: Tallies) -> Columns:
        """Return the columns of intervals, computed from the tallies of the jobs."""
        n = len(self.why)
        columns: Columns = {path: np.full(n, np.nan) for path in (*PATHS, "paired_d", "interval.skewness")}
        columns |= {path: np.full(n, value) for path, value in NO_INTERVAL.items()} | {"interval.why": self.why.copy()}
        for group in self.groups:
            for path, values in group.compute_columns(tallies).items():
                columns[path][group.indices] = values
        methods = columns["interval.method"].astype(np.int32)
        return columns | {
            "interval.confidence": np.where(methods > 0, self.confidence, np.nan),
            "interval.method": encode(METHODS, methods),
            "interval.why": encode(columns["interval.why"]),
        }


def _find_refusal(panel: ComparedPanel) -> str | None:
    """Return why the comparisons of a panel have no interval, or None if they have one."""
    if panel.extent[1] < MIN_UNITS:
        return "one unit does not show how much units vary"
    if not isinstance(panel, OutputsPanel):
        return None if panel.kind == SUMS else NO_AGREEMENT if isinstance(panel, AGREEMENTS) else NO_SUM
    try:
        panel.scores  # noqa: B018  # asked for before anything is counted: a plan goes on without such a box
    except InputError as error:
        return str(error)
    return None


INVERTED = ("inversion", "enumerated")
"""Kinds of intervals by the inverted test."""


def _choose_kinds(
    panel: ComparedPanel, row: Integers, column: Integers, spec: CompareSpec, *, is_item: bool
) -> NDArray[np.object_]:
    """Return the kind of interval of each comparison of a panel, or the reason for having none."""
    kinds = np.full(len(row), "bootstrap", object)
    if (reason := _find_refusal(panel)) is not None:
        kinds[:] = reason
    elif not isinstance(panel, Panel):
        kinds[:] = NO_MEAN if spec.interval == "inversion" else "bootstrap"
        kinds[panel.n_discordant[row, column] == 0] = CONSTANT
    else:
        is_mean = np.array(panel.linear)[column]
        if spec.interval in AUTO and panel.n_units > MANY_UNITS and spec.resamples is None:
            kinds[:] = "normal"
        elif spec.interval != "bootstrap":
            kinds[is_mean] = "enumerated" if panel.n_units <= ENUMERATED_UNITS else "inversion"
            kinds[~is_mean] = NO_MEAN if spec.interval == "inversion" else "bootstrap"
        kinds[np.array([panel.is_coarse(m) for m in range(len(panel.metrics))])[column]] = COARSE
        kinds[are_constant(panel)[row, column]] = CONSTANT
        if is_item and spec.interval in AUTO:
            kinds[are_matched(panel)[row, column]] = TANGO
    return kinds


Places = tuple[Integers, Integers, Integers]
"""Comparisons, and their rows and columns in their panel."""


def _build_group(kind: str, panel: Any, places: Places, comparisons: Comparisons) -> IntervalGroup:
    """Return the intervals of one kind of a panel's comparisons, with a job on a panel of only these."""
    indices, row, column = places
    spec, (rows, row), (columns, column) = comparisons.spec, *(np.unique(x, return_inverse=True) for x in (row, column))
    panel, n = panel.select(rows, columns.tolist()), DEFAULT_RESAMPLES
    resampled: Bootstrap | ShiftPanel | None = None
    if kind == "bootstrap":
        is_sums = isinstance(panel, Panel)
        resampled = Bootstrap.from_panel(panel) if is_sums else BootstrapOutputs.from_panel(panel)
        n = DEFAULT_RESAMPLES if is_sums else DEFAULT_OUTPUT_RESAMPLES
    elif kind == "inversion":
        resampled, trials = ShiftPanel.from_panel(panel), int(comparisons.n_trials[indices[0]])
        affordable = min(trials, DEFAULT_TRIALS, MAX_SWAPS // panel.n_units)
        n = max(MIN_TRIALS, affordable) if spec.interval in AUTO else trials
    names = ", ".join(comparisons.metrics[k].name for k in np.unique(comparisons.metric[indices]))
    job = None if resampled is None else Job(resampled, spec.resamples or n, label=f"intervals by {names}")
    return IntervalGroup(kind, panel, indices, row, column, spec.confidence, job)
