"""From comparisons to families: what is judged together, on which scale, and what p becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.jobs import FamilyComparisons
from sigdask.analysis.comparison.pairs import with_every_unit
from sigdask.analysis.comparison.spec import IntervalSpec
from sigdask.counts.grouping import numbered, rows_of
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric
from sigdask.options import Adjust, Alternative
from sigdask.randomization.families.bootstrap_t import StudentisedBootstrap, critical_value
from sigdask.randomization.families.deviations import root_mean_square, spread, swap_deviations
from sigdask.randomization.families.max_t import Family
from sigdask.randomization.families.skewed import skewed
from sigdask.randomization.families.tukey import Relabelling
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels import ComparedPanel, build
from sigdask.randomization.panels.families import SIDES, FamilyMember
from sigdask.randomization.panels.sums import SUMS, Panel
from sigdask.randomization.tallies import Tally
from sigdask.results.columns.adjusted import UNADJUSTED, AdjustmentDetails, no_details
from sigdask.results.columns.coded import Coded
from sigdask.results.comparisons import FamilyNote
from sigdask.statistics.bounds import interval, p_value
from sigdask.statistics.multiplicity import OF_P_VALUES, step_down

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Adjusted = tuple[Array, Array, Array]
"""Adjusted p-values, and the lower and upper ends of their Monte Carlo intervals."""

AnyFamily = Family | Relabelling | StudentisedBootstrap

STEPPED: tuple[Adjust, ...] = ("max-t", "single-step-max-t")
"""Adjustments whose p is the larger of theirs and the studentised bootstrap's where differences are skewed."""

SIMULTANEOUS: tuple[Adjust, ...] = (*STEPPED, "bootstrap-t", "tukey")
"""Adjustments that have simultaneous intervals: those of p-values alone, and of raw differences, have none."""

MOST_RESAMPLES, FEWEST = 2**17, 10_000
"""Resamples of a family at most, and the number that it has whatever they cost."""

DRAWN, MULTIPLIED = 2 * 10**8, 2**33
"""Units drawn, and units times comparisons, beyond which there are fewer resamples: a few seconds of a core."""

FEWEST_OF_INTERVALS = 2_000
"""Resamples at least where intervals alone are made of them."""


