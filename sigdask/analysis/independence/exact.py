"""The exact p of a score of two labellings: over all arrangements, by their agreements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.panels.permuted import AgreementScore
from sigdask.randomization.tallies import TAILS
from sigdask.statistics.matchings import MOST_STEPS, LabelMargins, Numbers, arrangements, shares, steps

Parts = tuple[tuple[int, ...], ...]
"""Labels whose agreements are counted together."""

MOST_TERMS = 50_000_000
"""Terms of a hypergeometric distribution in floating-point numbers."""

LARGEST = 2**53
"""Of numbers that all readers of JSON take as they are."""


@dataclass(frozen=True, slots=True)
class ExactP:
    """An exact p.

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
        """How many of them are at least as extreme as the observed one."""
        return None if self.n_arrangements is None else int(self.p * self.n_arrangements)


def exact_p(
    agreeing: AgreementScore, strata: Sequence[LabelMargins], alternative: str, counted: dict[Parts, Numbers]
) -> ExactP | None:
    """Return p over all arrangements; None where they are too many.

    Those that are `counted` for one score of two labellings are there for the next.
    """
    parts = tuple(tuple(labels.tolist()) for labels in agreeing.parts)
    tail = TAILS.index(alternative)
    one = len(parts) == 1 and len(parts[0]) == 1
    method = "hypergeometric" if one and len(strata) == 1 else "rook-polynomials"
    if not parts:
        return ExactP(Fraction(1), "constant", "exact", _n_arrangements(strata))
    of_parts = agreeing.of_parts([labels[0] for labels in parts])
    if steps(strata, parts) <= MOST_STEPS:
        if parts not in counted:
            counted[parts] = arrangements(strata, parts)
        numbers = counted[parts]
        at = np.argwhere(numbers != 0)  # (n_cells, n_parts)
        extreme = of_parts.extreme(of_parts.values(at))[tail]
        there = numbers[tuple(at.T)]
        p = Fraction(int(there[extreme].sum()), int(there.sum()))
        return ExactP(p, method, "exact", _n_arrangements(strata))
    if method == "hypergeometric" and strata[0].most(parts[0]) <= MOST_TERMS:
        share = shares(strata[0], parts[0][0])
        extreme = of_parts.extreme(of_parts.values(np.arange(len(share))[:, None]))[tail]
        return ExactP(Fraction(_sum(share[extreme])), method, "numeric", None)
    return None


def _sum(shares: NDArray[np.float64]) -> float:
    return min(math.fsum(shares), 1.0)


def _n_arrangements(strata: Sequence[LabelMargins]) -> int | None:
    found = 1
    for own in strata:
        for k in range(2, own.n_items + 1):
            found *= k
            if found > LARGEST:
                return None
    return found
