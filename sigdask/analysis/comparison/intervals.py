"""Intervals of differences and scores, effect sizes, and the jobs that count them.

By default, scores of 0 and 1 have Tango's score interval. Other means have the interval of the inverted test, which
holds all differences that the randomization test does not reject, and bootstrap intervals of both scores. Everything
else has the paired bootstrap: BCa, or percentiles where BCa is not defined. With very many units intervals are normal,
with jackknife standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import CompareSpec, Comparisons, CountedCells, build_full_panels
from sigdask.counts.factors import group_rows, number_rows
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
from sigdask.results.columns import (
    BCA,
    INVERSION,
    METHODS,
    NORMAL,
    PERCENTILE,
    TANGO,
    CodedColumn,
    Columns,
)
from sigdask.statistics.bounds import (
    ENUMERATED_UNITS,
    compute_bca_shares,
    compute_level,
    count_rejected,
    invert_test,
    wilson,
)
from sigdask.statistics.classical import compute_score_interval

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


def _compute_steps(panel: Panel, m: int, n_rows: int) -> Floats:
    """Return the smallest gap between resampled means, for each row; 0 if weights differ or scores are not means."""
    step = 0.0
    if panel.linear[m]:
        weights = panel.values[:, 0][:, list(panel.metrics[m].fields)] @ np.array(panel.get_ratio(m).denominators[0])
        step = panel.compute_step_value(m) if (weights == weights[0]).all() else 0.0
    return np.full(n_rows, step)


@dataclass(frozen=True, slots=True, eq=False)
class IntervalEnds:
    """Ends of bootstrap intervals (BCa if defined, otherwise percentile): arrays of shape (n,)."""

    low: Floats
    high: Floats
    plain_low: Floats
    plain_high: Floats
    is_bca: Bools
    n_undefined: Integers

    @staticmethod
    def from_counts(
        counts: Integers, acceleration: Floats, origins: Floats, widths: Floats, steps: Floats, confidence: float
    ) -> IntervalEnds:
        """Return the ends computed from histograms of resampled values, shape (n, N_CELLS)."""
        alpha = compute_level(confidence)
        low, high = compute_bca_shares(compute_share_below(counts), acceleration, confidence)
        is_bca = np.isfinite(low)
        grid = origins, widths, steps
        plain = [compute_quantiles(counts, np.full(len(counts), share), *grid) for share in (alpha / 2, 1 - alpha / 2)]
        corrected = [
            np.where(is_bca, compute_quantiles(counts, np.where(is_bca, share, alpha / 2), *grid), percentile)
            for share, percentile in zip((low, high), plain, strict=True)
        ]
        return IntervalEnds(corrected[0], corrected[1], plain[0], plain[1], is_bca, counts[:, UNDEFINED])

    def write_ends(self, columns: Columns, indices: Integers, row: Integers, a: Integers, b: Integers) -> None:
        """Write the interval ends of differences and of both systems' scores into the rows of `columns`."""
        columns["interval.low"][indices], columns["interval.high"][indices] = self.low[row], self.high[row]
        columns["interval.percentile.0"][indices] = self.plain_low[row]
        columns["interval.percentile.1"][indices] = self.plain_high[row]
        for side, rows in (("a", a), ("b", b)):
            columns[f"score_{side}_interval.0"][indices] = self.low[rows]
            columns[f"score_{side}_interval.1"][indices] = self.high[rows]
        code = np.where(self.is_bca[row], METHODS.index(BCA), METHODS.index(PERCENTILE))
        columns["interval.method"][indices] = np.where(np.isnan(self.low[row]), 0, code)

    def list_remarks(self, indices: Integers, row: Integers, n_resamples: int, confidence: float) -> dict[int, str]:
        """Return a remark for each comparison with too few resamples, with some that lack a score, or without BCa."""
        found = {}
        n_needed = math.ceil(round(2 / compute_level(confidence), 6))
        for k, end_row in zip(indices.tolist(), row.tolist(), strict=True):
            if np.isnan(self.low[end_row]):
                found[k] = "no resample has a score"
            elif n_resamples < n_needed:
                found[k] = TOO_FEW.format(n=n_needed)
            elif self.n_undefined[end_row]:
                n = int(self.n_undefined[end_row])
                found[k] = f"{n:,} of {n_resamples:,} resamples have no score; the interval uses the others"
            elif not self.is_bca[end_row]:
                found[k] = NO_BCA
        return found


MANY_UNITS = 10_000
"""Units above which intervals are normal by default: resampling is slow, and matters only if tails are heavy."""


DEFAULT_TRIALS = 2**17
"""Trials by default: the Monte Carlo error of an end is then below 1 % of a standard error."""

