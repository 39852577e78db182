"""Metrics of predicted numbers and gold numbers: errors, correlations, rankings, and probabilities.

References
----------
Brier 1950, "Verification of forecasts expressed in terms of probability". Kendall 1945, "The treatment of ties in
ranking problems" (tau-b). Hanley & McNeil 1982, "The meaning and use of the area under a receiver operating
characteristic (ROC) curve". Naeini, Cooper & Hauskrecht 2015, "Obtaining well calibrated probabilities using Bayesian
binning" (ECE).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import Bools, Floats
from sigdask.counts.precision import ExactNumbers, SystemNumbers
from sigdask.errors import InputError
from sigdask.metrics.base import (
    DEFAULT_SIGNS,
    BoundAgreement,
    BoundMetric,
    BoundRanks,
    Metric,
    Spec,
    build_lacking_error,
)
from sigdask.metrics.forms import MEAN, CalibrationError, Correlation, Form, Formula, Ratios
from sigdask.statistics.lattice import ScoreScale, standardise

Array = NDArray[Any]
Columns = dict[str, Sequence[SystemNumbers]]
"""Numbers of each system, or of all, by field."""


def compute_rmse(squared_errors: Array, items: Array) -> Array:
    """Return the square root of the mean squared error from sums: squared errors, and items."""
    return np.sqrt(squared_errors / items)


R2_FORM = Ratios(((-1, 1),), ((0, 1),))

CORRELATIONS = frozenset({"pearson", "spearman", "kendall"})
RANK_METRICS = frozenset({"spearman", "kendall", "AUC", "average-precision"})
BINARY_GOLD = frozenset({"AUC", "average-precision", "brier", "log-loss", "ECE"})
"""Metrics whose gold values are 0 and 1."""

PROBABILITIES = frozenset({"brier", "log-loss", "ECE"})
"""Metrics whose predictions are probabilities."""

MIN_PROBABILITY = float(np.finfo(np.float64).eps)
"""Smallest probability in the logarithmic loss, as in scikit-learn."""

MAX_BINS = 100


def regression(spec: Spec) -> Metric:
    """Return a metric of predicted numbers: a function of sums over items, or one of ranks."""
    spec.check_options(*(["bins"] if spec.base == "ECE" else []))
    return Metric(spec.name, partial(_bind, spec.name, spec.base, spec.get_whole_number("bins", 15, MAX_BINS)))


def _bind(name: str, base: str, n_bins: int, counts: Counts) -> BoundMetric | BoundRanks:
    """Compute each item's terms of the sums. R2 centres gold values on the mean of all of them, even in subsets."""
    gold, predictions = read_predictions(name, counts)
    _check_gold(name, base, gold, counts)
    if base in PROBABILITIES:
        _check_probabilities(name, predictions, counts)
    if base in RANK_METRICS:
        return BoundRanks(name, base)
    if base == "pearson":
        return _bind_pearson(name, gold, predictions)
    columns: Columns
    form: Form = MEAN
    if base == "ECE":
        columns, form = _build_residuals(gold, predictions, n_bins), CalibrationError()
    elif base == "log-loss":
        columns = {"loss": [_compute_losses(gold, column) for column in predictions]}
    else:
        errors = [_subtract(column, gold) for column in predictions]
        if base == "MAE":
            columns = {"absolute-error": [SystemNumbers(np.abs(e.numbers), e.rounding) for e in errors]}
        else:
            columns = {"squared-error": [_multiply(e, e) for e in errors]}
        if base == "RMSE":
            form = Formula(name, compute_rmse)
        if base == "R2":
            columns["squared-deviation"], form = [SystemNumbers((gold - gold.mean()) ** 2)], R2_FORM
    return _build_metric(name, columns, form)


def _build_metric(name: str, columns: Columns, form: Form) -> BoundMetric:
    """Return a metric of the sums of some columns and, except for R2, of the number of items."""
    columns = {f"{name}#{field}": numbers for field, numbers in columns.items()}
    own = {field: np.column_stack([column.numbers for column in numbers]) for field, numbers in columns.items()}
    fields = tuple(columns) if form == R2_FORM else (*columns, "items")
    numbers = ExactNumbers.from_columns(columns, own)
    return BoundMetric(name, fields, form, form == R2_FORM or isinstance(form, Correlation), numbers)


