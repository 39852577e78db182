"""Metrics of labels and label sets: accuracy, precision, recall, F, agreement, and types.

- Precision, recall and F exist for one label, and as micro and macro averages. F_beta = (1 + beta^2) P R / (beta^2 P +
  R) = (1 + beta^2) tp / (beta^2 gold + predicted) (van Rijsbergen 1979, ch. 7). All are integers up to one division.
- Matthews' correlation and Cohen's kappa allow any number of labels.
- Type-level precision, recall and F compare a system's set of distinct terms with the gold set. A term counts once,
  however often it was given, so the score is not a sum over items.
- Label sets are scored as whole sets, by single decisions, or by means over items. The names are those of
  scikit-learn's multilabel metrics and of Tsoumakas & Katakis 2007, "Multi-label classification". Averages over labels
  use the labels of the gold data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.interface import spell
from sigdask.io import split_names
from sigdask.metrics import base
from sigdask.metrics.base import BoundMetric, BoundSets, Metric, Spec, bind_fields, bind_share, build_lacking_error
from sigdask.metrics.forms import MEAN, Formula, Ratios
from sigdask.text import format_list

Weights = tuple[tuple[int, int, int], tuple[int, int, int]]
"""Weights of (true positives, predicted, gold) in the numerator and in the denominator."""

MAX_WEIGHT = 10**10
"""Maximum weight of a count in F_beta. 64-bit sums then hold 900 million counts."""


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
    "precision": ((1, 0, 0), (0, 1, 0)),
    "recall": ((1, 0, 0), (0, 0, 1)),
    "f1": compute_f_weights(Fraction(1)),
    "jaccard": ((1, 0, 0), (-1, 1, 1)),
}


def accuracy(spec: Spec) -> Metric:
    """Return the metric accuracy: the share of items whose label is the gold label."""
    spec.check_options()
    return Metric(spec.name, partial(bind_share, spec.name, "correct"))


def ratio(spec: Spec) -> Metric:
    """Return the metric precision, recall, F1 or F_beta, of all responses or of one label's predictions.

    F weighs recall beta times as much as precision (option beta of f, default 1).
    """
    weights = _get_weights(spec, spec.base)
    spec.check_options("zero_division", *(["beta"] if spec.base == "f" else []), label=True)
    spec.get_zero_division()
    return Metric(spec.name, partial(_bind_single, spec, weights))


def label_average(spec: Spec) -> Metric:
    """Return the metric that averages a score over labels, micro or macro (option labels, default all of gold)."""
    average, _, kind = spec.base.partition("-")
    spec.check_options("labels", "zero_division", *(["beta"] if kind == "f" else []))
    bind = _bind_macro if average == "macro" else _bind_micro
    return Metric(spec.name, partial(bind, spec, _get_weights(spec, kind)))


RELATION_MATCHES = ("strict", "boundaries")
"""How arguments of relations are matched: by type and offsets, or by offsets alone."""


def relation_ratio(spec: Spec) -> Metric:
    """Return the metric precision, recall or F1 of relations, of all or of one type (options average, match)."""
    spec.check_options("average", "match", "zero_division", label=True)
    spec.get_zero_division()
    average, match = spec.get_choice("average", ("micro", "macro")), spec.get_choice("match", RELATION_MATCHES)
    if spec.label is not None and average == "macro":
        raise InputError(f"metric {spec.name!r}: a macro average is over all types", remedy=f"leave out [{spec.label}]")
    return Metric(spec.name, partial(_bind_relations, spec, average, match))


def _bind_relations(spec: Spec, average: str, match: str, counts: Counts) -> BoundMetric:
    """Bind the metric of labels of the same kind to the fields of relations."""
    prefix, kind = f"relation-{match}-", spec.base.removeprefix("relation-")
    fields = {name.removeprefix(prefix): counts.field(name) for name in counts.fields if name.startswith(prefix)}
    if not fields:
        needed = "relations (format spans: brat's lines R, * and E, JSON with a list of relations)"
        raise base.build_lacking_error(spec.name, needed, counts)
    labels = [name[5:-1] for name in fields if name.startswith("gold[")]
    is_gold = [bool(fields[f"gold[{label}]"].any()) for label in labels]
    view = replace(
        counts,
        fields=fields,
        labels=tuple(label for label, known in zip(labels, is_gold, strict=True) if known),
        predicted_labels=tuple(label for label, known in zip(labels, is_gold, strict=True) if not known),
    )
    options = {name: text for name, text in spec.options.items() if name == "zero_division"}
    inner = Spec(spec.name, f"macro-{kind}" if average == "macro" else kind, spec.label, options)
    bound = (label_average if average == "macro" else ratio)(inner).bind(view)
    assert isinstance(bound, BoundMetric)
    return replace(bound, fields=tuple(prefix + name for name in bound.fields))


def select_labels(spec: Spec, counts: Counts) -> tuple[str, ...]:
    """Return the labels that a metric averages over: those its option lists, or else all labels of the gold data."""
    if not counts.labels:
        raise InputError(
            f"metric {spec.name!r} averages over labels, but these data have none", remedy="choose another metric"
        )
    if "labels" not in spec.options:
        return counts.labels
    text = spec.options["labels"]
    # the name of one label may contain a plus
    labels = (text,) if text in counts.labels + counts.predicted_labels else split_names(text)
    for label in labels:
        check_label(spec.name, label, counts)
    if not {*labels} & {*counts.labels}:
        raise InputError(f"metric {spec.name!r}: gold has 0 of its {len(labels)} labels, so every score would be 0")
    return labels


def check_label(name: str, label: str, counts: Counts) -> None:
    """Raise InputError for a label that occurs neither in gold nor in any system's output."""
    if label not in counts.labels + counts.predicted_labels:
        hint = " (labels=@FILE takes one label from each line of a file)" if ":labels=" in name else ""
        raise InputError(
            f"metric {name!r}: no label {label!r}; labels of the gold data: {format_list(counts.labels, 40)}{hint}"
        )


