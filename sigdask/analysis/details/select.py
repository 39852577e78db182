"""Choice of the comparisons that get details: all if they are few, else those of a gate and borderline ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

MAX_FOR_ALL = 20
"""Comparisons up to which all are opened."""

MAX_DETAILS = 200
"""Comparisons that are opened at most."""


def select_rows(n_rows: int, borderline: Iterable[int], gated: Iterable[int] = ()) -> NDArray[np.int64]:
    """Return the rows that get details: all if they are few, else gated rows first, then borderline rows.

    Parameters
    ----------
    n_rows : int
        Comparisons in all.
    borderline : iterable of int
        Rows that another seed or a few more units could turn, the closest first.
    gated : iterable of int
        Rows that a gate looks at, failures first.

    Examples
    --------
    >>> select_rows(3, [2]).tolist(), select_rows(1000, [7, 30], [30, 5]).tolist()
    ([0, 1, 2], [30, 5, 7])
    """
    if n_rows <= MAX_FOR_ALL:
        return np.arange(n_rows)
    candidates = dict.fromkeys(int(row) for rows in (gated, borderline) for row in rows)
    return np.array([*candidates][:MAX_DETAILS], np.int64)
