"""Scores of sets of labels: of whole sets, of single decisions, and means over the items.

The names are those of scikit-learn's multilabel metrics and of Tsoumakas & Katakis 2007, "Multi-label classification".
Averages over labels take the labels of the gold data, as everywhere; means over items compare whole sets.
"""

from __future__ import annotations

from functools import partial

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.identity import known_as
from sigdask.metrics.base import BoundMetric, Metric, Spec
from sigdask.metrics.forms import Ratios
from sigdask.metrics.ratios import JACCARD, labels_of, of_counts


def subset_accuracy(spec: Spec) -> Metric:
    """Share of items whose sets are the same."""
    spec.only()
    return Metric(spec.name, partial(_subset, spec.name))


def hamming_loss(spec: Spec) -> Metric:
    """Share of wrong decisions, one an item and label of the gold data (option labels=A+B); of single labels, items."""
    spec.only("labels")
    return Metric(spec.name, partial(_hamming, spec))


def jaccard(spec: Spec) -> Metric:
    """Mean over the items of labels in both sets / labels in either; jaccard[LABEL] of the items of one label."""
    if spec.label is not None:
        return of_counts(spec, JACCARD)
    return samples(spec)


def samples(spec: Spec) -> Metric:
    """Mean over the items of each one's own precision, recall, F1 or Jaccard index."""
    spec.only("zero_division")
    kind = spec.base.removeprefix("samples-")
    return Metric(spec.name, partial(_samples, spec.name, f"samples[{kind}]{':1' if spec.zero_division() else ''}"))


@known_as("sigdask.metrics.label_sets:_subset")
def _subset(name: str, counts: Counts) -> BoundMetric:
    if "correct" not in counts.fields or ("tp" in counts.fields and "known" not in counts.fields):
        raise _no_sets(name, counts)
    return BoundMetric(name, ("correct", "items"), Ratios(((1, 0),), ((0, 1),)))


@known_as("sigdask.metrics.label_sets:_samples")
def _samples(name: str, field: str, counts: Counts) -> BoundMetric:
    if field not in counts.fields:
        raise _no_sets(name, counts)
    return BoundMetric(name, (field, "items"), Ratios(((1, 0),), ((0, 1),)))


@known_as("sigdask.metrics.label_sets:_hamming")
def _hamming(spec: Spec, counts: Counts) -> BoundMetric:
    if "known" not in counts.fields and "correct" in counts.fields and "tp" not in counts.fields:  # a label an item
        return BoundMetric(spec.name, ("correct", "items"), Ratios(((-1, 1),), ((0, 1),)), higher_is_better=False)
    if "known" not in counts.fields:
        raise _no_sets(spec.name, counts)
    labels = labels_of(spec, counts)
    if "labels" not in spec.options:
        form = Ratios(((-2, 1, 1, 0),), ((0, 0, 0, len(labels)),))
        return BoundMetric(spec.name, ("tp", "known", "gold", "items"), form, higher_is_better=False)
    fields = [f"{kind}[{label}]" for label in labels for kind in ("tp", "predicted", "gold")]
    form = Ratios(((-2, 1, 1) * len(labels) + (0,),), ((0, 0, 0) * len(labels) + (len(labels),),))
    return BoundMetric(spec.name, (*fields, "items"), form, higher_is_better=False)


def _no_sets(name: str, counts: Counts) -> InputError:
    listed = ", ".join(list(counts.fields)[:6])
    return InputError(
        f"metric {name!r} needs sets of labels: lists in JSON, or cells such as a|b read by --format "
        f"'labels:separator=|'; these data have: {listed}"
    )
