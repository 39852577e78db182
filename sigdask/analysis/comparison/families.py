"""Families of comparisons: adjusted p-values, and tests of each pair over all test sets.

A family has its scales of differences, trials and resamples. Over all test sets a pair is tested by its mean
difference, and by the number of sets that replicate the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import scipy

from sigdask.analysis.comparison.jobs import FamilyComparisons
from sigdask.analysis.comparison.pairs import IntervalSpec, build_full_panels
from sigdask.counts.factors import group_rows, number_rows
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.errors import InputError
from sigdask.interface import spell, spell_in
from sigdask.metrics.base import BoundMetric
from sigdask.options import Adjust, Alternative
from sigdask.randomization.families.bootstrap_t import StudentisedBootstrap, find_critical_value
from sigdask.randomization.families.deviations import (
    compute_relabel_deviation,
    compute_root_mean_square,
)
from sigdask.randomization.families.max_t import MaxTFamily
from sigdask.randomization.families.skewness import find_skewed
from sigdask.randomization.families.tukey import Relabelling
from sigdask.randomization.panels import ComparedPanel, build
from sigdask.randomization.panels.build import SIDES, FamilyMember
from sigdask.randomization.panels.sums import SUMS, Panel
from sigdask.randomization.slabs import Job, Tallies
from sigdask.randomization.tallies import TAILS, Tally
from sigdask.results.columns import UNADJUSTED, AdjustmentDetails, CodedColumn
from sigdask.results.comparisons import FamilyNote, ResultAcrossSets
from sigdask.results.table import Table
from sigdask.statistics.bounds import clopper_pearson, compute_p_value
from sigdask.statistics.multiplicity import P_VALUE_ADJUSTMENTS, count_replicated, enforce_step_down

Adjusted = tuple[Floats, Floats, Floats]
"""Adjusted p-values, and the lower and upper ends of their Monte Carlo intervals."""

AnyFamily = MaxTFamily | Relabelling | StudentisedBootstrap

SHARED_TRIALS: tuple[Adjust, ...] = ("max-t", "tukey")
"""Adjustments that use the largest difference of each trial, so that all comparisons need the same trials."""

MAX_RESAMPLES, MIN_RESAMPLES = 2**17, 10_000
"""Largest number of resamples of a family, and the number used however long they take."""

MAX_DRAWN, MAX_PRODUCTS = 2 * 10**8, 2**33
"""Maximum units drawn, and units times comparisons, with all resamples: a few seconds of a core."""

MIN_INTERVAL_RESAMPLES = 2_000
"""Minimum number of resamples if only intervals are computed from them."""


@dataclass(frozen=True, eq=False)
class Adjustment:
    """How the p-values of some comparisons are adjusted, and what must be counted for it.

    Attributes
    ----------
    method : str
        As in `Adjust`.
    family : MaxTFamily, Relabelling or None
        The family to count, or None if p-values are enough.
    n_trials : int
        Number of trials, the same for the whole family.
    job : Job or None
        The family's job to count.
    for_exact : bool
        Whether it is used only because p-values are exact and no adjustment was requested.
    skewed : bool array, shape (n_comparisons,), or None
        Whether the unit differences of each comparison are too skewed. None if this was not checked.
    resampling : Job or None
        The studentised bootstrap of the family, if p-values or simultaneous intervals need it.
    with_intervals : bool
        Whether simultaneous intervals are wanted.
    """

    method: Adjust
    family: AnyFamily | None = None
    n_trials: int = 0
    job: Job | None = None
    for_exact: bool = False
    skewed: Bools | None = None
    resampling: Job | None = None
    with_intervals: bool = False

    @staticmethod
    def from_family(method: Adjust, family: AnyFamily, n_trials: int) -> Adjustment:
        """Return an adjustment that counts `n_trials` trials of a family."""
        n = family.n_hypotheses if isinstance(family, StudentisedBootstrap) else family.shape[0]
        return Adjustment(method, family, n_trials, Job(family, n_trials, label=f"the family of {n} comparisons"))

    @property
    def trial_counts(self) -> tuple[int, ...]:
        """Number of trials of the family, followed by the number of resamples if p-values also use a bootstrap."""
        return (self.n_trials, self.resampling.n_trials) if self.takes_larger and self.resampling else (self.n_trials,)

    @property
    def takes_larger(self) -> bool:
        """Whether the adjusted p of some comparison is the larger of two methods' p-values."""
        return self.method == "max-t" and self.resampling is not None and self.n_skewed > 0

    @property
    def n_skewed(self) -> int:
        """Number of comparisons whose differences between units are too skewed for the adjustment alone."""
        return 0 if self.skewed is None else int(np.count_nonzero(self.skewed))

    def compute_p_values(self, p: Floats, low: Floats, high: Floats, tallies: Tallies) -> Adjusted | None:
        """Return adjusted p-values and their Monte Carlo intervals, each at least as large as before adjustment.

        Parameters
        ----------
        p, low, high : float64 array, shape (n_comparisons,)
            The p-values of the comparisons, and the ends of their intervals.
        tallies : mapping of Job to Tally
            Tallies, among them that of `job`.
        """
        if self.method == "none" or not len(p):
            return None
        unadjusted = p, low, high
        adjusted: Iterable[Floats] = self._compute_joint(tallies) or map(P_VALUE_ADJUSTMENTS[self.method], unadjusted)
        if self.takes_larger:
            assert self.skewed is not None
            bootstrap, tally = self._read_resampling(tallies)
            pairs = zip(adjusted, compute_joint_p_values(bootstrap, tally), strict=True)
            adjusted = tuple(np.where(self.skewed, np.maximum(own, resampled), own) for own, resampled in pairs)
        adjusted_p, adjusted_low, adjusted_high = map(np.maximum, adjusted, unadjusted)  # one after the other
        return adjusted_p, adjusted_low, adjusted_high

    def _compute_joint(self, tallies: Tallies) -> Adjusted | None:
        """Return the adjusted p-values from the family's tally; None if the method needs no family."""
        if self.family is None or self.job is None:
            return None
        return compute_joint_p_values(self.family, tallies[self.job])

    def _read_resampling(self, tallies: Tallies) -> tuple[StudentisedBootstrap, Tally]:
        """Return the studentised bootstrap with its tally."""
        assert self.resampling is not None
        panel = self.resampling.panel
        assert isinstance(panel, StudentisedBootstrap)
        return panel, tallies[self.resampling]

    def compute_details(self, p: Floats, difference: Floats, tallies: Tallies, alpha: float) -> AdjustmentDetails:
        """Return the p-values of max-T and the bootstrap if the larger is reported, and simultaneous intervals.

        Parameters
        ----------
        p, difference : float64 array, shape (n_comparisons,)
            The p-values of the comparisons, and the differences.
        tallies : mapping of Job to Tally
            Tallies, among them those of `job` and `resampling`.
        alpha : float
            1 minus the confidence of the intervals.
        """
        n = len(p)
        found = AdjustmentDetails.build_empty(n)
        if (joint := self._compute_joint(tallies)) is None:
            return found
        if self.method == "tukey":
            found = _set_two_p_values(found, "tukey", joint[0], UNADJUSTED, p, np.ones(n, np.bool_))
        elif self.takes_larger:
            assert self.skewed is not None
            bootstrap, tally = self._read_resampling(tallies)
            resampled = np.maximum(compute_joint_p_values(bootstrap, tally)[0], p)
            own = np.maximum(joint[0], p)
            found = _set_two_p_values(found, self.method, own, "bootstrap-t", resampled, self.skewed)
        if not self.with_intervals or self.resampling is None:
            return found
        panel, tally = self._read_resampling(tallies)
        reach = find_critical_value(tally, alpha) * panel.errors
        has = np.isfinite(reach) & (panel.errors > 0)
        low, high = difference - reach, difference + reach
        side = panel.family.side
        low, high = (np.full(n, -np.inf) if side < 0 else low), (np.full(n, np.inf) if side > 0 else high)
        return replace(found, low=np.where(has, low, np.nan), high=np.where(has, high, np.nan))

    def with_counted_trials(self, tallies: Tallies) -> Adjustment:
        """Return a copy with the number of trials that were counted, which a deadline may have made smaller."""
        return self if self.job is None else replace(self, n_trials=tallies[self.job].n_trials)

    def build_note(self, n_comparisons: int) -> FamilyNote:
        """Return a note on the adjustment method, with the numbers of comparisons, trials and resamples."""
        family = self.family
        exact = family is not None and family.enumerated and self.n_trials == family.n_arrangements
        n_resamples = None if self.resampling is None else self.resampling.n_trials
        return FamilyNote(self.method, n_comparisons, self.n_trials or None, exact, n_resamples)