@dataclass(frozen=True, eq=False)
class Adjustment:
    """How the p-values of some comparisons are adjusted, and what must be counted for it.

    Attributes
    ----------
    method : str
        As in `Adjust`.
    family : Family, Relabelling, StudentisedBootstrap or None
        What is counted; None where p-values are enough.
    n_trials : int
        Trials of the family: one number for all of it.
    job : Job or None
        What must be counted of the family.
    for_exact : bool
        It is taken as p-values are exact, and no adjustment was asked for.
    skewed : bool array, shape (n_comparisons,), or None
        Of which comparisons the differences of units are too skewed; None where nobody looked.
    resampling : Job or None
        The studentised bootstrap of the family, where p-values or simultaneous intervals need it.
    with_intervals : bool
        Whether simultaneous intervals are wanted.
    """

    method: Adjust
    family: AnyFamily | None = None
    n_trials: int = 0
    job: Job | None = None
    for_exact: bool = False
    skewed: NDArray[np.bool_] | None = None
    resampling: Job | None = None
    with_intervals: bool = False

    @staticmethod
    def by(method: Adjust, family: AnyFamily, n_trials: int) -> Adjustment:
        """Return the adjustment by so many trials of a family."""
        n = family.n_hypotheses if isinstance(family, StudentisedBootstrap) else family.shape[0]
        return Adjustment(method, family, n_trials, Job(family, n_trials, label=f"the family of {n} comparisons"))

    @property
    def companion(self) -> Job | None:
        """The studentised bootstrap that is counted beside the family itself."""
        return None if self.resampling is self.job else self.resampling

    @property
    def counts(self) -> tuple[int, ...]:
        """The trials and, where p-values are made of them beside these, the resamples."""
        return (self.n_trials, self.resampling.n_trials) if self.takes_larger and self.resampling else (self.n_trials,)

    @property
    def takes_larger(self) -> bool:
        """Whether p is the larger of two methods' in any comparison."""
        return self.method in STEPPED and self.resampling is not None and self.n_skewed > 0

    @property
    def n_skewed(self) -> int:
        """Comparisons of which the differences of units are too skewed."""
        return 0 if self.skewed is None else int(np.count_nonzero(self.skewed))

    def p_values(self, p: Array, low: Array, high: Array, tallies: Tallies) -> Adjusted | None:
        """Return adjusted p-values and their intervals, none below the p-value of the single comparison.

        Parameters
        ----------
        p, low, high : float64 array, shape (n_comparisons,)
            The p-values of the comparisons, and the ends of their intervals.
        tallies : mapping of Job to Tally
            That of `job` among them.
        """
        if self.method == "none" or not len(p):
            return None
        own = p, low, high
        found = self._joint(tallies) or tuple(map(OF_P_VALUES[self.method], own))
        if self.takes_larger:
            assert self.skewed is not None
            resampled = self._resampled(tallies)
            found = tuple(
                np.where(self.skewed, np.maximum(*both), both[0]) for both in zip(found, resampled, strict=True)
            )
        return np.maximum(found[0], p), np.maximum(found[1], low), np.maximum(found[2], high)

    def _joint(self, tallies: Tallies) -> Adjusted | None:
        """Return what the counts of the family say; None where p-values are enough."""
        if self.family is None or self.job is None:
            return None
        return joint_p_values(self.family, self.method, tallies[self.job])

    def _resampled(self, tallies: Tallies) -> Adjusted:
        """Return what the studentised bootstrap says."""
        assert self.resampling is not None
        panel = self.resampling.panel
        assert isinstance(panel, StudentisedBootstrap)
        return joint_p_values(panel, self.method, tallies[self.resampling])

    def details(self, p: Array, difference: Array, tallies: Tallies, alpha: float) -> AdjustmentDetails:
        """Return the p-values of two methods, where the adjusted p is the larger, and simultaneous intervals.

        Parameters
        ----------
        p, difference : float64 array, shape (n_comparisons,)
            The p-values of the comparisons, and the differences.
        tallies : mapping of Job to Tally
            Those of `job` and `resampling` among them.
        alpha : float
            What the intervals' confidence leaves.
        """
        n = len(p)
        found = no_details(n)
        if (joint := self._joint(tallies)) is None:
            return found
        if self.method == "tukey":
            found = _two(found, "tukey", joint[0], UNADJUSTED, p, np.ones(n, np.bool_))
        elif self.takes_larger:
            assert self.skewed is not None
            resampled = np.maximum(self._resampled(tallies)[0], p)
            found = _two(found, self.method, np.maximum(joint[0], p), "bootstrap-t", resampled, self.skewed)
        if not self.with_intervals or self.resampling is None:
            return found
        panel = self.resampling.panel
        assert isinstance(panel, StudentisedBootstrap)
        reach = critical_value(tallies[self.resampling], alpha) * panel.errors
        has = np.isfinite(reach) & (panel.errors > 0)
        low, high = difference - reach, difference + reach
        side = panel.family.side
        low, high = (np.full(n, -np.inf) if side < 0 else low), (np.full(n, np.inf) if side > 0 else high)
        return replace(found, low=np.where(has, low, np.nan), high=np.where(has, high, np.nan))

    def counted(self, tallies: Tallies) -> Adjustment:
        """Return it with the trials that were counted, fewer than asked for where a deadline came first."""
        return self if self.job is None else replace(self, n_trials=tallies[self.job].n_trials)

    def note(self, n_comparisons: int) -> FamilyNote:
        """Say what was done."""
        family = self.family
        exact = family is not None and family.enumerated and self.n_trials == family.n_arrangements
        n_resamples = None if self.resampling is None else self.resampling.n_trials
        return FamilyNote(self.method, n_comparisons, self.n_trials or None, exact, n_resamples)


def _two(
    found: AdjustmentDetails, first: str, p_first: Array, second: str, p_second: Array, rows: NDArray[np.bool_]
) -> AdjustmentDetails:
    """Put the p-values of two methods into some rows."""
    codes = rows.astype(np.int32)
    return replace(
        found,
        first=Coded(codes, ("", first)),
        second=Coded(codes, ("", second)),
        p_first=np.where(rows, p_first, np.nan),
        p_second=np.where(rows, p_second, np.nan),
    )


def joint_p_values(family: AnyFamily, method: str, tally: Tally) -> Adjusted:
    """Return the p-values of a counted family: exact when enumerated, else (nc + 1) / (nt + 1)."""
    tail, order = family.judged_by(method)
    p, low, high = rates(family, tally, tail)
    if order is None:
        return p, low, high
    return step_down(p, order), step_down(low, order), step_down(high, order)  # limits rise with the count, as p does


