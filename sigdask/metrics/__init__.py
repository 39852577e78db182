"""Metrics by name; a new one is one function and one line in `METRICS`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import entry_points
from typing import Any

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.interface import spell_in
from sigdask.io import addresses
from sigdask.metrics import labels, regression, replicates, retrieval, texts
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets, Metric, Spec, has_rankings, list_score_columns, mean
from sigdask.metrics.user import black_box, load_metric, metric
from sigdask.text import format_list

__all__ = ["METRICS", "BlackBox", "BoundMetric", "BoundSets", "Metric", "Spec", "black_box", "find_metric", "metric"]

_KINDS = ("precision", "recall", "f1", "f", "jaccard")
_AVERAGES = {"macro": "mean over the gold labels", "micro": "of counts summed over the gold labels"}

METRICS: dict[str, tuple[Callable[[Spec], Metric | BlackBox], str]] = {
    "mean": (mean, "mean of item scores"),
    "accuracy": (labels.accuracy, "share of items labelled right (of tokens in the formats conll and mbt)"),
    "precision": (labels.ratio, "correct / given; precision[LABEL]; option zero_division=0|1"),
    "recall": (labels.ratio, "correct / gold; recall[LABEL]; option zero_division=0|1"),
    "f1": (labels.ratio, "harmonic mean of precision and recall; f1[LABEL]; option zero_division=0|1"),
    "f": (labels.ratio, "F_beta; f[LABEL]; options beta=NUMBER, zero_division=0|1"),
    **{
        f"{average}-{kind}": (labels.label_average, f"{kind}, {how}; options labels=A+B|@FILE, zero_division=0|1")
        for average, how in _AVERAGES.items()
        for kind in _KINDS
    },
    "jaccard": (labels.jaccard, "labels in both / in either, mean of items; jaccard[LABEL]; option zero_division=0|1"),
    **{
        f"samples-{kind}": (labels.samples, f"{kind} of each item's labels, mean over items; option zero_division=0|1")
        for kind in _KINDS[:3]
    },
    "subset-accuracy": (labels.subset_accuracy, "share of items whose sets of labels are right"),
    "hamming-loss": (labels.hamming_loss, "share of wrong decisions on labels, lower is better"),
    **{
        f"relation-{kind}": (labels.relation_ratio, f"{kind} of relations, of all or of [TYPE]; options average, match")
        for kind in _KINDS[:3]
    },
    "type-precision": (labels.type_ratio, "distinct right terms / distinct terms given anywhere"),
    "type-recall": (labels.type_ratio, "distinct right terms / distinct gold terms"),
    "type-f1": (labels.type_ratio, "harmonic mean of type-precision and type-recall; option zero_division=0|1"),
    "BLEU": (texts.bleu, "corpus BLEU by sacrebleu's counts; options tokenize=zh, lowercase=1"),
    "chrF": (texts.chrf, "corpus chrF by sacrebleu's counts; options beta, lowercase"),
    "chrF++": (texts.chrf, "chrF with word orders 1 and 2"),
    "TER": (texts.ter, "translation edit rate, lower is better; options normalized"),
    "WER": (texts.error_rate, "word error rate by jiwer, lower is better; options lowercase, punctuation=0"),
    "CER": (texts.error_rate, "character error rate by jiwer, spaces count; options as WER"),
    "AP": (retrieval.ranking_measure, "average precision; also nDCG@10, RR, Bpref, AP(rel=2), ...: ir-measures' names"),
    "mcc": (labels.agreement, "Matthews correlation, any number of labels"),
    "kappa": (labels.agreement, "Cohen's kappa of system and gold"),
    "MAE": (regression.regression, "mean absolute error of predicted numbers, lower is better (format numbers)"),
    "MSE": (regression.regression, "mean squared error of predicted numbers, lower is better"),
    "RMSE": (regression.regression, "square root of MSE, lower is better"),
    "R2": (regression.regression, "coefficient of determination: 1 - squared errors / squared deviations of gold"),
    "pearson": (regression.regression, "Pearson's correlation of predicted numbers and gold values"),
    "spearman": (regression.regression, "Spearman's correlation, of mean ranks"),
    "kendall": (regression.regression, "Kendall's tau-b"),
    "AUC": (regression.regression, "area under the ROC curve; gold values are 1 and 0, predictions any scores"),
    "average-precision": (regression.regression, "mean of the precision at each gold 1; gold and predictions as AUC"),
    "brier": (regression.regression, "mean squared error of probabilities of the gold value 1, lower is better"),
    "log-loss": (regression.regression, "mean negative logarithm of the gold value's probability, lower is better"),
    "ECE": (regression.regression, "expected calibration error of probabilities, lower is better; option bins=15"),
    **{name: (labels.dependencies, text) for name, (_, _, text) in labels.WORD_METRICS.items()},
    "bracket-precision": (labels.brackets, "right brackets / brackets of the system, by evalb's rules (format trees)"),
    "bracket-recall": (labels.brackets, "right brackets / gold brackets"),
    "bracket-f1": (labels.brackets, "harmonic mean of bracket-precision and bracket-recall"),
    "pass@1": (replicates.pass_at_k, "share of items solved by one of k samples, for any k: pass@10; pass@10[COLUMN]"),
    "tag-accuracy": (labels.tag_accuracy, "share of words of trees whose part of speech is right"),
    "meta-pearson": (regression.agreement, "correlation with people; level=system, group=item|system, undefined=zero"),
    "meta-spearman": (regression.agreement, "the same by ranks"),
    "meta-kendall": (regression.agreement, "the same by Kendall's tau-b"),
    "meta-accuracy": (
        regression.agreement,
        "share of pairs in people's order; also permute=pairs, epsilon=NUMBER",
    ),
    "meta-acc-eq": (regression.agreement, "the same with calibrated ties; options as meta-accuracy, except epsilon"),
    "meta-spa": (regression.agreement, "soft pairwise accuracy of systems; option signs=NUMBER"),
}
"""Description of each metric, and the function that builds it from its parsed name."""

SHARES = frozenset({
    "hamming-loss", "wer", "cer", *map(str.casefold, labels.WORD_METRICS),
    *(
        f"{average}{kind}"
        for average in ("", "macro-", "micro-", "samples-", "type-", "relation-", "subset-", "balanced-", "bracket-",
                        "tag-")
        for kind in ("accuracy", *_KINDS)
    ),
})  # fmt: skip
"""Metrics that are shares of 1, whose differences are printed in points of 100. In lower case, without options."""

ONE_DECIMAL = frozenset({"bleu", "chrf", "chrf++", "chrf2", "chrf2++", "ter", "hter"})
"""Metrics in points of 100 for which papers print one decimal. In lower case, without options."""

LOWER_IS_BETTER = frozenset({"wer", "cer", "ter", "hter", "mer", "wil", "perplexity", "ppl", "nll", "loss", "losses",
                             "logloss", "crossentropy", "xent", "bits", "bpb", "bpc", "bpd", "error", "errors",
                             "mse", "rmse", "mae", "mape", "smape", "ece", "brier", "fpr", "fnr", "eer", "jer",
                             "edit", "edits", "distance", "divergence", "distortion", "regret", "mcd", "fid", "fad",
                             "insertions", "deletions", "substitutions", "misses", "violations", "failed",
                             "failure", "failures", "toxic", "toxicity", "hallucination", "hallucinations",
                             "hallucinated", "cost", "costs", "price", "latency", "ttft", "time", "seconds", "runtime",
                             "duration", "elapsed", "timeout", "timeouts", "lastrel", "metricx"})  # fmt: skip
"""Parts of names of score columns for which lower is better."""

HIGHER_IS_BETTER = frozenset({"accuracy", "acc", "fscore", "em", "match", "precision", "recall", "auc", "auroc", "map",
                              "correlation", "pearson", "spearman", "kendall", "similarity", "success", "efficiency",
                              "correct", "corrected", "correction", "detection", "fixed", "recovery", "reduction",
                              "saved", "avoided", "improvement", "free"})  # fmt: skip
"""Parts of names for which higher is better. Of several parts the last one decides (`error_detection_f1`)."""

NEGATIONS, INVERSIONS = frozenset({"no", "non", "not"}), frozenset({"neg", "minus", "inverse", "inverted"})
"""Parts of names that reverse the direction of the next part (`non_toxic`), and of any later part (`neg_log_loss`)."""

SPELLINGS = ((r"(?<=[a-z])(?=[A-Z][a-z])", "_"), (r"(?<![A-Za-z])DER(?![A-Za-z])", "error"),
             (r"(?i)(cross|last)[_ -]?(entropy|rel)", r"\1\2"), (r"(?i)(?<![a-z])f[_ -]?(?=\d)", "fscore"),
             (r"(?i)_per_.*", ""), (r"^1 ?[-\u2212]", "minus "))  # fmt: skip
"""Patterns of parts of names that are written in several ways, and how they are looked up."""


@cache
def add_installed_metrics() -> None:
    """Add the metrics that other packages name by entry points of the group `sigdask.metrics`."""
    for entry in sorted(entry_points(group="sigdask.metrics")):
        if entry.name in METRICS:
            raise InputError(f"entry point {entry.name!r} of sigdask.metrics: there is a metric of this name already")
        loaded = addresses.load_object(entry.value, f"entry point {entry.name} of sigdask.metrics:")
        description = (loaded.__doc__ or "metric of another package").split("\n")[0]
        METRICS[entry.name] = partial(_build_installed, loaded), description


def _build_installed(loaded: Any, spec: Spec) -> Metric | BlackBox:
    spec.check_options()
    if not isinstance(loaded, (Metric, BlackBox)):
        return black_box(loaded, name=spec.base)
    return replace(loaded, name=spec.base)


def find_metric(name: str, counts: Counts | None = None) -> Metric | BlackBox:
    """Return the metric of a name: a built-in one, a column of scores in the data, or `module:attribute`.

    Parameters
    ----------
    name : str
        Name as users write it.
    counts : Counts, optional
        Data that may have columns of scores (`score[NAME]`; NAME alone is their mean), or rankings, whose measures have
        the names of ir-measures.

    Returns
    -------
    Metric or BlackBox
        The metric, with its name as given.

    Raises
    ------
    InputError
        The name is unknown, or has an option, a label or a value that the metric does not take. The message names the
        nearest known ones.

    Examples
    --------
    >>> find_metric("f:beta=2").name
    'f:beta=2'
    """
    add_installed_metrics()
    if counts is not None and f"score[{name}]" in counts.fields:
        return build_column_metric(name)
    if is_address(name):
        return load_metric(name)
    if (
        counts is not None
        and (name not in METRICS or takes_numbers(name))
        and (column := _match_case(name, list_score_columns(counts)))
    ):
        return build_column_metric(column)
    if counts is not None and has_rankings(counts) and (measure := retrieval.find_measure(name)) is not None:
        return measure
    spec = Spec.parse(name)
    known_name = _find_base(name)
    if known_name is None:
        raise _build_unknown_error(name, [*list_score_columns(counts), *METRICS] if counts is not None else METRICS)
    return _get_builder(known_name)(replace(spec, base=known_name, name=known_name + name.strip()[len(spec.base) :]))


def takes_numbers(name: str) -> bool:
    """Return whether a name is that of a metric of predicted numbers.

    Examples
    --------
    >>> takes_numbers("ece:bins=10"), takes_numbers("f1")
    (True, False)
    """
    return _get_builder(_find_base(name)) is regression.regression


def takes_texts(name: str) -> bool:
    """Return whether a name is that of a metric of texts and their references.

    Examples
    --------
    >>> takes_texts("bleu:lowercase=1"), takes_texts("accuracy")
    (True, False)
    """
    return _get_builder(_find_base(name)) in (texts.bleu, texts.chrf, texts.ter, texts.error_rate)


def _find_base(name: str) -> str | None:
    """Return the known name of a built-in metric, without label and options, or None; pass@k has any k."""
    base = re.split(r"[\[(:]", name)[0].strip()
    return base.casefold() if re.fullmatch(r"(?i:pass)@[1-9]\d{0,5}", base) else _match_case(base, METRICS)


def _get_builder(base: str | None) -> Callable[[Spec], Metric | BlackBox]:
    """Return the function that builds the built-in metric of a known name."""
    return METRICS[base if base in METRICS else "pass@1"][0]


def check_name(name: str, *, of_data: bool = True, of_rankings: bool = True) -> None:
    """Raise InputError for a metric name that no data could make valid.

    Parameters
    ----------
    name : str
        Name as users write it.
    of_data : bool
        Whether the data may bring metrics of their own: a column of scores may have any name.
    of_rankings : bool
        Whether the data may be rankings, whose measures are ir-measures'.

    Raises
    ------
    InputError
        There is no such metric, or its options are wrong.

    Examples
    --------
    >>> check_name("nDCG@10")
    """
    add_installed_metrics()
    if is_address(name):
        addresses.check_address(name, "metric")
    elif (base := _find_base(name)) not in {None, "AP"}:
        find_metric(name)
    elif base is None and not of_data and not (of_rankings and retrieval.can_be_measure(name)):
        raise _build_unknown_error(name, METRICS)


def _match_case(name: str, known_names: Collection[str]) -> str | None:
    """Return the known name that equals a name; if none is identical, one that differs only in case."""
    if name in known_names:
        return name
    folded_name = name.casefold()
    return next((candidate for candidate in known_names if candidate.casefold() == folded_name), None)


def _build_unknown_error(name: str, known_names: Iterable[str]) -> InputError:
    """Return the error for an unknown metric name, with the names that are similar.

    Examples
    --------
    >>> print(_build_unknown_error("acuracy", METRICS).args[0][:52])
    unknown metric 'acuracy': did you mean accuracy? A m
    """
    if "@" in name and retrieval.can_be_measure(name):
        return InputError(spell_in(f"metric {name!r} needs runs and judgements ({{format=trec}}, {{gold=QRELS}})"))
    folded_name = name.strip().casefold()
    by_fold = {candidate.casefold(): candidate for candidate in known_names}
    if "," in name and {*(parts := re.split(r",\s*", folded_name))} <= {*by_fold}:
        several = format_list([by_fold[part] for part in parts])
        return InputError(f"metric {name!r}: these are several metrics", remedy=f"give {several} each by itself")
    base = re.split(r"[\[(]", folded_name, maxsplit=1)[0]
    close = difflib.get_close_matches(base, by_fold, 1, 0.9) or difflib.get_close_matches(base, by_fold, 3)
    names = " or ".join(by_fold[candidate] for candidate in close)
    hint = f"did you mean {names}?" if close else "`sigdask list metrics` lists all."
    return InputError(
        f"unknown metric {name!r}: {hint} A metric of your own is named MODULE:FUNCTION. Scores of other tools, such "
        "as COMET or ROUGE, are read from the files that they write"
    )


def build_column_metric(column: str) -> Metric:
    """Return the metric that is the mean of a score column; the column's name determines whether lower is better."""
    better = "lower" if is_lower_better(column) else "higher"
    return mean(Spec(column, "mean", column, {"better": better}))


