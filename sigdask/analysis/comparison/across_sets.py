"""Each pair over all test sets: by the mean of its differences, and by the number of sets that replicate them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.adjust import apart, family_of, joint_p_values, placed, rates, with_trials
from sigdask.analysis.comparison.jobs import FamilyComparisons
from sigdask.counts.grouping import numbered
from sigdask.errors import InputError
from sigdask.options import Alternative
from sigdask.randomization.families.deviations import root_mean_square, swap_deviations
from sigdask.randomization.families.max_t import Family
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels.families import FamilyMember
from sigdask.randomization.tallies import TAILS
from sigdask.results.comparisons import ResultAcrossSets
from sigdask.results.table import Floats, Table
from sigdask.statistics.multiplicity import replicated

Integers = NDArray[np.int64]

ALONE = "there is one set alone: several test sets, or --by COLUMN, can be taken together"


@dataclass(frozen=True, eq=False)
class AcrossSets:
    """One verdict over several sets a pair and metric: the mean difference, swapped inside each set.

    Attributes
    ----------
    family : Family
        One hypothesis a pair and metric.
    members : int64 array, shape (n_hypotheses, n_sets)
        The comparisons that each hypothesis takes together; -1 where its metric is on fewer sets.
    job : Job
        What must be counted.
    """

    family: Family
    members: Integers
    job: Job

    @staticmethod
    def of(family: Family, members: Integers, n_trials: int) -> AcrossSets:
        """Take comparisons together by so many trials of a family."""
        return AcrossSets(family, members, Job(family, n_trials, label=f"{len(members)} comparisons over all sets"))

    def verdicts(
        self, tallies: Tallies, found: Table, p_greater: Floats, p_less: Floats
    ) -> tuple[ResultAcrossSets, ...]:
        """Return the verdict on each pair and metric.

        Parameters
        ----------
        tallies : mapping of Job to Tally
            That of `job` among them.
        found : Table
            Of the comparisons, with the level of replication.
        p_greater, p_less : float64 array, shape (n_comparisons,)
            Their p of either direction.
        """
        tally = tallies[self.job]
        tail = TAILS.index(found.alternative[0])
        single = rates(self.family, tally, tail)
        joint = joint_p_values(self.family, "max-t", tally)
        p, adjusted, low, high = single[0], *(np.maximum(x, y) for x, y in zip(joint, single, strict=True))
        several = len(self.members) > 1
        level = found.alpha / 2 if self.family.side == 0 else found.alpha
        greater, less = self._replicated(p_greater, level), self._replicated(p_less, level)
        differences = np.where(self.members < 0, 0.0, found.difference[self.members]).tolist()
        return tuple(
            ResultAcrossSets(
                a=found.a[k],
                b=found.b[k],
                metric=found.metric[k].name,
                n_sets=n_sets,
                difference=sum(differences[h]) / n_sets,
                n_trials=tally.n_trials,
                n_extreme=int(tally.counts[h, 0, tail]),
                p_value=float(p[h]),
                p_adjusted=float(adjusted[h]) if several else None,
                p_adjusted_interval=(float(low[h]), float(high[h])) if several else None,
                method="exact" if self.family.enumerated else "approximate",
                greater_in=int(greater[0][h]),
                p_greater=float(greater[1][h]),
                less_in=int(less[0][h]),
                p_less=float(less[1][h]),
            )
            for h, (k, n_sets) in enumerate(zip(self.members[:, 0].tolist(), self._sizes.tolist(), strict=True))
        )

    @property
    def _sizes(self) -> Integers:
        """Sets of each pair and metric, shape (n_hypotheses,)."""
        return np.asarray(np.count_nonzero(self.members >= 0, axis=1))

    def _replicated(self, p: Floats, level: float) -> tuple[Integers, Floats]:
        """Return in how many sets each pair and metric replicates, and p of that many."""
        shown, of_shown = np.zeros(len(self.members), np.int64), np.ones(len(self.members))
        for size in np.unique(self._sizes).tolist():
            here = self._sizes == size
            shown[here], of_shown[here] = replicated(p[self.members[here, :size]], level)
        return shown, of_shown


def across_sets(asking: FamilyComparisons, alternative: Alternative, *, raw: bool = False) -> AcrossSets:
    """Take the comparisons of one pair and metric together over test sets and subsets; `raw` does not studentise."""
    if (other := apart(asking)) is not None:
        raise InputError(f"{other}, which cannot be taken together over sets")
    if not len(asking):
        raise InputError(ALONE)
    metric = numbered(asking.metric)
    hypothesis = numbered(asking.systems("a"), asking.systems("b"), metric)
    size = _most_sets(asking, hypothesis, metric)
    members, rows = placed(asking)
    taken = _table(hypothesis, size)  # (n_hypotheses, n_sets)
    if (taken < 0).any():
        members.append(members[0])  # of weight 0: stands for each set that a metric is not on
    parts = np.where(taken[:, :, None] < 0, (len(members) - 1, 0), rows[taken])
    scales = np.ones(int(metric.max()) + 1)
    if raw and len(scales) > 1:
        scales = _scales(members, rows, hypothesis, metric)
    weights = np.zeros(len(members))
    weights[rows[:, 0]] = 1 / (size * scales[metric])
    weighted = tuple(replace(m, weight=float(w)) for m, w in zip(members, weights, strict=True))
    made = with_trials("max-t", family_of(weighted, parts, alternative, raw=raw), asking)
    assert isinstance(made.family, Family)
    return AcrossSets.of(made.family, taken, made.n_trials)


def _table(hypothesis: Integers, size: int) -> Integers:
    """Return the comparisons of each hypothesis, in order, shape (n_hypotheses, size); -1 where it has fewer."""
    order = np.argsort(hypothesis, kind="stable")
    counts = np.bincount(hypothesis)
    found = np.full((len(counts), size), -1, np.int64)
    within = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    found[hypothesis[order], within] = order
    return found


def _most_sets(asking: FamilyComparisons, hypothesis: Integers, metric: Integers) -> int:
    """Return the number of sets of the metric that has most; all pairs of a metric must have as many."""
    first = np.unique(hypothesis, return_index=True)[1]
    sizes, metric = np.bincount(hypothesis), metric[first]
    most = np.zeros(int(metric.max()) + 1, np.int64)
    np.maximum.at(most, metric, sizes)
    a, b = asking.systems("a")[first], asking.systems("b")[first]
    there, back = _keys(a, b, metric), _keys(b, a, metric)
    turned = np.isin(there, back)
    wrong = turned | (sizes != most[metric])
    if wrong.any():
        h = int(np.argmax(wrong))
        k = int(first[h])
        names = " and ".join(asking.systems_of(k))
        if turned[h]:
            raise InputError(
                f"{names} stand in this order in some sets and the other way round in others: list the pairs or "
                "name a baseline, so that A is the same system in all"
            )
        raise InputError(
            f"{names} by {asking.metric_of(k)} have items in common in {sizes[h]} sets, others in {most[metric[h]]}; "
            "leave out the systems or sets that lack them"
        )
    if most.max() < 2:
        raise InputError(ALONE)
    return int(most.max())


def _keys(a: Integers, b: Integers, metric: Integers) -> Integers:
    """Return one number for two systems and a metric."""
    n = int(max(a.max(), b.max())) + 1
    return (metric * n + a) * n + b


def _scales(
    members: Sequence[FamilyMember], rows: Integers, hypothesis: Integers, metric: Integers
) -> NDArray[np.float64]:
    """Return of each metric the root mean square, over pairs, of a mean difference's deviation under swaps."""
    squares = np.zeros(len(rows))
    for k, member in enumerate(members):
        here = np.flatnonzero(rows[:, 0] == k)
        squares[here] = swap_deviations(member.panel, member.metric, rows[here, 1].tolist()) ** 2
    total, of_metric = np.bincount(hypothesis, squares), metric[np.unique(hypothesis, return_index=True)[1]]
    return np.array([root_mean_square(np.sqrt(total[of_metric == m])) for m in range(int(metric.max()) + 1)])
