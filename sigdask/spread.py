"""How far shuffled differences spread, and data shifted by a margin: what gates need beside p-values.

The swap standard deviation is that of the shuffled difference under the null. To first order it is the
standard error of the observed difference, and it errs to the wide side, since the differences of units
are not centred before they are squared.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.lattice import MOST_DIGITS, Scale
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.outputs import OutputsPanel
from sigdask.panels import Panel
from sigdask.shuffles import swap_bits

TRIALS = 4096
"""Trials from which a standard deviation is taken: known to 1.1 %."""

BLACK_BOX_TRIALS = 256
"""Of black boxes, which are slow: known to 4.4 %."""

_BITS_AT_ONCE = 2**24


def swap_sd(panel: Panel | OutputsPanel) -> NDArray[np.float64]:
    """Return the standard deviation of the shuffled difference, shape (n_pairs, n_metrics).

    In closed form for scores that are means; otherwise over the first trials of the first run, so that
    it is as repeatable as the counts.
    """
    if isinstance(panel, OutputsPanel):
        scores = [panel.score(bits) for bits in panel.swaps(run=0, first=0, n_trials=BLACK_BOX_TRIALS)]
        return np.array([[_root_mean_square(np.array([a - b for a, b in scores]))]])
    found = np.zeros(panel.shape)
    sampled = []
    for m, is_linear in enumerate(panel.linear):
        if is_linear:
            found[:, m] = _linear_sd(panel, m)
        else:
            sampled.append(m)
    if sampled and len(panel.addresses):
        found[:, sampled] = _sampled_sd(panel, sampled)
    return found


def _root_mean_square(differences: NDArray[np.float64]) -> float:
    """Return the spread about 0, which is the mean of shuffled differences."""
    return float(np.sqrt(np.mean(differences**2)))


def _linear_sd(panel: Panel, m: int) -> NDArray[np.float64]:
    """T = sum of +-d_u over the denominator: its variance is the sum of d_u squared."""
    metric = panel.metrics[m]
    form, fields = metric.form, list(metric.fields)
    assert isinstance(form, Ratios)
    above, below = np.array(form.numerators[0]), np.array(form.denominators[0])
    steps = [panel.lattices[f].step for f in fields]
    values = panel.values[:, :, fields] @ (above * steps)  # (n_kept, n_systems)
    total = float(panel.totals[0, fields] @ (below * steps))
    squares = [((values[:, i] - values[:, j]) ** 2).sum() for i, j in panel.pairs]
    return np.asarray(np.sqrt(np.array(squares)) / total)


def _sampled_sd(panel: Panel, metrics: list[int]) -> NDArray[np.float64]:
    """Score shuffled sums made by plain products, shape (n_pairs, len(metrics))."""
    n_units = int(panel.addresses.max()) + 1
    step = max(min(TRIALS, _BITS_AT_ONCE // n_units), 1)
    flat = panel.values.reshape(len(panel.values), -1).astype(np.float64)  # exact below 2**53
    squares = np.zeros((len(panel.pairs), len(metrics)))
    for first in range(0, TRIALS, step):
        n_trials = min(step, TRIALS - first)
        bits = swap_bits(panel.key, run=0, first=first, n_trials=n_trials, n_units=n_units)[:, panel.addresses]
        moved = (bits.astype(np.float64) @ flat).reshape(n_trials, *panel.totals.shape).astype(np.int64)
        for p, (i, j) in enumerate(panel.pairs):
            shift = moved[:, j] - moved[:, i]
            for place, m in enumerate(metrics):
                score = panel.metrics[m].form.score
                difference = score(panel.sums(m, panel.totals[i] + shift)) - score(
                    panel.sums(m, panel.totals[j] - shift)
                )
                squares[p, place] += (difference**2).sum()
    return np.sqrt(squares / TRIALS)


def shifted(counts: Counts, metric: BoundMetric, baseline: str, margin: float) -> Counts | None:
    """Return item scores with every system but the baseline moved by the margin in the better direction.

    Where a system's score is worse than the baseline's by the margin, item by item, the two are
    exchangeable in what is returned, so that a one-sided test of its `mean` tests non-inferiority. None
    where the metric is no mean over items that all systems share.

    Parameters
    ----------
    counts : Counts
        The aligned systems.
    metric : BoundMetric
        Bound to `counts`.
    baseline : str
        The system that is not moved.
    margin : float
        On the metric's scale, above 0.
    """
    form = metric.form
    if not isinstance(form, Ratios) or len(form.numerators) != 1:
        return None
    shape = (counts.n_items, counts.n_systems)
    fields = [np.broadcast_to(metric.field(name, counts), shape) for name in metric.fields]
    above = sum((w * f for w, f in zip(form.numerators[0], fields, strict=True)), np.zeros(shape))
    below = sum((w * f for w, f in zip(form.denominators[0], fields, strict=True)), np.zeros(shape))
    if not (below == below[:, :1]).all():
        return None
    decimals = all(Scale.of(column).digits is not None for column in (*above.T, np.array([margin])))
    sign = 1 if metric.higher_is_better else -1
    moved = np.array([name != baseline for name in counts.systems])
    scores = above + sign * margin * below * moved
    items = below[:, :1]
    return replace(
        counts,
        fields={
            "score": np.round(scores, MOST_DIGITS) if decimals else scores,
            "items": items.astype(np.int64) if (items == np.rint(items)).all() else items,
        },
        labels=(),
        predicted_labels=(),
        outputs=None,
        suggested=("mean",),
    )


def normal_p(difference: float, sd: float) -> float:
    """Return P(Z >= difference / sd), the one-sided p of a difference with this standard error.

    Examples
    --------
    >>> round(normal_p(1.96, 1.0), 4)
    0.025
    """
    if sd == 0:
        return 0.0 if difference > 0 else 1.0
    return 0.5 * math.erfc(difference / sd / math.sqrt(2))
