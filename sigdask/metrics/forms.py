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
from sigdask.identity import known_as
from sigdask.metrics.travel import address_of, folder_of, function_at

Array = NDArray[Any]


class Form(Protocol):
    """A score as a function of sums."""

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Score sums of shape (..., n_fields)."""
        ...


@known_as("Ratios", "numerators denominators zero_division")
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


@known_as("Formula", "name function")
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel by the function's address where it has one, so that no code is sent."""
        address = address_of(self.function)
        if address is None:
            return Formula, (self.name, self.function)
        return _formula_at, (self.name, address, folder_of(self.function))

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Score sums of shape (..., n_fields)."""
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                scores = self.values(sums)
        except Exception as error:
            raise InputError(f"metric {self.name} failed: {type(error).__name__}: {error}") from error
        if scores.shape != sums.shape[:-1]:
            raise InputError(
                f"metric {self.name}: returned shape {scores.shape} for sums of shape {sums.shape[:-1]}; "
                "it must be vectorised: one score for each element of its arguments"
            )
        if not np.isfinite(scores).all():
            at = np.argwhere(~np.isfinite(scores))[0]
            raise InputError(f"metric {self.name}: {scores[tuple(at)]} for sums {sums[tuple(at)].tolist()}")
        return scores

    def values(self, sums: Array) -> NDArray[np.float64]:
        """Return what the function gives, be it a score or not."""
        return np.asarray(self.function(*np.moveaxis(sums, -1, 0)), np.float64)


def _formula_at(name: str, address: str, folder: str) -> Formula:
    return Formula(name, function_at(address, folder))


@known_as("Bleu")
@dataclass(frozen=True, slots=True)
class Bleu:
    """Corpus BLEU of 10 sums: lengths of system and reference, 4 n-gram matches, 4 n-gram totals.

    Papineni et al. 2002, with the "exp" smoothing of mteval-v13a as sacrebleu computes it: the k-th
    order without a match counts 1 / 2^k of one match. Fourth roots are taken as two square roots.
    """

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Score sums of shape (..., 10)."""
        taken = np.asarray(sums, np.float64)
        length, reference = taken[..., 0], taken[..., 1]
        correct, total = taken[..., 2:6], taken[..., 6:10]
        missed = np.cumsum(correct == 0, axis=-1)
        matches = np.where(correct == 0, 0.5**missed, correct)
        shares = matches / np.where(total == 0, 1.0, total)
        product = shares[..., 0] * shares[..., 1] * shares[..., 2] * shares[..., 3]
        short = length < reference
        penalty = np.where(short, np.exp(1 - reference / np.maximum(length, 1.0)) * (length > 0), 1.0)
        score = 100 * penalty * np.sqrt(np.sqrt(product))
        return np.asarray(np.where((correct[..., 0] == 0) | (total == 0).any(axis=-1), 0.0, score))


@known_as("MeanOf", "forms widths")
@dataclass(frozen=True, slots=True)
class MeanOf:
    """The mean of the scores of replicates, whose fields stand one replicate after the other.

    Attributes
    ----------
    forms : tuple of Form
        The score of each replicate.
    widths : tuple of int
        How many fields each takes.
    """

    forms: tuple[Form, ...]
    widths: tuple[int, ...]

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Score sums of shape (..., sum of widths)."""
        total = np.zeros(sums.shape[:-1])
        start = 0
        for form, width in zip(self.forms, self.widths, strict=True):
            total += form.score(sums[..., start : start + width])
            start += width
        return np.asarray(total / len(self.forms))


@known_as("ChrF", "beta")
@dataclass(frozen=True, slots=True)
class ChrF:
    """Corpus chrF of 3 sums an order: n-grams of system and reference, and matches.

    Popovic 2015, 2017: F_beta of precision and recall averaged over the orders that both have
    ("effective order", as sacrebleu computes it).

    Attributes
    ----------
    beta : float
        Weight of recall.
    """

    beta: float = 2.0

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Score sums of shape (..., 3 * n_orders)."""
        taken = np.asarray(sums, np.float64)
        given, right, both = taken[..., 0::3], taken[..., 1::3], taken[..., 2::3]
        counted = (given > 0) & (right > 0)
        orders = np.maximum(counted.sum(axis=-1), 1)
        precision = np.where(counted, both / np.where(counted, given, 1.0), 0.0).sum(axis=-1) / orders
        recall = np.where(counted, both / np.where(counted, right, 1.0), 0.0).sum(axis=-1) / orders
        factor = self.beta**2
        below = factor * precision + recall
        return np.asarray(100 * (1 + factor) * precision * recall / np.where(below == 0, 1.0, below))