def _set_two_p_values(
    details: AdjustmentDetails, first: str, p_first: Floats, second: str, p_second: Floats, rows: Bools
) -> AdjustmentDetails:
    """Return a copy of the details with the names and p-values of two methods in the given rows."""
    codes = rows.astype(np.int32)
    return replace(
        details,
        first=CodedColumn(codes, ("", first)),
        second=CodedColumn(codes, ("", second)),
        p_first=np.where(rows, p_first, np.nan),
        p_second=np.where(rows, p_second, np.nan),
    )


def compute_joint_p_values(family: AnyFamily, tally: Tally) -> Adjusted:
    """Return the adjusted p-values and intervals from a family's tally, made monotone for step-down methods."""
    p, low, high = compute_rates(family, tally, family.joint_tail)
    if (order := family.step_down_order) is None:
        return p, low, high
    # limits rise with the count, as p does
    return enforce_step_down(p, order), enforce_step_down(low, order), enforce_step_down(high, order)


def compute_rates(family: AnyFamily, tally: Tally, tail: int) -> Adjusted:
    """Return p-values and intervals from a family's exceedances, before the step-down.

    All p are 1 while an enumeration is incomplete.
    """
    n_hypotheses = family.n_hypotheses if isinstance(family, StudentisedBootstrap) else len(tally.counts)
    extreme, n = tally.counts[:n_hypotheses, 0, tail], tally.n_trials
    if family.enumerated and n < family.n_arrangements:
        return np.ones(len(extreme)), np.zeros(len(extreme)), np.ones(len(extreme))
    p = compute_p_value(extreme, n, exact=family.enumerated)
    return (p, p, p) if family.enumerated else (p, *clopper_pearson(extreme, n))


