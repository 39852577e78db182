"""Count arrangements by sums of fractions, meeting in the middle: exact even for tiny differences next to large ones.

Swapping a unit changes the sign of its difference, so the sum over the swapped units says how far the difference moves.
Units of the same size are taken together: only how many more of them are swapped in one direction than in the other
matters, and rounding that they share cancels.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple


class ArrangementCounts(NamedTuple):
    """How many of all arrangements are as extreme as the observed one, under each alternative."""

    greater: int
    less: int
    two_sided: int


class _SizeGroup(NamedTuple):
    """Units whose differences have the same size, in steps of which all sizes and roundings are multiples."""

    size: int
    rounding: int
    wins: int
    losses: int


def count_extreme(differences: Sequence[Fraction], roundings: Sequence[Fraction]) -> ArrangementCounts:
    """Count the arrangements at least as extreme as the observed one; possible ties count as ties.

    Parameters
    ----------
    differences : sequence of Fraction, length n_units
        Differences of the units, none of them 0.
    roundings : sequence of Fraction, length n_units
        Maximum error of each difference.

    Examples
    --------
    >>> count_extreme([Fraction(10**16), Fraction(9, 10), Fraction(8, 10)], [Fraction()] * 3)
    ArrangementCounts(greater=1, less=8, two_sided=2)
    """
    step = math.lcm(1, *(x.denominator for x in (*differences, *roundings)))
    signs: dict[tuple[int, int], list[int]] = {}
    for d, rounding in zip(differences, roundings, strict=True):
        signs.setdefault((int(abs(d) * step), int(rounding * step)), [0, 0])[d < 0] += 1
    groups = [_SizeGroup(*sizes, *win_loss_counts) for sizes, win_loss_counts in signs.items()]
    greater = _count_not_positive(groups)
    less = _count_not_positive([g._replace(wins=g.losses, losses=g.wins) for g in groups])
    total = sum(g.size * (g.wins - g.losses) for g in groups)
    slack = sum(g.rounding * abs(g.wins - g.losses) for g in groups)
    n_arrangements = 1 << len(differences)
    two_sided = n_arrangements if abs(total) <= slack else min(2 * (greater if total > 0 else less), n_arrangements)
    return ArrangementCounts(greater, less, two_sided)


def _count_not_positive(groups: Sequence[_SizeGroup]) -> int:
    """Count the sets of swapped units whose sum is at most 0, within its rounding."""
    smaller, larger = {0: 1}, {0: 1}
    for group in groups:
        smaller, larger = sorted((_add_group(smaller, group), larger), key=len)
    sums = sorted(larger)
    n_up_to = [0, *accumulate(larger[x] for x in sums)]
    return sum(n * n_up_to[bisect_right(sums, -x)] for x, n in smaller.items())


def _add_group(ways: dict[int, int], group: _SizeGroup) -> dict[int, int]:
    """Return the sums (less their rounding) with any of a group's units swapped, and the number of ways to each sum."""
    n = group.wins + group.losses
    moves = [
        (net * group.size - abs(net) * group.rounding, math.comb(n, net + group.losses))
        for net in range(-group.losses, group.wins + 1)
    ]
    sums: dict[int, int] = {}
    for x, n_ways in ways.items():
        for move, n_moves in moves:
            sums[x + move] = sums.get(x + move, 0) + n_ways * n_moves
    return sums
