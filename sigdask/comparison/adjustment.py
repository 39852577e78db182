"""From comparisons to families: what is judged together, on which scale, and what p becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.comparisons import Asked, Comparison
from sigdask.comparison.found.result import Result
from sigdask.comparison.results import FamilyNote
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric
from sigdask.options import Adjust, Alternative
from sigdask.randomization.deviations import root_mean_square, spread, swap_deviations
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.max_t import Family
from sigdask.randomization.panels import build
from sigdask.randomization.panels.families import SIDES, Member
from sigdask.randomization.panels.sums import SUMS, Panel
from sigdask.randomization.tallies import Tally
from sigdask.randomization.tukey import Relabelling
from sigdask.statistics.bounds import interval, p_value
from sigdask.statistics.multiplicity import OF_P_VALUES, step_down

Array = NDArray[np.float64]
Adjusted = tuple[Array, Array, Array]
"""Adjusted p-values, and the lower and upper ends of their Monte Carlo intervals."""


Asking = tuple[Asked, Comparison]


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
    """

    method: Adjust
    family: Family | Relabelling | None = None
    n_trials: int = 0
    job: Job | None = None

    @staticmethod
    def by(method: Adjust, family: Family | Relabelling, n_trials: int) -> Adjustment:
        """Return the adjustment by so many trials of a family."""
        job = Job(family, n_trials, label=f"the family of {family.shape[0]} comparisons")
        return Adjustment(method, family, n_trials, job)

    def p_values(self, single: Sequence[Result], tallies: Tallies) -> Adjusted | None:
        """Return adjusted p-values and their intervals, none below the p-value of the single comparison.

        Parameters
        ----------
        single : sequence of Result
            The comparisons.
        tallies : mapping of Job to Tally
            That of `job` among them.
        """
        if self.method == "none" or not len(single):
            return None
        own = _singles([r.p_value for r in single], [r.p_interval for r in single])
        if self.family is None or self.job is None:
            p, low, high = map(OF_P_VALUES[self.method], own)
        else:
            p, low, high = joint_p_values(self.family, self.method, tallies[self.job])
        return np.maximum(p, own[0]), np.maximum(low, own[1]), np.maximum(high, own[2])

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
    p = np.array([p_value(int(k), n, exact=family.enumerated) for k in extreme])
    limits = {int(k): interval(int(k), n) for k in np.unique(extreme)} if not family.enumerated else {}
    found = [limits.get(int(k), (q, q)) for k, q in zip(extreme, p, strict=True)]
    return _singles(p, found)


def _singles(p: Sequence[float] | Array, limits: Sequence[tuple[float, float]]) -> Adjusted:
    low, high = np.array(limits, np.float64).reshape(-1, 2).T
    return np.asarray(p, np.float64), low, high


def chosen(adjust: Adjust | None, comparisons: Sequence[Asking]) -> Adjust:
    """Return the adjustment asked for; by default max-T for three systems and more, Holm for scores not of sums."""
    if adjust is not None and adjust not in get_args(Adjust):
        raise InputError(f"adjust = {adjust!r}: must be one of {', '.join(get_args(Adjust))}")
    if adjust is not None:
        return adjust
    systems = {asked.counts.systems[s] for asked, c in comparisons for s in c.pair}
    if len(systems) < 3 or len(comparisons) < 2:
        return "none"
    return "holm" if any(c.panel.kind != SUMS for _, c in comparisons) else "max-t"


def adjustment(method: Adjust, comparisons: Sequence[Asking], alternative: Alternative) -> Adjustment:
    """Make the family of some comparisons.

    Parameters
    ----------
    method : str
        As in `Adjust`.
    comparisons : sequence of (Asked, Comparison)
        Pairs x metrics x test sets x subsets, all judged together.
    alternative : str
        Of all of them.
    """
    if method == "none" or method in OF_P_VALUES or not comparisons:
        return Adjustment(method)
    if apart := [c for _, c in comparisons if c.panel.kind != SUMS]:
        raise InputError(f"adjust {method}: {no_sums(apart[0])}, which shares no sums; use holm")
    if method == "tukey":
        return with_trials(method, _relabelling(comparisons, alternative), comparisons)
    raw = method == "max-t:raw"
    members, rows = _members(comparisons) if raw else placed(comparisons)
    return with_trials(method, family_of(members, rows[:, None, :], alternative, raw=raw), comparisons)


