"""Families of comparisons: adjusted p-values, and tests of each pair over all test sets.

A family has its scales of differences, trials and resamples. Over all test sets a pair is tested by its mean
difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy

from sigdask.analysis.comparison.equal_scores import EqualScoreTest, as_sums_panel
from sigdask.analysis.comparison.jobs import JoinedComparisons
from sigdask.counts.fields import Floats, Integers
from sigdask.errors import InputError
from sigdask.interface import spell, spell_in
from sigdask.metrics.base import BoundAgreement, BoundMetric
from sigdask.options import Adjust, Alternative
from sigdask.randomization.families import MaxTFamily, Relabelling
from sigdask.randomization.families.bootstrap_t import find_critical_value
from sigdask.randomization.panels import build
from sigdask.randomization.panels.build import SIDES, FamilyMember
from sigdask.randomization.panels.scored_sums import compute_relabel_deviation, compute_root_mean_square
from sigdask.randomization.panels.sums import SUMS
from sigdask.randomization.slabs import Job, Tallies
from sigdask.randomization.tallies import TAILS, Tally
from sigdask.results.comparisons import FamilyNote, ResultAcrossSets
from sigdask.results.record import Note, NoteValue
from sigdask.results.table import Table
from sigdask.statistics.bounds import (
    MAX_TRIALS,
    P_VALUE_ADJUSTMENTS,
    clopper_pearson,
    compute_p_value,
    compute_penalty,
    compute_trials_needed,
    enforce_step_down,
    estimate_trials_to_decide,
)
from sigdask.statistics.numbering import group_rows, number_rows
from sigdask.text import format_count

Adjusted = tuple[Floats, Floats, Floats]
"""Adjusted p-values, and the lower and upper ends of their Monte Carlo intervals."""

AnyFamily = MaxTFamily | Relabelling

SHARED_TRIALS: tuple[Adjust, ...] = ("max-t", "tukey")
"""Adjustments that use the largest difference of each trial, so that all comparisons need the same trials."""


ADJUSTED = ("p_adjusted", "p_adjusted_interval.0", "p_adjusted_interval.1")
"""Columns of adjusted p-values and of their Monte Carlo intervals."""

DETAILS = ("p_adjusted_by.tukey", "interval_simultaneous.0", "interval_simultaneous.1")
"""Columns of Tukey's p and of simultaneous intervals."""


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
    equal_scores : EqualScoreTest or None
        The equal-score test of the comparisons. None for no comparisons.
    with_intervals : bool
        Whether simultaneous intervals are wanted, which are computed from the resamples of the equal-score test.
    """

    method: Adjust
    family: AnyFamily | None = None
    n_trials: int = 0
    job: Job | None = None
    equal_scores: EqualScoreTest | None = None
    with_intervals: bool = False

    @property
    def jobs(self) -> list[Job]:
        """The jobs to count: trials of the family, and resamples."""
        resamples = None if self.equal_scores is None else self.equal_scores.job
        return [job for job in (self.job, resamples) if job is not None]

    def compute_columns(
        self, unadjusted: Adjusted, difference: Floats, tallies: Tallies, alpha: float
    ) -> dict[str, Floats]:
        """Return the columns of adjusted p-values and their details; NaN where there are none.

        No adjusted p-value is below the unadjusted one.

        Parameters
        ----------
        unadjusted : tuple of float64 array, shape (n_comparisons,)
            The p-values of the comparisons, and the ends of their intervals.
        difference : float64 array, shape (n_comparisons,)
            Their differences.
        tallies : mapping of Job to Tally
            Tallies, among them those of `jobs`.
        alpha : float
            1 minus the confidence of simultaneous intervals.
        """
        columns = dict.fromkeys((*ADJUSTED, *DETAILS), np.full(len(difference), np.nan))
        if self.method == "none" or not len(difference):
            return columns
        if self.family is None or self.job is None:
            adjusted = [P_VALUE_ADJUSTMENTS[self.method](column) for column in unadjusted]
        else:
            adjusted = [*compute_joint_p_values(self.family, tallies[self.job])]
        limited = [np.maximum(*both) for both in zip(adjusted, unadjusted, strict=True)]
        if self.family is not None:
            limited[1][adjusted[1] == 0] = 0  # no trial of the family was extreme, so that p is at most a bound
        columns |= zip(ADJUSTED, limited, strict=True)
        if self.method == "tukey":
            columns[DETAILS[0]] = adjusted[0]
        test = self.equal_scores
        if not self.with_intervals or test is None or test.job is None:
            return columns
        family, side = test.family, test.family.family.side
        reach = find_critical_value(tallies[test.job], alpha) * family.errors
        has = np.isfinite(reach) & (family.errors > 0)
        low, high = difference - reach, difference + reach
        low, high = (
            (np.full_like(low, -np.inf) if side < 0 else low),
            (np.full_like(high, np.inf) if side > 0 else high),
        )
        ends = np.where(has, low, np.nan), np.where(has, high, np.nan)
        return columns | dict(zip(DETAILS[1:], ends, strict=True))

    def with_counted_trials(self, tallies: Tallies) -> Adjustment:
        """Return a copy with the number of trials that were counted, which a deadline may have made smaller."""
        return self if self.job is None else replace(self, n_trials=tallies[self.job].n_trials)

    def build_note(self, n_comparisons: int) -> FamilyNote:
        """Return a note on the adjustment method, with the numbers of comparisons, trials and resamples."""
        family = self.family
        exact = family is not None and family.enumerated and self.n_trials == family.n_arrangements
        resamples = self.equal_scores.job if self.with_intervals and self.equal_scores else None
        n_resamples = None if resamples is None else resamples.n_trials
        return FamilyNote(
            adjust=self.method, n_comparisons=n_comparisons, n_trials=self.n_trials or None, exact=exact,
            n_resamples=n_resamples,
        )  # fmt: skip


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
    extreme, n = tally.counts[:, 0, tail], tally.n_trials
    if family.enumerated and n < family.n_arrangements:
        return np.ones(len(extreme)), np.zeros(len(extreme)), np.ones(len(extreme))
    p = compute_p_value(extreme, n, exact=family.enumerated)
    return (p, p, p) if family.enumerated else (p, *clopper_pearson(extreme, n))


def choose_adjustment(adjust: Adjust | None, comparisons: JoinedComparisons) -> Adjust:
    """Return the adjustment that the user requested, or the default for a family.

    The default is max-T, or Holm if p is exact or scores are not made of sums. A single comparison needs none.
    """
    if adjust is not None:
        return adjust
    if len(comparisons) < 2:
        return "none"
    return "max-t" if describe_non_sums(comparisons) is None and "exact" not in comparisons.methods else "holm"


def build_adjustment(
    adjust: Adjust | None, comparisons: JoinedComparisons, *, with_intervals: bool = False
) -> Adjustment:
    """Build the adjustment of comparisons that are judged together, with their equal-score test.

    Parameters
    ----------
    adjust : str or None
        The requested adjustment; None for the default.
    comparisons : JoinedComparisons
        Pairs x test sets x subsets of one metric, all judged together.
    with_intervals : bool
        Whether intervals are wanted: those of comparisons that share their trials are simultaneous.
    """
    method, alternative = choose_adjustment(adjust, comparisons), comparisons.sets[0].spec.alternative
    if not len(comparisons):
        return Adjustment(method)
    family: AnyFamily | None = None
    job = None
    if is_shared := method in SHARED_TRIALS:
        if (misfit := describe_non_sums(comparisons)) is not None:
            raise InputError(
                f"adjust {method}: {misfit}, which cannot be adjusted with the others by shared trials",
                remedy=f"use {spell('adjust', 'holm')}",
            )
        if method == "tukey":
            family = _build_relabelling(comparisons, alternative)
        else:
            members, rows = build_members(comparisons)
            family = MaxTFamily(tuple(members), rows[:, None, :], SIDES[alternative])
        family, job = _choose_trials(family, comparisons)
    with_intervals = with_intervals and is_shared and len(comparisons) > 1
    test = EqualScoreTest.build(method, comparisons, alternative, with_intervals=with_intervals)
    return Adjustment(method, family, job.n_trials if job else 0, job, test, with_intervals)


def describe_non_sums(comparisons: JoinedComparisons) -> str | None:
    """Return a description of the first metric whose score is no function of sums, or None."""
    panel, panels = comparisons.panel, comparisons.panels
    is_odd = np.array([candidate.kind != SUMS for candidate in panels], np.bool_)[panel]
    if not is_odd.any():
        return None
    k = int(np.argmax(is_odd))
    return f"{comparisons.describe(k).rpartition(' by ')[2]} is {panels[panel[k]].kind}"


def _choose_trials(family: AnyFamily, comparisons: JoinedComparisons) -> tuple[AnyFamily, Job]:
    """Return a family and the job that counts all its arrangements if these are few enough, else trials."""
    n_trials = int(comparisons.get_column("n_trials").max())
    if family.can_enumerate and comparisons.methods != {"randomization"}:
        family, n_trials = family.build_enumeration(), family.n_arrangements
    return family, Job(family, n_trials, label=f"the family of {family.shape[0]} comparisons")


def build_members(comparisons: JoinedComparisons) -> tuple[list[FamilyMember], Integers]:
    """Return family members of weight 1, one per panel and metric, and the (member, row) of each comparison."""
    panel, column, panels = comparisons.panel, comparisons.get_column("column"), comparisons.panels
    member_index = number_rows(panel, column)
    members = [
        FamilyMember(as_sums_panel(panels[panel[rows[0]]]), int(column[rows[0]])) for rows in group_rows(member_index)
    ]
    return members, np.column_stack([member_index, comparisons.get_column("row")])


def _build_relabelling(comparisons: JoinedComparisons, alternative: Alternative) -> Relabelling:
    if alternative != "two-sided":
        raise InputError(
            f"adjust tukey: Tukey's test is two-sided, but the alternative is {alternative}",
            remedy=f"choose {spell('adjust', 'max-t')}",
        )
    groups = group_rows(number_rows(comparisons.set_index, comparisons.get_column("subset")))  # each has one scale
    pairs = np.column_stack([comparisons.get_column("a"), comparisons.get_column("b")])
    members: list[FamilyMember] = []
    rows = np.zeros((len(comparisons), 2), np.int64)
    for group in groups:
        c, first_row = comparisons.sets[comparisons.set_index[group[0]]], int(comparisons.row[group[0]])
        metric, mask = c.get_metric(first_row), c.get_mask(first_row)
        assert isinstance(metric, BoundMetric)
        panel = build.build_joint_panel(c.counts, c.units, metric, pairs[group], mask)
        deviation = 1.0 if len(groups) == 1 else compute_relabel_deviation(panel, 0)
        weight = 1 / compute_root_mean_square(np.array([deviation]))
        rows[group] = np.column_stack([np.full(len(group), len(members)), np.arange(len(group))])
        members.append(FamilyMember(panel, 0, weight))
    return Relabelling(tuple(members), rows)


ONE_SET = "there is only one test set; to combine results, give several test sets, or {by=COLUMN}"


@dataclass(frozen=True, eq=False)
class AcrossSets:
    """Tests of each pair over several test sets by one metric: its mean difference, with swaps within each set.

    Attributes
    ----------
    family : MaxTFamily
        One hypothesis a pair.
    members : int64 array, shape (n_hypotheses, n_sets)
        The comparisons of each hypothesis.
    job : Job
        The job to count.
    equal_scores : EqualScoreTest
        The equal-score test of the hypotheses.
    """

    family: MaxTFamily
    members: Integers
    job: Job
    equal_scores: EqualScoreTest

    @property
    def jobs(self) -> list[Job]:
        """The jobs to count: trials of the family, and resamples."""
        return [job for job in (self.job, self.equal_scores.job) if job is not None]

    def build_results(self, tallies: Tallies, table: Table, errors: Floats) -> list[ResultAcrossSets]:
        """Return the result of each pair over all sets, with a t interval of its mean difference.

        Parameters
        ----------
        tallies : mapping of Job to Tally
            Tallies, among them that of `job`.
        table : Table
            The comparisons.
        errors : float64 array, shape (n_comparisons,)
            Jackknife standard errors of their differences.
        """
        tally = tallies[self.job]
        tail = TAILS.index(table.alternative[0])
        single = compute_rates(self.family, tally, tail)
        joint = compute_joint_p_values(self.family, tally)
        p, adjusted, low, high = single[0], *(np.maximum(x, y) for x, y in zip(joint, single, strict=True))
        is_family, equal_scores = len(self.members) > 1, self.equal_scores.compute_records(tallies)
        differences, n_sets = table.difference[self.members].tolist(), self.members.shape[1]
        intervals = self._compute_intervals(table, errors)
        return [
            ResultAcrossSets(
                a=table.a[k],
                b=table.b[k],
                metric=table.metric[k],
                n_sets=n_sets,
                difference=sum(differences[h]) / n_sets,
                n_trials=tally.n_trials,
                n_extreme=int(tally.counts[h, 0, tail]),
                p_value=float(p[h]),
                p_adjusted=float(adjusted[h]) if is_family else None,
                p_adjusted_interval=(float(low[h]), float(high[h])) if is_family else None,
                method="exact" if self.family.enumerated else "approximate",
                equal_scores=equal_scores[h],
                interval=intervals[h],
            )
            for h, k in enumerate(self.members[:, 0].tolist())
        ]

    def _compute_intervals(self, table: Table, errors: Floats) -> list[tuple[float, float] | None]:
        """Return t intervals of the mean differences, by Satterthwaite's degrees of freedom; None without spread."""
        variances = (errors[self.members] / self.members.shape[1]) ** 2
        total = variances.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            df = total**2 / (variances**2 / (table.n_units[self.members] - 1)).sum(axis=1)
        reach = scipy.special.stdtrit(df, 1 - table.alpha / 2) * np.sqrt(total)
        middle = table.difference[self.members].mean(axis=1)
        ends = np.column_stack([middle - reach, middle + reach]).tolist()
        return [(low, high) if low < high < np.inf else None for low, high in ends]


