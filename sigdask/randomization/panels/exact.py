"""Panels that compute exact p-values in trials, so that tasks, stores and deadlines treat them like any panel.

A number is stored by its bits: a trial adds 0 or 1 to the count of each bit of its result. So the tally is like any
other: its counts are whole numbers, at most the number of trials, they add up, and they are the same in any partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Floats
from sigdask.metrics.forms import Form
from sigdask.randomization.panels.digests import WholePanel
from sigdask.randomization.panels.scored_sums import as_arguments
from sigdask.randomization.tallies import CountingMethod, Tally
from sigdask.statistics import exact
from sigdask.statistics.exact import ChosenMethod, EnumeratedScore, Problem, QuotientProblem, SumProblem
from sigdask.statistics.lattice import Lattice

VERSION = 1
"""Increased when a correction changes exact values, so that no older ones are used again."""

BITS = 64
N_LIMITS = 6
"""Numbers in a tally: two limits of three p-values."""


@dataclass(frozen=True, slots=True)
class IntegerScoring:
    """A score as a function of integer sums, for an exact problem that is sent to workers.

    Attributes
    ----------
    form : Form
        The score.
    lattices : tuple of Lattice
        Lattices of the numbers that the integers represent.
    """

    form: Form
    lattices: tuple[Lattice, ...]

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "integer scoring", self.form, self.lattices

    def score(self, sums: NDArray[Any]) -> Floats:
        """Score integer sums, shape (..., n_fields)."""
        return self.form.score(as_arguments(sums, self.lattices, range(len(self.lattices))))


@dataclass(frozen=True, eq=False)
class ExactPanel(WholePanel):
    """A panel that computes the exact p-values of one pair under one metric, in one trial.

    Attributes
    ----------
    problem : Problem
        The problem whose p-values are computed.
    chosen : ChosenMethod
        How it is solved.
    """

    problem: Problem
    chosen: ChosenMethod

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=N_LIMITS * BITS, grain=1, timed=1)
    enumerated: ClassVar[bool] = True
    shape: ClassVar[tuple[int, int]] = (1, 1)
    n_trials: ClassVar[int] = 1

    @property
    def seconds_per_trial(self) -> float:
        """Predicted seconds of the trial, since measuring it would take all the work."""
        return self.chosen.seconds

    def tally(self, *, run: int = 0, first: int = 0, n_trials: int = 1) -> Tally:  # noqa: ARG002  # no run differs
        """Solve the problem, and return the bits of the limits as counts."""
        numbers = exact.solve(self.problem, self.chosen).limits.ravel().view(np.uint64)
        bits = (numbers[:, None] >> SHIFTS) & ONE
        return Tally(n_trials, bits.astype(np.int64).reshape(1, 1, -1))

    def compute_limits(self, tally: Tally) -> Floats:
        """Return both limits of the three p-values, shape (3, 2); NaN until the trial is done."""
        if tally.n_trials < self.n_trials:
            return np.full((N_LIMITS // 2, 2), np.nan)
        bits = tally.counts.reshape(-1, BITS).astype(np.uint64)
        numbers = (bits << SHIFTS).sum(axis=1, dtype=np.uint64)
        return np.asarray(numbers.view(np.float64).reshape(-1, 2))

    def get_guarantee(self, limits: Floats) -> str:
        """Return the guarantee of limits of p.

        If they differ, it is "certified" for close limits and "bounds" for others.
        """
        low, high = limits.T
        if (low == high).all():
            return self.chosen.guarantee
        return "certified" if exact.are_close(limits) else "bounds"

    def digest_parts(self) -> tuple[Any, ...]:
        """Return the problem and method: no seed, no alternative, no names."""
        return "exact p", VERSION, self.chosen.method, *_list_contents(self.problem)


SHIFTS, ONE = np.arange(BITS, dtype=np.uint64), np.uint64(1)


def _list_contents(problem: Problem) -> tuple[Any, ...]:
    """Return the values that define a problem."""
    if isinstance(problem, SumProblem):
        return "sums", problem.differences, problem.slack
    if isinstance(problem, QuotientProblem):
        sums = (problem.above, problem.below, problem.totals_above, problem.totals_below)
        return "quotients", *sums, problem.zero_division
    assert isinstance(problem, EnumeratedScore)
    return "scored", problem.differences, problem.totals, problem.score.__self__  # type: ignore[attr-defined]
