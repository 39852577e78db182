"""Type-level precision, recall and F: the set of distinct terms given anywhere against the gold set.

A set measure: a term counts once, wherever and however often it was given, so its score is no sum
over items.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sigdask.metrics.base import BlackBox, Spec
from sigdask.metrics.forms import Ratios
from sigdask.metrics.ratios import PRECISION, RECALL, Weights, f_weights


def type_precision(spec: Spec) -> BlackBox:
    """Distinct right terms over the distinct terms given."""
    return _of_types(spec, PRECISION)


def type_recall(spec: Spec) -> BlackBox:
    """Distinct right terms over the distinct gold terms."""
    return _of_types(spec, RECALL)


def type_f1(spec: Spec) -> BlackBox:
    """Harmonic mean of the two."""
    return _of_types(spec, f_weights(Fraction(1)))


def _of_types(spec: Spec, weights: Weights) -> BlackBox:
    spec.only("zero_division")
    form = Ratios((weights[0],), (weights[1],), spec.zero_division())
    return BlackBox(spec.name, partial(score_types, form))


def score_types(form: Ratios, outputs: list[Any], gold: list[Any] | None) -> float:
    """Score the distinct terms of whole outputs, sets of terms item by item.

    Examples
    --------
    >>> f1 = Ratios(((2, 0, 0),), ((0, 1, 1),))
    >>> score_types(f1, [{"bin"}, {"bin", "glass"}], [{"bin"}, {"paper"}])
    0.5
    """
    given, right = set[str]().union(*outputs), set[str]().union(*(gold or []))
    return float(form.score(np.array([len(given & right), len(given), len(right)])))