def build_across_sets(comparisons: JoinedComparisons) -> AcrossSets:
    """Return the tests of each pair over all sets by one metric."""
    if (misfit := describe_non_sums(comparisons)) is not None:
        raise InputError(f"{misfit}, which cannot be combined over test sets")
    alternative = comparisons.sets[0].spec.alternative
    hypothesis = number_rows(comparisons.encode_names("a"), comparisons.encode_names("b"))
    _check_pairs(comparisons, hypothesis)
    members, rows = build_members(comparisons)
    member_table = np.stack(group_rows(hypothesis))  # (n_hypotheses, n_sets)
    weighted = tuple(replace(member, weight=1 / member_table.shape[1]) for member in members)
    family, job = _choose_trials(MaxTFamily(weighted, rows[member_table], SIDES[alternative]), comparisons)
    assert isinstance(family, MaxTFamily)
    return AcrossSets(family, member_table, job, EqualScoreTest.build_across(comparisons, member_table, alternative))


def _check_pairs(comparisons: JoinedComparisons, hypothesis: Integers) -> None:
    """Raise unless all pairs are in all sets, with the same system as A."""
    n_sets = int(number_rows(comparisons.set_index, comparisons.get_column("subset")).max()) + 1
    sizes = np.bincount(hypothesis)
    if (sizes < n_sets).any():
        k = int(np.argmax(hypothesis == sizes.argmin()))
        raise InputError(
            f"{comparisons.describe(k)} are compared in {sizes.min()} of {n_sets} test sets or subsets: in "
            "the others they have no items in common, or stand in another order",
            remedy="list the pairs to compare in all, or leave out the systems, test sets or subsets that lack items",
        )