def rates(family: AnyFamily, tally: Tally, tail: int) -> Adjusted:
    """Return p-values of counts of exceedances and their intervals; 1 where a family was stopped before its end."""
    n_hypotheses = family.n_hypotheses if isinstance(family, StudentisedBootstrap) else len(tally.counts)
    extreme, n = tally.counts[:n_hypotheses, 0, tail], tally.n_trials
    if family.enumerated and n < family.n_arrangements:
        return np.ones(len(extreme)), np.zeros(len(extreme)), np.ones(len(extreme))
    p = p_value(extreme, n, exact=family.enumerated)
    return (p, p, p) if family.enumerated else (p, *interval(extreme, n))


def chosen(adjust: Adjust | None, asking: FamilyComparisons) -> Adjust:
    """Return the adjustment asked for; by default of three systems and more max-T, Holm where p is to be exact.

    Of scores that are not of sums Holm as well.
    """
    if adjust is not None and adjust not in get_args(Adjust):
        raise InputError(f"adjust = {adjust!r}: must be one of {', '.join(get_args(Adjust))}")
    if adjust is not None:
        return adjust
    n_systems = len(np.unique(np.concatenate([asking.systems("a"), asking.systems("b")])))
    if n_systems < 3 or len(asking) < 2:
        return "none"
    return "max-t" if apart(asking) is None and not is_exact(asking) else "holm"


def is_exact(asking: FamilyComparisons) -> bool:
    """Say whether exact p-values alone are asked for, beside which a family would have to be counted by trials."""
    return any(asking.exchanges[k].asked.method == "exact" for k in np.unique(asking.of_set))


def adjustment(
    method: Adjust, asking: FamilyComparisons, alternative: Alternative, sureness: IntervalSpec | None = None
) -> Adjustment:
    """Make the family of some comparisons.

    Parameters
    ----------
    method : str
        As in `Adjust`.
    asking : FamilyComparisons
        Pairs x metrics x test sets x subsets, all judged together.
    alternative : str
        Of all of them.
    sureness : IntervalSpec, optional
        Intervals that are wanted of them; none by default.
    """
    if method == "none" or not len(asking):
        return Adjustment(method)
    if method in OF_P_VALUES:
        return Adjustment(method, skewed=_are_skewed(asking))
    if (other := apart(asking)) is not None:
        raise InputError(f"adjust {method}: {other}, which shares no sums; use holm")
    if method == "bootstrap-t":
        family = resampled_family(asking, alternative)
        made = Adjustment.by(method, family, n_judging(asking, family))
        return replace(made, resampling=made.job, with_intervals=sureness is not None)
    if method == "tukey":
        made = with_trials(method, _relabelling(asking, alternative), asking)
        return _with_companion(made, asking, alternative, sureness)
    raw = method == "max-t:raw"
    members, rows = _members(asking) if raw else placed(asking)
    made = with_trials(method, family_of(members, rows[:, None, :], alternative, raw=raw), asking)
    return made if raw else _with_companion(made, asking, alternative, sureness)


def _with_companion(
    made: Adjustment, asking: FamilyComparisons, alternative: Alternative, sureness: IntervalSpec | None
) -> Adjustment:
    """Add the studentised bootstrap of a family where its p-values or simultaneous intervals need it."""
    found = replace(made, skewed=_are_skewed(asking), with_intervals=sureness is not None)
    is_judging = found.n_skewed > 0 and made.method in STEPPED
    if len(asking) < 2 or not (is_judging or sureness is not None):
        return found
    family = resampled_family(asking, alternative)
    n = n_judging(asking, family)
    if not is_judging:
        drawn = DRAWN // family.n_drawn
        n = (sureness and sureness.resamples) or max(FEWEST_OF_INTERVALS, min(FEWEST, drawn))
    return replace(found, resampling=Job(family, n, label=f"resamples of {len(asking)} comparisons"))


def _are_skewed(asking: FamilyComparisons) -> NDArray[np.bool_] | None:
    """Say of which comparisons the differences of units are too skewed; None where scores are not of sums."""
    if len(asking) < 2 or apart(asking) is not None:
        return None
    members, rows = placed(asking)
    return skewed(Family(tuple(members), rows[:, None, :], studentised=True))


def resampled_family(asking: FamilyComparisons, alternative: Alternative) -> StudentisedBootstrap:
    """Return the studentised bootstrap of some comparisons, whose panels have concordant units as well."""
    n, n_before = len(asking), 0
    panel, row, column = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    panels: list[ComparedPanel] = []
    for k in np.unique(asking.of_set).tolist():
        exchange, here = asking.exchanges[k], asking.of_set == k
        own, *places = with_every_unit(exchange.asked, exchange.comparisons)
        for column_of, values in zip((panel, row, column), places, strict=True):
            column_of[here] = values[asking.row[here]]
        panel[here] += n_before
        panels, n_before = panels + own, n_before + len(own)
    which = numbered(panel, column)
    first = [own[0] for own in rows_of(which)]
    members = tuple(FamilyMember(panel_of_sums(panels[panel[k]]), int(column[k])) for k in first)
    n_units = tuple(asking.exchanges[asking.of_set[k]].asked.units.n_units for k in first)
    family = Family(members, np.column_stack([which, row])[:, None, :], SIDES[alternative], studentised=True)
    return StudentisedBootstrap(family, n_units)


