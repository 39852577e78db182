"""Means, accuracy, precision, recall and F: of one label, or micro and macro averages.

F_beta = (1 + beta^2) P R / (beta^2 P + R) = (1 + beta^2) tp / (beta^2 gold + predicted)
(van Rijsbergen 1979, ch. 7), kept in integers up to the one division.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.identity import known_as
from sigdask.metrics.base import BoundMetric, Metric, Spec
from sigdask.metrics.forms import Ratios

Weights = tuple[tuple[int, int, int], tuple[int, int, int]]
"""Numerator and denominator weights of (tp, predicted, gold)."""

LARGEST_WEIGHT = 10**10
"""Of a count in F_beta: 64-bit sums then hold 900 million counts."""

PRECISION: Weights = ((1, 0, 0), (0, 1, 0))
RECALL: Weights = ((1, 0, 0), (0, 0, 1))
JACCARD: Weights = ((1, 0, 0), (-1, 1, 1))


def compute_f_weights(beta: Fraction) -> Weights:
    """Return the integer weights of true positives, responses and gold items in the ratio F_beta.

    Examples
    --------
    >>> compute_f_weights(Fraction(1, 2))
    ((5, 0, 0), (0, 4, 1))
    """
    p, q = beta.numerator**2, beta.denominator**2
    return ((p + q, 0, 0), (0, q, p))


KINDS: dict[str, Weights] = {
    "precision": PRECISION,
    "recall": RECALL,
    "f1": compute_f_weights(Fraction(1)),
    "jaccard": JACCARD,
}


def mean(spec: Spec) -> Metric:
    """Return the metric that is the mean of the item scores; mean[COLUMN] for one of several columns.

    The option better=higher|lower gives the direction.
    """
    spec.check_options("better", label=True)
    better = spec.options.get("better", "higher")
    if better not in {"higher", "lower"}:
        raise InputError(f"metric {spec.name!r}: better = {better!r} must be higher or lower")
    field = "score" if spec.label is None else f"score[{spec.label}]"
    return Metric(spec.name, partial(_bind_share, spec.name, field, higher_is_better=better == "higher"))


def accuracy(spec: Spec) -> Metric:
    """Return the metric accuracy: the share of items whose label is the gold label."""
    spec.check_options()
    return Metric(spec.name, partial(_bind_share, spec.name, "correct"))


def precision(spec: Spec) -> Metric:
    """Return the metric precision: correct responses / all responses."""
    return build_counts_metric(spec, PRECISION)


def recall(spec: Spec) -> Metric:
    """Return the metric recall: correct responses / gold items."""
    return build_counts_metric(spec, RECALL)


def f1(spec: Spec) -> Metric:
    """Return the metric F1: the harmonic mean of precision and recall."""
    return build_counts_metric(spec, compute_f_weights(Fraction(1)))


def f_beta(spec: Spec) -> Metric:
    """Return the metric F_beta, with recall weighted beta times as much as precision (option beta, default 1)."""
    return build_counts_metric(spec, _parse_beta_weights(spec), "beta")


def label_average(spec: Spec) -> Metric:
    """Return the metric that averages a score over labels, micro or macro (option labels=A+B, default all of gold)."""
    average, _, kind = spec.base.partition("-")
    spec.check_options("labels", "zero_division", *(["beta"] if kind == "f" else []))
    weights = KINDS.get(kind) or _parse_beta_weights(spec)
    bind = _bind_macro if average == "macro" else _bind_micro
    return Metric(spec.name, partial(bind, spec, weights))


def select_labels(spec: Spec, counts: Counts) -> tuple[str, ...]:
    """Return the labels that a metric averages over: those its option lists, or else all labels of the gold data."""
    if not counts.labels:
        raise InputError(f"metric {spec.name!r} averages over labels, and these data have none")
    if "labels" not in spec.options:
        return counts.labels
    labels = tuple(spec.options["labels"].split("+"))
    for label in labels:
        check_label(spec.name, label, counts)
    return labels


def check_label(name: str, label: str, counts: Counts) -> None:
    """Raise InputError for a label that occurs neither in gold nor in any system's output."""
    if label not in counts.labels + counts.predicted_labels:
        raise InputError(f"metric {name!r}: no label {label!r}; labels of the gold data: {', '.join(counts.labels)}")


