"""Each pair over all test sets: by the mean of its differences, and by the number of sets that replicate them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sigdask.comparison.adjustment import (
    Asking,
    family_of,
    joint_p_values,
    no_sums,
    panel_of_sums,
    placed,
    rates,
    with_trials,
)
from sigdask.comparison.found.result import Result
from sigdask.comparison.results import ResultAcrossSets
from sigdask.errors import InputError
from sigdask.options import Alternative
from sigdask.randomization.deviations import root_mean_square, swap_deviations
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.max_t import Family
from sigdask.randomization.panels.sums import SUMS
from sigdask.randomization.tallies import TAILS
from sigdask.statistics.multiplicity import replicated


@dataclass(frozen=True, eq=False)
class AcrossSets:
    """One verdict over several sets a pair and metric: the mean difference, swapped inside each set.

    Attributes
    ----------
    family : Family
        One hypothesis a pair and metric.
    members : tuple of tuple of int
        The comparisons that each hypothesis takes together.
    job : Job
        What must be counted.
    """

    family: Family
    members: tuple[tuple[int, ...], ...]
    job: Job

    @staticmethod
    def of(family: Family, members: Iterable[Sequence[int]], n_trials: int) -> AcrossSets:
        """Take comparisons together by so many trials of a family."""
        taken = tuple(map(tuple, members))
        return AcrossSets(family, taken, Job(family, n_trials, label=f"{len(taken)} comparisons over all sets"))

    def verdicts(
        self, tallies: Tallies, results: Sequence[Result], one_sided: Sequence[tuple[float, float]], alpha: float
    ) -> tuple[ResultAcrossSets, ...]:
        """Return the verdict on each pair and metric.

        Parameters
        ----------
        tallies : mapping of Job to Tally
            That of `job` among them.
        results : sequence of Result
            Of the comparisons.
        one_sided : sequence of (float, float)
            Their p greater and p less.
        alpha : float
            Level of replication.
        """
        tally, two_sided = tallies[self.job], self.family.side == 0
        tail = TAILS.index(results[0].alternative)
        extreme = tally.counts[:, 0, tail]
        single = rates(self.family, tally, tail)
        joint = joint_p_values(self.family, "max-t", tally)
        p, adjusted, low, high = single[0], *(np.maximum(x, y) for x, y in zip(joint, single, strict=True))
        several = len(self.members) > 1
        level = alpha / 2 if two_sided else alpha
        verdicts = []
        for h, places in enumerate(self.members):
            own = [results[k] for k in places]
            greater, less = (replicated([one_sided[k][side] for k in places], level) for side in (0, 1))
            verdicts.append(
                ResultAcrossSets(
                    a=own[0].a,
                    b=own[0].b,
                    metric=own[0].metric,
                    n_sets=len(own),
                    difference=sum(r.difference for r in own) / len(own),
                    n_trials=tally.n_trials,
                    n_extreme=int(extreme[h]),
                    p_value=float(p[h]),
                    p_adjusted=float(adjusted[h]) if several else None,
                    p_adjusted_interval=(float(low[h]), float(high[h])) if several else None,
                    method="exact" if self.family.enumerated else "approximate",
                    greater_in=greater[0],
                    p_greater=greater[1],
                    less_in=less[0],
                    p_less=less[1],
                )
            )
        return tuple(verdicts)


def across_sets(comparisons: Sequence[Asking], alternative: Alternative, *, raw: bool = False) -> AcrossSets:
    """Take the comparisons of one pair and metric together over test sets and subsets; `raw` does not studentise."""
    grouped: dict[tuple[str, str, str], list[int]] = {}
    for k, (asked, c) in enumerate(comparisons):
        if c.panel.kind != SUMS:
            raise InputError(f"{no_sums(c)}, which cannot be taken together over sets")
        a, b = (asked.counts.systems[s] for s in c.pair)
        grouped.setdefault((a, b, c.metric.name), []).append(k)
    members, rows = placed(comparisons)
    size = _most_sets(grouped)
    if any(len(places) < size for places in grouped.values()):
        members.append(members[0])  # of weight 0: stands for each set that a metric is not on
    none = len(members) - 1, 0
    weights = np.zeros(len(members))
    scales = {c.metric.name: 1.0 for _, c in comparisons}
    if raw and len(scales) > 1:
        scales = {name: _scale(comparisons, grouped, name) for name in scales}
    listed = [[*map(tuple, rows[places]), *[none] * (size - len(places))] for places in grouped.values()]
    parts = np.array(listed, np.int64)  # (n_hypotheses, n_sets, 2)
    for (member, _), (_, c) in zip(rows, comparisons, strict=True):
        weights[member] = 1 / (size * scales[c.metric.name])
    weighted = tuple(replace(m, weight=float(w)) for m, w in zip(members, weights, strict=True))
    made = with_trials("max-t", family_of(weighted, parts, alternative, raw=raw), comparisons)
    assert isinstance(made.family, Family)
    return AcrossSets.of(made.family, grouped.values(), made.n_trials)


def _most_sets(grouped: dict[tuple[str, str, str], list[int]]) -> int:
    """Return the number of sets of the metric that has most; all pairs of a metric must have as many."""
    sizes: dict[str, int] = {}
    for (_, _, metric), places in grouped.items():
        sizes[metric] = max(sizes.get(metric, 0), len(places))
    for (a, b, metric), places in grouped.items():
        if (b, a, metric) in grouped:
            raise InputError(
                f"{a} and {b} stand in this order in some sets and the other way round in others: list the pairs or "
                "name a baseline, so that A is the same system in all"
            )
        if len(places) != sizes[metric]:
            raise InputError(
                f"{a} and {b} by {metric} have items in common in {len(places)} sets, others in {sizes[metric]}; leave "
                "out the systems or sets that lack them"
            )
    most = max(sizes.values())
    if most < 2:
        raise InputError("there is one set alone: several test sets, or --by COLUMN, can be taken together")
    return most


def _scale(comparisons: Sequence[Asking], grouped: dict[tuple[str, str, str], list[int]], metric: str) -> float:
    """Return the root mean square, over pairs, of a mean difference's deviation under swaps."""
    squares = []
    for (_, _, name), places in grouped.items():
        if name != metric:
            continue
        total = 0.0
        for k in places:
            c = comparisons[k][1]
            total += float(swap_deviations(panel_of_sums(c).part([c.row]), c.column)[0]) ** 2
        squares.append(total)
    return root_mean_square(np.sqrt(np.array(squares)))
