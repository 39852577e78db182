"""From aligned counts to panels: the systems, pairs and metrics that share one set of shuffles.

Items are summed into units, units stand in canonical order (their addresses in the stream), and
pairs that can share arrays do. A pair with missing items, another scale or a subset of the items
has a panel of its own *on the same addresses*, so adding a system or a subset changes no other
count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.checks import canonical
from sigdask.counts.lattice import TIE
from sigdask.errors import InputError
from sigdask.identity import known_as
from sigdask.metrics.forms import Ratios
from sigdask.randomization.deviations import swap_deviations
from sigdask.randomization.panels.digests import Digests, of_pairs
from sigdask.randomization.panels.scored_sums import PanelMetric, ScoredSums
from sigdask.randomization.shuffles import Key, stream_key
from sigdask.randomization.slabs import slabs
from sigdask.randomization.tallies import TAILS, Manner, Tally
from sigdask.statistics.bounds import MAX_TRIALS

Pair = tuple[int, int]
ENUMERATED_UNITS = 20
"""Discordant units up to which all arrangements are enumerated."""

DEFAULT_TRIALS = 2**20

SUMS = "sums"
"""The kind of panels that families are made of."""


@known_as("Units", "key index n_units")
@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """What is exchanged as a whole, in canonical order.

    Attributes
    ----------
    key : tuple of int
        Key of the test set's stream.
    index : int64 array, shape (n_items,)
        Address of each item's unit.
    n_units : int
        Number of units.
    """

    key: Key
    index: NDArray[np.int64]
    n_units: int

    @staticmethod
    def of(counts: Counts, seed: int) -> Units:
        """Group the items of `counts` into units."""
        names = counts.ids if counts.unit == "item" else counts.group(counts.unit)
        if names is None:
            key = stream_key(seed, counts.name, counts.n_items)
            return Units(key, np.arange(counts.n_items), counts.n_items)
        for position, name in enumerate(names):
            if not name:
                raise InputError(f"column {counts.unit!r} is empty at item {position + 1}")
        forms = [canonical(name) for name in names]
        order = sorted(set(forms))
        address = {form: k for k, form in enumerate(order)}
        index = np.array([address[form] for form in forms], dtype=np.int64)
        return Units(stream_key(seed, counts.name, [form.decode() for form in order]), index, len(order))


@known_as("Panel", "key addresses values totals lattices pairs metrics sizes n_items n_units enumerated")
@dataclass(frozen=True, eq=False)
class Panel(ScoredSums):
    """A panel of sums: systems of one test set, with pairs and metrics that share shuffles."""

    manner: ClassVar[Manner] = Manner()
    is_whole: ClassVar[bool] = False
    kind: ClassVar[str] = SUMS

    @property
    def extent(self) -> tuple[int, int]:
        """Numbers of items and units, concordant ones included."""
        return self.n_items, self.n_units

    def tally(self, *, run: int = 0, first: int = 0, n_trials: int = DEFAULT_TRIALS) -> Tally:
        """Count exceedances in trials `first` to `first + n_trials - 1` of a run.

        The same data, seed and trials give the same counts on any machine, in any partition.

        Parameters
        ----------
        run : int
            0 for the first run, 1 for the second; at most 255.
        first, n_trials : int
            The range of trials.
        """
        if n_trials < 1 or first < 0 or first + n_trials > MAX_TRIALS:
            raise InputError(f"trials {first} to {first + n_trials - 1}: must lie in 0 to 2**48 - 1, at least one")
        counts = np.zeros((*self.shape, len(TAILS)), np.int64)
        for slab in slabs(self, run=run, first=first, n_trials=n_trials):
            for m in range(len(self.metrics)):
                slab.count(m, counts[:, m])
        return Tally(n_trials, counts)

    def digests(self) -> Digests:
        """Return what each pair and metric is, by content, shape (n_pairs, n_metrics)."""
        return np.array([of_pairs(self, m) for m in range(len(self.metrics))], object).reshape(self.shape[::-1]).T

    def swap_deviations(self) -> NDArray[np.float64]:
        """Return the standard deviation of the shuffled difference, shape (n_pairs, n_metrics).

        Exact for scores that are means, linearised for others.
        """
        return np.column_stack([swap_deviations(self, m) for m in range(len(self.metrics))])

    @property
    def scores_of_pairs(self) -> NDArray[np.float64]:
        """Observed scores of both systems of each pair, shape (n_pairs, n_metrics, 2)."""
        return np.moveaxis(self.scores[self.pairs], 1, 2)

    @property
    def tie_widths(self) -> NDArray[np.float64]:
        """How far apart the observed scores of a pair may be and still be a tie, shape (n_pairs, n_metrics)."""
        width = float(TIE) * np.abs(self.scores_of_pairs).sum(axis=2)
        for m, linear in enumerate(self.linear):
            if linear:
                width[:, m] = np.maximum(width[:, m], self.slack[:, m] * self.unit_of(m))
            else:
                width[:, m] += self.observed_movement[:, m]
        return np.asarray(width)

    def is_mean(self, column: int) -> bool:
        """Whether a score is a mean over what no swap can change."""
        return self.linear[column]

    def step(self, column: int) -> float:
        """Return how finely scores are told apart; 0 where that is exactly."""
        lattices = [self.lattices[f] for f in self.metrics[column].fields]
        return max((lattice.step for lattice in lattices if lattice.slack), default=0.0)

    @property
    def undefined(self) -> NDArray[np.float64]:
        """What a 0/0 is scored where either score of a pair holds one, else NaN, shape (n_pairs, n_metrics, 2)."""
        found = np.full((len(self.totals), len(self.metrics)), np.nan)
        for m, metric in enumerate(self.metrics):
            if isinstance(metric.form, Ratios):
                found[metric.form.undefined(self.totals[:, list(metric.fields)]), m] = metric.form.zero_division
        return np.moveaxis(found[self.pairs], 1, 2)

    def enumeration(self, pair: int, metric: int) -> Panel:
        """Return the panel of all arrangements of one pair under one metric."""
        fields = list(self.metrics[metric].fields)
        both = list(self.pairs[pair])
        values = self.values[:, both][:, :, fields]
        kept = (values[:, 0] != values[:, 1]).any(axis=1)
        own = self.metrics[metric]
        return Panel(
            key=self.key,
            addresses=np.arange(np.count_nonzero(kept)),
            values=values[kept],
            totals=self.totals[both][:, fields],
            lattices=tuple(self.lattices[f] for f in fields),
            pairs=np.array([[0, 1]]),
            metrics=(PanelMetric(own.name, own.form, tuple(range(len(fields))), own.higher_is_better),),
            sizes=self.sizes[kept],
            n_items=self.n_items,
            n_units=self.n_units,
            enumerated=True,
        )

    def part(self, rows: Sequence[int], columns: Sequence[int] | None = None) -> Panel:
        """Return the panel of some of its pairs and metrics, with the systems that they need."""
        columns = range(len(self.metrics)) if columns is None else columns
        if self.shape == (len(rows), len(columns)):
            return self
        used, pairs = np.unique(self.pairs[list(rows)], return_inverse=True)
        return replace(
            self,
            values=np.ascontiguousarray(self.values[:, used]),
            totals=self.totals[used],
            pairs=pairs.reshape(-1, 2),
            metrics=tuple(self.metrics[k] for k in columns),
        )
