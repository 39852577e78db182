"""The Python API: functions that read aligned data, compare systems and return results."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from numpy.typing import NDArray

from sigdask import formats
from sigdask.analysis.agreement import build_format, find_unit, name_metric, sort_by_agreement
from sigdask.analysis.comparison.pairs import AnyMetric
from sigdask.analysis.comparison.study import Study, build_specs, plan_study
from sigdask.analysis.details import ComparisonDetails, compute_details, iter_units, select_rows
from sigdask.counts import Counts
from sigdask.counts.precision import list_values
from sigdask.errors import InputError
from sigdask.execution.run import count_with_options, extract_with_options
from sigdask.formats.frames import as_counts, check_indices, move_index
from sigdask.formats.reading.alignment import check_types
from sigdask.formats.reading.options import Source
from sigdask.io import as_path
from sigdask.metrics import takes_numbers, takes_texts
from sigdask.options import (
    OPTIONS,
    Align,
    ComparisonOptions,
    MetaOptions,
    Missing,
    SelectionOptions,
    check_options,
    fill_options,
    list_group_columns,
    show_options,
)
from sigdask.report.presentable import Results, convert_results
from sigdask.report.sentences import build_verdict
from sigdask.report.standings import Standings
from sigdask.results.record import Result


def read(
    *systems: Source | Path | str | list[Any] | tuple[Any, ...] | Any,
    gold: Path | str | None = None,
    format: str = "auto",  # noqa: A002  # as on the command line
    columns: Mapping[str, str] | None = None,
    groups: Sequence[str] = (),
    ignore: Sequence[str] = (),
    label_map: Mapping[str, Sequence[str]] | None = None,
    align: Align = "auto",
    missing: Missing | None = None,
    references: Sequence[Path | str] = (),
    documents: Path | str | None = None,
    group_file: Path | str | None = None,
    metrics: str | Sequence[Any] = (),
    name: str = "",
) -> Counts:
    """Read system outputs or scores into aligned counts, from files or from a data frame.

    Parameters
    ----------
    *systems : Path or "NAME=PATH", or lists of these; or one data frame, mapping or array
        Files of one or more systems, such as TSV, CSV, JSON lines or Parquet, also gzipped. A path may be a URL that
        fsspec supports, such as s3://BUCKET/FILE. Several files under one NAME are replicates of a system (optimizer
        runs, seeds), whose scores are averaged. `compare_all` describes data frames.
    gold : Path or str, optional
        Gold-standard file.
    format : str
        A format that `sigdask list formats` shows, or "auto". Options of a format follow its name, such as
        "conll:scheme=IOBES". Installed packages may add formats.
    columns : mapping of str to str, optional
        Columns by their roles "item", "gold", "prediction", "system" and "score", such as {"score": "f1"}. By default
        they are found by their usual names.
    groups : sequence of str
        Columns that hold groups of items, such as documents, for `unit` and `by`.
    ignore : sequence of str
        Columns to leave out.
    label_map : mapping of str to sequence of str, optional
        Labels to replace: {"new": ["old", "older"]}.
    align : {"auto", "id", "position"}
        How rows of several files are matched. "auto" takes ids if every file has them, else positions.
    missing : {"error", "pairwise", "zero"}, optional
        How missing scores are handled, as in `compare_all`. By default "error", and "zero" for TREC runs and SQuAD 1.1.
    references : sequence of Path or str
        Further reference files, in addition to the gold file.
    documents : Path or str, optional
        File with the document of each segment, one on each line, or a table of item and document.
    group_file : Path or str, optional
        Table of items and of the groups that they belong to.
    metrics : str or sequence of str
        Metrics that you will use. A metric that only one format has determines the format.
    name : str
        Name of the test set. It also determines the random stream.

    Returns
    -------
    Counts
        The systems, aligned item by item. Give it to `compare_all`, `compare_sets` or `power`.

    Raises
    ------
    InputError
        The files cannot be read. The message names the file, the line or id, and what was found and expected.

    Examples
    --------
    >>> from importlib.resources import files
    >>> counts = read(files("sigdask.examples") / "yeh2000.tsv")
    >>> counts.systems, counts.n_items
    (('I', 'II'), 160)
    >>> read({"a": [4, 5, None], "b": [1, 1, 2]}, missing="pairwise", name="news").name
    'news'
    """
    metrics = (metrics,) if isinstance(metrics, str) else tuple(m for m in metrics if isinstance(m, str))
    if len(systems) == 1 and not isinstance(systems[0], Source | os.PathLike | str | list | tuple):
        for_files: dict[str, Any] = {
            "gold": gold, "label_map": label_map or None, "references": len(references) or None,
            "documents": documents, "group_file": group_file,
        }  # fmt: skip
        if wrong := next((option for option, value in for_files.items() if value is not None), None):
            raise TypeError(f"{wrong}= is for files; leave it out for data in memory")
        return _build_counts(
            systems[0], metrics, format=format, columns=columns, groups=groups, ignore=ignore, missing=missing,
            name=name,
        )  # fmt: skip
    options = formats.Options(
        columns=dict(columns or {}),
        groups=tuple(groups),
        ignore=tuple(ignore),
        label_map=tuple((label, tuple(replaced)) for label, replaced in (label_map or {}).items()),
        align=align,
        missing=missing,
        references=tuple(map(as_path, references)),
        documents=None if documents is None else as_path(documents),
        group_file=None if group_file is None else as_path(group_file),
        metrics=metrics,
        name=name,
    )
    return formats.read(*systems, gold=gold, format=format, options=options)


@show_options(ComparisonOptions)
def compare(
    a: Sequence[Any] | NDArray[Any],
    b: Sequence[Any] | NDArray[Any] | None = None,
    *,
    gold: Sequence[Any] | NDArray[Any] | None = None,
    metric: AnyMetric | None = None,
    names: Sequence[str] = ("A", "B"),
    ids: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
    missing: Missing | None = None,
    **options: Unpack[ComparisonOptions],
) -> Result:
    """Compare two systems given as sequences: scores, labels, numbers or texts. `compare_all` takes data frames.

    Parameters
    ----------
    a, b : sequence, length n_items
        Item scores of the two systems, on any scale. With `gold` they are labels, predicted numbers (for MAE, pearson,
        AUC, ...) or texts (for BLEU, chrF, TER, WER, CER).
    gold : sequence, length n_items, optional
        The gold labels, numbers or reference texts. If texts have several references, give a list of such sequences,
        as in sacrebleu.
    metric : str, Metric or BlackBox, optional
        How systems are scored. By default the mean of scores, or accuracy of labels.
    names : sequence of str
        Names of the two systems, by default "A" and "B".
    ids : sequence of str, optional
        Item ids, by default positions.
    units : sequence of str, optional
        Unit of each item that is swapped as a whole (document, topic). By default items are swapped.
    missing : {"error", "pairwise", "zero"}, optional
        How missing scores (NaN or None) are handled, by default "error". "pairwise" leaves these items out, "zero"
        counts the scores as 0.
    alternative : {"two-sided", "greater", "less"}
        Alternative hypothesis about score_a - score_b.
    method : {"auto", "randomization", "exact", "both"}
        Random trials, exact p-values, or both. The options from here on are explained in `compare_all`.
    exact_limit : float, optional
        Limit of the estimated time of an exact p-value, in seconds of one core.
    trials : int, optional
        Number of random trials, by default 1,048,576, and fewer for costly metrics.
    seed : int
        Seed of the random stream.
    alpha : float
        Significance level.
    tests : str or sequence of str, optional
        Classical tests to show next to p, such as "t,wilcoxon".
    interval : {"auto", "bootstrap", "inversion", "none"}, optional
        Kind of confidence interval, by default "auto".
    confidence : float
        Confidence level of the interval.
    resamples : int, optional
        Number of resamples for the interval.
    margin : float, optional
        Margin of tests of non-inferiority and equivalence.
    second_run : bool
        Check p by a second, independent run.
    cluster : str, distributed.Client or cluster object
        Where trials are counted.
    workers : int, optional
        Number of threads or processes to start, by default one for each core.
    progress : callable, optional
        Called with the number of finished trials and the number of all trials.
    cache : bool
        Use the extraction cache.

    Returns
    -------
    Result
        The result of the comparison.

    Raises
    ------
    InputError
        The data do not allow the comparison: lengths differ, a score is missing or is a text, or the metric is unknown
        or does not fit the data. The message says which and what to do.
    UnfinishedError
        The cluster was lost.

    Examples
    --------
    >>> result = compare([1, 1, 0, 1, 1], [0, 1, 0, 0, 0])
    >>> result
    Result(A - B, mean 0.8000 - 0.2000 = +0.6000, p = 0.25)
    >>> result.method, result.n_extreme, result.n_trials, result.p_value
    ('exact', 2, 8, 0.25)

    Texts and their references:

    >>> references = ["The cat sat on the mat.", "It is raining."]
    >>> new, old = ["The cat sat on the mat.", "It rains."], ["A cat sat.", "It rains."]
    >>> compare(new, old, gold=references, metric="WER", names=["new", "old"])
    Result(new - old, WER 0.2222 - 0.7778 = -0.5556, p = 1)
    """
    check_options(ComparisonOptions, options)
    if b is None:
        raise TypeError(
            "compare takes two sequences, a and b; for a data frame, or a mapping or array of all systems, write "
            "compare_all(data)"
        )
    if isinstance(names, str) or len(names) != 2:
        raise InputError(f"names = {names!r}: expected the names of two systems")
    systems = dict(zip(names, (a, b), strict=True))
    groups = {"unit": units} if units is not None else None
    if gold is None:
        counts = _build_score_counts(systems, ids, groups, missing)
    else:
        if missing is not None:
            raise TypeError("missing= is for scores; with gold= all outputs must be there")
        counts = _build_gold_counts(systems, gold, [metric] if metric else [], ids=ids, groups=groups)
    metrics, unit = [metric or ("mean" if gold is None else "accuracy")], "item" if units is None else "unit"
    results = compare_with_options([counts], {**options, "metrics": metrics, "unit": unit})
    notes = [note for note in results.notes if note.kind in {"scope", "reading"}]
    return results[0].replace(notes=(*results[0].notes, *notes)) if notes else results[0]


def _build_score_counts(
    given: Mapping[str, Any], ids: Sequence[str] | None, groups: Any, missing: Missing | None
) -> Counts:
    """Return the counts of two sequences of scores."""
    systems = {name: list_values(column, repr(name)) for name, column in given.items()}
    check_indices(systems)
    for name, column in systems.items():
        if text := next((value for value in column if isinstance(value, str)), None):
            raise InputError(
                f"{name!r} holds texts such as {text[:60]!r}, not scores",
                remedy="to compare labels give gold=, to compare texts with references give gold= and a metric "
                "such as BLEU",
            )
    return Counts.from_scores(systems, ids=ids, groups=groups, missing=missing or "error")


def _build_gold_counts(
    systems: Mapping[str, Any], gold: Any, metrics: Sequence[Any], *, ids: Any, groups: Any, name: str = ""
) -> Counts:
    """Return the counts of systems' texts, numbers or labels beside the gold standard, as the metrics take them."""
    shared: dict[str, Any] = {"ids": ids, "groups": groups, "name": name}
    named = [metric for metric in metrics if isinstance(metric, str)]
    check_indices({"gold": gold, **systems})
    systems = {key: list_values(column, repr(key)) for key, column in systems.items()}
    if any(map(takes_texts, named)):
        return Counts.from_texts(gold, systems, **shared)
    gold = list_values(gold, "gold")
    if any(map(takes_numbers, named)):
        return Counts.from_numbers(gold, systems, **shared)
    known, labels = [*map(str, gold)], {key: [*map(str, column)] for key, column in systems.items()}
    warnings = check_types(None, known, labels, "labels", "values", "write the labels of systems as gold has them")
    return Counts.from_labels(known, labels, warnings=warnings, **shared)


