"""Cells: the scores of metrics and people that are correlated, in groups and sets; their observed agreement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.interface import spell
from sigdask.metrics.base import BoundAgreement
from sigdask.metrics.regression import RANK_METRICS, SET_COLUMN
from sigdask.randomization.kernels import agreement as kernels
from sigdask.randomization.stream import compute_stream_key, draw_swap_bits
from sigdask.statistics.lattice import standardise
from sigdask.statistics.numbering import number_rows
from sigdask.text import format_list

MAX_CALIBRATED = 2**21
"""Maximum number of pairs of cells for which thresholds are calibrated in each trial."""

MAX_PAIRS = 2**25
"""Maximum number of pairs of cells whose decisions are swapped."""

MAX_DENOMINATOR = 2**50
"""Largest common denominator of the weights of pairs in groups of different sizes, which become integers."""

STATISTIC_CODES = {"pearson": 0, "spearman": 1, "kendall": 2, "accuracy": 3}
"""The number of each statistic in the kernels."""


@dataclass(frozen=True, eq=False)
class AgreementCells:
    """The scores that are correlated, in the order of sets and groups: arrays over cells.

    Attributes
    ----------
    human : float64 array, shape (n_cells,)
        Human scores.
    scores : float64 array, shape (n_cells, n_metrics)
        Scores of the metrics, with higher ones better.
    index : int64 array, shape (n_cells,)
        Address of each cell's unit.
    starts : int64 array, shape (n_groups + 1,)
        Start of each group of cells: groups within which scores are compared, or systems whose means are compared.
    sets : int64 array, shape (n_groups,)
        The set of each group.
    """

    human: Floats
    scores: Floats
    index: Integers
    starts: Integers
    sets: Integers

    @staticmethod
    def from_counts(counts: Counts, metric: BoundAgreement, mask: Bools, index: Integers) -> AgreementCells:
        """Return the cells of some items: by groups, by systems, or one for each system that is swapped as a whole."""
        codes = {name: counts.group(name).ranks[mask] for name in ("system", "segment")}
        names = counts.groups.get(SET_COLUMN)
        sets = np.zeros(int(mask.sum()), np.int64) if names is None else counts.group(SET_COLUMN).ranks[mask]
        human = np.asarray(counts.field("human"), np.float64)[mask, 0]
        scores = np.asarray(counts.field("score"), np.float64)[mask]
        addresses = index[mask]
        if metric.level == "system":
            group, other = codes["system"], codes["segment"]
        else:
            other = codes["system"]
            group = (
                np.zeros_like(other)
                if metric.group == "none"
                else codes["segment" if metric.group == "item" else "system"]
            )
        order = np.lexsort((codes["segment"], codes["system"], other, group, sets))
        keys = np.column_stack([sets, group])[order]
        is_start = np.append(True, (keys[1:] != keys[:-1]).any(axis=1)) if len(keys) else np.empty(0, np.bool_)
        starts = np.append(np.flatnonzero(is_start), len(keys))
        _, set_numbers = np.unique(keys[starts[:-1], 0], return_inverse=True)
        cells = AgreementCells(human[order], scores[order], addresses[order], starts, set_numbers.astype(np.int64))
        if metric.statistic == "spa":
            return cells.select_complete(other[order])
        n_compared = np.diff(cells.set_starts) if metric.level == "system" else cells.sizes
        if len(n_compared) and n_compared.max() < 2:
            lacking = "test set has two systems" if metric.level == "system" else "group has two scores"
            raise InputError(
                f"{metric.name}: has no {lacking} to compare",
                remedy=f"add systems, or choose another {spell('level')} or {spell('group')}",
            )
        return cells.average() if metric.level == "system" and cells.has_one_unit_each else cells

    def select(self, kept: Bools) -> AgreementCells:
        """Return some of the cells. Groups without any are left out."""
        sizes = np.add.reduceat(kept.astype(np.int64), self.starts[:-1])
        starts, sets = np.append(0, np.cumsum(sizes[sizes > 0])), self.sets[sizes > 0]
        _, numbers = np.unique(sets, return_inverse=True)
        return AgreementCells(self.human[kept], self.scores[kept], self.index[kept], starts, numbers.astype(np.int64))

    @property
    def n_sets(self) -> int:
        """Number of sets."""
        return int(self.sets.max(initial=-1)) + 1

    @property
    def sizes(self) -> Integers:
        """Number of cells of each group."""
        return np.diff(self.starts)

    @property
    def set_of_cell(self) -> Integers:
        """The set of each cell."""
        return np.repeat(self.sets, self.sizes)

    @property
    def has_one_unit_each(self) -> bool:
        """Whether each group is swapped as a whole, and no two together within a set."""
        first = self.index[self.starts[:-1]]
        is_whole = bool((np.repeat(first, self.sizes) == self.index).all())
        return is_whole and len(np.unique(np.column_stack([self.sets, first]), axis=0)) == len(first)

    def compute_means(self, values: NDArray[Any]) -> Floats:
        """Return the means of the groups."""
        shape = (-1,) + (1,) * (values.ndim - 1)
        return np.asarray(np.add.reduceat(values, self.starts[:-1], axis=0) / self.sizes.reshape(shape))

    @property
    def set_starts(self) -> Integers:
        """The first group of each set, and the number of groups."""
        return np.searchsorted(self.sets, np.arange(self.n_sets + 1))

    def average(self) -> AgreementCells:
        """Return one cell for each group, with its means; the groups are the sets."""
        return AgreementCells(
            self.compute_means(self.human),
            np.column_stack([self.compute_means(column) for column in self.scores.T]),
            self.index[self.starts[:-1]],
            self.set_starts,
            np.arange(self.n_sets),
        )

    def select_complete(self, segments: Integers) -> AgreementCells:
        """Return the cells of the segments that all systems of a set have, system by system."""
        sets = self.set_of_cell
        codes = number_rows(sets, segments)
        n_systems = np.diff(self.set_starts)
        is_complete = np.bincount(codes)[codes] == n_systems[sets]
        if (n_systems < 2).any():
            raise InputError("meta-spa compares pairs of systems, but a test set has scores of one system only")
        if (np.bincount(sets[is_complete], minlength=self.n_sets) == 0).any():
            raise InputError(
                "meta-spa needs segments that all systems have, but no segment has scores of every system",
                remedy=f"choose another {spell('statistic')}",
            )
        groups = np.repeat(np.arange(len(self.sizes)), self.sizes)[is_complete]
        starts = np.searchsorted(groups, np.arange(len(self.sizes) + 1))
        return AgreementCells(
            self.human[is_complete], self.scores[is_complete], self.index[is_complete], starts, self.sets
        )

    def standardise(self, metric: BoundAgreement) -> Floats:
        """Return scores with mean 0 and variance 1 over each set, or ranks for rank correlations of single cells."""
        result, sets = np.zeros_like(self.scores), self.set_of_cell
        by_rank = metric.statistic in RANK_METRICS and not self.has_means(metric)
        for s in range(self.n_sets):
            columns = self.scores[sets == s].T
            result[sets == s] = np.column_stack(
                [scipy.stats.rankdata(c) if by_rank else standardise(c).numbers for c in columns]
            )
        return result

    def has_means(self, metric: BoundAgreement) -> bool:
        """Return whether means over groups of cells are compared, in which cells are swapped one by one."""
        return metric.level == "system" and len(self.sets) > self.n_sets

    def iter_set_pairs(self) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Yield, for each set, the first and second cells of all pairs within its groups, and the pairs' groups."""
        for s in range(self.n_sets):
            parts = []
            for g in np.flatnonzero(self.sets == s):
                i, j = np.triu_indices(int(self.sizes[g]), 1)
                parts.append((i + self.starts[g], j + self.starts[g], np.full(len(i), g)))
            yield tuple(map(np.concatenate, zip(*parts, strict=True)))  # type: ignore[misc]

    def weigh_pairs(self, groups: Integers) -> NDArray[Any]:
        """Return weights of pairs that give all groups of a set the same weight: 1 for groups of equal size."""
        n_pairs = np.bincount(groups)
        n_pairs = n_pairs[n_pairs > 0]
        if len(n_pairs) == 0 or (n_pairs == n_pairs[0]).all():
            return np.ones(len(groups), np.int64)
        return np.asarray(1.0 / np.bincount(groups)[groups])

    def count_pairs(self) -> int:
        """Return the number of pairs of cells within groups."""
        return int((self.sizes * (self.sizes - 1) // 2).sum())


def judge_pairs(
    human: Floats, scores: Floats, weights: NDArray[Any], epsilon: float | None
) -> tuple[float, NDArray[np.int8]]:
    """Return the threshold of ties, and whether each pair is in the human order or tied in both.

    Parameters
    ----------
    human, scores : float64 array, shape (n_pairs,)
        Differences of human scores, and of a metric's scores.
    weights : array, shape (n_pairs,)
        Weights of the pairs.
    epsilon : float or None
        Threshold: differences of scores up to it are ties. None calibrates it. Of 0 and all differences, this takes the
        smallest that is right most often (Deutsch, Foster & Freitag 2023).
    """
    sizes, same = np.abs(scores), (np.sign(human) == np.sign(scores)) & (human != 0)
    if epsilon is None:
        order = np.argsort(sizes, kind="stable")
        won = np.where(human == 0, weights, -weights * same)[order].cumsum()
        is_last = np.append(sizes[order][1:] != sizes[order][:-1], True) if len(order) else np.empty(0, np.bool_)
        thresholds, won = sizes[order][is_last], won[is_last]
        if not len(thresholds) or thresholds[0] > 0:
            thresholds, won = np.append(0.0, thresholds), np.append(0 * won[:1].sum(), won)
        epsilon = float(thresholds[np.argmax(won)])
    return epsilon, np.where(sizes <= epsilon, human == 0, same).astype(np.int8)


def score_cells(cells: AgreementCells, metric: BoundAgreement) -> Floats:
    """Return the agreement of each metric's original scores with human ones, shape (n_metrics,)."""
    return np.array([_score_column(cells, metric, np.ascontiguousarray(column)) for column in cells.scores.T])


def _score_column(cells: AgreementCells, metric: BoundAgreement, scores: Floats) -> float:
    is_zero = metric.undefined == "zero"
    if metric.statistic == "spa":
        return float(np.mean([_score_soft(cells, s, metric.signs, scores) for s in range(cells.n_sets)]))
    if metric.statistic == "acc-eq":
        shares = []
        for first, second, groups in cells.iter_set_pairs():
            weights = cells.weigh_pairs(groups)
            _, right = judge_pairs(
                cells.human[first] - cells.human[second], scores[first] - scores[second], weights, None
            )
            shares.append(float((weights * right).sum() / weights.sum()) if len(weights) else float("nan"))
        return float(np.mean(shares))
    code = STATISTIC_CODES[metric.statistic]
    if cells.has_means(metric):
        cells, scores = cells.average(), cells.compute_means(scores)
    cuts = [slice(a, b) for a, b in zip(cells.starts, cells.starts[1:], strict=False)]
    values = np.array([kernels.score_group(code, scores[cut], cells.human[cut], 0.0) for cut in cuts])
    return float(kernels.average_groups(values, cells.sets, cells.n_sets, is_zero))


def draw_signs(n_signs: int, n_segments: int) -> NDArray[np.float32]:
    """Return the random signs of SPA, shape (n_signs, n_segments): the same for all metrics, trials and seeds."""
    key = compute_stream_key(0, "signs", n_segments)
    bits = draw_swap_bits(key, run=0, first=0, n_trials=n_signs, n_units=n_segments)
    return np.where(bits, np.float32(1), np.float32(-1))


def compute_wins(scores: Floats, signs: NDArray[np.float32]) -> Floats:
    """Return the share of signs that give at least the observed difference, of each pair of systems.

    Parameters
    ----------
    scores : float64 array, shape (n_systems, n_segments)
        Scores of the segments.
    signs : float32 array, shape (n_signs, n_segments)
        Random signs, as `draw_signs` returns them.
    """
    size = float(np.abs(scores).max(initial=0.0)) or 1.0
    sums = scores @ signs.T.astype(np.float64)
    i, j = np.triu_indices(len(scores), 1)
    slack = 1e-11 * size * scores.shape[1]
    totals = scores.sum(axis=1)
    bars = totals[i] - totals[j] - slack
    return np.array([(sums[a] - sums[b] >= bar).mean() for a, b, bar in zip(i, j, bars, strict=True)])


def _score_soft(cells: AgreementCells, s: int, n_signs: int, scores: Floats) -> float:
    """Return the soft pairwise accuracy of a set (Thompson et al. 2024): 1 - mean |p_human - p_metric|."""
    here = slice(cells.starts[cells.set_starts[s]], cells.starts[cells.set_starts[s + 1]])
    n_systems = int(np.diff(cells.set_starts)[s])
    signs = draw_signs(n_signs, cells.human[here].size // n_systems)
    human, own = (compute_wins(values[here].reshape(n_systems, -1), signs) for values in (cells.human, scores))
    return float(1 - np.abs(human - own).mean())


def check_calibration(cells: AgreementCells, metric: BoundAgreement) -> None:
    """Raise if there are too many pairs of cells for thresholds of ties that are calibrated in each trial."""
    if metric.statistic == "acc-eq" and not metric.swaps_pairs and (n := cells.count_pairs()) > MAX_CALIBRATED:
        raise InputError(
            f"{metric.name}: {n:,} pairs of segments are too many (at most {MAX_CALIBRATED:,}), because each trial "
            "chooses its threshold of ties from all of them",
            remedy=f"compare within segments ({spell('group', 'item')}), or swap decisions "
            f"({spell('permute', 'pairs')})",
        )


def build_decisions(cells: AgreementCells, metric: BoundAgreement) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return whether each metric decides each pair of cells as people do, times the pair's weight, and the weights.

    Returns
    -------
    (array of shape (n_pairs, n_metrics), array of shape (n_pairs, 1))
        Integers if the weights have a small enough common denominator.
    """
    if (n := cells.count_pairs()) > MAX_PAIRS:
        raise InputError(
            f"{metric.name}: {n:,} pairs, more than {MAX_PAIRS:,}", remedy="compare within segments (group=item)"
        )
    right, parts = [], []
    for first, second, groups in cells.iter_set_pairs():
        weights = cells.weigh_pairs(groups)
        human = cells.human[first] - cells.human[second]
        epsilon = metric.epsilon if metric.statistic == "accuracy" else None
        columns = (cells.scores[first, m] - cells.scores[second, m] for m in range(cells.scores.shape[1]))
        right.append(np.column_stack([judge_pairs(human, column, weights, epsilon)[1] for column in columns]))
        parts.append(np.bincount(groups)[groups] * len(np.unique(groups)) if len(groups) else groups)
    decisions, denominators = np.concatenate(right), np.concatenate(parts)
    if not len(denominators):
        raise InputError(f"{metric.name}: no group has two scores to compare")
    shared = math.lcm(*np.unique(denominators).tolist())
    if shared > MAX_DENOMINATOR:
        shares = 1.0 / denominators[:, None]
        return decisions * shares, shares
    weights = (shared // denominators)[:, None]
    return (decisions, weights) if (weights == 1).all() else (decisions * weights, weights)


def sort_metrics(counts: Counts, metric: BoundAgreement) -> Counts:
    """Return the data with the metrics that agree most with people first."""
    everything = np.ones(counts.n_items, np.bool_)
    cells = AgreementCells.from_counts(counts, metric, everything, np.arange(counts.n_items))
    check_calibration(cells, metric)
    scores = score_cells(cells, metric)
    order = np.argsort(-np.nan_to_num(scores), kind="stable")
    own = {"human": counts.field("human"), "score": counts.field("score")[:, order]}
    systems = [counts.systems[k] for k in order]
    warnings = (*counts.warnings, *_describe_all_tied(cells, metric, systems, scores[order]))
    return replace(counts, systems=tuple(systems), fields=own, warnings=warnings)


def _describe_all_tied(
    cells: AgreementCells, metric: BoundAgreement, names: Sequence[str], scores: Floats
) -> Iterator[ScopeNote]:
    """Yield a note on metrics whose calibrated threshold ties all pairs, so that their scores are meaningless."""
    if metric.statistic != "acc-eq":
        return
    [of_ties] = score_cells(replace(cells, scores=np.zeros((len(cells.human), 1))), metric)
    if tied := [name for name, score in zip(names, scores.tolist(), strict=True) if abs(score - of_ties) <= 1e-12]:
        yield ScopeNote(
            f"{format_list(tied)}: the best threshold calls all pairs ties. So the score {of_ties:.4f} is only the "
            "share of pairs that people call ties, and says nothing about the metric"
        )
