"""When to stop counting early and keep what is said valid: rules on the ordered prefix of blocks.

Besag & Clifford 1991, "Sequential Monte Carlo p-values", Biometrika 78; Ding, Gandy & Hahn 2020, "A
simple method for implementing Monte Carlo tests", Computational Statistics 35, whose sequence is that
of Robbins 1970 and Lai 1976.

Both look at the trials in their order, never in the order in which tasks finish, so that what they say
is the same on any cluster. Blocks are the tallies of consecutive trials, most often of 4,096.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from sigdask.errors import InputError

Recount = Callable[[int, int, Sequence[int]], Sequence[int]]
"""(first trial, number of trials, comparisons) -> exceedances of each among them."""

NOT_YET = -1
SMALLEST, LARGEST = 5e-324, 1 - 2.0**-53
"""The doubles next to 0 and 1, where logarithms are finite."""


@dataclass(frozen=True, slots=True)
class BesagClifford:
    """Stop at the h-th exceedance, at trial l: p = h / l is a valid p-value.

    Attributes
    ----------
    h : int
        Exceedances to wait for; p is known to about p / sqrt(h).
    """

    h: int = 10

    def reached(self, n_extreme: NDArray[np.int64], n_trials: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say whether to stop at or before `n_trials`, arrays that broadcast."""
        return np.broadcast_to(n_extreme >= self.h, np.broadcast_shapes(n_extreme.shape, n_trials.shape))


