"""From comparisons to families: what is judged together, on which scale, and what p becomes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.comparisons import Asked, Comparison
from sigdask.comparison.results import FamilyNote, Result
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric
from sigdask.options import Adjust, Alternative
from sigdask.randomization import skewed
from sigdask.randomization.deviations import root_mean_square, spread, swap_deviations
from sigdask.randomization.jobs import Job
from sigdask.randomization.max_t import Family
from sigdask.randomization.panels import build
from sigdask.randomization.panels.families import SIDES, Member
from sigdask.randomization.panels.sums import SUMS, Panel
from sigdask.randomization.tallies import Tally
from sigdask.randomization.tukey import Relabelling
from sigdask.statistics.bounds import MAX_TRIALS, interval, p_value, trials_to_decide
from sigdask.statistics.multiplicity import OF_P_VALUES, cost, step_down, trials_needed

Array = NDArray[np.float64]
Adjusted = tuple[Array, Array, Array]
"""Adjusted p-values, and the lower and upper ends of their Monte Carlo intervals."""

FEW_UNITS = 20

TUKEY_CAVEAT = (
    "Tukey's HSD tests that all systems are exchangeable: systems of equal means and unequal variances are told "
    "apart too often (9 to 16 % at 5 % in simulation); --adjust max-t is not so"
)

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
    """

    method: Adjust
    family: Family | Relabelling | None = None
    n_trials: int = 0

    def jobs(self) -> list[Job]:
        """Return what must be counted."""
        if self.family is None:
            return []
        label = f"the family of {self.family.shape[0]} comparisons"
        return [Job(self.family, self.n_trials, label=label)]

    def p_values(self, single: Sequence[Result], tallies: Sequence[Tally]) -> Adjusted | None:
        """Return adjusted p-values and their intervals, none below the p-value of the single comparison.

        Parameters
        ----------
        single : sequence of Result
            The comparisons.
        tallies : sequence of Tally
            Of `jobs`.
        """
        if self.method == "none" or not len(single):
            return None
        own = _singles([r.p_value for r in single], [r.p_interval for r in single])
        if self.family is None:
            p, low, high = map(OF_P_VALUES[self.method], own)
        else:
            p, low, high = joint_p_values(self.family, self.method, tallies[0])
        return np.maximum(p, own[0]), np.maximum(low, own[1]), np.maximum(high, own[2])

    def counted(self, tallies: Sequence[Tally]) -> Adjustment:
        """Return it with the trials that were counted, fewer than asked for where a deadline came first."""
        return replace(self, n_trials=tallies[0].n_trials) if self.family is not None else self

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
        return Adjustment(method, family.enumeration(), family.n_arrangements)
    return Adjustment(method, family, max(c.n_trials for _, c in comparisons))


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


def obstacles(made: Adjustment, results: Sequence[Result], alpha: float) -> list[str]:
    """Return what stands in the way of a verdict, with remedies."""
    return [note for check in (_few_trials, _few_units, _undecided, _caveats) for note in check(made, results, alpha)]


def _few_trials(made: Adjustment, results: Sequence[Result], alpha: float) -> Iterable[str]:
    sampled = [r.n_asked for r in results if r.method == "approximate" and r.n_trials > 0]
    if made.method in OF_P_VALUES and sampled:
        needed = trials_needed(cost(made.method, len(results)), alpha)
        if (least := min(sampled)) < needed:
            yield (
                f"{least:,} trials cannot bring a single p of {len(results):,} to {alpha:g} after {made.method}: "
                f"it takes {needed:,} (--trials {needed})"
            )
        return
    needed = trials_needed(1, alpha)
    if made.family is not None and not made.family.enumerated and 0 < made.n_trials < needed:
        yield f"{made.n_trials:,} trials cannot reach {alpha:g}: it takes {needed:,} (--trials {needed})"
    elif sampled and max(sampled) < needed:
        yield f"the trials asked for cannot reach {alpha:g}: it takes {needed:,} (--trials {needed})"


def _few_units(made: Adjustment, results: Sequence[Result], alpha: float) -> Iterable[str]:
    """Say once for each unit how few there are, and where no p can reach alpha."""
    least = [least_p(r) for r in results]
    reached = OF_P_VALUES[made.method](least) if made.method in OF_P_VALUES else least
    beyond = {id(r) for r, p in zip(results, reached, strict=True) if p > alpha}
    for unit in sorted({r.unit for r in results}):
        few = [r for r in results if r.unit == unit and 0 < r.n_units < FEW_UNITS]
        if not few:
            continue
        sizes = [r.n_units for r in few]
        hopeless = [r for r in few if id(r) in beyond]
        reach = ""
        if hopeless:
            finer = "" if unit == "item" else ", or a finer --unit if its units are independent"
            after = "" if made.method == "none" else f" after {made.method}"
            reach = f"; {alpha:g} cannot be reached{after}{_share(hopeless, few)}: more units are needed{finer}"
        number = _plural(sizes[0], "unit") if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)} units"
        yield f"only {number} ({unit}){_share(few, results)}: a test of so few says little{reach}"


def least_p(r: Result) -> float:
    """Return the smallest p that so many units can give: each arrangement is as likely, two reach it two-sided."""
    return min(2.0 ** (-r.n_units + (r.alternative == "two-sided")), 1.0)


def _share(some: Sequence[Result], whole: Sequence[Result]) -> str:
    return "" if len(some) == len(whole) else f" in {len(some):,} of {_plural(len(whole), 'comparison')}"


def _plural(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _undecided(made: Adjustment, results: Sequence[Result], alpha: float) -> Iterable[str]:
    """Say how many verdicts of a sampled family another seed could turn."""
    if made.family is not None and (made.family.enumerated or made.n_trials == 0):
        return
    fixed = [r for r in results if r.n_trials and r.stopped is None]  # a stopping rule's p needs no more trials
    straddling = [r.p_adjusted for r in fixed if r.p_adjusted and _straddles(r, alpha)]
    if straddling:
        one = len(straddling) == 1
        needed = sorted(trials_to_decide(p, alpha) or MAX_TRIALS for p in straddling)[len(straddling) // 2]
        remedy = f"; about {needed:,} trials would decide {'it' if one else 'half of them'}"
        counted = made.family is not None and needed < MAX_TRIALS
        yield (
            f"{len(straddling):,} of {len(results):,} adjusted p {'lies' if one else 'lie'} within Monte Carlo error "
            f"(99 %) of {alpha:g}: another seed can turn the verdict{remedy if counted else ''}"
        )


def _straddles(r: Result, alpha: float) -> bool:
    """Say whether the interval of the adjusted p holds alpha."""
    return r.p_adjusted_interval is not None and r.p_adjusted_interval[0] <= alpha < r.p_adjusted_interval[1]


def _caveats(made: Adjustment, _results: Sequence[Result], _alpha: float) -> Iterable[str]:
    if made.method == "tukey":
        yield TUKEY_CAVEAT
    if isinstance(made.family, Family) and made.family.studentised and (note := skewed.note(made.family)):
        yield note
