"""Metrics by the names the field uses; a new one is one function and one line in `METRICS`."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable

from sigdask.errors import InputError
from sigdask.metrics.base import BlackBox, BoundMetric, Metric, Spec
from sigdask.metrics.user import black_box, load, metric

__all__ = ["METRICS", "BlackBox", "BoundMetric", "Metric", "Spec", "black_box", "find", "metric"]

_AVERAGES = {
    f"{average}-{kind}": ("sigdask.metrics.ratios:averaged", f"{kind}, {how}; options labels=A+B, zero_division=0|1")
    for average, how in (("macro", "mean over the gold labels"), ("micro", "of counts summed over the gold labels"))
    for kind in ("precision", "recall", "f1", "f")
}

METRICS: dict[str, tuple[str, str]] = {
    "mean": ("sigdask.metrics.ratios:mean", "mean of item scores"),
    "accuracy": ("sigdask.metrics.ratios:accuracy", "share of items labelled right"),
    "precision": ("sigdask.metrics.ratios:precision", "correct / given; precision[LABEL]; option zero_division=0|1"),
    "recall": ("sigdask.metrics.ratios:recall", "correct / gold; recall[LABEL]; option zero_division=0|1"),
    "f1": ("sigdask.metrics.ratios:f1", "harmonic mean of the two; f1[LABEL]; option zero_division=0|1"),
    "f": ("sigdask.metrics.ratios:f_beta", "F_beta; f[LABEL]; options beta=NUMBER, zero_division=0|1"),
    **_AVERAGES,
    "BLEU": ("sigdask.metrics.translation:bleu", "corpus BLEU by sacrebleu's counts; options tokenize, lowercase"),
    "chrF": ("sigdask.metrics.translation:chrf", "corpus chrF by sacrebleu's counts; options beta, lowercase"),
    "chrF++": ("sigdask.metrics.translation:chrf", "chrF with word orders 1 and 2"),
    "TER": ("sigdask.metrics.translation:ter", "translation edit rate, lower is better; options normalized"),
    "mcc": ("sigdask.metrics.agreement:mcc", "Matthews correlation, any number of labels"),
    "kappa": ("sigdask.metrics.agreement:kappa", "Cohen's kappa of system and gold"),
}
"""Name to where its factory stands and what it is."""


def find(name: str) -> Metric | BlackBox:
    """Return the metric of a name: a built-in one with its options, or `module:attribute`.

    Raises
    ------
    InputError
        The name is unknown; the nearest known ones are named.

    Examples
    --------
    >>> find("f:beta=2").name
    'f:beta=2'
    """
    spec = Spec.of(name) if not _is_address(name) else None
    if spec is None:
        return load(name)
    if spec.base not in METRICS:
        close = difflib.get_close_matches(spec.base, METRICS, 3, 0.5)
        hint = f"did you mean {' or '.join(close)}?" if close else "`sigdask metrics` lists them"
        raise InputError(f"unknown metric {name!r}: {hint} A metric of your own is named MODULE:FUNCTION")
    module, _, attribute = METRICS[spec.base][0].partition(":")
    factory: Callable[[Spec], Metric] = getattr(importlib.import_module(module), attribute)
    return factory(spec)


def _is_address(name: str) -> bool:
    base, colon, rest = name.partition(":")
    return bool(colon) and "=" not in rest and "[" not in base and base not in METRICS
