"""Exact numbers of label permutations, by the number of items on which they agree with another labelling.

A permutation keeps how often each labelling gives each label, and changes on how many items of a label they agree. For
one label this number is hypergeometric, as in Fisher's exact test. For several labels it is the matching problem of
card decks, which rook polynomials solve: a label that one labelling gives a times and the other b times has r(y) = sum
over k of C(a, k) C(b, k) k! y**k, and the permutations with d agreements are the coefficients at x**d of sum over k of
[y**k] r(y) (n - k)! (x - 1)**k.

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

from sigdask.counts.fields import Floats
from sigdask.statistics.bounds import hypergeometric_pmf

Numbers = NDArray[np.object_]
"""Integers of any size."""

MAX_STEPS = 3e10
"""Approximate maximum of added bits: about two seconds and 200 MB."""

SINGLE_LABEL_COST = 20
"""Cost of a bit of a number that is computed from the previous one by multiplication and division."""

OVERHEAD = 500
"""Fixed cost of a number, in bits."""


@dataclass(frozen=True, slots=True)
class LabelMargins:
    """Number of items with each label, in two labellings of the same items.

    Attributes
    ----------
    n_items : int
        Items.
    given, meant : tuple of int
        Items with each label, in the permuted labelling and in the other.
    """

    n_items: int
    given: tuple[int, ...]
    meant: tuple[int, ...]

    def count_max_agreements(self, part: Sequence[int]) -> int:
        """Return the largest possible number of items to which both labellings give the same one of some labels."""
        return sum(min(self.given[label], self.meant[label]) for label in part)

    def can_vary(self, label: int) -> bool:
        """Return whether permuting labels can change the number of items to which both labellings give this label."""
        a, b = self.given[label], self.meant[label]
        return min(a, b) > max(a + b - self.n_items, 0)


def count_arrangements(strata: Sequence[LabelMargins], parts: Sequence[Sequence[int]]) -> Numbers:
    """Return, up to a common factor, how many arrangements have each number of agreements.

    There is one axis for each part of the labels.

    Parameters
    ----------
    strata : sequence of LabelMargins
        Strata, within which items are permuted.
    parts : sequence of sequence of int
        Labels whose agreements are counted together. No label is in two parts, and labels in none are not counted.

    Returns
    -------
    array of int, shape (most agreements in the first part + 1, ...)
        Multiples of the numbers of arrangements, by one factor.

    Examples
    --------
    Four items of four labels, with 0 to 4 right (the problème des rencontres):

    >>> count_arrangements([LabelMargins(4, (1, 1, 1, 1), (1, 1, 1, 1))], [(0, 1, 2, 3)]).tolist()
    [9, 8, 6, 0, 1]
    """
    counts: Numbers = np.array(1, object).reshape((1,) * len(parts))
    for stratum in strata:
        counts = _convolve(counts, _count_stratum(stratum, parts))
    return counts


def estimate_steps(strata: Sequence[LabelMargins], parts: Sequence[Sequence[int]]) -> float:
    """Return the approximate cost of counting all arrangements, in bits that are added."""
    sizes = [stratum.n_items * (1.0 if _is_single(parts) else math.log2(stratum.n_items + 1)) for stratum in strata]
    n_cells = math.prod(1 + sum(stratum.count_max_agreements(part) for stratum in strata) for part in parts)
    total, cells = 0.0, 1.0
    for stratum, size in zip(strata, sizes, strict=True):
        max_agreements = [stratum.count_max_agreements(part) for part in parts]
        stratum_cells = math.prod(m + 1 for m in max_agreements)
        stratum_steps = (
            stratum_cells * SINGLE_LABEL_COST
            if _is_single(parts)
            else stratum_cells * sum(max_agreements) + sum(m * m for m in max_agreements)
        )
        joining = cells * stratum_cells * (sum(sizes) + OVERHEAD) if cells > 1 else 0.0
        total += stratum_steps * (size + OVERHEAD) + joining
        cells = min(cells * stratum_cells, n_cells)
    return total


def compute_shares(margins: LabelMargins, label: int) -> Floats:
    """Return, for each number of agreements in one label, the share of arrangements that have it.

    The number of items can be large.

    Examples
    --------
    >>> compute_shares(LabelMargins(4, (2, 2), (2, 2)), 0).round(6).tolist()
    [0.166667, 0.666667, 0.166667]
    """
    return hypergeometric_pmf(margins.n_items, margins.given[label], margins.meant[label])


def _is_single(parts: Sequence[Sequence[int]]) -> bool:
    return len(parts) == 1 and len(parts[0]) == 1


def _count_stratum(margins: LabelMargins, parts: Sequence[Sequence[int]]) -> Numbers:
    if _is_single(parts):
        return _count_hypergeometric(margins.n_items, margins.given[parts[0][0]], margins.meant[parts[0][0]])
    rooks = [
        _compute_rook_polynomial([(margins.given[label], margins.meant[label]) for label in part]) for part in parts
    ]
    factorials = [1]
    for k in range(1, margins.n_items + 1):
        factorials.append(factorials[-1] * k)
    remaining = np.array(factorials[::-1], object)  # (n - k)! at k
    placed = sum(np.ix_(*(np.arange(len(own)) for own in rooks)), start=np.zeros((1,) * len(parts), np.int64))
    coefficients: Numbers = remaining[placed]
    for axis, polynomial in enumerate(rooks):
        shape = [-1 if index == axis else 1 for index in range(len(parts))]
        coefficients = _shift_variable(coefficients * polynomial.reshape(shape), axis)
    return coefficients


def _count_hypergeometric(n: int, given: int, meant: int) -> Numbers:
    """Return, for each d, the number C(meant, d) C(n - meant, given - d) of arrangements with d agreements."""
    highest, lowest = min(given, meant), max(given + meant - n, 0)
    counts = np.zeros(highest + 1, object)
    number = math.comb(meant, lowest) * math.comb(n - meant, given - lowest)
    counts[lowest] = number
    for d in range(lowest, highest):
        number = number * (meant - d) * (given - d) // ((d + 1) * (n - meant - given + d + 1))
        counts[d + 1] = number
    return counts


def _compute_rook_polynomial(boards: Sequence[tuple[int, int]]) -> Numbers:
    """Return, for k = 0, 1, ..., in how many ways k non-attacking rooks can stand on separate boards."""
    polynomials = [_compute_board_polynomial(a, b) for a, b in boards if a and b] or [np.array([1], object)]
    while len(polynomials) > 1:  # short ones first, by halves
        polynomials.sort(key=len)
        pairs = [_convolve(p, q) for p, q in zip(polynomials[::2], polynomials[1::2], strict=False)]
        polynomials = pairs + polynomials[2 * len(pairs) :]
    return polynomials[0]


def _compute_board_polynomial(a: int, b: int) -> Numbers:
    ways = [1]
    for k in range(min(a, b)):
        ways.append(ways[-1] * (a - k) * (b - k) // (k + 1))
    return np.array(ways, object)


def _shift_variable(c: Numbers, axis: int) -> Numbers:
    """Return the coefficients of x in the polynomial sum of c[k] (x - 1)**k, by Horner's scheme along an axis."""
    rows = np.moveaxis(c, axis, 0)[::-1].copy()  # the highest power first
    m = len(rows) - 1
    signs = np.array([(-1) ** (m - k) for k in range(m + 1)], object).reshape(-1, *(1,) * (c.ndim - 1))
    rows *= signs
    for length in range(m + 1, 1, -1):
        np.add.accumulate(rows[:length], axis=0, out=rows[:length])
    coefficients: Numbers = np.moveaxis((rows * signs)[::-1], 0, axis)
    return coefficients


def _convolve(p: Numbers, q: Numbers) -> Numbers:
    if p.size == 1:
        scaled: Numbers = q * p.reshape(-1)[0]
        return scaled
    product: Numbers = np.zeros([a + b - 1 for a, b in zip(p.shape, q.shape, strict=True)], object)
    for index in np.ndindex(q.shape):
        if q[index]:
            product[tuple(slice(start, start + n) for start, n in zip(index, p.shape, strict=True))] += q[index] * p
    return product
