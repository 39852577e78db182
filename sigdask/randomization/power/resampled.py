"""Power simulation as a panel: each trial is a sample, and rejected samples are counted like exceedances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.identity import known_as
from sigdask.options import Alternative
from sigdask.randomization.kernels.dense import limit_blas_threads
from sigdask.randomization.panels.digests import Digests, digest, pack_digests
from sigdask.randomization.panels.scored_sums import PanelMetric
from sigdask.randomization.power.population import SystemPairs
from sigdask.randomization.power.rejection import count_rejected
from sigdask.randomization.tallies import TAILS, CountingMethod, Tally


@known_as("Resampled", "alternative alpha rows strengths sizes", apart_from="pairs")
@dataclass(frozen=True, eq=False)
class PowerSamples:
    """A panel whose trials draw a sample for each point, which is a pair of systems, a tilt and a sample size.

    Attributes
    ----------
    pairs : SystemPairs
        Of one metric.
    alternative, alpha
        Of the test.
    rows : int64 array, shape (n_points,)
        Pairs that are drawn from.
    strengths : float64 array, shape (n_points,)
        Of the tilts.
    sizes : int64 array, shape (n_points,)
        Units of a sample.
    """

    pairs: SystemPairs
    alternative: Alternative
    alpha: float
    rows: NDArray[np.int64]
    strengths: NDArray[np.float64]
    sizes: NDArray[np.int64]

    manner: ClassVar[CountingMethod] = CountingMethod(grain=256, timed=4)
    is_whole: ClassVar[bool] = False
    enumerated: ClassVar[bool] = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with only those pairs that are drawn from."""
        used, positions = np.unique(self.rows, return_inverse=True)
        return PowerSamples, (
            self.pairs.select(used), self.alternative, self.alpha, positions, self.strengths, self.sizes
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, int]:
        """Number of points, and 1 for the one metric."""
        return len(self.rows), 1

    @property
    def metrics(self) -> tuple[PanelMetric, ...]:
        """The metric, whose function workers must be able to find."""
        return self.pairs.panel.metrics

    @property
    def nbytes(self) -> float:
        """Approximate size of the panel of pairs in bytes."""
        return self.pairs.panel.nbytes

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count, for each point, the rejected samples among `first` to `first + n_trials - 1`, the same in each tail.

        Counts do not depend on tasks: each sample and its swaps have addresses in the stream. There is one run.
        """
        assert run == 0
        counts = np.zeros((*self.shape, len(TAILS)), np.int64)
        with limit_blas_threads():
            points = zip(self.rows.tolist(), self.strengths.tolist(), self.sizes.tolist(), strict=True)
            for k, (row, strength, size) in enumerate(points):
                counts[k] = count_rejected(
                    self.pairs[row], self.pairs.panel.key, strength, self.alternative, self.alpha,
                    size=size, first=first, n=n_trials,
                )  # fmt: skip
        return Tally(n_trials, counts)

    def select(self, rows: Sequence[int] | NDArray[np.int64], _columns: Sequence[int] | None = None, /) -> PowerSamples:
        """Return some of the points."""
        selected = np.asarray(rows, np.int64)
        return replace(self, rows=self.rows[selected], strengths=self.strengths[selected], sizes=self.sizes[selected])

    def compute_digests(self) -> Digests:
        """Return the digest of each point, shape (n_points, 1), which covers units on which the systems tie as well."""
        pair_digests = {row: digest(self.pairs[row].panel) for row in set(self.rows.tolist())}
        points = zip(self.rows.tolist(), self.strengths.tolist(), self.sizes.tolist(), strict=True)
        contents = (
            ("power", pair_digests[row], strength, size, self.alternative, self.alpha) for row, strength, size in points
        )
        return pack_digests([bytes.fromhex(digest(content)) for content in contents]).reshape(self.shape)
