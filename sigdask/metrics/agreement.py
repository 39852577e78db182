"""Matthews' correlation and Cohen's kappa, for any number of labels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.identity import known_as
from sigdask.metrics.base import BoundMetric, Metric, Spec
from sigdask.metrics.forms import Formula

Array = NDArray[Any]


def mcc(spec: Spec) -> Metric:
    """Return the metric Matthews correlation coefficient: R_K for K labels (Gorodkin 2004, eq. 8)."""
    spec.check_options()
    return Metric(spec.name, partial(_bind, spec.name, compute_mcc))


def kappa(spec: Spec) -> Metric:
    """Return the metric Cohen's kappa, the agreement of system and gold beyond chance (Cohen 1960, eq. 1)."""
    spec.check_options()
    return Metric(spec.name, partial(_bind, spec.name, compute_kappa))


@known_as("sigdask.metrics.agreement:gorodkin")
def compute_mcc(correct: Array, items: Array, *margins: Array) -> Array:
    """Return R_K from sums: correct items, all items, items predicted with each label, and gold items of each label.

    0 where a margin is degenerate (one label takes all), as scikit-learn has it.
    """
    predicted, gold = margins[: len(margins) // 2], margins[len(margins) // 2 :]
    above = correct * items - _dot_product(predicted, gold)
    below = np.sqrt((items * items - _dot_product(predicted, predicted)).astype(np.float64)) * np.sqrt(
        (items * items - _dot_product(gold, gold)).astype(np.float64)
    )
    return np.where(below == 0, 0.0, above / np.where(below == 0, 1.0, below))


@known_as("sigdask.metrics.agreement:cohen")
def compute_kappa(correct: Array, items: Array, *margins: Array) -> Array:
    """Return kappa from sums: correct items, all items, items predicted with each label, gold items of each label.

    0 where chance agreement is complete (0/0).
    """
    by_chance = _dot_product(margins[: len(margins) // 2], margins[len(margins) // 2 :])
    below = items * items - by_chance
    return np.where(below == 0, 0.0, (correct * items - by_chance) / np.where(below == 0, 1, below))


def _dot_product(a: tuple[Array, ...], b: tuple[Array, ...]) -> Array:
    return np.asarray(sum(x * y for x, y in zip(a, b, strict=True)))


@known_as("sigdask.metrics.agreement:_bind")
def _bind(name: str, function: Any, counts: Counts) -> BoundMetric:
    if "correct" not in counts.fields or not counts.labels:
        raise InputError(f"metric {name!r} needs labels; these data have: {', '.join(list(counts.fields)[:6])}")
    if "tp" in counts.fields:
        raise InputError(f"metric {name!r} needs one label an item; these data have several or chunks: take f1")
    labels = counts.labels + counts.predicted_labels
    margins = tuple(f"{kind}[{label}]" for kind in ("predicted", "gold") for label in labels)
    return BoundMetric(name, ("correct", "items", *margins), Formula(name, function))
