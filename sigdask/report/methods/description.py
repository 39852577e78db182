"""The test's full description, for notes below tables and for methods sections, with the works that it rests on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.stream.shuffles import SCHEME
from sigdask.report.methods.text import ADJUSTING, COMPUTED, INTERVALS, Methods
from sigdask.report.summary.sentences import ADJUSTED, BOOTSTRAP_T, counted_as
from sigdask.report.tables.cells import METHODS
from sigdask.results.adjusted import intervals_to_show
from sigdask.results.columns.adjusted import SIMULTANEOUS
from sigdask.results.columns.coded import Coded, Value
from sigdask.results.comparisons import ComparisonResults, made_by
from sigdask.results.table import Table, details_of
from sigdask.text import count_noun

SIDED = {"two-sided": "two-sided", "greater": "one-sided (A > B)", "less": "one-sided (A < B)"}

OF_STOPPING = {"besag-clifford": ("besag1991",), "confidence-sequence": ("gandy2009", "ding2020")}


def sentences(results: ComparisonResults, *, intervals: bool = True) -> Iterator[str]:
    """Yield what a reader must know to repeat the test: kind, units, trials, level, family, scorers, version, seed.

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
    sided = " and ".join(SIDED[value] for value in used(table.alternative))
    yield (
        f"Approximate randomization (stratified shuffling), {sided}: the outputs of two systems are exchanged by "
        f"{' or '.join(used(table.unit))}, {_range(table.n_units)} units."
    )
    yield f"{_how_p(table)}."
    yield from _stopping(table)
    yield f"Significant means {_significant(results)}."
    yield from _intervals(table) if intervals else ()
    scorers = {score.name: score.signature for score in used(table.metric) if score.signature}
    yield from (f"{metric} is {signature}." for metric, signature in scorers.items())
    yield f"sigdask {made_by()}, scheme {SCHEME}, seed {results.seed}."


def sources(results: ComparisonResults, *, intervals: bool = True) -> tuple[str, ...]:
    """Return the keys of the works that the description rests on; parameters as of `sentences`."""
    table = results.table
    found = ["noreen1989", "yeh2000"]
    if bool((table.n_trials > 0)[~table.exact].any()):
        found.append("phipson2010")
    found += [COMPUTED[by[0]] for by in used(table.exact_by) if by and by[0] in COMPUTED]
    for stops in table.stops:
        found += OF_STOPPING[stops.rule]
    if results.family is not None:
        found += Methods(ADJUSTING[results.family.adjust]).keys
        found += ["efron1993"] if results.family.n_resamples else []
    if intervals and table.intervals is not None:
        found += [key for name in used(table.intervals.method) if name for key in Methods(INTERVALS[name]).keys]
    return (*dict.fromkeys(found), "sigdask")


def used(column: Coded[Value]) -> list[Value]:
    """Return the values that rows have, in the column's order."""
    return [column.values[code] for code in np.unique(column.codes).tolist()]


def _how_p(table: Table) -> str:
    n, n_exact = len(table), int(np.count_nonzero(table.exact))
    bounded = ~table.exact & (table.n_trials == 0)
    sampled = table.n_trials[~table.exact & ~bounded]
    parts = []
    if n_exact:
        parts.append("exact p" if n_exact == n else f"exact p of {n_exact:,} of {count_noun(n, 'comparison')}")
    if bounded.any():
        parts.append(f"exact p between limits of {np.count_nonzero(bounded):,}")
    if len(sampled):
        others = "" if len(sampled) == n else " of the others"
        parts.append(f"p-values{others} are (exceedances + 1) / (trials + 1) of {_range(sampled)} random trials")
    return "; ".join(parts)[0].upper() + "; ".join(parts)[1:]


def _stopping(table: Table) -> Iterator[str]:
    for stops in table.stops:
        if stops.rule == "besag-clifford":
            yield f"Counting stopped early by the rule of Besag and Clifford, h = {stops.h}."
        else:
            yield f"Counting stopped early by a confidence sequence, resampling risk {stops.epsilon:g}; it gives no p."


def _significant(results: ComparisonResults) -> str:
    family = results.family
    if family is None:
        many = ", not adjusted for their number" if len(results) > 1 else ""
        return f"p at most {results.alpha:g}{many}"
    counted = f", {family.n_trials:,} {counted_as(family)}" if family.n_trials else ""
    n_larger, larger = int(np.count_nonzero(details_of(results.table).has_two)), ""
    if n_larger and family.adjust != "tukey":
        larger = (
            f"; in {n_larger:,} of them, whose differences are skewed, the larger of that and {BOOTSTRAP_T}, "
            f"{family.n_resamples or 0:,} resamples"
        )
    return (
        f"adjusted p at most {results.alpha:g}, by {ADJUSTED[family.adjust]} over "
        f"{count_noun(family.n_comparisons, 'comparison')}{counted}{larger}"
    )


def _intervals(table: Table) -> Iterator[str]:
    own, kind = intervals_to_show(table)
    if own is None or bool(np.isnan(own.low).all()):
        return
    if kind == SIMULTANEOUS:
        yield f"Simultaneous {_percent(own.confidence)} intervals of differences: studentised bootstrap, in one step."
        return
    drawn = own.n_resamples[own.n_resamples > 0]
    resamples = f", {_range(drawn)} resamples" if len(drawn) else ""
    names = " or ".join(METHODS[name] for name in used(own.method) if name)
    each = ", each comparison alone" if kind else ""
    yield f"{_percent(own.confidence)} intervals of the difference{each}: {names}{resamples}."


def _percent(confidence: NDArray[np.float64]) -> str:
    return " and ".join(f"{100 * share:.4g} %" for share in np.unique(confidence[~np.isnan(confidence)]).tolist())


def _range(numbers: NDArray[np.int64]) -> str:
    low, high = int(numbers.min()), int(numbers.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
