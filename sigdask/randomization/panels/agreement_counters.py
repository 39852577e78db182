"""Counters of agreement: scores of all pairs of metrics after swaps, for each statistic."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.metrics.base import BoundAgreement
from sigdask.randomization.kernels import agreement as kernels
from sigdask.randomization.kernels.blas import limit_blas_threads
from sigdask.randomization.kernels.ranks import sum_ranks
from sigdask.randomization.panels.cells import STATISTIC_CODES, AgreementCells, compute_wins, draw_signs

LANES = 128
"""Trials counted together in one pass over the sorted differences."""

MAX_WEIGHTS = 2**61
"""Maximum sum of the weights of all pairs of cells of a set."""

MAX_COUNTS = 2**22
"""Maximum cells of a table of human scores by trials. At least 16 trials are processed at a time."""


class Counter(Protocol):
    """Scores pairs of metrics after swaps; `count` adds to scores of shape (n_pairs, 2, n_trials)."""

    def count(self, swaps: NDArray[np.uint8], pairs: Integers, scores: Floats) -> None:
        """Add the scores of each pair after given swaps."""


def build_counter(metric: BoundAgreement, cells: AgreementCells) -> Counter:
    """Return the counter of a measure of agreement."""
    if metric.statistic == "spa":
        return SoftAccuracyCounter(cells, metric.signs)
    if metric.statistic == "acc-eq":
        return CalibratedCounter(cells)
    if cells.has_means(metric):
        return SystemCounter(cells, STATISTIC_CODES[metric.statistic])
    is_zero = metric.undefined == "zero"
    if metric.statistic == "pearson":
        return PearsonCounter(cells, is_zero)
    if metric.statistic == "spearman":
        return SpearmanCounter(cells, is_zero)
    return OrderCounter(cells, is_zero, is_accuracy=metric.statistic == "accuracy")


def _centre_groups(cells: AgreementCells, values: Floats) -> tuple[Floats, Floats]:
    """Return values minus the means of their groups, and the sum of their squares in each group; 0 where constant."""
    constant = np.maximum.reduceat(values, cells.starts[:-1]) == np.minimum.reduceat(values, cells.starts[:-1])
    centred = values - np.repeat(cells.compute_means(values), cells.sizes)
    return centred, np.where(constant, 0.0, np.add.reduceat(centred**2, cells.starts[:-1]))


@dataclass(frozen=True)
class PearsonCounter:
    """Counts Pearson correlations from sums over the swapped cells of each group, shared by all pairs."""

    cells: AgreementCells
    is_zero: bool

    @cached_property
    def _parts(self) -> tuple[Floats, Floats, Floats]:
        centred, squares = _centre_groups(self.cells, self.cells.human)
        totals = np.empty((3, self.cells.scores.shape[1], len(self.cells.sets)))
        everything = np.ones(len(centred), np.uint8)
        kernels.sum_swapped(everything, self.cells.scores, centred, self.cells.starts, totals)
        return centred, squares, totals

    def count(self, swaps: NDArray[np.uint8], pairs: Integers, scores: Floats) -> None:
        """Add the scores of each pair after given swaps."""
        cells, (centred, squares, totals) = self.cells, self._parts
        kernels.count_pearson(
            swaps, cells.scores, centred, cells.starts, totals, squares, cells.sets, cells.n_sets, self.is_zero, pairs,
            scores,
        )  # fmt: skip


@dataclass(frozen=True)
class SystemCounter:
    """Counts agreements of systems' means of swapped segment scores."""

    cells: AgreementCells
    code: int

    def count(self, swaps: NDArray[np.uint8], pairs: Integers, scores: Floats) -> None:
        """Add the scores of each pair after given swaps."""
        cells = self.cells
        totals = np.ascontiguousarray(cells.compute_means(cells.scores).T)
        human, sizes = cells.compute_means(cells.human), cells.sizes.astype(np.float64)
        kernels.count_system_scores(
            self.code, swaps, cells.scores, cells.starts, sizes, totals, human, cells.set_starts, pairs, scores
        )


@dataclass(frozen=True)
class SortingCounter:
    """Counter that sorts both metrics' scores of each pair once for all trials."""

    cells: AgreementCells
    is_zero: bool
    _entries: dict[tuple[int, int], NDArray[np.int32]] = field(default_factory=dict)

    def get_entries(self, pair: tuple[int, int]) -> NDArray[np.int32]:
        """Return the sorted scores of a pair, as `kernels.count_orders` takes them; the last are cached."""
        if pair not in self._entries:
            cells, n = self.cells, len(self.cells.human)
            values = cells.scores[:, list(pair)].ravel()
            groups = np.repeat(np.arange(len(cells.sets)), 2 * cells.sizes)
            order = np.lexsort((values, groups))
            levels = np.cumsum(np.append(False, values[order][1:] != values[order][:-1]))
            self._entries[pair] = np.array([order, levels], np.int32).reshape(2, 2 * n)
        return self._entries[pair]

    def average(self, values: Floats, scores: Floats) -> None:
        """Write means over groups and sets of values, shape (2, n_trials, n_groups), to scores, (2, n_trials)."""
        kernels.average_trials(values, self.cells.sets, self.cells.n_sets, self.is_zero, scores)


