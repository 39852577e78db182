"""Tests of independence as plain text."""

from __future__ import annotations

from collections.abc import Iterator

from sigdask.analysis.independence import Independence, IndependenceResults
from sigdask.randomization.stream import SCHEME
from sigdask.report.layout import format_table
from sigdask.report.tables.cells import format_p_cell
from sigdask.report.terminal.remarks import list_alarms
from sigdask.report.wording import ALTERNATIVES
from sigdask.results.comparisons import get_version
from sigdask.statistics.rounding import format_limits, format_p_equals, format_score
from sigdask.text import format_count, make_printable

MAX_SENTENCES = 12
"""Maximum number of tests that are each described in a sentence."""


def render(results: IndependenceResults, *, width: int | None = None) -> str:
    """Return the results of tests of independence as text."""
    is_short = len(results) <= MAX_SENTENCES
    sentences = [line for result in results for line in _iter_sentences(result, results.alpha)] if is_short else []
    lines = [*sentences, *([""] if is_short else []), _format_table(results, width), ""]
    citation = (
        f"sigdask {get_version()}, scheme {SCHEME}, seed {results.seed}: label permutation, {results[0].alternative}, "
        f"adjust {results.adjust}, alpha {results.alpha:g}"
    )
    return "\n".join([*lines, *list_alarms(results), citation])


def _format_table(results: IndependenceResults, width: int | None) -> str:
    is_adjusted = results.adjust != "none"
    rows = [
        [
            result.a, result.b, result.metric, format_score(result.score), _format_by_chance(result),
            format_p_cell(result.p_value, results.alpha),
            *([format_p_cell(result.p_adjusted, results.alpha)] if is_adjusted else []), _format_method(result),
            result.verdict(results.alpha) + (" !" if result.disagreements() else ""),
        ]
        for result in results
    ]  # fmt: skip
    names = [f"adjusted ({results.adjust})"] if is_adjusted else []
    return format_table(["A", "B", "metric", "score", "by chance", "p", *names, "method", ""], rows, width)


def _format_by_chance(result: Independence) -> str:
    """Return the score by chance as text; rounding errors of a score around 0 are written as 0."""
    return format_score(round(result.expected, 12) + 0.0)


def _format_method(result: Independence) -> str:
    return "exact" if result.method == "exact" else format_count(result.n_trials or 0, "trial")


def _iter_sentences(result: Independence, alpha: float) -> Iterator[str]:
    basis = f"99 % interval {format_limits(*result.p_interval, alpha)}; {_format_method(result)}"
    if result.method == "exact":
        basis = (
            "exact" if result.n_trials is None else f"exact: {result.n_extreme:,} of {result.n_trials:,} arrangements"
        )
    verdict = result.verdict(alpha)
    level_text = "" if verdict.startswith("undecided") else f" at {alpha:g}"
    adjusted_text = "" if result.p_adjusted is None else f", adjusted {format_p_equals(result.p_adjusted, alpha)}"
    strata_text = "" if result.within is None else f", permuted within {result.n_strata:,} values of {result.within}"
    yield make_printable(
        f"{result.metric}: {result.a} against {result.b}, {format_score(result.score)}, where independent labels score "
        f"{_format_by_chance(result)}; {format_p_equals(result.p_value, alpha)} ({basis}; "
        f"{ALTERNATIVES[result.alternative].against_chance}; "
        f"{format_count(result.n_items, 'item')}{strata_text}){adjusted_text}: "
        f"{verdict}{level_text}."
    )
    if result.exact is not None and result.method != "exact":
        yield f"    exact {format_p_equals(result.exact.p_lo, alpha)} ({result.exact.method})"
    for check in result.checks:
        if check.verdict != "not applicable":
            yield make_printable(f"    {check.name} {check.verdict}: {check.detail}")
    for warning in result.warnings:
        yield make_printable(f"    note: {warning}")
