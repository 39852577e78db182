"""From aligned counts to panels: the systems, pairs and metrics that share one set of shuffles.

Items are summed into units, units stand in canonical order (their addresses in the stream), and
pairs that can share arrays do. A pair with missing items, another scale or a subset of the items
has a panel of its own *on the same addresses*, so adding a system or a subset changes no other
count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts, canonical
from sigdask.errors import InputError
from sigdask.lattice import COUNTS, Lattice, Scale, lattice_for
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Form, Ratios
from sigdask.shuffles import Key, stream_key
from sigdask.tallies import Manner

Pair = tuple[int, int]
MOST_SUMMED = 2**62
ENUMERATED_UNITS = 20
"""Discordant units up to which all arrangements are enumerated."""


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """What is exchanged as a whole, in canonical order.

    Attributes
    ----------
    key : tuple of int
        Key of the test set's stream.
    index : int64 array, shape (n_items,)
        Address of each item's unit.
    n_units : int
        Number of units.
    """

    key: Key
    index: NDArray[np.int64]
    n_units: int

    @staticmethod
    def of(counts: Counts, seed: int) -> Units:
        """Group the items of `counts` into units."""
        names = counts.ids if counts.unit == "item" else counts.group(counts.unit)
        if names is None:
            key = stream_key(seed, counts.name, counts.n_items)
            return Units(key, np.arange(counts.n_items), counts.n_items)
        for position, name in enumerate(names):
            if not name:
                raise InputError(f"column {counts.unit!r} is empty at item {position + 1}")
        forms = [canonical(name) for name in names]
        order = sorted(set(forms))
        address = {form: k for k, form in enumerate(order)}
        index = np.array([address[form] for form in forms], dtype=np.int64)
        return Units(stream_key(seed, counts.name, [form.decode() for form in order]), index, len(order))


@dataclass(frozen=True, slots=True)
class PanelMetric:
    """A metric within a panel: the form, which of the panel's fields it takes, its direction."""

    name: str
    form: Form
    fields: tuple[int, ...]
    higher_is_better: bool


