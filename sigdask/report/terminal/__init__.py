"""Results on a terminal or in a pipe: the answer first, then what it stands on.

Names come from files: they are printed as they are, never read as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sigdask.report.summary import verdict
from sigdask.report.summary.amounts import in_points
from sigdask.report.summary.sentences import citation, is_adjusted
from sigdask.report.summary.verdict import Verdict
from sigdask.report.terminal import classical, details, families, remarks, tables
from sigdask.report.terminal import ranking as ranked
from sigdask.report.terminal.remarks import MOST_ALARMS, warnings
from sigdask.report.trials import stopping_text, trials_text
from sigdask.results import signature
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.record import Result
from sigdask.results.views import result_views
from sigdask.text import count_noun, printable

__all__ = ["MOST_ALARMS", "render", "warnings"]

SHOWN = 40
"""Comparisons that are shown unless all are asked for."""

FEW = 12
"""Comparisons that are all shown beside a ranking, and told in detail, at most."""

CLOSEST = 10
"""Close calls that are shown below a ranking."""


def render(
    results: ComparisonResults, *, everything: bool = False, verbose: bool = False, width: int | None = None
) -> str:
    """Return the report as text.

    Parameters
    ----------
    results : ComparisonResults
        What was found.
    everything : bool
        Show all comparisons; otherwise of a larger number the borderline results, or the 40 smallest p.
    verbose : bool
        Tell of each comparison what p stands on: runs, checks, dependence; of 12 at most unless all are shown.
    width : int, optional
        Columns of the terminal; unlimited when None (a pipe).
    """
    found = verdict.of(results)
    parts = [answer(found)]
    if not len(results):
        return parts[0]
    parts += families.text(results, width, everything=everything)
    parts += ranked.text(results, found, width, everything=everything, verbose=verbose)
    rows = _shown(results, found, ranked=found.is_ranking, everything=everything, verbose=verbose)
    shown = [*result_views(results.table.take(rows))]
    title = remarks.title(found) if found.is_ranking and len(rows) < len(results) else ""
    parts += tables.text(shown, results.alpha, width, points=in_points(results.table), title=title)
    parts += _rest(results, found, len(rows))
    parts += _classical(results, shown, width, everything=everything)
    if verbose or everything:
        told = shown if verbose and everything else shown[:FEW] if verbose or len(shown) <= FEW else []
        parts += details.text(told, results.alpha)
        parts += list(trials_text(results))
    else:
        parts += list(stopping_text(results))
    said = remarks.lines(results, found, shown, verbose=verbose)
    parts.append("\n".join([*said, *_signatures(results), citation(results), *_shared(results, verbose=verbose)]))
    return "\n\n".join(part.strip("\n") for part in parts)


def answer(found: Verdict) -> str:
    """Return the sentences that a reader wants first."""
    told = found.sentences or (found.headline,)
    doubt = (found.headline,) if found.sentences and not found.is_checked else ()
    return "\n".join(map(printable, (*found.scope, *doubt, *told)))


def _shown(
    results: ComparisonResults, found: Verdict, *, ranked: bool, everything: bool, verbose: bool
) -> NDArray[np.int64]:
    """Return the rows that are shown: the borderline results of many that are ranked, else the smallest p."""
    table = results.table
    most = FEW if ranked else SHOWN
    if everything or len(table) <= most:
        return np.arange(len(table))
    if ranked:
        return found.close[: SHOWN if verbose else CLOSEST]
    order = np.where(np.isnan(table.p_value), table.p_high, table.p_value)  # a rule may give an interval alone
    by = (-np.abs(table.difference), order, np.nan_to_num(table.p_adjusted, nan=0.0))
    return np.lexsort(by)[:SHOWN]


def _rest(results: ComparisonResults, found: Verdict, n_shown: int) -> Iterator[str]:
    """Yield how many comparisons there are, and which of them are shown."""
    n = found.n_comparisons
    if n_shown == n:
        return
    text = f"{count_noun(n, 'comparison')}: {found.n_significant:,} significant at {results.alpha:g}"
    text += f", {found.n_undecided:,} undecided" if found.n_undecided else ""
    n_not = n - found.n_significant - found.n_undecided
    text += f", {n_not:,} not significant" if n_not else ""
    if is_adjusted(results.table) and results.family is not None:
        text += f" (p adjusted by {results.family.adjust})"
    yield f"{text}; {remarks.which(found, n_shown)} (--all shows all, --json FILE keeps them)"


def _classical(
    results: ComparisonResults, shown: Sequence[Result], width: int | None, *, everything: bool
) -> list[str]:
    """Return the classical tests of few comparisons, of many where to find them."""
    if len(results) <= FEW or everything:
        return classical.text(shown, results.alpha, width)
    return [classical.ELSEWHERE] if results.table.tests else []


def _shared(results: ComparisonResults, *, verbose: bool) -> list[str]:
    """Return what the signatures of all tests have in common, where details do not give each of them."""
    found = None if verbose else signature.shared(results.table)
    return [] if found is None else [f"signature: {found}"]


def _signatures(results: ComparisonResults) -> list[str]:
    """Say once for each metric how the scorer library counted."""
    table = results.table
    found = (table.metric.values[code] for code in np.unique(table.metric.codes).tolist())
    known = {score.name: score.signature for score in found if score.signature is not None}
    return [printable(f"{metric}: {signature}") for metric, signature in known.items()]
