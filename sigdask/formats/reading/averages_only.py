"""Detect files without a score for each item: test-set averages and training curves.

A test needs the score of each item. Most tools that print averages can log these scores: the error says how.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from sigdask.counts.texts import ScopeNote
from sigdask.errors import RefusedFileError
from sigdask.interface import spell_in

METRIC_WORDS = frozenset({"bleu", "sacrebleu", "chrf", "ter", "comet", "cometkiwi", "xcomet", "metricx", "bleurt",
                          "bertscore",
                          "meteor", "rouge", "rougel", "rougelsum", "f1", "em", "exact", "acc", "accuracy",
                          "precision", "recall", "map", "mrr", "ndcg", "wer", "cer", "mer", "hter", "wil", "score",
                          "correct", "loss", "nll", "perplexity", "ppl", "mse", "rmse", "mae", "brier", "iou", "dice",
                          "auc"})  # fmt: skip
"""Words of metric names, without numbers at their end."""

RUN_WORDS = frozenset({"runtime", "epoch", "samples", "steps", "step", "time", "seconds", "support"})
"""Words of other values that tools write next to averages, such as `eval_samples_per_second`."""

STEP = re.compile(
    r"([\w-]+[/.])*_?((global|train|trainer)[_ ]?)?(steps?|epochs?|iter(ation)?s?|num_updates)"
    r"([_ ](num|number|no|idx|index))?"
    r"|(num_|n_|total_)?(tokens|words|samples|examples|sequences|batches)_(seen|processed|trained|consumed)"
    r"|(consumed|seen|train|trained|training)_(tokens|words|samples|examples|sequences|batches)"
    r"|relative time \(.*\)|wall time",
    re.IGNORECASE,
)
"""Pattern of a column that counts training steps. A path may precede the name (`train/global_step`)."""

AVERAGES_PROBLEM = "holds averages over a whole test set, but a test needs the score of each item"
OUTPUTS_PROBLEM = "holds outputs and no score of each item"
LABELS_REMEDY = "give the labels themselves: {gold=FILE} and one file per system, or a table with a gold column"
SACREBLEU_REMEDY = (
    "give the outputs themselves ({gold=REFERENCE} and the metric BLEU), or the scores of `sacrebleu --sentence-level`"
)
SWE_REMEDY = (
    "`resolved_ids` names the instances that were solved, as report.json of each instance does; write a table with a "
    "row an instance of `submitted_ids` and 1 or 0 a system"
)
EVALPLUS_REMEDY = "give its *_eval_results.json, whose `eval` has `base_status` of each sample"
MTEB_REMEDY = (
    "keep the predictions (prediction_folder=FOLDER of mteb.evaluate; save_predictions=True before version 2) and "
    "score each query: rankings of documents are read with {gold=QRELS}"
)
LIGHTEVAL_REMEDY = "run it again with --save-details, and write the metrics of each sample as a table"
SAMPLES_REMEDY = "run it again with --log_samples, and give the files samples_*.jsonl or their folder"
TAGS_REMEDY = "give the tagged sentences (JSON lists of tags, or CoNLL files) with {gold=FILE} and the metric f1"
EVALUATE_REMEDY = "give the outputs with {gold=FILE} and the metric, or save a list of the scores of each item"
HARNESS_KEYS = ("versions", "configs", "n-shot", "config", "group_subtasks", "higher_is_better")
CURVE_PROBLEM = (
    "holds a training curve, a row for each {step}. Its points are averages that depend on each other, so no test fits "
    "them. Evaluate each system on a test set, and write the score of each item. If rows are items, name their ids "
    "with {columns=item=COLUMN}"
)

TEXT_REPORTS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r"\s*precision\s+recall\s+f1-score\s+support\b"),
        "scikit-learn's classification report",
        LABELS_REMEDY,
    ),
    (re.compile(r"(BLEU|chrF\S*|TER)(\|\S*|\+\S*)? = [0-9.]+\b"), "what sacrebleu prints", SACREBLEU_REMEDY),
    (re.compile(r"processed \d+ tokens with \d+ phrases;"), "what conlleval prints", "give it the tagged files"),
)
"""First lines of reports, with a description and the remedy."""


AVERAGES_KEYS: tuple[tuple[frozenset[str], str, str], ...] = (
    (frozenset({"mteb_version"}), "the results of MTEB", MTEB_REMEDY),
    (frozenset({"mteb_dataset_name"}), "the results of MTEB", MTEB_REMEDY),
    (frozenset({"overall_precision"}), "the report of seqeval", TAGS_REMEDY),
    (frozenset({"overall_f1"}), "the report of seqeval", TAGS_REMEDY),
    (
        frozenset({"accuracy", "correct_count", "total_count"}),
        "a score file of BFCL",
        "it lists failed items alone: write a row per item, with 1 or 0 for each system",
    ),
)
"""Keys of JSON objects of averages, with a description and the remedy."""

TRANSCRIPTS_REMEDY = (
    "write one transcript per line into a file of each system, and give {gold=REFERENCES} and the metric WER"
)

OUTPUT_COLUMNS: tuple[tuple[frozenset[str], str, str], ...] = (
    (frozenset({"audio_filepath", "text", "pred_text"}), "NeMo's transcripts", TRANSCRIPTS_REMEDY),
    (
        frozenset({"actual", "predicted", "error", "prediction"}),
        "Weka's predictions with their confidence",
        "compare the labels with {columns=gold=actual} and {columns=prediction=predicted}",
    ),
)
"""Columns of outputs whose only numbers are no scores (a duration, a confidence), with what they are and the remedy."""


def is_metric_name(name: str) -> bool:
    """Return whether a column is named after a metric.

    Examples
    --------
    >>> [is_metric_name(name) for name in ("sentence_BLEU", "rouge-1", "F1", "gpt4", "ndcg@10")]
    [True, True, True, False, True]
    """
    words = re.findall(r"[a-z]+[0-9]*", name.lower())
    return "@" in name or any(word in METRIC_WORDS or word.rstrip("0123456789") in METRIC_WORDS for word in words)


SUMMARY_WORDS = frozenset({"all", "mean", "means", "average", "averages", "avg", "amean", "overall", "macro", "micro",
                           "total", "totals", "sum", "accuracy", "acc", "median", "min", "max", "count", "std", "sd",
                           "stdev"})  # fmt: skip
FILLER_WORDS = frozenset({"score", "scores", "value", "of", "the", "over", "across", "task", "tasks", "item", "items",
                          "topic", "topics", "query", "queries", "row", "grand", "weighted", "result", "results",
                          "datasets"})  # fmt: skip
"""Words next to these in names of summaries: "Average score", "mean over topics"."""

DOUBTFUL_ROWS = frozenset({"p", "p-value", "p_value", "pvalue", "p value", "t-test", "rank", "ranks", "ranking", "wins",
                           "diff", "difference", "delta", "significance"})  # fmt: skip
"""Names of other last rows that rarely name an item."""

N_LAST_ITEMS = 8
"""Number of last items whose names are looked at, as many as the statistics of pandas' describe()."""


