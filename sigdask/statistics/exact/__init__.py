"""Exact p-values of swapping, wherever the null distribution can be computed: no trial is sampled.

`plan` chooses a method for a problem without computing anything, `solve` carries it out. Where
`ChosenMethod.n_parts` is more than 1, the count may be made in parts (`count_parts`), in any order and
anywhere. The parts add up to what `of_parts` takes.
"""

from sigdask.statistics.exact.planning import MethodLimits, plan, ways
from sigdask.statistics.exact.problems import EnumeratedScore, Problem, QuotientProblem, SumProblem
from sigdask.statistics.exact.result import TAILS, ChosenMethod, ExactTails, NoMethod, PValueLimits, TooLargeError
from sigdask.statistics.exact.solving import approximate, count_parts, of_parts, solve

__all__ = [
    "TAILS",
    "ChosenMethod",
    "EnumeratedScore",
    "ExactTails",
    "MethodLimits",
    "NoMethod",
    "PValueLimits",
    "Problem",
    "QuotientProblem",
    "SumProblem",
    "TooLargeError",
    "approximate",
    "count_parts",
    "of_parts",
    "plan",
    "solve",
    "ways",
]