@show_options(SelectionOptions)
def compare_all(
    data: Counts | Any,
    *,
    gold: Sequence[Any] | NDArray[Any] | None = None,
    names: Sequence[str] | None = None,
    ids: str | Sequence[str] | None = None,
    groups: str | Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    columns: Mapping[str, str] | None = None,
    format: str = "auto",  # noqa: A002  # as of `read`
    ignore: Sequence[str] = (),
    missing: Missing | None = None,
    name: str = "",
    **options: Unpack[SelectionOptions],
) -> Results:
    """Compare any number of systems by any number of metrics, on the same random swaps.

    The same data, seed and number of trials give the same counts on any machine and cluster. If you add a system,
    metric or pair, the counts of the others stay the same.

    Parameters
    ----------
    data : Counts, data frame, mapping, or array of shape (n_items, n_systems)
        All systems. `read` returns Counts. A data frame of any library has a column for each system; or rows of
        `system`, `item` and `score`, or a column for each metric instead of `score`; or labels with a column `gold`. A
        named index of pandas is read like columns. A mapping has the scores of each system, or with `gold` its labels,
        numbers or texts.
    gold : sequence, length n_items, optional
        The gold labels, numbers or reference texts, if `data` is a mapping. See `compare`.
    metrics : str, Metric or BlackBox, or sequence of these, optional
        Names that `sigdask list metrics` shows, `module:attribute`, or metric objects. By default those that fit the
        data.
    pairs : sequence of (str, str), optional
        Systems to compare; by default all pairs.
    baseline : str, optional
        Compare all other systems only with this one, which is `b` in the results. Not with `pairs`.
    unit : str, optional
        Unit that is swapped as a whole: "item" (the default) or a grouping column, such as "document".
    by : str, optional
        Compare within each value of this grouping column.
    together : bool
        Also judge each pair over all test sets or subsets: by the mean of its differences, and by the number of sets in
        which it replicates. By default False.
    names : sequence of str, optional
        Names of the systems of an array, by default "system 1" and so on.
    ids : sequence of str, or str, optional
        Item ids, by default positions; or the name of their column.
    groups : str, sequence of str, or mapping of str to sequence, optional
        Columns of a data frame that hold groups of items, such as documents; or such groups by name. Columns in `unit`
        and `by` need not be named.
    columns : mapping of str to str, optional
        Columns of a data frame by their roles "item", "gold", "system" and "score", such as {"score": "f1"}. By default
        they are found by their usual names.
    format : str
        How a data frame is laid out: "auto", "wide", "long", "labels", "responses" or "numbers". "wide:systems=new+old"
        names the columns of systems.
    ignore : sequence of str
        Columns of a data frame to leave out.
    missing : {"error", "pairwise", "zero"}, optional
        How missing scores (NaN or None) are handled. "error", the default, raises InputError. "pairwise" compares each
        pair on the items that both have. "zero" counts them as the score 0.
    name : str
        Name of the test set. It also determines the random stream.
    alternative : {"two-sided", "greater", "less"}
        Alternative hypothesis about score_a - score_b, by default "two-sided". "greater" is that it is above 0, also
        for metrics of which lower values are better.
    method : {"auto", "randomization", "exact", "both"}
        auto, the default: all arrangements if at most 20 units are discordant (16 for metrics of ranks and for
        agreement with people, 12 for metrics computed by a function), else random trials, and also exact p-values if
        these take little time. randomization: random trials only. both: random trials and all exact p-values that take
        no more than `exact_limit`. exact: exact p-values without trials, or an error that names what has none.
    exact_limit : float, optional
        Limit of the estimated time, in seconds of one core, of all exact p-values of a test set and metric. If they
        need more, auto computes none, both computes the cheapest, and exact raises an error. By default 60 for exact,
        a fifth of a second for auto, and 100 for each comparison for both.
    trials : int, optional
        Number of random trials. By default 1,048,576 for a single comparison by a metric, and 131,072 for each of
        several, or as many as their adjustment needs; at most 131,072 for metrics of ranks, 20,000 for agreement with
        people, and 10,000 for metrics computed by a function.
    seed : int
        Seed of the random stream, at least 0, by default 0.
    alpha : float
        Significance level, between 0 and 1, by default 0.05.
    adjust : str, optional
        Adjustment of p for all comparisons by one metric: pairs, test sets and subsets. "holm": family-wise error, from
        the p-values alone. "bh": false discovery rate. "max-t": family-wise error from shared trials (step-down,
        studentised). "tukey": Tukey's HSD. "none": p as it is. By default max-t, or holm if the method is exact, or if
        the metric is computed by a function, from ranks, from sets or from agreement with people.
    tests : str or sequence of str, optional
        Classical tests to show next to p: "t", "sign", "wilcoxon" and "mcnemar" of matched pairs, by `unit`; and, for
        contrast, "two-sample-t" and "binomial", which treat the systems as independent. "all" stands for all. If a test
        does not fit the score, `Result.tests` says why.
    interval : {"auto", "bootstrap", "inversion", "none"}, optional
        Kind of confidence interval of each difference. "bootstrap": BCa interval of the paired bootstrap (percentiles
        for metrics computed by a function). "inversion": all differences that the randomization test of a mean does
        not reject. "auto": Tango's score interval for 0/1 scores of items. For other metrics, with up to 10,000 units,
        "inversion" for means (with bootstrap intervals of both scores) and "bootstrap" for the rest. With more units, a
        normal interval with the jackknife's standard error. "none": no intervals. By default "auto" for 100 comparisons
        or fewer, else "none". Whole units are resampled, the same ones that are swapped.
    confidence : float
        Confidence level of the intervals, between 0 and 1, by default 0.95.
    resamples : int, optional
        Number of resamples of the bootstrap: by default 10,000, and 1,000 for metrics of ranks and metrics computed by
        a function. For "inversion" the number of trials, by default that of the test (for "auto" 10,000 to 131,072).
    margin : float, optional
        Also test whether A and B differ by less than this margin, on the metric's own scale (0.01 is one point of a
        share): non-inferiority and equivalence (docs/statistics/margins.md).
    second_run : bool
        Check p by a second, independent run of a quarter as many trials. By default True.
    cluster : str, distributed.Client or cluster object
        Where trials are counted: the name of a cluster ("auto", "threads", "local", ...), an address, or a cluster
        file. Or a dask client or cluster (LocalCluster, SLURMCluster, KubeCluster, ...), which is left running. "auto",
        the default, takes what suits the work. "auto" and "current" use the active client, or the scheduler in dask's
        settings.
    workers : int, optional
        Number of threads or processes to start, by default one for each core.
    progress : callable, optional
        Called with the number of finished trials and the number of all trials.
    cache : bool
        Use the extraction cache for statistics of outputs (n-gram counts, edit distances, measures of topics), by
        default True. It is in `$SIGDASK_CACHE`, by default `~/.cache/sigdask`.

    Returns
    -------
    Results
        One `Result` for each comparison, in the order of subsets, pairs and metrics. `print` shows a report.

    Raises
    ------
    InputError
        The data do not allow a requested analysis, or options contradict each other. The message says which and why.
    UnfinishedError
        The cluster was lost.

    References
    ----------
    Test: Noreen 1989, "Computer-intensive methods for testing hypotheses"; Yeh 2000, "More accurate tests for the
    statistical significance of result differences", COLING. The sources of all other methods are in docs/statistics/,
    and `Results.cite` names the ones that were used.

    Examples
    --------
    >>> scores = {"a": [4, 5, 4], "b": [1, 1, 2], "c": [4, 4, 4]}
    >>> results = compare_all(scores)
    >>> [(r.a, r.b, r.p_value, r.p_adjusted) for r in results]
    [('a', 'b', 0.25, 0.25), ('a', 'c', 1.0, 1.0), ('b', 'c', 0.25, 0.25)]

    A data frame, an array and `Counts` give the same:

    >>> import numpy, pandas
    >>> compare_all(pandas.DataFrame(scores)) == results
    True
    >>> compare_all(numpy.array([*scores.values()]).T)[0].p_value
    0.25
    >>> compare_all(Counts.from_scores(scores)) == results
    True

    A long data frame with a column for each metric:

    >>> rows = {"system": [*"aaabbb"], "item": [1, 2, 3] * 2, "f1": [1, 1, 1, 0, 1, 0], "recall": [1, 1, 0, 0, 1, 0]}
    >>> [(r.a, r.b, r.metric, r.p_value) for r in compare_all(pandas.DataFrame(rows))]
    [('a', 'b', 'f1', 0.5), ('a', 'b', 'recall', 1.0)]

    Texts and their references:

    >>> texts = {"new": ["The cat sat on the mat.", "It rains."], "old": ["A cat sat.", "It rains."]}
    >>> [r.metric for r in compare_all(texts, gold=["The cat sat.", "It is raining."], metrics=["BLEU", "chrF"])]
    ['BLEU', 'chrF']
    """
    reading: dict[str, Any] = {
        "gold": gold, "names": names, "ids": ids, "groups": groups, "columns": columns, "ignore": ignore,
        "missing": missing, "name": name, "format": "" if format == "auto" else format,
    }  # fmt: skip
    chosen = fill_options(SelectionOptions, options)  # a wrong one before data are read
    if not isinstance(data, Counts):
        data = _build_counts(data, chosen["metrics"], [chosen["unit"], chosen["by"]], **reading)
    elif option := next((key for key, value in reading.items() if value is not None and len(value)), None):
        raise TypeError(f"{option}= is for data frames and mappings, but these are Counts; give it to sigdask.read")
    return compare_with_options([data], chosen)