def read_predictions(name: str, counts: Counts) -> tuple[Floats, list[Floats]]:
    """Return the gold values and each system's predictions; raise if the data have no such numbers."""
    outputs = counts.outputs
    columns = None if outputs is None or outputs.gold is None else [outputs.gold, *outputs.systems]
    if columns is None or not all(isinstance(value, float) for column in columns for value in column[:1]):
        raise build_lacking_error(name, "gold values and predictions that are numbers (format numbers)", counts)
    gold, *predictions = (np.asarray(column, np.float64) for column in columns)
    return gold, predictions


def _check_gold(name: str, base: str, gold: Floats, counts: Counts) -> None:
    if base in BINARY_GOLD:
        _check_items(name, "gold values of 0 and 1 (1 for the positive class)", gold, np.isin(gold, (0, 1)), counts)
    if not len(gold) or base not in CORRELATIONS | {"R2", "AUC", "average-precision"}:
        return
    if np.ptp(gold) == 0 and not (base == "average-precision" and gold[0]):
        use = "MAE" if base == "R2" or base in CORRELATIONS else "brier"
        raise InputError(f"metric {name!r}: all gold values are {gold[0]:g}, so that {base} is not defined; take {use}")


def _check_probabilities(name: str, predictions: Sequence[Floats], counts: Counts) -> None:
    for system, column in zip(counts.systems, predictions, strict=True):
        needed = f"probabilities of the gold value 1, from 0 to 1, of {system!r}"
        _check_items(name, needed, column, (column >= 0) & (column <= 1), counts)


def _check_items(name: str, needed: str, column: Floats, is_right: Bools, counts: Counts) -> None:
    """Raise for the first item whose value is wrong, with its id or its position."""
    if not is_right.all():
        k = int(np.argmin(is_right))
        item = f"item {k + 1}" if counts.ids is None else f"item {counts.ids[k]!r}"
        raise InputError(f"metric {name!r} needs {needed}; {item} has {column[k]:g}")


def _compute_exactly(function: Callable[..., Floats], degree: int, *columns: Floats) -> Floats | None:
    """Return a polynomial of decimals, exact before its one rounding; None if some numbers are not short decimals."""
    digits = [ScoreScale.from_scores(column).digits for column in columns]
    known_digits = [d for d in digits if d is not None]
    scale = 10.0 ** max(known_digits, default=0)
    if len(known_digits) < len(digits) or max(np.abs(x).max(initial=0.0) for x in columns) * scale >= 2.0**53:
        return None
    whole = function(*(np.rint(column * scale) for column in columns))
    return whole / scale**degree if np.abs(whole).max(initial=0.0) < 2.0**53 else None


def _subtract(x: Floats, y: Floats) -> SystemNumbers:
    """Return x - y: exact for decimals, else with a limit of its rounding error."""
    if (exact := _compute_exactly(np.subtract, 1, x, y)) is not None:
        return SystemNumbers(exact)
    return _limit_error(x - y, 2 * float(np.spacing(max(np.abs(x).max(), np.abs(y).max()))))


def _multiply(x: SystemNumbers, y: SystemNumbers) -> SystemNumbers:
    """Return x * y: exact for decimals, else with a limit of its rounding error."""
    is_exact = not x.rounding and not y.rounding
    if is_exact and (exact := _compute_exactly(np.multiply, 2, x.numbers, y.numbers)) is not None:
        return SystemNumbers(exact)
    product, (largest_x, largest_y) = x.numbers * y.numbers, (float(np.abs(c.numbers).max()) for c in (x, y))
    error = x.rounding * largest_y + y.rounding * largest_x + x.rounding * y.rounding
    return _limit_error(product, error + float(np.spacing(np.abs(product).max())))


def _limit_error(numbers: Floats, error: float) -> SystemNumbers:
    """Return numbers with a limit of their rounding error, which is 0 where all are 0."""
    return SystemNumbers(numbers, error if numbers.any() else 0.0)


