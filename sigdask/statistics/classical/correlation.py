"""Correlation of two systems' item scores, and the cost of ignoring it (Yeh 2000, section 2.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def compute_correlations(
    values: Array | Callable[[], Iterable[Array]], pairs: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
) -> Array:
    """Return the Pearson correlation of the item scores of pairs of systems (r12 in Yeh 2000).

    Parameters
    ----------
    values : float64 array, shape (n_items, n_systems), or callable
        Item scores, or 0/1 for items a system got right; or what yields them, some items at a time,
        as often as it is called.
    pairs : (int64 array, int64 array), shape (n_pairs,), optional
        The systems of some pairs, where these are few.

    Returns
    -------
    float64 array, shape (n_systems, n_systems), or (n_pairs,) of some pairs
        NaN where a system's scores are all the same.

    References
    ----------
    Yeh 2000, section 2.1.
    """
    blocks = values if callable(values) else lambda: [values]
    n, total, minimum, maximum = 0, 0.0, math.inf, -math.inf
    for block in blocks():
        n, total = n + len(block), total + block.sum(axis=0)
        minimum = np.minimum(minimum, block.min(axis=0, initial=math.inf))
        maximum = np.maximum(maximum, block.max(axis=0, initial=-math.inf))
    mean = total / max(n, 1)
    varies = minimum < maximum  # a mean of equals may be rounded
    spread = np.where(varies, np.maximum(maximum - mean, mean - minimum), 1.0)  # squares stay within range
    products: Any = 0.0
    squares: Any = 0.0
    for block in blocks():
        centred = np.where(varies, block - mean, 0.0) / spread
        squares = squares + (centred * centred).sum(axis=0)
        block_products = (
            centred.T @ centred if pairs is None else (centred[:, pairs[0]] * centred[:, pairs[1]]).sum(axis=0)
        )
        products = products + block_products
    if pairs is None:
        squares = np.diag(products)  # rounded as the products are, so that a system is one with its twin
    lengths = np.where(varies, np.sqrt(squares), np.nan)
    length_products = np.outer(lengths, lengths) if pairs is None else lengths[pairs[0]] * lengths[pairs[1]]
    return np.asarray(products / length_products)


def compute_inflation(r12: float) -> float:
    """Return 1/sqrt(1 - r12), the factor by which assuming independent systems widens a test's standard error.

    Examples
    --------
    >>> round(compute_inflation(0.5), 3)
    1.414
    """
    return math.inf if r12 >= 1 else 1 / math.sqrt(1 - r12)
