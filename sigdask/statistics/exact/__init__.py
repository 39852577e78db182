"""Exact p-values of swapping, wherever the null distribution can be computed: no trial is sampled.

`plan` chooses a method for a problem without computing anything, `solve` carries it out.
"""

from sigdask.statistics.exact.found import TAILS, Chosen, Exact, Interval, Refused, TooLargeError
from sigdask.statistics.exact.planning import Limits, plan
from sigdask.statistics.exact.problems import Problem, Quotients, Scored, Sums
from sigdask.statistics.exact.solving import solve

__all__ = [
    "TAILS",
    "Chosen",
    "Exact",
    "Interval",
    "Limits",
    "Problem",
    "Quotients",
    "Refused",
    "Scored",
    "Sums",
    "TooLargeError",
    "plan",
    "solve",
]
