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
from sigdask.counts.checks import canonical_column
from sigdask.counts.lattice import TIE
from sigdask.counts.texts import Factor, Texts
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
        texts = names.levels if isinstance(names, Factor) else Texts.of(names)
        if not texts.sizes.all():
            position = next(k for k, name in enumerate(names) if not name)
            raise InputError(f"column {counts.unit!r} is empty at item {position + 1}")
        forms = canonical_column(texts)
        order, tied = forms.sorted
        address = np.empty(len(forms), np.int64)
        address[order] = np.cumsum(~tied) - 1
        units = forms[order[~tied]]
        index = address[names.codes] if isinstance(names, Factor) else address
        return Units(stream_key(seed, counts.name, units), index, len(units))


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

    def scores_of(self, row: int, column: int) -> tuple[float, float]:
        """Return the observed scores of both systems of a pair."""
        i, j = self.pairs[row]
        return float(self.scores[i, column]), float(self.scores[j, column])

    def tie_width(self, row: int, column: int, a: float, b: float) -> float:
        """Return how far apart the observed scores of a pair may be and still be a tie."""
        width = float(TIE) * (abs(a) + abs(b))
        if self.linear[column]:
            return max(width, float(self.slack[row, column]) * self.unit_of(column))
        return width + float(self.observed_movement[row, column])

    def is_mean(self, column: int) -> bool:
        """Whether a score is a mean over what no swap can change."""
        return self.linear[column]

    def signs(self, row: int, column: int) -> tuple[int, int] | None:
        """Return wins and losses where all nonzero differences of a mean are equally large."""
        if not self.linear[column] or self.slack[row, column]:  # differences of the size of the slack have no sign
            return None
        i, j = self.pairs[row]
        differences = self.numerators_of(column, self.values[:, i] - self.values[:, j])
        nonzero = differences[differences != 0]
        if len(set(np.abs(nonzero).tolist())) > 1:
            return None
        return int(np.count_nonzero(nonzero > 0)), int(np.count_nonzero(nonzero < 0))

    def step(self, column: int) -> float:
        """Return how finely scores are told apart; 0 where that is exactly."""
        lattices = [self.lattices[f] for f in self.metrics[column].fields]
        return max((lattice.step for lattice in lattices if lattice.slack), default=0.0)

    def undefined(self, row: int, column: int) -> tuple[float | None, float | None]:
        """Return what a 0/0 is scored where the score of either system of a pair holds one."""
        metric, (i, j) = self.metrics[column], self.pairs[row]
        if not isinstance(metric.form, Ratios):
            return None, None
        holds = metric.form.undefined(self.totals[[i, j]][:, list(metric.fields)])
        first, second = (metric.form.zero_division if one else None for one in holds)
        return first, second

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
