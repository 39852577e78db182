"""Exact p-values of swapping, where the null distribution can be computed without sampling.

`choose_method` chooses a method for a problem without computing anything, `solve` carries it out.
"""

from sigdask.statistics.exact.problems import (
    CLOSE_SHARE,
    TAILS,
    ChosenMethod,
    EnumeratedScore,
    ExactTails,
    NoMethod,
    Problem,
    PValueLimits,
    QuotientProblem,
    SumProblem,
    TooLargeError,
    are_close,
)
from sigdask.statistics.exact.solving import MethodLimits, choose_method, iter_methods, solve

__all__ = ["CLOSE_SHARE", "TAILS", "ChosenMethod", "EnumeratedScore", "ExactTails", "MethodLimits", "NoMethod",
           "PValueLimits", "Problem", "QuotientProblem", "SumProblem", "TooLargeError", "are_close",
           "choose_method", "iter_methods", "solve"]  # fmt: skip
