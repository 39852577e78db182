"""Panels of agreement with human scores: metrics whose standardised scores are swapped, cell by cell or in units.

PERM-BOTH, Deutsch, Dror & Roth 2021 ("A statistical analysis of summarization evaluation metrics using resampling
methods"): both metrics' scores are standardised over the test set, and swapped with probability 1/2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Floats, Integers
from sigdask.metrics.base import BoundAgreement
from sigdask.randomization.kernels.scored import count_scores
from sigdask.randomization.panels import ComparedPanel
from sigdask.randomization.panels.agreement_counters import Counter, build_counter
from sigdask.randomization.panels.cells import AgreementCells, check_calibration, score_cells
from sigdask.randomization.panels.digests import Digests, digest, digest_values, hash_content
from sigdask.randomization.panels.sums import Panel, SwapUnits, is_whole_selection
from sigdask.randomization.stream import Key, draw_swap_bits
from sigdask.randomization.tallies import TAILS, CountingMethod, Tally

ENUMERATED_UNITS = 16
"""Maximum number of discordant units for which all swaps of metrics are enumerated."""

DEFAULT_TRIALS = 20_000

DEVIATION_TRIALS = 256
"""Trials that estimate a deviation, to 4.4 %."""

SWAPS = 512
"""Trials whose swaps are drawn at a time."""

SLACK = 1e-12
"""Rounding error of a mean of correlations. Smaller differences are ties."""


@dataclass(frozen=True, eq=False)
class AgreementPanel(ComparedPanel):
    """Metrics with pairs that share swaps of their standardised scores, under one measure of agreement.

    Attributes
    ----------
    key : tuple of int
        Key of the stream.
    metric : BoundAgreement
        Measure of agreement.
    human : float64 array, shape (n_cells,)
        Human scores.
    z : float64 array, shape (n_cells, n_metrics)
        Standardised scores.
    index : int64 array, shape (n_cells,)
        Address of each cell's unit. In an enumeration, its bit, or -1 if it needs no swap.
    starts, sets
        As in `AgreementCells`.
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
    human: Floats
    z: Floats
    index: Integers
    starts: Integers
    sets: Integers
    pairs: Integers
    observed: Floats
    n_items: int
    n_units: int
    enumerated: bool = False

    manner: ClassVar[CountingMethod] = CountingMethod(grain=128, timed=128)
    kind: ClassVar[str] = "an agreement with human scores"
    trial_slack: ClassVar[float] = 2 * SLACK

    @staticmethod
    def from_cells(
        cells: AgreementCells, units: SwapUnits, metric: BoundAgreement, pairs: Integers, n_items: int
    ) -> AgreementPanel:
        """Return the panel of some pairs of metrics."""
        check_calibration(cells, metric)
        return AgreementPanel(
            units.key, metric, cells.human, cells.standardise(metric), cells.index, cells.starts, cells.sets, pairs,
            score_cells(cells, metric), n_items, len(np.unique(cells.index)),
        )  # fmt: skip

    @property
    def cells(self) -> AgreementCells:
        """The cells with standardised scores."""
        return AgreementCells(self.human, self.z, self.index, self.starts, self.sets)

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
        return np.unique(self.index[self.z[:, i] != self.z[:, j]])

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

    def draw_swaps(self, *, run: int, first: int, n_trials: int) -> NDArray[np.uint8]:
        """Return which cells each trial swaps, shape (n_trials, n_cells)."""
        if self.enumerated:
            trials = np.arange(first, first + n_trials, dtype=np.int64)[:, None]
            bits = (trials >> np.maximum(self.index, 0)) & 1
            return np.asarray((bits & (self.index >= 0)).astype(np.uint8))
        n_addresses = int(self.index.max()) + 1
        drawn = draw_swap_bits(self.key, run=run, first=first, n_trials=n_trials, n_units=n_addresses)
        return np.ascontiguousarray(drawn.view(np.uint8)[:, self.index])

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count exceedances of each pair in a range of trials, the same on any machine and in any partition."""
        counts = np.zeros((*self.shape, len(TAILS)), np.int64)
        observed = self.unswapped_scores
        slack = np.full(SWAPS, self.trial_slack)
        for scores in self._iter_scores(run=run, first=first, n_trials=n_trials):
            for p in range(len(self.pairs)):
                a, b = scores[p]
                difference = observed[p, 0, 0] - observed[p, 1, 0]
                count_scores(a, b, slack[: len(a)], difference, counts[p, 0])
        return Tally(n_trials, counts)

    def compute_trial_scores(self, *, run: int, first: int, n_trials: int) -> Floats:
        """Return the scores of both metrics after the swaps of each trial, shape (n_pairs, 2, n_trials)."""
        blocks = list(self._iter_scores(run=run, first=first, n_trials=n_trials))
        return np.concatenate(blocks, axis=2) if blocks else np.zeros((len(self.pairs), 2, 0))

    def _iter_scores(self, *, run: int, first: int, n_trials: int) -> Iterator[Floats]:
        for start in range(0, n_trials, SWAPS):
            n_block = min(SWAPS, n_trials - start)
            yield self.score_swaps(self.draw_swaps(run=run, first=first + start, n_trials=n_block))

    @cached_property
    def unswapped_scores(self) -> Floats:
        """Scores of both metrics without swaps, as the trials compute them, shape (n_pairs, 2, 1)."""
        return self.score_swaps(np.zeros((1, len(self.human)), np.uint8))

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
        shared = digest(
            ("agreement", self.key, self.metric, self.enumerated, self.human, self.index, self.starts, self.sets)
        )
        columns = [digest(np.ascontiguousarray(column)) for column in self.z.T]
        return digest_values(((shared, columns[i], columns[j]) for i, j in self.pairs.tolist()), self.shape)

    def hash_contents(self, _column: int) -> NDArray[np.uint64]:
        """Return content hashes of both metrics of each pair, each with the human scores, shape (n_pairs, 2)."""
        shared = hash_content((self.human, self.starts, self.sets))
        hashes = [hash_content((shared, np.ascontiguousarray(column))) for column in self.z.T]
        return np.array(hashes, np.uint64)[self.pairs]

    def estimate_swap_deviations(self) -> Floats:
        """Estimate the standard deviation of each difference under swaps from the first trials, shape (n_pairs, 1)."""
        scores = self.compute_trial_scores(run=0, first=0, n_trials=DEVIATION_TRIALS)
        return np.asarray(np.sqrt(((scores[:, 0] - scores[:, 1]) ** 2).mean(axis=1))[:, None])

    def select(self, rows: Sequence[int] | Integers, columns: Sequence[int] | None = None) -> AgreementPanel:
        """Return the panel of some of its pairs."""
        if is_whole_selection(rows, [0] if columns is None else columns, self.shape):
            return self
        used, pairs = np.unique(self.pairs[np.asarray(rows, np.int64)], return_inverse=True)
        return replace(
            self, pairs=pairs.reshape(-1, 2).astype(np.int64), z=np.ascontiguousarray(self.z[:, used]),
            observed=self.observed[used],
        )  # fmt: skip

    def build_enumeration(self, pair: int, _metric: int = 0) -> AgreementPanel:
        """Return the panel of one pair whose trials are all arrangements of its discordant units."""
        units = self.find_discordant_units(pair)
        bit_of = np.full(int(self.index.max()) + 1, -1, np.int64)
        bit_of[units] = np.arange(len(units))
        return replace(self.select([pair]), index=bit_of[self.index], enumerated=True)

    def iter_enumerations(self, rows: Integers, _column: int = 0) -> Iterator[tuple[Integers, AgreementPanel]]:
        """Yield pairs with equal discordant units, with the panel whose trials are all their arrangements."""
        groups: dict[bytes, list[int]] = {}
        for row in rows.tolist():
            groups.setdefault(self.find_discordant_units(row).tobytes(), []).append(row)
        for group in groups.values():
            enumeration = self.build_enumeration(group[0])
            yield np.array(group), replace(self.select(group), index=enumeration.index, enumerated=True)


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
