"""Forms: functions from sums of fields to a score, which the kernels evaluate in each trial.

A form is picklable and vectorised: sums of shape (..., n_fields) in, scores of shape (...) out.

How a user's function reaches workers: by an importable name, never as code.
"""

from __future__ import annotations

import pickle
import pkgutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sigdask.errors import InputError
from sigdask.io import addresses
from sigdask.text import format_count

Function = Callable[..., Any]


def get_address(function: Any) -> str | None:
    """Return `module:name` if importing it gives this very function, else None.

    Examples
    --------
    >>> get_address(get_address), get_address(lambda: 0)
    ('sigdask.metrics.forms:get_address', None)
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name or module == "__main__":
        return None
    address = f"{module}:{name}"
    try:
        return address if _unwrap(pkgutil.resolve_name(address)) is function else None
    except (ImportError, AttributeError, ValueError):
        return None


def _unwrap(attribute: Any) -> Any:
    """Return the function that a metric was made from, and anything else as it is."""
    bound = getattr(attribute, "bind", attribute)
    return getattr(bound, "function", bound)


def is_user_function(function: Any) -> bool:
    """Return whether a function is the user's own, so that its source is part of digests, not only its name.

    Examples
    --------
    >>> is_user_function(is_user_function), is_user_function(max)
    (False, True)
    """
    inner = getattr(function, "function", getattr(function, "func", function))  # of a metric, a partial
    return (getattr(inner, "__module__", None) or "").partition(".")[0] != "sigdask"


def can_send_by_name(function: Any) -> bool:
    """Return whether a function or callable object can be sent as names and values alone.

    Plain pickle never sends code, and workers cannot import definitions of `__main__`.

    Examples
    --------
    >>> can_send_by_name(can_send_by_name), can_send_by_name(lambda: 0)
    (True, False)
    """
    if get_address(function) is not None:
        return True
    try:
        return b"__main__" not in pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False


def reduce_by_address(kind: Callable[..., Any], name: str, function: Function, *rest: Any) -> tuple[Any, ...]:
    """Return what pickle needs to build `kind(name, function, *rest)`, with the function's address if it has one."""
    address = get_address(function)
    if address is None:
        return kind, (name, function, *rest)
    file = getattr(sys.modules[function.__module__], "__file__", None)  # workers may find its folder too
    folder = str(Path(file).resolve().parents[function.__module__.count(".")]) if file else ""
    return _build_by_address, (kind, name, address, folder, *rest)


def _build_by_address(kind: Callable[..., Any], name: str, address: str, folder: str, *rest: Any) -> Any:
    """Import the function with this address, and build `kind(name, function, *rest)`.

    Parameters
    ----------
    kind, name, rest
        The class or function to call, and its arguments before and after the function.
    address : str
        `module:name`; modules are looked for on the path, in the current folder, and in `folder`.
    folder : str
        Its folder on the driver; empty if unknown.

    Raises
    ------
    InputError
        The function cannot be imported. The message says where.
    """
    if folder and Path(folder).is_dir():
        addresses.add_folder(folder)
    try:
        function = _unwrap(addresses.load_object(address, "metric"))
    except InputError as error:
        raise InputError(
            f"{error}; it cannot be imported by a worker: put its module on the workers' path (install it, PYTHONPATH, "
            "or a shared folder)"
        ) from None
    return kind(name, function, *rest)


def iter_functions(panel: Any) -> Iterator[tuple[str, Function]]:
    """Yield the user's functions that a panel, or a family of panels, calls, each with its metric's name."""
    for member in getattr(panel, "members", ()):
        yield from iter_functions(member.panel)
    black_box = getattr(panel, "metric", None)
    if black_box is not None and hasattr(black_box, "function"):
        yield black_box.name, black_box.function
    for metric in getattr(panel, "metrics", ()):
        function = getattr(getattr(metric, "form", None), "function", None)
        if function is not None:
            yield metric.name, function


Array = NDArray[Any]