def is_summary_name(name: str) -> bool:
    """Return whether a name is that of a summary, such as "Average" or "std".

    Examples
    --------
    >>> [is_summary_name(name) for name in ("all", "Average (13 tasks)", "std", "overall_score", "all of it", "task 3")]
    [True, True, True, True, False, False]
    """
    words = set(re.findall(r"[^\W\d_]+", name.lower()))
    return bool(words & SUMMARY_WORDS) and words <= SUMMARY_WORDS | FILLER_WORDS


def describe_summary_items(items: Sequence[str]) -> Iterator[str]:
    """Yield notes on the first and the last items, if they are named like a summary of the others."""
    for name in dict.fromkeys([*items[:1], *items[-N_LAST_ITEMS:]]):
        if is_summary_name(name) or name.lower() in DOUBTFUL_ROWS:
            yield ScopeNote(f"row {name!r} is named like a summary, and taken for an item; remove it if it is none")


def check_text(path: Path, first_line: str) -> None:
    """Raise an error for a text report of averages, recognized by its first line."""
    for pattern, description, remedy in TEXT_REPORTS:
        if pattern.match(first_line):
            raise build_averages_error(path, description, remedy)


def check_columns(path: Path, names: Collection[str]) -> None:
    """Raise an error for a table of a known tool that has no scores of items, recognized by its columns."""
    if {"precision", "recall", "f1-score", "support"} <= {*names}:
        raise build_averages_error(path, "scikit-learn's classification report", LABELS_REMEDY)
    for columns, description, remedy in OUTPUT_COLUMNS:
        if columns <= {*names}:
            raise RefusedFileError(f"{OUTPUTS_PROBLEM} (these are {description}); {spell_in(remedy)}", file=path)


def check_document(path: Path, document: Any) -> None:
    """Raise an error for a JSON document of averages or training logs from a known tool."""
    match document:
        case {"log_history": list()}:
            raise build_training_curve_error(path, "step of `log_history`")
        case {"resolved_ids": _} | {"resolved_instances": _}:
            raise RefusedFileError(
                f"is a report of SWE-bench, which holds no score of each item; {SWE_REMEDY}", file=path
            )
        case {"text": str(), "segments": list(), "language": _}:
            raise RefusedFileError(
                f"{OUTPUTS_PROBLEM} (this is Whisper's transcript); {spell_in(TRANSCRIPTS_REMEDY)}", file=path
            )
        case {"pass_at_k": _, "eval": dict()}:
            raise RefusedFileError(
                "is EvalPlus's file of samples by task, in a layout that is not read; evaluate them again, and "
                f"{EVALPLUS_REMEDY}",
                file=path,
            )
    if (tool := _find_tool(document)) is not None:
        raise build_averages_error(path, *tool)


