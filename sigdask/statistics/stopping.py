"""Early stopping with valid conclusions: sequential rules that look at blocks of trials in their fixed order.

Besag & Clifford 1991, "Sequential Monte Carlo p-values", Biometrika 78; Ding, Gandy & Hahn 2020, "A simple method for
implementing Monte Carlo tests", Computational Statistics 35, with the sequence of Robbins 1970 and Lai 1976.

Both look at trials in their order, and not in the order in which tasks finish, so the result is the same on any
cluster. Blocks are the tallies of consecutive trials, mostly of 4,096.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.errors import InputError
from sigdask.statistics.bounds import MAX_TRIALS

Recount = Callable[[int, int, Integers], ArrayLike]
"""Function (first trial, number of trials, comparisons) that returns exceedances, shape (n_parts, n): of each trial if
there are at most `SINGLE_TRIALS`, else of parts.
"""

SINGLE_TRIALS = 64
"""Number of trials that cost as much as one."""

N_PARTS = 16
"""Number of parts into which trials are split to find one of them."""

NOT_YET = -1
MAX_STEPS = 200
"""Maximum number of Newton steps, of which about ten are needed."""


@dataclass(frozen=True, slots=True)
class BesagClifford:
    """The rule that stops at the h-th exceedance, in trial l: p = h / l is a valid p-value.

    Attributes
    ----------
    h : int
        Number of exceedances at which the rule stops. The standard error of p is about p / sqrt(h).
    """

    h: int = 10

    def is_reached(self, n_extreme: Integers, n_trials: Integers) -> Bools:
        """Return whether h exceedances have come, so that the rule stops at or before `n_trials`; arrays broadcast."""
        return np.broadcast_to(n_extreme >= self.h, np.broadcast_shapes(n_extreme.shape, n_trials.shape))


@dataclass(frozen=True, slots=True)
class ConfidenceSequence:
    """The rule that stops when the confidence sequence of p excludes alpha: it decides, but gives no p-value.

    Attributes
    ----------
    alpha : float
        Level of the decision.
    epsilon : float
        Resampling risk: the largest probability of another decision than after infinitely many trials.
    """

    alpha: float = 0.05
    epsilon: float = 1e-3

    def is_reached(self, n_extreme: Integers, n_trials: Integers) -> Bools:
        """Return whether the confidence sequence excludes alpha, so that the rule stops.

        This is so if (n + 1) C(n, k) alpha^k (1 - alpha)^(n - k) <= epsilon.
        """
        return np.asarray(log_likelihood(n_extreme, n_trials, self.alpha) <= math.log(self.epsilon))


Stopping = BesagClifford | ConfidenceSequence

INTERVAL_RISK = 0.01
"""Risk of the interval next to Besag and Clifford's p. It holds for any data-dependent number of trials."""

RULES = ("besag-clifford", "confidence-sequence", "confidence")
"""Names of stopping rules. The last is short for the one before."""


def parse_rule(text: str, alpha: float) -> Stopping:
    """Return the stopping rule that a text names, with its value of h or epsilon if the text gives one.

    Parameters
    ----------
    text : str
        `besag-clifford`, `besag-clifford:h=20`, `confidence`, `confidence-sequence:epsilon=0.01`.
    alpha : float
        Level of a confidence sequence's decision.

    Raises
    ------
    InputError
        There is no such rule, or its key has no such value.

    Examples
    --------
    >>> parse_rule("besag-clifford:h=20", 0.05), parse_rule("confidence", 0.01)
    (BesagClifford(h=20), ConfidenceSequence(alpha=0.01, epsilon=0.001))
    """
    name, colon, setting = text.partition(":")
    key, _, value = setting.partition("=")
    if name not in RULES:
        raise InputError(f"stop = {text!r}: expected besag-clifford[:h=N] or confidence[:epsilon=E]")
    expected_key = "h" if name == RULES[0] else "epsilon"
    try:
        if not colon:
            return BesagClifford() if expected_key == "h" else ConfidenceSequence(alpha)
        if key == expected_key == "h" and 1 <= int(value) <= MAX_TRIALS:
            return BesagClifford(int(value))
        if key == expected_key == "epsilon" and 0 < float(value) < 1:
            return ConfidenceSequence(alpha, float(value))
    except ValueError:
        pass
    limits = "a whole number from 1 to 2**48" if expected_key == "h" else "a number between 0 and 1"
    raise InputError(f"stop = {text!r}: expected {name}:{expected_key}=NUMBER, {limits}")


