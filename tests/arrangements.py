"""Enumerate all arrangements in fractions: the reference for every exact method."""

from fractions import Fraction
from itertools import product

import numpy as np

from sigdask.statistics.exact import TAILS


def compute_tails(differences, observed):
    """Return the shares of differences at least as extreme as the observed one, by tail."""
    n = len(differences)
    counts = (
        sum(t >= observed for t in differences),
        sum(t <= observed for t in differences),
        sum(abs(t) >= abs(observed) for t in differences),
    )
    return dict(zip(TAILS, (Fraction(c, n) for c in counts), strict=True))


def enumerate_sums(differences):
    """Return the exact p-values of a sum of signed numbers, ints or fractions."""
    nonzero = [d for d in differences if d]
    sums = [0]
    for d in nonzero:
        sums = [s + sign * d for s in sums for sign in (1, -1)]
    return compute_tails(sums, sum(nonzero))


def enumerate_scores(vectors, totals, score):
    """Return the exact p-values of any score of sums; swapping a unit moves its vector from a to b."""
    a, b = np.asarray(totals)
    differences = []
    for swapped in product((0, 1), repeat=len(vectors)):
        moved = np.array(swapped, np.int64) @ vectors if len(vectors) else 0 * a
        differences.append(score(a - moved) - score(b + moved))
    return compute_tails(differences, score(a) - score(b))


def sum_quotients(sums, zero_division):
    """Sum the quotients n / d of sums (n_1 ..., d_1 ...)."""
    half = len(sums) // 2
    rows = zip(sums[:half].tolist(), sums[half:].tolist(), strict=True)
    return sum((Fraction(n, d) if d else Fraction(zero_division) for n, d in rows), Fraction())