@dataclass(frozen=True)
class SpearmanCounter(SortingCounter):
    """Counts rank correlations."""

    @cached_property
    def _ranks(self) -> list[Integers]:
        """Human ranks within each group, doubled and centred."""
        cells = self.cells
        parts = (cells.human[a:b] for a, b in zip(cells.starts, cells.starts[1:], strict=False))
        return [np.rint(2 * kernels.rank_values(part, 0.0)).astype(np.int64) - len(part) - 1 for part in parts]

    def count(self, swaps: NDArray[np.uint8], pairs: Integers, scores: Floats) -> None:
        """Add the scores of each pair after given swaps."""
        n_trials, n_cells = swaps.shape
        room = np.zeros((n_trials, -(-n_cells // 32) * 4), np.uint8)
        room[:, : -(-n_cells // 8)] = np.packbits(swaps, axis=1, bitorder="little")
        words = np.ascontiguousarray(room.view("<u4").T)
        products, squares = np.empty((2, 2, n_trials))
        values = np.empty((2, n_trials, len(self.cells.sets)))
        for p, pair in enumerate(pairs.tolist()):
            codes, levels = self.get_entries(tuple(pair)).astype(np.int64)
            for g, ranks in enumerate(self._ranks):
                start = self.cells.starts[g]
                entries, level = codes[2 * start :][: 2 * len(ranks)], levels[2 * start :][: 2 * len(ranks)]
                ties = np.flatnonzero(np.concatenate([[True], level[1:] != level[:-1], [True]]))
                sum_ranks(words, entries, ties, ranks[(entries >> 1) - start], products, squares)
                below = np.sqrt(squares * float((ranks**2).sum()))
                is_defined = below > 0
                values[:, :, g] = np.where(is_defined, products / np.where(is_defined, below, 1.0), np.nan)
            self.average(values, scores[p])


@dataclass(frozen=True)
class OrderCounter(SortingCounter):
    """Counts Kendall's tau-b and accuracies of pairs within groups."""

    is_accuracy: bool = False

    @cached_property
    def human_levels(self) -> tuple[Integers, Integers, Integers]:
        """The number of each human score within its group, how many a group has, and its pairs that are tied."""
        cells = self.cells
        parts = [np.unique(cells.human[a:b], return_inverse=True, return_counts=True)[1:]
                 for a, b in zip(cells.starts, cells.starts[1:], strict=False)]  # fmt: skip
        sizes = np.array([len(counts) for _, counts in parts], np.int64)
        tied = np.array([int((counts * (counts - 1) // 2).sum()) for _, counts in parts], np.int64)
        return np.concatenate([levels.ravel() for levels, _ in parts]).astype(np.int64), sizes, tied

    def count(self, swaps: NDArray[np.uint8], pairs: Integers, scores: Floats) -> None:
        """Add the scores of each pair after given swaps."""
        cells, (levels, sizes, tied) = self.cells, self.human_levels
        n_lanes = min(LANES, max(16, MAX_COUNTS // int(sizes.max())))
        for start in range(0, len(swaps), n_lanes):
            block = swaps[start : start + n_lanes]
            swapped, values = np.zeros((len(levels), len(block) + 1), np.int32), np.empty((2, len(block), len(sizes)))
            swapped[:, :-1] = block.T
            for p, pair in enumerate(pairs.tolist()):
                entries = self.get_entries(tuple(pair))
                kernels.count_orders(self.is_accuracy, swapped, entries, cells.starts, levels, sizes, tied, values)
                self.average(values, scores[p, :, start : start + n_lanes])


@dataclass(frozen=True)
class CalibratedCounter:
    """Counts accuracies of pairs whose threshold of ties is calibrated anew in each trial."""

    cells: AgreementCells

    @cached_property
    def _pairs(self) -> list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[Any]]]:
        """The cells of all pairs in each set, and the pairs' weights: integers, in 32 bits where these hold their sum.

        If no common denominator fits into `MAX_WEIGHTS`, weights are rounded to multiples of 1 / `MAX_WEIGHTS`, which
        changes a share by less than `SLACK`.
        """
        parts = []
        for first, second, groups in self.cells.iter_set_pairs():
            n_pairs, n_groups = np.bincount(groups)[groups], len(np.unique(groups))
            denominator = math.lcm(*np.unique(n_pairs).tolist())
            total = denominator * n_groups
            if total > MAX_WEIGHTS:
                denominator = MAX_WEIGHTS // n_groups
            weights = (denominator // n_pairs).astype(np.int32 if total < 2**31 else np.int64)
            parts.append((first.astype(np.int32), second.astype(np.int32), weights))
        return parts

    def count(self, swaps: NDArray[np.uint8], pairs: Integers, scores: Floats) -> None:
        """Add the scores of each pair after given swaps."""
        blocks = [slice(start, start + LANES) for start in range(0, len(swaps), LANES)]
        masks = [np.ascontiguousarray(swaps[block].T).astype(np.int32) * np.int32(-1) for block in blocks]
        for p, (i, j) in enumerate(pairs.tolist()):
            for first, second, weights in self._pairs:
                if not len(first):
                    continue
                z = self.cells.scores
                choices = np.column_stack([z[first, a] - z[second, b] for a in (i, j) for b in (i, j)])
                sizes = np.round(np.abs(choices), 10)
                human = (self.cells.human[first] - self.cells.human[second])[:, None]
                same = (np.sign(choices) == np.sign(human)) & (human != 0)
                ordered = _order_differences(first, second, weights, sizes, same, (human == 0).ravel())
                total, tied = int(weights.sum()), weights[(human == 0).ravel()].sum(dtype=weights.dtype)
                for block, swapped in zip(blocks, masks, strict=True):
                    state = np.full((4, swapped.shape[1]), tied, weights.dtype)
                    kernels.count_ordered(swapped, *ordered, state)
                    scores[p, :, block] += state[2:] / total
        scores /= self.cells.n_sets


def _order_differences(
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    weights: NDArray[Any],
    sizes: Floats,
    same: Bools,
    tied: Bools,
) -> tuple[NDArray[Any], ...]:
    """Return the differences that a threshold makes right or wrong, in the form that `kernels.count_ordered` needs."""
    chosen = [
        (k, np.flatnonzero(is_changed & (sizes[:, k] > 0)), sign)
        for sign, changed in ((-1, np.column_stack([tied] * 4)), (1, same))
        for k, is_changed in enumerate(changed.T)
    ]
    order = np.argsort(-np.concatenate([sizes[rows, k] for k, rows, _ in chosen]), kind="stable")
    cells = (
        [first[rows] ^ ((k >> 1) - 1) for k, rows, _ in chosen],
        [second[rows] ^ ((k & 1) - 1) for k, rows, _ in chosen],
    )
    changes = [weights[rows] * sign for _, rows, sign in chosen]
    return tuple(np.concatenate(parts)[order] for parts in (*cells, changes))


@dataclass(frozen=True)
class SoftAccuracyCounter:
    """Counts soft pairwise accuracies from sums of integers, which do not depend on the order of summing."""

    cells: AgreementCells
    n_signs: int

    @cached_property
    def _sets(self) -> list[tuple[Any, ...]]:
        parts = []
        cells = self.cells
        for s in range(cells.n_sets):
            here = slice(cells.starts[cells.set_starts[s]], cells.starts[cells.set_starts[s + 1]])
            n_systems = int(np.diff(cells.set_starts)[s])
            signs = draw_signs(self.n_signs, cells.human[here].size // n_systems)
            z = cells.scores[here].reshape(n_systems, -1, cells.scores.shape[1]).transpose(0, 2, 1)
            largest = 2 * float(np.abs(z).max(axis=1).sum(axis=-1).max()) or 1.0
            scale = 2.0 ** np.floor(np.log2(2**23 / largest))
            whole = np.ascontiguousarray(np.rint(z * scale).astype(np.float32))
            slack = np.int32(np.rint(4 * 0.29 * np.sqrt(2 * z.shape[2]))) // 2  # of sums over the signs of -1
            minus = np.ascontiguousarray((signs < 0).T.astype(np.float32))
            human = compute_wins(cells.human[here].reshape(n_systems, -1), signs)
            parts.append((here, minus, whole, (whole @ minus).astype(np.int32), slack, human))
        return parts

    def count(self, swaps: NDArray[np.uint8], pairs: Integers, scores: Floats) -> None:
        """Add the scores of each pair after given swaps."""
        with limit_blas_threads():
            for here, minus, whole, sums, slack, human in self._sets:
                for t, swapped in enumerate(swaps[:, here].reshape(len(swaps), len(whole), 1, -1)):
                    moved = ((whole * swapped).reshape(-1, len(minus)) @ minus).astype(np.int32)
                    kernels.count_soft_accuracy(moved.reshape(sums.shape), sums, slack, human, pairs, scores[:, :, t])
        scores /= self.cells.n_sets
