"""Exact p-values of swapping, wherever the null distribution can be computed: no trial is sampled.

`plan` chooses a method for a problem without computing anything, `solve` carries it out. Where `Chosen.n_parts` is more
than 1, the count may as well be made in parts (`count_parts`), in any order and anywhere, which add up to what
`of_parts` takes.
"""

from sigdask.statistics.exact.planning import Limits, plan, ways
from sigdask.statistics.exact.problems import Problem, Quotients, Scored, Sums
from sigdask.statistics.exact.result import TAILS, Chosen, Exact, Interval, Refused, TooLargeError
from sigdask.statistics.exact.solving import approximate, count_parts, of_parts, solve

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
    "approximate",
    "count_parts",
    "of_parts",
    "plan",
    "solve",
    "ways",
]