def check_not_averages(path: Path, document: Mapping[str, Any]) -> None:
    """Raise an error for a JSON object of metric to value, which could pass for item scores."""
    numbers = [name for name, value in document.items() if isinstance(value, int | float)]
    words = {name: re.findall(r"[a-z]+", name.lower()) for name in numbers}
    averages = [name for name in numbers if is_metric_name(name) or RUN_WORDS.intersection(words[name])]
    nested = any(isinstance(value, dict | list) for value in document.values())
    if not nested and numbers and 2 * len(averages) > len(numbers):
        raise build_averages_error(path, "an object of metrics", "write a table or JSON lines with one row per item")
    inner = [value for value in document.values() if isinstance(value, dict)]
    if len(inner) == len(document) and any("stderr" in name for value in inner for name in value):
        raise build_averages_error(
            path, "an object of tasks, with standard errors", "write a table with one row per item"
        )


def build_training_curve_error(path: Path, step: str) -> RefusedFileError:
    """Return the error for a file with one row for each step of training."""
    return RefusedFileError(spell_in(CURVE_PROBLEM.replace("{step}", step)), file=path)


def build_leaderboard_error(path: Path, column: str, hint: str = "") -> RefusedFileError:
    """Return the error for a table with one row of averages for each system."""
    row_noun = "system" if column in {"id", "index"} else column
    return build_averages_error(
        path, f"a table with a row for each {row_noun}", f"write one row per item and one column per system{hint}"
    )


def build_averages_error(path: Path, description: str, remedy: str) -> RefusedFileError:
    """Return the error for a file of averages, with a description and the remedy."""
    return RefusedFileError(f"{AVERAGES_PROBLEM} (this is {description}); {spell_in(remedy)}", file=path)


def _find_tool(document: Any) -> tuple[str, str] | None:
    """Return a description of a JSON document of averages and the remedy, or None if no known tool wrote it."""
    tool = None
    match document:
        case {"config_general": _, "results": dict()}:
            tool = "the results of lighteval", LIGHTEVAL_REMEDY
        case {"results": dict(results)} if _is_lm_harness(document, results):
            tool = "the results of lm-evaluation-harness", SAMPLES_REMEDY
        case _ if _is_sacrebleu(document):
            tool = "the JSON of sacrebleu", SACREBLEU_REMEDY
        case _ if _is_classification_report(document):
            tool = "scikit-learn's classification report", LABELS_REMEDY
        case _ if _is_pass_at_k(document):
            tool = "the results of EvalPlus, or pass@k of another tool", EVALPLUS_REMEDY
        case [{"name": _, "count": _, "sum": _, "mean": _, "stddev": _}, *_]:
            tool = "stats.json of HELM", "give per_instance_stats.json of the same folder"
        case {"_evaluate_version": _} if not any(isinstance(value, list) for value in document.values()):
            tool = "what evaluate saved", EVALUATE_REMEDY
        case dict():
            tool = next(((name, remedy) for keys, name, remedy in AVERAGES_KEYS if keys <= document.keys()), None)
    return tool


def _iter_objects(document: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the document if it is an object, or the objects in it if it is a list."""
    return (value for value in (document if isinstance(document, list) else [document]) if isinstance(value, dict))


def _is_lm_harness(document: Mapping[str, Any], results: Mapping[str, Any]) -> bool:
    has_settings = not document.keys().isdisjoint(HARNESS_KEYS) and "samples" not in document
    return has_settings and bool(results) and all(isinstance(value, dict) for value in results.values())


def _is_classification_report(document: Any) -> bool:
    names = ("macro avg", "weighted avg")
    return any(isinstance(report.get(name), dict) for report in _iter_objects(document) for name in names)


def _is_sacrebleu(document: Any) -> bool:
    scored = any({"name", "score", "signature"} <= result.keys() for result in _iter_objects(document))
    values = (value for result in _iter_objects(document) if "system" in result for value in result.values())
    return scored or any(isinstance(value, dict) and {"score", "ci"} <= value.keys() for value in values)


def _is_pass_at_k(document: Any) -> bool:
    """Return whether a JSON object, or an object within it, has only pass@k scores."""
    if not isinstance(document, dict) or not document:
        return False
    inner = chain.from_iterable(value.values() if isinstance(value, dict) else [value] for value in document.values())
    objects = [document, *_iter_objects(list(document.values())), *_iter_objects(list(inner))]
    return any(scores and all(re.fullmatch(r"pass@\d+", name) for name in scores) for scores in objects)
