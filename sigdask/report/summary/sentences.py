"""Sentences about a comparison, and the line that makes results reproducible."""

from __future__ import annotations

import math

import numpy as np

from sigdask.randomization.stream.swaps import SCHEME
from sigdask.report.tables.cells import (
    INTERVAL_METHOD_NAMES,
    describe_method,
    format_confidence,
    format_ends,
    format_interval,
    is_bounded,
)
from sigdask.results.comparisons import ComparisonResults, FamilyNote, get_version
from sigdask.results.record import OtherUnitResult, Result
from sigdask.results.table import Table
from sigdask.statistics.bounds import clopper_pearson
from sigdask.statistics.rounding import format_limits, format_p_equals, format_score, format_signed
from sigdask.text import format_count, make_printable

BOOTSTRAP_T = "the step-down studentised bootstrap"
ADJUSTED = {
    "holm": "Holm",
    "hochberg": "Hochberg",
    "bh": "Benjamini-Hochberg (false discovery rate)",
    "by": "Benjamini-Yekutieli (false discovery rate)",
    "max-t": "step-down max-T on shared swaps",
    "max-t:raw": "step-down max-T, not studentised, on shared swaps",
    "single-step-max-t": "single-step max-T on shared swaps",
    "bootstrap-t": BOOTSTRAP_T,
    "tukey": "randomised Tukey HSD",
}


def describe_standing(r: Result, alpha: float) -> str:
    """Return a sentence on which system scores better, its p (adjusted where there is one) and verdict."""
    better = r.better()
    if better is None:
        return f"{r.a} and {r.b} score the same, {format_score(r.score_a)}."
    other, score, against = (r.b, r.score_a, r.score_b) if better == r.a else (r.a, r.score_b, r.score_a)
    verdict = r.verdict(alpha)
    words, aside = "is better than", ""
    if not r.decision(alpha):
        words = f"scores {'higher' if r.higher_is_better else 'lower'} than"
        aside = "" if r.higher_is_better else " (lower is better)"
    sided = {"two-sided": "two-sided", "greater": "one-sided, A > B", "less": "one-sided, A < B"}[r.alternative]
    adjusted = "" if r.p_adjusted is None else f"; adjusted {format_p_equals(r.p_adjusted, alpha)}"
    return (
        f"{better} {words} {other}, {format_score(score)} against {format_score(against)}{aside}; "
        f"{_format_p(r, alpha)} "
        f"({_describe_precision(r, alpha)}; {sided}; {r.n_discordant:,} of {format_count(r.n_units, 'unit')} "
        f"discordant){adjusted}: "
        f"{verdict}{'' if r.decision(alpha) is None else f' at {alpha:g}'}."
    )


def describe_p(result: Result, alpha: float) -> str:
    """Return text on p with its interval, or with its limits alone if a stopping rule determines no more.

    Parameters
    ----------
    result : Result
        The comparison.
    alpha : float
        What its p is held against.
    """
    return f"{_format_p(result, alpha)} ({_describe_precision(result, alpha)})"


def _format_p(result: Result, alpha: float) -> str:
    label = "" if result.p_adjusted is None else "unadjusted "
    if math.isnan(result.p_value):
        return f"{label}p in {format_limits(*result.p_interval, alpha)}"
    return f"{label}{format_p_equals(result.p_value, alpha)}"


def _describe_precision(result: Result, alpha: float) -> str:
    if result.method == "exact":
        return "exact"
    if is_bounded(result):
        return f"exact p between {format_limits(*result.p_interval, alpha)}"
    if math.isnan(result.p_value):
        return f"{format_confidence(result)} interval; {describe_method(result)}"
    return f"{format_confidence(result)} interval {format_limits(*result.p_interval, alpha)}; {describe_method(result)}"


def describe_size(r: Result) -> str:
    """Return the difference with its intervals and effect size."""
    interval_shown = r.interval
    assert interval_shown is not None
    noun = "trials" if interval_shown.method == "inversion" else "resamples"
    draws_text = "" if interval_shown.n_resamples is None else f", {interval_shown.n_resamples:,} {noun}"
    d = "" if r.paired_d is None else f"; paired d {r.paired_d:+.2f}"
    label = "" if r.p_adjusted is None else "unadjusted "
    limits = r.interval_simultaneous
    simultaneous_text = (
        "" if limits is None else f"; simultaneous interval {format_ends(*limits)} (studentised bootstrap)"
    )
    return (
        f"{r.a} - {r.b} = {format_signed(r.difference)}, {label}{100 * interval_shown.confidence:.4g} % interval "
        f"{format_interval(r)} "
        f"({INTERVAL_METHOD_NAMES.get(interval_shown.method, interval_shown.method)} by "
        f"{r.unit}{draws_text}){simultaneous_text}{d}"
    )


def describe_alternative_unit(b: OtherUnitResult, alpha: float) -> str:
    """Return text on the p-value of the test that swaps another unit, with its interval."""
    if b.method == "exact":
        return f"{format_p_equals(b.p_value, alpha)} (exact)"
    low, high = map(float, clopper_pearson(b.n_extreme, b.n_trials))
    limits = format_limits(low, high, alpha)
    return f"{format_p_equals(b.p_value, alpha)} (99 % interval {limits}; {format_count(b.n_trials, 'trial')})"


def describe_settings(results: ComparisonResults) -> str:
    """Return a line with the settings that reproduce the results: version, seed, unit, alternative, level."""
    table = results.table
    return make_printable(
        f"sigdask {get_version()}, scheme {SCHEME}, seed {results.seed}: stratified shuffling by {table.unit[0]}, "
        f"{table.alternative[0]}, alpha {results.alpha:g}{_describe_family(results)}"
    )


def _describe_family(results: ComparisonResults) -> str:
    note = results.family
    if note is None:
        return ""
    trials_text = "" if note.n_trials is None else f", {note.n_trials:,} {name_trials(note)}"
    n = f"{note.n_comparisons:,} comparison{'s' * (note.n_comparisons != 1)}"
    return f"; p adjusted by {ADJUSTED[note.adjust]} over {n}{trials_text}"


def name_trials(note: FamilyNote) -> str:
    """Return the word for what a family's p-values count: resamples, arrangements or trials."""
    return "resamples" if note.adjust == "bootstrap-t" else "arrangements" if note.exact else "trials"


def is_adjusted(table: Table) -> bool:
    """Return whether any p was adjusted."""
    return not bool(np.isnan(table.p_adjusted).all())
