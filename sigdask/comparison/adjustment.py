"""From comparisons to families: what is judged together, on which scale, and what p becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.exchange import Asking
from sigdask.comparison.results import FamilyNote
from sigdask.counts.grouping import numbered, rows_of
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric
from sigdask.options import Adjust, Alternative
from sigdask.randomization.deviations import root_mean_square, spread, swap_deviations
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.max_t import Family
from sigdask.randomization.panels import ComparedPanel, build
from sigdask.randomization.panels.families import SIDES, Member
from sigdask.randomization.panels.sums import SUMS, Panel
from sigdask.randomization.tallies import Tally
from sigdask.randomization.tukey import Relabelling
from sigdask.statistics.bounds import interval, p_value
from sigdask.statistics.multiplicity import OF_P_VALUES, step_down

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Adjusted = tuple[Array, Array, Array]
"""Adjusted p-values, and the lower and upper ends of their Monte Carlo intervals."""


@dataclass(frozen=True, eq=False)
class Adjustment:
    """How the p-values of some comparisons are adjusted, and what must be counted for it.

    Attributes
    ----------
    method : str
        As in `Adjust`.
    family : Family, Relabelling or None
        What is counted; None where p-values are enough.
    n_trials : int
        Trials of the family: one number for all of it.
    job : Job or None
        What must be counted of the family.
    for_exact : bool
        It is taken as p-values are exact, and no adjustment was asked for.
    """

    method: Adjust
    family: Family | Relabelling | None = None
    n_trials: int = 0
    job: Job | None = None
    for_exact: bool = False

    @staticmethod
    def by(method: Adjust, family: Family | Relabelling, n_trials: int) -> Adjustment:
        """Return the adjustment by so many trials of a family."""
        job = Job(family, n_trials, label=f"the family of {family.shape[0]} comparisons")
        return Adjustment(method, family, n_trials, job)

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
        if self.family is None or self.job is None:
            found = tuple(map(OF_P_VALUES[self.method], own))
        else:
            found = joint_p_values(self.family, self.method, tallies[self.job])
        return np.maximum(found[0], p), np.maximum(found[1], low), np.maximum(found[2], high)

    def counted(self, tallies: Tallies) -> Adjustment:
        """Return it with the trials that were counted, fewer than asked for where a deadline came first."""
        return self if self.job is None else replace(self, n_trials=tallies[self.job].n_trials)

    def note(self, n_comparisons: int) -> FamilyNote:
        """Say what was done."""
        family = self.family
        exact = family is not None and family.enumerated and self.n_trials == family.n_arrangements
        return FamilyNote(self.method, n_comparisons, self.n_trials or None, exact)


def joint_p_values(family: Family | Relabelling, method: str, tally: Tally) -> Adjusted:
    """Return the p-values of a counted family: exact when enumerated, else (nc + 1) / (nt + 1)."""
    tail, order = family.judged_by(method)
    p, low, high = rates(family, tally, tail)
    if order is None:
        return p, low, high
    return step_down(p, order), step_down(low, order), step_down(high, order)  # limits rise with the count, as p does


def rates(family: Family | Relabelling, tally: Tally, tail: int) -> Adjusted:
    """Return p-values of counts of exceedances and their intervals; 1 where a family was stopped before its end."""
    extreme, n = tally.counts[:, 0, tail], tally.n_trials
    if family.enumerated and n < family.n_arrangements:
        return np.ones(len(extreme)), np.zeros(len(extreme)), np.ones(len(extreme))
    p = p_value(extreme, n, exact=family.enumerated)
    return (p, p, p) if family.enumerated else (p, *interval(extreme, n))


def chosen(adjust: Adjust | None, asking: Asking) -> Adjust:
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


def is_exact(asking: Asking) -> bool:
    """Say whether exact p-values alone are asked for, beside which a family would have to be counted by trials."""
    return any(asking.exchanges[k].asked.method == "exact" for k in np.unique(asking.of_set))


def adjustment(method: Adjust, asking: Asking, alternative: Alternative) -> Adjustment:
    """Make the family of some comparisons.

    Parameters
    ----------
    method : str
        As in `Adjust`.
    asking : Asking
        Pairs x metrics x test sets x subsets, all judged together.
    alternative : str
        Of all of them.
    """
    if method == "none" or method in OF_P_VALUES or not len(asking):
        return Adjustment(method)
    if (other := apart(asking)) is not None:
        raise InputError(f"adjust {method}: {other}, which shares no sums; use holm")
    if method == "tukey":
        return with_trials(method, _relabelling(asking, alternative), asking)
    raw = method == "max-t:raw"
    members, rows = _members(asking) if raw else placed(asking)
    return with_trials(method, family_of(members, rows[:, None, :], alternative, raw=raw), asking)


def family_of(members: Sequence[Member], parts: NDArray[np.int64], alternative: Alternative, *, raw: bool) -> Family:
    """Make a family; a single hypothesis is compared with itself alone, whatever it is divided by."""
    return Family(tuple(members), parts, SIDES[alternative], studentised=not raw and len(parts) > 1)


def apart(asking: Asking) -> str | None:
    """Say what the first score is that is none of sums, if there is one."""
    panel, panels = asking.panel, asking.panels
    strange = np.array([one.kind != SUMS for one in panels], np.bool_)[panel]
    if not strange.any():
        return None
    k = int(np.argmax(strange))
    return f"{asking.metric_of(k)} is {panels[panel[k]].kind}"


def with_trials(method: Adjust, family: Family | Relabelling, asking: Asking) -> Adjustment:
    """Return a family with its trials: all arrangements where these are few enough."""
    sampled = all(asking.exchanges[k].asked.method == "randomization" for k in np.unique(asking.of_set))
    if family.can_enumerate and not sampled:
        return Adjustment.by(method, family.enumeration(), family.n_arrangements)
    return Adjustment.by(method, family, int(asking.column("n_trials").max()))


def _members(asking: Asking) -> tuple[list[Member], Integers]:
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


def placed(asking: Asking) -> tuple[list[Member], Integers]:
    """Return the panels and metrics, as members of weight 1, and each comparison's (member, row)."""
    panel, column, panels = asking.panel, asking.column("column"), asking.panels
    which = numbered(panel, column)
    members = [Member(panel_of_sums(panels[panel[own[0]]]), int(column[own[0]])) for own in rows_of(which)]
    return members, np.column_stack([which, asking.column("row")])