FEW_UNITS = 20

TUKEY_CAVEAT = (
    "Tukey's HSD tests that all systems are exchangeable: systems of equal means and unequal variances are "
    "declared different too often (in simulations 9 to 16 % instead of 5 %); {adjust=max-t} does not have this problem"
)

PERMUTED = {
    "scores": "scores of single segments are swapped as if a metric's errors on them were independent. "
    "To swap whole systems, add {permute=systems} (in compare {unit=system})",
    "segments": "segments are swapped as if a metric's errors on them were independent. "
    "To swap whole systems, add {permute=systems} (in compare {unit=system})",
    "pairs": "decisions on pairs are swapped as if pairs of one segment and system were independent. "
    "{permute=scores} assumes less",
}
"""For each unit of permutation of `meta`, its assumption and the alternatives."""


def note_permutation(metric: object, unit: str) -> Note | None:
    """Return the note on the swapped units of a metric of agreement with people, or None if swapping assumes less."""
    if not isinstance(metric, BoundAgreement):
        return None
    swapped = "pairs" if metric.swaps_pairs else {"item": "scores", "segment": "segments"}.get(unit, "")
    return Note("permutation", spell_in(PERMUTED[swapped]), {"swapped": swapped}) if swapped else None


def list_caveats(adjustment: Adjustment, table: Table) -> Iterator[Note]:
    """Yield notes on what weakens the verdicts of comparisons judged together, with remedies."""
    yield from _check_trials(adjustment, table)
    yield from _check_units(adjustment, table)
    yield from _check_undecided(adjustment, table)
    if adjustment.method == "tukey":
        yield Note("caveat", spell_in(TUKEY_CAVEAT), {"adjust": adjustment.method})


