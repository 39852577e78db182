"""Metrics by name; a new one is one function and one line in `METRICS`."""

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
from sigdask.metrics.unsupported import describe_needs
from sigdask.metrics.user import black_box, load_metric, metric

__all__ = ["METRICS", "BlackBox", "BoundMetric", "BoundSets", "Metric", "Spec", "black_box", "find_metric", "metric"]

_AVERAGES = {
    f"{average}-{kind}": (
        "sigdask.metrics.ratios:label_average",
        f"{kind}, {how}; options labels=A+B, zero_division=0|1",
    )
    for average, how in (("macro", "mean over the gold labels"), ("micro", "of counts summed over the gold labels"))
    for kind in ("precision", "recall", "f1", "f", "jaccard")
}

_SAMPLE_AVERAGES = {
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
    **_SAMPLE_AVERAGES,
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
        "sigdask.metrics.retrieval:ranking_measure",
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


def find_metric(name: str, counts: Counts | None = None) -> Metric | BlackBox:
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
    >>> find_metric("f:beta=2").name
    'f:beta=2'
    """
    if counts is not None and f"score[{name}]" in counts.fields:
        return build_column_metric(name)
    if _is_address(name):
        return load_metric(name)
    if counts is not None and name not in METRICS and (column := _match_case(name, _list_score_columns(counts))):
        return build_column_metric(column)
    if counts is not None and retrieval.has_rankings(counts) and (measure := retrieval.find_measure(name)) is not None:
        return measure
    spec = Spec.parse(name)
    known_name = _match_case(spec.base, METRICS)
    if known_name is None:
        raise _build_unknown_error(name, [*_list_score_columns(counts), *METRICS] if counts is not None else METRICS)
    module, _, attribute = METRICS[known_name][0].partition(":")
    factory: Callable[[Spec], Metric] = getattr(importlib.import_module(module), attribute)
    return factory(replace(spec, base=known_name, name=known_name + name.strip()[len(spec.base) :]))


def check_name(name: str, *, of_data: bool = True, of_rankings: bool = True) -> None:
    """Raise InputError for a metric name that no data could make valid.

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
        addresses.check_address(name, "metric")
    elif (known_name := _match_case(re.split(r"[\[(:]", name)[0].strip(), METRICS)) not in {None, "AP"}:
        find_metric(name)
    elif known_name is None and not of_data and not (of_rankings and retrieval.can_be_measure(name)):
        raise _build_unknown_error(name, METRICS)


def _list_score_columns(counts: Counts) -> list[str]:
    """Return the names of the score columns in the data."""
    return [field[6:-1] for field in counts.fields if field.startswith("score[")]


def _match_case(name: str, known_names: Iterable[str]) -> str | None:
    """Return the known name that equals a name; if none is identical, one that differs only in case."""
    matches = [candidate for candidate in known_names if candidate.casefold() == name.casefold()]
    return name if name in matches else matches[0] if matches else None


def _build_unknown_error(name: str, known_names: Iterable[str]) -> InputError:
    """Return the error for an unknown metric name: it says what that metric needs, or which names are similar."""
    if (needed := describe_needs(name)) is not None:
        return InputError(f"metric {name!r} {needed}")
    by_fold = {candidate.casefold(): candidate for candidate in known_names}
    folded_base = re.split(r"[\[(]", name, maxsplit=1)[0].casefold()
    close = difflib.get_close_matches(folded_base, by_fold, 1, 0.9) or difflib.get_close_matches(
        folded_base, by_fold, 3, 0.5
    )
    names = " or ".join(by_fold[candidate] for candidate in close)
    hint = f"did you mean {names}?" if close else "`sigdask metrics` lists them."
    return InputError(f"unknown metric {name!r}: {hint} A metric of your own is named MODULE:FUNCTION")


def build_column_metric(column: str) -> Metric:
    """Return the metric that is the mean of a score column; the column's name determines whether lower is better."""
    better = "lower" if is_lower_better(column) else "higher"
    return ratios.mean(Spec(column, "mean", column, {"better": better}))


def is_lower_better(column: str) -> bool:
    """Return whether the name of a score column says that lower is better.

    Examples
    --------
    >>> [is_lower_better(name) for name in ("latency_ms", "HTER", "timeliness", "accuracy")]
    [True, True, False, False]
    """
    return not LOWER_IS_BETTER.isdisjoint(re.split(r"[^a-z]+", column.lower()))


def _is_address(name: str) -> bool:
    base, colon, rest = name.partition(":")
    return bool(colon) and "=" not in rest and not {*"[("} & {*base} and _match_case(base, METRICS) is None