def panel_of_sums(panel: ComparedPanel) -> Panel:
    """Return a panel of sums, of which alone families are made."""
    assert isinstance(panel, Panel)
    return panel


def _groups(asking: Asking) -> Integers:
    """Return numbers of what must share a scale: test set, subset and metric."""
    return numbered(asking.of_set, asking.subset, asking.metric)


def _relabelling(asking: Asking, alternative: Alternative) -> Relabelling:
    if alternative != "two-sided":
        raise InputError(f"adjust tukey: is two-sided, not {alternative}; use max-t")
    groups = rows_of(_groups(asking))
    pairs = np.column_stack([asking.column("a"), asking.column("b")])
    members: list[Member] = []
    rows = np.zeros((len(asking), 2), np.int64)
    for own in groups:
        one, first = asking.exchanges[asking.of_set[own[0]]], int(asking.row[own[0]])
        c = one.comparisons
        metric, mask = c.metrics[c.metric[first]], c.masks[c.subset.codes[first]]
        assert isinstance(metric, BoundMetric)
        panel = build.joint(one.asked.counts, one.asked.units, metric, pairs[own], mask)
        weight = 1.0 if len(groups) == 1 else 1 / root_mean_square(np.array([spread(panel, 0)]))
        rows[own] = np.column_stack([np.full(len(own), len(members)), np.arange(len(own))])
        members.append(Member(panel, 0, weight))
    return Relabelling(tuple(members), rows)