def _build_counts(
    data: Any,
    metrics: Any,
    further_groups: Sequence[str | None] = (),
    *,
    gold: Any = None,
    ids: Any = None,
    groups: Any = None,
    name: str = "",
    **layout: Any,
) -> Counts:
    """Return the counts of a data frame, mapping or array of all systems."""
    named_metrics = [m for m in (metrics if isinstance(metrics, list | tuple) else [metrics]) if isinstance(m, str)]
    if gold is not None:
        if not isinstance(data, Mapping):
            raise TypeError("gold= is for a mapping of systems; of a data frame name it by columns={'gold': NAME}")
        if any(layout.values()):
            raise TypeError("gold= goes with a mapping of systems alone; leave out how a data frame is read")
        systems = {str(system): column for system, column in data.items()}
        return _build_gold_counts(systems, gold, named_metrics, ids=ids, groups=groups, name=name)
    frame, index = move_index(data)
    if not isinstance(groups, Mapping):
        named = (groups,) if isinstance(groups, str) else tuple(groups or ())
        groups = list_group_columns((*named, *further_groups), layout["columns"] or {})
    layout["format"] = layout["format"] or "auto"
    return as_counts(
        frame, ids=index if ids is None else ids, groups=groups, metrics=named_metrics, name=name, **layout
    )


