"""Metrics by the names the field uses; a new one is one function and one line in `METRICS`."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable
from dataclasses import replace

from sigdask import addresses
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.metrics import ratios, retrieval
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets, Metric, Spec
from sigdask.metrics.user import black_box, load, metric

__all__ = ["METRICS", "BlackBox", "BoundMetric", "BoundSets", "Metric", "Spec", "black_box", "find", "metric"]

_AVERAGES = {
    f"{average}-{kind}": ("sigdask.metrics.ratios:averaged", f"{kind}, {how}; options labels=A+B, zero_division=0|1")
    for average, how in (("macro", "mean over the gold labels"), ("micro", "of counts summed over the gold labels"))
    for kind in ("precision", "recall", "f1", "f")
}

METRICS: dict[str, tuple[str, str]] = {
    "mean": ("sigdask.metrics.ratios:mean", "mean of item scores"),
    "accuracy": (
        "sigdask.metrics.ratios:accuracy",
        "share of items labelled right; of tokens (conll, mbt)",
    ),
    "precision": ("sigdask.metrics.ratios:precision", "correct / given; precision[LABEL]; option zero_division=0|1"),
    "recall": ("sigdask.metrics.ratios:recall", "correct / gold; recall[LABEL]; option zero_division=0|1"),
    "f1": ("sigdask.metrics.ratios:f1", "harmonic mean of the two; f1[LABEL]; option zero_division=0|1"),
    "f": ("sigdask.metrics.ratios:f_beta", "F_beta; f[LABEL]; options beta=NUMBER, zero_division=0|1"),
    **_AVERAGES,
    "type-precision": ("sigdask.metrics.types:type_precision", "distinct right terms / distinct terms given anywhere"),
    "type-recall": ("sigdask.metrics.types:type_recall", "distinct right terms / distinct gold terms"),
    "type-f1": ("sigdask.metrics.types:type_f1", "harmonic mean of the two; option zero_division=0|1"),
    "BLEU": ("sigdask.metrics.translation:bleu", "corpus BLEU by sacrebleu's counts; options tokenize=zh, lowercase=1"),
    "chrF": ("sigdask.metrics.translation:chrf", "corpus chrF by sacrebleu's counts; options beta, lowercase"),
    "chrF++": ("sigdask.metrics.translation:chrf", "chrF with word orders 1 and 2"),
    "TER": ("sigdask.metrics.translation:ter", "translation edit rate, lower is better; options normalized"),
    "WER": (
        "sigdask.metrics.speech:wer",
        "word error rate by jiwer, lower is better; options lowercase, punctuation=0",
    ),
    "CER": ("sigdask.metrics.speech:cer", "character error rate by jiwer, spaces count; options as WER"),
    "AP": (
        "sigdask.metrics.retrieval:measure_of",
        "average precision; also nDCG@10, P@10, RR, Rprec, Bpref, R@100, AP(rel=2): ir-measures' names, for rankings",
    ),
    "mcc": ("sigdask.metrics.agreement:mcc", "Matthews correlation, any number of labels"),
    "kappa": ("sigdask.metrics.agreement:kappa", "Cohen's kappa of system and gold"),
}
"""Name to where its factory stands and what it is."""

LOWER_IS_BETTER = ("wer", "cer", "ter", "perplexity", "loss", "error", "edit", "cost", "last")
"""Parts of the names of columns of scores of which less is better."""


def find(name: str, counts: Counts | None = None) -> Metric | BlackBox:
    """Return the metric of a name: a built-in one, a column of scores in the data, or `module:attribute`.

    Parameters
    ----------
    name : str
        As users write it.
    counts : Counts, optional
        Data that may bring columns of scores (`score[NAME]`; NAME alone is their mean) or rankings,
        whose measures have the names of ir-measures.

    Raises
    ------
    InputError
        The name is unknown; the nearest known ones are named.

    Examples
    --------
    >>> find("f:beta=2").name
    'f:beta=2'
    """
    if counts is not None and f"score[{name}]" in counts.fields:
        return of_column(name)
    if _is_address(name):
        return load(name)
    if counts is not None and retrieval.holds_rankings(counts) and (measure := retrieval.measure(name)) is not None:
        return measure
    spec = Spec.of(name)
    if spec.base not in METRICS:
        close = difflib.get_close_matches(spec.base, METRICS, 3, 0.5)
        hint = f"did you mean {' or '.join(close)}?" if close else "`sigdask metrics` lists them."
        raise InputError(f"unknown metric {name!r}: {hint} A metric of your own is named MODULE:FUNCTION")
    module, _, attribute = METRICS[spec.base][0].partition(":")
    factory: Callable[[Spec], Metric] = getattr(importlib.import_module(module), attribute)
    return factory(spec)


def check_name(name: str) -> None:
    """Refuse a name that no data could make right; a column of scores may have any other name.

    Examples
    --------
    >>> check_name("nDCG@10")
    """
    if _is_address(name):
        addresses.check(name, "metric")
    elif (spec := Spec.of(name)).base in METRICS:
        find(spec.name)


def of_column(name: str) -> Metric:
    """Return the mean of a column of scores; its name says whether less is better."""
    lower = any(part in LOWER_IS_BETTER for part in re.split(r"[^a-z]+", name.lower()))
    better = "lower" if lower else "higher"
    return replace(ratios.mean(Spec(name, "mean", name, {"better": better})), name=name)


def _is_address(name: str) -> bool:
    base, colon, rest = name.partition(":")
    return bool(colon) and "=" not in rest and not {*"[("} & {*base} and base not in METRICS