def choose_adjustment(adjust: Adjust | None, comparisons: FamilyComparisons) -> Adjust:
    """Return the adjustment that the user requested, or the default.

    With three systems or more the default is max-T, or Holm if p is exact or scores are not made of sums.
    """
    if adjust is not None:
        if adjust not in get_args(Adjust):
            raise InputError(f"adjust = {adjust!r}: must be one of {', '.join(get_args(Adjust))}")
        return adjust
    n_systems = len(np.unique(np.concatenate([comparisons.encode_systems("a"), comparisons.encode_systems("b")])))
    if n_systems < 3 or len(comparisons) < 2:
        return "none"
    return "max-t" if describe_non_sums(comparisons) is None and "exact" not in comparisons.methods else "holm"


def build_adjustment(
    method: Adjust, comparisons: FamilyComparisons, alternative: Alternative, interval_spec: IntervalSpec | None = None
) -> Adjustment:
    """Build the adjustment of comparisons that are judged together.

    Parameters
    ----------
    method : str
        As in `Adjust`.
    comparisons : FamilyComparisons
        Pairs x metrics x test sets x subsets, all judged together.
    alternative : str
        Alternative of all comparisons.
    interval_spec : IntervalSpec, optional
        Requested intervals; none by default.
    """
    if method == "none" or not len(comparisons):
        return Adjustment(method)
    if method in P_VALUE_ADJUSTMENTS:
        return Adjustment(method, skewed=_find_skewed(comparisons))
    if (misfit := describe_non_sums(comparisons)) is not None:
        raise InputError(
            f"adjust {method}: {misfit}, which cannot be adjusted with the others by shared trials",
            remedy=f"use {spell('adjust', 'holm')}",
        )
    if method == "tukey":
        result = add_trials(method, _build_relabelling(comparisons, alternative), comparisons)
        return _add_companion(result, comparisons, alternative, interval_spec)
    members, rows = build_members(comparisons)
    result = add_trials(method, build_family(members, rows[:, None, :], alternative), comparisons)
    return _add_companion(result, comparisons, alternative, interval_spec)


