"""From counts to panels: pairs grouped by items and scale, items summed into units, all in integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.grouping import numbered, of_pairs, rows_of
from sigdask.counts.lattice import COUNTS, CoarseLattice, Lattice, ScoreScale, lattice_for, lost
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric
from sigdask.randomization.panels.contents import of_column, unit_hashes
from sigdask.randomization.panels.scored_sums import PanelMetric
from sigdask.randomization.panels.sums import Pair, Panel, SwapUnits

MOST_SUMMED = 2**62

MOST_NUMBERS = 2**20
"""Scores of pairs that are looked at together."""

LARGEST_SUM = 1e304
"""Of real scores: differences of sums, and some multiples of them, then stay within float64."""


@dataclass(frozen=True, slots=True, eq=False)
class PlacedPanel:
    """A panel and where its pairs stand among those asked for.

    Attributes
    ----------
    panel : Panel
        What is counted.
    of_pairs : int64 array, shape (n_pairs,)
        The place of each of its pairs.
    """

    panel: Panel
    of_pairs: NDArray[np.int64]


def build(
    counts: Counts,
    units: SwapUnits,
    metrics: Sequence[BoundMetric],
    pairs: Sequence[Pair] | NDArray[np.int64],
    *,
    subset: NDArray[np.bool_] | None = None,
) -> list[PlacedPanel]:
    """Make the panels of one test set, or of a subset of its items.

    Parameters
    ----------
    counts : Counts
        The aligned systems.
    units : SwapUnits
        Of the whole test set.
    metrics : sequence of BoundMetric
        Bound to `counts`, all on the same items (`BoundMetric.held`).
    pairs : sequence of (int, int), or int64 array, shape (n_pairs, 2)
        Indices of the systems compared.
    subset : bool array, shape (n_items,), optional
        The items that count.

    Returns
    -------
    list of PlacedPanel
        One for each set of pairs that have the same items and scale; most often one.
    """
    return PanelSharing.of(counts, metrics, np.asarray(pairs, np.int64).reshape(-1, 2)).panels(units, subset)


@dataclass(frozen=True, slots=True, eq=False)
class PanelSharing:
    """Which pairs of a test set share panels: found once for all its subsets.

    Attributes
    ----------
    counts : Counts
        The aligned systems.
    fields : tuple of array, shape (n_items, n_systems) or (n_items, 1)
        What the metrics sum.
    metrics : tuple of PanelMetric
        On the same items.
    held : bool array, shape (n_items, n_systems), or None
        Which items these are.
    pairs : int64 array, shape (n_pairs, 2)
        Systems compared.
    groups : tuple of (int64 array, tuple of Lattice)
        Pairs that have the same items and lattices.
    """

    counts: Counts
    fields: tuple[NDArray[Any], ...]
    metrics: tuple[PanelMetric, ...]
    held: NDArray[np.bool_] | None
    pairs: NDArray[np.int64]
    groups: tuple[tuple[NDArray[np.int64], tuple[Lattice, ...]], ...]

    @staticmethod
    def of(counts: Counts, metrics: Sequence[BoundMetric], pairs: NDArray[np.int64]) -> PanelSharing:
        """Group pairs by their items and lattices, for metrics on the same items."""
        found = {name: metric.field(name, counts) for metric in metrics for name in metric.fields}
        names, fields, held = tuple(found), tuple(found.values()), metrics[0].held
        scales = _scales(fields, _rounding(metrics, counts), counts)
        of_scales = [_of_scales(own, pairs, counts.n_items) for own in scales.values()]
        lossy = [_lossy(fields[f], *of_scale, pairs, counts) for f, of_scale in zip(scales, of_scales, strict=True)]
        alone = (
            np.where(np.any(lossy, axis=0), np.arange(1, len(pairs) + 1), 0)
            if lossy
            else np.zeros(len(pairs), np.int64)
        )
        numbers = numbered(of_items(counts, pairs, held), *(codes for codes, _ in of_scales), alone)
        groups = []
        for members in rows_of(numbers):
            first = members[0]
            found_here = (
                _coarse(lattices[int(codes[first])]) if is_lossy[first] else lattices[int(codes[first])]
                for (codes, lattices), is_lossy in zip(of_scales, lossy, strict=True)
            )
            own = dict(zip(scales, found_here, strict=True))
            groups.append((members, tuple(own.get(f, COUNTS) for f in range(len(fields)))))
        bound = tuple(
            PanelMetric(m.name, m.form, tuple(names.index(f) for f in m.fields), m.higher_is_better) for m in metrics
        )
        return PanelSharing(counts, fields, bound, held, pairs, tuple(groups))

    def panels(
        self, units: SwapUnits, subset: NDArray[np.bool_] | None = None, *, every_unit: bool = False
    ) -> list[PlacedPanel]:
        """Make the panels of all items, or of a subset of them; with `every_unit`, of concordant units as well."""
        placed = []
        for members, lattices in self.groups:
            pairs = self.pairs[members]
            mask = self.counts.in_common(pairs[0].tolist(), subset, self.held)
            panel = _panel(units, self.fields, lattices, pairs, self.metrics, mask, every_unit=every_unit)
            placed.append(PlacedPanel(panel, members))
        return placed


def of_items(counts: Counts, pairs: NDArray[np.int64], held: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Return numbers of pairs by the items that both systems have, shape (n_pairs,)."""
    gaps = [own for own in (counts.present, held) if own is not None]
    if not gaps:
        return np.zeros(len(pairs), np.int64)
    by_system = np.packbits(np.logical_and.reduce(gaps).T, axis=1)  # (n_systems, n_bytes)
    alike: dict[bytes, int] = {}
    codes = np.array([alike.setdefault(row.tobytes(), len(alike)) for row in by_system], np.int64)
    return of_pairs(codes, pairs, lambda i, j: (by_system[i] & by_system[j]).tobytes())