MAX_SWAPS, MIN_TRIALS = 2 * 10**8, 10_000
"""Default limit on swaps of units (a second or two of a core), and the number of trials used regardless of it."""

UNBOUNDED = "there are too few units or trials to exclude any difference at this confidence"


TIE = 2.0**-44
"""Relative difference of real numbers that may be rounding error."""

MAX_NUMBERS = 2**22
"""Maximum number of unit differences held at a time."""

FEW_UNITS = 1024
"""Number of units whose differences are checked first."""


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
        is_plain = (larger == 0) | (np.abs(value - 1) <= TIE)
        is_same &= is_plain if is_plain.all() else is_plain | ~_has_constant_means(panel, int(m))
        result[:, m] = is_two[i] & is_two[j] & is_same & is_equal_weight & (panel.slack[:, m] == 0)
    return result


def are_constant(panel: Panel) -> Bools:
    """Return for which pairs and metrics all units have the same difference, shape (n_pairs, n_metrics).

    Then the variance of differences is unknown. Scores that are not means count only if no unit differs.
    """
    result = panel.n_discordant == 0
    for m in np.flatnonzero(panel.linear):
        result[:, m] |= _has_constant_means(panel, int(m))
    return np.asarray(result)


def _has_constant_means(panel: Panel, m: int) -> Bools:
    """Return for which pairs all units have the same difference under a metric that is a mean, shape (n_pairs,)."""
    above, below = compute_numerators_and_weights(panel, m)
    weighed = below > 0
    if not weighed.any():
        return np.ones(len(panel.pairs), np.bool_)
    above, below = (above, below) if weighed.all() else (above[weighed], below[weighed])
    largest = np.abs(above / below[:, None]).max(axis=0) if panel.count_slack_steps(m) else np.zeros(above.shape[1])
    result = np.ones(len(panel.pairs), np.bool_)
    for units in (slice(FEW_UNITS), slice(None)):  # a few units usually suffice to see that differences vary
        pairs = np.flatnonzero(result)
        by_unit = above[units] / below[units, None] if len(pairs) else above
        size = max(MAX_NUMBERS // len(by_unit), 1)
        for start in range(0, len(pairs), size):
            some = pairs[start : start + size]
            i, j = panel.pairs[some].T
            spread = np.ptp(by_unit[:, i] - by_unit[:, j], axis=0)
            result[some] = spread <= TIE * (largest[i] + largest[j])
    return result


MIN_UNITS = 2
NO_AGREEMENT = "scores of one segment or system depend on each other, so cells cannot be resampled"
NO_SUM = "the score is of a set collected over all units, not a sum over units, so units cannot be resampled"
CONSTANT = "every unit has the same difference, so the data do not show how much differences vary"
COARSE = "scores differ so much in size that rounding hides the small ones in sums"
NO_MEAN = "the test can be inverted only for means: the effect of a shift on other scores is not known"


REASONS = (COARSE, CONSTANT, NO_MEAN)
"""Reasons why a comparison has no interval although its panel has some."""


@dataclass(frozen=True, eq=False)
class IntervalGroup:
    """Comparisons of one panel that have intervals of one kind.

    Attributes
    ----------
    kind : str
        A key of `WRITERS`.
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

    def write_intervals(self, columns: Columns, reasons: dict[int, str], tallies: Tallies) -> None:
        """Write the intervals into the comparisons' rows of `columns`, and remarks into `reasons`."""
        if self.kind in {"inversion", "enumerated"}:  # keeps bootstrap intervals of both scores
            for path in ("interval.low", "interval.high", "interval.percentile.0", "interval.percentile.1"):
                columns[path][self.indices] = np.nan
            columns["interval.method"][self.indices], columns["interval.n_resamples"][self.indices] = 0, 0
            for k in self.indices.tolist():
                reasons.pop(k, None)
        if isinstance(self.panel, Panel):
            self._write_effects(self.panel, columns)
        if self.job is None:
            WRITERS[self.kind](self, self.panel, columns, reasons, None)
        elif tallies[self.job].n_trials == 0:
            reasons |= dict.fromkeys(self.indices.tolist(), "no resample is counted yet")
        else:
            columns["interval.n_resamples"][self.indices] = tallies[self.job].n_trials
            WRITERS[self.kind](self, self.panel, columns, reasons, tallies[self.job])

    @cached_property
    def jackknives(self) -> list[Jackknife]:
        """Scores of the panel with each unit left out, by metric."""
        assert isinstance(self.panel, Panel)
        return [Jackknife.from_panel(self.panel, m) for m in range(len(self.panel.metrics))]

    def _write_effects(self, panel: Panel, columns: Columns) -> None:
        """Write standardised differences (paired d) and skewness.

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
        columns["paired_d"][self.indices] = d
        columns["interval.skewness"][self.indices] = skewness

    def write_bootstrap(self, panel: Panel, columns: Columns, reasons: dict[int, str], tally: Tally) -> None:
        """Write intervals of the paired bootstrap for scores that are functions of sums."""
        assert self.job is not None
        resampled = self.job.panel
        assert isinstance(resampled, Bootstrap)
        steps = np.concatenate([_compute_steps(panel, m, resampled.n_rows) for m in range(len(self.jackknives))])
        acceleration = np.concatenate([jackknife.acceleration for jackknife in self.jackknives])
        grid = resampled.origins, resampled.widths, steps
        ends = IntervalEnds.from_counts(tally.counts[:, 0], acceleration, *grid, self.confidence)
        start, n_pairs = self.column * resampled.n_rows, len(panel.pairs)
        i, j = panel.pairs[self.row].T
        ends.write_ends(columns, self.indices, start + self.row, start + n_pairs + i, start + n_pairs + j)
        reasons |= ends.list_remarks(self.indices, start + self.row, tally.n_trials, self.confidence)

    def write_outputs(self, _panel: OutputsPanel, columns: Columns, reasons: dict[int, str], tally: Tally) -> None:
        """Write bootstrap intervals of two systems under a metric of whole outputs."""
        assert self.job is not None
        resampled = self.job.panel
        assert isinstance(resampled, BootstrapOutputs)
        grid = resampled.origins, resampled.widths, np.zeros(3)
        ends = IntervalEnds.from_counts(tally.counts[:, 0], np.full(3, np.nan), *grid, self.confidence)
        ends.write_ends(columns, self.indices, *(np.full(len(self.indices), k) for k in range(3)))
        first = np.zeros(len(self.indices), np.int64)
        remarks = ends.list_remarks(self.indices, first, tally.n_trials, self.confidence)
        reasons |= {k: WHOLE_OUTPUTS if remark == NO_BCA else remark for k, remark in remarks.items()}

    def write_normal(self, panel: Panel, columns: Columns, _reasons: dict[int, str], _tally: None) -> None:
        """Write normal intervals of means and smooth scores of sums."""
        row, column = self.row, self.column
        errors = np.stack([jackknife.error for jackknife in self.jackknives], axis=1)
        reach = scipy.special.ndtri(1 - compute_level(self.confidence) / 2) * errors
        n_pairs, (i, j), scores = len(panel.pairs), panel.pairs[row].T, panel.pair_scores[row, column]
        for low, high, middle, reach_rows in (
            (columns["interval.low"], columns["interval.high"], panel.differences[row, column], row),
            (columns["score_a_interval.0"], columns["score_a_interval.1"], scores[:, 0], n_pairs + i),
            (columns["score_b_interval.0"], columns["score_b_interval.1"], scores[:, 1], n_pairs + j),
        ):
            low[self.indices] = middle - reach[reach_rows, column]
            high[self.indices] = middle + reach[reach_rows, column]
        columns["interval.method"][self.indices] = METHODS.index(NORMAL)

    def write_inversion(self, panel: Panel, columns: Columns, reasons: dict[int, str], tally: Tally) -> None:
        """Write intervals of means by the inverted test, from random trials."""
        assert self.job is not None
        shift_panel = self.job.panel
        assert isinstance(shift_panel, ShiftPanel)
        k = count_rejected(self.confidence, tally.n_trials, is_exact=False)
        share = k / tally.n_trials
        for side, ends_column, target_share, unbounded in (
            (0, columns["interval.low"], share, -np.inf),
            (1, columns["interval.high"], 1 - share, np.inf),
        ):
            rows = (2 * self.column + side) * len(panel.pairs) + self.row
            shares, steps = np.full(len(rows), target_share), np.zeros(len(rows))
            origins, widths = shift_panel.origins[rows], shift_panel.widths[rows]
            ends = compute_quantiles(tally.counts[rows, 0], shares, origins, widths, steps)
            is_bounded = (k > 0) & (np.abs(ends - origins) < EDGES[-2] * widths)  # the last cell has infinite shifts
            ends_column[self.indices] = np.where(is_bounded, ends, unbounded)
            reasons |= dict.fromkeys(self.indices[~is_bounded].tolist(), UNBOUNDED)
        columns["interval.method"][self.indices] = METHODS.index(INVERSION)

    def write_enumerated(self, panel: Panel, columns: Columns, reasons: dict[int, str], _tally: None) -> None:
        """Write intervals of means by the inverted test, over so few units that all arrangements are counted."""
        for k, row, m in zip(self.indices.tolist(), self.row.tolist(), self.column.tolist(), strict=True):
            above, below = compute_numerators_and_weights(panel, m)
            i, j = panel.pairs[row]
            ends = invert_test(above[:, i] - above[:, j], below, self.confidence)
            worth = compute_score_value(panel, m)
            columns["interval.low"][k], columns["interval.high"][k] = ends[0] * worth, ends[1] * worth
            if not np.isfinite(ends).all():
                reasons[k] = UNBOUNDED
        columns["interval.method"][self.indices] = METHODS.index(INVERSION)

    def write_binary(self, panel: Panel, columns: Columns, _reasons: dict[int, str], _tally: None) -> None:
        """Write intervals of 0/1 item scores: Tango's for differences, Wilson's for scores."""
        confidence = self.confidence
        for m in range(len(panel.metrics)):
            in_metric = self.column == m
            rows, (i, j) = self.indices[in_metric], panel.pairs[self.row[in_metric]].T
            above, below = compute_numerators_and_weights(panel, m)
            largest, n = above.max(axis=0), np.count_nonzero(below)
            item_score = np.maximum(largest[i], largest[j])  # 0 if neither system has a right item
            item_score = np.where(item_score > 0, item_score, max(largest.max(initial=0), 1))
            worth = item_score / below.max() * compute_score_value(panel, m)
            wins, losses = panel.sign_counts[self.row[in_metric], m].T
            ends = compute_score_interval(wins, losses, n, confidence)
            columns["interval.low"][rows], columns["interval.high"][rows] = (end * worth for end in ends)
            for side, path in ((i, "score_a_interval"), (j, "score_b_interval")):
                ends = wilson(panel.compute_numerators(m, panel.totals)[side] / item_score, n, confidence)
                columns[f"{path}.0"][rows], columns[f"{path}.1"][rows] = (end * worth for end in ends)
        columns["interval.method"][self.indices] = METHODS.index(TANGO)


NUMBERS = (
    "interval.low", "interval.high", "interval.percentile.0", "interval.percentile.1", "interval.skewness", "paired_d",
    "score_a_interval.0", "score_a_interval.1", "score_b_interval.0", "score_b_interval.1",
)  # fmt: skip
"""Columns of intervals that the kinds write, NaN where there is none."""

WRITERS: dict[str, Callable[..., None]] = {
    "bootstrap": IntervalGroup.write_bootstrap,
    "outputs": IntervalGroup.write_outputs,
    "normal": IntervalGroup.write_normal,
    "inversion": IntervalGroup.write_inversion,
    "enumerated": IntervalGroup.write_enumerated,
    TANGO: IntervalGroup.write_binary,
}
"""Methods that write the intervals of each kind into their columns."""


@dataclass(frozen=True, slots=True, eq=False)
class IntervalJobs:
    """The intervals of the comparisons of one test set and unit, with their jobs.

    Attributes
    ----------
    n : int
        Comparisons.
    groups : tuple of IntervalGroup
        Comparisons that have an interval.
    reasons : mapping of int to str
        Why the other comparisons have no interval.
    confidence : float
        Confidence of all intervals.
    """

    n: int
    groups: tuple[IntervalGroup, ...]
    reasons: dict[int, str]
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
        reasons: dict[int, str] = {}
        for group in group_rows(number_rows(panel)):
            positions = row[group].astype(np.int64), column[group].astype(np.int64)
            group_panel = panels[int(panel[group[0]])]
            if (reason := _find_refusal(group_panel)) is not None:
                reasons |= dict.fromkeys(group.tolist(), reason)
                continue
            trials = int(comparisons.n_trials[group[0]])
            for kind, selected in _iter_kinds(group_panel, *positions, spec, is_item=comparisons.counts.unit == "item"):
                if kind in REASONS:
                    reasons |= dict.fromkeys(group[selected].tolist(), kind)
                    continue
                places = group[selected], positions[0][selected], positions[1][selected]
                groups.append(_build_group(kind, group_panel, places, spec, trials))
        return IntervalJobs(len(comparisons), tuple(groups), reasons, spec.confidence)

    @property
    def jobs(self) -> list[Job]:
        """All jobs to count."""
        return [part.job for part in self.cells]

    @property
    def cells(self) -> list[CountedCells]:
        """The comparisons' counts, in the order of the jobs."""
        counted = ((group.job, group.indices) for group in self.groups)
        return [CountedCells.from_whole(job, indices) for job, indices in counted if job is not None]

    def build_columns(self, tallies: Tallies) -> Columns:
        """Return the columns of intervals, computed from the tallies of `jobs`."""
        columns: Columns = {path: np.full(self.n, np.nan) for path in NUMBERS}
        columns |= {"interval.n_resamples": np.zeros(self.n, np.int64), "interval.method": np.zeros(self.n, np.int32)}
        reasons = dict(self.reasons)
        for group in self.groups:
            group.write_intervals(columns, reasons, tallies)
        methods = columns["interval.method"]
        return columns | {
            "interval.confidence": np.where(methods > 0, self.confidence, np.nan),
            "interval.method": CodedColumn(methods, METHODS),
            "interval.why": CodedColumn.from_values(reasons.get(k, "") for k in range(self.n)),
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


def _iter_kinds(
    panel: ComparedPanel, row: Integers, column: Integers, spec: CompareSpec, *, is_item: bool
) -> Iterator[tuple[str, Integers]]:
    """Yield each kind of interval, or reason for having none, with the indices of its comparisons."""
    if not isinstance(panel, Panel):
        constant = panel.n_discordant[row, column] == 0
        for kind, rows in ((CONSTANT, constant), (NO_MEAN if spec.interval == "inversion" else "outputs", ~constant)):
            if rows.any():
                yield kind, np.flatnonzero(rows)
        return
    kinds = _choose_kinds(panel, row, column, spec)
    if is_item and spec.interval in AUTO:
        kinds[are_matched(panel)[row, column]] = TANGO
    resampled = np.flatnonzero((kinds == "bootstrap") | (kinds == _choose_inversion(panel)))
    if spec.interval in AUTO and resampled.size:
        yield "bootstrap", resampled  # for both scores' intervals; the interval of a mean's difference comes later
        kinds[kinds == "bootstrap"] = None
    for kind in dict.fromkeys(name for name in kinds.tolist() if name is not None):
        yield kind, np.flatnonzero(kinds == kind)


def _choose_inversion(panel: Panel) -> str:
    return "enumerated" if panel.n_units <= ENUMERATED_UNITS else "inversion"


def _choose_kinds(panel: Panel, row: Integers, column: Integers, spec: CompareSpec) -> NDArray[np.object_]:
    """Return the kind of interval of each comparison, or the reason for having none, as if no scores were 0/1."""
    is_mean = np.array(panel.linear)[column]
    kinds = np.full(len(row), "bootstrap", object)
    if spec.interval in AUTO and panel.n_units > MANY_UNITS and spec.resamples is None:
        kinds[:] = "normal"
    elif spec.interval in AUTO:
        kinds[is_mean] = _choose_inversion(panel)
    elif spec.interval == "inversion":
        kinds[:] = np.where(is_mean, _choose_inversion(panel), NO_MEAN)
    kinds[np.array([panel.is_coarse(m) for m in range(len(panel.metrics))])[column]] = COARSE
    kinds[are_constant(panel)[row, column]] = CONSTANT
    return kinds


Places = tuple[Integers, Integers, Integers]
"""Comparisons, and their rows and columns in their panel."""


def _build_group(kind: str, panel: ComparedPanel, places: Places, spec: CompareSpec, trials: int) -> IntervalGroup:
    """Return the intervals of one kind of a panel's comparisons, with a job on a panel of only these."""
    if isinstance(panel, OutputsPanel):
        n = spec.resamples or DEFAULT_OUTPUT_RESAMPLES
        job = Job(BootstrapOutputs.from_panel(panel), n, label=f"intervals by {panel.metric.name}")
        return IntervalGroup(kind, panel, *places, spec.confidence, job)
    assert isinstance(panel, Panel)
    indices, row, column = places
    rows, columns = np.unique(row), np.unique(column)
    used_panel = panel.select(rows, columns.tolist())
    positions = np.searchsorted(rows, row), np.searchsorted(columns, column)
    resampled: Bootstrap | ShiftPanel | None = None
    n = DEFAULT_RESAMPLES
    if kind == "bootstrap":
        resampled = Bootstrap.from_panel(used_panel)
    elif kind == "inversion":
        resampled = ShiftPanel.from_panel(used_panel)
        affordable = min(trials, DEFAULT_TRIALS, MAX_SWAPS // used_panel.n_units)
        n = max(MIN_TRIALS, affordable) if spec.interval in AUTO else trials
    names = ", ".join(metric.name for metric in used_panel.metrics)
    sums_job = None if resampled is None else Job(resampled, spec.resamples or n, label=f"intervals by {names}")
    return IntervalGroup(kind, used_panel, indices, *positions, spec.confidence, sums_job)