class Form(Protocol):
    """A function from sums of fields to a score."""

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Return the scores of sums of shape (..., n_fields)."""
        ...


@dataclass(frozen=True, slots=True)
class Ratios:
    """A score that is one ratio of weighted sums of the fields, or the mean of several such ratios.

    One row is accuracy, precision, recall, F, error rates and means; one row per label is a macro
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

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "ratios", self.numerators, self.denominators, self.zero_division

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Return the scores of sums of shape (..., n_fields)."""
        above = np.asarray(sums @ np.array(self.numerators).T, np.float64)  # (..., n_rows)
        below = np.asarray(sums @ np.array(self.denominators).T, np.float64)
        undefined = below == 0
        scores = np.where(undefined, self.zero_division, above) / np.where(undefined, 1.0, below)
        return np.asarray(scores.sum(axis=-1) / len(self.numerators))

    def is_undefined(self, sums: Array) -> NDArray[np.bool_]:
        """Return a mask of the sums for which a ratio is 0/0."""
        below = sums @ np.array(self.denominators).T
        return np.asarray((below == 0).any(axis=-1))


MEAN = Ratios(((1, 0),), ((0, 1),))
"""The first field divided by the second, as in means and shares."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A score by any vectorised function, which takes one array per field and returns scores.

    Attributes
    ----------
    name : str
        Name for errors.
    function : callable
        Function of one array of shape (...) for each field. It returns scores of the same shape.
    """

    name: str
    function: Callable[..., Any]

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "formula", self.name, self.function if is_user_function(self.function) else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the function by its address if it has one, so that no code is sent."""
        return reduce_by_address(Formula, self.name, self.function)

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Return the scores of sums of shape (..., n_fields); raise InputError if the function fails."""
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                scores = self.compute_values(sums)
        except Exception as error:
            raise InputError(
                f"metric {self.name} failed: {addresses.describe_failure(error)}; it was called with "
                f"{format_count(sums.shape[-1], 'array')} of sums of shape {sums.shape[:-1]}"
            ) from error
        if scores.shape != sums.shape[:-1]:
            raise InputError(
                f"metric {self.name}: returned shape {scores.shape} for sums of shape {sums.shape[:-1]}; "
                "it must be vectorised: one score for each element of its arguments"
            )
        if not np.isfinite(scores).all():
            index = np.argwhere(~np.isfinite(scores))[0]
            raise InputError(f"metric {self.name}: {scores[tuple(index)]} for sums {sums[tuple(index)].tolist()}")
        return scores

    def compute_values(self, sums: Array) -> NDArray[np.float64]:
        """Return the values of the user's function for these sums, even if they are not finite."""
        return np.asarray(self.function(*np.moveaxis(sums, -1, 0)), np.float64)


@dataclass(frozen=True, slots=True)
class Bleu:
    """Corpus BLEU from 10 sums: lengths of output and reference, n-gram matches and n-grams for n = 1 to 4.

    Papineni et al. 2002, with the "exp" smoothing of mteval-v13a as sacrebleu computes it: the k-th
    order without a match counts 1 / 2^k of one match. Fourth roots are taken as two square roots.
    """

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return ("BLEU",)

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Return the scores of sums of shape (..., 10)."""
        values = np.asarray(sums, np.float64)
        length, reference = values[..., 0], values[..., 1]
        correct, total = values[..., 2:6], values[..., 6:10]
        missed = np.cumsum(correct == 0, axis=-1)
        matches = np.where(correct == 0, 0.5**missed, correct)
        shares = matches / np.where(total == 0, 1.0, total)
        product = shares[..., 0] * shares[..., 1] * shares[..., 2] * shares[..., 3]
        short = length < reference
        penalty = np.where(short, np.exp(1 - reference / np.maximum(length, 1.0)) * (length > 0), 1.0)
        score = 100 * penalty * np.sqrt(np.sqrt(product))
        return np.asarray(np.where((correct[..., 0] == 0) | (total == 0).any(axis=-1), 0.0, score))


@dataclass(frozen=True, slots=True)
class MeanOf:
    """The mean of the replicates' scores; each replicate has its own fields, one replicate after the other.

    Attributes
    ----------
    forms : tuple of Form
        The score of each replicate.
    widths : tuple of int
        How many fields each takes.
    """

    forms: tuple[Form, ...]
    widths: tuple[int, ...]

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "mean of", self.forms, self.widths

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Return the scores of sums of shape (..., sum of widths)."""
        total = np.zeros(sums.shape[:-1])
        for form, own_sums in self.split(sums):
            total += form.score(own_sums)
        return np.asarray(total / len(self.forms))

    def split(self, sums: Array) -> Iterator[tuple[Form, Array]]:
        """Return the form of each replicate with its sums."""
        return zip(self.forms, np.split(sums, np.cumsum(self.widths)[:-1], axis=-1), strict=True)


