"""Sums of fractions of any size, met in the middle: no unit is too small beside another.

Swapping a unit turns the sign of its difference, so the sum over the swapped units says how far the difference moves.
Units of the same size are taken together. Only how many more of them are swapped in one direction than in the other
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
    """Units whose differences have the same size, in steps that all sizes and roundings are multiples of."""

    size: int
    rounding: int
    wins: int
    losses: int


def count_reached(differences: Sequence[Fraction], roundings: Sequence[Fraction]) -> ArrangementCounts:
    """Count the arrangements that are as extreme as the observed one; what may tie counts as a tie.

    Parameters
    ----------
    differences : sequence of Fraction, length n_units
        Of the units, none of them 0.
    roundings : sequence of Fraction, length n_units
        How far each may be off.

    Examples
    --------
    >>> count_reached([Fraction(10**16), Fraction(9, 10), Fraction(8, 10)], [Fraction()] * 3)
    ArrangementCounts(greater=1, less=8, two_sided=2)
    """
    step = math.lcm(1, *(x.denominator for x in (*differences, *roundings)))
    signs: dict[tuple[int, int], list[int]] = {}
    for d, rounding in zip(differences, roundings, strict=True):
        signs.setdefault((int(abs(d) * step), int(rounding * step)), [0, 0])[d < 0] += 1
    groups = [_SizeGroup(*sizes, *both) for sizes, both in signs.items()]
    greater = _n_not_above_zero(groups)
    less = _n_not_above_zero([g._replace(wins=g.losses, losses=g.wins) for g in groups])
    total = sum(g.size * (g.wins - g.losses) for g in groups)
    slack = sum(g.rounding * abs(g.wins - g.losses) for g in groups)
    whole = 1 << len(differences)
    two_sided = whole if abs(total) <= slack else min(2 * (greater if total > 0 else less), whole)
    return ArrangementCounts(greater, less, two_sided)


def _n_not_above_zero(groups: Sequence[_SizeGroup]) -> int:
    """Count the sets of swapped units whose sum is 0 or less within its rounding."""
    smaller, larger = {0: 1}, {0: 1}
    for group in groups:
        smaller, larger = sorted((_with_group(smaller, group), larger), key=len)
    sums = sorted(larger)
    n_up_to = [0, *accumulate(larger[x] for x in sums)]
    return sum(n * n_up_to[bisect_right(sums, -x)] for x, n in smaller.items())


def _with_group(ways: dict[int, int], group: _SizeGroup) -> dict[int, int]:
    """Return the sums, less their rounding, of sets with and without the units of a group, and how many have each."""
    n = group.wins + group.losses
    moves = [
        (net * group.size - abs(net) * group.rounding, math.comb(n, net + group.losses))
        for net in range(-group.losses, group.wins + 1)
    ]
    found: dict[int, int] = {}
    for x, n_ways in ways.items():
        for move, n_moves in moves:
            found[x + move] = found.get(x + move, 0) + n_ways * n_moves
    return found
