"""Compare systems: from aligned counts to results. Wires the rooms, decides nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sigdask import metrics as known
from sigdask.clusters import Cluster
from sigdask.comparisons import Asked, Method, list_comparisons, list_jobs
from sigdask.counts import Counts
from sigdask.engine import Progress, count_jobs
from sigdask.errors import InputError
from sigdask.judge import Judge
from sigdask.metrics.base import BlackBox, Metric
from sigdask.panels import Pair, Units
from sigdask.randomization import Alternative
from sigdask.results import Result, Results
from sigdask.shuffles import MAX_TRIALS

AnyMetric = str | Metric | BlackBox


def compare(
    a: Sequence[Any] | NDArray[Any],
    b: Sequence[Any] | NDArray[Any],
    *,
    gold: Sequence[Any] | NDArray[Any] | None = None,
    metric: AnyMetric | None = None,
    names: tuple[str, str] = ("A", "B"),
    ids: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
    **options: Any,
) -> Result:
    """Compare two systems given as arrays.

    Parameters
    ----------
    a, b : sequence, length n_items
        Item scores; with `gold`, labels.
    gold : sequence, length n_items, optional
        The right labels.
    metric : str, Metric or BlackBox, optional
        By default the mean of scores, or accuracy of labels.
    names : tuple of str
        What to call the systems.
    ids : sequence of str, optional
        Item ids; without them items are known by position.
    units : sequence of str, optional
        What is exchanged as a whole (documents, topics), for each item.
    **options
        As in `compare_all`.

    Returns
    -------
    Result

    Examples
    --------
    >>> result = compare([1, 1, 0, 1, 1], [0, 1, 0, 0, 0])
    >>> result.method, result.n_extreme, result.n_trials, result.p_value
    ('exact', 2, 8, 0.25)
    """
    systems = dict(zip(names, (a, b), strict=True))
    groups = {"unit": units} if units is not None else None
    if gold is None:
        counts = Counts.from_scores(systems, ids=ids, groups=groups)
    else:
        counts = Counts.from_labels(gold, systems, ids=ids, groups=groups)
    chosen = metric or ("mean" if gold is None else "accuracy")
    unit = "item" if units is None else "unit"
    return compare_all(counts, metrics=[chosen], unit=unit, **options)[0]


def compare_all(  # every option of the command line
    counts: Counts,
    *,
    metrics: Sequence[AnyMetric],
    pairs: Sequence[tuple[str, str]] | None = None,
    baseline: str | None = None,
    unit: str | None = None,
    by: str | None = None,
    alternative: Alternative = "two-sided",
    method: Method = "auto",
    trials: int | None = None,
    seed: int = 0,
    alpha: float = 0.05,
    second_run: bool = True,
    cluster: str | Cluster = "auto",
    workers: int | None = None,
    progress: Progress | None = None,
    blocks_per_task: int | None = None,
) -> Results:
    """Compare any number of systems under any number of metrics, on shared shuffles.

    The same data, seed and number of trials give the same counts on any machine, cluster and
    partition; another system, metric or pair changes no other count.

    Parameters
    ----------
    counts : Counts
        The aligned systems, from `sigdask.read` or a constructor of `Counts`.
    metrics : sequence of str, Metric or BlackBox
        Names as `sigdask metrics` lists them, `module:attribute`, or metrics themselves.
    pairs : sequence of (str, str), optional
        Systems to compare; by default all pairs.
    baseline : str, optional
        Compare every other system with this one only, which becomes `b`.
    unit : str, optional
        What is exchanged as a whole: "item" or a grouping column.
    by : str, optional
        Compare within each value of this grouping column.
    alternative : {"two-sided", "greater", "less"}
        Of score_a - score_b.
    method : {"auto", "randomization", "exact", "both"}
        auto: all arrangements where 20 or fewer units are discordant (12 for black boxes), random
        trials otherwise.
    trials : int, optional
        Random trials; 1,048,576 by default, 10,000 for black boxes.
    seed : int
        Of the stream; not negative.
    alpha : float
        Level of the verdicts.
    second_run : bool
        Cross-check by a second, independent run of as many trials.
    cluster, workers, progress, blocks_per_task
        As in `sigdask.engine.count_jobs`.

    Returns
    -------
    Results

    Raises
    ------
    InputError
        Something asked for cannot be had from these data; it says what and why.
    UnfinishedError
        The cluster was lost.
    """
    _check_options(alternative, method, trials, alpha)
    if not metrics:
        raise InputError("no metric given; `sigdask metrics` lists them")
    grouped = counts if unit is None else counts.with_unit(unit)
    asked = Asked(
        counts=grouped,
        units=Units.of(grouped, seed),
        pairs=_pairs(grouped, pairs, baseline),
        method=method,
        trials=trials,
    )
    comparisons = list(list_comparisons(asked, [_found(m, grouped) for m in metrics], by))
    jobs, slots = list_jobs(grouped, comparisons, second_run=second_run)
    tallies = count_jobs(
        jobs, cluster=cluster, workers=workers, progress=progress, blocks_per_task=blocks_per_task
    )  # fmt: skip
    judged = Judge(asked, alternative, alpha, sum(c.sampled for c in comparisons))
    results = tuple(judged.result(c, slots[k], tallies) for k, c in enumerate(comparisons))
    return Results(results, seed, alpha, counts.warnings)


def _check_options(alternative: str, method: str, trials: int | None, alpha: float) -> None:
    if alternative not in get_args(Alternative):
        raise InputError(f"alternative = {alternative!r}: must be one of {', '.join(get_args(Alternative))}")
    if method not in get_args(Method):
        raise InputError(f"method = {method!r}: must be one of {', '.join(get_args(Method))}")
    if trials is not None and trials < 1:
        raise InputError(f"trials = {trials}: must be at least 1")
    if trials is not None and trials > MAX_TRIALS:
        raise InputError(f"trials = {trials}: the stream has 2**48 = {MAX_TRIALS:,}")
    if not 0 < alpha < 1:
        raise InputError(f"alpha = {alpha}: must lie between 0 and 1")


def _found(metric: AnyMetric, counts: Counts) -> Metric | BlackBox:
    return known.find(metric, counts.of_one) if isinstance(metric, str) else metric


def _pairs(counts: Counts, pairs: Sequence[tuple[str, str]] | None, baseline: str | None) -> list[Pair]:
    place = {name: k for k, name in enumerate(counts.systems)}
    for name in [n for pair in pairs or [] for n in pair] + ([baseline] if baseline is not None else []):
        if name not in place:
            raise InputError(f"no system {name!r}; systems: {', '.join(counts.systems)}")
    if pairs is not None:
        return [(place[a], place[b]) for a, b in pairs]
    if baseline is not None:
        return [(k, place[baseline]) for k in range(counts.n_systems) if k != place[baseline]]
    return [(i, j) for i in range(counts.n_systems) for j in range(i + 1, counts.n_systems)]


def as_counts(scores: Any, **options: Any) -> Counts:
    """Return counts of a mapping or data frame of item scores, one column a system.

    Parameters
    ----------
    scores : mapping or data frame (pandas, polars)
        Column name to item scores.
    **options
        As in `Counts.from_scores`.
    """
    columns = scores.to_dict(as_series=False) if hasattr(scores, "get_column") else dict(scores.items())
    return Counts.from_scores({str(name): np.asarray(column) for name, column in columns.items()}, **options)