@show_options(SelectionOptions)
def compare_sets(
    test_sets: Sequence[Counts | Any],
    **options: Unpack[SelectionOptions],
) -> Results:
    """Compare systems on several test sets, judged as one family.

    By default p is adjusted over all comparisons of all test sets. `compare_all` explains the options in full.

    Parameters
    ----------
    test_sets : sequence of Counts, data frame, mapping or array
        Test sets with different names. Each has its own random swaps. `read` gives a test set its name.
    metrics : str, Metric or BlackBox, or sequence of these, optional
        How systems are scored, by default by the metrics that fit the data.
    pairs : sequence of (str, str), optional
        Systems to compare, by default all pairs.
    baseline : str, optional
        Compare all other systems only with this one.
    unit : str, optional
        Unit that is swapped as a whole, by default "item".
    by : str, optional
        Compare within each value of this grouping column.
    together : bool
        Also judge each pair over all test sets.
    alternative : {"two-sided", "greater", "less"}
        Alternative hypothesis about score_a - score_b.
    method : {"auto", "randomization", "exact", "both"}
        Random trials, exact p-values, or both.
    exact_limit : float, optional
        Limit of the estimated time of exact p-values, in seconds of one core.
    trials : int, optional
        Number of random trials, by default 1,048,576, and fewer for costly metrics.
    seed : int
        Seed of the random stream.
    alpha : float
        Significance level.
    adjust : str, optional
        Adjustment of p for all comparisons by one metric, by default max-t or holm as in `compare_all`.
    tests : str or sequence of str, optional
        Classical tests to show next to p.
    interval : {"auto", "bootstrap", "inversion", "none"}, optional
        Kind of confidence interval, by default "auto" for 100 comparisons or fewer, else "none".
    confidence : float
        Confidence level of the intervals.
    resamples : int, optional
        Number of resamples for intervals.
    margin : float, optional
        Margin of tests of non-inferiority and equivalence.
    second_run : bool
        Check p by a second, independent run.
    cluster : str, distributed.Client or cluster object
        Where trials are counted.
    workers : int, optional
        Number of threads or processes to start, by default one for each core.
    progress : callable, optional
        Called with the number of finished trials and the number of all trials.
    cache : bool
        Use the extraction cache.

    Returns
    -------
    Results
        One `Result` for each comparison, in the order of test sets, subsets, pairs and metrics.

    Raises
    ------
    InputError
        As in `compare_all`, or two test sets have the same name.
    UnfinishedError
        The cluster was lost.

    Examples
    --------
    >>> news = read({"new": [4, 5, 4, 3], "old": [1, 1, 2, 3]}, name="news")
    >>> law = read({"new": [3, 5], "old": [2, 2]}, name="law")
    >>> [(r.test_set, r.p_value) for r in compare_sets([news, law], interval="none")]
    [('news', 0.25), ('law', 0.5)]
    """
    if isinstance(test_sets, str) or not isinstance(test_sets, Sequence):
        remedy = "give [sigdask.read(data, name='news'), ...]; of one test set, use compare_all"
        raise InputError(f"{type(test_sets).__name__} is no list of test sets", remedy=remedy)
    return compare_with_options(test_sets, options)


