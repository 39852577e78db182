"""Metrics of parses: those of the CoNLL 2018 shared task for dependencies, and evalb's for labelled brackets.

Each is a ratio of counts, F1 = 2 correct / (system + gold) by default. Zeman et al. 2018, "CoNLL 2018 shared task:
multilingual parsing from raw text to Universal Dependencies". For brackets: Black et al. 1991, "A procedure for
quantitatively comparing the syntactic coverage of English grammars" (PARSEVAL), as in Collins's evalb.
"""

from __future__ import annotations

from functools import partial

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.interface import spell
from sigdask.metrics.base import BoundMetric, Metric, Spec, bind_fields, build_lacking_error
from sigdask.metrics.forms import MEAN
from sigdask.metrics.labels import KINDS, build_ratio

WORD_METRICS: dict[str, tuple[str, str | None]] = {
    "LAS": ("words", "relation"),
    "UAS": ("words", None),
    "CLAS": ("content", "relation"),
    "MLAS": ("content", "relation"),
    "BLEX": ("content", "relation"),
    "UPOS": ("words", "upos"),
    "XPOS": ("words", "xpos"),
    "UFeats": ("words", None),
    "AllTags": ("words", None),
    "Lemmas": ("words", None),
    "Words": ("words", None),
    "Sentences": ("sentences", None),
    "Tokens": ("tokens", None),
}
"""Unit that each metric counts (words, content words, sentences or tokens), and the column of its [LABEL]."""

SCORES = ("f1", "precision", "recall", "aligned")
"""Ratio of counts for each score. `aligned` is right words / aligned words, the script's AligndAcc."""


def dependencies(spec: Spec) -> Metric:
    """Return the metric LAS, UAS, CLAS, MLAS or BLEX, or one of tags, lemmas or segmentation."""
    unit, column = WORD_METRICS[spec.base]
    spec.check_options("score", label=column is not None)
    score = spec.get_choice("score", SCORES)
    if score == "aligned" and (unit in {"tokens", "sentences"} or spec.base == "Words"):
        raise InputError(
            f"metric {spec.name!r}: score=aligned is a share of the aligned words, which {spec.base} does not use",
            remedy="leave out score=aligned",
        )
    return Metric(spec.name, partial(_bind_words, spec, score))


def _bind_words(spec: Spec, score: str, counts: Counts) -> BoundMetric:
    unit, column = WORD_METRICS[spec.base]
    correct = f"correct[{unit if unit in {'tokens', 'sentences'} else spec.base}]"
    if correct not in counts.fields:
        raise build_lacking_error(spec.name, f"parses in CoNLL-U and {spell('gold', 'FILE')} (format conllu)", counts)
    end = "" if spec.label is None else f"[{column}={spec.label}]"
    fields = (correct + end, *(f"{kind}[{unit}]{end}" for kind in ("system", "gold", "aligned")))
    if fields[0] not in counts.fields or (end and not any(counts.field(name).any() for name in fields[1:3])):
        prefix = f"gold[{unit}][{column}="
        used = [name for name in counts.fields if name.startswith(prefix) and counts.field(name).any()]
        relation, colon, _ = (spec.label or "").partition(":")
        subtype = f" (without subtypes: {relation!r})" if colon else ""
        raise InputError(
            f"metric {spec.name!r}: no {'content ' * (unit == 'content')}word of gold or systems has {spec.label!r}"
            f"{subtype}; those of gold: {', '.join(name[len(prefix) : -1] for name in used)}"
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