def family_of(members: Sequence[Member], parts: NDArray[np.int64], alternative: Alternative, *, raw: bool) -> Family:
    """Make a family; a single hypothesis is compared with itself alone, whatever it is divided by."""
    return Family(tuple(members), parts, SIDES[alternative], studentised=not raw and len(parts) > 1)


def no_sums(c: Comparison) -> str:
    """Say what a score is that is none of sums."""
    return f"{c.metric.name} is {c.panel.kind}"


def with_trials(method: Adjust, family: Family | Relabelling, comparisons: Sequence[Asking]) -> Adjustment:
    """Return a family with its trials: all arrangements where these are few enough."""
    sampled = all(asked.method == "randomization" for asked, _ in comparisons)
    if family.can_enumerate and not sampled:
        return Adjustment.by(method, family.enumeration(), family.n_arrangements)
    return Adjustment.by(method, family, max(c.n_trials for _, c in comparisons))


def _members(comparisons: Sequence[Asking]) -> tuple[list[Member], NDArray[np.int64]]:
    """Return the members, each metric of each set on one scale, and each comparison's (member, row)."""
    members, rows = placed(comparisons)
    groups: dict[Any, set[int]] = {}
    for (asked, c), (member, _) in zip(comparisons, rows.tolist(), strict=True):
        groups.setdefault(_group(asked, c), set()).add(member)
    if len(groups) == 1:
        return members, rows
    for own in groups.values():
        scale = root_mean_square(
            np.concatenate([swap_deviations(members[k].panel, members[k].metric) for k in sorted(own)])
        )
        for k in own:
            members[k] = replace(members[k], weight=1 / scale)
    return members, rows


def placed(comparisons: Sequence[Asking]) -> tuple[list[Member], NDArray[np.int64]]:
    """Return the panels and metrics, as members of weight 1, and each comparison's (member, row)."""
    found: dict[tuple[int, int], int] = {}
    members: list[Member] = []
    rows = []
    for _, c in comparisons:
        key = (id(c.panel), c.column)
        if key not in found:
            found[key] = len(members)
            members.append(Member(panel_of_sums(c), c.column))
        rows.append((found[key], c.row))
    return members, np.array(rows, np.int64)


def panel_of_sums(c: Comparison) -> Panel:
    """Return the panel of a comparison of sums, which alone families are made of."""
    assert isinstance(c.panel, Panel)
    return c.panel


def _group(asked: Asked, c: Comparison) -> tuple[int, str | None, str]:
    """Return what must share a scale: test set, subset and metric."""
    return id(asked), c.subset["value"] if c.subset else None, c.metric.name


def _relabelling(comparisons: Sequence[Asking], alternative: Alternative) -> Relabelling:
    if alternative != "two-sided":
        raise InputError(f"adjust tukey: is two-sided, not {alternative}; use max-t")
    grouped: dict[Any, list[int]] = {}
    for k, (asked, c) in enumerate(comparisons):
        grouped.setdefault(_group(asked, c), []).append(k)
    members: list[Member] = []
    rows = np.zeros((len(comparisons), 2), np.int64)
    for places in grouped.values():
        asked, first = comparisons[places[0]]
        assert isinstance(first.metric, BoundMetric)
        pairs = [comparisons[k][1].pair for k in places]
        panel = build.joint(asked.counts, asked.units, first.metric, pairs, first.mask)
        weight = 1.0 if len(grouped) == 1 else 1 / root_mean_square(np.array([spread(panel, 0)]))
        rows[places] = [(len(members), row) for row in range(len(pairs))]
        members.append(Member(panel, 0, weight))
    return Relabelling(tuple(members), rows)
