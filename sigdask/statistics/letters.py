"""What the verdicts of all pairs say together: letters, ranks, discriminative power."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_letters

import numpy as np

from sigdask.counts.lattice import TIE

MOST_GROUPS = 1000
"""Groups up to which letters are worked out: verdicts without order can need exponentially many."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A system in a ranking.

    Attributes
    ----------
    system : str
        Its name.
    score : float
        Its score.
    rank : int
        1 for the best; equal scores share a rank.
    letters : tuple of str
        Systems that share a letter are not told apart; empty where `MOST_GROUPS` were not enough.
    """

    system: str
    score: float
    rank: int
    letters: tuple[str, ...]


def ranking(
    scores: Sequence[tuple[str, float]], apart: Iterable[tuple[str, str]], *, higher_is_better: bool = True
) -> list[Ranked]:
    """Rank systems and letter the groups that are not told apart.

    Parameters
    ----------
    scores : sequence of (str, float)
        Systems and scores.
    apart : iterable of (str, str)
        Pairs that differ significantly; all others are taken as not told apart.
    higher_is_better : bool
        Direction of the score.
    """
    best_first = sorted(scores, key=lambda row: -row[1] if higher_is_better else row[1])
    place = {system: k for k, (system, _) in enumerate(best_first)}
    ordered = sorted((min(place[a], place[b]), max(place[a], place[b])) for a, b in apart)  # grows the least
    groups = letter_groups(len(best_first), ordered)
    ranked, rank = [], 0
    for k, (system, score) in enumerate(best_first):
        if k == 0 or not math.isclose(score, best_first[k - 1][1], rel_tol=2 * TIE):
            rank = k + 1
        letters = tuple(letter(g) for g, group in enumerate(groups) if k in group)
        ranked.append(Ranked(system, score, rank, letters))
    return ranked


def letter_groups(n_systems: int, apart: Iterable[tuple[int, int]]) -> list[frozenset[int]]:
    """Return the fewest-grown groups such that two systems share one unless they are told apart.

    Insert and absorb (Piepho 2004, "An algorithm for a letter-based representation of all-pairwise
    comparisons"): each pair told apart splits every group that holds both; groups within others go.
    None at all where there would be more than `MOST_GROUPS` on the way: their number can grow
    exponentially, and no one reads them.

    Examples
    --------
    >>> [sorted(group) for group in letter_groups(3, [(0, 2)])]
    [[0, 1], [1, 2]]
    """
    groups = {(1 << n_systems) - 1} if n_systems else set()
    for i, j in apart:
        both = 1 << i | 1 << j
        split = [group for group in groups if group & both == both]
        if not split:
            continue
        groups.difference_update(split)
        for part in sorted({g & ~(1 << k) for g in split for k in (i, j)}, key=int.bit_count, reverse=True):
            if not any(part & group == part for group in groups):
                groups.add(part)
        if len(groups) > MOST_GROUPS:
            return []
    members = [frozenset(k for k in range(n_systems) if group >> k & 1) for group in groups]
    return sorted(members, key=lambda group: (min(group), sorted(group)))


def letter(number: int) -> str:
    """Name a group: a to z, A to Z, then aa, ab and so on.

    Examples
    --------
    >>> letter(0), letter(51), letter(52)
    ('a', 'Z', 'aa')
    """
    if number < len(ascii_letters):
        return ascii_letters[number]
    high, low = divmod(number - len(ascii_letters), 26)
    return letter(high) + ascii_letters[low]


def discriminative_power(p: Sequence[float], alpha: float) -> float:
    """Return the share of pairs with p at most alpha.

    References
    ----------
    Sakai 2006, "Evaluating evaluation metrics based on the bootstrap", section 3.

    Examples
    --------
    >>> discriminative_power([0.01, 0.2, 0.03, 0.5], 0.05)
    0.5
    """
    return float(np.mean(np.asarray(p) <= alpha)) if len(p) else 0.0


def achieved_significance(p: Sequence[float]) -> list[float]:
    """Return the achieved-significance curve: all p-values, the largest first (Sakai 2006, figure 1)."""
    return sorted(map(float, p), reverse=True)
