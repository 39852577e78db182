"""Tests of size at every level: of all arrangements as observed data, at most k have p <= k / 2**n."""

from itertools import product

import numpy as np
import pytest

from sigdask.statistics.exact import TAILS, EnumeratedScore, QuotientProblem, SumProblem, solve
from sigdask.statistics.exact.solving import iter_methods

RNG = np.random.default_rng(11)
N_UNITS = 8


def build_sums():
    return [SumProblem(d) for d in list_sign_flips(np.array([3, 1, 1, 4, 6, 2, 2, 9]))]


def build_real_sums():
    d = np.rint(np.array([1 / 3, 1 / 2, 1 / 6, 1 / 4, 1 / 5, 1 / 7, 1 / 3, 1.0]) * 2**40).astype(np.int64)
    return [SumProblem(flipped, slack=8 * N_UNITS) for flipped in list_sign_flips(d)]


def build_equal_sums():
    return [SumProblem(d) for d in list_sign_flips(np.full(N_UNITS, 7))]


def list_sign_flips(d):
    return [d * np.array(signs) for signs in product((1, -1), repeat=len(d))]


def iter_swaps(a, b):
    for mask in product((False, True), repeat=len(a)):
        is_swapped = np.array(mask)[:, None]
        yield np.where(is_swapped, b, a), np.where(is_swapped, a, b)


def iter_quotients(kinds=None):
    kinds_of_sides = RNG.integers(0, 3, (2, N_UNITS, 2)) if kinds is None else kinds
    sides = [np.column_stack([s[:, 0], s.sum(axis=1), np.full(N_UNITS, 2)]) for s in kinds_of_sides]
    for a, b in iter_swaps(*sides):
        yield QuotientProblem.from_counts(a, b, np.array([a.sum(axis=0), b.sum(axis=0)]) + 1, [[2, 0, 0]], [[0, 1, 1]])


def iter_responses():
    kinds_a = np.array([[1, 0], [0, 1], [0, 0], [1, 0], [0, 1], [1, 0], [0, 0], [0, 0]])
    kinds_b = np.array([[0, 0], [0, 0], [1, 0], [0, 0], [0, 0], [0, 0], [0, 1], [0, 1]])
    return iter_quotients(np.array([kinds_a, kinds_b]))


def iter_macro():
    a, b = RNG.integers(0, 2, (2, N_UNITS, 4))
    for x, y in iter_swaps(a, b):
        totals = np.array([x.sum(axis=0), y.sum(axis=0)]) + np.array([1, 1, 4, 5])
        yield QuotientProblem.from_counts(x, y, totals, [[1, 0, 0, 0], [0, 1, 0, 0]], [[0, 0, 1, 0], [0, 0, 0, 1]])


def iter_scores():
    a, b = RNG.integers(0, 3, (2, N_UNITS, 2))
    for x, y in iter_swaps(a, b):
        totals = np.array([x.sum(axis=0), y.sum(axis=0)]) + 1
        yield EnumeratedScore(x - y, totals, lambda sums: np.sqrt(sums[..., 0] * sums[..., 1]))


SHORT, LONG = [build_sums, build_real_sums, build_equal_sums, iter_responses], [iter_quotients, iter_macro, iter_scores]


@pytest.mark.parametrize("problems", SHORT + [pytest.param(p, marks=pytest.mark.slow) for p in LONG])
def test_no_method_rejects_more_often_than_its_level(problems):
    p = {}
    for problem in problems():
        for method in iter_methods(problem):
            if method.n_bytes > 10**8:
                continue
            result = solve(problem, method)
            for name in TAILS:
                p.setdefault((method.method, name), []).append(result.get_limits(name).p_hi)
    assert p
    levels = np.arange(1, 2**N_UNITS + 1) / 2**N_UNITS
    for key, values in p.items():
        ordered = np.sort(values)
        assert len(ordered) == 2**N_UNITS, key
        rejected = np.searchsorted(ordered, levels * (1 + 1e-9), side="right")
        assert (rejected <= np.arange(1, 2**N_UNITS + 1)).all(), key
