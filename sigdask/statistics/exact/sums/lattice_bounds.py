"""Limits of tails of sums of many real numbers, from sums of sizes that are rounded to a coarse lattice.

With sizes w = h k + r, the sum X of a random half of them is h K + sum(r) / 2 + E, where E is half of a sum of random
signs of the small r: |E| is at most half of sum |r|, and larger than d with a probability of at most
exp(-2 d**2 / sum r**2) on either side (Hoeffding 1963). The tails of K at two thresholds, widened by these
probabilities, are therefore limits of p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sigdask.statistics.exact.problems import StepSizes
from sigdask.statistics.exact.result import Check, TailProbability
from sigdask.statistics.exact.sums import convolution
from sigdask.statistics.exact.sums.saddlepoint import estimate_log_tail

TARGET = 4 * 10**8
"""Additions that the lattice is made for: the finer, the nearer are the limits."""

WIDENING_SHARE = 1e-10
"""Share of p by which E may widen the limits."""


@dataclass(frozen=True, eq=False)
class CoarseSizes:
    """Sizes of differences, rounded to a coarse lattice, with bounds on the rounding errors.

    Attributes
    ----------
    steps : StepSizes
        The rounded sizes, whose sums are computed.
    step : int
        The lattice's step.
    rest : int
        Sum of what rounding left.
    reach : int
        Twice the d that E does not exceed, but for `outside`.
    outside : float
        A bound on the probability that E is larger than d, and on the probability that it is less than -d.
    """

    steps: StepSizes
    step: int
    rest: int
    reach: int
    outside: float

    @staticmethod
    def from_steps(steps: StepSizes) -> CoarseSizes:
        """Return sizes rounded to a lattice on which computing the sums takes about `TARGET` additions."""
        log_p = math.floor(estimate_log_tail(*steps.groups, 2 * max(steps.thresholds[0], 0) - steps.total))
        n_points = TARGET / max(steps.n, 1)  # places of the window
        width = math.sqrt(2 * steps.squares * (math.log(4 / convolution.LOST_SHARE) - log_p))
        step = max(math.ceil(width / n_points), 1)
        coarse = (steps.weights + step // 2) // step
        residuals = steps.weights - step * coarse
        squares = float((residuals.astype(np.float64) ** 2).sum())
        likely = math.sqrt(squares / 2 * (math.log(1 / WIDENING_SHARE) - log_p))
        max_reach = int(np.abs(residuals).sum())  # twice the largest E
        reach = min(2 * math.ceil(likely), max_reach)
        outside = 0.0 if reach == max_reach else math.exp(-(reach**2) / (2 * squares)) * (1 + 1e-12)
        weights = np.sort(coarse[coarse > 0])
        middle = _divide_up(2 * steps.thresholds[0] - int(residuals.sum()), 2 * step)
        rounded = replace(steps, weights=weights, reached=middle, slack=0, known=0)
        return CoarseSizes(rounded, step, int(residuals.sum()), reach, outside)

    def compute_thresholds(self, x: int) -> tuple[int, int]:
        """Return the smallest lattice sum K that allows X >= x, and the smallest that ensures it.

        Both hold if the rounding error E is within its reach.
        """
        doubled = 2 * x - self.rest
        return _divide_up(doubled - self.reach, 2 * self.step), _divide_up(doubled + self.reach, 2 * self.step)


def estimate_operations(coarse: CoarseSizes) -> int:
    """Return the number of additions that sums on the lattice take."""
    return convolution.estimate_operations(coarse.steps)


def estimate_bytes(coarse: CoarseSizes) -> int:
    """Return the estimated memory in bytes."""
    return convolution.estimate_bytes(coarse.steps)


def compute_tails(steps: StepSizes, check: Check) -> tuple[TailProbability, TailProbability]:
    """Return limits of P(X >= threshold) for both thresholds."""
    coarse = CoarseSizes.from_steps(steps)
    needed = [coarse.compute_thresholds(x) for x in steps.thresholds]
    limits = convolution.compute_tails_at(coarse.steps, [k for pair in needed for k in pair], check)
    reached, passed = (_widen(limits[i + 1], limits[i], coarse.outside) for i in (0, 2))
    return reached, passed


def _widen(sufficient: TailProbability, necessary: TailProbability, outside: float) -> TailProbability:
    return TailProbability(max(float(sufficient.low) - outside, 0.0), min(float(necessary.high) + outside, 1.0))


def _divide_up(a: int, b: int) -> int:
    return -(-a // b)
