"""Size at every level: each arrangement in turn is the observed one, and p <= k / 2**n in no more than k of them."""

from itertools import product

import numpy as np
import pytest

from sigdask.statistics.exact import TAILS, EnumeratedScore, QuotientProblem, SumProblem, solve
from sigdask.statistics.exact.planning import iter_methods

RNG = np.random.default_rng(11)
UNITS = 8


def sums():
    return [SumProblem(d) for d in exchanged(np.array([3, 1, 1, 4, 6, 2, 2, 9]))]


def real_sums():
    d = np.rint(np.array([1 / 3, 1 / 2, 1 / 6, 1 / 4, 1 / 5, 1 / 7, 1 / 3, 1.0]) * 2**40).astype(np.int64)
    return [SumProblem(own, slack=8 * UNITS) for own in exchanged(d)]


def alike():
    return [SumProblem(d) for d in exchanged(np.full(UNITS, 7))]


def exchanged(d):
    return [d * np.array(signs) for signs in product((1, -1), repeat=len(d))]


def swapped(a, b):
    for mask in product((False, True), repeat=len(a)):
        which = np.array(mask)[:, None]
        yield np.where(which, b, a), np.where(which, a, b)


def quotients(kinds=None):
    own = RNG.integers(0, 3, (2, UNITS, 2)) if kinds is None else kinds
    sides = [np.column_stack([s[:, 0], s.sum(axis=1), np.full(UNITS, 2)]) for s in own]
    for a, b in swapped(*sides):
        yield QuotientProblem.from_counts(a, b, np.array([a.sum(axis=0), b.sum(axis=0)]) + 1, [[2, 0, 0]], [[0, 1, 1]])


def responses():
    one = np.array([[1, 0], [0, 1], [0, 0], [1, 0], [0, 1], [1, 0], [0, 0], [0, 0]])
    other = np.array([[0, 0], [0, 0], [1, 0], [0, 0], [0, 0], [0, 0], [0, 1], [0, 1]])
    return quotients(np.array([one, other]))


def macro():
    a, b = RNG.integers(0, 2, (2, UNITS, 4))
    for x, y in swapped(a, b):
        totals = np.array([x.sum(axis=0), y.sum(axis=0)]) + np.array([1, 1, 4, 5])
        yield QuotientProblem.from_counts(x, y, totals, [[1, 0, 0, 0], [0, 1, 0, 0]], [[0, 0, 1, 0], [0, 0, 0, 1]])


def scored():
    a, b = RNG.integers(0, 3, (2, UNITS, 2))
    for x, y in swapped(a, b):
        totals = np.array([x.sum(axis=0), y.sum(axis=0)]) + 1
        yield EnumeratedScore(x - y, totals, lambda sums: np.sqrt(sums[..., 0] * sums[..., 1]))


SHORT, LONG = [sums, real_sums, alike, responses], [quotients, macro, scored]


@pytest.mark.parametrize("problems", SHORT + [pytest.param(p, marks=pytest.mark.slow) for p in LONG])
def test_no_method_rejects_more_often_than_its_level(problems):
    p = {}
    for problem in problems():
        for way in iter_methods(problem):
            if way.n_bytes > 10**8:
                continue
            found = solve(problem, way)
            for name in TAILS:
                p.setdefault((way.method, name), []).append(found.get_limits(name).p_hi)
    assert p
    levels = np.arange(1, 2**UNITS + 1) / 2**UNITS
    for key, values in p.items():
        ordered = np.sort(values)
        assert len(ordered) == 2**UNITS, key
        rejected = np.searchsorted(ordered, levels * (1 + 1e-9), side="right")
        assert (rejected <= np.arange(1, 2**UNITS + 1)).all(), key