def _add_companion(
    base: Adjustment, comparisons: FamilyComparisons, alternative: Alternative, interval_spec: IntervalSpec | None
) -> Adjustment:
    """Return the adjustment with the studentised bootstrap added, if p-values or simultaneous intervals need it."""
    result = replace(base, skewed=_find_skewed(comparisons), with_intervals=interval_spec is not None)
    is_judging = result.n_skewed > 0 and base.method == "max-t"
    if len(comparisons) < 2 or not (is_judging or interval_spec is not None):
        return result
    family = build_bootstrap(comparisons, alternative)
    n = count_resamples(comparisons, family)
    if not is_judging:
        n_affordable = MAX_DRAWN // family.n_drawn
        n = (interval_spec and interval_spec.resamples) or max(MIN_INTERVAL_RESAMPLES, min(MIN_RESAMPLES, n_affordable))
    return replace(result, resampling=Job(family, n, label=f"resamples of {len(comparisons)} comparisons"))


def _find_skewed(comparisons: FamilyComparisons) -> Bools | None:
    """Return which comparisons have differences between units that are too skewed; None if scores are not sums."""
    if len(comparisons) < 2:
        return None
    if all(panel.kind == SUMS and (panel.sign_counts >= 0).all() for panel in comparisons.panels):
        return np.zeros(len(comparisons), np.bool_)  # all differences have one size, as those of 0/1 scores
    if describe_non_sums(comparisons) is not None:
        return None
    members, rows = build_members(comparisons)
    return find_skewed(MaxTFamily(tuple(members), rows[:, None, :], studentised=True))


def build_bootstrap(comparisons: FamilyComparisons, alternative: Alternative) -> StudentisedBootstrap:
    """Return the studentised bootstrap of comparisons, on panels that include concordant units."""
    n, n_before = len(comparisons), 0
    panel, row, column = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    panels: list[ComparedPanel] = []
    for k in np.unique(comparisons.set_index).tolist():
        jobs, in_set = comparisons.comparison_jobs[k], comparisons.set_index == k
        set_panels, *positions = build_full_panels(jobs.spec, jobs.comparisons)
        for target, values in zip((panel, row, column), positions, strict=True):
            target[in_set] = values[comparisons.row[in_set]]
        panel[in_set] += n_before
        panels, n_before = panels + set_panels, n_before + len(set_panels)
    member_index = number_rows(panel, column)
    first_rows = [set_panels[0] for set_panels in group_rows(member_index)]
    members = tuple(FamilyMember(as_sums_panel(panels[panel[k]]), int(column[k])) for k in first_rows)
    n_units = tuple(comparisons.comparison_jobs[comparisons.set_index[k]].spec.units.n_units for k in first_rows)
    family = MaxTFamily(members, np.column_stack([member_index, row])[:, None, :], SIDES[alternative], studentised=True)
    return StudentisedBootstrap(family, n_units)


