"""Compare differences after swaps with the observed one, by floats and, where these are unclear, by fractions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import TIE
from sigdask.statistics.exact.classes import Integers
from sigdask.statistics.exact.problems import EnumeratedScore, QuotientProblem


@dataclass(frozen=True, eq=False)
class TieRule:
    """Comparison with the observed difference: by floats, and by fractions where these are unclear.

    Attributes
    ----------
    problem : QuotientProblem or EnumeratedScore
    observed : float
        The observed difference.
    true : Fraction or None
        The same without rounding, where the score is made of quotients.
    slack : float
        How far the observed difference may lie off that of the true sums.
    sizes : float
        Sizes of the observed scores together, where floats only say what need not be decided in fractions.
    """

    problem: QuotientProblem | EnumeratedScore
    observed: float
    true: Fraction | None
    slack: float = 0.0
    sizes: float = 0.0

    @staticmethod
    def from_problem(problem: QuotientProblem | EnumeratedScore) -> TieRule:
        """Return the rule for a problem, with the observed difference and a bound on its error."""
        totals = problem.totals
        a, b = np.asarray(problem.score(totals), np.float64)
        slack = 0.0
        if isinstance(problem, EnumeratedScore):
            if problem.movement is not None:
                slack = float(np.sum(problem.movement(totals)))
            return TieRule(problem, float(a - b), None, slack)
        return TieRule(problem, float(a - b), problem.true_difference, sizes=float(abs(a) + abs(b)))

    @property
    def is_negative(self) -> bool:
        """Whether the observed difference is negative."""
        return self.true < 0 if self.true is not None else self.observed < 0

    @property
    def is_zero(self) -> bool:
        """Whether the observed difference may be 0."""
        if self.true is not None:
            return self.true == 0
        scores = self.problem.score(self.problem.totals)
        return bool(abs(self.observed) <= TIE * float(np.abs(scores).sum()) + self.slack)

    def __call__(self, shifts: Integers) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which shifts of sums from a to b, shape (n, n_fields), reach |t|, exceed it, and tie for certain."""
        a, b = self.problem.totals[0] - shifts, self.problem.totals[1] + shifts
        score_a, score_b = self.problem.score(a), self.problem.score(b)
        sign = -1.0 if self.is_negative else 1.0
        difference, size = sign * (score_a - score_b), abs(self.observed)
        tie = TIE * (np.abs(score_a) + np.abs(score_b) + self.sizes)
        if isinstance(self.problem, EnumeratedScore) and self.problem.movement is not None:
            tie = tie + self.problem.movement(a) + self.problem.movement(b) + self.slack
        reached, passed = difference >= size - tie, difference > size + tie
        if self.true is None:
            return reached, passed, np.asarray(~shifts.any(axis=1))
        for k in np.flatnonzero(reached & ~passed):
            assert isinstance(self.problem, QuotientProblem)
            exact = self.problem.true_score(a[k]) - self.problem.true_score(b[k])
            exact = -exact if self.is_negative else exact
            reached[k], passed[k] = exact >= abs(self.true), exact > abs(self.true)
        return reached, passed, reached & ~passed

    def compute_slopes(self) -> NDArray[np.float64]:
        """Return the derivatives of one quotient by numerator and denominator at the systems' mean."""
        assert isinstance(self.problem, QuotientProblem)
        n, d = self.problem.totals.sum(axis=0).astype(np.float64)
        return np.array([1 / d, -n / d**2]) if d else np.zeros(2)
