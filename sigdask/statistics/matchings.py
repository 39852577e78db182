"""How many permutations of one labelling agree with another in how many items of each label, in whole numbers.

Both labellings keep how often they give each label, whatever stands where; what a permutation changes is in how
many items of a label they agree. With one label of interest that number is hypergeometric, as in Fisher's exact test;
with several it is the matching problem of card decks, which rook polynomials solve: the label given a times and
meant b times has r(y) = sum over k of C(a, k) C(b, k) k! y**k, and the permutations with d agreements are the
coefficients at x**d of sum over k of [y**k] r(y) (n - k)! (x - 1)**k.

References
----------
Riordan 1958, "An introduction to combinatorial analysis", chapters 7 and 8; Kaplansky 1939, "On a generalization of the
problème des rencontres"; Fisher 1935, "The logic of inductive inference".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.object_]
"""Whole numbers of any size."""

MOST_STEPS = 3e10
"""Of bits that are added, about: some two seconds, and 200 MB."""

OF_ONE_LABEL = 20
"""What a bit of a number costs that is had from the one before it, which is kept, by multiplying and dividing."""

OVERHEAD = 500
"""What the least number costs, in bits."""


@dataclass(frozen=True, slots=True)
class LabelMargins:
    """How often two labellings of the same items give each label.

    Attributes
    ----------
    n_items : int
        Items.
    given, meant : tuple of int
        Items of each label, by the labelling that is permuted and by the other.
    """

    n_items: int
    given: tuple[int, ...]
    meant: tuple[int, ...]

    def most(self, part: Sequence[int]) -> int:
        """Return in how many items of some labels they can agree."""
        return sum(min(self.given[label], self.meant[label]) for label in part)

    def may_vary(self, label: int) -> bool:
        """Say whether arrangements differ in how many items of a label agree."""
        a, b = self.given[label], self.meant[label]
        return min(a, b) > max(a + b - self.n_items, 0)


def arrangements(strata: Sequence[LabelMargins], parts: Sequence[Sequence[int]]) -> Numbers:
    """Count arrangements by the agreements in each part of the labels.

    Parameters
    ----------
    strata : sequence of LabelMargins
        Items are permuted within each.
    parts : sequence of sequence of int
        Labels whose agreements are counted together; no label is in two, those in none count for nothing.

    Returns
    -------
    array of int, shape (most agreements in the first part + 1, ...)
        Multiples of the numbers of arrangements, by one factor.

    Examples
    --------
    Four items of four labels, with 0 to 4 right (the problème des rencontres):

    >>> arrangements([LabelMargins(4, (1, 1, 1, 1), (1, 1, 1, 1))], [(0, 1, 2, 3)]).tolist()
    [9, 8, 6, 0, 1]
    """
    found: Numbers = np.array(1, object).reshape((1,) * len(parts))
    for own in strata:
        found = _convolved(found, _of_stratum(own, parts))
    return found


def steps(strata: Sequence[LabelMargins], parts: Sequence[Sequence[int]]) -> float:
    """Return about how many bits are added to count all arrangements."""
    sizes = [own.n_items * (1.0 if _is_single(parts) else math.log2(own.n_items + 1)) for own in strata]
    whole = math.prod(1 + sum(own.most(part) for own in strata) for part in parts)
    found, cells = 0.0, 1.0
    for own, size in zip(strata, sizes, strict=True):
        most = [own.most(part) for part in parts]
        here = math.prod(m + 1 for m in most)
        within = here * OF_ONE_LABEL if _is_single(parts) else here * sum(most) + sum(m * m for m in most)
        joining = cells * here * (sum(sizes) + OVERHEAD) if cells > 1 else 0.0
        found += within * (size + OVERHEAD) + joining
        cells = min(cells * here, whole)
    return found


def shares(own: LabelMargins, label: int) -> NDArray[np.float64]:
    """Return the shares of arrangements by the agreements in one label, of any number of items.

    Each to a relative error of some 1e-16 for each term between it and the most frequent one.

    Examples
    --------
    >>> shares(LabelMargins(4, (2, 2), (2, 2)), 0).round(6).tolist()
    [0.166667, 0.666667, 0.166667]
    """
    n, a, b = own.n_items, own.given[label], own.meant[label]
    least, most = max(a + b - n, 0), min(a, b)
    d = np.arange(least, most, dtype=np.float64)
    ratios = (b - d) * (a - d) / ((d + 1) * (n - a - b + d + 1))  # of each to the one before it, ever smaller
    mode = int(np.count_nonzero(ratios > 1))
    rising, falling = np.cumprod(1 / ratios[:mode][::-1])[::-1], np.cumprod(ratios[mode:])
    found = np.concatenate([np.zeros(least), rising, [1.0], falling])
    return np.asarray(found / found.sum())


def _is_single(parts: Sequence[Sequence[int]]) -> bool:
    return len(parts) == 1 and len(parts[0]) == 1


def _of_stratum(own: LabelMargins, parts: Sequence[Sequence[int]]) -> Numbers:
    if _is_single(parts):
        return _hypergeometric(own.n_items, own.given[parts[0][0]], own.meant[parts[0][0]])
    rooks = [_rooks([(own.given[label], own.meant[label]) for label in part]) for part in parts]
    factorials = [1]
    for k in range(1, own.n_items + 1):
        factorials.append(factorials[-1] * k)
    left = np.array(factorials[::-1], object)  # (n - k)! at k
    placed = sum(np.ix_(*(np.arange(len(own)) for own in rooks)), start=np.zeros((1,) * len(parts), np.int64))
    found: Numbers = left[placed]
    for axis, polynomial in enumerate(rooks):
        shape = [-1 if at == axis else 1 for at in range(len(parts))]
        found = _shifted(found * polynomial.reshape(shape), axis)
    return found


def _hypergeometric(n: int, given: int, meant: int) -> Numbers:
    """Return C(meant, d) C(n - meant, given - d) for each d, which has C(n, given) in all."""
    most, least = min(given, meant), max(given + meant - n, 0)
    found = np.zeros(most + 1, object)
    number = math.comb(meant, least) * math.comb(n - meant, given - least)
    found[least] = number
    for d in range(least, most):
        number = number * (meant - d) * (given - d) // ((d + 1) * (n - meant - given + d + 1))
        found[d + 1] = number
    return found


def _rooks(boards: Sequence[tuple[int, int]]) -> Numbers:
    """Return the ways to place k rooks that do not take each other on boards of given by meant, k = 0, 1, ..."""
    polynomials = [_rook(a, b) for a, b in boards if a and b] or [np.array([1], object)]
    while len(polynomials) > 1:  # short ones first, by halves
        polynomials.sort(key=len)
        pairs = [_product(p, q) for p, q in zip(polynomials[::2], polynomials[1::2], strict=False)]
        polynomials = pairs + polynomials[2 * len(pairs) :]
    return polynomials[0]


def _rook(a: int, b: int) -> Numbers:
    ways = [1]
    for k in range(min(a, b)):
        ways.append(ways[-1] * (a - k) * (b - k) // (k + 1))
    return np.array(ways, object)


def _product(p: Numbers, q: Numbers) -> Numbers:
    found = np.zeros(len(p) + len(q) - 1, object)
    for k, number in enumerate(p):
        found[k : k + len(q)] += number * q
    return found


def _shifted(c: Numbers, axis: int) -> Numbers:
    """Return the coefficients in x of sum over k of c[k] (x - 1)**k, by Horner's scheme along an axis."""
    rows = np.moveaxis(c, axis, 0)[::-1].copy()  # the highest power first
    m = len(rows) - 1
    signs = np.array([(-1) ** (m - k) for k in range(m + 1)], object).reshape(-1, *(1,) * (c.ndim - 1))
    rows *= signs
    for length in range(m + 1, 1, -1):
        np.add.accumulate(rows[:length], axis=0, out=rows[:length])
    found: Numbers = np.moveaxis((rows * signs)[::-1], 0, axis)
    return found


def _convolved(p: Numbers, q: Numbers) -> Numbers:
    if p.size == 1:
        one: Numbers = q * p.reshape(-1)[0]
        return one
    found: Numbers = np.zeros([a + b - 1 for a, b in zip(p.shape, q.shape, strict=True)], object)
    for at in np.ndindex(q.shape):
        if q[at]:
            found[tuple(slice(start, start + n) for start, n in zip(at, p.shape, strict=True))] += q[at] * p
    return found
