"""The Python API: functions that take aligned counts and return results."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import AnyMetric
from sigdask.analysis.comparison.study import Study, build_specs, prepare_study
from sigdask.analysis.details import UnitTables, compute_details, find_pair_rows, select_rows
from sigdask.counts import Counts
from sigdask.counts.checks import are_sentences, check_indices, describe_foreign_labels, list_values, match_numbers
from sigdask.counts.factors import Factor
from sigdask.errors import InputError
from sigdask.execution.extract import extract_with_options
from sigdask.execution.run import count_with_options
from sigdask.formats.frames import as_counts, move_index
from sigdask.formats.tables.scores import describe_uncorrelated
from sigdask.metrics import takes_numbers, takes_texts
from sigdask.options import (
    FRAME_READING,
    OPTIONS,
    ComparisonOptions,
    FrameOptions,
    SelectionOptions,
    fill_options,
    take_positions,
)
from sigdask.report.presentable import Results, convert_results
from sigdask.report.summary import headline
from sigdask.report.summary.standings import Standings
from sigdask.results.messages import note_unused
from sigdask.results.ranking import iter_ranked
from sigdask.results.record import Result

if TYPE_CHECKING:
    from sigdask.analysis.candidate_rankings.evaluation import RepeatedSamples, validate
    from sigdask.analysis.details import ComparisonDetails
    from sigdask.counts.candidates import Candidates
    from sigdask.report.analyses import Evaluation, evaluate, independence, independence_all, power

__all__ = [
    "Candidates", "Evaluation", "RepeatedSamples", "compare", "compare_all", "compare_opened", "compare_sets",
    "evaluate", "independence", "independence_all", "power", "validate",
]  # fmt: skip

_OTHER_ANALYSES = {
    "Candidates": "counts.candidates",
    "Evaluation": "report.analyses",
    "RepeatedSamples": "analysis.candidate_rankings.evaluation",
    "evaluate": "report.analyses",
    "independence": "report.analyses",
    "independence_all": "report.analyses",
    "power": "report.analyses",
    "validate": "analysis.candidate_rankings.evaluation",
}
"""Modules of names that comparisons do not need. They are imported when a name is first used."""

RANKING_NAMES = ("Candidates", "Evaluation", "RepeatedSamples", "evaluate", "validate")
"""Names about rankings of candidates, which are in `sigdask.rankings`."""


@overload
def compare(
    a: Sequence[Any] | NDArray[Any],
    b: Sequence[Any] | NDArray[Any],
    *,
    gold: Sequence[Any] | NDArray[Any] | None = None,
    metric: AnyMetric | None = None,
    names: Sequence[str] | None = None,
    ids: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
    **options: Unpack[ComparisonOptions],
) -> Result: ...
@overload
def compare(
    a: Any,
    *,
    gold: Sequence[Any] | NDArray[Any] | None = None,
    metric: AnyMetric | Sequence[AnyMetric] | None = None,
    names: Sequence[str] | None = None,
    **options: Unpack[FrameOptions],
) -> Results: ...
@take_positions(
    2,
    "write compare(a, b, gold=references, metric='BLEU') for two sequences, compare(frame, pairs=[('new', 'old')]) for "
    "a data frame",
)
def compare(
    a: Any,
    b: Sequence[Any] | NDArray[Any] | None = None,
    *,
    gold: Sequence[Any] | NDArray[Any] | None = None,
    metric: Any = None,
    names: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
    **options: Unpack[FrameOptions],
) -> Result | Results:
    """Compare two systems given as arrays, or all systems of a data frame.

    Parameters
    ----------
    a : sequence of length n_items, or data frame
        Item scores of the first system, on any scale. With `gold` they are labels, predicted numbers (for MAE,
        pearson, AUC, ...) or texts (for BLEU, chrF, TER, WER, CER). Without `b`, all systems: a data frame of any
        library, a mapping of names to scores, an array of shape (n_items, n_systems), or Counts. With `gold` a
        mapping has the labels, numbers or texts of each system. A frame has a column for each system, or rows of
        `system`, `item` and `score`. Instead of `score` it may have a column for each metric. A named index of pandas
        is read like columns.
    b : sequence of length n_items, optional
        The same for the second system.
    gold : sequence, length n_items, optional
        The gold labels, numbers or reference texts, if `a` and `b` are sequences or `a` is a mapping. If texts have
        several references, give a list of such sequences, as in sacrebleu.
    metric : str, Metric or BlackBox, optional
        How systems are scored. By default the mean of scores, or accuracy of labels. For a data frame or a mapping
        also a sequence of these, by default the metrics that fit the data.
    names : sequence of str, optional
        Names of the two systems, by default "A" and "B", or of the columns of an array. Data frames and mappings have
        names of their own.
    units : sequence of str, optional
        Unit of each item that is swapped as a whole (document, topic), if `a` and `b` are sequences.
    ids : sequence of str, or str, optional
        Item ids, by default positions. For a data frame also the name of their column.
    groups : str, sequence of str, or mapping, optional
        Columns of a data frame that hold groups of items, such as documents. Columns in `unit` and `by` need not be
        named.
    format : str
        How a data frame is laid out: "auto", "wide", "long", "labels", "responses" or "numbers".
    system_column, score_column, gold_column : str, optional
        Columns of a data frame. By default they are found by their usual names.
    ignore : sequence of str
        Columns of a data frame to leave out.
    missing : {"error", "pairwise", "zero"}, optional
        How missing scores (NaN or None) are handled. "error", the default, raises InputError. "pairwise" compares each
        pair on the items that both have. "zero" counts them as the score 0.
    min_items : int, optional
        Number of common items that two systems need; by default 5 % of all items of the two.
    name : str
        Name of the test set in a data frame. It also determines the random stream.
    **options
        As in `compare_sets`.

    Returns
    -------
    Result or Results
        One result of two sequences, all comparisons of a data frame or mapping.

    Raises
    ------
    InputError
        The data do not allow the comparison: lengths differ, a score is missing or is a text, or the metric is unknown
        or does not fit the data. The message says which and what to do.
    TypeError
        There is no such option, or it does not apply to data of this kind.
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
    >>> [r.metric for r in compare({"new": new, "old": old}, gold=references, metric=["BLEU", "chrF"])]
    ['BLEU', 'chrF']

    A long data frame with a column for each metric:

    >>> import pandas
    >>> rows = {"system": [*"aaabbb"], "item": [1, 2, 3] * 2, "f1": [1, 1, 1, 0, 1, 0], "recall": [1, 1, 0, 0, 1, 0]}
    >>> [(r.a, r.b, r.metric, r.p_value) for r in compare(pandas.DataFrame(rows))]
    [('a', 'b', 'f1', 0.5), ('a', 'b', 'recall', 1.0)]
    """
    if b is None and isinstance(a, Mapping) and gold is not None:
        return _compare_outputs(a, gold, metric, {"names": names, "units": units}, options)
    if b is None:
        return _compare_frame(a, metric=metric, names=names, gold=gold, units=units, options=options)
    taken = {"ids"} if gold is not None else {"ids", "missing", "min_items"}
    if wrong := next((name for name in options if name in {*FRAME_READING, *FRAME_SELECTION} - taken), None):
        remedy = FRAME_SELECTION.get(wrong, "give a data frame, or a mapping to sigdask.as_counts")
        raise TypeError(f"{wrong}= does not apply to two sequences; {remedy}")
    names, ids = ("A", "B") if names is None else names, options.pop("ids", None)
    gaps: dict[str, Any] = {name: value for name, value in options.items() if name in {"missing", "min_items"}}
    options = cast("FrameOptions", {name: value for name, value in options.items() if name not in gaps})
    if isinstance(names, str) or len(names) != 2:
        raise InputError(f"names = {names!r}: expected the names of two systems")
    systems = {name: list_values(column, repr(name)) for name, column in zip(names, (a, b), strict=True)}
    groups = {"unit": units} if units is not None else None
    if gold is None:
        check_indices(systems)
        for name, column in systems.items():
            if text := next((value for value in column if isinstance(value, str)), None):
                raise InputError(
                    f"{name!r} holds texts such as {text[:60]!r}, not scores; to compare labels give gold=, to compare "
                    "texts with references give gold= and a metric such as BLEU"
                )
        counts = Counts.from_scores(systems, ids=cast("Any", ids), groups=groups, **gaps)
        assert counts.outputs is not None
        columns = {name: counts.outputs.systems[k].astype(float) for k, name in enumerate(names)}
        doubts = describe_uncorrelated(columns, by_position=ids is None)
        counts = replace(counts, warnings=(*counts.warnings, *doubts))
    else:
        counts = _build_gold_counts(systems, gold, [metric] if metric else [], ids=ids, groups=groups)
    metric_to_use = metric or ("mean" if gold is None else "accuracy")
    unit = "item" if units is None else "unit"
    selection = cast("SelectionOptions", {**options, "metrics": [metric_to_use], "unit": unit})
    results = compare_all(counts, **selection)
    notes = [note for note in results.notes if note.kind in {"scope", "reading"}]
    return replace(results[0], notes=(*results[0].notes, *notes)) if notes else results[0]


def _compare_outputs(
    systems: Mapping[Any, Any], gold: Any, metric: Any, others: Mapping[str, Any], options: FrameOptions
) -> Results:
    """Compare all systems of a mapping by their texts, numbers or labels beside the gold standard."""
    given: dict[str, Any] = {**options} | {name: value for name, value in others.items() if value is not None}
    if metric is not None:
        given["metrics"] = metric
    own = {name: given.pop(name, default) for name, default in (("ids", None), ("groups", None), ("name", ""))}
    if wrong := next((name for name in given if name in {*FRAME_READING, *others}), None):
        raise TypeError(f"{wrong}= does not apply to a mapping with gold=; each of its keys names a system")
    metrics = given.get("metrics") or ()
    metrics = metrics if isinstance(metrics, list | tuple) else (metrics,)
    counts = _build_gold_counts({str(name): column for name, column in systems.items()}, gold, metrics, **own)
    return compare_all(counts, **given)


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
    if not metrics and are_sentences(gold):
        raise InputError(
            f"gold holds texts such as {gold[0][:60]!r}; choose a metric of texts, such as BLEU, chrF, TER or WER. For "
            "the share of equal texts choose accuracy"
        )
    gold_labels = Factor.from_values(gold)
    system_labels = {key: Factor.from_values(column) for key, column in systems.items()}
    system_labels, notes = match_numbers(gold_labels, system_labels)
    warnings = [*notes, *describe_foreign_labels(gold_labels, system_labels)]
    return Counts.from_labels(gold_labels, system_labels, warnings=warnings, **shared)


FRAME_SELECTION = {
    "unit": "give units=, the unit of each item",
    "by": "give a data frame with this column",
    "metrics": "give metric=, or a data frame for several metrics",
    "pairs": "there is only one pair",
    "baseline": "the second sequence is the baseline",
    "together": "there is only one test set",
}
"""Options that choose systems, metrics and subsets of a data frame, and what to pass instead for two sequences."""


def _compare_frame(
    data: Any, *, metric: Any, names: Sequence[str] | None, gold: Any, units: Any, options: FrameOptions
) -> Results:
    """Compare all systems of a data frame or of other aligned data."""
    for name, value, remedy in (("gold", gold, "gold_column="), ("units", units, "unit=")):
        if value is not None:
            raise TypeError(f"{name}= is for two sequences; for a data frame give {remedy}, the name of a column")
    if metric is not None and options.get("metrics") is not None:
        raise TypeError("give either metric= or metrics=")
    reading: dict[str, Any] = {name: value for name, value in options.items() if name in FRAME_READING}
    rest: dict[str, Any] = {name: value for name, value in options.items() if name not in FRAME_READING}
    if metric is not None:
        rest["metrics"] = metric
    fill_options(SelectionOptions, cast("SelectionOptions", rest))  # a wrong one before data are read
    if isinstance(data, Counts):
        if wrong := next(iter(reading), None):
            raise TypeError(f"{wrong}= is for data frames; these are Counts already")
        return compare_all(data, **rest)
    metrics = rest.get("metrics") or ()
    metrics = metrics if isinstance(metrics, list | tuple) else (metrics,)
    units_named = rest.get("unit") or ()
    levels = (units_named,) if isinstance(units_named, str) else tuple(units_named)
    groups, frame, index = reading.pop("groups", None), *move_index(data)
    if not isinstance(groups, Mapping):
        named = (groups,) if isinstance(groups, str) else tuple(groups or ())
        groups = [*dict.fromkeys(name for name in (*named, *levels, rest.get("by")) if name not in {None, "item"})]
    if reading.get("ids") is None:
        reading["ids"] = index
    asked = [name for name in metrics if isinstance(name, str)]
    counts = as_counts(frame, groups=groups, names=names, metrics=asked, **reading)
    return compare_all(counts, **rest)


@take_positions(1, "write compare_all({'new': a, 'old': b}, metrics='mean')")
def compare_all(counts: Counts | Any, **options: Unpack[SelectionOptions]) -> Results:
    """Compare any number of systems by any number of metrics, on the same random swaps.

    The same data, seed and number of trials give the same counts on any machine and cluster. If you add a system,
    metric or pair, the counts of the others stay the same.

    Parameters
    ----------
    counts : Counts, mapping, data frame, or array of shape (n_items, n_systems)
        The data, from `sigdask.read` or a constructor of `Counts`, or item scores in a form that `sigdask.as_counts`
        takes.
    **options
        As in `compare_sets`.

    Returns
    -------
    Results
        One `Result` for each comparison, in the order of subsets, pairs and metrics. `print` shows a report.

    Raises
    ------
    InputError
        The data do not allow a requested analysis. The message says which and why.
    TypeError
        There is no such option.
    UnfinishedError
        The cluster was lost.

    Examples
    --------
    >>> scores = {"a": [4, 5, 4], "b": [1, 1, 2], "c": [4, 4, 4]}
    >>> results = compare_all(scores)
    >>> results
    Results: 3 comparisons, alpha 0.05
    A  B  metric  score A  score B    A - B  unadjusted p  adjusted p
    a  b  mean     4.3333   1.3333  +3.0000          0.25        0.25  not significant
    a  c  mean     4.3333   4.0000  +0.3333             1           1  not significant
    b  c  mean     1.3333   4.0000  -2.6667          0.25        0.25  not significant
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

    Metrics are those that the data suggest, or one or several by name:

    >>> found = Counts.from_responses([1, 1, 1, 0], {"new": [1, 1, 1, 0], "old": [0, 0, 0, 1]})
    >>> [r.metric for r in compare_all(found)], [r.metric for r in compare_all(found, metrics="recall")]
    (['recall', 'precision', 'f1'], ['recall'])
    """
    return compare_sets([counts], **options)


def compare_sets(test_sets: Sequence[Counts | Any], **options: Unpack[SelectionOptions]) -> Results:
    """Compare systems on several test sets, judged as one family.

    By default p is adjusted over all comparisons of all test sets.

    Parameters
    ----------
    test_sets : sequence of Counts, or of what `compare_all` takes
        Test sets with different names. Each has its own random swaps.
    metrics : str, or sequence of str, Metric or BlackBox, optional
        Names that `sigdask metrics` lists, `module:attribute`, or metric objects. By default those that fit the data.
    pairs : sequence of (str, str), optional
        Systems to compare; by default all pairs.
    baseline : str, optional
        Compare all other systems only with this one, which is `b` in the results. Not with `pairs`.
    unit : str or sequence of str, optional
        Unit that is swapped as a whole: "item" (the default) or a grouping column, such as "document". If you give
        several nested units, the coarsest is swapped, and the results for the finer ones are shown next to it.
    by : str, optional
        Compare within each value of this grouping column.
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
        a fifth of a second for auto, and 100 for each comparison for both (about an hour if it is computed in parts).
    trials : int, optional
        Number of random trials. By default 1,048,576; 131,072 for metrics of ranks, 20,000 for agreement with people,
        and 10,000 for metrics computed by a function.
    seed : int
        Seed of the random stream, at least 0, by default 0.
    alpha : float
        Significance level, between 0 and 1, by default 0.05.
    adjust : str, optional
        Adjustment of p for everything that is compared here. "holm": family-wise error, from the p-values alone. "bh":
        false discovery rate. "max-t": family-wise error from shared trials (step-down, studentised). "tukey": Tukey's
        HSD. "none": p as it is. By default max-t for three or more systems, else none. It is holm instead of max-t if
        the method is exact, or if a metric is computed by a function, from ranks, from sets or from agreement with
        people.
    grouping : {"auto", "letters", "clusters", "tied", "ranks"}
        How rankings, tables, pages and figures mark systems that are not significantly different. letters: they share
        a letter. clusters: clusters of ranks that do not overlap. tied: "=" for ties with the best. ranks: ranges of
        ranks. auto, the default: letters if eight are enough, else ranks.
    together : bool
        Also judge each pair over all test sets or subsets: by the mean of its differences, and by the number of sets in
        which it replicates. By default False.
    beside : bool
        Also show p if finer units are swapped, and if coarser ones are within which differences are correlated. By
        default True.
    tests : str or sequence of str, optional
        Classical tests to show next to p: "t", "sign", "wilcoxon" and "mcnemar" of matched pairs, by `unit`; and, for
        contrast, "two-sample-t" and "binomial", which treat the systems as independent. "all" stands for all. If a test
        does not fit the score, `Result.tests` says why.
    interval : {"auto", "bootstrap", "inversion", "conditional-exact", "none"}, optional
        Kind of confidence interval of each difference. "bootstrap": BCa interval of the paired bootstrap (percentiles
        for metrics computed by a function). "inversion": all differences that the randomization test of a mean does
        not reject. "conditional-exact": for 0/1 scores, the interval that agrees with the exact test
        (docs/statistics/intervals.md). "auto": Tango's score interval for 0/1 scores of items. For other metrics, with
        up to 10,000 units, "inversion" for means (with bootstrap intervals of both scores) and "bootstrap" for the
        rest. With more units, a normal interval with the jackknife's standard error. "none": no intervals. By default
        "auto" for 100 comparisons or fewer, else "none". Whole units are resampled, the same ones that are swapped.
    confidence : float
        Confidence level of the intervals, between 0 and 1, by default 0.95.
    resamples : int, optional
        Number of resamples of the bootstrap: by default 10,000, and 1,000 for metrics of ranks and metrics computed by
        a function. For "inversion" the number of trials, by default that of the test (for "auto" 10,000 to 131,072).
    second_run : bool
        Check p by a second, independent run with the same number of trials. By default True.
    cluster : str, distributed.Client or cluster object
        Where trials are counted: the name of a cluster ("auto", "threads", "local", ...), an address, or a cluster
        file. Or a dask client or cluster (LocalCluster, SLURMCluster, KubeCluster, ...), which is left running. "auto",
        the default, takes what suits the work. "auto" and "current" use the active client, or the scheduler in dask's
        settings.
    workers : int, optional
        Number of threads or processes to start, by default one for each core.
    progress : callable, optional
        Called with the number of finished trials and the number of all trials.
    blocks_per_task : int, optional
        Size of tasks in blocks of 4,096 trials. By default it depends on the measured speed.
    cache : bool
        Use the extraction cache for statistics of outputs (n-gram counts, edit distances, measures of topics), by
        default True. It is in `$SIGDASK_CACHE`, by default `~/.cache/sigdask`.

    Returns
    -------
    Results
        One `Result` for each comparison, in the order of test sets, subsets, pairs and metrics.

    Raises
    ------
    InputError
        The data do not allow a requested analysis, two test sets have the same name, or options contradict each other.
        The message says which and why.
    TypeError
        There is no such option.
    UnfinishedError
        The cluster was lost.

    References
    ----------
    Test: Noreen 1989, "Computer-intensive methods for testing hypotheses"; Yeh 2000, "More accurate tests for the
    statistical significance of result differences", COLING. The sources of all other methods are in docs/statistics/,
    and `Results.cite` names the ones that were used.

    Examples
    --------
    >>> news = as_counts({"new": [4, 5, 4, 3], "old": [1, 1, 2, 3]}, name="news")
    >>> law = as_counts({"new": [3, 5], "old": [2, 2]}, name="law")
    >>> [(r.test_set, r.p_value) for r in compare_sets([news, law], interval="none")]
    [('news', 0.25), ('law', 0.5)]
    """
    all_options = fill_options(SelectionOptions, options)
    return _compute_results(_build_study(test_sets, all_options), all_options)


def compare_opened(
    test_sets: Sequence[Counts | Any],
    *,
    open_pairs: Sequence[tuple[str, str]] = (),
    **options: Unpack[SelectionOptions],
) -> tuple[Results, tuple[ComparisonDetails, ...]]:
    """Compare systems as `compare_sets` does, and return the results with the details of single comparisons.

    With few comparisons, all have details. With many, these have: the ones of `open_pairs`, the best system against its
    runner-up, and borderline results. Details are the null distribution, p against the number of trials, and the units
    that decide.

    Parameters
    ----------
    test_sets : sequence of Counts, or of what `compare_all` takes
        Test sets with different names.
    open_pairs : sequence of (str, str)
        Pairs of systems whose comparisons have details in any case.
    **options
        As in `compare_sets`.

    Returns
    -------
    (Results, tuple of ComparisonDetails)
        All comparisons, and the details of some. `Results.plot_null`, `plot_units` and `write_figures` take details.

    Raises
    ------
    InputError
        The systems of a pair in `open_pairs` are not compared, or as in `compare_sets`.

    Examples
    --------
    >>> results, details = compare_opened([{"new": [4, 5, 4, 3], "old": [1, 1, 2, 3]}], interval="none")
    >>> [(results[found.row].a, results[found.row].b) for found in details]
    [('new', 'old')]
    """
    all_options = fill_options(SelectionOptions, options)
    study = _build_study(test_sets, all_options)
    results = _compute_results(study, all_options)
    chosen = find_pair_rows(results.table, open_pairs)
    leading = Standings.from_table(results.table).list_leading_rows()
    rows = select_rows(len(results), headline.build_verdict(results).close, leading=leading, chosen=chosen)
    return results, compute_details(study, results.table, rows)


def _build_study(test_sets: Sequence[Counts | Any], options: SelectionOptions) -> Study:
    """Return the study of some test sets with the given options."""
    requests = build_specs(test_sets, options)
    extracted = extract_with_options([(counts, spec.find_metrics(counts)) for counts, spec in requests], options)
    return prepare_study(
        [(counts, spec, options["alternative"]) for counts, (_, spec) in zip(extracted, requests, strict=True)],
        alpha=options["alpha"],
        adjust=options["adjust"],
        together=options["together"],
        second_run=options["second_run"],
    )


def _compute_results(study: Study, options: SelectionOptions) -> Results:
    """Return the results of a study after counting its trials."""
    comparison_results = study.build_results(count_with_options(study.jobs, options))
    table, notes = replace(comparison_results.table, grouping=options["grouping"]), comparison_results.notes
    if options["grouping"] != "auto" and not any(iter_ranked(table)):
        notes = (*notes, note_unused(OPTIONS["grouping"], "without all pairs of three or more systems, two-sided"))
    return convert_results(
        replace(comparison_results, table=table, notes=notes, units=UnitTables.from_study(study)), Results
    )


def _share_documentation(source: Callable[..., Any], *functions: Callable[..., Any]) -> None:
    """Write what one function's docstring says of parameters into others, where they say "As in" that function.

    An entry `**options` stands for all parameters that a docstring does not describe itself.
    """
    if not source.__doc__:  # python -OO
        return
    entries = _split_parameters(source.__doc__)
    known = {name.strip(): head for head in entries for name in head.split(" :")[0].split(",")}
    for function in functions:
        own = _split_parameters(function.__doc__ or "")
        described = {name.strip() for head in own for name in head.split(" :")[0].split(",")}
        for head, text in own.items():
            if f"As in `{source.__name__}`" in text:
                names = [name.strip() for name in head.split(",")]
                if head == "**options":
                    names = [name for name in known if name in OPTIONS and name not in described]
                shared = [entries[key] for key in dict.fromkeys(known[name] for name in names if name in known)]
                function.__doc__ = (function.__doc__ or "").replace(text, "".join(shared))


def _split_parameters(doc: str) -> dict[str, str]:
    """Return the entries of the parameters of a docstring, by their first lines."""
    section = re.search(r"^( *)Parameters\n +-+\n(.*?)\n\n", doc, re.DOTALL | re.MULTILINE)
    if section is None:
        return {}
    parts = re.split(rf"^(?={section[1]}\S)", f"{section[2]}\n", flags=re.MULTILINE)
    return {part.split("\n", 1)[0].strip(): part for part in parts if part}


_share_documentation(compare_sets, compare, compare_all, compare_opened)


def __getattr__(name: str) -> Any:
    """Import a name of another analysis when it is used, so that comparisons start sooner."""
    if name not in _OTHER_ANALYSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"sigdask.{_OTHER_ANALYSES[name]}"), name)
    if name == "power":
        _share_documentation(compare_sets, value)
    return value
