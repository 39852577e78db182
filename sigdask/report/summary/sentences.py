"""Sentences of a comparison, and the line that makes results repeatable."""

from __future__ import annotations

import math

import numpy as np

from sigdask.randomization.stream.shuffles import SCHEME
from sigdask.report.tables.cells import METHODS, confidence, ends_of, how, interval_text, is_bounded
from sigdask.results.comparisons import ComparisonResults, FamilyNote, made_by
from sigdask.results.record import OtherUnitResult, Result
from sigdask.results.table import Table
from sigdask.statistics.bounds import interval
from sigdask.statistics.rounding import limits_text, p_equals, score_text, signed
from sigdask.text import count_noun, printable

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


def standing(r: Result, alpha: float) -> str:
    """Say which system scores better, by what p, and what that means: of an adjusted p, where there is one."""
    better = r.better()
    if better is None:
        return f"{r.a} and {r.b} score the same, {score_text(r.score_a)}."
    other, own, against = (r.b, r.score_a, r.score_b) if better == r.a else (r.a, r.score_b, r.score_a)
    verdict = r.verdict(alpha)
    words, aside = "is better than", ""
    if not r.decision(alpha):
        words = f"scores {'higher' if r.higher_is_better else 'lower'} than"
        aside = "" if r.higher_is_better else " (lower is better)"
    sided = {"two-sided": "two-sided", "greater": "one-sided, A > B", "less": "one-sided, A < B"}[r.alternative]
    adjusted = "" if r.p_adjusted is None else f"; adjusted {p_equals(r.p_adjusted, alpha)}"
    return (
        f"{better} {words} {other}, {score_text(own)} against {score_text(against)}{aside}; {_p(r, alpha)} "
        f"({_known(r, alpha)}; {sided}; {r.n_discordant:,} of {count_noun(r.n_units, 'unit')} discordant){adjusted}: "
        f"{verdict}{'' if r.decision(alpha) is None else f' at {alpha:g}'}."
    )


def chance(result: Result, alpha: float) -> str:
    """Say what p is and how far trials tell it, or between which limits it lies where a rule gives no more.

    Parameters
    ----------
    result : Result
        The comparison.
    alpha : float
        What its p is held against.
    """
    return f"{_p(result, alpha)} ({_known(result, alpha)})"


def _p(result: Result, alpha: float) -> str:
    label = "" if result.p_adjusted is None else "unadjusted "
    if math.isnan(result.p_value):
        return f"{label}p in {limits_text(*result.p_interval, alpha)}"
    return f"{label}{p_equals(result.p_value, alpha)}"


def _known(result: Result, alpha: float) -> str:
    if result.method == "exact":
        return "exact"
    if is_bounded(result):
        return f"exact p between {limits_text(*result.p_interval, alpha)}"
    if math.isnan(result.p_value):
        return f"{confidence(result)} interval; {how(result)}"
    return f"{confidence(result)} interval {limits_text(*result.p_interval, alpha)}; {how(result)}"


def size_text(r: Result) -> str:
    """Say how large the difference is, and how sure that is."""
    own = r.interval
    assert own is not None
    what = "trials" if own.method == "inversion" else "resamples"
    drawn = "" if own.n_resamples is None else f", {own.n_resamples:,} {what}"
    d = "" if r.paired_d is None else f"; paired d {r.paired_d:+.2f}"
    label = "" if r.p_adjusted is None else "unadjusted "
    both = r.interval_simultaneous
    together = "" if both is None else f"; simultaneous interval {ends_of(*both)} (studentised bootstrap)"
    return (
        f"{r.a} - {r.b} = {signed(r.difference)}, {label}{100 * own.confidence:.4g} % interval {interval_text(r)} "
        f"({METHODS.get(own.method, own.method)} by {r.unit}{drawn}){together}{d}"
    )


def beside_text(b: OtherUnitResult, alpha: float) -> str:
    """Say what p is with another unit."""
    if b.method == "exact":
        return f"{p_equals(b.p_value, alpha)} (exact)"
    low, high = map(float, interval(b.n_extreme, b.n_trials))
    limits = limits_text(low, high, alpha)
    return f"{p_equals(b.p_value, alpha)} (99 % interval {limits}; {count_noun(b.n_trials, 'trial')})"


def citation(results: ComparisonResults) -> str:
    """Say what makes the results repeatable."""
    table = results.table
    return printable(
        f"sigdask {made_by()}, scheme {SCHEME}, seed {results.seed}: stratified shuffling by {table.unit[0]}, "
        f"{table.alternative[0]}, alpha {results.alpha:g}{_family(results)}"
    )


def _family(results: ComparisonResults) -> str:
    note = results.family
    if note is None:
        return ""
    counted = "" if note.n_trials is None else f", {note.n_trials:,} {counted_as(note)}"
    n = f"{note.n_comparisons:,} comparison{'s' * (note.n_comparisons != 1)}"
    return f"; p adjusted by {ADJUSTED[note.adjust]} over {n}{counted}"


def counted_as(note: FamilyNote) -> str:
    """Return what the trials of a family are."""
    return "resamples" if note.adjust == "bootstrap-t" else "arrangements" if note.exact else "trials"


def is_adjusted(table: Table) -> bool:
    """Say whether some p was adjusted."""
    return not bool(np.isnan(table.p_adjusted).all())