@dataclass(frozen=True, slots=True)
class ChrF:
    """Corpus chrF from 3 sums per n-gram order: n-grams of the output, n-grams of the reference, and matches.

    Popovic 2015, 2017: F_beta of precision and recall averaged over the orders that both have
    ("effective order", as sacrebleu computes it).

    Attributes
    ----------
    beta : float
        Weight of recall.
    """

    beta: float = 2.0

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "chrF", self.beta

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Return the scores of sums of shape (..., 3 * n_orders)."""
        values = np.asarray(sums, np.float64)
        in_system, in_reference, matches = values[..., 0::3], values[..., 1::3], values[..., 2::3]
        is_effective = (in_system > 0) & (in_reference > 0)
        orders = np.maximum(is_effective.sum(axis=-1), 1)
        precision = np.where(is_effective, matches / np.where(is_effective, in_system, 1.0), 0.0).sum(axis=-1) / orders
        recall = np.where(is_effective, matches / np.where(is_effective, in_reference, 1.0), 0.0).sum(axis=-1) / orders
        factor = self.beta**2
        below = factor * precision + recall
        return np.asarray(100 * (1 + factor) * precision * recall / np.where(below == 0, 1.0, below))


NEARLY_ZERO = 2.0**-40
"""A variance below this share of the mean square is rounding error."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's correlation from 6 sums: x, x², xy, y, y² and items; 0 where x or y is constant (0/0)."""

    zero_division: ClassVar[float] = 0.0

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return ("correlation",)

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Return the scores of sums of shape (..., 6)."""
        covariance, *variances = _compute_moments(sums)
        below = np.sqrt(variances[0]) * np.sqrt(variances[1])
        undefined = below == 0
        scores = np.where(undefined, self.zero_division, covariance) / np.where(undefined, 1.0, below)
        return np.asarray(np.clip(scores, -1.0, 1.0))

    def is_undefined(self, sums: Array) -> NDArray[np.bool_]:
        """Return a mask of the sums for which a correlation is 0/0."""
        _, *variances = _compute_moments(sums)
        return np.asarray((variances[0] == 0) | (variances[1] == 0))


def _compute_moments(sums: Array) -> list[NDArray[np.float64]]:
    """Return n² times the covariance and both variances; variances that may be rounding alone are 0."""
    x, xx, xy, y, yy, n = np.moveaxis(np.asarray(sums, np.float64), -1, 0)
    moments = [np.asarray(n * xy - x * y)]
    for squares, total in ((xx, x), (yy, y)):
        variance = n * squares - total * total
        moments.append(np.where(variance > NEARLY_ZERO * np.abs(n * squares), variance, 0.0))
    return moments


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """The sizes of the first sums together, divided by the last: residuals of each bin, and items."""

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return ("calibration error",)

    def score(self, sums: Array) -> NDArray[np.float64]:
        """Return the scores of sums of shape (..., n_bins + 1)."""
        values = np.asarray(sums, np.float64)
        n_items = values[..., -1]
        return np.asarray(np.abs(values[..., :-1]).sum(axis=-1) / np.where(n_items == 0, 1.0, n_items))


def estimate_score_errors(form: Form, sums: Array, errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return about how much scores can change if each sum may be off by a given error.

    To first order, one field after the other, at both ends of each error. Ends at which the score is undefined (a root
    of a negative number) are ignored, because the true sum cannot be there.

    Parameters
    ----------
    form : Form
        The score.
    sums, errors : float64 array, shape (..., n_fields)
        Sums for the form, and their errors, which are 0 for exact sums.

    Returns
    -------
    float64 array, shape (...)
    """
    total = np.zeros(sums.shape[:-1])
    with np.errstate(all="ignore"):
        scores = _score_or_nan(form, sums)
        for f in np.flatnonzero(errors.reshape(-1, errors.shape[-1]).any(axis=0)):
            largest = np.zeros_like(total)
            for side in (errors[..., f], -errors[..., f]):
                shifted = sums.copy()
                shifted[..., f] += side
                moved = np.abs(_score_or_nan(form, shifted) - scores)
                largest = np.fmax(largest, np.where(np.isfinite(moved), moved, 0.0))
            total += largest
    return total


