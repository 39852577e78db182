"""Summaries of the verdicts on all pairs of systems: letters, ranks and discriminative power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_letters

import numpy as np

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.statistics.lattice import TIE

MAX_GROUPS = 1000
"""Maximum number of groups for which letters are computed. Verdicts without an order can need exponentially many."""


@dataclass(frozen=True, slots=True)
class RankedSystem:
    """A system in a ranking.

    Attributes
    ----------
    system : str
        Name of the system.
    score : float
        Score of the system.
    rank : int
        1 for the best. Equal scores share a rank.
    letters : tuple of str
        Systems that share a letter are not significantly different. Empty if there are more than `MAX_GROUPS` groups.
    rank_low, rank_high : int
        Possible ranks given the verdicts: from 1 plus the number of significantly better systems to the number of
        systems that are not significantly worse.
    cluster : int
        1 for the best. Ranges of ranks of different clusters do not overlap, as in WMT's rankings.
    tied_with_best : bool
        Whether the system is not significantly worse than the first one. For the first, whether no other is
        significantly better.
    """

    system: str
    score: float
    rank: int
    letters: tuple[str, ...]
    rank_low: int = 1
    rank_high: int = 1
    cluster: int = 1
    tied_with_best: bool = True


def rank_systems(
    systems: Sequence[str], scores: Floats, different_pairs: Integers, *, higher_is_better: bool = True
) -> list[RankedSystem]:
    """Rank systems by score, and give a common letter to systems that are not significantly different.

    Parameters
    ----------
    systems : sequence of str
        Their names.
    scores : float64 array, shape (n_systems,)
        Score of each system.
    different_pairs : int array, shape (n, 2)
        Pairs of indices of significantly different systems, the better one first. It may have the lower score, if
        scores are of other items than the pair's. All other pairs count as not significantly different.
    higher_is_better : bool
        Direction of the score.
    """
    best_first = np.argsort(-scores if higher_is_better else scores, kind="stable")
    placed_pairs = np.argsort(best_first)[different_pairs].reshape(-1, 2)
    letters: list[list[str]] = [[] for _ in systems]
    for g, group in enumerate(find_letter_groups(len(systems), placed_pairs)):
        for k in group:
            letters[k].append(format_letter(g))
    low, high = find_rank_ranges(len(systems), placed_pairs)
    clusters = number_range_clusters(low, high)
    not_best = set(placed_pairs[(placed_pairs == 0).any(axis=1), 1].tolist())
    ranked, rank, previous = [], 0, math.nan
    for k, system in enumerate(best_first.tolist()):
        score = float(scores[system])
        if not math.isclose(score, previous, rel_tol=2 * TIE):
            rank = k + 1
        ranked.append(
            RankedSystem(
                systems[system], score, rank, tuple(letters[k]), low[k], high[k], clusters[k], k not in not_best
            )
        )
        previous = score
    return ranked


def find_rank_ranges(n_systems: int, different_pairs: Integers) -> tuple[list[int], list[int]]:
    """Return the lowest and highest rank of each system, best first, as WMT's general tasks print them.

    A system ranks behind those that are significantly better, and before those that are significantly worse.

    Examples
    --------
    >>> find_rank_ranges(3, np.array([(0, 2)]))
    ([1, 1, 2], [2, 3, 3])
    """
    pairs = np.unique(np.asarray(different_pairs, np.int64).reshape(-1, 2), axis=0)
    losses, wins = (np.bincount(pairs[:, side], minlength=n_systems) for side in (1, 0))
    low: list[int] = (1 + losses).tolist()
    high: list[int] = (n_systems - wins).tolist()
    return low, high


def number_range_clusters(low: Sequence[int], high: Sequence[int]) -> list[int]:
    """Return the number of each system's cluster, best first; ranges of ranks of different clusters do not overlap.

    Examples
    --------
    >>> number_range_clusters([1, 1, 3, 4], [2, 2, 4, 4])
    [1, 1, 2, 2]
    """
    numbers: list[int] = []
    highest = np.maximum.accumulate(np.array(high, np.int64))
    lowest = np.minimum.accumulate(np.array(low, np.int64)[::-1])[::-1]  # of the system and all after it
    for k in range(len(highest)):
        numbers.append(numbers[-1] + int(highest[k - 1] < lowest[k]) if k else 1)
    return numbers


def number_clusters(is_beaten: Bools) -> list[int]:
    """Return the number of each system's cluster, as in WMT's rankings of metrics.

    Systems are sorted, best first. A cluster begins with a system that is beaten by one in the cluster before.

    Parameters
    ----------
    is_beaten : bool array, shape (n_systems, n_systems)
        Whether the system of a row is significantly better than that of a column.

    Examples
    --------
    >>> number_clusters(np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], bool))
    [1, 1, 2]
    """
    numbers: list[int] = []
    start = 0
    for k in range(len(is_beaten)):
        if is_beaten[start:k, k].any():
            start = k
        numbers.append(1 if not k else numbers[-1] + (start == k))
    return numbers


def find_best(scores: Floats, *, higher_is_better: bool = True) -> Bools:
    """Return a mask of the best scores, ties within rounding included.

    Examples
    --------
    >>> find_best(np.array([0.1 + 0.2, 0.3, 0.2, np.nan])).tolist()
    [True, True, False, False]
    """
    if np.isnan(scores).all():
        return np.zeros(len(scores), np.bool_)
    best_score = np.nanmax(scores) if higher_is_better else np.nanmin(scores)
    return np.isclose(scores, best_score, rtol=2 * TIE, atol=0.0)


def find_letter_groups(n_systems: int, different_pairs: Integers | Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return the maximal groups of systems of which no two are significantly different.

    These are the groups of Piepho 2004 ("An algorithm for a letter-based representation of all-pairwise comparisons"):
    the maximal cliques of the graph of pairs that are not significantly different, built by adding one system after
    another. None are returned if there are more than `MAX_GROUPS`, because their number can grow exponentially and
    nobody reads them. Intermediate results never have more groups than the final one.

    Examples
    --------
    >>> find_letter_groups(3, [(0, 2)])
    [[0, 1], [1, 2]]
    """
    pairs = np.array(different_pairs, np.int64).reshape(-1, 2)
    is_near = ~np.eye(n_systems, dtype=np.bool_)
    is_near[pairs[:, 0], pairs[:, 1]] = is_near[pairs[:, 1], pairs[:, 0]] = False
    groups: list[int] = []
    for system, row in enumerate(np.packbits(is_near, axis=1, bitorder="little")):
        bit, near = 1 << system, int.from_bytes(row.tobytes(), "little")
        unchanged = [group for group in groups if group & ~near]
        joining = {group & near for group in groups}
        groups = [*unchanged, *(subset | bit for subset in _select_maximal(joining))]
        if len(groups) > MAX_GROUPS:
            return []
    return sorted([k for k in range(group.bit_length()) if group >> k & 1] for group in groups)


def _select_maximal(sets: set[int]) -> list[int]:
    """Return the sets that are not contained in another set; the empty set if there are no sets."""
    maximal: list[int] = []
    for candidate in sorted(sets or {0}, key=int.bit_count, reverse=True):
        if not any(candidate & larger == candidate for larger in maximal):
            maximal.append(candidate)
    return maximal


def format_letter(number: int) -> str:
    """Return the letter of a group: a to z, A to Z, then aa, ab and so on.

    Examples
    --------
    >>> format_letter(0), format_letter(51), format_letter(52)
    ('a', 'Z', 'aa')
    """
    if number < len(ascii_letters):
        return ascii_letters[number]
    high, low = divmod(number - len(ascii_letters), 26)
    return format_letter(high) + ascii_letters[low]


def discriminative_power(p: Sequence[float] | Floats, alpha: float) -> float:
    """Return the share of pairs of systems whose p-value is at most alpha.

    References
    ----------
    Sakai 2006, "Evaluating evaluation metrics based on the bootstrap", section 3.

    Examples
    --------
    >>> discriminative_power([0.01, 0.2, 0.03, 0.5], 0.05)
    0.5
    """
    return float(np.mean(np.asarray(p) <= alpha)) if len(p) else 0.0
