"""The randomization test of a mean, inverted: for which shifts of the difference its trials are as extreme as observed.

Where each unit's difference is shifted by D times its weight, a trial that swaps the units of a set S is
as extreme as the observed difference, in one direction, just where the mean of S (or of its complement)
has D on its other side. So each trial gives two shifts, the means of S and of the units it leaves, and the
interval ends where enough of the smaller ones lie below, and of the larger ones above. These are counted in cells,
0 with one of its own, so that the interval holds 0 just where the test of as many trials does not reject.

References
----------
Hartigan 1969, Journal of the American Statistical Association 64:1303. Garthwaite 1996, Biometrics 52:1387.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.identity import known_as
from sigdask.io.compiled_cache import compiled
from sigdask.randomization.panels.digests import Digests, digest, packed
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.cells import INNER, N_CELLS, add_values, width_of
from sigdask.randomization.resampling.sums import WeightedSums
from sigdask.randomization.stream.shuffles import COLUMN, swap_words
from sigdask.randomization.tallies import CountingMethod, Tally

COARSER = 4
"""Widths of cells beside those of resamples: they reach 0 where it is near, and both ends."""

NEAR = INNER // 64
"""Standard errors within which cells begin at a shift of 0."""

Floats = NDArray[np.float64]


@known_as("Shifts", "panel origins widths")
@dataclass(frozen=True, eq=False)
class ShiftPanel:
    """The shifts at which trials become as extreme as observed, of a panel's pairs under means, counted as a whole.

    Rows are, for each metric in turn, the smaller shifts of all pairs and then the larger ones.

    Attributes
    ----------
    panel : Panel
        With all its units; metrics are means.
    origins, widths : float64 array, shape (n_rows,)
        Of the cells.
    """

    panel: Panel
    origins: Floats
    widths: Floats

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=N_CELLS, timed=64)
    is_whole: ClassVar[bool] = True
    enumerated: ClassVar[bool] = False

    @staticmethod
    def of(panel: Panel) -> ShiftPanel:
        """Make cells as wide as differences of subsets' means ask for."""
        origins, widths = [], []
        for m in range(len(panel.metrics)):
            above, below = numerators_and_weights(panel, m)
            n_pairs = len(panel.pairs)
            worth, total = worth_of(panel, m), float(below.sum())
            observed, errors = np.empty(n_pairs), np.empty(n_pairs)
            for p, (a, b) in enumerate(panel.pairs.tolist()):
                d = (above[:, a] - above[:, b]).astype(np.float64)
                observed[p] = d.sum() / total
                errors[p] = np.sqrt(((d - observed[p] * below) ** 2).sum()) / total
            width = COARSER * width_of(errors * worth, np.abs(observed) * worth)
            is_near = np.abs(observed) <= NEAR * errors
            origins += [np.where(is_near, 0.0, observed * worth)] * 2
            widths += [width] * 2
        return ShiftPanel(panel, np.concatenate(origins), np.concatenate(widths))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and, always one, of metrics."""
        return len(self.origins), 1

    @property
    def nbytes(self) -> int:
        """Size of its arrays, about."""
        return self.panel.nbytes

    @cached_property
    def sums(self) -> WeightedSums:
        """What units contribute, arranged for summing."""
        return WeightedSums.of(self.panel)

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count the cells of trials `first` to `first + n_trials - 1` of a run: the swaps are those of the test."""
        panel, counts = self.panel, np.zeros((*self.shape, N_CELLS), np.int64)
        n_pairs = len(panel.pairs)

        def fill(start: int, kinds: NDArray[Any], weights: NDArray[np.floating]) -> None:
            _fill_swaps(panel, run, start, kinds, weights)

        for totals in self.sums.blocks(fill, first, n_trials):
            for m in range(len(panel.metrics)):
                above = np.ascontiguousarray(panel.numerators_of(m, totals).T)  # (n_systems, n_some)
                weights = totals[:, 0][:, list(panel.metrics[m].fields)] @ np.array(panel.ratio(m).denominators[0])
                whole, all_weights = panel.numerators(m), _weights(panel, m, panel.totals[0])
                both = np.empty((2, n_pairs, len(weights)))
                _means(above, weights, whole, all_weights, panel.pairs, panel.slack[:, m], both)
                both *= worth_of(panel, m)
                rows = slice(2 * m * n_pairs, 2 * (m + 1) * n_pairs)
                own = self.origins[rows], np.zeros(2 * n_pairs), self.widths[rows]
                add_values(both.reshape(2 * n_pairs, -1), *own, counts[rows, 0])
        return Tally(n_trials, counts)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel without what is arranged for summing, which is made where it is needed."""
        return ShiftPanel, (self.panel, self.origins, self.widths)

    def part(self, _rows: Sequence[int] | NDArray[np.int64], _columns: Sequence[int] | None = None) -> ShiftPanel:
        """Return itself: it is counted as a whole."""
        return self

    def digests(self) -> Digests:
        """Return what it is as a whole, by content, shape (1, 1)."""
        return packed([bytes.fromhex(digest(self))]).reshape(1, 1)


def numerators_and_weights(panel: Panel, m: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what units add to a mean's numerators, shape (n_units, n_systems), and to what all share, (n_units,)."""
    return panel.numerators_of(m, panel.values), _weights(panel, m, panel.values[:, 0])


def worth_of(panel: Panel, m: int) -> float:
    """Return what a numerator of 1 over a weight of 1 is worth as a score."""
    return panel.unit_of(m) * float(_weights(panel, m, panel.totals[0]))


def _weights(panel: Panel, m: int, sums: NDArray[np.integer]) -> NDArray[np.int64]:
    own = sums[..., list(panel.metrics[m].fields)].astype(np.int64)
    return np.asarray(own @ np.array(panel.ratio(m).denominators[0]))


def _fill_swaps(panel: Panel, run: int, first: int, kinds: NDArray[Any], out: NDArray[np.floating]) -> None:
    """Fill `out`, shape (n_trials, n_kinds), with how many units of each kind are swapped."""
    out[:] = 0
    words = np.empty((4, len(out)), np.uint32)
    columns = panel.addresses // COLUMN
    for column in np.unique(columns):
        swap_words(panel.key, run, first, int(column), words)
        units = np.flatnonzero(columns == column)
        _spread(words, panel.addresses[units] % COLUMN, kinds[units], out)


@compiled()
def _spread(words, places, kinds, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for t in range(out.shape[0]):
        for k in range(kinds.shape[0]):
            out[t, kinds[k]] += (words[places[k] // 32, t] >> np.uint32(places[k] % 32)) & np.uint32(1)


@compiled()
def _means(above, weights, whole, all_weights, pairs, slack, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Write the smaller and the larger of the means of swapped and of other units, `out`, (2, n_pairs, n_trials)."""
    for p in range(pairs.shape[0]):
        i, j = pairs[p]
        total = whole[i] - whole[j]
        for t in range(weights.shape[0]):
            own = above[i, t] - above[j, t]
            one = _mean(own, weights[t], slack[p])
            other = _mean(total - own, all_weights - weights[t], slack[p])
            if weights[t] == 0 or weights[t] == all_weights:
                one, other = -np.inf, np.inf  # the observed difference, or its negative: extreme at any shift
            out[0, p, t] = min(one, other)
            out[1, p, t] = max(one, other)


@compiled(inline="always")
def _mean(above, below, slack):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return 0.0 if abs(above) <= slack or below == 0 else above / below
