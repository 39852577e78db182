"""A panel whose trials cost nothing, for what surrounds the counting."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sigdask.randomization.tallies import CountingMethod, Tally


class Waited:
    """A panel of as many pairs and bytes as asked, which finds no exceedance."""

    manner: ClassVar[CountingMethod] = CountingMethod(grain=1, timed=1)
    is_whole: ClassVar[bool] = False
    enumerated = False

    def __init__(self, n_pairs, nbytes):
        self.shape, self.values = (n_pairs, 1), np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)

    @property
    def nbytes(self):
        return float(self.values.nbytes)

    def tally(self, *, run, first, n_trials):  # noqa: ARG002
        return Tally(n_trials, np.zeros((*self.shape, 3), np.int64))

    @staticmethod
    def of(result):
        """Whether this is what a task counted, and not a panel that it was sent."""
        return isinstance(result, list)