@dataclass(frozen=True, slots=True)
class ConfidenceSequence:
    """Stop when the confidence sequence of p leaves alpha: a decision, no p-value.

    Attributes
    ----------
    alpha : float
        Level decided at.
    epsilon : float
        Resampling risk: the largest probability of deciding against what endless trials would say.
    """

    alpha: float = 0.05
    epsilon: float = 1e-3

    def reached(self, n_extreme: NDArray[np.int64], n_trials: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say whether to stop: (n + 1) C(n, k) alpha^k (1 - alpha)^(n - k) <= epsilon."""
        return np.asarray(log_likelihood(n_extreme, n_trials, self.alpha) <= math.log(self.epsilon))


Stopping = BesagClifford | ConfidenceSequence


@dataclass(frozen=True, slots=True)
class SequentialP:
    """What Besag and Clifford's rule says.

    Attributes
    ----------
    n_trials, n_extreme : int
        Trials up to the h-th exceedance, the last counted; or all, where it did not come.
    p_value : float
        h / l, or (k + 1) / (n + 1) where all trials were counted.
    is_early : bool
        Whether the h-th exceedance came.
    """

    n_trials: int
    n_extreme: int
    p_value: float
    is_early: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """What the confidence-sequence rule says; there is no p-value in it.

    Attributes
    ----------
    n_trials, n_extreme : int
        Trials up to the end of the block that decided, and exceedances among them.
    is_significant : bool or None
        Whether p <= alpha; None where all trials left it undecided.
    alpha, epsilon : float
        Of the rule.
    p_interval : tuple of float
        Holds the p of endless trials with probability 1 - epsilon, whenever one stops.
    """

    n_trials: int
    n_extreme: int
    is_significant: bool | None
    alpha: float
    epsilon: float
    p_interval: tuple[float, float]


def stopping_block(rule: Stopping, n_extreme: ArrayLike, n_trials: ArrayLike) -> NDArray[np.int64]:
    """Return the first block in or at whose end each comparison stops.

    Parameters
    ----------
    rule : BesagClifford or ConfidenceSequence
        When to stop.
    n_extreme : int array, shape (n_blocks, ...)
        Exceedances in each block of the ordered prefix, of any number of comparisons.
    n_trials : int array, shape (n_blocks,) or (n_blocks, ...)
        Trials of each block; 0 where a comparison has no such block.

    Returns
    -------
    int64 array, shape (...)
        Numbers of blocks; -1 where the prefix does not stop.

    Examples
    --------
    >>> stopping_block(BesagClifford(h=5), [[1, 0], [4, 1], [2, 1]], [4096, 4096, 4096])
    array([ 1, -1])
    """
    summed = np.cumsum(np.asarray(n_extreme, np.int64), axis=0)  # (n_blocks, ...)
    trials = np.cumsum(np.asarray(n_trials, np.int64), axis=0)
    trials = trials.reshape(trials.shape + (1,) * (summed.ndim - trials.ndim))
    if len(summed) == 0:
        return np.full(summed.shape[1:], NOT_YET, np.int64)
    reached = rule.reached(summed, trials)
    return np.where(reached.any(axis=0), reached.argmax(axis=0), NOT_YET)


def sequential_p(
    rule: BesagClifford, n_extreme: ArrayLike, n_trials: ArrayLike, place: int | None, *, limit: int
) -> SequentialP | None:
    """Return Besag and Clifford's p of one comparison, or None to go on counting.

    Under the null P(p <= alpha) <= alpha, in any partition into blocks the same p.

    Parameters
    ----------
    rule : BesagClifford
        When to stop.
    n_extreme, n_trials : int array, shape (n_blocks,)
        Tallies of the ordered prefix, from trial 0.
    place : int or None
        After how many trials the h-th exceedance came, by `places`; where it is not looked for yet, the first
        trial that it can have been, which bounds p from above.
    limit : int
        Trials after which counting ends in any case, fixed beforehand.
    """
    extreme, trials = np.asarray(n_extreme, np.int64), np.asarray(n_trials, np.int64)
    if (found := hidden(rule, extreme, trials)) is not None:
        last = found.first + found.wanted if place is None else place
        return SequentialP(last, rule.h, rule.h / last, is_early=True)
    k, n = int(extreme.sum()), int(trials.sum())
    return SequentialP(n, k, (k + 1) / (n + 1), is_early=False) if n >= limit else None


@dataclass(frozen=True, slots=True)
class Hidden:
    """The block that the h-th exceedance lies in: trials `first` to `first + n_trials - 1`, of which the wanted-th."""

    first: int
    n_trials: int
    wanted: int


def hidden(rule: BesagClifford, n_extreme: ArrayLike, n_trials: ArrayLike) -> Hidden | None:
    """Return where the h-th exceedance lies, None where it has not come."""
    block = int(stopping_block(rule, n_extreme, n_trials))
    if block == NOT_YET:
        return None
    extreme, trials = np.asarray(n_extreme, np.int64), np.asarray(n_trials, np.int64)
    return Hidden(int(trials[:block].sum()), int(trials[block]), rule.h - int(extreme[:block].sum()))


def places(first: int, n_trials: int, wanted: Mapping[int, int], recount: Recount) -> Iterator[tuple[int, int]]:
    """Yield each comparison, and after how many trials its wanted exceedance has come; all in one block.

    By halving, those that share a half counted again together.

    Parameters
    ----------
    first, n_trials : int
        The block.
    wanted : mapping of comparison to int
        Which exceedance within the block.
    recount : callable
        Counts again.

    Raises
    ------
    InputError
        Counting again gave other counts: the data or the program changed in between.
    """
    open_ = [(first, n_trials, dict(wanted))]
    while open_:
        start, length, sought = open_.pop()
        half = max(length // 2, 1)
        here = dict(zip(sought, recount(start, half, list(sought)), strict=True))
        if length == 1:
            if any(here[k] != 1 or n != 1 for k, n in sought.items()):
                raise InputError(
                    f"trials {first} to {first + n_trials - 1} were counted again and gave other counts; "
                    "the data changed"
                )
            yield from ((k, start + 1) for k in sought)
            continue
        left = {k: n for k, n in sought.items() if here[k] >= n}
        right = {k: n - here[k] for k, n in sought.items() if here[k] < n}
        open_ += [(start, half, left)] if left else []
        open_ += [(start + half, length - half, right)] if right else []


def decide(rule: ConfidenceSequence, n_extreme: ArrayLike, n_trials: ArrayLike, *, limit: int) -> Decision | None:
    """Return the decision on one comparison, or None to go on counting.

    Parameters
    ----------
    rule : ConfidenceSequence
        When to stop.
    n_extreme, n_trials : int array, shape (n_blocks,)
        Tallies of the ordered prefix, from trial 0.
    limit : int
        Trials after which counting ends, decided or not.
    """
    block = int(stopping_block(rule, n_extreme, n_trials))
    end = None if block == NOT_YET else block + 1
    k, n = int(np.asarray(n_extreme)[:end].sum()), int(np.asarray(n_trials)[:end].sum())
    if block == NOT_YET and n < limit:
        return None
    significant = None if block == NOT_YET else k < rule.alpha * n
    return Decision(n, k, significant, rule.alpha, rule.epsilon, sequence_interval(k, n, rule.epsilon))


def settled_after(
    n_extreme: ArrayLike, n_trials: ArrayLike, alpha: float, *, adjusted: ArrayLike = False
) -> NDArray[np.float64]:
    """Return after how many trials verdicts were settled, whatever the rest would be: the mean over their orders.

    The curtailed rule knows that (k + 1) / (n + 1) ends above alpha once m = floor(alpha (n + 1)) exceedances have
    come, and that it ends at alpha or below once n - m + 1 others have. Of n trials in any order, k of them
    exceedances, the r-th of these comes after r (n + 1) / (k + 1) trials in the mean (negative hypergeometric).

    Parameters
    ----------
    n_extreme, n_trials : int array, shape (...)
        Counts of all trials.
    alpha : float
        The level.
    adjusted : bool array, shape (...)
        Whether the verdict is of an adjusted p, which is no smaller than p: that it is above alpha is settled with p,
        that it is not by no fewer than all trials.

    Examples
    --------
    >>> settled_after([500, 5, 5], 999, 0.05, adjusted=[True, False, True]).round(1).tolist()
    [99.8, 954.8, 999.0]
    """
    k, n = np.asarray(n_extreme, np.float64), np.asarray(n_trials, np.float64)
    m = np.floor(alpha * (n + 1))
    m = m + ((m + 1) / (n + 1) <= alpha) - (m / (n + 1) > alpha)  # as p <= alpha is rounded
    below = np.where(adjusted, n, (n - m + 1) * (n + 1) / (n - k + 1))
    return np.where(k < m, below, m * (n + 1) / (k + 1))


def log_likelihood(n_extreme: ArrayLike, n_trials: ArrayLike, p: float) -> NDArray[np.float64]:
    """Return log((n + 1) C(n, k) p^k (1 - p)^(n - k)), elementwise."""
    k, n = np.asarray(n_extreme, np.float64), np.asarray(n_trials, np.float64)
    choose = -special.betaln(k + 1, n - k + 1)  # (n + 1) C(n, k) = 1 / B(k + 1, n - k + 1)
    return np.asarray(choose + special.xlogy(k, p) + special.xlog1py(n - k, -p))


def sequence_interval(n_extreme: int, n_trials: int, epsilon: float) -> tuple[float, float]:
    """Return the p that the confidence sequence has not left: (n + 1) C(n, k) p^k (1 - p)^(n - k) > epsilon.

    Wider than Clopper and Pearson's, which does not hold for a number of trials that the counts chose.

    Examples
    --------
    >>> low, high = sequence_interval(264, 4096, 1e-3)
    >>> 0.04 < low < 264 / 4096 < high < 0.09
    True
    """
    low, high = sequence_intervals(np.array([n_extreme]), np.array([n_trials]), epsilon)
    return float(low[0]), float(high[0])


def sequence_intervals(
    n_extreme: NDArray[np.int64], n_trials: NDArray[np.int64], epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return `sequence_interval` of many counts, by halving: to the last bits of the larger end."""
    k, n = n_extreme.astype(np.float64), n_trials.astype(np.float64)
    choose = -special.betaln(k + 1, n - k + 1) - math.log(epsilon)

    def inside(p: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.asarray(choose + special.xlogy(k, p) + special.xlog1py(n - k, -p) > 0)

    def end(outer: float) -> NDArray[np.float64]:
        """Return where the sequence ends between the most likely p and an outer one that it has left."""
        within, without = k / n, np.full(len(k), outer)
        for _ in range(HALVINGS):
            middle = (within + without) / 2
            is_in = inside(middle)
            within, without = np.where(is_in, middle, within), np.where(is_in, without, middle)
        return np.asarray((within + without) / 2)

    low = np.where(inside(np.full(len(k), SMALLEST)), 0.0, end(0.0))
    return low, np.where(inside(np.full(len(k), LARGEST)), 1.0, end(1.0))


HALVINGS = 64


def saving(n_counted: float, n_asked: float) -> float:
    """Return the share of trials that stopping early left out.

    Examples
    --------
    >>> saving(4096, 2**20)
    0.99609375
    """
    return 1 - n_counted / n_asked
