"""A panel whose trials cost nothing, to measure everything except counting."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sigdask.randomization.tallies import CountingMethod, Tally


class SimulatedPanel:
    """Panel of a given number of pairs and bytes, which finds no exceedance."""

    manner: ClassVar[CountingMethod] = CountingMethod(grain=1, timed=1)
    is_whole: ClassVar[bool] = False
    enumerated = False

    def __init__(self, n_pairs, nbytes):
        self.shape, self.values = (n_pairs, 1), np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)

    def tally(self, *, run, first, n_trials):  # noqa: ARG002
        return Tally(n_trials, np.zeros((*self.shape, 3), np.int64))

    @staticmethod
    def is_result(result):
        """Return whether this is a task's result, not a panel sent to a worker."""
        return isinstance(result, list)