@show_options(MetaOptions)
def meta(
    *files: Path | str,
    columns: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
    language_pair: str | None = None,
    scores: Sequence[str] = (),
    lower: Sequence[str] = (),
    name: str = "",
    pairs: Sequence[tuple[str, str]] | None = None,
    baseline: str | None = None,
    **options: Unpack[MetaOptions],
) -> Results:
    """Compare evaluation metrics by their agreement with human judgements, as `sigdask meta` does.

    Parameters
    ----------
    *files : Path or str
        Table with rows of system, segment, human score and a column for each metric; or a folder of mt-metrics-eval.
    statistic : {"pearson", "spearman", "kendall", "accuracy", "acc-eq", "spa"}
        Agreement with people: a correlation, the accuracy of pairs (acc-eq calibrates ties), or soft pairwise accuracy.
    level : {"segment", "system"}, optional
        Correlate scores of segments, or means of systems. By default segments; systems for spa.
    group : {"none", "item", "system"}
        Correlate all scores together, or within each segment or system, and average.
    undefined : {"omit", "zero"}
        Whether groups with an undefined correlation are left out of the average, or count as 0.
    permute : {"scores", "pairs", "segments", "systems"}
        What two metrics swap, after standardisation.
    threshold : float, optional
        Differences of metrics up to this size are ties, for accuracy that permutes pairs. By default 0.
    signs : int
        Number of random sign flips for each p-value of spa.
    columns : mapping of str to str, optional
        Columns by their roles "item" (the segment), "gold" (the human score) and "system".
    ignore : sequence of str
        Columns to leave out.
    language_pair : str, optional
        Language pair of a folder, such as "en-de".
    scores : sequence of str
        Metrics of a folder, by default all.
    lower : sequence of str
        Metrics of which lower values are better.
    name : str
        Name of the test set. It also determines the random stream.
    pairs : sequence of (str, str), optional
        Metrics to compare, by default all pairs.
    baseline : str, optional
        Compare all other metrics only with this one.
    alternative, method, exact_limit, trials, seed, alpha, adjust, second_run
        The test, as in `compare_all`.
    cluster, workers, progress, cache
        Where trials are counted, as in `compare_all`.

    Returns
    -------
    Results
        One `Result` for each pair of metrics, which are its systems `a` and `b`. The best metric is the first.

    Raises
    ------
    InputError
        The files cannot be read, or options contradict each other.
    UnfinishedError
        The cluster was lost.

    Examples
    --------
    >>> meta("scores.tsv", statistic="kendall")[0].p_value  # doctest: +SKIP
    0.031
    """
    chosen = fill_options(MetaOptions, options)
    metric, unit = name_metric(chosen), find_unit(chosen)
    shared = {key: value for key, value in chosen.items() if key in OPTIONS}
    format_ = build_format(language_pair, scores, lower)
    counts = read(*files, format=format_, columns=columns, ignore=ignore, metrics=[metric], name=name)
    selected = {**shared, "metrics": [metric], "unit": unit, "pairs": pairs, "baseline": baseline}
    return compare_with_options([sort_by_agreement(metric, counts)], selected)