@dataclass(frozen=True, eq=False)
class Panel:
    """Systems of one test set, with pairs and metrics that share shuffles; arrays alone.

    Attributes
    ----------
    key : tuple of int
        Key of the stream.
    addresses : int64 array, shape (n_kept,)
        Addresses of the units in which any two systems differ; the others need no swapping.
    values : int array, shape (n_kept, n_systems, n_fields)
        What these units contribute, in the smallest type that holds their differences as well.
    totals : int64 array, shape (n_systems, n_fields)
        Sums over all units, concordant ones included.
    lattices : tuple of Lattice, length n_fields
        What the integers of a field stand for.
    pairs : int64 array, shape (n_pairs, 2)
        Systems compared.
    metrics : tuple of PanelMetric
        Scores compared.
    sizes : int64 array, shape (n_kept,)
        Items in each of these units.
    n_items, n_units : int
        Items and units, concordant ones included.
    enumerated : bool
        Trials are all arrangements of the kept units instead of random ones.
    """

    key: Key
    addresses: NDArray[np.int64]
    values: NDArray[Any]
    totals: NDArray[np.int64]
    lattices: tuple[Lattice, ...]
    pairs: NDArray[np.int64]
    metrics: tuple[PanelMetric, ...]
    sizes: NDArray[np.int64]
    n_items: int
    n_units: int
    enumerated: bool = False

    manner: ClassVar[Manner] = Manner()

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of pairs and metrics."""
        return len(self.pairs), len(self.metrics)

    @property
    def nbytes(self) -> int:
        """Size of its arrays, about."""
        return self.values.nbytes

    def sums(self, metric: int, totals: NDArray[np.int64]) -> NDArray[Any]:
        """Return integer sums, shape (..., n_fields), as the arguments of a metric's score."""
        return as_arguments(totals, self.lattices, self.metrics[metric].fields)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Observed scores, shape (n_systems, n_metrics)."""
        return np.column_stack([m.form.score(self.sums(k, self.totals)) for k, m in enumerate(self.metrics)])

    @cached_property
    def differences(self) -> NDArray[np.float64]:
        """Observed differences of scores, shape (n_pairs, n_metrics).

        Of linear metrics by their numerators: scores of a large size and a small difference cancel.
        """
        found = np.asarray(self.scores[self.pairs[:, 0]] - self.scores[self.pairs[:, 1]])
        for m in np.flatnonzero(self.linear):
            above = self.numerators(int(m))
            found[:, m] = (above[self.pairs[:, 0]] - above[self.pairs[:, 1]]) * self.unit_of(int(m))
        return found

    def numerators(self, metric: int) -> NDArray[np.int64]:
        """Return the observed numerators of a metric of one ratio, shape (n_systems,)."""
        form, fields = self.metrics[metric].form, list(self.metrics[metric].fields)
        assert isinstance(form, Ratios)
        return np.asarray(self.totals[:, fields] @ np.array(form.numerators[0]))

    def unit_of(self, metric: int) -> float:
        """Return what one step of the numerator is worth, where the metric is linear."""
        form, fields = self.metrics[metric].form, list(self.metrics[metric].fields)
        assert isinstance(form, Ratios)
        below = int(self.totals[0, fields] @ np.array(form.denominators[0]))
        above = _scales_of(self.lattices, fields, form.numerators[0])
        return above.pop().step / (below * _scales_of(self.lattices, fields, form.denominators[0]).pop().step)

    @cached_property
    def n_discordant(self) -> NDArray[np.int64]:
        """Units that differ in the metric's own fields, shape (n_pairs, n_metrics)."""
        return self._discordant(np.ones_like(self.sizes))

    @cached_property
    def slack(self) -> NDArray[np.int64]:
        """Lattice steps within which a sum may miss a true tie, shape (n_pairs, n_metrics)."""
        steps = [max((self.lattices[f].slack for f in self.compared(k)), default=0) for k in range(len(self.metrics))]
        if not any(steps):
            return np.zeros(self.shape, np.int64)
        return np.asarray(self._discordant(self.sizes) * np.array(steps))

    def compared(self, metric: int) -> list[int]:
        """Return the fields whose sums are compared: of a linear metric those of the numerator."""
        own = self.metrics[metric]
        if not self.linear[metric]:
            return list(own.fields)
        assert isinstance(own.form, Ratios)
        return [f for f, w in zip(own.fields, own.form.numerators[0], strict=True) if w]

    def _discordant(self, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        found = np.empty(self.shape, np.int64)
        for p, (i, j) in enumerate(self.pairs):
            differs = self.values[:, i] != self.values[:, j]  # (n_kept, n_fields)
            for m, metric in enumerate(self.metrics):
                found[p, m] = weights @ differs[:, list(metric.fields)].any(axis=1)
        return found

    @cached_property
    def linear(self) -> tuple[bool, ...]:
        """Which metrics are one ratio whose denominator no swap can change.

        Their differences are compared in integers, by the numerators alone.
        """
        return tuple(self._is_linear(m) for m in self.metrics)

    def _is_linear(self, metric: PanelMetric) -> bool:
        form = metric.form
        if not isinstance(form, Ratios) or len(form.numerators) != 1:
            return False
        fields = list(metric.fields)
        if any(len(_scales_of(self.lattices, fields, w)) > 1 for w in (form.numerators[0], form.denominators[0])):
            return False
        below = self.values[:, :, fields] @ np.array(form.denominators[0])  # (n_kept, n_systems)
        totals = self.totals[:, fields] @ np.array(form.denominators[0])
        return bool((below == below[:, :1]).all() and (totals == totals[0]).all() and totals[0] > 0)

    def enumeration(self, pair: int, metric: int) -> Panel:
        """Return the panel of all arrangements of one pair under one metric."""
        fields = list(self.metrics[metric].fields)
        both = list(self.pairs[pair])
        values = self.values[:, both][:, :, fields]
        kept = (values[:, 0] != values[:, 1]).any(axis=1)
        own = self.metrics[metric]
        return Panel(
            key=self.key,
            addresses=np.arange(np.count_nonzero(kept)),
            values=values[kept],
            totals=self.totals[both][:, fields],
            lattices=tuple(self.lattices[f] for f in fields),
            pairs=np.array([[0, 1]]),
            metrics=(PanelMetric(own.name, own.form, tuple(range(len(fields))), own.higher_is_better),),
            sizes=self.sizes[kept],
            n_items=self.n_items,
            n_units=self.n_units,
            enumerated=True,
        )

    def part(self, rows: Sequence[int], columns: Sequence[int] | None = None) -> Panel:
        """Return the panel of some of its pairs and metrics, with the systems that they need."""
        columns = range(len(self.metrics)) if columns is None else columns
        if self.shape == (len(rows), len(columns)):
            return self
        used, pairs = np.unique(self.pairs[list(rows)], return_inverse=True)
        return replace(
            self,
            values=np.ascontiguousarray(self.values[:, used]),
            totals=self.totals[used],
            pairs=pairs.reshape(-1, 2),
            metrics=tuple(self.metrics[k] for k in columns),
        )


@dataclass(frozen=True, slots=True, eq=False)
class PlacedPanel:
    """A panel and where its pairs stand among those asked for (`of_pairs[p]` is the p-th pair's place)."""

    panel: Panel
    of_pairs: tuple[int, ...]


def as_arguments(sums: NDArray[Any], lattices: Sequence[Lattice], fields: Sequence[int]) -> NDArray[Any]:
    """Turn integer sums, shape (..., n_fields), into what a form takes: integers, or scores."""
    own = [lattices[f] for f in fields]
    taken = sums[..., list(fields)]
    if all(lattice == COUNTS for lattice in own):
        return taken
    return np.stack([lattice.to_scores(taken[..., k]) for k, lattice in enumerate(own)], axis=-1)


def build(
    counts: Counts,
    units: Units,
    metrics: Sequence[BoundMetric],
    pairs: Sequence[Pair],
    *,
    subset: NDArray[np.bool_] | None = None,
) -> list[PlacedPanel]:
    """Make the panels of one test set, or of a subset of its items.

    Parameters
    ----------
    counts : Counts
        The aligned systems.
    units : Units
        Of the whole test set.
    metrics : sequence of BoundMetric
        Bound to `counts`.
    pairs : sequence of (int, int)
        Indices of the systems compared.
    subset : bool array, shape (n_items,), optional
        The items that count.

    Returns
    -------
    list of PlacedPanel
        One for each set of pairs that have the same items and scale; most often one.
    """
    found = {name: metric.field(name, counts) for metric in metrics for name in metric.fields}
    names, fields = tuple(found), list(found.values())
    scales = _scales(fields, counts)
    by_system = None if counts.present is None else np.ascontiguousarray(counts.present.T)
    groups: dict[Any, list[int]] = {}
    for k, pair in enumerate(pairs):
        groups.setdefault(_sharing(pair, counts, by_system, fields, scales), []).append(k)
    bound = tuple(
        PanelMetric(m.name, m.form, tuple(names.index(f) for f in m.fields), m.higher_is_better) for m in metrics
    )
    placed = []
    for (_, lattices), members in groups.items():
        mask = counts.in_common(pairs[members[0]], subset)
        panel = _panel(units, fields, lattices, [pairs[k] for k in members], bound, mask)
        placed.append(PlacedPanel(panel, tuple(members)))
    return placed


def _scales_of(lattices: Sequence[Lattice], fields: Sequence[int], weights: Sequence[float]) -> set[Lattice]:
    """Return the scales of the fields that have a weight; that of counts where none has."""
    return {lattices[f] for f, w in zip(fields, weights, strict=True) if w} or {COUNTS}


def joint(
    counts: Counts,
    units: Units,
    metric: BoundMetric,
    pairs: Sequence[Pair],
    subset: NDArray[np.bool_] | None = None,
) -> Panel:
    """Make one panel of all systems of some pairs, on the same items and one lattice.

    Parameters
    ----------
    counts, units, metric, pairs, subset
        As in `build`, with one metric; the panel's pairs stand as given.
    """
    systems = sorted({s for pair in pairs for s in pair})
    mask = np.ones(counts.n_items, np.bool_) if subset is None else subset
    if counts.present is not None and not counts.present[mask][:, systems].all():
        missing = next(s for s in systems if not counts.present[mask, s].all())
        raise InputError(
            f"adjust tukey: {counts.systems[missing]!r} lacks items, and relabelling needs every system on every "
            "item; use max-t, or leave the system out"
        )
    fields = [metric.field(name, counts) for name in metric.fields]
    scales = _scales(fields, counts)
    lattices = []
    for f in range(len(fields)):
        own = [scales[f][s] for s in systems] if f in scales else []
        digits = None if any(s.digits is None for s in own) else max((s.digits or 0 for s in own), default=0)
        widest = Scale(digits, max((s.exponent for s in own), default=0))
        lattices.append(lattice_for(widest, widest, counts.n_items) if own else COUNTS)
    bound = PanelMetric(metric.name, metric.form, tuple(range(len(fields))), metric.higher_is_better)
    return _panel(units, fields, lattices, pairs, (bound,), mask)


def _scales(fields: Sequence[NDArray[Any]], counts: Counts) -> dict[int, list[Scale]]:
    scales = {}
    for f, field in enumerate(fields):
        if field.dtype.kind == "f":
            columns = np.broadcast_to(field, (counts.n_items, counts.n_systems)).T
            if counts.present is not None:
                columns = np.where(counts.present.T, columns, 0.0)
            if not np.isfinite(columns).all():
                system, item = np.argwhere(~np.isfinite(columns))[0]
                where = repr(counts.ids[item]) if counts.ids is not None else f"at position {item + 1}"
                raise InputError(
                    f"system {counts.systems[system]!r}, item {where}: {columns[system, item]} is no finite number"
                )
            scales[f] = [Scale.of(column) for column in columns]
    return scales


def _sharing(
    pair: Pair,
    counts: Counts,
    by_system: NDArray[np.bool_] | None,
    fields: Sequence[NDArray[Any]],
    scales: dict[int, list[Scale]],
) -> tuple[bytes, tuple[Lattice, ...]]:
    """Return what pairs must have in common to share a panel: their items (bits, 8 a byte) and their lattices."""
    i, j = pair
    lattices = []
    for f in range(len(fields)):
        if f not in scales:
            lattices.append(COUNTS)
            continue
        digits = [s.digits for s in scales[f] if s.digits is not None]
        lattices.append(lattice_for(scales[f][i], scales[f][j], counts.n_items, digits=max(digits, default=None)))
    both = b"" if by_system is None else np.packbits(by_system[i] & by_system[j]).tobytes()
    return both, tuple(lattices)


def _panel(
    units: Units,
    fields: Sequence[NDArray[Any]],
    lattices: Sequence[Lattice],
    pairs: Sequence[Pair],
    metrics: tuple[PanelMetric, ...],
    mask: NDArray[np.bool_],
) -> Panel:
    systems = sorted({s for pair in pairs for s in pair})
    place = {s: k for k, s in enumerate(systems)}
    where, index = np.unique(units.index[mask], return_inverse=True)
    summed = np.zeros((len(where), len(systems), len(fields)), np.int64)
    for f, k, column in _unit_sums(fields, lattices, systems, mask, index, len(where)):
        summed[:, k, f] = column
    kept = (summed != summed[:, :1]).any(axis=(1, 2))
    return Panel(
        key=units.key,
        addresses=where[kept],
        values=_smallest(summed[kept]),
        totals=summed.sum(axis=0),
        lattices=tuple(lattices),
        pairs=np.array([[place[i], place[j]] for i, j in pairs], dtype=np.int64).reshape(-1, 2),
        metrics=metrics,
        sizes=np.bincount(index, minlength=len(where))[kept],
        n_items=int(np.count_nonzero(mask)),
        n_units=len(where),
    )


def _smallest(values: NDArray[np.int64]) -> NDArray[Any]:
    """Return integers in the smallest type that holds the difference of any two."""
    most = 2 * int(np.abs(values).max(initial=0))
    fits = next((t for t in (np.int8, np.int16, np.int32) if most <= np.iinfo(t).max), np.int64)
    return np.ascontiguousarray(values, fits)


def _within_bounds(column: NDArray[Any]) -> NDArray[np.int64]:
    """Return counts as 64-bit integers, or refuse those whose sums these might not hold."""
    largest = max(int(column.max(initial=0)), -int(column.min(initial=0)))
    if largest * len(column) >= MOST_SUMMED and np.abs(column.astype(np.float64)).sum() >= MOST_SUMMED:
        raise InputError(f"counts as large as {largest:,} in {len(column):,} items: their sum must stay below 2**62")
    return column.astype(np.int64)


def _unit_sums(
    fields: Sequence[NDArray[Any]],
    lattices: Sequence[Lattice],
    systems: Sequence[int],
    mask: NDArray[np.bool_],
    index: NDArray[np.int64],
    n_units: int,
) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Yield (field, system, sums over each unit), integers throughout."""
    single, rows = n_units == len(index), np.flatnonzero(mask)
    for f, field in enumerate(fields):
        for k, system in enumerate(systems):
            column = field[rows, 0 if field.shape[1] == 1 else system]
            integers = lattices[f].integers(column) if column.dtype.kind == "f" else _within_bounds(column)
            sums = np.zeros(n_units, np.int64)
            if single:
                sums[index] = integers
            else:
                np.add.at(sums, index, integers)
            yield f, k, sums
