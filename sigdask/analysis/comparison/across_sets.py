"""Tests of each pair over all test sets: its mean difference, and the number of sets that replicate the difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.adjust import (
    add_trials,
    build_family,
    build_members,
    compute_joint_p_values,
    compute_rates,
    describe_non_sums,
)
from sigdask.analysis.comparison.jobs import FamilyComparisons
from sigdask.counts.grouping import number_rows
from sigdask.errors import InputError
from sigdask.options import Alternative
from sigdask.randomization.families.deviations import compute_root_mean_square, compute_swap_deviations
from sigdask.randomization.families.max_t import MaxTFamily
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels.families import FamilyMember
from sigdask.randomization.tallies import TAILS
from sigdask.results.comparisons import ResultAcrossSets
from sigdask.results.table import Floats, Table
from sigdask.statistics.multiplicity import count_replicated

Integers = NDArray[np.int64]

ONE_SET = "there is one set alone: several test sets, or --by COLUMN, can be taken together"


@dataclass(frozen=True, eq=False)
class AcrossSets:
    """Tests of each pair and metric over several test sets, by the mean difference; units are swapped within each set.

    Attributes
    ----------
    family : MaxTFamily
        One hypothesis a pair and metric.
    members : int64 array, shape (n_hypotheses, n_sets)
        The comparisons that each hypothesis takes together; -1 where its metric is on fewer sets.
    job : Job
        What must be counted.
    """

    family: MaxTFamily
    members: Integers
    job: Job

    @staticmethod
    def from_family(family: MaxTFamily, members: Integers, n_trials: int) -> AcrossSets:
        """Return tests over all sets with a job that counts `n_trials` trials of the given family."""
        return AcrossSets(family, members, Job(family, n_trials, label=f"{len(members)} comparisons over all sets"))

    def build_results(
        self, tallies: Tallies, table: Table, p_greater: Floats, p_less: Floats
    ) -> tuple[ResultAcrossSets, ...]:
        """Return the result of each pair and metric over all sets.

        Parameters
        ----------
        tallies : mapping of Job to Tally
            That of `job` among them.
        table : Table
            Of the comparisons, with the level of replication.
        p_greater, p_less : float64 array, shape (n_comparisons,)
            Their p of either direction.
        """
        tally = tallies[self.job]
        tail = TAILS.index(table.alternative[0])
        single = compute_rates(self.family, tally, tail)
        joint = compute_joint_p_values(self.family, "max-t", tally)
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


def build_across_sets(comparisons: FamilyComparisons, alternative: Alternative, *, raw: bool = False) -> AcrossSets:
    """Return the tests of each pair and metric over all sets; differences are studentised unless `raw`."""
    if (misfit := describe_non_sums(comparisons)) is not None:
        raise InputError(f"{misfit}, which cannot be taken together over sets")
    if not len(comparisons):
        raise InputError(ONE_SET)
    metric = number_rows(comparisons.metric)
    hypothesis = number_rows(comparisons.encode_systems("a"), comparisons.encode_systems("b"), metric)
    size = _check_set_counts(comparisons, hypothesis, metric)
    members, rows = build_members(comparisons)
    member_table = _group_by_hypothesis(hypothesis, size)  # (n_hypotheses, n_sets)
    if (member_table < 0).any():
        members.append(members[0])  # of weight 0: stands for each set that a metric is not on
    parts = np.where(member_table[:, :, None] < 0, (len(members) - 1, 0), rows[member_table])
    scales = np.ones(int(metric.max()) + 1)
    if raw and len(scales) > 1:
        scales = _compute_scales(members, rows, hypothesis, metric)
    weights = np.zeros(len(members))
    weights[rows[:, 0]] = 1 / (size * scales[metric])
    weighted = tuple(replace(m, weight=float(w)) for m, w in zip(members, weights, strict=True))
    adjustment = add_trials("max-t", build_family(weighted, parts, alternative, raw=raw), comparisons)
    assert isinstance(adjustment.family, MaxTFamily)
    return AcrossSets.from_family(adjustment.family, member_table, adjustment.n_trials)


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
    keys, reversed_keys = _encode_keys(a, b, metric), _encode_keys(b, a, metric)
    turned = np.isin(keys, reversed_keys)
    wrong = turned | (sizes != n_sets[metric])
    if wrong.any():
        h = int(np.argmax(wrong))
        k = int(first[h])
        names = " and ".join(comparisons.get_system_names(k))
        if turned[h]:
            raise InputError(
                f"{names} stand in this order in some sets and the other way round in others: list the pairs or "
                "name a baseline, so that A is the same system in all"
            )
        raise InputError(
            f"{names} by {comparisons.get_metric_name(k)} have items in common in {sizes[h]} sets, others in "
            f"{n_sets[metric[h]]}; "
            "leave out the systems or sets that lack them"
        )
    if n_sets.max() < 2:
        raise InputError(ONE_SET)
    return int(n_sets.max())


def _encode_keys(a: Integers, b: Integers, metric: Integers) -> Integers:
    """Return one number for each combination of two systems and a metric."""
    n = int(max(a.max(), b.max())) + 1
    return (metric * n + a) * n + b


def _compute_scales(
    members: Sequence[FamilyMember], rows: Integers, hypothesis: Integers, metric: Integers
) -> NDArray[np.float64]:
    """Return each metric's scale: the root mean square of its differences' standard deviations under swaps."""
    squares = np.zeros(len(rows))
    for k, member in enumerate(members):
        selected = np.flatnonzero(rows[:, 0] == k)
        squares[selected] = compute_swap_deviations(member.panel, member.metric, rows[selected, 1].tolist()) ** 2
    total, hypothesis_metric = np.bincount(hypothesis, squares), metric[np.unique(hypothesis, return_index=True)[1]]
    return np.array(
        [compute_root_mean_square(np.sqrt(total[hypothesis_metric == m])) for m in range(int(metric.max()) + 1)]
    )
