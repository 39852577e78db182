"""Which comparisons are opened: all where they are few; else those that a gate looks at, and the close ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

FEW = 20
"""Comparisons up to which all are opened."""

MOST = 200
"""Comparisons that are opened at most."""


def chosen(n_rows: int, close: Iterable[int], looked_at: Iterable[int] = ()) -> NDArray[np.int64]:
    """Return the rows to open, those first that come first where not all are.

    Parameters
    ----------
    n_rows : int
        Comparisons in all.
    close : iterable of int
        Rows that another seed or a few more units could turn, the closest first.
    looked_at : iterable of int
        Rows that a gate looks at, failures first.

    Examples
    --------
    >>> chosen(3, [2]).tolist(), chosen(1000, [7, 30], [30, 5]).tolist()
    ([0, 1, 2], [30, 5, 7])
    """
    if n_rows <= FEW:
        return np.arange(n_rows)
    wanted = dict.fromkeys(int(row) for rows in (looked_at, close) for row in rows)
    return np.array([*wanted][:MOST], np.int64)