def _get_weights(spec: Spec, kind: str) -> Weights:
    """Return the weights of a kind of score; those of F are given by the option beta."""
    if kind in KINDS:
        return KINDS[kind]
    text = spec.get_number("beta", "1")
    weights = compute_f_weights(Fraction(text))
    if weights[0][0] > MAX_WEIGHT:
        raise InputError(f"metric {spec.name!r}: beta = {text} has too many digits; round it")
    return weights


def _bind_single(spec: Spec, weights: Weights, counts: Counts) -> BoundMetric:
    if spec.label is not None:
        check_label(spec.name, spec.label, counts)
        if spec.label not in counts.labels:
            raise InputError(f"metric {spec.name!r}: 0 labels {spec.label!r} in gold, so every score would be 0")
    fields = _list_count_fields(spec.label)
    if fields[0] not in counts.fields:
        if counts.labels:
            raise InputError(
                f"metric {spec.name!r}: name a label, as in '{spec.base}[{counts.labels[0]}]', or average: "
                f"macro-f1, micro-f1; labels: {', '.join(counts.labels)}"
            )
        raise base.build_lacking_error(spec.name, "responses or labels", counts)
    return build_ratio(spec.name, fields, weights, spec.get_zero_division())


def build_ratio(name: str, fields: Sequence[str], weights: Weights, zero_division: float = 0.0) -> BoundMetric:
    """Return the metric that is a ratio of weighted sums of right, given and gold counts."""
    used = [k for k in range(3) if weights[0][k] or weights[1][k]]
    above, below = (tuple(part[k] for k in used) for part in weights)
    return BoundMetric(name, tuple(fields[k] for k in used), Ratios((above,), (below,), zero_division))


def _bind_macro(spec: Spec, weights: Weights, counts: Counts) -> BoundMetric:
    labels = select_labels(spec, counts)
    fields = tuple(name for label in labels for name in _list_count_fields(label))

    def rows(part: tuple[int, int, int]) -> tuple[tuple[int, ...], ...]:
        n = len(labels)
        return tuple((0,) * (3 * k) + part + (0,) * (3 * (n - 1 - k)) for k in range(n))

    return BoundMetric(spec.name, fields, Ratios(rows(weights[0]), rows(weights[1]), spec.get_zero_division()))


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


Array = NDArray[Any]


def agreement(spec: Spec) -> Metric:
    """Return the metric Matthews correlation coefficient or Cohen's kappa, for any number of labels."""
    spec.check_options()
    return Metric(spec.name, partial(_bind, spec.name, AGREEMENT[spec.base]))


