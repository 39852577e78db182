"""Lower tails of the hypergeometric distribution of two equally long runs, for many pairs of counts."""
# ruff: noqa: ANN001, ANN201
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from sigdask.io.compiled_cache import cached_njit

NEGLIGIBLE_TERM = 1e-18
"""Share of the largest term below which the others, which fall ever faster, add nothing."""


@cached_njit()
def sum_lower_tails(low, total, n):
    """Return P(X <= low) / P(X = low) for many pairs, where X is one run's exceedances among the `total` of both runs.

    Parameters
    ----------
    low, total, n : int64 array, shape (n_pairs,)
        The smaller of two counts, their sum, and the trials of each run; low is at most half of the sum.

    Returns
    -------
    float64 array, shape (n_pairs,)
    """
    out = np.empty(len(low))
    for p in range(len(low)):
        term, tail = 1.0, 1.0
        for x in range(low[p], 0, -1):  # P(x - 1) / P(x)
            other = total[p] - x
            term *= float(x) * float(n[p] - other) / (float(other + 1) * float(n[p] - x + 1))
            tail += term
            if term < NEGLIGIBLE_TERM:
                break
        out[p] = tail
    return out
