"""Panels of agreement with human scores: metrics whose standardised scores are swapped, cell by cell or in units.

PERM-BOTH, Deutsch, Dror & Roth 2021 ("A statistical analysis of summarization evaluation metrics using resampling
methods"): both metrics' scores are standardised over the test set, and swapped with probability 1/2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Floats, Integers
from sigdask.metrics.base import BoundAgreement
from sigdask.randomization.kernels import agreement as kernels
from sigdask.randomization.kernels.agreement import sum_ranks
from sigdask.randomization.panels import RescoredPanel, draw_item_swaps, number_bits
from sigdask.randomization.panels.cells import (
    STATISTIC_CODES,
    AgreementCells,
    check_calibration,
    compute_wins,
    draw_signs,
    score_cells,
)
from sigdask.randomization.panels.digests import Digests, digest, digest_values, hash_content
from sigdask.randomization.panels.sums import Panel, SwapUnits, is_whole_selection
from sigdask.randomization.stream import Key
from sigdask.randomization.tallies import CountingMethod

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


def _sum_swapped(cells: AgreementCells, swaps: NDArray[np.uint8], values: Floats) -> Floats:
    """Return sums of values over the swapped cells of each group, shape (n_groups, n_trials, n_columns)."""
    weights, sums = swaps.astype(np.float64), np.empty((len(cells.sets), len(swaps), values.shape[1]))
    for group, start, stop in zip(sums, cells.starts, cells.starts[1:], strict=False):
        np.matmul(weights[:, start:stop], values[start:stop], out=group)
    return sums


@dataclass(frozen=True)
class PearsonCounter:
    """Counts Pearson correlations from sums over the swapped cells of each group, shared by all pairs."""

    cells: AgreementCells
    is_zero: bool

    @cached_property
    def _parts(self) -> tuple[Floats, Floats, Floats]:
        """Scores, their squares and products with centred human scores; their sums; and those of human squares."""
        centred, squares = _centre_groups(self.cells, self.cells.human)
        z = self.cells.scores
        values = np.concatenate([z, z**2, z * centred[:, None]], axis=1)
        return values, np.add.reduceat(values, self.cells.starts[:-1]), squares[:, None]

    def count(self, swaps: NDArray[np.uint8], pairs: Integers, scores: Floats) -> None:
        """Add the scores of each pair after given swaps."""
        cells, (values, totals, human_squares) = self.cells, self._parts
        shape = len(cells.sets), -1, 3, cells.scores.shape[1]
        moved = np.ascontiguousarray(_sum_swapped(cells, swaps, values).reshape(shape).transpose(2, 3, 0, 1))
        kept = totals.reshape(shape).transpose(2, 3, 0, 1) - moved  # (3, n_metrics, n_groups, n_trials)
        result = np.empty((2, len(swaps), len(cells.sets)))
        for p, pair in enumerate(pairs.tolist()):
            for side, (own, other) in enumerate((pair, pair[::-1])):
                total, squares, products = kept[:, own] + moved[:, other]
                around = squares - total**2 / cells.sizes[:, None]
                is_defined = (around > kernels.CONSTANT * squares) & (human_squares > 0)
                below = np.sqrt(np.where(is_defined, around * human_squares, 1.0))
                result[side] = np.where(is_defined, np.clip(products / below, -1.0, 1.0), np.nan).T
            kernels.average_trials(result, cells.sets, cells.n_sets, self.is_zero, scores[p])


@dataclass(frozen=True)
class SystemCounter:
    """Counts agreements of systems' means of swapped segment scores."""

    cells: AgreementCells
    code: int

    def count(self, swaps: NDArray[np.uint8], pairs: Integers, scores: Floats) -> None:
        """Add the scores of each pair after given swaps."""
        cells, z = self.cells, self.cells.scores
        means, human = cells.compute_means(z)[:, None], cells.compute_means(cells.human)
        moved = _sum_swapped(cells, swaps, z) / cells.sizes[:, None, None]
        for p, pair in enumerate(pairs.tolist()):
            for side, (own, other) in enumerate((pair, pair[::-1])):
                pseudo = (means[..., own] + moved[..., other] - moved[..., own]).T
                kernels.score_means(self.code, np.ascontiguousarray(pseudo), human, cells.set_starts, scores[p, side])


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
                # differences that a threshold makes right or wrong: ties of people (0), and those in their order (1)
                changed = np.stack([np.broadcast_to((human == 0).T, same.T.shape), same.T]) & (sizes.T > 0)
                is_right, choice, rows = np.nonzero(changed)
                order = np.argsort(-sizes[rows, choice], kind="stable")
                is_right, choice, rows = is_right[order], choice[order], rows[order]
                ordered = (
                    first[rows] ^ ((choice >> 1) - 1).astype(np.int32),
                    second[rows] ^ ((choice & 1) - 1).astype(np.int32),
                    weights[rows] * (2 * is_right - 1).astype(weights.dtype),
                )
                total, tied = int(weights.sum()), weights[(human == 0).ravel()].sum(dtype=weights.dtype)
                for block, swapped in zip(blocks, masks, strict=True):
                    state = np.full((4, swapped.shape[1]), tied, weights.dtype)
                    kernels.count_ordered(swapped, *ordered, state)
                    scores[p, :, block] += state[2:] / total
        scores /= self.cells.n_sets


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
        for here, minus, whole, sums, slack, human in self._sets:
            for t, swapped in enumerate(swaps[:, here].reshape(len(swaps), len(whole), 1, -1)):
                moved = ((whole * swapped).reshape(-1, len(minus)) @ minus).astype(np.int32)
                kernels.count_soft_accuracy(moved.reshape(sums.shape), sums, slack, human, pairs, scores[:, :, t])
        scores /= self.cells.n_sets