def n_judging(asking: FamilyComparisons, family: StudentisedBootstrap) -> int:
    """Return how many resamples p-values are made of: as many as trials, or as many as are soon counted."""
    soon = min(MOST_RESAMPLES, DRAWN // family.n_drawn, MULTIPLIED // (family.n_drawn * family.n_hypotheses))
    return min(int(asking.column("n_trials").max()), max(FEWEST, soon))


def family_of(
    members: Sequence[FamilyMember], parts: NDArray[np.int64], alternative: Alternative, *, raw: bool
) -> Family:
    """Make a family; a single hypothesis is compared with itself alone, whatever it is divided by."""
    return Family(tuple(members), parts, SIDES[alternative], studentised=not raw and len(parts) > 1)


def apart(asking: FamilyComparisons) -> str | None:
    """Say what the first score is that is none of sums, if there is one."""
    panel, panels = asking.panel, asking.panels
    strange = np.array([one.kind != SUMS for one in panels], np.bool_)[panel]
    if not strange.any():
        return None
    k = int(np.argmax(strange))
    return f"{asking.metric_of(k)} is {panels[panel[k]].kind}"


def with_trials(method: Adjust, family: AnyFamily, asking: FamilyComparisons) -> Adjustment:
    """Return a family with its trials: all arrangements where these are few enough."""
    sampled = all(asking.exchanges[k].asked.method == "randomization" for k in np.unique(asking.of_set))
    if family.can_enumerate and not sampled:
        return Adjustment.by(method, family.enumeration(), family.n_arrangements)
    return Adjustment.by(method, family, int(asking.column("n_trials").max()))


def _members(asking: FamilyComparisons) -> tuple[list[FamilyMember], Integers]:
    """Return the members, each metric of each set on one scale, and each comparison's (member, row)."""
    members, rows = placed(asking)
    groups = rows_of(_groups(asking))
    if len(groups) == 1:
        return members, rows
    for own in groups:
        which = np.unique(rows[own, 0])
        scale = root_mean_square(np.concatenate([swap_deviations(members[k].panel, members[k].metric) for k in which]))
        for k in which:
            members[k] = replace(members[k], weight=1 / scale)
    return members, rows


def placed(asking: FamilyComparisons) -> tuple[list[FamilyMember], Integers]:
    """Return the panels and metrics, as members of weight 1, and each comparison's (member, row)."""
    panel, column, panels = asking.panel, asking.column("column"), asking.panels
    which = numbered(panel, column)
    members = [FamilyMember(panel_of_sums(panels[panel[own[0]]]), int(column[own[0]])) for own in rows_of(which)]
    return members, np.column_stack([which, asking.column("row")])


def panel_of_sums(panel: ComparedPanel) -> Panel:
    """Return a panel of sums, of which alone families are made."""
    assert isinstance(panel, Panel)
    return panel


def _groups(asking: FamilyComparisons) -> Integers:
    """Return numbers of what must share a scale: test set, subset and metric."""
    return numbered(asking.of_set, asking.subset, asking.metric)


def _relabelling(asking: FamilyComparisons, alternative: Alternative) -> Relabelling:
    if alternative != "two-sided":
        raise InputError(f"adjust tukey: is two-sided, not {alternative}; use max-t")
    groups = rows_of(_groups(asking))
    pairs = np.column_stack([asking.column("a"), asking.column("b")])
    members: list[FamilyMember] = []
    rows = np.zeros((len(asking), 2), np.int64)
    for own in groups:
        one, first = asking.exchanges[asking.of_set[own[0]]], int(asking.row[own[0]])
        c = one.comparisons
        metric, mask = c.metrics[c.metric[first]], c.masks[c.subset.codes[first]]
        assert isinstance(metric, BoundMetric)
        panel = build.joint(one.asked.counts, one.asked.units, metric, pairs[own], mask)
        weight = 1.0 if len(groups) == 1 else 1 / root_mean_square(np.array([spread(panel, 0)]))
        rows[own] = np.column_stack([np.full(len(own), len(members)), np.arange(len(own))])
        members.append(FamilyMember(panel, 0, weight))
    return Relabelling(tuple(members), rows)
