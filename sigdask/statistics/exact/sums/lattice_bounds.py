"""Sums of many real numbers between limits: sizes are rounded to a coarse lattice, of which sums are computed.

With sizes w = h k + r, the sum X of a random half of them is h K + sum(r) / 2 + E, where E is half of a sum of random
signs of the small r: |E| is at most half of sum |r|, and larger than d with a probability of at most
exp(-2 d**2 / sum r**2) on either side (Hoeffding 1963). What K says of X - E on both sides of the threshold
holds p between limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sigdask.statistics.exact.problems import StepSizes
from sigdask.statistics.exact.result import Check, TailProbability
from sigdask.statistics.exact.sums import convolution
from sigdask.statistics.exact.sums.saddlepoint import log_tail

TARGET = 4 * 10**8
"""Additions that the lattice is made for: the finer, the nearer are the limits."""

BEYOND = 1e-10
"""Share of p by which E may widen the limits."""


@dataclass(frozen=True, eq=False)
class CoarseSizes:
    """Sizes on a coarse lattice.

    Attributes
    ----------
    steps : StepSizes
        What is rounded, of which the sums are computed.
    step : int
        The lattice's step.
    rest : int
        Sum of what rounding left.
    reach : int
        Twice the d that E does not exceed, but for `outside`.
    outside : float
        A bound of the probability that E is larger than d; as much that it is less than -d.
    """

    steps: StepSizes
    step: int
    rest: int
    reach: int
    outside: float

    @staticmethod
    def of(steps: StepSizes) -> CoarseSizes:
        """Round sizes to a lattice on which sums take about `TARGET` additions."""
        log_p = math.floor(log_tail(*steps.groups, 2 * max(steps.thresholds[0], 0) - steps.total))
        within = TARGET / max(steps.n, 1)  # places of the window
        width = math.sqrt(2 * steps.squares * (math.log(4 / convolution.LOST) - log_p))
        step = max(math.ceil(width / within), 1)
        coarse = (steps.weights + step // 2) // step
        left = steps.weights - step * coarse
        squares = float((left.astype(np.float64) ** 2).sum())
        likely = math.sqrt(squares / 2 * (math.log(1 / BEYOND) - log_p))
        most = int(np.abs(left).sum())  # twice the largest E
        reach = min(2 * math.ceil(likely), most)
        outside = 0.0 if reach == most else math.exp(-(reach**2) / (2 * squares)) * (1 + 1e-12)
        own = np.sort(coarse[coarse > 0])
        middle = _ceil(2 * steps.thresholds[0] - int(left.sum()), 2 * step)
        rounded = replace(steps, weights=own, reached=middle, slack=0, known=0)
        return CoarseSizes(rounded, step, int(left.sum()), reach, outside)

    def thresholds(self, x: int) -> tuple[int, int]:
        """Return K that X >= x needs at least, and K that is enough, where E is within its reach."""
        doubled = 2 * x - self.rest
        return _ceil(doubled - self.reach, 2 * self.step), _ceil(doubled + self.reach, 2 * self.step)


def operations(coarse: CoarseSizes) -> int:
    """Return the additions."""
    return convolution.operations(coarse.steps)


def n_bytes(coarse: CoarseSizes) -> int:
    """Return the memory it takes."""
    return convolution.n_bytes(coarse.steps)


def tails(steps: StepSizes, check: Check) -> tuple[TailProbability, TailProbability]:
    """Return limits of P(X >= threshold) for both thresholds."""
    coarse = CoarseSizes.of(steps)
    needed = [coarse.thresholds(x) for x in steps.thresholds]
    found = convolution.uppers(coarse.steps, [k for pair in needed for k in pair], check)
    reached, passed = (_within(found[i + 1], found[i], coarse.outside) for i in (0, 2))
    return reached, passed


def _within(enough: TailProbability, least: TailProbability, outside: float) -> TailProbability:
    return TailProbability(max(float(enough.low) - outside, 0.0), min(float(least.high) + outside, 1.0))


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