def _check_trials(adjustment: Adjustment, table: Table) -> Iterator[Note]:
    """Yield a note if all p are above alpha with so few trials."""
    alpha, method = table.alpha, adjustment.method
    counted = table.n_trials[~table.is_exact & (table.n_trials > 0)].tolist()
    if adjustment.family is not None and not adjustment.family.enumerated:
        counted += [adjustment.n_trials] * (adjustment.n_trials > 0)
    needed = compute_trials_needed(compute_penalty(method, len(table)), alpha)
    if counted and (n_trials := min(counted)) < needed:
        after = f" after {method}" if method in P_VALUE_ADJUSTMENTS else ""
        text = (
            f"with {format_count(n_trials, 'trial')}, p cannot be as small as {alpha:g}{after}; at least {needed} are "
            f"needed ({spell('trials', needed)})"
        )
        yield Note("few-trials", text, {"n_trials": n_trials, "needed": needed, "alpha": alpha})


def _check_units(adjustment: Adjustment, table: Table) -> Iterator[Note]:
    """Yield a note for each kind of unit with few units in some comparisons, and the number that cannot reach alpha."""
    alpha, method, n_units = table.alpha, adjustment.method, table.n_units
    is_few = (n_units > 0) & (n_units < FEW_UNITS)
    if not is_few.any():
        return
    min_p = np.minimum(2.0 ** ((table.alternative[0] == "two-sided") - n_units.astype(np.float64)), 1.0)
    is_hopeless = (P_VALUE_ADJUSTMENTS[method](min_p) if method in P_VALUE_ADJUSTMENTS else min_p) > alpha
    for unit in sorted(table.unit.levels):
        few = np.flatnonzero(is_few & table.unit.equals(unit))
        if not len(few):
            continue
        low, high, n_hopeless = int(n_units[few].min()), int(n_units[few].max()), int(is_hopeless[few].sum())
        reach = ""
        if n_hopeless:
            finer = "" if unit == "item" else f", or choose a finer {spell('unit')} if its units are independent"
            after = "" if method == "none" else f" after {method}"
            share = _format_share(n_hopeless, len(few))
            reach = f". p cannot be as small as {alpha:g}{after}{share}. Use more units{finer}"
        number = format_count(low, "unit") if low == high else f"{low} to {high} units"
        text = f"only {number} ({unit}){_format_share(len(few), len(table))}, so the test has little power{reach}"
        numbers: dict[str, NoteValue] = {"unit": unit, "fewest": low, "most": high, "alpha": alpha}
        numbers |= {"n_comparisons": len(few), "n_unreachable": n_hopeless, "of": len(table)}
        yield Note("few-units", text, numbers)