def compare_with_options(test_sets: Sequence[Counts | Any], options: Any) -> Results:
    """Return all comparisons of some test sets with options in a mapping, as `compare_sets` does."""
    all_options = fill_options(SelectionOptions, options)
    return _compute_results(_build_study(test_sets, all_options), all_options)


def compare_opened(
    test_sets: Sequence[Counts | Any],
    **options: Unpack[SelectionOptions],
) -> tuple[Results, tuple[ComparisonDetails, ...]]:
    """Compare systems as `compare_sets` does, and return the results with the details of single comparisons.

    With few comparisons, all have details. With many, these have: the best system against its runner-up, and
    doubtful results. Details are the units that decide.

    Parameters
    ----------
    test_sets : sequence of Counts, or of what `compare_all` takes
        Test sets with different names.
    **options
        As in `compare_sets`.

    Returns
    -------
    (Results, tuple of ComparisonDetails)
        All comparisons, and the details of some.

    Raises
    ------
    InputError
        As in `compare_sets`.

    Examples
    --------
    >>> results, details = compare_opened([{"new": [4, 5, 4, 3], "old": [1, 1, 2, 3]}], interval="none")
    >>> [(results[found.row].a, results[found.row].b) for found in details]
    [('new', 'old')]
    """
    all_options = fill_options(SelectionOptions, options)
    study = _build_study(test_sets, all_options)
    results = _compute_results(study, all_options)
    leading = Standings(results.table).list_leading_rows()
    rows = select_rows(len(results), build_verdict(results).doubtful, leading=leading)
    return results, compute_details(study, results.table, rows)


def _build_study(test_sets: Sequence[Counts | Any], options: SelectionOptions) -> Study:
    """Return the study of some test sets with the given options."""
    requests = build_specs(test_sets, options)
    extracted = extract_with_options([(counts, spec.find_metrics(counts)) for counts, spec in requests], options)
    specs = [(counts, spec) for counts, (_, spec) in zip(extracted, requests, strict=True)]
    return plan_study(specs, adjust=options["adjust"], together=options["together"])


def _compute_results(study: Study, options: SelectionOptions) -> Results:
    """Return the results of a study after counting its trials."""
    results = study.build_results(count_with_options(study.jobs, options))
    sets = [replace(analysis.main, panels=(), cells=[]) for analysis in study.analyses]  # panels may be large
    return convert_results(replace(results, units=partial(iter_units, sets)), Results)
