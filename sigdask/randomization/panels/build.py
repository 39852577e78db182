"""Build panels from counts: pairs are grouped by items and scale, items summed into units as integers.

It also builds the members of families of hypotheses, which are weighted metrics of panels. A hypothesis is a weighted
sum of differences of scores: one pair by one metric on one test set or subset, or the mean of a pair's differences over
several sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric
from sigdask.randomization.panels.digests import hash_column, hash_units
from sigdask.randomization.panels.scored_sums import PanelMetric
from sigdask.randomization.panels.sums import Pair, Panel, SwapUnits
from sigdask.statistics.lattice import INTEGER_LATTICE, Lattice, ScoreScale, choose_lattice, compute_lost_signs
from sigdask.statistics.numbering import group_rows, number_pairs, number_rows

MAX_SUMMED = 2**62

FULL_BYTES, MAX_SMALL = 8, 2**29
"""Bytes of a 64-bit integer, and the number of smaller integers whose sum it holds."""

MAX_NUMBERS = 2**20
"""Maximum number of pairs' scores held at a time."""

MAX_SUM = 1e304
"""Maximum sum of real scores. Differences of sums, and small multiples of them, then fit into float64."""

MIN_SCORE = 1e-302
"""Smallest size of a system's largest score in a field. The steps of smaller scores have too few digits in float64."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexedPanel:
    """A panel, and the indices of its pairs in the list of requested pairs.

    Attributes
    ----------
    panel : Panel
        A panel of some of the pairs.
    pair_indices : int64 array, shape (n_pairs,)
        Index of each of its pairs in that list.
    """

    panel: Panel
    pair_indices: Integers


@dataclass(frozen=True, slots=True, eq=False)
class PanelGroups:
    """Which pairs of a test set share panels, determined once for all its subsets.

    Attributes
    ----------
    counts : Counts
        The aligned systems.
    fields : tuple of array, shape (n_items, n_systems) or (n_items, 1)
        Fields that the metrics sum.
    bound : tuple of BoundMetric
        Metrics on the same items.
    metrics : tuple of PanelMetric
        The same within panels.
    held : bool array, shape (n_items, n_systems), or None
        Whether each system has each item.
    pairs : int64 array, shape (n_pairs, 2)
        Systems compared.
    groups : tuple of (int64 array, tuple of Lattice)
        Pairs that have the same items and lattices.
    """

    counts: Counts
    fields: tuple[NDArray[Any], ...]
    bound: tuple[BoundMetric, ...]
    metrics: tuple[PanelMetric, ...]
    held: Bools | None
    pairs: Integers
    groups: tuple[tuple[Integers, tuple[Lattice, ...]], ...]

    @staticmethod
    def from_metrics(counts: Counts, metrics: Sequence[BoundMetric], pairs: Integers) -> PanelGroups:
        """Group pairs by their items and lattices, for metrics on the same items."""
        field_values = {name: metric.get_field(name, counts) for metric in metrics for name in metric.fields}
        names, fields, held = tuple(field_values), tuple(field_values.values()), metrics[0].held
        scales = _find_scales(fields, _list_rounding(metrics, counts), counts)
        groupings = [_number_by_lattice(current, pairs, counts.n_items) for current in scales.values()]
        lossy = [
            _find_lossy_pairs(fields[f], *grouping, pairs, counts)
            for f, grouping in zip(scales, groupings, strict=True)
        ]
        lossy_numbers = (
            np.where(np.any(lossy, axis=0), np.arange(1, len(pairs) + 1), 0)
            if lossy
            else np.zeros(len(pairs), np.int64)
        )
        numbers = number_rows(number_by_items(counts, pairs, held), *(codes for codes, _ in groupings), lossy_numbers)
        groups = []
        for members in group_rows(numbers):
            first_pair = members[0]
            group_lattices = (
                replace(lattices[int(codes[first_pair])], is_coarse=bool(is_lossy[first_pair]))
                for (codes, lattices), is_lossy in zip(groupings, lossy, strict=True)
            )
            current = dict(zip(scales, group_lattices, strict=True))
            groups.append((members, tuple(current.get(f, INTEGER_LATTICE) for f in range(len(fields)))))
        panel_metrics = tuple(
            PanelMetric(m.name, m.form, tuple(names.index(f) for f in m.fields), m.higher_is_better) for m in metrics
        )
        return PanelGroups(counts, fields, tuple(metrics), panel_metrics, held, pairs, tuple(groups))

    def build(self, units: SwapUnits, subset: Bools | None = None, *, every_unit: bool = False) -> list[IndexedPanel]:
        """Build the panels of all items or a subset; with `every_unit`, include concordant units."""
        placed = []
        for members, lattices in self.groups:
            pairs = self.pairs if len(members) == len(self.pairs) else self.pairs[members]
            mask = self.counts.in_common(pairs[0].tolist(), subset, self.held)
            if not mask.all() and any(metric.restriction for metric in self.bound):
                groups = PanelGroups.from_metrics(self.counts, [m.restrict(mask) for m in self.bound], pairs)
                parts = groups.build(units, mask, every_unit=every_unit)
                placed += [IndexedPanel(part.panel, members[part.pair_indices]) for part in parts]
                continue
            panel = _build_panel(units, self.fields, lattices, pairs, self.metrics, mask, every_unit=every_unit)
            placed.append(IndexedPanel(panel, members))
        return placed


def number_by_items(counts: Counts, pairs: Integers, held: Bools | None = None) -> Integers:
    """Return a group number for each pair, equal for pairs that have the same items in common, shape (n_pairs,)."""
    gaps = [mask for mask in (counts.present, held) if mask is not None]
    if not gaps:
        return np.zeros(len(pairs), np.int64)
    by_system = np.packbits(np.logical_and.reduce(gaps).T, axis=1)  # (n_systems, n_bytes)
    numbering: dict[bytes, int] = {}
    codes = np.array([numbering.setdefault(row.tobytes(), len(numbering)) for row in by_system], np.int64)
    return number_pairs(codes, pairs, lambda i, j: (by_system[i] & by_system[j]).tobytes())


def _number_by_lattice(scales: Sequence[ScoreScale], pairs: Integers, n_items: int) -> tuple[Integers, list[Lattice]]:
    """Return a group number for each pair, equal for pairs with one lattice of a field, and each group's lattice."""
    digits = max((s.digits for s in scales if s.digits is not None), default=None)
    numbering: dict[ScoreScale, int] = {}
    codes = np.array([numbering.setdefault(scale, len(numbering)) for scale in scales], np.int64)
    lattices: dict[Lattice, None] = {}

    def lattice(i: int, j: int) -> Lattice:
        pair_lattice = choose_lattice(scales[i], scales[j], n_items, digits=digits)
        lattices.setdefault(pair_lattice)
        return pair_lattice

    return number_pairs(codes, pairs, lattice), list(lattices)


