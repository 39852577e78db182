"""Means, accuracy, precision, recall and F, of one label or of all, micro and macro.

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


def f_weights(beta: Fraction) -> Weights:
    """Return the integer weights of F_beta.

    Examples
    --------
    >>> f_weights(Fraction(1, 2))
    ((5, 0, 0), (0, 4, 1))
    """
    p, q = beta.numerator**2, beta.denominator**2
    return ((p + q, 0, 0), (0, q, p))


KINDS: dict[str, Weights] = {
    "precision": PRECISION,
    "recall": RECALL,
    "f1": f_weights(Fraction(1)),
    "jaccard": JACCARD,
}


def mean(spec: Spec) -> Metric:
    """Mean of the item scores; mean[COLUMN] of one of several (option better=higher|lower)."""
    spec.only("better", label=True)
    better = spec.options.get("better", "higher")
    if better not in {"higher", "lower"}:
        raise InputError(f"metric {spec.name!r}: better = {better!r} must be higher or lower")
    field = "score" if spec.label is None else f"score[{spec.label}]"
    return Metric(spec.name, partial(_share, spec.name, field, higher_is_better=better == "higher"))


def accuracy(spec: Spec) -> Metric:
    """Share of items labelled right."""
    spec.only()
    return Metric(spec.name, partial(_share, spec.name, "correct"))


def precision(spec: Spec) -> Metric:
    """Correct responses over all responses."""
    return of_counts(spec, PRECISION)


def recall(spec: Spec) -> Metric:
    """Correct responses over the gold items."""
    return of_counts(spec, RECALL)


def f1(spec: Spec) -> Metric:
    """Harmonic mean of precision and recall."""
    return of_counts(spec, f_weights(Fraction(1)))


def f_beta(spec: Spec) -> Metric:
    """F with recall weighted beta times as much as precision (option beta, default 1)."""
    return of_counts(spec, _beta_weights(spec), "beta")


def averaged(spec: Spec) -> Metric:
    """Micro or macro average over labels (option labels=A+B, default the labels of the gold data)."""
    average, _, rest = spec.base.partition("-")
    spec.only("labels", "zero_division", *(["beta"] if rest == "f" else []))
    weights = KINDS.get(rest) or _beta_weights(spec)
    bind = _macro if average == "macro" else _micro
    return Metric(spec.name, partial(bind, spec, weights))


def labels_of(spec: Spec, counts: Counts) -> tuple[str, ...]:
    """Return the labels averaged over: those asked for, or those of the gold data."""
    if not counts.labels:
        raise InputError(f"metric {spec.name!r} averages over labels, and these data have none")
    if "labels" not in spec.options:
        return counts.labels
    asked = tuple(spec.options["labels"].split("+"))
    for label in asked:
        known_label(spec.name, label, counts)
    return asked


def known_label(name: str, label: str, counts: Counts) -> None:
    """Refuse a label that neither gold nor systems have."""
    if label not in counts.labels + counts.predicted_labels:
        raise InputError(f"metric {name!r}: no label {label!r}; labels of the gold data: {', '.join(counts.labels)}")


def _beta_weights(spec: Spec) -> Weights:
    text = spec.number("beta", "1")
    weights = f_weights(Fraction(text))
    if weights[0][0] > LARGEST_WEIGHT:
        raise InputError(f"metric {spec.name!r}: beta = {text}: too many digits for exact sums of integers")
    return weights


@known_as("sigdask.metrics.ratios:_share")
def _share(name: str, of: str, counts: Counts, *, higher_is_better: bool = True) -> BoundMetric:
    if of not in counts.fields:
        if columns := [field[6:-1] for field in counts.fields if field.startswith("score[")]:
            raise InputError(f"metric {name!r}: name one of the columns of scores: {', '.join(columns)}")
        has = "labels (formats labels, conll, ...)" if of == "correct" else "item scores (formats wide, long, ...)"
        raise InputError(f"metric {name!r} needs {has}; these data have: {_list(counts)}")
    own = of.replace("score[", "items[")  # what items count in this column of scores, where that differs
    items = own if own != of and own in counts.fields else "items"
    return BoundMetric(name, (of, items), Ratios(((1, 0),), ((0, 1),)), higher_is_better)


def of_counts(spec: Spec, weights: Weights, *options: str) -> Metric:
    """Return the metric of weighted counts of responses, or of one label."""
    spec.only("zero_division", *options, label=True)
    spec.zero_division()
    return Metric(spec.name, partial(_single, spec, weights))


@known_as("sigdask.metrics.ratios:_single")
def _single(spec: Spec, weights: Weights, counts: Counts) -> BoundMetric:
    if spec.label is not None:
        known_label(spec.name, spec.label, counts)
    fields = _fields(spec.label)
    if fields[0] not in counts.fields:
        if counts.labels:
            raise InputError(
                f"metric {spec.name!r}: name a label, as in '{spec.base}[{counts.labels[0]}]', or average: "
                f"macro-f1, micro-f1; labels: {', '.join(counts.labels)}"
            )
        raise InputError(f"metric {spec.name!r} needs responses or labels; these data have: {_list(counts)}")
    used = [k for k in range(3) if weights[0][k] or weights[1][k]]
    form = Ratios((tuple(weights[0][k] for k in used),), (tuple(weights[1][k] for k in used),), spec.zero_division())
    return BoundMetric(spec.name, tuple(fields[k] for k in used), form)


@known_as("sigdask.metrics.ratios:_macro")
def _macro(spec: Spec, weights: Weights, counts: Counts) -> BoundMetric:
    labels = labels_of(spec, counts)
    fields = tuple(name for label in labels for name in _fields(label))

    def rows(part: tuple[int, int, int]) -> tuple[tuple[int, ...], ...]:
        n = len(labels)
        return tuple((0,) * (3 * k) + part + (0,) * (3 * (n - 1 - k)) for k in range(n))

    return BoundMetric(spec.name, fields, Ratios(rows(weights[0]), rows(weights[1]), spec.zero_division()))


@known_as("sigdask.metrics.ratios:_micro")
def _micro(spec: Spec, weights: Weights, counts: Counts) -> BoundMetric:
    labels = labels_of(spec, counts)
    if "known" in counts.fields and "labels" not in spec.options:  # sets of labels, already summed over those of gold
        form = Ratios((weights[0],), (weights[1],), spec.zero_division())
        return BoundMetric(spec.name, ("tp", "known", "gold"), form)
    fields = tuple(name for label in labels for name in _fields(label))
    n = len(labels)
    form = Ratios((weights[0] * n,), (weights[1] * n,), spec.zero_division())
    return BoundMetric(spec.name, fields, form)


def _fields(label: str | None) -> tuple[str, str, str]:
    if label is None:
        return ("tp", "predicted", "gold")
    return (f"tp[{label}]", f"predicted[{label}]", f"gold[{label}]")


def _list(counts: Counts) -> str:
    return ", ".join(list(counts.fields)[:6])
