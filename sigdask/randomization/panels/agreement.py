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
from sigdask.randomization.panels import RescoredPanel, draw_item_swaps, number_bits
from sigdask.randomization.panels.agreement_counters import Counter, build_counter
from sigdask.randomization.panels.cells import AgreementCells, check_calibration, score_cells
from sigdask.randomization.panels.digests import Digests, digest, digest_values, hash_content
from sigdask.randomization.panels.sums import Panel, SwapUnits, is_whole_selection
from sigdask.randomization.stream import Key
from sigdask.randomization.tallies import CountingMethod

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
        for start in range(first, first + n_trials, SWAPS):
            n_block = min(SWAPS, first + n_trials - start)
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
