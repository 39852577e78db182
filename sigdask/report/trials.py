"""Sentences on trials that early stopping saved, or would have saved because verdicts were settled before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sigdask.randomization.tallies import find_rounds
from sigdask.results.comparisons import ComparisonResults
from sigdask.statistics.stopping import compute_saving, compute_settled_after

MIN_COMPARISONS = 1000
"""Sampled comparisons from which the trials that decided nothing are told of."""


def describe_trials(results: ComparisonResults) -> Iterator[str]:
    """Yield sentences on trials of the first run that early stopping saved, or that could have been saved."""
    yield from describe_stopping(results)
    yield from _describe_idle_trials(results)


def describe_stopping(results: ComparisonResults) -> Iterator[str]:
    """Yield a sentence on the share of the first run's trials that early stopping saved, if a rule was used."""
    n_counted = n_requested = 0
    for stops in results.table.stops:
        stopped = stops.n_asked > 0
        n, limit = results.table.n_trials[stopped], stops.n_asked[stopped]
        n_counted += int(np.where(n < limit, np.minimum(find_rounds(n - 1)[1], limit), limit).sum())  # by whole rounds
        n_requested += int(limit.sum())
    if n_requested:
        yield f"stopping early left out {compute_saving(n_counted, n_requested):.1%} of the first run's trials"


def _describe_idle_trials(results: ComparisonResults) -> Iterator[str]:
    """Yield a sentence on the share of trials after verdicts were settled, if many comparisons ran to the end."""
    table = results.table
    is_complete = ~table.exact & (table.n_trials > 0)
    for stops in table.stops:
        is_complete &= stops.n_asked == 0
    if np.count_nonzero(is_complete) < MIN_COMPARISONS:
        return
    k, n, adjusted = table.n_extreme[is_complete], table.n_trials[is_complete], ~np.isnan(table.p_adjusted[is_complete])
    share = compute_saving(float(compute_settled_after(k, n, results.alpha, adjusted=adjusted).sum()), float(n.sum()))
    yield (
        f"{'at least ' if adjusted.any() else ''}{share:.1%} of the first run's trials decided nothing, as the "
        f"verdicts at {results.alpha:g} were settled before them; a rule to stop early leaves such trials out"
    )