def _split_name(column: str) -> list[str]:
    """Return the parts of a score column's name in lower case, after an empty one."""
    for pattern, spelling in SPELLINGS:
        column = re.sub(pattern, spelling, column)
    return ["", *re.split(r"[^a-z]+", column.lower())]


def is_lower_better(column: str) -> bool:
    """Return whether the name of a score column says that lower is better.

    Examples
    --------
    >>> [is_lower_better(name) for name in ("latencyMs", "HTER", "bits_per_byte", "error_f1", "1-WER", "neg_loss")]
    [True, True, True, False, False, False]
    """
    words = _split_name(column)
    last = max((k for k, word in enumerate(words) if word in LOWER_IS_BETTER | HIGHER_IS_BETTER), default=0)
    is_reversed = words[last - 1] in NEGATIONS or not INVERSIONS.isdisjoint(words[:last])
    is_lower = words[last] in LOWER_IS_BETTER and not is_reversed and "\u2191" not in column
    return is_lower or "\u2193" in column


def is_address(name: str) -> bool:
    """Return whether a metric is given as MODULE:ATTRIBUTE, the address of an object.

    Examples
    --------
    >>> is_address("mine:metric"), is_address("f:beta=2"), is_address("wide")
    (True, False, False)
    """
    base, colon, rest = name.partition(":")
    return bool(colon) and "=" not in rest and not {*"[("} & {*base} and _match_case(base, METRICS) is None
