"""How many units differ between the systems of a pair, and how: of all pairs, a block of units at a time."""
# ruff: noqa: ANN001, ANN201
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit

UNITS = 8192
"""Units whose values are laid out system by system at a time."""


@njit(nogil=True, cache=True)
def add_differing(values, pairs, weights, out):
    """Add the weights of the units in which any field differs.

    Parameters
    ----------
    values : int array, shape (n_systems, n_fields, n_units)
    pairs : int64 array, shape (n_pairs, 2)
    weights : int64 array, shape (n_units,), or shape (0,) where each unit counts as one
    out : int64 array, shape (n_pairs,)
        Added to.
    """
    n_fields, n_units = values.shape[1], values.shape[2]
    differs = np.empty(n_units, np.uint8)
    for p in range(pairs.shape[0]):
        a, b = values[pairs[p, 0]], values[pairs[p, 1]]
        for u in range(n_units):
            differs[u] = a[0, u] != b[0, u]
        for f in range(1, n_fields):
            for u in range(n_units):
                differs[u] |= a[f, u] != b[f, u]
        found = 0
        if len(weights):
            for u in range(n_units):
                found += weights[u] * differs[u]
        else:
            for u in range(n_units):
                found += differs[u]
        out[p] += found


@njit(nogil=True, cache=True)
def add_signs(values, pairs, least, most, wins, losses):
    """Count the units in which the first system of a pair has more, and less, and how far apart they are.

    Parameters
    ----------
    values : int array, shape (n_systems, n_units)
        In a type that holds their differences as well.
    pairs : int64 array, shape (n_pairs, 2)
    least, most : int64 array, shape (n_pairs,)
        The smallest and the largest difference but 0, without its sign: made smaller and larger.
    wins, losses : int64 array, shape (n_pairs,)
        Added to.
    """
    number = values.dtype.type
    for p in range(pairs.shape[0]):
        if least[p] < most[p]:  # not alike: what follows cannot change that
            continue
        a, b = values[pairs[p, 0]], values[pairs[p, 1]]
        more, less, above, below = 0, 0, number(0), number(0)
        for u in range(values.shape[1]):
            more += a[u] > b[u]
            less += a[u] < b[u]
            d = number(a[u] - b[u])
            above = max(above, d)
            below = min(below, d)
        wins[p] += more
        losses[p] += less
        most[p] = max(most[p], np.int64(above), -np.int64(below))
        if more + less and most[p] > 1:  # differences of 1 are all alike
            nearest = least[p]
            for u in range(values.shape[1]):
                d = abs(np.int64(number(a[u] - b[u])))
                nearest = min(nearest, d) if d else nearest
            least[p] = nearest
        elif more + less:
            least[p] = min(least[p], most[p])
