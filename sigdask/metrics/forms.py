"""How a score is made of summed counts: the shapes of formula that the kernels know.

A form is picklable and vectorised: sums of shape (..., n_fields) in, scores of shape (...) out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sigdask.errors import InputError

Array = NDArray[Any]


class Form(Protocol):
    """A score as a function of sums."""

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Score sums of shape (..., n_fields)."""
        ...


@dataclass(frozen=True, slots=True)
class Ratios:
    """The mean of one or more ratios of integer combinations of the fields.

    One row is accuracy, precision, recall, F, error rates and means; a row a label is a macro
    average.

    Attributes
    ----------
    numerators, denominators : tuple of tuple of int, shape (n_rows, n_fields)
        Weights of the fields.
    zero_division : float
        The value of 0/0.

    Examples
    --------
    F1 = 2 tp / (predicted + gold):

    >>> f1 = Ratios(((2, 0, 0),), ((0, 1, 1),))
    >>> float(f1.score(np.array([47, 95, 103])))
    0.47474747474747475
    """

    numerators: tuple[tuple[int, ...], ...]
    denominators: tuple[tuple[int, ...], ...]
    zero_division: float = 0.0

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Score sums of shape (..., n_fields)."""
        above = np.asarray(sums @ np.array(self.numerators).T, np.float64)  # (..., n_rows)
        below = np.asarray(sums @ np.array(self.denominators).T, np.float64)
        undefined = below == 0
        scores = np.where(undefined, self.zero_division, above) / np.where(undefined, 1.0, below)
        return np.asarray(scores.sum(axis=-1) / len(self.numerators))

    def undefined(self, sums: Array) -> NDArray[np.bool_]:
        """Say which sums hold a 0/0."""
        below = sums @ np.array(self.denominators).T
        return np.asarray((below == 0).any(axis=-1))


@dataclass(frozen=True, slots=True)
class Formula:
    """Any vectorised function of the fields: one array a field in, scores out.

    Attributes
    ----------
    name : str
        For errors.
    function : callable
        Takes one array of shape (...) a field, returns scores of the same shape.
    """

    name: str
    function: Callable[..., Any]

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Score sums of shape (..., n_fields)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.asarray(self.function(*np.moveaxis(sums, -1, 0)), np.float64)
        if scores.shape != sums.shape[:-1]:
            raise InputError(
                f"metric {self.name}: returned shape {scores.shape} for sums of shape {sums.shape[:-1]}; "
                "it must be vectorised: one score for each element of its arguments"
            )
        if not np.isfinite(scores).all():
            at = np.argwhere(~np.isfinite(scores))[0]
            raise InputError(f"metric {self.name}: {scores[tuple(at)]} for sums {sums[tuple(at)].tolist()}")
        return scores
