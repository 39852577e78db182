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
    both = np.asarray(pairs, np.int64).reshape(-1, 2)
    bound = tuple(
        PanelMetric(m.name, m.form, tuple(names.index(f) for f in m.fields), m.higher_is_better) for m in metrics
    )
    placed = []
    for lattices, members in _groups(both, counts, by_system, fields, scales):
        mask = counts.in_common(pairs[members[0]], subset, held)
        panel = _panel(units, fields, lattices, both[members], bound, mask)
        placed.append(PlacedPanel(panel, tuple(members.tolist())))
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
    return _panel(units, fields, lattices, np.asarray(pairs, np.int64).reshape(-1, 2), (bound,), mask)


def _rounding(metrics: Sequence[BoundMetric], counts: Counts) -> list[tuple[float, ...]]:
    """Return how far the numbers of each system may be off, for each field that the metrics sum."""
    return list({name: metric.rounding(name, counts) for metric in metrics for name in metric.fields}.values())


def _scales(
    fields: Sequence[NDArray[Any]], rounding: Sequence[Sequence[float]], counts: Counts
) -> dict[int, list[Scale]]:
    scales = {}
    for f, field in enumerate(fields):
        if field.dtype.kind == "f":
            columns = (_column(field, s, counts) for s in range(counts.n_systems))
            scales[f] = [
                Scale.of(_measurable(column, s, counts), off)
                for s, (column, off) in enumerate(zip(columns, rounding[f], strict=True))
            ]
    return scales


def _column(field: NDArray[Any], system: int, counts: Counts) -> NDArray[np.float64]:
    """Return one system's scores; 0 where it has no item."""
    column = np.ascontiguousarray(field[:, 0 if field.shape[1] == 1 else system], np.float64)
    return column if counts.present is None else np.where(counts.present[:, system], column, 0.0)


def _measurable(column: NDArray[np.float64], system: int, counts: Counts) -> NDArray[np.float64]:
    """Return a system's scores, or refuse what is no finite number, and numbers whose sum float64 does not hold."""
    if not np.isfinite(column).all():
        item = int(np.argmin(np.isfinite(column)))
        raise InputError(f"{_place(counts, system, item)}: {column[item]} is no finite number")
    with np.errstate(over="ignore"):
        total = np.abs(column).sum()
    if total >= LARGEST_SUM:
        item = int(np.argmax(np.abs(column)))
        raise InputError(
            f"{_place(counts, system, item)}: {column[item]:g} is too large to add up in {counts.n_items:,} "
            f"items; sums must stay below {LARGEST_SUM:.0e}, so give scores on a smaller scale"
        )
    return column


def _place(counts: Counts, system: int, item: int) -> str:
    where = repr(counts.ids[item]) if counts.ids is not None else f"at position {item + 1}"
    return f"system {counts.systems[system]!r}, item {where}"


def _groups(
    pairs: NDArray[np.int64],
    counts: Counts,
    by_system: NDArray[np.bool_] | None,
    fields: Sequence[NDArray[Any]],
    scales: dict[int, list[Scale]],
) -> Iterator[tuple[tuple[Lattice, ...], NDArray[np.int64]]]:
    """Yield the lattices and members of each group of pairs that share a panel, in the order of their first pairs.

    What a pair shares depends on the kinds of its two systems alone, so it is looked up once for each pair of kinds.
    """
    kinds = _kinds(counts.n_systems, by_system, scales)
    n_kinds = int(kinds.max(initial=0)) + 1
    first_of_kind = np.unique(kinds, return_index=True)[1]
    codes, kind_of = np.unique(kinds[pairs] @ np.array([n_kinds, 1]), return_inverse=True)
    groups: dict[Any, int] = {}
    numbers = [
        groups.setdefault(
            _sharing((first_of_kind[i], first_of_kind[j]), counts, by_system, fields, scales), len(groups)
        )
        for i, j in zip(*divmod(codes, n_kinds), strict=True)
    ]
    group_of = np.array(numbers, np.int64)[kind_of.ravel()]
    order = np.argsort(group_of, kind="stable")
    ends = np.flatnonzero(np.diff(group_of[order])) + 1
    members = sorted((own for own in np.split(order, ends) if len(own)), key=lambda own: int(own[0]))
    lattices = [own for _, own in groups]
    for own in members:
        yield lattices[group_of[own[0]]], own


