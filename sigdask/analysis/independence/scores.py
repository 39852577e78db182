"""Scores of the agreement of two labellings, when the frequency of each label in both is fixed.

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
from sigdask.metrics.agreement import compute_kappa, compute_mcc
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets
from sigdask.metrics.forms import Formula, Ratios
from sigdask.randomization.panels.permuted import AgreementScore
from sigdask.statistics.matchings import LabelMargins

MAX_WEIGHTED = 2**60
"""Of weighted agreements, so that two-sided limits stay within 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelScore:
    """A score of the agreement of two labellings, with its value under independence.

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


def score_labels(
    metric: BoundMetric | BoundSets | BlackBox,
    labels: Sequence[str],
    strata: Sequence[LabelMargins],
    agreements: Sequence[int],
) -> LabelScore:
    """Return the score of the agreement of two labellings under a metric.

    Parameters
    ----------
    metric : BoundMetric
        One that sums counts of labels.
    labels : sequence of str
        All labels.
    strata : sequence of LabelMargins
        How often both give each label in each stratum.
    agreements : sequence of int
        In how many items of each label they agree.
    """
    if not isinstance(metric, BoundMetric) or metric.own:
        raise InputError(
            f"metric {metric.name!r}: independence takes metrics that sum counts of labels (accuracy, kappa, mcc, "
            "precision[LABEL], macro-f1, a @sigdask.metric of them), not those of whole outputs"
        )
    fixed, columns = _split_sums(metric.fields, labels, strata)
    frequent = [_compute_expected(strata, k) for k in range(len(labels))]
    value, expected = (float(metric.form.score(fixed + columns @ np.array(x, float))) for x in (agreements, frequent))
    weights = _compute_weights(metric.form, fixed, columns)
    if weights is None:
        limits = _compute_limits(value, expected, 2 * float(TIE) * (2 * abs(expected) + abs(value)))
        agreeing = AgreementScore(columns, limits, metric.form, fixed)
    else:
        agreeing = _build_weighted(_reduce_two_labels(weights), agreements, frequent, strata)
    counting = [k for group in agreeing.parts for k in group]
    return LabelScore(
        value, expected, agreeing, is_fixed=not any(stratum.can_vary(k) for stratum in strata for k in counting)
    )


def _compute_expected(strata: Sequence[LabelMargins], k: int) -> Fraction:
    """Return the expected number of items to which two independent labellings both give label `k`."""
    by_size: dict[int, int] = {}
    for stratum in strata:
        by_size[stratum.n_items] = by_size.get(stratum.n_items, 0) + stratum.given[k] * stratum.meant[k]
    return sum((Fraction(n, size) for size, n in by_size.items()), Fraction(0))


def _split_sums(
    fields: Sequence[str], labels: Sequence[str], strata: Sequence[LabelMargins]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each field, the part of its sum that no arrangement changes, and what each agreement adds."""
    index_of = {label: k for k, label in enumerate(labels)}
    fixed, columns = np.zeros(len(fields), np.int64), np.zeros((len(fields), len(labels)), np.int64)
    for f, field in enumerate(fields):
        kind, _, label = field.partition("[")
        k = index_of.get(label[:-1], -1)
        if kind == "items":
            fixed[f] = sum(stratum.n_items for stratum in strata)
        elif kind == "correct":
            columns[f] = 1
        elif kind == "tp":
            columns[f, k] = 1
        else:
            fixed[f] = sum((stratum.given if kind == "predicted" else stratum.meant)[k] for stratum in strata)
    return fixed, columns


def _compute_weights(form: Any, fixed: NDArray[np.int64], columns: NDArray[np.int64]) -> list[Fraction] | None:
    """Return the weight in the score of an agreement on each label, up to a common factor.

    None if the weights depend on the other agreements.
    """
    if isinstance(form, Formula) and form.function in {compute_kappa, compute_mcc}:  # both rise with the number right
        all_right = fixed + (np.arange(len(fixed)) == 0) * fixed[1]
        return [Fraction(int(form.score(all_right) != form.score(fixed)))] * columns.shape[1]
    if not isinstance(form, Ratios):
        return None
    weights = [Fraction(0)] * columns.shape[1]
    for above, below in zip(np.array(form.numerators), np.array(form.denominators), strict=True):
        if (below @ columns).any():
            return None
        denominator = int(below @ fixed)
        if denominator:  # 0/0 is a constant
            weights = [
                w + Fraction(int(numerator), denominator) for w, numerator in zip(weights, above @ columns, strict=True)
            ]
    return weights


def _reduce_two_labels(weights: list[Fraction]) -> list[Fraction]:
    """Return the weights with those of two labels merged into the first, as either agreement determines the other."""
    return [weights[0] + weights[1], Fraction(0)] if len(weights) == 2 else weights


def _build_weighted(
    weights: list[Fraction], agreed: Sequence[int], frequent: Sequence[Fraction | int], strata: Sequence[LabelMargins]
) -> AgreementScore:
    scale = math.lcm(*(w.denominator for w in weights))
    integers = [int(w * scale) for w in weights]
    factor = math.gcd(*integers) or 1
    integers = [w // factor for w in integers]
    observed = sum(w * n for w, n in zip(integers, agreed, strict=True))
    expected = sum((w * n for w, n in zip(integers, frequent, strict=True)), Fraction(0))
    maximum = sum(stratum.n_items for stratum in strata) * max(map(abs, integers))
    zeros = np.zeros(1, np.int64)
    if maximum < MAX_WEIGHTED:
        at_least, at_most, above, below = _compute_limits(observed, expected, 0)
        return AgreementScore(
            np.array([integers]), (at_least, at_most, math.ceil(above), math.floor(below)), None, zeros
        )
    columns = np.array([[w / maximum for w in integers]])
    return AgreementScore(
        columns, _compute_limits(observed / maximum, float(expected / maximum), 4 * float(TIE)), None, zeros
    )


def _compute_limits(observed: Any, expected: Any, tie: Any) -> tuple[Any, Any, Any, Any]:
    """Return the thresholds from which a score is extreme: at least, at most, and, two-sided, above and below."""
    mirrored = 2 * expected - observed
    return observed - tie, observed + tie, max(observed, mirrored) - tie, min(observed, mirrored) + tie
