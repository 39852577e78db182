"""Full description of the test for table notes and methods sections, with its references."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.stream import SCHEME
from sigdask.report.summary.sentences import name_trials
from sigdask.report.wording import (
    ADJUSTMENTS,
    ALTERNATIVES,
    EXACT_METHOD_SOURCES,
    INTERVAL_METHODS,
    STOPPING_SOURCES,
    find_citations,
)
from sigdask.results.columns import SIMULTANEOUS, CodedColumn, Value
from sigdask.results.comparisons import ComparisonResults, get_version
from sigdask.results.table import Table, get_details, select_intervals
from sigdask.text import format_count


def describe_test(results: ComparisonResults, *, intervals: bool = True) -> Iterator[str]:
    """Yield sentences with all that is needed to repeat the test, such as units, trials, level, version and seed.

    Parameters
    ----------
    results : ComparisonResults
        What was found.
    intervals : bool
        Whether intervals are shown, so that it is said how they were had.
    """
    table = results.table
    if not len(table):
        return
    sided = " and ".join(ALTERNATIVES[value].note for value in list_used(table.alternative))
    yield (
        f"Approximate randomization (stratified shuffling), {sided}: the outputs of two systems are exchanged by "
        f"{' or '.join(list_used(table.unit))}, {_format_range(table.n_units)} units."
    )
    yield f"{_describe_p_values(table)}."
    yield from _describe_stopping(table)
    yield f"Significant means {_describe_significance(results)}."
    yield from _describe_intervals(table) if intervals else ()
    scorers = {score.name: score.signature for score in list_used(table.metric) if score.signature}
    yield from (f"{metric} is {signature}." for metric, signature in scorers.items())
    yield f"sigdask {get_version()}, scheme {SCHEME}, seed {results.seed}."


def list_sources(results: ComparisonResults, *, intervals: bool = True) -> tuple[str, ...]:
    """Return the keys of the works that the description cites; parameters as in `describe_test`."""
    table = results.table
    keys = ["noreen1989", "yeh2000"]
    if bool((table.n_trials > 0)[~table.exact].any()):
        keys.append("phipson2010")
    keys += [
        EXACT_METHOD_SOURCES[exact_by[0]]
        for exact_by in list_used(table.exact_by)
        if exact_by and exact_by[0] in EXACT_METHOD_SOURCES
    ]
    for stops in table.stops:
        keys += STOPPING_SOURCES[stops.rule]
    if results.family is not None:
        keys += find_citations(ADJUSTMENTS[results.family.adjust].sentence)
        keys += ["efron1993"] if results.family.n_resamples else []
    if intervals and table.intervals is not None:
        keys += [
            key
            for name in list_used(table.intervals.method)
            if name
            for key in find_citations(INTERVAL_METHODS[name].sentence)
        ]
    return (*dict.fromkeys(keys), "sigdask")


def list_used(column: CodedColumn[Value]) -> list[Value]:
    """Return the values of a coded column that occur in its rows, in the order of their codes."""
    return [column.values[code] for code in np.unique(column.codes).tolist()]


def _describe_p_values(table: Table) -> str:
    n, n_exact = len(table), int(np.count_nonzero(table.exact))
    bounded = ~table.exact & (table.n_trials == 0)
    sampled = table.n_trials[~table.exact & ~bounded]
    parts = []
    if n_exact:
        parts.append("exact p" if n_exact == n else f"exact p of {n_exact:,} of {format_count(n, 'comparison')}")
    if bounded.any():
        parts.append(f"exact p between limits of {np.count_nonzero(bounded):,}")
    if len(sampled):
        others = "" if len(sampled) == n else " of the others"
        parts.append(f"p-values{others} are (exceedances + 1) / (trials + 1) of {_format_range(sampled)} random trials")
    return "; ".join(parts)[0].upper() + "; ".join(parts)[1:]


def _describe_stopping(table: Table) -> Iterator[str]:
    for stops in table.stops:
        if stops.rule == "besag-clifford":
            yield f"Counting stopped early by the rule of Besag and Clifford, h = {stops.h}."
        else:
            yield f"Counting stopped early by a confidence sequence, resampling risk {stops.epsilon:g}; it gives no p."


def _describe_significance(results: ComparisonResults) -> str:
    family = results.family
    if family is None:
        unadjusted_text = ", not adjusted for their number" if len(results) > 1 else ""
        return f"p at most {results.alpha:g}{unadjusted_text}"
    trials_text = f", {family.n_trials:,} {name_trials(family)}" if family.n_trials else ""
    n_larger, larger_text = int(np.count_nonzero(get_details(results.table).has_two_methods)), ""
    if n_larger and family.adjust != "tukey":
        larger_text = (
            f"; in {n_larger:,} of them, whose differences are skewed, the larger of that and "
            f"{ADJUSTMENTS['bootstrap-t'].label}, {family.n_resamples or 0:,} resamples"
        )
    return (
        f"adjusted p at most {results.alpha:g}, by {ADJUSTMENTS[family.adjust].label} over "
        f"{format_count(family.n_comparisons, 'comparison')}{trials_text}{larger_text}"
    )


def _describe_intervals(table: Table) -> Iterator[str]:
    intervals, kind = select_intervals(table)
    if intervals is None or bool(np.isnan(intervals.low).all()):
        return
    if kind == SIMULTANEOUS:
        yield (
            f"Simultaneous {_format_percentages(intervals.confidence)} intervals of differences: studentised "
            "bootstrap, in one step."
        )
        return
    n_resamples = intervals.n_resamples[intervals.n_resamples > 0]
    resamples = f", {_format_range(n_resamples)} resamples" if len(n_resamples) else ""
    names = " or ".join(INTERVAL_METHODS[name].name for name in list_used(intervals.method) if name)
    scope = ", each comparison alone" if kind else ""
    yield f"{_format_percentages(intervals.confidence)} intervals of the difference{scope}: {names}{resamples}."


def _format_percentages(confidence: NDArray[np.float64]) -> str:
    return " and ".join(f"{100 * share:.4g} %" for share in np.unique(confidence[~np.isnan(confidence)]).tolist())


def _format_range(numbers: NDArray[np.int64]) -> str:
    low, high = int(numbers.min()), int(numbers.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