def _score_or_nan(form: Form, sums: Array) -> NDArray[np.float64]:
    """Return the scores of sums, with NaN for all of them if a user's function raises."""
    if isinstance(form, MeanOf):
        return np.asarray(np.mean([_score_or_nan(*part) for part in form.split(sums)], axis=0))
    if not isinstance(form, Formula):
        return form.score(sums)
    try:
        return np.broadcast_to(form.compute_values(sums), sums.shape[:-1])
    except Exception:  # noqa: BLE001 - the user's function may raise anything where it is not defined
        return np.full(sums.shape[:-1], np.nan)


def compute_scores_or_nan(form: Form, sums: Array) -> NDArray[np.float64]:
    """Return the scores of sums of shape (..., n_fields), with NaN where a user's function gives no score.

    A score depends on no other sums: if the function refuses all sums together, each is scored on its own.
    """
    with np.errstate(all="ignore"):
        scores = np.asarray(_score_or_nan(form, sums), np.float64)
        if has_formula(form) and scores.size > 1 and np.isnan(scores).all():
            rows = sums.reshape(-1, sums.shape[-1])
            scores = np.array([_score_or_nan(form, row[None])[0] for row in rows]).reshape(sums.shape[:-1])
    return np.where(np.isfinite(scores), scores, np.nan)


def find_undefined(form: Form, sums: Array) -> NDArray[np.bool_]:
    """Return a mask of the sums for which a score, or a part of it, is 0/0."""
    if isinstance(form, Ratios | Correlation):
        return form.is_undefined(sums)
    if isinstance(form, MeanOf):
        return np.asarray(np.any([find_undefined(*part) for part in form.split(sums)], axis=0))
    return np.zeros(sums.shape[:-1], np.bool_)


def has_formula(form: Form) -> bool:
    """Return whether a score is computed by a user's function, wholly or in part."""
    return any(map(has_formula, form.forms)) if isinstance(form, MeanOf) else isinstance(form, Formula)


def compute_gradient(form: Form, sums: Array, step: float = 1e-4) -> NDArray[np.float64]:
    """Return the derivatives of a score with respect to each field's sum, at sums of shape (n_fields,).

    Parameters
    ----------
    form : Form
        The score.
    sums : array, shape (n_fields,)
        Sums as the form takes them. They need not be integers.
    step : float
        Relative change of a sum by which slopes are measured that no formula gives.

    Returns
    -------
    float64 array, shape (n_fields,)
        0 where the score does not change smoothly (0/0).
    """
    return np.asarray(compute_gradients(form, np.asarray(sums)[None], step)[0])


def compute_gradients(form: Form, sums: Array, step: float = 1e-4) -> NDArray[np.float64]:
    """Return the derivatives of a score with respect to each field's sum, at many points of shape (n, n_fields)."""
    points = np.asarray(sums, np.float64)
    if isinstance(form, Ratios):
        above, below = np.array(form.numerators, np.float64), np.array(form.denominators, np.float64)
        n, d = points @ above.T, points @ below.T  # (n, n_rows)
        safe = np.where(d == 0, 1.0, d)[:, :, None]
        slopes = (above * safe - below * n[:, :, None]) / safe**2
        return np.asarray(np.where((d == 0)[:, :, None], 0.0, slopes).mean(axis=1))
    derivatives = np.zeros(points.shape)
    for f in range(points.shape[1]):
        change = step * np.abs(points[:, f])
        change[change == 0] = 1.0
        high, low = points.copy(), points.copy()
        high[:, f] += change
        low[:, f] -= np.where(points[:, f] == 0, 0.0, change)
        try:
            slope = (form.score(high) - form.score(low)) / (high[:, f] - low[:, f])
        except InputError:  # not defined at all of the points
            if len(points) == 1:
                continue
            return np.array([compute_gradient(form, point, step) for point in points])
        derivatives[:, f] = np.where(np.isfinite(slope), slope, 0.0)
    return derivatives