def movement(form: Form, sums: Array, errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far scores can move where each sum may lie within an error of the true one.

    To first order, one field after the other, at both ends of each error; an end that the score is
    not defined at (a root of what is below 0) is none that the true sum can be at.

    Parameters
    ----------
    form : Form
        The score.
    sums, errors : float64 array, shape (..., n_fields)
        As the form takes them; the error is 0 where a sum is exact.

    Returns
    -------
    float64 array, shape (...)
    """
    total = np.zeros(sums.shape[:-1])
    with np.errstate(all="ignore"):
        scores = _defined(form, sums)
        for f in np.flatnonzero(errors.reshape(-1, errors.shape[-1]).any(axis=0)):
            most = np.zeros_like(total)
            for side in (errors[..., f], -errors[..., f]):
                beside = sums.copy()
                beside[..., f] += side
                moved = np.abs(_defined(form, beside) - scores)
                most = np.fmax(most, np.where(np.isfinite(moved), moved, 0.0))
            total += most
    return total


def _defined(form: Form, sums: Array) -> NDArray[np.float64]:
    """Score sums, NaN where that fails."""
    if isinstance(form, MeanOf):
        parts = np.split(sums, np.cumsum(form.widths)[:-1], axis=-1)
        scores = [_defined(one, part) for one, part in zip(form.forms, parts, strict=True)]
        return np.asarray(np.mean(scores, axis=0))
    if not isinstance(form, Formula):
        return form.score(sums)
    try:
        return np.broadcast_to(form.values(sums), sums.shape[:-1])
    except Exception:  # noqa: BLE001 - the user's function may raise anything where it is not defined
        return np.full(sums.shape[:-1], np.nan)


def scores_or_nan(form: Form, sums: Array) -> NDArray[np.float64]:
    """Score sums of shape (..., n_fields), NaN where a user's function gives no score.

    What one of them is scored hangs on no other: where the function refuses several at once, it is asked one by one.
    """
    with np.errstate(all="ignore"):
        scores = np.asarray(_defined(form, sums), np.float64)
        if any_formula(form) and scores.size > 1 and np.isnan(scores).all():
            rows = sums.reshape(-1, sums.shape[-1])
            scores = np.array([_defined(form, row[None])[0] for row in rows]).reshape(sums.shape[:-1])
    return np.where(np.isfinite(scores), scores, np.nan)


def any_formula(form: Form) -> bool:
    """Whether a user's function has a part in a score."""
    return any(map(any_formula, form.forms)) if isinstance(form, MeanOf) else isinstance(form, Formula)


def gradient(form: Form, sums: Array, step: float = 1e-4) -> NDArray[np.float64]:
    """Return the change of the score with each field, at sums of shape (n_fields,).

    Parameters
    ----------
    form : Form
        The score.
    sums : array, shape (n_fields,)
        As the form takes them; need not be whole numbers.
    step : float
        Relative change of a sum by which slopes are measured that no formula gives.

    Returns
    -------
    float64 array, shape (n_fields,)
        0 where the score does not change smoothly (0/0).
    """
    at = np.asarray(sums, np.float64)
    if isinstance(form, Ratios):
        above, below = np.array(form.numerators, np.float64), np.array(form.denominators, np.float64)
        n, d = above @ at, below @ at  # (n_rows,)
        safe = np.where(d == 0, 1.0, d)
        slopes = (above * safe[:, None] - below * n[:, None]) / (safe**2)[:, None]
        return np.asarray(np.where((d == 0)[:, None], 0.0, slopes).mean(axis=0))
    found = np.zeros(len(at))
    for f, value in enumerate(at):
        change = step * abs(value) or 1.0
        around = np.stack([at, at])
        around[:, f] += (change, -change if value else 0.0)
        try:
            high, low = form.score(around)
        except InputError:
            continue
        slope = (high - low) / (around[0, f] - around[1, f])
        found[f] = slope if np.isfinite(slope) else 0.0
    return found


def gradients(form: Form, sums: Array, step: float = 1e-4) -> NDArray[np.float64]:
    """Return `gradient` at many sums, shape (n, n_fields), at once."""
    at = np.asarray(sums, np.float64)
    if isinstance(form, Ratios):
        above, below = np.array(form.numerators, np.float64), np.array(form.denominators, np.float64)
        n, d = at @ above.T, at @ below.T  # (n, n_rows)
        safe = np.where(d == 0, 1.0, d)[:, :, None]
        slopes = (above * safe - below * n[:, :, None]) / safe**2
        return np.asarray(np.where((d == 0)[:, :, None], 0.0, slopes).mean(axis=1))
    try:
        return _measured(form, at, step)
    except InputError:  # not defined at all of them
        return np.array([gradient(form, own, step) for own in at]).reshape(at.shape)


def _measured(form: Form, at: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    found = np.zeros(at.shape)
    for f in range(at.shape[1]):
        change = step * np.abs(at[:, f])
        change[change == 0] = 1.0
        high, low = at.copy(), at.copy()
        high[:, f] += change
        low[:, f] -= np.where(at[:, f] == 0, 0.0, change)
        slope = (form.score(high) - form.score(low)) / (high[:, f] - low[:, f])
        found[:, f] = np.where(np.isfinite(slope), slope, 0.0)
    return found