def compute_mcc(correct: Array, items: Array, *margins: Array) -> Array:
    """Return R_K (Gorodkin 2004, eq. 8) from sums: correct items, all items, and items by label, predicted and gold.

    0 if a margin is degenerate (one label takes all), as in scikit-learn.
    """
    predicted, gold = margins[: len(margins) // 2], margins[len(margins) // 2 :]
    above = correct * items - _dot_product(predicted, gold)
    below = np.sqrt((items * items - _dot_product(predicted, predicted)).astype(np.float64)) * np.sqrt(
        (items * items - _dot_product(gold, gold)).astype(np.float64)
    )
    return np.where(below == 0, 0.0, above / np.where(below == 0, 1.0, below))


def compute_kappa(correct: Array, items: Array, *margins: Array) -> Array:
    """Return kappa (Cohen 1960, eq. 1) from sums: correct items, all items, and items by label, predicted and gold.

    0 where chance agreement is complete (0/0).
    """
    by_chance = _dot_product(margins[: len(margins) // 2], margins[len(margins) // 2 :])
    below = items * items - by_chance
    return np.where(below == 0, 0.0, (correct * items - by_chance) / np.where(below == 0, 1, below))


AGREEMENT = {"mcc": compute_mcc, "kappa": compute_kappa}


def _dot_product(a: tuple[Array, ...], b: tuple[Array, ...]) -> Array:
    return np.asarray(sum(x * y for x, y in zip(a, b, strict=True)))


def _bind(name: str, function: Any, counts: Counts) -> BoundMetric:
    if "correct" not in counts.fields or not counts.labels:
        raise base.build_lacking_error(name, "labels", counts)
    if "tp" in counts.fields:
        raise InputError(
            f"metric {name!r} needs one label per item; these have several per item, or chunks", remedy="choose f1"
        )
    labels = counts.labels + counts.predicted_labels
    margins = tuple(f"{kind}[{label}]" for kind in ("predicted", "gold") for label in labels)
    return BoundMetric(name, ("correct", "items", *margins), Formula(name, function))


def type_ratio(spec: Spec) -> Metric:
    """Return the metric type-level precision, recall or F1: of distinct correct, given and gold terms."""
    spec.check_options("zero_division")
    above, below = KINDS[spec.base.removeprefix("type-")]
    return Metric(spec.name, partial(_bind_types, spec.name, Ratios((above,), (below,), spec.get_zero_division())))


def _bind_types(name: str, form: Ratios, counts: Counts) -> BoundSets:
    outputs = counts.outputs
    columns = () if outputs is None or outputs.gold is None else (outputs.gold, *outputs.systems)
    items = [terms for column in columns for terms in column]
    if not items or not all(isinstance(i, frozenset) and all(isinstance(term, str) for term in i) for i in items):
        raise base.build_lacking_error(name, "a list of terms for each item (format terms)", counts)
    return BoundSets(name, form)


def subset_accuracy(spec: Spec) -> Metric:
    """Return the metric subset accuracy: the share of items whose label set equals the gold set."""
    spec.check_options()
    return Metric(spec.name, partial(_bind_subset, spec.name))


def hamming_loss(spec: Spec) -> Metric:
    """Return the metric Hamming loss: the share of (item, label of gold) pairs that are wrong.

    With one label per item it is the share of wrong items.
    """
    spec.check_options()
    return Metric(spec.name, partial(_bind_hamming, spec))


def jaccard(spec: Spec) -> Metric:
    """Return the metric Jaccard index: over items, the mean of shared labels / labels in either set.

    For `jaccard[LABEL]` it is the Jaccard index of the sets of items with that label.
    """
    if spec.label is not None:
        return ratio(spec)
    return samples(spec)


def samples(spec: Spec) -> Metric:
    """Return the metric that is the mean over items of each item's own precision, recall, F1 or Jaccard index."""
    spec.check_options("zero_division")
    field = f"samples[{spec.base.removeprefix('samples-')}]{':1' if spec.get_zero_division() else ''}"
    return Metric(
        spec.name, partial(base.bind_fields, BoundMetric(spec.name, (field, "items"), MEAN), _describe_sets())
    )


def _bind_subset(name: str, counts: Counts) -> BoundMetric:
    if "correct" not in counts.fields or ("tp" in counts.fields and "known" not in counts.fields):
        raise base.build_lacking_error(name, _describe_sets(), counts)
    return BoundMetric(name, ("correct", "items"), MEAN)


def _bind_hamming(spec: Spec, counts: Counts) -> BoundMetric:
    if "known" not in counts.fields and "correct" in counts.fields and "tp" not in counts.fields:  # one label per item
        return BoundMetric(spec.name, ("correct", "items"), Ratios(((-1, 1),), ((0, 1),)), higher_is_better=False)
    if "known" not in counts.fields:
        raise base.build_lacking_error(spec.name, _describe_sets(), counts)
    form = Ratios(((-2, 1, 1, 0),), ((0, 0, 0, len(select_labels(spec, counts))),))
    return BoundMetric(spec.name, ("tp", "known", "gold", "items"), form, higher_is_better=False)


def _describe_sets() -> str:
    return f"sets of labels: lists in JSON, or cells such as a|b read by {spell('format', 'labels:separator=|')}"


WORD_METRICS: dict[str, tuple[str, str | None, str]] = {
    "LAS": (
        "words",
        "relation",
        "right head and relation; LAS[nsubj]; option score=f1|precision|recall|aligned",
    ),
    "UAS": ("words", None, "words with the right head; option score"),
    "CLAS": ("content", "relation", "LAS of content words; CLAS[nsubj]; option score"),
    "MLAS": ("content", "relation", "CLAS with right tags, features and function words; MLAS[nsubj]; option score"),
    "BLEX": ("content", "relation", "CLAS with right lemmas; BLEX[nsubj]; option score"),
    "UPOS": ("words", "upos", "words with the right universal part of speech, of parses; UPOS[NOUN]; option score"),
    "XPOS": ("words", "xpos", "words with the right part of speech of the language; XPOS[NN]; option score"),
    "UFeats": ("words", None, "words with the right universal features; option score"),
    "AllTags": ("words", None, "words with the right UPOS, XPOS and features; option score"),
    "Lemmas": ("words", None, "words with the right lemma; option score"),
    "Words": ("words", None, "words that are aligned with gold words; option score"),
    "Sentences": ("sentences", None, "sentences that are gold sentences; option score"),
    "Tokens": ("tokens", None, "tokens that are gold tokens; option score"),
}
"""Unit that each metric counts (words, content words, sentences or tokens), column of its [LABEL], and description."""

SCORES = ("f1", "precision", "recall", "aligned")
"""Ratio of counts for each score. `aligned` is right words / aligned words, the script's AligndAcc."""


def dependencies(spec: Spec) -> Metric:
    """Return the metric LAS, UAS, CLAS, MLAS or BLEX, or one of tags, lemmas or segmentation."""
    unit, column, _ = WORD_METRICS[spec.base]
    spec.check_options("score", label=column is not None)
    uses_alignment = unit not in {"tokens", "sentences"} and spec.base != "Words"
    score = spec.get_choice("score", SCORES if uses_alignment else SCORES[:3])
    return Metric(spec.name, partial(_bind_words, spec, score))


def _bind_words(spec: Spec, score: str, counts: Counts) -> BoundMetric:
    unit, column, _ = WORD_METRICS[spec.base]
    correct = f"correct[{unit if unit in {'tokens', 'sentences'} else spec.base}]"
    if correct not in counts.fields:
        raise build_lacking_error(spec.name, f"parses in CoNLL-U and {spell('gold', 'FILE')} (format conllu)", counts)
    end = "" if spec.label is None else f"[{column}={spec.label}]"
    fields = (correct + end, *(f"{kind}[{unit}]{end}" for kind in ("system", "gold", "aligned")))
    if fields[0] not in counts.fields or (end and not any(counts.field(name).any() for name in fields[1:3])):
        prefix = f"gold[{unit}][{column}="
        used = [name for name in counts.fields if name.startswith(prefix) and counts.field(name).any()]
        raise InputError(
            f"metric {spec.name!r}: no {'content ' * (unit == 'content')}word of gold or systems has {spec.label!r}; "
            f"those of gold: {', '.join(name[len(prefix) : -1] for name in used)}"
        )
    if score == "aligned":
        return BoundMetric(spec.name, (fields[0], fields[3]), MEAN)
    return build_ratio(spec.name, fields, KINDS[score])


def brackets(spec: Spec) -> Metric:
    """Return the metric precision, recall or F1 of labelled brackets."""
    fields = ("correct[brackets]", "system[brackets]", "gold[brackets]")
    return _build_tree_metric(spec, build_ratio(spec.name, fields, KINDS[spec.base.removeprefix("bracket-")]))


def tag_accuracy(spec: Spec) -> Metric:
    """Return the metric tagging accuracy of trees: the share of words whose part of speech is right."""
    return _build_tree_metric(spec, BoundMetric(spec.name, ("correct[tags]", "gold[tags]"), MEAN))


def _build_tree_metric(spec: Spec, bound: BoundMetric) -> Metric:
    spec.check_options()
    needed = f"bracketed trees and {spell('gold', 'FILE')} (format trees)"
    return Metric(spec.name, partial(bind_fields, bound, needed))
