"""How far shuffled differences spread, and data shifted by a margin: what gates need beside p-values.

The swap standard deviation is that of the shuffled difference under the null. To first order it is the
standard error of the observed difference, and it errs to the wide side, since the differences of units
are not centred before they are squared.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.lattice import MOST_DIGITS, Scale
from sigdask.counts.precision import Numbers
from sigdask.deviations import swap_deviations
from sigdask.kernels.presence import distinct_terms, scores_of
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.outputs import OutputsPanel
from sigdask.panels import Panel
from sigdask.presence import PresencePanel

ComparedPanel = Panel | PresencePanel | OutputsPanel

BLACK_BOX_TRIALS = 256
"""Trials from which a black box's deviation is taken, since each is slow: known to 4.4 %."""


SET_TRIALS = 4096
"""Trials from which the deviation of a set metric is taken: known to 1.1 %."""


def swap_sd(panel: ComparedPanel) -> NDArray[np.float64]:
    """Return the standard deviation of the shuffled difference, shape (n_pairs, n_metrics).

    Exact for scores that are means, linearised for other sums; of set metrics and black boxes over the
    first trials of the first run, so that it is as repeatable as the counts.
    """
    if isinstance(panel, OutputsPanel):
        scores = np.array([panel.score(bits) for bits in panel.swaps(run=0, first=0, n_trials=BLACK_BOX_TRIALS)])
        return np.array([[_root_mean_square(scores[:, 0] - scores[:, 1])]])
    if isinstance(panel, PresencePanel):
        return _of_sets(panel)
    return np.column_stack([swap_deviations(panel, m) for m in range(len(panel.metrics))])


def _of_sets(panel: PresencePanel) -> NDArray[np.float64]:
    found = np.zeros(panel.shape)
    n_gold = int(panel.totals[0, 2])
    for p, terms in distinct_terms(panel, run=0, first=0, n_trials=SET_TRIALS):
        for m, metric in enumerate(panel.metrics):
            a, b = scores_of(terms, n_gold, metric.form)
            found[p, m] += float(((a - b) ** 2).sum())
    return np.sqrt(found / SET_TRIALS)


def _root_mean_square(differences: NDArray[np.float64]) -> float:
    """Return the spread about 0, which is the mean of shuffled differences."""
    return float(np.sqrt(np.mean(differences**2)))


def shares(counts: Counts, metric: BoundMetric) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return what each item adds to a mean and how much it weighs, or None where the metric is no mean.

    Parameters
    ----------
    counts : Counts
        The aligned systems.
    metric : BoundMetric
        Bound to `counts`.

    Returns
    -------
    (float64 array, shape (n_items, n_systems); float64 array, shape (n_items, 1)), or None
        A mean is the sum of the first over that of the second, which all systems share.
    """
    form = metric.form
    if not isinstance(form, Ratios) or len(form.numerators) != 1:
        return None
    shape = (counts.n_items, counts.n_systems)
    fields = [np.broadcast_to(metric.field(name, counts), shape) for name in metric.fields]
    above = sum((w * f for w, f in zip(form.numerators[0], fields, strict=True)), np.zeros(shape))
    below = sum((w * f for w, f in zip(form.denominators[0], fields, strict=True)), np.zeros(shape))
    return (above, below[:, :1]) if (below == below[:, :1]).all() else None


def shifted(
    counts: Counts, metric: BoundMetric, baseline: str, margins: Mapping[str, Sequence[float]]
) -> tuple[Counts, dict[tuple[str, float], str]] | None:
    """Return item scores of the baseline, and of systems moved by margins in the better direction.

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
    margins : mapping of str to sequence of float
        By how much each of the others is moved, on the metric's scale.

    Returns
    -------
    (Counts, mapping of (system, margin) to str), or None
        The moved scores, and what each moved system is called there.
    """
    found = shares(counts, metric)
    if found is None:
        return None
    above, items = found
    place = {name: k for k, name in enumerate(counts.systems)}
    moves = [(name, margin) for name, own in margins.items() for margin in dict.fromkeys(own)]
    columns = [place[baseline], *(place[name] for name, _ in moves)]
    by = np.array([0.0, *(margin for _, margin in moves)]) * (1 if metric.higher_is_better else -1)
    decimals = all(Scale.of(column).digits is not None for column in (*above[:, columns].T, by))
    scores = above[:, columns] + by * items
    rounding = _rounding(counts, metric)[columns]
    names = {move: f"{move[0]} within {float(move[1])!r}" for move in moves}
    data = replace(
        counts,
        systems=(baseline, *names.values()),
        fields=Numbers(
            {
                "score": np.round(scores, MOST_DIGITS) if decimals else scores,
                "items": items.astype(np.int64) if (items == np.rint(items)).all() else items,
            },
            {"score": tuple(rounding.tolist())} if rounding.any() else {},
        ),
        present=None if counts.present is None else counts.present[:, columns],
        labels=(),
        predicted_labels=(),
        held={} if metric.held is None else {"score": metric.held[:, columns]},
        outputs=None,
        replicates=(),
        suggested=("mean",),
    )
    return data, names


def _rounding(counts: Counts, metric: BoundMetric) -> NDArray[np.float64]:
    """Return how far what an item adds to a mean may lie from what was meant, shape (n_systems,)."""
    form = metric.form
    assert isinstance(form, Ratios)
    off = [np.array(metric.rounding(name, counts)) for name in metric.fields]
    return sum((abs(w) * r for w, r in zip(form.numerators[0], off, strict=True)), np.zeros(counts.n_systems))


def normal_p(difference: float, sd: float) -> float:
    """Return P(Z >= difference / sd), the one-sided p of a difference with this standard error.

    Examples
    --------
    >>> round(normal_p(1.96, 1.0), 4)
    0.025
    """
    if sd == 0:  # nothing tells how far differences spread, so nothing is shown
        return 1.0
    return max(0.5 * math.erfc(difference / sd / math.sqrt(2)), sys.float_info.min)  # no p is 0
