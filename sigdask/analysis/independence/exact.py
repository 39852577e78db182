"""Exact p-values of scores of two labellings, from the numbers of arrangements with given agreements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.panels.permuted import AgreementScore
from sigdask.randomization.tallies import TAILS
from sigdask.statistics.matchings import (
    MOST_STEPS,
    LabelMargins,
    Numbers,
    compute_shares,
    count_arrangements,
    estimate_steps,
)

LabelGroups = tuple[tuple[int, ...], ...]
"""Labels whose agreements are counted together."""

MOST_TERMS = 50_000_000
"""Terms of a hypergeometric distribution in floating-point numbers."""

MAX_JSON_INTEGER = 2**53
"""Of numbers that all readers of JSON take as they are."""


@dataclass(frozen=True, slots=True)
class ExactP:
    """An exact p-value, with the method that computed it.

    Attributes
    ----------
    p : Fraction
        What it is.
    method : {"hypergeometric", "rook-polynomials", "constant"}
        How it was had.
    guarantee : {"exact", "numeric"}
        In whole numbers, or to rounding.
    n_arrangements : int or None
        How many orders of the items there are, where a float holds them.
    """

    p: Fraction
    method: str
    guarantee: str
    n_arrangements: int | None

    @property
    def n_extreme(self) -> int | None:
        """Number of arrangements at least as extreme as the observed one; None if it exceeds 2**53."""
        return None if self.n_arrangements is None else int(self.p * self.n_arrangements)


def compute_exact_p(
    agreeing: AgreementScore, strata: Sequence[LabelMargins], alternative: str, cache: dict[LabelGroups, Numbers]
) -> ExactP | None:
    """Return p over all arrangements, or None if these are too many to count.

    `cache` keeps counted arrangements of the two labellings for the next score.
    """
    groups = tuple(tuple(labels.tolist()) for labels in agreeing.parts)
    tail = TAILS.index(alternative)
    is_single = len(groups) == 1 and len(groups[0]) == 1
    method = "hypergeometric" if is_single and len(strata) == 1 else "rook-polynomials"
    if not groups:
        return ExactP(Fraction(1), "constant", "exact", _count_arrangements(strata))
    score = agreeing.select_labels([labels[0] for labels in groups])
    if estimate_steps(strata, groups) <= MOST_STEPS:
        if groups not in cache:
            cache[groups] = count_arrangements(strata, groups)
        numbers = cache[groups]
        agreements = np.argwhere(numbers != 0)  # (n_cells, n_parts)
        extreme = score.is_extreme(score.compute_values(agreements))[tail]
        n_ways = numbers[tuple(agreements.T)]
        p = Fraction(int(n_ways[extreme].sum()), int(n_ways.sum()))
        return ExactP(p, method, "exact", _count_arrangements(strata))
    if method == "hypergeometric" and strata[0].count_max_agreements(groups[0]) <= MOST_TERMS:
        share = compute_shares(strata[0], groups[0][0])
        extreme = score.is_extreme(score.compute_values(np.arange(len(share))[:, None]))[tail]
        return ExactP(Fraction(_sum_shares(share[extreme])), method, "numeric", None)
    return None


def _sum_shares(shares: NDArray[np.float64]) -> float:
    return min(math.fsum(shares), 1.0)


def _count_arrangements(strata: Sequence[LabelMargins]) -> int | None:
    n = 1
    for stratum in strata:
        for k in range(2, stratum.n_items + 1):
            n *= k
            if n > MAX_JSON_INTEGER:
                return None
    return n