def _bind_pearson(name: str, gold: Floats, predictions: Sequence[Floats], items: Bools | None = None) -> BoundMetric:
    """Return Pearson's correlation on some items, by default all.

    Gold values and each system's predictions are standardised on these items, because swaps exchange predictions.
    """
    used = np.ones(len(gold), np.bool_) if items is None else items
    y, *x = (_standardise_items(column, used) for column in (gold, *predictions))
    columns: Columns = {"x": x, "xx": [_multiply(c, c) for c in x], "xy": [_multiply(c, y) for c in x], "y": [y],
               "yy": [_multiply(y, y)]}  # fmt: skip
    restriction = partial(_bind_pearson, name, gold, predictions) if items is None else None
    return replace(_build_metric(name, columns, Correlation()), restriction=restriction)


def _standardise_items(column: Floats, items: Bools) -> SystemNumbers:
    """Return numbers standardised on some items, and 0 on all others."""
    standardised = standardise(column[items])
    numbers = np.zeros(len(column))
    numbers[items] = standardised.numbers
    return replace(standardised, numbers=numbers)


def _build_residuals(gold: Floats, predictions: Sequence[Floats], n_bins: int) -> Columns:
    """Return gold minus predicted in each of the bins (k / n, (k + 1) / n], the first of which includes 0."""
    edges = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    residuals = [_subtract(gold, column) for column in predictions]
    bins = [np.searchsorted(edges, column) for column in predictions]
    return {
        f"bin{k}": [
            _limit_error(np.where(b == k, r.numbers, 0.0), r.rounding if (gold[b == k] == 1).any() else 0.0)
            for r, b in zip(residuals, bins, strict=True)
        ]
        for k in range(n_bins)
    }


def _compute_losses(gold: Floats, predicted: Floats) -> SystemNumbers:
    """Return the negative logarithm of the probability that was given to each gold value."""
    clipped = np.clip(predicted, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    losses = -np.log(np.where(gold == 1, clipped, 1 - clipped))
    return SystemNumbers(losses, 2 * float(np.spacing(losses.max())))


PREFIX = "meta-"

LEVELS = ("segment", "system")
GROUPS = ("none", "item", "system")

OF_PAIRS = ("accuracy", "acc-eq")
"""Statistics that are shares of pairs, whose decisions can be swapped."""

SET_COLUMN = "language-pair"
"""Grouping column of test sets, over which agreement is averaged."""


def agreement(spec: Spec) -> Metric:
    """Return the metric of agreement with human scores of a parsed name, such as `meta-pearson:group=item`."""
    statistic = spec.base.removeprefix(PREFIX)
    is_soft, is_pairs = statistic == "spa", statistic in OF_PAIRS
    swaps_pairs = is_pairs and spec.get_choice("permute", ("units", "pairs")) == "pairs"
    level = "system" if is_soft else spec.get_choice("level", LEVELS)
    spec.check_options(
        *(("signs",) if is_soft else ("level", "group", "undefined")),
        *(("permute",) if is_pairs else ()),
        *(("epsilon",) if statistic == "accuracy" and swaps_pairs else ()),  # of raw scores, which are swapped then
    )
    group = spec.get_choice("group", GROUPS if level == "segment" else GROUPS[:1])  # each system has one score
    epsilon = float(spec.get_number("epsilon", "0"))
    signs = spec.get_whole_number("signs", DEFAULT_SIGNS, 10**6)
    undefined = spec.get_choice("undefined", ("omit", "zero"))
    bound = BoundAgreement(spec.name, statistic, level, group, undefined, swaps_pairs, epsilon, signs)
    return Metric(spec.name, partial(_bind_people, bound))


def _bind_people(bound: BoundAgreement, counts: Counts) -> BoundAgreement:
    """Return the agreement, after checking that the data have human scores of systems' segments."""
    if "human" not in counts.fields or not {"system", "segment"} <= counts.groups.keys():
        raise build_lacking_error(bound.name, "scores of metrics and of people (`sigdask meta`, format meta)", counts)
    return bound
