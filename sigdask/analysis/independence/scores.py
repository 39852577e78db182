"""What a metric makes of the agreements of two labellings whose margins stay.

Precision, recall and F of a label, accuracy, micro and macro averages, kappa and Matthews' correlation: all are then a
constant and a weight for each agreement, so that they are compared in whole numbers. A metric of another shape is
scored by its own form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import TIE
from sigdask.errors import InputError
from sigdask.metrics.agreement import cohen, gorodkin
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets
from sigdask.metrics.forms import Formula, Ratios
from sigdask.randomization.panels.permuted import AgreementScore
from sigdask.statistics.matchings import LabelMargins

LARGEST = 2**60
"""Of weighted agreements, so that two-sided limits stay within 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelScore:
    """A score of two labellings.

    Attributes
    ----------
    value : float
        As it is.
    expected : float
        Where every agreement is as frequent as independence leads to expect; of the metrics named above the mean over
        all arrangements.
    agreeing : AgreementScore
        How arrangements are compared with it.
    is_fixed : bool
        Whether no arrangement scores otherwise.
    """

    value: float
    expected: float
    agreeing: AgreementScore
    is_fixed: bool


def score_of(
    metric: BoundMetric | BoundSets | BlackBox,
    labels: Sequence[str],
    strata: Sequence[LabelMargins],
    agreed: Sequence[int],
) -> LabelScore:
    """Score the agreement of two labellings.

    Parameters
    ----------
    metric : BoundMetric
        One that sums counts of labels.
    labels : sequence of str
        All labels.
    strata : sequence of LabelMargins
        How often both give each label in each stratum.
    agreed : sequence of int
        In how many items of each label they agree.
    """
    if not isinstance(metric, BoundMetric) or metric.own:
        raise InputError(
            f"metric {metric.name!r}: independence takes metrics that sum counts of labels (accuracy, kappa, mcc, "
            "precision[LABEL], macro-f1, a @sigdask.metric of them), not those of whole outputs"
        )
    fixed, columns = _sums(metric.fields, labels, strata)
    frequent = [_expected(strata, k) for k in range(len(labels))]
    value, expected = (float(metric.form.score(fixed + columns @ np.array(x, float))) for x in (agreed, frequent))
    weights = _weights(metric.form, fixed, columns)
    if weights is None:
        limits = _limits(value, expected, 2 * float(TIE) * (2 * abs(expected) + abs(value)))
        agreeing = AgreementScore(columns, limits, metric.form, fixed)
    else:
        agreeing = _weighted(_of_two(weights), agreed, frequent, strata)
    counting = [k for part in agreeing.parts for k in part]
    return LabelScore(value, expected, agreeing, is_fixed=not any(own.may_vary(k) for own in strata for k in counting))


def _expected(strata: Sequence[LabelMargins], k: int) -> Fraction:
    """Return in how many items of a label independent labellings agree, on average."""
    by_size: dict[int, int] = {}
    for own in strata:
        by_size[own.n_items] = by_size.get(own.n_items, 0) + own.given[k] * own.meant[k]
    return sum((Fraction(n, size) for size, n in by_size.items()), Fraction(0))


def _sums(
    fields: Sequence[str], labels: Sequence[str], strata: Sequence[LabelMargins]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what stays of each field's sum, and what an agreement in each label adds to it."""
    place = {label: k for k, label in enumerate(labels)}
    fixed, columns = np.zeros(len(fields), np.int64), np.zeros((len(fields), len(labels)), np.int64)
    for f, field in enumerate(fields):
        kind, _, label = field.partition("[")
        k = place.get(label[:-1], -1)
        if kind == "items":
            fixed[f] = sum(own.n_items for own in strata)
        elif kind == "correct":
            columns[f] = 1
        elif kind == "tp":
            columns[f, k] = 1
        else:
            fixed[f] = sum((own.given if kind == "predicted" else own.meant)[k] for own in strata)
    return fixed, columns


def _weights(form: Any, fixed: NDArray[np.int64], columns: NDArray[np.int64]) -> list[Fraction] | None:
    """Return what an agreement in each label adds to the score, up to a factor; None where it hangs on others."""
    if isinstance(form, Formula) and form.function in {cohen, gorodkin}:  # both rise with the number right
        most = fixed + (np.arange(len(fixed)) == 0) * fixed[1]
        return [Fraction(int(form.score(most) != form.score(fixed)))] * columns.shape[1]
    if not isinstance(form, Ratios):
        return None
    found = [Fraction(0)] * columns.shape[1]
    for above, below in zip(np.array(form.numerators), np.array(form.denominators), strict=True):
        if (below @ columns).any():
            return None
        whole = int(below @ fixed)
        if whole:  # 0/0 is a constant
            found = [w + Fraction(int(own), whole) for w, own in zip(found, above @ columns, strict=True)]
    return found


def _of_two(weights: list[Fraction]) -> list[Fraction]:
    """Count one of two labels: the items of the other in which both agree are then as many, but for a constant."""
    return [weights[0] + weights[1], Fraction(0)] if len(weights) == 2 else weights


def _weighted(
    weights: list[Fraction], agreed: Sequence[int], frequent: Sequence[Fraction | int], strata: Sequence[LabelMargins]
) -> AgreementScore:
    scale = math.lcm(*(w.denominator for w in weights))
    whole = [int(w * scale) for w in weights]
    factor = math.gcd(*whole) or 1
    whole = [w // factor for w in whole]
    observed = sum(w * n for w, n in zip(whole, agreed, strict=True))
    expected = sum((w * n for w, n in zip(whole, frequent, strict=True)), Fraction(0))
    most = sum(own.n_items for own in strata) * max(map(abs, whole))
    nothing = np.zeros(1, np.int64)
    if most < LARGEST:
        at_least, at_most, above, below = _limits(observed, expected, 0)
        return AgreementScore(
            np.array([whole]), (at_least, at_most, math.ceil(above), math.floor(below)), None, nothing
        )
    columns = np.array([[w / most for w in whole]])
    return AgreementScore(columns, _limits(observed / most, float(expected / most), 4 * float(TIE)), None, nothing)


def _limits(observed: Any, expected: Any, tie: Any) -> tuple[Any, Any, Any, Any]:
    """Return from where on values are at least as large, as small, and as far from what is expected on either side."""
    other = 2 * expected - observed
    return observed - tie, observed + tie, max(observed, other) - tie, min(observed, other) + tie
