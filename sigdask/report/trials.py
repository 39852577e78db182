"""What trials were for: those that a rule to stop early left out, and those that decided nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sigdask.randomization.tallies import round_bounds
from sigdask.results.comparisons import ComparisonResults
from sigdask.statistics.stopping import saving, settled_after

FEWEST = 1000
"""Sampled comparisons from which the trials that decided nothing are told of."""


def trials_text(results: ComparisonResults) -> Iterator[str]:
    """Yield what is to be said of the first run's trials; nothing of few comparisons that were counted to their end."""
    yield from stopping_text(results)
    yield from _idle_text(results)


def stopping_text(results: ComparisonResults) -> Iterator[str]:
    """Yield what a rule to stop early left out of the first run's trials; nothing without a rule."""
    counted = asked = 0
    for stops in results.table.stops:
        stopped = stops.n_asked > 0
        n, limit = results.table.n_trials[stopped], stops.n_asked[stopped]
        counted += int(np.where(n < limit, np.minimum(round_bounds(n - 1)[1], limit), limit).sum())  # by whole rounds
        asked += int(limit.sum())
    if asked:
        yield f"stopping early left out {saving(counted, asked):.1%} of the first run's trials"


def _idle_text(results: ComparisonResults) -> Iterator[str]:
    """Yield how many trials decided nothing, of many comparisons that were counted to their end."""
    table = results.table
    whole = ~table.exact & (table.n_trials > 0)
    for stops in table.stops:
        whole &= stops.n_asked == 0
    if np.count_nonzero(whole) < FEWEST:
        return
    k, n, adjusted = table.n_extreme[whole], table.n_trials[whole], ~np.isnan(table.p_adjusted[whole])
    share = saving(float(settled_after(k, n, results.alpha, adjusted=adjusted).sum()), float(n.sum()))
    yield (
        f"{'at least ' if adjusted.any() else ''}{share:.1%} of the first run's trials decided nothing, as the "
        f"verdicts at {results.alpha:g} were settled before them; a rule to stop early leaves such trials out"
    )
