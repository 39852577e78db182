"""Metrics of systems with replicates (optimizer runs, seeds): their score is the mean over replicates.

Clark, Dyer, Lavie & Smith 2011, "Better hypothesis testing for statistical machine translation:
controlling for optimizer instability".

pass@k is a function of the replicates (samples) of each item instead: Chen et al. 2021, "Evaluating large language
models trained on code", equation 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.fields import Array, Bools, Integers
from sigdask.counts.precision import ExactNumbers
from sigdask.errors import InputError
from sigdask.interface import spell
from sigdask.metrics import base
from sigdask.metrics.base import BoundMetric, BoundRanks, BoundSets, Metric, Spec
from sigdask.metrics.forms import MEAN, Form, MeanOf, Ratios
from sigdask.statistics.lattice import Lattice, ScoreScale
from sigdask.text import format_count


def bind_mean(metric: Metric, counts: Counts) -> BoundMetric:
    """Bind the mean of a metric's scores of the replicates."""
    return _average_replicates([_bind_replicate(metric, replicate) for replicate in counts.replicates], counts)


def _average_replicates(bound: Sequence[BoundMetric], counts: Counts) -> BoundMetric:
    """Return the mean score of a metric that is bound to each replicate of `counts`."""
    held = _find_held_in_all([b.fields for b in bound], counts)
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
    restriction = partial(_restrict_replicates, bound, counts) if first.restriction else None
    return BoundMetric(
        first.name, tuple(own_fields), form, first.higher_is_better, own_fields, first.signature, held, restriction
    )


def _restrict_replicates(bound: Sequence[BoundMetric], counts: Counts, items: Bools) -> BoundMetric:
    """Return the mean score on some items."""
    parts = np.split(items, len(bound)) if counts.apart else [items] * len(bound)
    metrics = [b.restrict(part) for b, part in zip(bound, parts, strict=True)]
    return replace(_average_replicates(metrics, counts), restriction=None)


def _find_held_in_all(fields: Iterable[Sequence[str]], counts: Counts) -> Bools | None:
    """Return which items each system has in some fields of each replicate, or None if no items are missing."""
    parts = zip(fields, counts.replicates or (counts,), strict=True)
    masks = [held for names, replicate in parts if (held := replicate.held_in(names)) is not None]
    return np.tile(np.logical_and.reduce(masks), (len(counts.replicates) if counts.apart else 1, 1)) if masks else None


def _bind_replicate(metric: Metric, replicate: Counts) -> BoundMetric:
    """Return a metric bound to one replicate; raise InputError if the metric does not support replicates."""
    bound = metric.bind(replicate)
    if not isinstance(bound, BoundMetric):
        kind = {BoundSets: "of sets", BoundRanks: "of ranks"}.get(type(bound), "an agreement with people")
        raise InputError(
            f"metric {metric.name!r} is {kind}, which takes no replicates",
            remedy="give one file per system, or a metric of sums (`sigdask list metrics`)",
        )
    return bound


def _name_fields(bound: Sequence[BoundMetric], fields: Sequence[Sequence[Array]], counts: Counts) -> ExactNumbers:
    """Return the metric's fields for each replicate under names of their own, and how far their numbers may be off."""
    named_fields: dict[str, Array] = {}
    roundings = {}
    for r, (b, replicate) in enumerate(zip(bound, counts.replicates, strict=True)):
        for k, (name, field) in enumerate(zip(b.fields, fields[r], strict=True)):
            own_name = f"{b.name}@{r}#{k}"
            named_fields[own_name], roundings[own_name] = field, b.get_rounding(name, replicate)
            if counts.apart:  # 0 on the items of other replicates
                padded = named_fields[own_name] = np.zeros((counts.n_items, field.shape[1]), field.dtype)
                padded[r * len(field) : (r + 1) * len(field)] = field
    return ExactNumbers(named_fields, roundings)


def _sum_roundings(bound: Sequence[BoundMetric], counts: Counts) -> tuple[float, ...]:
    """Return how far each system's numerators may be off when they are summed over replicates."""
    total = np.zeros(counts.n_systems)
    for b, replicate in zip(bound, counts.replicates, strict=True):
        assert isinstance(b.form, Ratios)
        for name, weight in zip(b.fields, b.form.numerators[0], strict=True):
            total += abs(weight) * np.array(b.get_rounding(name, replicate))
    return tuple(total.tolist())


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


MAX_COMMON_DENOMINATOR = 1 << 40
"""Largest common denominator with which values of items are stored as integers, so that equal sums are ties."""


def compute_pass(n: int, right: int, k: int) -> Fraction:
    """Return the probability that at least one of k samples, drawn from n of which some are right, is right.

    Examples
    --------
    >>> compute_pass(5, 2, 1), compute_pass(5, 2, 3), compute_pass(5, 3, 3)
    (Fraction(2, 5), Fraction(9, 10), Fraction(1, 1))
    """
    return 1 - Fraction(math.comb(n - right, k), math.comb(n, k))


