"""Metrics by the names the field uses; a new one is one function and one line in `METRICS`."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.io import addresses
from sigdask.metrics import ratios, retrieval
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets, Metric, Spec
from sigdask.metrics.elsewhere import needs
from sigdask.metrics.user import black_box, load, metric

__all__ = ["METRICS", "BlackBox", "BoundMetric", "BoundSets", "Metric", "Spec", "black_box", "find", "metric"]

_AVERAGES = {
    f"{average}-{kind}": ("sigdask.metrics.ratios:averaged", f"{kind}, {how}; options labels=A+B, zero_division=0|1")
    for average, how in (("macro", "mean over the gold labels"), ("micro", "of counts summed over the gold labels"))
    for kind in ("precision", "recall", "f1", "f", "jaccard")
}

_OF_SAMPLES = {
    f"samples-{kind}": (
        "sigdask.metrics.label_sets:samples",
        f"{kind} of each item's set of labels, mean over the items; option zero_division=0|1",
    )
    for kind in ("precision", "recall", "f1")
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
    "jaccard": (
        "sigdask.metrics.label_sets:jaccard",
        "labels in both sets / in either, mean over the items; jaccard[LABEL]; option zero_division=0|1",
    ),
    **_OF_SAMPLES,
    "subset-accuracy": ("sigdask.metrics.label_sets:subset_accuracy", "share of items whose sets of labels are right"),
    "hamming-loss": (
        "sigdask.metrics.label_sets:hamming_loss",
        "share of wrong decisions on a label of an item, lower is better; option labels=A+B",
    ),
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

SHARES = frozenset({
    "hamming-loss", "wer", "cer",
    *(
        f"{average}{kind}"
        for average in ("", "macro-", "micro-", "samples-", "type-", "subset-", "balanced-")
        for kind in ("accuracy", "precision", "recall", "f1", "f", "jaccard")
    ),
})  # fmt: skip
"""Metrics that are shares of 1: differences are told in points of 100. In small letters, without options."""

LOWER_IS_BETTER = frozenset({"wer", "cer", "ter", "hter", "mer", "wil", "perplexity", "ppl", "nll", "loss", "losses",
                             "error", "errors", "mse", "rmse", "mae", "brier", "edit", "edits", "distance", "cost",
                             "costs", "price", "latency", "time", "runtime", "duration", "elapsed", "last",
                             "metricx"})  # fmt: skip
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
    if counts is not None and name not in METRICS and (column := _without_case(name, _columns(counts))):
        return of_column(column)
    if counts is not None and retrieval.holds_rankings(counts) and (measure := retrieval.measure(name)) is not None:
        return measure
    spec = Spec.of(name)
    known = _without_case(spec.base, METRICS)
    if known is None:
        raise _unknown(name, [*_columns(counts), *METRICS] if counts is not None else METRICS)
    module, _, attribute = METRICS[known][0].partition(":")
    factory: Callable[[Spec], Metric] = getattr(importlib.import_module(module), attribute)
    return factory(replace(spec, base=known, name=known + name.strip()[len(spec.base) :]))


def check_name(name: str, *, of_data: bool = True, of_rankings: bool = True) -> None:
    """Refuse a name that no data could make right.

    Parameters
    ----------
    name : str
        As users write it.
    of_data : bool
        Whether the data may bring metrics of their own: a column of scores may have any name.
    of_rankings : bool
        Whether the data may be rankings, whose measures are ir-measures'.

    Examples
    --------
    >>> check_name("nDCG@10")
    """
    if _is_address(name):
        addresses.check(name, "metric")
    elif (known := _without_case(re.split(r"[\[(:]", name)[0].strip(), METRICS)) not in {None, "AP"}:
        find(name)
    elif known is None and not of_data and not (of_rankings and retrieval.may_know(name)):
        raise _unknown(name, METRICS)


def _columns(counts: Counts) -> list[str]:
    """Return the columns of scores that data bring."""
    return [field[6:-1] for field in counts.fields if field.startswith("score[")]


def _without_case(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is this one, or is it but for its case."""
    found = [each for each in known if each.casefold() == name.casefold()]
    return name if name in found else found[0] if found else None


def _unknown(name: str, known: Iterable[str]) -> InputError:
    """Return the error of a name that is not known: what it needs, or which are near, whatever their case."""
    if (needed := needs(name)) is not None:
        return InputError(f"metric {name!r} {needed}")
    by_fold = {each.casefold(): each for each in known}
    asked = re.split(r"[\[(]", name, maxsplit=1)[0].casefold()
    close = difflib.get_close_matches(asked, by_fold, 1, 0.9) or difflib.get_close_matches(asked, by_fold, 3, 0.5)
    names = " or ".join(by_fold[each] for each in close)
    hint = f"did you mean {names}?" if close else "`sigdask metrics` lists them."
    return InputError(f"unknown metric {name!r}: {hint} A metric of your own is named MODULE:FUNCTION")


def of_column(column: str) -> Metric:
    """Return the mean of a column of scores; its name says whether less is better."""
    better = "lower" if is_lower_better(column) else "higher"
    return ratios.mean(Spec(column, "mean", column, {"better": better}))


def is_lower_better(column: str) -> bool:
    """Whether the name of a column of scores says that less is better.

    Examples
    --------
    >>> [is_lower_better(name) for name in ("latency_ms", "HTER", "timeliness", "accuracy")]
    [True, True, False, False]
    """
    return not LOWER_IS_BETTER.isdisjoint(re.split(r"[^a-z]+", column.lower()))


def _is_address(name: str) -> bool:
    base, colon, rest = name.partition(":")
    return bool(colon) and "=" not in rest and not {*"[("} & {*base} and _without_case(base, METRICS) is None