@dataclass(frozen=True, slots=True, eq=False)
class StoppingDecisions:
    """Decisions of a stopping rule on many comparisons: arrays of shape (...).

    Attributes
    ----------
    is_final : bool
        Whether there is a decision: the rule has stopped, or all trials are counted.
    n_trials, n_extreme : int64
        Trials up to the h-th exceedance, or to the end of the deciding block. All trials if the rule did not stop.
    p_value : float64
        h / l, or (k + 1) / (n + 1) if all trials were counted. NaN if the rule gives only a decision.
    p_low, p_high : float64
        Interval of p. NaN if all trials were counted, because the usual interval then applies.
    is_early : bool
        Whether it stopped before all requested trials.
    is_significant : int8
        1, 0, or -1 where it is undecided or the rule gives a p.
    is_unknown : bool
        Whether the trial at which the rule stops has not been determined yet.
    """

    is_final: Bools
    n_trials: Integers
    n_extreme: Integers
    p_value: Floats
    p_low: Floats
    p_high: Floats
    is_early: Bools
    is_significant: NDArray[np.int8]
    is_unknown: Bools


def find_stopping_block(rule: Stopping, n_extreme: ArrayLike, n_trials: ArrayLike) -> Integers:
    """Return, for each comparison, the number of the first block of trials in which, or at whose end, the rule stops.

    Parameters
    ----------
    rule : BesagClifford or ConfidenceSequence
        When to stop.
    n_extreme : int array, shape (n_blocks, ...)
        Exceedances in each block of the ordered prefix, of any number of comparisons.
    n_trials : int array, shape (n_blocks,) or that of `n_extreme`
        Trials of each block.

    Returns
    -------
    int64 array, shape (...)
        Numbers of blocks; -1 if the rule does not stop in the prefix.

    Examples
    --------
    >>> find_stopping_block(BesagClifford(h=5), [[1, 0], [4, 1], [2, 1]], [4096, 4096, 4096])
    array([ 1, -1])
    """
    extreme, trials = _broadcast_blocks(n_extreme, n_trials)
    if len(extreme) == 0:
        return np.full(extreme.shape[1:], NOT_YET, np.int64)
    reached = rule.is_reached(np.cumsum(extreme, axis=0), np.cumsum(trials, axis=0))
    return np.where(reached.any(axis=0), reached.argmax(axis=0), NOT_YET)


def _broadcast_blocks(n_extreme: ArrayLike, n_trials: ArrayLike) -> tuple[Integers, Integers]:
    """Return exceedances and numbers of trials of blocks, both broadcast to shape (n_blocks, ...)."""
    extreme, trials = np.asarray(n_extreme, np.int64), np.asarray(n_trials, np.int64)
    if trials.ndim < extreme.ndim:
        trials = trials.reshape((-1,) + (1,) * (extreme.ndim - 1))
    return extreme, np.broadcast_to(trials, extreme.shape)


