"""Results as plain text for terminal or pipe: the answer first, then its details.

Names come from files: they are printed as they are, never read as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sigdask.report.summary import headline
from sigdask.report.summary.headline import Verdict
from sigdask.report.summary.sentences import describe_settings, describe_test, find_metrics_in_points
from sigdask.report.terminal import comparisons, remarks
from sigdask.report.terminal.remarks import (
    MAX_ALARMS,
    iter_other_warnings,
    select_warnings,
)
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.fields import iter_results
from sigdask.results.record import Result
from sigdask.text import format_count, make_printable

__all__ = ["MAX_ALARMS", "iter_other_warnings", "render", "render_with_warnings", "select_warnings"]

MAX_SHOWN = 40
"""Number of comparisons shown by default."""

MAX_DETAILED = 12
"""Maximum number of comparisons shown in full in addition to a ranking."""

MAX_CLOSEST = 10
"""Maximum number of contested and undecided results shown below a ranking."""


def render(
    results: ComparisonResults, *, everything: bool = False, verbose: bool = False, width: int | None = None
) -> str:
    """Return the report as text, with the warnings that could change a verdict below the verdict.

    Parameters
    ----------
    results : ComparisonResults
        The results.
    everything : bool
        Show all comparisons. Otherwise, if they are many, the contested and undecided ones or the 40 smallest p.
    verbose : bool
        Show for each comparison how p was found: runs, checks, dependence. At most 12 unless all are shown.
    width : int, optional
        Columns of the terminal; unlimited when None (a pipe).
    """
    summary = headline.build_verdict(results)
    parts = ["\n".join([format_answer(summary), *remarks.iter_urgent_warnings(results, verbose=verbose)])]
    if not len(results):
        return parts[0]
    parts += comparisons.format_families(results, width, everything=everything)
    parts += comparisons.format_rankings(results, width, everything=everything, verbose=verbose)
    rows = _select_rows(results, summary, everything=everything, verbose=verbose)
    shown = [*iter_results(results.table.take(rows))]
    parts += comparisons.format_comparisons(
        shown, results.alpha, width, points=find_metrics_in_points(results.table), with_checks=verbose
    )
    parts += _describe_rest(results, summary, len(rows))
    parts += _format_classical(results, shown, width, everything=everything)
    if verbose or everything:
        n_detailed = MAX_DETAILED if verbose or len(shown) <= MAX_DETAILED else 0
        detailed = shown if verbose and everything else shown[:n_detailed]
        parts += comparisons.format_details(detailed, results.alpha)
    remark_lines = remarks.iter_remarks(results, summary, shown, verbose=verbose)
    settings = [*_format_signatures(results), describe_settings(results)] if verbose else []
    parts.append("\n".join([describe_test(results), *remark_lines, *settings]))
    return "\n\n".join(part.strip("\n") for part in parts)


def render_with_warnings(results: ComparisonResults, *, everything: bool = False) -> str:
    """Return the report as text, preceded by all other warnings, such as how files were read."""
    return "\n".join([*remarks.iter_other_warnings(results), render(results, everything=everything)])


def format_answer(summary: Verdict) -> str:
    """Return the summary sentences that come first."""
    sentences = summary.sentences or (summary.headline,)
    doubt = (summary.headline,) if summary.sentences and not summary.is_checked else ()
    return "\n".join(map(make_printable, (*summary.scope, *doubt, *sentences)))


def _select_rows(results: ComparisonResults, summary: Verdict, *, everything: bool, verbose: bool) -> NDArray[np.int64]:
    """Return the rows to show: all if few, else those with the smallest p, of a ranking only doubtful verdicts."""
    table = results.table
    n_most = MAX_DETAILED if summary.is_ranking else MAX_SHOWN
    if everything or len(table) <= n_most:
        return np.arange(len(table))
    if summary.is_ranking:
        return summary.doubtful[: MAX_SHOWN if verbose else MAX_CLOSEST]
    sort_keys = (-np.abs(table.difference), table.p_value, np.nan_to_num(table.p_adjusted, nan=0.0))
    return np.lexsort(sort_keys)[:MAX_SHOWN]


def _describe_rest(results: ComparisonResults, summary: Verdict, n_shown: int) -> Iterator[str]:
    """Yield a line on the number of comparisons by verdict and on which are shown, unless all are."""
    n = summary.n_comparisons
    if n_shown == n:
        return
    text = f"{format_count(n, 'comparison')}: {summary.n_significant:,} significant at {results.alpha:g}"
    text += f", {summary.n_undecided:,} undecided" if summary.n_undecided else ""
    text += f", {summary.n_contested:,} contested" if summary.n_contested else ""
    n_not = n - summary.n_significant - summary.n_undecided - summary.n_contested
    text += f", {n_not:,} not significant" if n_not else ""
    which = "" if summary.is_ranking else f"; the {n_shown} smallest p are shown"
    yield f"{text}{which} ({comparisons.tell_where_all_are()})"


def _format_classical(
    results: ComparisonResults, shown: Sequence[Result], width: int | None, *, everything: bool
) -> list[str]:
    """Return classical tests if comparisons are few, otherwise a hint on how to print them."""
    if len(results) <= MAX_DETAILED or everything:
        return comparisons.format_tests(shown, results.alpha, width)
    return [comparisons.tell_where_tests_are()] if results.table.tests else []


def _format_signatures(results: ComparisonResults) -> list[str]:
    """Return the scorer library's signature of each metric, once."""
    table = results.table
    scores = (table.metric.values[code] for code in np.unique(table.metric.codes).tolist())
    signatures = {score.name: score.signature for score in scores if score.signature is not None}
    return [make_printable(f"{metric}: {signature}") for metric, signature in signatures.items()]