def _of_scales(
    scales: Sequence[ScoreScale], pairs: NDArray[np.int64], n_items: int
) -> tuple[NDArray[np.int64], list[Lattice]]:
    """Return numbers of pairs by the lattice of one field, and the lattices by their numbers."""
    digits = max((s.digits for s in scales if s.digits is not None), default=None)
    alike: dict[ScoreScale, int] = {}
    codes = np.array([alike.setdefault(scale, len(alike)) for scale in scales], np.int64)
    lattices: dict[Lattice, None] = {}

    def lattice(i: int, j: int) -> Lattice:
        found = lattice_for(scales[i], scales[j], n_items, digits=digits)
        lattices.setdefault(found)
        return found

    return of_pairs(codes, pairs, lattice), list(lattices)


def _lossy(
    field: NDArray[Any], codes: NDArray[np.int64], lattices: Sequence[Lattice], pairs: NDArray[np.int64], counts: Counts
) -> NDArray[np.bool_]:
    """Say which pairs have differences in a field that are smaller than a step of their lattice, shape (n_pairs,)."""
    found = np.zeros(len(pairs), np.bool_)
    if field.shape[1] == 1 or not any(lattice.slack for lattice in lattices):
        return found
    values = np.column_stack([_column(field, s, counts) for s in range(counts.n_systems)])
    size = max(MOST_NUMBERS // max(len(values), 1), 1)
    for code, lattice in enumerate(lattices):
        rows = np.flatnonzero((codes == code) & (lattice.slack > 0))
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            a, b = (values[:, side] for side in pairs[some].T)
            found[some] = lost(a, b, lattice).any(axis=0)
    return found


def _coarse(lattice: Lattice) -> CoarseLattice:
    return CoarseLattice(exponent=lattice.exponent, rounding=getattr(lattice, "rounding", 0))


def joint(
    counts: Counts,
    units: SwapUnits,
    metric: BoundMetric,
    pairs: Sequence[Pair] | NDArray[np.int64],
    subset: NDArray[np.bool_] | None = None,
) -> Panel:
    """Make one panel of all systems of some pairs, on the same items and one lattice.

    Parameters
    ----------
    counts, units, metric, pairs, subset
        As in `build`, with one metric; the panel's pairs stand as given.
    """
    systems = np.unique(pairs).tolist()
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
        widest = ScoreScale(
            digits, max((s.exponent for s in own), default=0), max((s.rounding for s in own), default=0.0)
        )
        lattices.append(lattice_for(widest, widest, counts.n_items) if own else COUNTS)
    bound = PanelMetric(metric.name, metric.form, tuple(range(len(fields))), metric.higher_is_better)
    return _panel(units, fields, lattices, np.asarray(pairs, np.int64).reshape(-1, 2), (bound,), mask)


def _rounding(metrics: Sequence[BoundMetric], counts: Counts) -> list[tuple[float, ...]]:
    """Return how far the numbers of each system may be off, for each field that the metrics sum."""
    return list({name: metric.rounding(name, counts) for metric in metrics for name in metric.fields}.values())


def _scales(
    fields: Sequence[NDArray[Any]], rounding: Sequence[Sequence[float]], counts: Counts
) -> dict[int, list[ScoreScale]]:
    scales = {}
    for f, field in enumerate(fields):
        if field.dtype.kind == "f":
            columns = (_column(field, s, counts) for s in range(counts.n_systems))
            scales[f] = [
                ScoreScale.of(_measurable(column, s, counts), off)
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


def _panel(
    units: SwapUnits,
    fields: Sequence[NDArray[Any]],
    lattices: Sequence[Lattice],
    pairs: NDArray[np.int64],
    metrics: tuple[PanelMetric, ...],
    mask: NDArray[np.bool_],
    *,
    every_unit: bool = False,
) -> Panel:
    systems = np.flatnonzero(np.bincount(pairs.ravel()))
    where, index = _used(units, mask)
    sizes = np.bincount(index, minlength=len(where))
    summed, totals, contents = _summed(fields, lattices, systems, mask, index, unit_hashes(where, sizes))
    places = np.zeros(int(systems[-1]) + 1, np.int64)
    places[systems] = np.arange(len(systems))
    kept = np.full(len(where), every_unit)
    for s in range(1, len(systems)):
        kept |= (summed[:, s] != summed[:, 0]).any(axis=1)
    return Panel(
        key=units.key,
        addresses=where[kept],
        values=_smallest(summed if kept.all() else _rows(summed, kept)),
        totals=totals,
        lattices=tuple(lattices),
        pairs=places[pairs],
        metrics=metrics,
        sizes=sizes[kept],
        n_items=int(np.count_nonzero(mask)),
        n_units=len(where),
        contents=contents,
    )


def _summed(
    fields: Sequence[NDArray[Any]],
    lattices: Sequence[Lattice],
    systems: NDArray[np.int64],
    mask: NDArray[np.bool_],
    index: NDArray[np.int64],
    hashes: NDArray[np.uint64],
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.uint64]]:
    """Return sums over units, each system in one piece, their totals, and what each system has, by content.

    Parameters
    ----------
    hashes : uint64 array, shape (n_units,)
        Of the units, as `unit_hashes` makes them.

    Returns
    -------
    (int array, int64 array, uint64 array)
        Of shapes (n_units, n_systems, n_fields), (n_systems, n_fields) and (n_systems, n_fields).
    """
    rows = slice(None) if mask.all() else np.flatnonzero(mask)
    n_units = len(hashes)
    summed = np.zeros((n_units, len(systems), len(fields)), np.int8, order="F")
    totals = np.empty((len(systems), len(fields)), np.int64)
    contents = np.empty((len(systems), len(fields)), np.uint64)
    for f, field in enumerate(fields):
        moves = _moves(field[rows][:, systems], lattices[f]) if isinstance(lattices[f], CoarseLattice) else None
        for k, system in enumerate(systems):
            column = field[:, 0 if field.shape[1] == 1 else system][rows]
            integers = lattices[f].integers(column) if column.dtype.kind == "f" else _within_bounds(column)
            integers = integers if moves is None else integers + moves[:, k]
            sums = _unit_sums(integers, index, n_units)
            totals[k, f] = sums.sum(dtype=np.int64)
            contents[k, f] = of_column(sums, hashes, lattices[f])
            if (needed := _holding(sums)) > summed.dtype:
                summed = summed.astype(needed, order="F")
            summed[:, k, f] = sums
    return summed, totals, contents


def _moves(both: NDArray[np.float64], lattice: Lattice) -> NDArray[np.int64]:
    """Return the steps that keep small differences of the two systems of a coarse lattice, shape (n_items, 2).

    The larger of two numbers that the lattice does not tell apart is moved away from the smaller one.
    """
    a, b = both.T
    signs = lost(a, b, lattice)
    of_a = np.abs(a) > np.abs(b)
    return np.column_stack([np.where(of_a, signs, 0), np.where(of_a, 0, -signs)])


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


def _used(units: SwapUnits, mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the addresses of the units of some items, and the place of each item's unit among them."""
    own = units.index if mask.all() else units.index[mask]
    has = np.zeros(units.n_units, np.bool_)
    has[own] = True
    where = np.flatnonzero(has)
    return where, own if len(where) == len(has) else (np.cumsum(has) - 1)[own]


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
