"""Type-level precision, recall and F: a system's set of distinct terms compared with the gold set.

A set measure: a term counts once, wherever and however often it was given, so its score is no sum
over items.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.identity import known_as
from sigdask.metrics.base import BoundSets, Metric, Spec
from sigdask.metrics.forms import Ratios
from sigdask.metrics.ratios import PRECISION, RECALL, Weights, compute_f_weights


def type_precision(spec: Spec) -> Metric:
    """Return the metric type-level precision: distinct correct terms / distinct terms that the system gives."""
    return _build_metric(spec, PRECISION)


def type_recall(spec: Spec) -> Metric:
    """Return the metric type-level recall: distinct correct terms / distinct gold terms."""
    return _build_metric(spec, RECALL)


def type_f1(spec: Spec) -> Metric:
    """Return the metric type-level F1: the harmonic mean of type-level precision and recall."""
    return _build_metric(spec, compute_f_weights(Fraction(1)))


def _build_metric(spec: Spec, weights: Weights) -> Metric:
    spec.check_options("zero_division")
    form = Ratios((weights[0],), (weights[1],), spec.get_zero_division())
    return Metric(spec.name, partial(_bind, spec.name, form))


@known_as("sigdask.metrics.types:_bind")
def _bind(name: str, form: Ratios, counts: Counts) -> BoundSets:
    if not has_sets(counts):
        present_fields = ", ".join(list(counts.fields)[:6])
        raise InputError(
            f"metric {name!r} needs a list of terms for each item (format terms); these data have: {present_fields}"
        )
    return BoundSets(name, form)


def has_sets(counts: Counts) -> bool:
    """Return whether all outputs and gold items are sets of texts."""
    if counts.outputs is None or counts.outputs.gold is None:
        return False
    columns = (counts.outputs.gold, *counts.outputs.systems)
    return all(isinstance(terms, frozenset) for column in columns for terms in column) and all(
        isinstance(term, str) for column in columns for terms in column for term in terms
    )