def _parse_beta_weights(spec: Spec) -> Weights:
    text = spec.get_number("beta", "1")
    weights = compute_f_weights(Fraction(text))
    if weights[0][0] > LARGEST_WEIGHT:
        raise InputError(f"metric {spec.name!r}: beta = {text}: too many digits for exact sums of integers")
    return weights


@known_as("sigdask.metrics.ratios:_share")
def _bind_share(name: str, field_name: str, counts: Counts, *, higher_is_better: bool = True) -> BoundMetric:
    if field_name not in counts.fields:
        if columns := [field[6:-1] for field in counts.fields if field.startswith("score[")]:
            raise InputError(f"metric {name!r}: name one of the columns of scores: {', '.join(columns)}")
        has = (
            "labels (formats labels, conll, ...)"
            if field_name == "correct"
            else "item scores (formats wide, long, ...)"
        )
        raise InputError(f"metric {name!r} needs {has}; these data have: {_format_fields(counts)}")
    items_field = field_name.replace(
        "score[", "items["
    )  # what items count in this column of scores, where that differs
    items = items_field if items_field != field_name and items_field in counts.fields else "items"
    return BoundMetric(name, (field_name, items), Ratios(((1, 0),), ((0, 1),)), higher_is_better)


def build_counts_metric(spec: Spec, weights: Weights, *options: str) -> Metric:
    """Return a metric that is a ratio of weighted counts of responses, or of one label's predictions."""
    spec.check_options("zero_division", *options, label=True)
    spec.get_zero_division()
    return Metric(spec.name, partial(_bind_single, spec, weights))


@known_as("sigdask.metrics.ratios:_single")
def _bind_single(spec: Spec, weights: Weights, counts: Counts) -> BoundMetric:
    if spec.label is not None:
        check_label(spec.name, spec.label, counts)
    fields = _list_count_fields(spec.label)
    if fields[0] not in counts.fields:
        if counts.labels:
            raise InputError(
                f"metric {spec.name!r}: name a label, as in '{spec.base}[{counts.labels[0]}]', or average: "
                f"macro-f1, micro-f1; labels: {', '.join(counts.labels)}"
            )
        raise InputError(f"metric {spec.name!r} needs responses or labels; these data have: {_format_fields(counts)}")
    used = [k for k in range(3) if weights[0][k] or weights[1][k]]
    form = Ratios(
        (tuple(weights[0][k] for k in used),), (tuple(weights[1][k] for k in used),), spec.get_zero_division()
    )
    return BoundMetric(spec.name, tuple(fields[k] for k in used), form)


@known_as("sigdask.metrics.ratios:_macro")
def _bind_macro(spec: Spec, weights: Weights, counts: Counts) -> BoundMetric:
    labels = select_labels(spec, counts)
    fields = tuple(name for label in labels for name in _list_count_fields(label))

    def rows(part: tuple[int, int, int]) -> tuple[tuple[int, ...], ...]:
        n = len(labels)
        return tuple((0,) * (3 * k) + part + (0,) * (3 * (n - 1 - k)) for k in range(n))

    return BoundMetric(spec.name, fields, Ratios(rows(weights[0]), rows(weights[1]), spec.get_zero_division()))


@known_as("sigdask.metrics.ratios:_micro")
def _bind_micro(spec: Spec, weights: Weights, counts: Counts) -> BoundMetric:
    labels = select_labels(spec, counts)
    if "known" in counts.fields and "labels" not in spec.options:  # sets of labels, already summed over those of gold
        form = Ratios((weights[0],), (weights[1],), spec.get_zero_division())
        return BoundMetric(spec.name, ("tp", "known", "gold"), form)
    fields = tuple(name for label in labels for name in _list_count_fields(label))
    n = len(labels)
    form = Ratios((weights[0] * n,), (weights[1] * n,), spec.get_zero_division())
    return BoundMetric(spec.name, fields, form)


def _list_count_fields(label: str | None) -> tuple[str, str, str]:
    if label is None:
        return ("tp", "predicted", "gold")
    return (f"tp[{label}]", f"predicted[{label}]", f"gold[{label}]")


def _format_fields(counts: Counts) -> str:
    return ", ".join(list(counts.fields)[:6])
