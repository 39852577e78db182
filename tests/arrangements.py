"""All arrangements in fractions: what every exact method is held against."""

from fractions import Fraction
from itertools import product

import numpy as np

from sigdask.statistics.exact import TAILS


def tails_of(differences, observed):
    """The three shares of differences at least as extreme as the observed one."""
    n = len(differences)
    counts = (
        sum(t >= observed for t in differences),
        sum(t <= observed for t in differences),
        sum(abs(t) >= abs(observed) for t in differences),
    )
    return dict(zip(TAILS, (Fraction(c, n) for c in counts), strict=True))


def of_sums(differences):
    """Of sums of signed numbers, ints or fractions."""
    own = [d for d in differences if d]
    sums = [0]
    for d in own:
        sums = [s + sign * d for s in sums for sign in (1, -1)]
    return tails_of(sums, sum(own))


def of_scores(vectors, totals, score):
    """Of any score of sums: vectors move from a to b where a unit is exchanged."""
    a, b = np.asarray(totals)
    differences = []
    for swapped in product((0, 1), repeat=len(vectors)):
        moved = np.array(swapped, np.int64) @ vectors if len(vectors) else 0 * a
        differences.append(score(a - moved) - score(b + moved))
    return tails_of(differences, score(a) - score(b))


def quotient(sums, zero_division):
    """The sum of quotients n / d of sums (n_1 ..., d_1 ...)."""
    half = len(sums) // 2
    rows = zip(sums[:half].tolist(), sums[half:].tolist(), strict=True)
    return sum((Fraction(n, d) if d else Fraction(zero_division) for n, d in rows), Fraction())