def count_resamples(comparisons: FamilyComparisons, family: StudentisedBootstrap) -> int:
    """Return the number of resamples for p-values: the number of trials, or fewer if these would take too long."""
    n_affordable = min(
        MAX_RESAMPLES, MAX_DRAWN // family.n_drawn, MAX_PRODUCTS // (family.n_drawn * family.n_hypotheses)
    )
    return min(int(comparisons.get_column("n_trials").max()), max(MIN_RESAMPLES, n_affordable))


def build_family(members: Sequence[FamilyMember], parts: Integers, alternative: Alternative) -> MaxTFamily:
    """Return a max-T family of hypotheses; it is studentised unless it has one hypothesis."""
    return MaxTFamily(tuple(members), parts, SIDES[alternative], studentised=len(parts) > 1)


def describe_non_sums(comparisons: FamilyComparisons) -> str | None:
    """Return a description of the first metric whose score is no function of sums, or None."""
    panel, panels = comparisons.panel, comparisons.panels
    is_odd = np.array([candidate.kind != SUMS for candidate in panels], np.bool_)[panel]
    if not is_odd.any():
        return None
    k = int(np.argmax(is_odd))
    return f"{comparisons.get_metric_name(k)} is {panels[panel[k]].kind}"


def add_trials(method: Adjust, family: AnyFamily, comparisons: FamilyComparisons) -> Adjustment:
    """Return an adjustment that counts all arrangements of a family if these are few enough, else trials."""
    if family.can_enumerate and comparisons.methods != {"randomization"}:
        return Adjustment.from_family(method, family.build_enumeration(), family.n_arrangements)
    return Adjustment.from_family(method, family, int(comparisons.get_column("n_trials").max()))


def build_members(comparisons: FamilyComparisons) -> tuple[list[FamilyMember], Integers]:
    """Return family members of weight 1, one per panel and metric, and the (member, row) of each comparison."""
    panel, column, panels = comparisons.panel, comparisons.get_column("column"), comparisons.panels
    member_index = number_rows(panel, column)
    members = [
        FamilyMember(as_sums_panel(panels[panel[rows[0]]]), int(column[rows[0]])) for rows in group_rows(member_index)
    ]
    return members, np.column_stack([member_index, comparisons.get_column("row")])


def as_sums_panel(panel: ComparedPanel) -> Panel:
    """Return the panel, asserting that it is a panel of sums."""
    assert isinstance(panel, Panel)
    return panel


def _number_scales(comparisons: FamilyComparisons) -> Integers:
    """Return the number of each comparison's group of equal test set, subset and metric; each group has one scale."""
    return number_rows(comparisons.set_index, comparisons.subset, comparisons.metric)


def _build_relabelling(comparisons: FamilyComparisons, alternative: Alternative) -> Relabelling:
    if alternative != "two-sided":
        raise InputError(
            f"adjust tukey: Tukey's test is two-sided, but the alternative is {alternative}",
            remedy=f"choose {spell('adjust', 'max-t')}",
        )
    groups = group_rows(_number_scales(comparisons))
    pairs = np.column_stack([comparisons.get_column("a"), comparisons.get_column("b")])
    members: list[FamilyMember] = []
    rows = np.zeros((len(comparisons), 2), np.int64)
    for group in groups:
        jobs, first_row = comparisons.comparison_jobs[comparisons.set_index[group[0]]], int(comparisons.row[group[0]])
        metric, mask = jobs.comparisons.get_metric(first_row), jobs.comparisons.get_mask(first_row)
        assert isinstance(metric, BoundMetric)
        panel = build.build_joint_panel(jobs.spec.counts, jobs.spec.units, metric, pairs[group], mask)
        deviation = 1.0 if len(groups) == 1 else compute_relabel_deviation(panel, 0)
        weight = 1 / compute_root_mean_square(np.array([deviation]))
        rows[group] = np.column_stack([np.full(len(group), len(members)), np.arange(len(group))])
        members.append(FamilyMember(panel, 0, weight))
    return Relabelling(tuple(members), rows)


