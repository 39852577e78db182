"""Metrics of systems with replicates (optimizer runs, seeds): their score is the mean over replicates.

Clark, Dyer, Lavie & Smith 2011, "Better hypothesis testing for statistical machine translation:
controlling for optimizer instability".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import Array
from sigdask.counts.precision import ExactNumbers, Lattice, ScoreScale
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric, BoundSets, Metric
from sigdask.metrics.forms import MEAN, Form, MeanOf, Ratios


def bind_metric(metric: Metric, counts: Counts) -> BoundMetric | BoundSets:
    """Bind a metric to data; if systems have replicates, bind the mean of the replicates' scores."""
    if not counts.replicates:
        return _set_held_items(metric.bind(counts), counts)
    bound = [_bind_replicate(metric, replicate) for replicate in counts.replicates]
    held = _find_held_in_all(bound, counts)
    fields = [
        [b.get_field(name, replicate) for name in b.fields]
        for b, replicate in zip(bound, counts.replicates, strict=True)
    ]
    first = bound[0]
    shares = _compute_shares(first, fields) if all(b.form == first.form for b in bound) else None
    if shares is None:
        form: Form = MeanOf(tuple(b.form for b in bound), tuple(len(b.fields) for b in bound))
        own_fields = _name_fields(bound, fields, counts)
    else:
        assert isinstance(first.form, Ratios)
        form = replace(MEAN, zero_division=first.form.zero_division)
        above, below = (np.concatenate(arrays) if counts.apart else _sum_columns(arrays) for arrays in shares)
        own_fields = ExactNumbers(
            {f"{first.name}@above": above, f"{first.name}@below": below},
            {f"{first.name}@above": _sum_roundings(bound, counts)},
        )
    return BoundMetric(first.name, tuple(own_fields), form, first.higher_is_better, own_fields, first.signature, held)


def _set_held_items(bound: BoundMetric | BoundSets, counts: Counts) -> BoundMetric | BoundSets:
    """Return the bound metric with a record of the items that each system has in the metric's fields."""
    return replace(bound, held=counts.held_in(bound.fields)) if isinstance(bound, BoundMetric) else bound


def _find_held_in_all(bound: Sequence[BoundMetric], counts: Counts) -> NDArray[np.bool_] | None:
    """Return which items each system has in all replicates, or None if no items are missing."""
    gaps = [held for b, r in zip(bound, counts.replicates, strict=True) if (held := r.held_in(b.fields)) is not None]
    if not gaps:
        return None
    return np.tile(np.logical_and.reduce(gaps), (len(counts.replicates) if counts.apart else 1, 1))


def _bind_replicate(metric: Metric, replicate: Counts) -> BoundMetric:
    """Return a metric bound to one replicate; raise InputError if the metric does not support replicates."""
    bound = metric.bind(replicate)
    if isinstance(bound, BoundSets):
        raise InputError(
            f"metric {metric.name!r} is of sets, which takes no replicates; give one file a system, or a metric of "
            "sums (`sigdask metrics`)"
        )
    return bound


def _name_fields(bound: Sequence[BoundMetric], fields: Sequence[Sequence[Array]], counts: Counts) -> ExactNumbers:
    """Return the metric's fields for each replicate under names of their own, and how far their numbers may be off."""
    named_fields: dict[str, Array] = {}
    roundings = {}
    for r, (b, replicate) in enumerate(zip(bound, counts.replicates, strict=True)):
        for k, (name, field) in enumerate(zip(b.fields, fields[r], strict=True)):
            own_name = f"{b.name}@{r}#{k}"
            named_fields[own_name] = _pad_field(field, r, counts) if counts.apart else field
            roundings[own_name] = b.get_rounding(name, replicate)
    return ExactNumbers(named_fields, roundings)


def _sum_roundings(bound: Sequence[BoundMetric], counts: Counts) -> tuple[float, ...]:
    """Return how far each system's numerators may be off when they are summed over replicates."""
    total = np.zeros(counts.n_systems)
    for b, replicate in zip(bound, counts.replicates, strict=True):
        assert isinstance(b.form, Ratios)
        for name, weight in zip(b.fields, b.form.numerators[0], strict=True):
            total += abs(weight) * np.array(b.get_rounding(name, replicate))
    return tuple(total.tolist())


def _pad_field(field: Array, r: int, counts: Counts) -> Array:
    """Return a replicate's field on the items of all replicates, with 0 on the items of other replicates."""
    padded = np.zeros((counts.n_items, field.shape[1]), field.dtype)
    padded[r * len(field) : (r + 1) * len(field)] = field
    return padded


def _compute_shares(bound: BoundMetric, fields: Sequence[Sequence[Array]]) -> tuple[list[Array], list[Array]] | None:
    """Return each replicate's numerators and denominators, or None if the mean score is not one ratio of sums.

    It is one ratio where an item's denominator is the same in all systems and replicates: means, and rates of reference
    words.
    """
    form = bound.form
    if not isinstance(form, Ratios) or len(form.numerators) != 1:
        return None
    below = [_combine_fields(f, form.denominators[0]) for f in fields]
    if any((b != below[0][:, :1]).any() for b in below):
        return None
    return [_combine_fields(f, form.numerators[0]) for f in fields], below


def _combine_fields(fields: Sequence[Array], weights: Sequence[int]) -> Array:
    """Return the weighted sum of fields, of integers as int64, whose sums do not overflow."""
    wide = (field if field.dtype.kind == "f" else field.astype(np.int64) for field in fields)
    return np.asarray(sum(weight * field for field, weight in zip(wide, weights, strict=True) if weight))


def _sum_columns(columns: Sequence[Array]) -> Array:
    """Return the sum of the replicates' item scores; sums of decimals are exact decimals."""
    total = np.asarray(sum(columns))
    if total.dtype.kind != "f":
        return total
    for s in range(total.shape[1]):
        digits = [ScoreScale.from_scores(column[:, s]).digits for column in columns]
        known_digits = [d for d in digits if d is not None]
        if len(known_digits) == len(digits):
            lattice = Lattice(digits=max(known_digits))
            total[:, s] = lattice.to_scores(np.asarray(sum(lattice.to_integers(column[:, s]) for column in columns)))
    return total
