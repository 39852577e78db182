"""What trials were for: how many of them decided nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sigdask.comparison.results import Results
from sigdask.statistics.stopping import saving, settled_after

FEWEST = 1000
"""Sampled comparisons from which the trials that decided nothing are told of."""


def trials_text(results: Results) -> Iterator[str]:
    """Yield what is to be said of first runs' trials; nothing of few comparisons, or of those that a rule stopped."""
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