ENUMERATED_UNITS = 16
"""Maximum number of discordant units for which all swaps of metrics are enumerated."""

DEFAULT_TRIALS = 20_000

DEVIATION_TRIALS = 256
"""Trials that estimate a deviation, to 4.4 %."""

SWAPS, MAX_SWAPS = 512, 2**22
"""Maximum number of trials whose swaps are drawn at a time, and of swaps of cells."""

SLACK = 1e-12
"""Rounding error of a mean of correlations. Smaller differences are ties."""


@dataclass(frozen=True, eq=False)
class AgreementPanel(RescoredPanel):
    """Metrics with pairs that share swaps of their standardised scores, under one measure of agreement.

    Attributes
    ----------
    key : tuple of int
        Key of the stream.
    metric : BoundAgreement
        Measure of agreement.
    cells : AgreementCells
        Human scores and standardised scores of the metrics. In an enumeration, `index` has the bit of each cell's unit,
        or -1 if it needs no swap.
    pairs : int64 array, shape (n_pairs, 2)
        Indices of the metrics compared.
    observed : float64 array, shape (n_metrics,)
        Agreement of the original scores; NaN if undefined.
    n_items, n_units : int
        Number of items of the data, and of units, concordant ones included.
    enumerated : bool
        Whether trials are all arrangements of the discordant units instead of random ones.
    """

    key: Key
    metric: BoundAgreement
    cells: AgreementCells
    pairs: Integers
    observed: Floats
    n_items: int
    n_units: int
    enumerated: bool = False

    manner: ClassVar[CountingMethod] = CountingMethod(grain=128, timed=128)
    kind: ClassVar[str] = "an agreement with human scores"
    deviation_trials: ClassVar[int] = DEVIATION_TRIALS
    trial_slack: ClassVar[float] = 2 * SLACK

    @staticmethod
    def from_cells(
        cells: AgreementCells, units: SwapUnits, metric: BoundAgreement, pairs: Integers, n_items: int
    ) -> AgreementPanel:
        """Return the panel of some pairs of metrics."""
        check_calibration(cells, metric)
        standardised = replace(cells, scores=cells.standardise(metric))
        observed, n_units = score_cells(cells, metric), len(np.unique(cells.index))
        return AgreementPanel(units.key, metric, standardised, pairs, observed, n_items, n_units)

    @property
    def index(self) -> Integers:
        """Address of each cell's unit, or its bit."""
        return self.cells.index

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of pairs and metrics."""
        return len(self.pairs), 1

    @property
    def extent(self) -> tuple[int, int]:
        """Numbers of items and units, concordant ones included."""
        return self.n_items, self.n_units

    @cached_property
    def n_discordant(self) -> Integers:
        """Number of units in which the standardised scores of a pair differ, shape (n_pairs, 1)."""
        return np.array([[len(self.find_discordant_units(k))] for k in range(len(self.pairs))], np.int64).reshape(-1, 1)

    def find_discordant_units(self, pair: int) -> Integers:
        """Return the addresses of the units in which the standardised scores of a pair differ."""
        i, j = self.pairs[pair]
        return np.unique(self.index[self.cells.scores[:, i] != self.cells.scores[:, j]])

    @property
    def scores(self) -> Floats:
        """Observed agreements, 0 where they are undefined, shape (n_metrics, 1)."""
        return np.asarray(np.nan_to_num(self.observed)[:, None])

    @property
    def pair_scores(self) -> Floats:
        """Observed scores of both metrics of each pair, shape (n_pairs, 1, 2)."""
        return np.asarray(self.scores[self.pairs, 0][:, None, :])

    @property
    def zero_division_scores(self) -> Floats:
        """0 where an agreement is undefined, as of a constant metric, and NaN elsewhere, shape (n_pairs, 1, 2)."""
        return np.where(np.isnan(self.observed[self.pairs]), 0.0, np.nan)[:, None, :]

    @cached_property
    def observed_differences(self) -> Floats:
        """Differences without swaps, as the trials compute them, shape (n_pairs, 1)."""
        scores = self.score_swaps(np.zeros((1, len(self.index)), np.uint8))
        return np.asarray(scores[:, 0] - scores[:, 1])

    def iter_trial_scores(self, *, run: int, first: int, n_trials: int) -> Iterator[tuple[int, int, Floats]]:
        """Yield pairs with the scores of both metrics after the swaps of some trials, shape (2, n_some)."""
        size = max(1, min(SWAPS, MAX_SWAPS // max(len(self.index), 1)))
        for start in range(first, first + n_trials, size):
            n_block = min(size, first + n_trials - start)
            swaps = draw_item_swaps(
                self.key, self.index, run=run, first=start, n_trials=n_block, enumerated=self.enumerated
            )
            for p, scores in enumerate(self.score_swaps(np.ascontiguousarray(swaps).view(np.uint8))):
                yield p, 0, scores

    def score_swaps(self, swaps: NDArray[np.uint8]) -> Floats:
        """Return the scores of both metrics of each pair after given swaps, undefined ones as 0.

        Parameters
        ----------
        swaps : uint8 array, shape (n_trials, n_cells)

        Returns
        -------
        float64 array, shape (n_pairs, 2, n_trials)
        """
        scores = np.zeros((len(self.pairs), 2, len(swaps)))
        self._counter.count(swaps, self.pairs, scores)
        return np.nan_to_num(scores, copy=False, nan=0.0)

    @cached_property
    def _counter(self) -> Counter:
        return build_counter(self.metric, self.cells)

    def compute_digests(self) -> Digests:
        """Return the digest of each pair, shape (n_pairs, 1)."""
        cells = self.cells
        data = cells.human, cells.index, cells.starts, cells.sets
        shared = digest(("agreement", self.key, self.metric, self.enumerated, *data))
        columns = [digest(np.ascontiguousarray(column)) for column in cells.scores.T]
        return digest_values(((shared, columns[i], columns[j]) for i, j in self.pairs.tolist()), self.shape)

    def hash_contents(self, _column: int) -> NDArray[np.uint64]:
        """Return content hashes of both metrics of each pair, each with the human scores, shape (n_pairs, 2)."""
        shared = hash_content((self.cells.human, self.cells.starts, self.cells.sets))
        hashes = [hash_content((shared, np.ascontiguousarray(column))) for column in self.cells.scores.T]
        return np.array(hashes, np.uint64)[self.pairs]

    def select(self, rows: Sequence[int] | Integers, columns: Sequence[int] | None = None) -> AgreementPanel:
        """Return the panel of some of its pairs."""
        if is_whole_selection(rows, [0] if columns is None else columns, self.shape):
            return self
        used, pairs = np.unique(self.pairs[np.asarray(rows, np.int64)], return_inverse=True)
        cells = replace(self.cells, scores=np.ascontiguousarray(self.cells.scores[:, used]))
        return replace(self, cells=cells, pairs=pairs.reshape(-1, 2).astype(np.int64), observed=self.observed[used])

    def build_enumeration(self, pair: int, _metric: int = 0) -> AgreementPanel:
        """Return the panel of one pair whose trials are all arrangements of its discordant units."""
        bit_of, selected = number_bits(self.find_discordant_units(pair), int(self.index.max()) + 1), self.select([pair])
        return replace(selected, cells=replace(selected.cells, index=bit_of[self.index]), enumerated=True)


@dataclass(frozen=True, eq=False)
class DecisionPanel(Panel):
    """A panel of decisions on pairs of cells, swapped although pairs that share a cell depend on each other."""

    kind: ClassVar[str] = "an agreement on pairs, which are no independent units"

    @staticmethod
    def from_panel(panel: Panel) -> DecisionPanel:
        """Return a panel of sums as one of decisions."""
        return DecisionPanel(**{f.name: getattr(panel, f.name) for f in fields(Panel)})


AGREEMENTS = (AgreementPanel, DecisionPanel)
"""Panels of agreement with people."""