def _kinds(n_systems: int, by_system: NDArray[np.bool_] | None, scales: dict[int, list[Scale]]) -> NDArray[np.int64]:
    """Return numbers that tell the systems apart by their items and scales, shape (n_systems,)."""
    seen: dict[Any, int] = {}
    kinds = np.zeros(n_systems, np.int64)
    for s in range(n_systems):
        items = b"" if by_system is None else np.packbits(by_system[s]).tobytes()
        kinds[s] = seen.setdefault((items, *(own[s] for own in scales.values())), len(seen))
    return kinds


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
    pairs: NDArray[np.int64],
    metrics: tuple[PanelMetric, ...],
    mask: NDArray[np.bool_],
) -> Panel:
    systems, places = np.unique(pairs, return_inverse=True)
    where, index = np.unique(units.index[mask], return_inverse=True)
    sizes = np.bincount(index, minlength=len(where))
    summed, totals = _summed(fields, lattices, systems, mask, index, sizes)
    kept = np.zeros(len(where), np.bool_)
    for s in range(1, len(systems)):
        kept |= (summed[:, s] != summed[:, 0]).any(axis=1)
    return Panel(
        key=units.key,
        addresses=where[kept],
        values=_smallest(summed if kept.all() else _rows(summed, kept)),
        totals=totals,
        lattices=tuple(lattices),
        pairs=places.reshape(-1, 2).astype(np.int64),
        metrics=metrics,
        sizes=sizes[kept],
        n_items=int(np.count_nonzero(mask)),
        n_units=len(where),
    )


def _summed(
    fields: Sequence[NDArray[Any]],
    lattices: Sequence[Lattice],
    systems: NDArray[np.int64],
    mask: NDArray[np.bool_],
    index: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return sums over units, shape (n_units, n_systems, n_fields), each system in one piece, and their totals."""
    rows = slice(None) if mask.all() else np.flatnonzero(mask)
    summed = np.zeros((len(sizes), len(systems), len(fields)), np.int8, order="F")
    totals = np.empty((len(systems), len(fields)), np.int64)
    for f, field in enumerate(fields):
        for k, system in enumerate(systems):
            column = field[:, 0 if field.shape[1] == 1 else system][rows]
            integers = lattices[f].integers(column) if column.dtype.kind == "f" else _within_bounds(column)
            sums = _unit_sums(integers, index, len(sizes))
            totals[k, f] = sums.sum(dtype=np.int64)
            if (needed := _holding(sums)) > summed.dtype:
                summed = summed.astype(needed, order="F")
            summed[:, k, f] = sums
    return summed, totals


def _rows(summed: NDArray[Any], kept: NDArray[np.bool_]) -> NDArray[Any]:
    """Return some units, each system in one piece."""
    found = np.empty((int(np.count_nonzero(kept)), *summed.shape[1:]), summed.dtype, order="F")
    for s in range(summed.shape[1]):
        found[:, s] = summed[kept, s]
    return found


def _holding(values: NDArray[Any]) -> np.dtype[Any]:
    """Return the smallest type that holds the difference of any two of some integers and of those of 0."""
    most = 2 * max(int(values.max(initial=0)), -int(values.min(initial=0)))
    return np.dtype(next((t for t in (np.int8, np.int16, np.int32) if most <= np.iinfo(t).max), np.int64))


def _smallest(values: NDArray[Any]) -> NDArray[Any]:
    """Return integers in the smallest type that holds the difference of any two."""
    return values.astype(_holding(values), order="K", copy=False)


def _within_bounds(column: NDArray[Any]) -> NDArray[Any]:
    """Return counts, or refuse those whose sums 64-bit integers might not hold."""
    largest = max(int(column.max(initial=0)), -int(column.min(initial=0)))
    if largest * len(column) >= MOST_SUMMED and np.abs(column.astype(np.float64)).sum() >= MOST_SUMMED:
        raise InputError(f"counts as large as {largest:,} in {len(column):,} items: their sum must stay below 2**62")
    return column


def _unit_sums(integers: NDArray[Any], index: NDArray[np.int64], n_units: int) -> NDArray[Any]:
    """Return the sums of one system's integers over each unit: themselves, where units are items."""
    single = n_units == len(index)
    if single and (index[1:] > index[:-1]).all():
        return integers
    sums = np.zeros(n_units, integers.dtype if single else np.int64)
    if single:
        sums[index] = integers
    else:
        np.add.at(sums, index, integers)
    return sums
