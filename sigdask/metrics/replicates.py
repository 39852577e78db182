"""Metrics of systems with replicates (optimizer runs, seeds): the mean of the replicates' scores.

Clark, Dyer, Lavie & Smith 2011, "Better hypothesis testing for statistical machine translation:
controlling for optimizer instability".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import Array
from sigdask.counts.lattice import Lattice, ScoreScale
from sigdask.counts.precision import ExactNumbers
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric, BoundSets, Metric
from sigdask.metrics.forms import MeanOf, Ratios


def bind(metric: Metric, counts: Counts) -> BoundMetric | BoundSets:
    """Bind a metric to counts; where these have replicates, to the mean of the scores of each."""
    if not counts.replicates:
        return _held(metric.bind(counts), counts)
    bound = [_summed(metric, replicate) for replicate in counts.replicates]
    held = _held_in_all(bound, counts)
    fields = [
        [b.field(name, replicate) for name in b.fields] for b, replicate in zip(bound, counts.replicates, strict=True)
    ]
    first = bound[0]
    shares = _shares(first, fields) if all(b.form == first.form for b in bound) else None
    if shares is None:
        own: Mapping[str, Array] = ExactNumbers(_blocks(first.name, fields, counts), _of_blocks(bound, counts))
        form = MeanOf(tuple(b.form for b in bound), tuple(len(b.fields) for b in bound))
        return BoundMetric(first.name, tuple(own), form, first.higher_is_better, own, first.signature, held)
    assert isinstance(first.form, Ratios)
    above, below = (np.concatenate(part) if counts.apart else _sum(part) for part in shares)
    own = ExactNumbers(
        {f"{first.name}@above": above, f"{first.name}@below": below},
        {f"{first.name}@above": _of_sums(bound, counts)},
    )
    ratio = Ratios(((1, 0),), ((0, 1),), first.form.zero_division)
    return BoundMetric(first.name, tuple(own), ratio, first.higher_is_better, own, first.signature, held)


def _held(found: BoundMetric | BoundSets, counts: Counts) -> BoundMetric | BoundSets:
    """Say which items a metric is on."""
    return replace(found, held=counts.held_in(found.fields)) if isinstance(found, BoundMetric) else found


def _held_in_all(bound: Sequence[BoundMetric], counts: Counts) -> NDArray[np.bool_] | None:
    """Return which items each system has in all replicates."""
    gaps = [held for b, r in zip(bound, counts.replicates, strict=True) if (held := r.held_in(b.fields)) is not None]
    if not gaps:
        return None
    return np.tile(np.logical_and.reduce(gaps), (len(counts.replicates) if counts.apart else 1, 1))


def _summed(metric: Metric, replicate: Counts) -> BoundMetric:
    """Bind a metric to one replicate, or say that it takes none."""
    bound = metric.bind(replicate)
    if isinstance(bound, BoundSets):
        raise InputError(
            f"metric {metric.name!r} is of sets, which takes no replicates; give one file a system, or a metric of "
            "sums (`sigdask metrics`)"
        )
    return bound


def _blocks(name: str, fields: Sequence[Sequence[Array]], counts: Counts) -> dict[str, Array]:
    """Return the fields of each replicate, one replicate after the other."""
    own = {}
    for r, of_replicate in enumerate(fields):
        for k, field in enumerate(of_replicate):
            own[f"{name}@{r}#{k}"] = _placed(field, r, counts) if counts.apart else field
    return own


def _of_blocks(bound: Sequence[BoundMetric], counts: Counts) -> dict[str, tuple[float, ...]]:
    """Return how far the numbers of these fields may be off."""
    return {
        f"{bound[0].name}@{r}#{k}": b.rounding(name, replicate)
        for r, (b, replicate) in enumerate(zip(bound, counts.replicates, strict=True))
        for k, name in enumerate(b.fields)
    }


def _of_sums(bound: Sequence[BoundMetric], counts: Counts) -> tuple[float, ...]:
    """Return how far the numerators added up over replicates may be off, for each system."""
    total = np.zeros(counts.n_systems)
    for b, replicate in zip(bound, counts.replicates, strict=True):
        assert isinstance(b.form, Ratios)
        for name, weight in zip(b.fields, b.form.numerators[0], strict=True):
            total += abs(weight) * np.array(b.rounding(name, replicate))
    return tuple(total.tolist())


def _placed(field: Array, r: int, counts: Counts) -> Array:
    """Let the items of one replicate contribute to its own sums alone."""
    placed = np.zeros((counts.n_items, field.shape[1]), field.dtype)
    placed[r * len(field) : (r + 1) * len(field)] = field
    return placed


def _shares(bound: BoundMetric, fields: Sequence[Sequence[Array]]) -> tuple[list[Array], list[Array]] | None:
    """Return numerators and denominators where a mean over replicates is one ratio of sums.

    So it is where an item's denominator is the same in all systems and replicates: means, and rates
    of reference words.
    """
    form = bound.form
    if not isinstance(form, Ratios) or len(form.numerators) != 1:
        return None
    below = [_combined(f, form.denominators[0]) for f in fields]
    if any((b != below[0][:, :1]).any() for b in below):
        return None
    return [_combined(f, form.numerators[0]) for f in fields], below


def _combined(fields: Sequence[Array], weights: Sequence[int]) -> Array:
    return np.asarray(sum(weight * _wide(field) for field, weight in zip(fields, weights, strict=True) if weight))


def _wide(field: Array) -> Array:
    """Keep sums of small integers from overflowing."""
    return field if field.dtype.kind == "f" else field.astype(np.int64)


def _sum(columns: Sequence[Array]) -> Array:
    """Add item scores of replicates; sums of decimals are decimals."""
    total = np.asarray(sum(columns))
    if total.dtype.kind != "f":
        return total
    for s in range(total.shape[1]):
        digits = [ScoreScale.of(column[:, s]).digits for column in columns]
        known = [d for d in digits if d is not None]
        if len(known) == len(digits):
            lattice = Lattice(digits=max(known))
            total[:, s] = lattice.to_scores(np.asarray(sum(lattice.integers(column[:, s]) for column in columns)))
    return total