def _find_lossy_pairs(
    field: NDArray[Any], codes: Integers, lattices: Sequence[Lattice], pairs: Integers, counts: Counts
) -> Bools:
    """Return which pairs have differences in a field that rounding to their lattice would lose, shape (n_pairs,)."""
    is_lossy = np.zeros(len(pairs), np.bool_)
    if field.shape[1] == 1 or not any(lattice.slack for lattice in lattices):
        return is_lossy
    values = np.column_stack([_get_column(field, s, counts) for s in range(counts.n_systems)])
    size = max(MAX_NUMBERS // max(len(values), 1), 1)
    for code, lattice in enumerate(lattices):
        rows = np.flatnonzero((codes == code) & (lattice.slack > 0))
        for start in range(0, len(rows), size):
            batch = rows[start : start + size]
            a, b = (values[:, side] for side in pairs[batch].T)
            is_lossy[batch] = compute_lost_signs(a, b, lattice).any(axis=0)
    return is_lossy


def build_joint_panel(
    counts: Counts, units: SwapUnits, metric: BoundMetric, pairs: Sequence[Pair] | Integers, subset: Bools | None = None
) -> Panel:
    """Build one panel of all systems of some pairs, on the same items and one lattice.

    Parameters
    ----------
    counts : Counts
        The test set.
    units : SwapUnits
        The units whose outputs are swapped.
    metric : BoundMetric
        The score.
    pairs : sequence of (int, int), or int array of shape (n, 2)
        Indices of systems. The panel has the pairs in this order.
    subset : bool array of shape (n_items,), optional
        The items that are compared, by default all.
    """
    systems = np.unique(pairs).tolist()
    lists = {s: counts.in_common([s], subset, metric.held) for s in systems}
    mask = np.logical_or.reduce(list(lists.values()))
    if (missing := next((s for s in systems if (lists[s] != mask).any()), None)) is not None:
        raise InputError(
            f"adjust tukey: {counts.systems[missing]!r} lacks items, and Tukey's test needs every system on every item",
            remedy="use max-t, or leave the system out",
        )
    metric = metric.restrict(mask)
    fields = [metric.get_field(name, counts) for name in metric.fields]
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    scales = _find_scales(fields, _list_rounding([metric], counts), counts)
    lattices = []
    for f in range(len(fields)):
        widest = reduce(ScoreScale.widen, (scales[f][s] for s in systems)) if f in scales else None
        lattices.append(INTEGER_LATTICE if widest is None else choose_lattice(widest, widest, counts.n_items))
    bound = PanelMetric(metric.name, metric.form, tuple(range(len(fields))), metric.higher_is_better)
    return _build_panel(units, fields, lattices, pairs, (bound,), mask)


def _list_rounding(metrics: Sequence[BoundMetric], counts: Counts) -> list[tuple[float, ...]]:
    """Return the rounding error of each system's numbers, for each field that the metrics sum."""
    return list({name: metric.get_rounding(name, counts) for metric in metrics for name in metric.fields}.values())


def _find_scales(
    fields: Sequence[NDArray[Any]], rounding: Sequence[Sequence[float]], counts: Counts
) -> dict[int, list[ScoreScale]]:
    scales = {}
    for f, field in enumerate(fields):
        if field.dtype.kind == "f":
            columns = [_check_scores(_get_column(field, s, counts), s, counts) for s in range(counts.n_systems)]
            scales[f] = [ScoreScale.from_scores(*pair) for pair in zip(columns, rounding[f], strict=True)]
    return scales


def _get_column(field: NDArray[Any], system: int, counts: Counts) -> Floats:
    """Return one system's scores in a field, with 0 for items that the system lacks."""
    column = np.ascontiguousarray(field[:, 0 if field.shape[1] == 1 else system], np.float64)
    return column if counts.present is None else np.where(counts.present[:, system], column, 0.0)


def _check_scores(column: Floats, system: int, counts: Counts) -> Floats:
    """Return a system's scores; raise if one is not finite, or if float64 does not hold their sums and differences."""
    item = int(np.argmax(np.where(np.isfinite(column), np.abs(column), np.inf))) if len(column) else 0
    largest = float(np.abs(column).max(initial=0.0))
    if largest and not MIN_SCORE <= largest <= MAX_SUM / len(column):
        place = f"item {counts.ids[item]!r}" if counts.ids is not None else f"at position {item + 1}"
        raise InputError(
            f"system {counts.systems[system]!r}, {place}: {column[item]:g} is no score that can be compared; the "
            f"largest score must lie between {MIN_SCORE:.0e} and {MAX_SUM:.0e} divided by the number of items",
            remedy="give scores on another scale",
        )
    return column


def _build_panel(
    units: SwapUnits,
    fields: Sequence[NDArray[Any]],
    lattices: Sequence[Lattice],
    pairs: Integers,
    metrics: tuple[PanelMetric, ...],
    mask: Bools,
    *,
    every_unit: bool = False,
) -> Panel:
    systems = np.flatnonzero(np.bincount(pairs.ravel()))
    addresses, index = _find_used_units(units, mask)
    sizes = np.bincount(index, minlength=len(addresses))
    summed, totals, contents = _sum_units(fields, lattices, systems, mask, index, hash_units(addresses, sizes))
    index_of = np.zeros(int(systems[-1]) + 1, np.int64)
    index_of[systems] = np.arange(len(systems))
    is_kept = np.full(len(addresses), every_unit)
    for s in range(1, len(systems)):
        if is_kept.all():
            break
        is_kept |= (summed[:, s] != summed[:, 0]).any(axis=1)
    kept = summed
    if not is_kept.all():
        kept = np.empty((int(np.count_nonzero(is_kept)), *summed.shape[1:]), summed.dtype, order="F")
        for s in range(len(systems)):  # each contiguous
            kept[:, s] = summed[is_kept, s]
    return Panel(
        key=units.key,
        addresses=addresses[is_kept],
        values=kept.astype(_find_smallest_type(kept), order="K", copy=False),
        totals=totals,
        lattices=tuple(lattices),
        pairs=pairs if len(systems) == len(index_of) else index_of[pairs],  # all systems have the places they had
        metrics=metrics,
        sizes=sizes[is_kept],
        n_items=int(np.count_nonzero(mask)),
        n_units=len(addresses),
        contents=contents,
    )


def _sum_units(
    fields: Sequence[NDArray[Any]],
    lattices: Sequence[Lattice],
    systems: Integers,
    mask: Bools,
    index: Integers,
    hashes: NDArray[np.uint64],
) -> tuple[NDArray[Any], Integers, NDArray[np.uint64]]:
    """Return fields summed over each unit's items (each system contiguous), their totals, and content hashes.

    Parameters
    ----------
    hashes : uint64 array, shape (n_units,)
        Hashes of the units from `hash_units`.

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
        moves = _compute_moves(field[rows][:, systems], lattices[f]) if lattices[f].is_coarse else None
        for k, system in enumerate(systems):
            if k and field.shape[1] == 1 and moves is None:  # shared by all systems
                totals[k, f], contents[k, f], summed[:, k, f] = totals[0, f], contents[0, f], summed[:, 0, f]
                continue
            column = field[:, 0 if field.shape[1] == 1 else system][rows]
            integers = lattices[f].to_integers(column) if column.dtype.kind == "f" else _check_counts(column)
            integers = integers if moves is None else integers + moves[:, k]
            sums = _sum_by_unit(integers, index, n_units)
            totals[k, f] = sums.sum(dtype=np.int64)
            contents[k, f] = hash_column(sums, hashes, lattices[f])
            if (needed := _find_smallest_type(sums)) > summed.dtype:
                summed = summed.astype(needed, order="F")
            summed[:, k, f] = sums
    return summed, totals, contents


def _compute_moves(scores: Floats, lattice: Lattice) -> Integers:
    """Return steps to add to both systems' integers so that a coarse lattice loses no difference, (n_items, 2).

    If the lattice makes two different numbers equal, the larger one is moved away from the smaller one.
    """
    a, b = scores.T
    signs = compute_lost_signs(a, b, lattice)
    is_a_larger = np.abs(a) > np.abs(b)
    return np.column_stack([np.where(is_a_larger, signs, 0), np.where(is_a_larger, 0, -signs)])


def _find_smallest_type(values: NDArray[Any]) -> np.dtype[Any]:
    """Return the smallest type that holds the difference of any two of the values, or of one and 0."""
    reach = 2 * max(int(values.max(initial=0)), -int(values.min(initial=0)))
    return np.dtype(next((t for t in (np.int8, np.int16, np.int32) if reach <= np.iinfo(t).max), np.int64))


def _find_used_units(units: SwapUnits, mask: Bools) -> tuple[Integers, Integers]:
    """Return the addresses of the units of some items, and the index of each item's unit among them."""
    unit_index = units.index if mask.all() else units.index[mask]
    has = np.zeros(units.n_units, np.bool_)
    has[unit_index] = True
    addresses = np.flatnonzero(has)
    return addresses, unit_index if len(addresses) == len(has) else (np.cumsum(has) - 1)[unit_index]


def _check_counts(column: NDArray[Any]) -> NDArray[Any]:
    """Return counts; raise if 64-bit integers might not hold their sum."""
    if column.itemsize < FULL_BYTES and len(column) < MAX_SMALL:
        return column
    largest = max(int(column.max(initial=0)), -int(column.min(initial=0)))
    if largest * len(column) >= MAX_SUMMED and np.abs(column.astype(np.float64)).sum() >= MAX_SUMMED:
        raise InputError(
            f"counts as large as {largest:,} in {len(column):,} items: their sum must be below 2**62",
            remedy="give smaller counts",
        )
    return column


def _sum_by_unit(integers: NDArray[Any], index: Integers, n_units: int) -> NDArray[Any]:
    """Return the sums of one system's integers over each unit; the integers if units are items."""
    single = n_units == len(index)
    if single and (index[1:] > index[:-1]).all():
        return integers
    sums = np.zeros(n_units, integers.dtype if single else np.int64)
    if single:
        sums[index] = integers
    else:
        np.add.at(sums, index, integers)
    return sums


SIDES = {"two-sided": 0, "greater": 1, "less": -1}
"""Statistic of a family for each alternative: |T|, T or -T."""


@dataclass(frozen=True, slots=True, eq=False)
class FamilyMember:
    """One metric of one panel, and the weight of its score in the family."""

    panel: Panel
    metric: int
    weight: float = 1.0

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "member", self.panel, self.metric, self.weight


def iter_chunks(order: Integers, size: int) -> Iterator[Integers]:
    """Yield the hypotheses of an order in consecutive parts of at most `size`."""
    for start in range(0, len(order), size):
        yield order[start : start + size]