ONE_SET = "there is only one test set; to combine results, give several test sets, or {by=COLUMN}"


@dataclass(frozen=True, eq=False)
class AcrossSets:
    """Tests of each pair and metric over several test sets, by the mean difference; units are swapped within each set.

    Attributes
    ----------
    family : MaxTFamily
        One hypothesis a pair and metric.
    members : int64 array, shape (n_hypotheses, n_sets)
        The comparisons of each hypothesis; -1 if its metric is on fewer sets.
    job : Job
        The job to count.
    """

    family: MaxTFamily
    members: Integers
    job: Job

    def build_results(
        self, tallies: Tallies, table: Table, p_greater: Floats, p_less: Floats
    ) -> tuple[ResultAcrossSets, ...]:
        """Return the result of each pair and metric over all sets.

        Parameters
        ----------
        tallies : mapping of Job to Tally
            Tallies, among them that of `job`.
        table : Table
            The comparisons, with the level of replication.
        p_greater, p_less : float64 array, shape (n_comparisons,)
            Their p-values in each direction.
        """
        tally = tallies[self.job]
        tail = TAILS.index(table.alternative[0])
        single = compute_rates(self.family, tally, tail)
        joint = compute_joint_p_values(self.family, tally)
        p, adjusted, low, high = single[0], *(np.maximum(x, y) for x, y in zip(joint, single, strict=True))
        is_family = len(self.members) > 1
        level = table.alpha / 2 if self.family.side == 0 else table.alpha
        greater, less = self._count_replicated(p_greater, level), self._count_replicated(p_less, level)
        differences = np.where(self.members < 0, 0.0, table.difference[self.members]).tolist()
        return tuple(
            ResultAcrossSets(
                a=table.a[k],
                b=table.b[k],
                metric=table.metric[k].name,
                n_sets=n_sets,
                difference=sum(differences[h]) / n_sets,
                n_trials=tally.n_trials,
                n_extreme=int(tally.counts[h, 0, tail]),
                p_value=float(p[h]),
                p_adjusted=float(adjusted[h]) if is_family else None,
                p_adjusted_interval=(float(low[h]), float(high[h])) if is_family else None,
                method="exact" if self.family.enumerated else "approximate",
                greater_in=int(greater[0][h]),
                p_greater=float(greater[1][h]),
                less_in=int(less[0][h]),
                p_less=float(less[1][h]),
            )
            for h, (k, n_sets) in enumerate(zip(self.members[:, 0].tolist(), self._n_sets.tolist(), strict=True))
        )

    @property
    def _n_sets(self) -> Integers:
        """Number of sets of each pair and metric, shape (n_hypotheses,)."""
        return np.asarray(np.count_nonzero(self.members >= 0, axis=1))

    def _count_replicated(self, p: Floats, level: float) -> tuple[Integers, Floats]:
        """Return, for each pair and metric, the number of sets that replicate the difference, and its p-value."""
        n_replicated, p_replicated = np.zeros(len(self.members), np.int64), np.ones(len(self.members))
        for size in np.unique(self._n_sets).tolist():
            has_size = self._n_sets == size
            n_replicated[has_size], p_replicated[has_size] = count_replicated(p[self.members[has_size, :size]], level)
        return n_replicated, p_replicated


