"""Scores of label sets: of whole sets, of single decisions, and means over items.

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
from sigdask.metrics.ratios import JACCARD, build_counts_metric, select_labels


def subset_accuracy(spec: Spec) -> Metric:
    """Return the metric subset accuracy: the share of items whose label set equals the gold set."""
    spec.check_options()
    return Metric(spec.name, partial(_bind_subset, spec.name))


def hamming_loss(spec: Spec) -> Metric:
    """Return the metric Hamming loss: the share of (item, label) pairs that are wrong (option labels=A+B).

    With one label per item it is the share of wrong items.
    """
    spec.check_options("labels")
    return Metric(spec.name, partial(_bind_hamming, spec))


def jaccard(spec: Spec) -> Metric:
    """Return the metric Jaccard index: over items, the mean of shared labels / labels in either set.

    For `jaccard[LABEL]` it is the Jaccard index of the sets of items with that label.
    """
    if spec.label is not None:
        return build_counts_metric(spec, JACCARD)
    return samples(spec)


def samples(spec: Spec) -> Metric:
    """Return the metric that is the mean over items of each item's own precision, recall, F1 or Jaccard index."""
    spec.check_options("zero_division")
    kind = spec.base.removeprefix("samples-")
    return Metric(
        spec.name, partial(_bind_samples, spec.name, f"samples[{kind}]{':1' if spec.get_zero_division() else ''}")
    )


@known_as("sigdask.metrics.label_sets:_subset")
def _bind_subset(name: str, counts: Counts) -> BoundMetric:
    if "correct" not in counts.fields or ("tp" in counts.fields and "known" not in counts.fields):
        raise _build_no_sets_error(name, counts)
    return BoundMetric(name, ("correct", "items"), Ratios(((1, 0),), ((0, 1),)))


@known_as("sigdask.metrics.label_sets:_samples")
def _bind_samples(name: str, field: str, counts: Counts) -> BoundMetric:
    if field not in counts.fields:
        raise _build_no_sets_error(name, counts)
    return BoundMetric(name, (field, "items"), Ratios(((1, 0),), ((0, 1),)))


@known_as("sigdask.metrics.label_sets:_hamming")
def _bind_hamming(spec: Spec, counts: Counts) -> BoundMetric:
    if "known" not in counts.fields and "correct" in counts.fields and "tp" not in counts.fields:  # a label an item
        return BoundMetric(spec.name, ("correct", "items"), Ratios(((-1, 1),), ((0, 1),)), higher_is_better=False)
    if "known" not in counts.fields:
        raise _build_no_sets_error(spec.name, counts)
    labels = select_labels(spec, counts)
    if "labels" not in spec.options:
        form = Ratios(((-2, 1, 1, 0),), ((0, 0, 0, len(labels)),))
        return BoundMetric(spec.name, ("tp", "known", "gold", "items"), form, higher_is_better=False)
    fields = [f"{kind}[{label}]" for label in labels for kind in ("tp", "predicted", "gold")]
    form = Ratios(((-2, 1, 1) * len(labels) + (0,),), ((0, 0, 0) * len(labels) + (len(labels),),))
    return BoundMetric(spec.name, (*fields, "items"), form, higher_is_better=False)


def _build_no_sets_error(name: str, counts: Counts) -> InputError:
    present_fields = ", ".join(list(counts.fields)[:6])
    return InputError(
        f"metric {name!r} needs sets of labels: lists in JSON, or cells such as a|b read by --format "
        f"'labels:separator=|'; these data have: {present_fields}"
    )
