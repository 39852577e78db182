"""From counts to panels: pairs grouped by items and scale, items summed into units, all in integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.lattice import COUNTS, Lattice, Scale, lattice_for
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric
from sigdask.randomization.panels.scored_sums import PanelMetric
from sigdask.randomization.panels.sums import Pair, Panel, Units

MOST_SUMMED = 2**62
LARGEST_SUM = 1e304
"""Of real scores: differences of sums, and some multiples of them, then stay within float64."""


@dataclass(frozen=True, slots=True, eq=False)
class PlacedPanel:
    """A panel and where its pairs stand among those asked for (`of_pairs[p]` is the p-th pair's place)."""

    panel: Panel
    of_pairs: tuple[int, ...]


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
        Bound to `counts`, all on the same items (`BoundMetric.held`).
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
    scales = _scales(fields, _rounding(metrics, counts), counts)
    held = metrics[0].held
    gaps = [own for own in (counts.present, held) if own is not None]
    by_system = np.ascontiguousarray(np.logical_and.reduce(gaps).T) if gaps else None
    groups: dict[Any, list[int]] = {}
    for k, pair in enumerate(pairs):
        groups.setdefault(_sharing(pair, counts, by_system, fields, scales), []).append(k)
    bound = tuple(
        PanelMetric(m.name, m.form, tuple(names.index(f) for f in m.fields), m.higher_is_better) for m in metrics
    )
    placed = []
    for (_, lattices), members in groups.items():
        mask = counts.in_common(pairs[members[0]], subset, held)
        panel = _panel(units, fields, lattices, [pairs[k] for k in members], bound, mask)
        placed.append(PlacedPanel(panel, tuple(members)))
    return placed


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
    lists = {s: counts.in_common([s], subset, metric.held) for s in systems}
    mask = np.logical_or.reduce(list(lists.values()))
    if (missing := next((s for s in systems if (lists[s] != mask).any()), None)) is not None:
        raise InputError(
            f"adjust tukey: {counts.systems[missing]!r} lacks items, and relabelling needs every system on every "
            "item; use max-t, or leave the system out"
        )
    fields = [metric.field(name, counts) for name in metric.fields]
    scales = _scales(fields, _rounding([metric], counts), counts)
    lattices = []
    for f in range(len(fields)):
        own = [scales[f][s] for s in systems] if f in scales else []
        digits = None if any(s.digits is None for s in own) else max((s.digits or 0 for s in own), default=0)
        widest = Scale(digits, max((s.exponent for s in own), default=0), max((s.rounding for s in own), default=0.0))
        lattices.append(lattice_for(widest, widest, counts.n_items) if own else COUNTS)
    bound = PanelMetric(metric.name, metric.form, tuple(range(len(fields))), metric.higher_is_better)
    return _panel(units, fields, lattices, pairs, (bound,), mask)


def _rounding(metrics: Sequence[BoundMetric], counts: Counts) -> list[tuple[float, ...]]:
    """Return how far the numbers of each system may be off, for each field that the metrics sum."""
    return list({name: metric.rounding(name, counts) for metric in metrics for name in metric.fields}.values())


def _scales(
    fields: Sequence[NDArray[Any]], rounding: Sequence[Sequence[float]], counts: Counts
) -> dict[int, list[Scale]]:
    scales = {}
    for f, field in enumerate(fields):
        if field.dtype.kind == "f":
            columns = np.broadcast_to(field, (counts.n_items, counts.n_systems)).T
            if counts.present is not None:
                columns = np.where(counts.present.T, columns, 0.0)
            _refuse_immeasurable(columns, counts)
            scales[f] = [Scale.of(column, off) for column, off in zip(columns, rounding[f], strict=True)]
    return scales


def _refuse_immeasurable(columns: NDArray[np.float64], counts: Counts) -> None:
    """Refuse what is no finite number, and numbers whose sums float64 does not hold; shape (n_systems, n_items)."""
    if not np.isfinite(columns).all():
        system, item = np.argwhere(~np.isfinite(columns))[0]
        raise InputError(f"{_place(counts, system, item)}: {columns[system, item]} is no finite number")
    with np.errstate(over="ignore"):
        sums = np.abs(columns).sum(axis=1)
    if (sums >= LARGEST_SUM).any():
        system = int(np.argmax(sums))
        item = int(np.argmax(np.abs(columns[system])))
        raise InputError(
            f"{_place(counts, system, item)}: {columns[system, item]:g} is too large to add up in {counts.n_items:,} "
            f"items; sums must stay below {LARGEST_SUM:.0e}, so give scores on a smaller scale"
        )


def _place(counts: Counts, system: int, item: int) -> str:
    where = repr(counts.ids[item]) if counts.ids is not None else f"at position {item + 1}"
    return f"system {counts.systems[system]!r}, item {where}"


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
    where, index = _used(units, mask)
    summed = np.zeros((len(where), len(systems), len(fields)), np.int8)
    kept = np.zeros(len(where), np.bool_)
    totals = np.zeros((len(systems), len(fields)), np.int64)
    for f, k, column in _unit_sums(fields, lattices, systems, mask, index, len(where)):
        summed = summed.astype(
            np.promote_types(summed.dtype, np.min_scalar_type(-1 - int(np.abs(column).max(initial=0)))), copy=False
        )
        summed[:, k, f] = column
        kept |= column != summed[:, 0, f]
        totals[k, f] = column.sum()
    return Panel(
        key=units.key,
        addresses=where[kept],
        values=_smallest(summed if kept.all() else summed[kept]),
        totals=totals,
        lattices=tuple(lattices),
        pairs=np.array([[place[i], place[j]] for i, j in pairs], dtype=np.int64).reshape(-1, 2),
        metrics=metrics,
        sizes=np.bincount(index, minlength=len(where))[kept],
        n_items=int(np.count_nonzero(mask)),
        n_units=len(where),
    )


def _used(units: Units, mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the addresses of the units of some items, and the place of each item's unit among them."""
    own = units.index if mask.all() else units.index[mask]
    has = np.zeros(units.n_units, np.bool_)
    has[own] = True
    where = np.flatnonzero(has)
    return where, own if len(where) == len(has) else (np.cumsum(has) - 1)[own]


def _smallest(values: NDArray[Any]) -> NDArray[Any]:
    """Return integers in the smallest type that holds the difference of any two."""
    most = 2 * max(int(values.max(initial=0)), -int(values.min(initial=0)))
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
    single, rows = n_units == len(index), slice(None) if mask.all() else np.flatnonzero(mask)
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