def compute_sequential_p(
    rule: BesagClifford, n_extreme: ArrayLike, n_trials: ArrayLike, position: ArrayLike, *, limit: ArrayLike
) -> StoppingDecisions:
    """Return the p-values of many comparisons by Besag and Clifford's rule.

    Under the null P(p <= alpha) <= alpha. The p-value is the same in any partition into blocks.

    Parameters
    ----------
    rule : BesagClifford
        When to stop.
    n_extreme : int array, shape (n_blocks, ...)
        Exceedances of the ordered prefix, from trial 0.
    n_trials : int array, shape (n_blocks,) or that of `n_extreme`
        Its trials.
    position : int array, shape (...)
        Number of trials at the h-th exceedance, by `locate_exceedances`, or NOT_YET if it was not located. Then the
        first possible trial is used, which bounds p from above.
    limit : int array, shape (...)
        Maximum number of trials, fixed beforehand.
    """
    extreme, trials = _broadcast_blocks(n_extreme, n_trials)
    blocks = find_hidden_blocks(rule, extreme, trials)
    early, position = blocks.has_come, np.asarray(position)
    n, k = trials.sum(axis=0), extreme.sum(axis=0)
    last_trial = np.where(early, np.where(position == NOT_YET, blocks.first + blocks.ordinals, position), n)
    p = np.where(early, rule.h / np.maximum(last_trial, 1), (k + 1) / (n + 1))
    n_extreme = np.where(early, rule.h, k)
    low, high = compute_sequence_interval(n_extreme, np.maximum(last_trial, 1), INTERVAL_RISK)
    return StoppingDecisions(
        early | (n >= limit), last_trial, n_extreme, p, np.where(early, low, np.nan), np.where(early, high, np.nan),
        early, np.full(np.shape(early), -1, np.int8), early & (position == NOT_YET),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class HiddenBlocks:
    """For each comparison, the block of trials that contains its h-th exceedance: the first trial and the length.

    Arrays of shape (...); `has_come` shows whether there is such a block.
    """

    has_come: Bools
    first: Integers
    n_trials: Integers
    ordinals: Integers


def find_hidden_blocks(rule: BesagClifford, n_extreme: ArrayLike, n_trials: ArrayLike) -> HiddenBlocks:
    """Return, for each comparison, the block of trials that contains its h-th exceedance.

    Arrays are as in `find_stopping_block`.
    """
    extreme, trials = _broadcast_blocks(n_extreme, n_trials)
    block = find_stopping_block(rule, extreme, trials)
    if len(extreme) == 0:
        return HiddenBlocks(block != NOT_YET, block, block, block)
    is_before = np.arange(len(extreme)).reshape((-1,) + (1,) * block.ndim) < block  # (n_blocks, ...)
    block_trials = np.take_along_axis(trials, np.maximum(block, 0)[None], axis=0)[0]
    ordinals = rule.h - (extreme * is_before).sum(axis=0)
    return HiddenBlocks(block != NOT_YET, (trials * is_before).sum(axis=0), block_trials, ordinals)


def locate_exceedances(
    first: int, n_trials: int, comparisons: Integers, ordinals: Integers, recount: Recount
) -> Iterator[tuple[Integers, Integers]]:
    """Yield comparisons, and the number of trials at the exceedance that is located for each of them in one block.

    The block is counted again in parts, for all comparisons together. Parts with the exceedances are divided further,
    down to a few trials that are checked one by one. So the whole block is counted once, and little of it again.

    Parameters
    ----------
    first, n_trials : int
        The block.
    comparisons : int64 array, shape (n,)
        The comparisons.
    ordinals : int64 array, shape (n,)
        Number of the exceedance to locate within the block.
    recount : callable
        Counts again.

    Raises
    ------
    InputError
        Counting again gave other counts, because the data or the program changed in between.
    """
    pending = [(first, n_trials, comparisons, ordinals)]
    while pending:
        start, length, remaining, nth = pending.pop()
        step = max(-(-length // N_PARTS), SINGLE_TRIALS)
        for chunk_start in range(start, start + length, step):
            n = min(step, start + length - chunk_start)
            counts = np.asarray(recount(chunk_start, n, remaining), np.int64)  # (n_parts, n_sought)
            total = counts.sum(axis=0)
            has_come = total >= nth
            if n <= SINGLE_TRIALS and has_come.any():
                summed = np.cumsum(counts[:, has_come], axis=0)
                yield remaining[has_come], chunk_start + 1 + (summed >= nth[has_come]).argmax(axis=0)
            elif has_come.any():
                pending.append((chunk_start, n, remaining[has_come], nth[has_come]))
            remaining, nth = remaining[~has_come], (nth - total)[~has_come]
            if not len(remaining):
                break
        else:
            raise InputError(
                f"trials {first} to {first + n_trials - 1} were counted again with different counts, so the "
                "data have changed"
            )


def decide(
    rule: ConfidenceSequence, n_extreme: ArrayLike, n_trials: ArrayLike, *, limit: ArrayLike
) -> StoppingDecisions:
    """Return the decisions of a confidence sequence on many comparisons.

    Parameters
    ----------
    rule : ConfidenceSequence
        When to stop.
    n_extreme, n_trials : int array
        Tallies of the ordered prefix, from trial 0, as in `find_stopping_block`.
    limit : int array, shape (...)
        Maximum number of trials, decided or not.
    """
    extreme, trials = _broadcast_blocks(n_extreme, n_trials)
    block = find_stopping_block(rule, extreme, trials)
    decided = block != NOT_YET
    inside = ~decided | (np.arange(len(extreme)).reshape((-1,) + (1,) * block.ndim) <= block)
    k, n = (extreme * inside).sum(axis=0), (trials * inside).sum(axis=0)
    significant = np.where(decided, k < rule.alpha * n, -1).astype(np.int8)
    low, high = compute_sequence_interval(k, n, rule.epsilon)
    is_final = (decided | (n >= limit)) & (n > 0)
    return StoppingDecisions(
        is_final, n, k, np.full(np.shape(n), np.nan), low, high, n < limit, significant, np.zeros_like(is_final)
    )


def compute_settled_after(
    n_extreme: ArrayLike, n_trials: ArrayLike, alpha: float, *, adjusted: ArrayLike = False
) -> Floats:
    """Return after how many trials the verdict was certain, in the mean over all orders of the trials.

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
        Whether the verdict uses an adjusted p, which is at least p. If p is above alpha, so is the adjusted p;
        otherwise all trials are needed.

    Examples
    --------
    >>> compute_settled_after([500, 5, 5], 999, 0.05, adjusted=[True, False, True]).round(1).tolist()
    [99.8, 954.8, 999.0]
    """
    k, n = np.asarray(n_extreme, np.float64), np.asarray(n_trials, np.float64)
    m = np.floor(alpha * (n + 1))
    m = m + ((m + 1) / (n + 1) <= alpha) - (m / (n + 1) > alpha)  # as p <= alpha is rounded
    below = np.where(adjusted, n, (n - m + 1) * (n + 1) / (n - k + 1))
    return np.where(k < m, below, m * (n + 1) / (k + 1))


def log_likelihood(n_extreme: ArrayLike, n_trials: ArrayLike, p: float) -> Floats:
    """Return the logarithm of n + 1 times the binomial probability of k exceedances in n trials, elementwise."""
    k, n = np.asarray(n_extreme, np.float64), np.asarray(n_trials, np.float64)
    choose = -scipy.special.betaln(k + 1, n - k + 1)  # (n + 1) C(n, k) = 1 / B(k + 1, n - k + 1)
    return np.asarray(choose + scipy.special.xlogy(k, p) + scipy.special.xlog1py(n - k, -p))


def compute_sequence_interval(n_extreme: ArrayLike, n_trials: ArrayLike, epsilon: float) -> tuple[Floats, Floats]:
    """Return the limits of p by the confidence sequence: where (n + 1) C(n, k) p^k (1 - p)^(n - k) > epsilon.

    It is wider than Clopper and Pearson's, which does not hold if the counts determine the number of trials.

    Parameters
    ----------
    n_extreme, n_trials : int array, shape (...)
        Counts.
    epsilon : float
        The resampling risk.

    Returns
    -------
    low, high : float64 array, shape (...)

    Examples
    --------
    >>> low, high = compute_sequence_interval(264, 4096, 1e-3)
    >>> bool(0.04 < low < 264 / 4096 < high < 0.09)
    True
    """
    k, n = np.broadcast_arrays(np.asarray(n_extreme, np.float64), np.asarray(n_trials, np.float64))
    surplus = -scipy.special.betaln(k + 1, n - k + 1) - math.log(epsilon)
    low, high = np.zeros(k.shape), np.ones(k.shape)
    has_low, has_high = k > 0, k < n
    low[has_low] = scipy.special.expit(
        _find_end(k[has_low], n[has_low], surplus[has_low], -surplus[has_low] / k[has_low])
    )
    high[has_high] = scipy.special.expit(
        _find_end(k[has_high], n[has_high], surplus[has_high], surplus[has_high] / (n - k)[has_high])
    )
    return low, high


def _find_end(k: Floats, n: Floats, surplus: Floats, start: Floats) -> Floats:
    """Return the logit of one end of the confidence sequence's interval, by Newton's method.

    It is the root of k log p + (n - k) log(1 - p) + surplus.

    The function is concave and `start` is outside, on an asymptote, so that steps go inwards and never too far.
    """
    logit, near = start, np.zeros(len(start), np.bool_)  # each comparison ends on its own, whatever the others do
    for _ in range(MAX_STEPS):
        above = k * scipy.special.log_expit(logit) + (n - k) * scipy.special.log_expit(-logit) + surplus
        step = above / (k * scipy.special.expit(-logit) - (n - k) * scipy.special.expit(logit))
        logit = np.where(near, logit, logit - step)
        near |= np.abs(step) <= 1e-10 * np.maximum(np.abs(logit), 1)  # what is left is of the order of its square
        if near.all():
            break
    return logit


def compute_saving(n_counted: float, n_requested: float) -> float:
    """Return the share of trials that early stopping saved.

    Examples
    --------
    >>> compute_saving(4096, 2**20)
    0.99609375
    """
    return float(1 - n_counted / n_requested)
