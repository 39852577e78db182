"""Matched proportions: non-inferiority by 0/1 scores on the same items.

Of `n` items, `wins` are right for the system alone and `losses` for the baseline alone. Let q be the probability of a
loss, and q - margin that of a win. Then a system that is worse by the margin is a trinomial with one nuisance
parameter, q. The score test uses the most likely q at the margin, the exact test the q with the largest tail. The test
of clusters first divides the counts by their design effect. Each p-value falls as the margin grows, and the smallest
margin that is shown is where it crosses the level.

References
----------
Tango 1998, Statistics in Medicine 17:891. Hsueh, Liu & Chen 2001, Biometrics 57:478. Buehler 1957, Journal of the
American Statistical Association 52:482. Rao & Scott 1992, Biometrics 48:577. Carter, Schnepel & Steigerwald 2017,
Review of Economics and Statistics 99:698 (the effective number of clusters).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from sigdask.counts.fields import Floats, Integers
from sigdask.statistics import bounds

EXACT_UP_TO = 200
"""Maximum number of items for the exact test."""

FEW_CLUSTERS = 15
"""If fewer units have more losses than wins, the design effect is not estimated but set to its largest value."""

MAX_MARGIN = 1 - 2.0**-40
"""Largest margin, as a share of items. Larger ones are treated as this one."""

HALVINGS = 60
GRID = 128
"""Number of values of the nuisance parameter at first, and again around the largest tails."""


@dataclass(frozen=True, slots=True)
class MatchedProportions:
    """Counts of a system's wins and losses against the baseline by 0/1 scores.

    Attributes
    ----------
    wins, losses : int
        Items that only the system, and only the baseline, has right.
    n_items : int
        Items, including those on which the two agree.
    design_effect : float
        Factor by which clusters increase the variance; 1 if items are independent.
    n_clusters : int or None
        Number of units of several items; None if each item is a unit.
    worth : float
        Score of a correct item. Margins have this scale, so those of 0/100 scores are percentage points.
    as_items : bool
        Whether each cluster counts as one item, because it is unknown how losses cluster.
    n_effective : float or None
        Effective number of clusters: n_clusters if all have the same size, and less otherwise. None for n_clusters.
    """

    wins: int
    losses: int
    n_items: int
    design_effect: float = 1.0
    n_clusters: int | None = None
    worth: float = 1.0
    as_items: bool = False
    n_effective: float | None = None

    @staticmethod
    def from_differences(differences: NDArray[Any], clusters: NDArray[Any], worth: float = 1.0) -> MatchedProportions:
        """Count wins and losses from item differences, and estimate the design effect of clusters of items.

        Parameters
        ----------
        differences : array, shape (n_items,)
            Difference of the system from the baseline: -1 for a loss, 1 for a win, 0 if they agree.
        clusters : int array, shape (n_items,)
            The unit of each item.
        worth : float
            Score of a correct item.
        """
        n_items, n_clusters = len(differences), len(np.unique(clusters))
        wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
        if n_clusters == n_items:
            return MatchedProportions(wins, losses, n_items, worth=worth)
        sizes = np.unique(clusters, return_counts=True)[1].astype(np.float64)
        squares = float((sizes**2).sum())
        effect = estimate_design_effect(differences, clusters)
        if as_items := effect is None:  # as if the items of a cluster were identical
            effect = squares / n_items  # the mean size of an item's cluster
        return MatchedProportions(
            wins, losses, n_items, effect, n_clusters, worth, as_items, n_effective=n_items**2 / squares
        )

    @property
    def is_exact(self) -> bool:
        """Whether the exact test is used."""
        return self.n_clusters is None and self.n_items <= EXACT_UP_TO

    @property
    def is_doubtful(self) -> bool:
        """Whether p may be too small, because so few clusters have most of the items."""
        return self.n_effective is not None and not self.as_items and self.n_effective < FEW_CLUSTERS

    @property
    def method(self) -> str:
        """The name of the test."""
        if self.n_clusters is not None:
            text = "each counted as one item" if self.as_items else f"design effect {self.design_effect:.3g}"
            doubt = f", from {self.n_effective:.2g} effective units: p may be too small" if self.is_doubtful else ""
            return f"cluster-robust score test, {self.n_clusters:,} units, {text}{doubt}"
        return "unconditional exact test" if self.is_exact else "score test"

    def compute_p_value(self, margin: float, alpha: float) -> float:
        """Return the one-sided p-value of the hypothesis that the system is worse by the margin or more.

        The exact test uses `alpha` to order its tables.
        """
        return self._compute_p(min(margin / self.worth, MAX_MARGIN), alpha)

    def find_smallest_margin(self, alpha: float) -> float:
        """Return the smallest margin with a p-value of at most alpha; negative if the system is shown to be better."""
        if self.is_exact:
            return compute_exact_margin(self.wins, self.losses, self.n_items, alpha) * self.worth
        return _find_crossing(lambda share: self._compute_p(share, alpha), alpha) * self.worth

    def compute_power(self, margin: float, alpha: float) -> float:
        """Return the approximate probability that non-inferiority is shown for a system as good as the baseline.

        The system is assumed to differ from the baseline on the observed number of items.
        """
        return self._compute_power(min(margin / self.worth, MAX_MARGIN), alpha)

    def find_margin_of_power(self, power: float, alpha: float) -> float:
        """Return the smallest margin for which an equal system is shown non-inferior with this power."""
        return _find_crossing(lambda share: 1 - self._compute_power(share, alpha), 1 - power, lower=0.0) * self.worth

    def _compute_p(self, share: float, alpha: float) -> float:
        if self.is_exact:
            return compute_exact_p(self.wins, self.losses, self.n_items, share, alpha)
        z = float(compute_score(self.wins, self.losses, self.n_items, share)) / math.sqrt(self.design_effect)
        return float(scipy.special.ndtr(-z) if self.n_clusters is None else scipy.special.stdtr(self._df, -z))

    def _compute_power(self, share: float, alpha: float) -> float:
        if self.is_exact and share < compute_exact_margin(0, 0, self.n_items, alpha):
            return 0.0  # not shown even for a system that agrees on all items
        half = (self.wins + self.losses) / self.n_items / 2
        n = self.n_items / self.design_effect
        needed = -float(
            scipy.special.ndtri(alpha) if self.n_clusters is None else scipy.special.stdtrit(self._df, alpha)
        )
        beyond = float(compute_score(half, half, 1.0, share)) * math.sqrt(n) - needed
        if half == 0:
            return float(self.is_exact or beyond >= 0)
        return float(
            scipy.special.ndtr(beyond * math.sqrt(float(compute_variance(half, half, 1.0, share)) / (2 * half)))
        )

    @property
    def _df(self) -> float:
        return max((self.n_effective or self.n_clusters or 0) - 1, 1)


def estimate_loss_probability(wins: ArrayLike, losses: ArrayLike, n: ArrayLike, margin: ArrayLike) -> Floats:
    """Return the maximum-likelihood probability of a loss, if a win is less likely than a loss by exactly the margin.

    The larger root of 2n q^2 - (wins + losses + margin (2n - wins + losses)) q + losses margin (1 + margin).

    References
    ----------
    Tango 1998.
    """
    wins, losses, n, margin = (np.asarray(x, np.float64) for x in (wins, losses, n, margin))
    b = wins + losses + margin * (2 * n - wins + losses)
    root = np.sqrt(np.maximum(b * b - 8 * n * losses * margin * (1 + margin), 0.0))
    return np.clip((b + root) / (4 * n), np.maximum(margin, 0.0), (1 + margin) / 2)


def compute_variance(wins: ArrayLike, losses: ArrayLike, n: ArrayLike, margin: ArrayLike) -> Floats:
    """Return the variance of wins - losses if the system is worse by exactly the margin."""
    margin = np.asarray(margin, np.float64)
    return np.asarray(np.asarray(n) * (2 * estimate_loss_probability(wins, losses, n, margin) - margin * (1 + margin)))


def compute_score(wins: ArrayLike, losses: ArrayLike, n: ArrayLike, margin: ArrayLike) -> Floats:
    """Return the score statistic for a system worse by the margin; large values mean that it is better than that.

    Examples
    --------
    The cross-over trial of Tango 1998: 43 pairs agree, one is a loss, the margin is 0.1.

    >>> round(float(compute_score(0, 1, 44, 0.1)), 3)
    1.709
    """
    wins, losses, n, margin = (np.asarray(x, np.float64) for x in (wins, losses, n, margin))
    above, below = wins - losses + n * margin, compute_variance(wins, losses, n, margin)
    return np.where(below > 0, above / np.sqrt(np.where(below > 0, below, 1.0)), 0.0)


def compute_score_margins(wins: ArrayLike, losses: ArrayLike, n: ArrayLike, alpha: float) -> Floats:
    """Return, for many comparisons at once, the smallest margin for which the score test shows non-inferiority.

    Examples
    --------
    The 90 % interval of the cross-over trial of Tango 1998 (Statistics in Medicine 17:891).

    >>> compute_score_margins([0, 1], [1, 0], 44, 0.05).round(3) * [-1, 1]
    array([-0.096,  0.037])
    """
    wins, losses, n = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (wins, losses, n)))
    low, high, level = np.full(wins.shape, -1.0), np.ones(wins.shape), -float(scipy.special.ndtri(alpha))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_shown = compute_score(wins, losses, n, middle) >= level
        low, high = np.where(is_shown, low, middle), np.where(is_shown, middle, high)
    return np.asarray(high)


def compute_score_interval(
    wins: ArrayLike, losses: ArrayLike, n: ArrayLike, confidence: float
) -> tuple[Floats, Floats]:
    """Return the ends of Tango's score interval for the difference of two matched proportions.

    At the ends, the score tests of `compute_score_margins`, one in each direction, cease to reject.

    Examples
    --------
    The 95 % interval of the cross-over trial of Tango 1998 (Statistics in Medicine 17:891).

    >>> [round(float(end), 3) for end in compute_score_interval(0, 1, 44, 0.95)]
    [-0.118, 0.059]
    """
    alpha = (1 - confidence) / 2
    return -compute_score_margins(wins, losses, n, alpha), compute_score_margins(losses, wins, n, alpha)


def compute_exact_p(wins: int, losses: int, n: int, margin: float, alpha: float) -> float:
    """Return the largest probability of a result at least as good if the system is worse by the margin (exact p).

    Tables are ordered by the margin that their score test shows at alpha. So the order does not depend on the margin,
    and p decreases as the margin grows.

    References
    ----------
    Buehler 1957; that the worst case is worse by just the margin: Hsueh, Liu & Chen 2001.
    """
    return _find_largest_tail(_find_min_wins(wins, losses, n, alpha), n, margin)


@lru_cache(maxsize=4096)
def compute_exact_margin(wins: int, losses: int, n: int, alpha: float) -> float:
    """Return the smallest margin for which the unconditional exact test rejects at alpha."""
    min_wins = _find_min_wins(wins, losses, n, alpha)
    return _find_crossing(lambda margin: _find_largest_tail(min_wins, n, margin), alpha, halvings=HALVINGS // 2)


def _find_min_wins(wins: int, losses: int, n: int, alpha: float) -> Integers:
    """Return, for 0 to n losses, the fewest wins that are as good as the observed result; n + 1 if there are none."""
    margin = float(compute_score_margins(wins, losses, n, alpha))
    counts = np.arange(n + 1)
    table = compute_score(counts, counts[:, None], n, margin)  # (losses, wins)
    is_as_good = table >= float(compute_score(wins, losses, n, margin)) - 1e-9
    is_as_good &= counts + counts[:, None] <= n
    return np.where(is_as_good.any(axis=1), is_as_good.argmax(axis=1), n + 1)


def _find_largest_tail(min_wins: Integers, n: int, margin: float) -> float:
    """Return the largest probability of `min_wins` or more wins, if losses are likelier than wins by the margin."""
    low, high = max(margin, 0.0), (1 + margin) / 2
    losses = np.flatnonzero(min_wins + np.arange(n + 1) <= n)
    needed, best = min_wins[losses], 0.0
    for _ in range(3):
        grid = np.linspace(low, high, GRID)
        q = grid[:, None]  # probability of a loss
        won = np.clip((q - margin) / np.maximum(1 - q, 1e-300), 0.0, 1.0)
        enough = scipy.special.betainc(np.maximum(needed, 1), n - losses - needed + 1, won)
        tails = (bounds.binomial_pmf(losses, n, q) * np.where(needed > 0, enough, 1.0)).sum(axis=1)
        top = int(tails.argmax())
        best = max(best, float(tails[top]))
        low, high = float(grid[max(top - 1, 0)]), float(grid[min(top + 1, GRID - 1)])
    return min(best, 1.0)


def _find_crossing(
    function: Callable[[float], float], level: float, *, lower: float = -1.0, halvings: int = HALVINGS
) -> float:
    """Return the smallest margin at which a falling function is at most the level; 1 if there is none."""
    low, high = lower, 1.0
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) <= level else (middle, high)
    return high


def estimate_design_effect(differences: NDArray[Any], clusters: NDArray[Any]) -> float | None:
    """Return the factor, 1 or more, by which clusters increase the variance of the mean difference.

    It is the variance from sums over clusters divided by that from items (Obuchowski 1998; Rao & Scott 1992). None if
    fewer than `FEW_CLUSTERS` have more losses than wins, so that it is unknown how losses cluster.

    Parameters
    ----------
    differences, clusters
        As in `MatchedProportions.from_differences`.
    """
    _, index = np.unique(clusters, return_inverse=True)
    sums = np.bincount(index, weights=differences)
    centred = differences - differences.mean()
    item_squares = float((centred**2).sum())
    if np.count_nonzero(sums < 0) < FEW_CLUSTERS or item_squares == 0:
        return None
    cluster_sums = np.bincount(index, weights=centred)
    return max(len(sums) / (len(sums) - 1) * float((cluster_sums**2).sum()) / item_squares, 1.0)