def pass_at_k(spec: Spec) -> Metric:
    """Return the metric pass@k of samples that are right or wrong; pass@10[COLUMN] of one of several columns."""
    spec.check_options(label=True)
    return Metric(spec.name, partial(_bind_pass, spec), takes_replicates=True)


def _bind_pass(spec: Spec, counts: Counts) -> BoundMetric:
    k = int(spec.base.partition("@")[2])
    field = _find_outcomes(spec, counts)
    n_samples, right = _count_samples(field, counts)
    held = _find_held_in_all([(field,)] * max(len(counts.replicates), 1), counts)
    short = (n_samples < k) & (n_samples > 0) & (True if held is None else held)
    if short.any():
        item, system = np.argwhere(short)[0].tolist()
        name = repr(counts.ids[item]) if counts.ids else str(item + 1)
        n, least = int(n_samples[item, system]), int(n_samples[short].min())
        raise InputError(
            f"metric {spec.name!r}: item {name} of {counts.systems[system]} has {format_count(n, 'sample')}, fewer "
            f"than {k}; draw more samples, or take at most pass@{least}"
        )
    pairs, places = np.unique(np.stack([n_samples.ravel(), right.ravel()], axis=1), axis=0, return_inverse=True)
    values = [compute_pass(n, c, k) if n else Fraction(0) for n, c in pairs.tolist()]
    denominator = math.lcm(*(value.denominator for value in values))
    is_exact = denominator <= MAX_COMMON_DENOMINATOR
    numbers = np.array([int(value * denominator) if is_exact else float(value) for value in values])
    items = counts.field(base.get_items_field(field, counts)) > 0
    own = ExactNumbers(
        {
            f"{spec.name}@above": numbers[places.reshape(n_samples.shape)],
            f"{spec.name}@below": items * np.int64(denominator if is_exact else 1),
        },
        {f"{spec.name}@above": (0.0 if is_exact else 2.0**-53,) * counts.n_systems},
    )
    return BoundMetric(spec.name, tuple(own), MEAN, own=own, held=held)


def _find_outcomes(spec: Spec, counts: Counts) -> str:
    """Return the only field that shows which samples are right, by values of 0 and 1."""
    names = [*counts.of_one.fields]
    if spec.label is not None:
        names = [name for name in (f"score[{spec.label}]",) if name in names]
    fields = [name for name in names if name in {"correct", "score"} or name.startswith("score[")]
    outcomes = [name for name in fields if _are_outcomes(name, counts)]
    if len(outcomes) == 1:
        return outcomes[0]
    if outcomes:
        columns = ", ".join(f"{spec.base}[{name[6:-1]}]" for name in outcomes)
        raise InputError(
            f"metric {spec.name!r}: several columns hold 0 or 1 for each sample", remedy=f"name one: {columns}"
        )
    needed = "samples that are right or wrong: scores of 0 and 1, or labels and gold"
    raise base.build_lacking_error(spec.name, needed, counts)


def _are_outcomes(field: str, counts: Counts) -> bool:
    """Return whether a field holds 0 or 1 for each sample of each item."""
    if not counts.replicates:
        if field.replace("score", "samples", 1) in counts.fields:
            return True
        values = counts.field(field)
        return bool(np.isin(values, (0, 1) if field == "correct" else (0, counts.field("items").max())).all())
    return all(np.isin(replicate.field(field), (0, 1)).all() for replicate in counts.replicates)


def _count_samples(field: str, counts: Counts) -> tuple[Integers, Integers]:
    """Return the number of samples of each item and system, and how many of them are right."""
    if counts.apart:
        raise InputError("pass@k needs all samples of an item together", remedy=f"use {spell('unit', 'item')}")
    if counts.replicates:
        n_replicates = len(counts.replicates)
        right = np.sum([replicate.field(field) for replicate in counts.replicates], axis=0).astype(np.int64)
        n_samples = np.asarray(counts.fields.get("samples", np.full(right.shape, n_replicates)))
        if (n_samples < 0).any():
            raise InputError(
                "pass@k: items have different numbers of samples, and this format does not say which",
                remedy=f"give all items equally many samples, or a log of samples ({spell('format', 'samples')})",
            )
        return n_samples, right * n_samples // n_replicates  # samples were repeated up to a common number
    values = counts.field(field) / (1 if field == "correct" else counts.field("items"))
    n_samples = counts.fields.get(field.replace("score", "samples", 1), np.ones(values.shape, np.int64))
    return np.asarray(n_samples), np.rint(values * n_samples).astype(np.int64)