def _format_share(n: int, total: int) -> str:
    return "" if n == total else f" in {n:,} of {format_count(total, 'comparison')}"


def _check_undecided(adjustment: Adjustment, table: Table) -> Iterator[Note]:
    """Yield a note on how many verdicts another seed could change; enumerated families have none."""
    if adjustment.family is not None and (adjustment.family.enumerated or adjustment.n_trials == 0):
        return
    alpha = table.alpha
    low, high = table["p_adjusted_interval.0"], table["p_adjusted_interval.1"]
    straddling = (table.n_trials > 0) & (low <= alpha) & (alpha < high)
    if n := int(np.count_nonzero(straddling)):
        middle = table.p_adjusted[straddling].tolist()
        needed = sorted(estimate_trials_to_decide(p, alpha) or MAX_TRIALS for p in middle)[n // 2]
        can_decide = adjustment.family is not None and adjustment.n_trials < needed < MAX_TRIALS
        remedy = f"; about {format_count(needed, 'trial')} would decide {'it' if n == 1 else 'half of them'}"
        text = (
            f"{n:,} of {len(table):,} adjusted p {'lies' if n == 1 else 'lie'} within Monte Carlo error (99 %) "
            f"of {alpha:g}: another seed could change the verdict{remedy * can_decide}"
        )
        numbers = {"n_comparisons": n, "of": len(table), "alpha": alpha, "needed": needed if can_decide else None}
        yield Note("family-undecided", text, numbers)