def build_across_sets(comparisons: FamilyComparisons, alternative: Alternative) -> AcrossSets:
    """Return the tests of each pair and metric over all sets."""
    if (misfit := describe_non_sums(comparisons)) is not None:
        raise InputError(f"{misfit}, which cannot be combined over test sets")
    if not len(comparisons):
        raise InputError(spell_in(ONE_SET))
    metric = number_rows(comparisons.metric)
    hypothesis = number_rows(comparisons.encode_systems("a"), comparisons.encode_systems("b"), metric)
    size = _check_set_counts(comparisons, hypothesis, metric)
    members, rows = build_members(comparisons)
    member_table = _group_by_hypothesis(hypothesis, size)  # (n_hypotheses, n_sets)
    if (member_table < 0).any():
        members.append(members[0])  # has weight 0, for sets without the metric
    parts = np.where(member_table[:, :, None] < 0, (len(members) - 1, 0), rows[member_table])
    weights = np.zeros(len(members))
    weights[rows[:, 0]] = 1 / size
    weighted = tuple(replace(m, weight=float(w)) for m, w in zip(members, weights, strict=True))
    adjustment = add_trials("max-t", build_family(weighted, parts, alternative), comparisons)
    assert isinstance(adjustment.family, MaxTFamily)
    label = f"{len(member_table)} comparisons over all sets"
    job = Job(adjustment.family, adjustment.n_trials, label=label)
    return AcrossSets(adjustment.family, member_table, job)


def _group_by_hypothesis(hypothesis: Integers, size: int) -> Integers:
    """Return the indices of each hypothesis's comparisons, shape (n_hypotheses, size), padded with -1."""
    order = np.argsort(hypothesis, kind="stable")
    counts = np.bincount(hypothesis)
    table = np.full((len(counts), size), -1, np.int64)
    position = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    table[hypothesis[order], position] = order
    return table


def _check_set_counts(comparisons: FamilyComparisons, hypothesis: Integers, metric: Integers) -> int:
    """Return the largest number of test sets that any metric is on.

    Raise unless all pairs of a metric are on the same number of sets, with the same system as A.
    """
    first = np.unique(hypothesis, return_index=True)[1]
    sizes, metric = np.bincount(hypothesis), metric[first]
    n_sets = np.zeros(int(metric.max()) + 1, np.int64)
    np.maximum.at(n_sets, metric, sizes)
    a, b = comparisons.encode_systems("a")[first], comparisons.encode_systems("b")[first]
    n_systems = int(max(a.max(), b.max())) + 1
    turned = np.isin((metric * n_systems + a) * n_systems + b, (metric * n_systems + b) * n_systems + a)
    wrong = turned | (sizes != n_sets[metric])
    if wrong.any():
        h = int(np.argmax(wrong))
        k = int(first[h])
        names = " and ".join(comparisons.get_system_names(k))
        if turned[h]:
            raise InputError(
                f"{names} are in this order in some test sets and reversed in others; list the pairs or name a "
                "baseline, so that A is the same system in all"
            )
        raise InputError(
            f"{names} by {comparisons.get_metric_name(k)} have items in common in {sizes[h]} test sets, and other "
            f"pairs in {n_sets[metric[h]]}",
            remedy="leave out the systems or test sets that lack items",
        )
    if n_sets.max() < 2:
        raise InputError(spell_in(ONE_SET))
    return int(n_sets.max())


def add_intervals(
    across: AcrossSets, results: Sequence[ResultAcrossSets], table: Table, errors: Floats
) -> Iterator[ResultAcrossSets]:
    """Yield the results over all sets with t intervals of the mean difference, by Satterthwaite's degrees of freedom.

    Parameters
    ----------
    across : AcrossSets
        The tests of the results.
    results : sequence of ResultAcrossSets
        The results.
    table : Table
        The comparisons in each set.
    errors : float64 array, shape (n_comparisons,)
        Jackknife standard error of the difference in each set.
    """
    for result, members in zip(results, across.members, strict=True):
        rows = members[members >= 0]
        variances = (errors[rows] / len(rows)) ** 2
        total = variances.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            df = total**2 / (variances**2 / (table.n_units[rows] - 1)).sum()
        reach = float(scipy.special.stdtrit(df, 1 - table.alpha / 2) * np.sqrt(total))
        has_interval = np.isfinite(reach) and reach > 0
        yield replace(result, interval=(result.difference - reach, result.difference + reach) if has_interval else None)
