"""The lower tail of the hypergeometric distribution of two runs of equal length, for many pairs of counts."""
# ruff: noqa: ANN001, ANN201
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from sigdask.io.compiled_cache import compiled

NOTHING = 1e-18
"""Share of the largest term below which the others, which fall ever faster, add nothing."""


@compiled()
def lower_sums(low, total, n):
    """Sum P(x) / P(low) over x = 0 to low, where x of `n` in one run and `total` - x of `n` in the other exceed.

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
        term, found = 1.0, 1.0
        for x in range(low[p], 0, -1):  # P(x - 1) / P(x)
            other = total[p] - x
            term *= float(x) * float(n[p] - other) / (float(other + 1) * float(n[p] - x + 1))
            found += term
            if term < NOTHING:
                break
        out[p] = found
    return out
