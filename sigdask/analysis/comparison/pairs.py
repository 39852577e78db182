"""Comparisons of a test set (pairs x metrics x subsets) as columns, and which of them are enumerated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.exact.rationals import RationalCounts, is_unequal
from sigdask.counts import Counts
from sigdask.counts.grouping import group_rows, number_rows
from sigdask.metrics import replicates
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets, Metric
from sigdask.options import Method
from sigdask.randomization.jobs import Job
from sigdask.randomization.panels import ComparedPanel, build, outputs, sums
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sets import build_set_panels
from sigdask.randomization.panels.sums import Panel, SwapUnits
from sigdask.results.columns.coded import CodedColumn, Subset

AnyMetric = Metric | BoundMetric | BoundSets | BlackBox
Places = NDArray[np.int32]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """The comparisons of one test set: arrays of shape (n,), in the order of subsets, pairs and metrics.

    Attributes
    ----------
    counts : Counts
        The test set, with the unit that is exchanged.
    metrics : tuple of BoundMetric, BoundSets or BlackBox
        All metrics, by their places.
    panels : tuple of panels
        All panels, by their places.
    masks : tuple of bool array, shape (n_items,), or None
        The items of each subset, by its code.
    a, b : int32
        Systems, places in `counts.systems`.
    metric, panel : int32
        Places among `metrics` and `build`.
    subset : CodedColumn of Subset or None
    row, column : int32
        Where the comparison stands in its panel.
    n_items, n_units, n_discordant : int64
        Items and units that both systems have in the metric; units that differ in the metric's own fields.
    sampled, enumerated : bool
        Which arrangements are counted.
    n_trials : int64
        Trials of a sample.
    rational : RationalCounts
        Exact counts of those that are enumerated in fractions.
    """

    counts: Counts
    metrics: tuple[BoundMetric | BoundSets | BlackBox, ...]
    panels: tuple[ComparedPanel, ...]
    masks: tuple[NDArray[np.bool_] | None, ...]
    a: Places
    b: Places
    metric: Places
    subset: CodedColumn[Subset | None]
    panel: Places
    row: Places
    column: Places
    n_items: Integers
    n_units: Integers
    n_discordant: Integers
    sampled: NDArray[np.bool_]
    enumerated: NDArray[np.bool_]
    n_trials: Integers
    rational: RationalCounts

    def __len__(self) -> int:
        return len(self.a)

    def describe(self, k: int) -> str:
        """Return the names of the systems and the metric of comparison `k`, for errors."""
        a, b = (self.counts.systems[int(side[k])] for side in (self.a, self.b))
        return f"{a} and {b} by {self.metrics[int(self.metric[k])].name}"


@dataclass(frozen=True, slots=True, eq=False)
class CountPositions:
    """Positions of one kind of counts of each comparison: arrays of shape (n,).

    Attributes
    ----------
    job : int32
        The place of the job among those of the exchange; -1 where there is none.
    row, column : int32
        In the job's panel.
    """

    job: Places
    row: Places
    column: Places

    def look_up_numbers(self, jobs: Sequence[Job], numbers: Mapping[Job, Integers]) -> Integers:
        """Return each comparison's entry in the array `numbers` of its job; -1 where it has no job."""
        result = np.full(len(self.job), -1, np.int64)
        order = np.argsort(self.job, kind="stable")
        job_indices, starts = np.unique(self.job[order], return_index=True)
        for k, group in zip(job_indices.tolist(), np.split(order, starts[1:]), strict=len(order) > 0):
            if k >= 0:
                result[group] = numbers[jobs[k]][self.row[group], self.column[group]]
        return result


def build_empty_positions(n: int) -> CountPositions:
    """Return the positions of `n` comparisons that have no counts."""
    return CountPositions(np.full(n, -1, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class AllCountPositions:
    """Positions of all kinds of counts: first run, second run, all arrangements, and exact p-values."""

    first: CountPositions
    second: CountPositions
    exact: CountPositions
    exact_p: CountPositions

    @staticmethod
    def empty(n: int) -> AllCountPositions:
        """Return the positions of `n` comparisons that have no counts."""
        return AllCountPositions(*(build_empty_positions(n) for _ in range(4)))

    @property
    def all_kinds(self) -> tuple[CountPositions, ...]:
        """The positions of all four kinds of counts."""
        return self.first, self.second, self.exact, self.exact_p


@dataclass(frozen=True, slots=True, eq=False)
class ResolvedSpec:
    """The specification of a test set's comparisons, with units and pairs resolved.

    Attributes
    ----------
    counts : Counts
        The test set, with its unit.
    units : SwapUnits
        What is exchanged.
    pairs : int64 array, shape (n_pairs, 2)
        Systems compared.
    method, trials, exact_limit
        As in `compare_sets`.
    """

    counts: Counts
    units: SwapUnits
    pairs: NDArray[np.int64]
    method: Method
    trials: int | None
    exact_limit: float | None = None

    @property
    def method_and_limit(self) -> str:
        """The method as text, with the limit of exact p-values if it affects which comparisons have them."""
        decides = self.exact_limit is not None and self.method in {"auto", "both"}
        return f"{self.method}:{float(self.exact_limit or 0)!r}" if decides else str(self.method)


def bind_metric(metric: AnyMetric, counts: Counts) -> BoundMetric | BoundSets | BlackBox:
    """Return the metric bound to the data; a metric that is already bound is returned unchanged."""
    return replicates.bind_metric(metric, counts) if isinstance(metric, Metric) else metric


def list_comparisons(spec: ResolvedSpec, unbound: Sequence[AnyMetric], by: str | None) -> Comparisons:
    """Return all comparisons of pairs with common items, in the order of subsets, pairs and metrics."""
    metrics = tuple(bind_metric(m, spec.counts) for m in unbound)
    panel_makers = _group_metrics(spec, metrics)
    subsets, masks = zip(*_iter_subsets(spec.counts, by), strict=True)
    panels: list[ComparedPanel] = []
    grids = [_place_subset(spec, metrics, panel_makers, mask, panels) for mask in masks]
    subset_codes = np.repeat(np.arange(len(grids), dtype=np.int32), [len(grid.pair) for grid in grids])
    pair, metric, panel, row, column = (
        np.concatenate([getattr(grid, name) for grid in grids]) for name in ("pair", "metric", "panel", "row", "column")
    )
    n_items, n_units = np.array([p.extent for p in panels], np.int64).reshape(-1, 2)[panel].T
    is_box = np.array([isinstance(m, BlackBox) for m in metrics], np.bool_)[metric]
    n_discordant = _count_discordant(panels, panel, row, column)
    enumerated = _choose_enumerated(spec.method, n_discordant, is_box)
    rational = RationalCounts.empty(len(pair))
    for group in group_rows(number_rows(panel, column)):
        shared_panel, candidates = panels[int(panel[group[0]])], group[enumerated[group] & (n_discordant[group] > 0)]
        for k in candidates[is_unequal(shared_panel, row[candidates].astype(np.int64), int(column[group[0]]))].tolist():
            systems, bound = spec.pairs[pair[k]].tolist(), metrics[int(metric[k])]
            assert isinstance(shared_panel, Panel)
            assert isinstance(bound, BoundMetric)
            mask = masks[int(subset_codes[k])]
            rational.add(k, spec.counts, spec.units, bound, systems, mask, shared_panel, int(row[k]), int(column[k]))
    return Comparisons(
        counts=spec.counts,
        metrics=metrics,
        panels=tuple(panels),
        masks=masks,
        a=spec.pairs[pair, 0].astype(np.int32),
        b=spec.pairs[pair, 1].astype(np.int32),
        metric=metric,
        subset=CodedColumn(subset_codes, subsets),
        panel=panel,
        row=row,
        column=column,
        n_items=n_items,
        n_units=n_units,
        n_discordant=n_discordant,
        sampled=(~enumerated | (spec.method == "both")) & (spec.method != "exact"),
        enumerated=enumerated,
        n_trials=np.where(is_box, spec.trials or outputs.DEFAULT_TRIALS, spec.trials or sums.DEFAULT_TRIALS),
        rational=rational,
    )


def list_left_out(
    counts: Counts, pairs: NDArray[np.int64], metrics: Sequence[AnyMetric], by: str | None
) -> Iterator[tuple[str | None, str, str, str]]:
    """Yield (subset, a, b, metric) of the comparisons that are omitted because the systems have no common items."""
    if counts.present is None and not counts.held and not counts.replicates:
        return
    i, j = pairs.T
    for subset, mask in _iter_subsets(counts, by):
        for metric in (bind_metric(m, counts) for m in metrics):
            items_by_system = [counts.in_common([s], mask, metric.held) for s in range(counts.n_systems)]
            has = np.column_stack(items_by_system).astype(np.float32)  # (n_items, n_systems)
            common = has.T @ has  # numbers of items, above 0 where there are some
            has_any = common.diagonal() > 0
            for k in np.flatnonzero((common[i, j] == 0) & (has_any[i] | has_any[j])):
                a, b = (counts.systems[s] for s in pairs[k])
                yield subset.value if subset else None, a, b, metric.name


def _iter_subsets(counts: Counts, by: str | None) -> Iterator[tuple[Subset | None, NDArray[np.bool_] | None]]:
    if by is None:
        yield None, None
        return
    column = counts.group(by)
    values = sorted(set(column))
    code_of = {value: k for k, value in enumerate(values)}
    codes = np.fromiter((code_of[value] for value in column), np.int64, len(column))
    for k, value in enumerate(values):
        yield Subset(by, value), codes == k


PanelMaker = Callable[[NDArray[np.bool_] | None], Iterator[tuple[ComparedPanel, NDArray[np.int64]]]]
"""The items of a subset -> panels, and the places of their pairs among those asked for."""


def build_full_panels(
    spec: ResolvedSpec, comparisons: Comparisons
) -> tuple[list[ComparedPanel], Places, Places, Places]:
    """Return panels that include units on which systems do not differ, and the positions of comparisons in them.

    Returns
    -------
    (list of panel, int32 array, int32 array, int32 array)
        Panels, and of each comparison the place of its panel, its row and its column; arrays of shape (n,).
    """
    panels: list[ComparedPanel] = []
    panel_makers = _group_metrics(spec, comparisons.metrics, every_unit=True)
    grids = [_place_subset(spec, comparisons.metrics, panel_makers, mask, panels) for mask in comparisons.masks]
    panel, row, column = (np.concatenate([getattr(grid, n) for grid in grids]) for n in ("panel", "row", "column"))
    return panels, panel, row, column


def _group_metrics(
    spec: ResolvedSpec, metrics: Sequence[BoundMetric | BoundSets | BlackBox], *, every_unit: bool = False
) -> list[tuple[list[int], PanelMaker]]:
    """Return groups of metric indices that can share panels, each with the function that builds these panels."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for k, metric in enumerate(metrics):
        held_bits = b"" if metric.held is None else np.packbits(metric.held).tobytes()
        groups.setdefault((k,) if isinstance(metric, BlackBox) else (type(metric), held_bits), []).append(k)
    return [
        (group, _choose_panel_maker(spec, [metrics[k] for k in group], every_unit=every_unit))
        for group in groups.values()
    ]


def _choose_panel_maker(
    spec: ResolvedSpec, metrics: Sequence[BoundMetric | BoundSets | BlackBox], *, every_unit: bool
) -> PanelMaker:
    counts, units, pairs = spec.counts, spec.units, spec.pairs
    if summed := [m for m in metrics if isinstance(m, BoundMetric)]:
        sharing = build.PanelGroups.from_metrics(counts, summed, pairs)
        return lambda mask: (
            (placed.panel, placed.pair_indices) for placed in sharing.build(units, mask, every_unit=every_unit)
        )
    if set_metrics := [m for m in metrics if isinstance(m, BoundSets)]:
        return lambda mask: iter(build_set_panels(counts, units, set_metrics, pairs, subset=mask))
    [box] = [m for m in metrics if isinstance(m, BlackBox)]
    numbered_pairs = list(enumerate(pairs.tolist()))
    return lambda mask: (
        (OutputsPanel.from_counts(counts, units, box, pair, mask), np.array([k])) for k, pair in numbered_pairs
    )


@dataclass(frozen=True, slots=True, eq=False)
class _SubsetComparisons:
    """Positions of the comparisons of one subset, ordered by pair and metric: arrays of shape (n,)."""

    pair: NDArray[np.int32]
    metric: NDArray[np.int32]
    panel: NDArray[np.int32]
    row: NDArray[np.int32]
    column: NDArray[np.int32]


def _place_subset(
    spec: ResolvedSpec,
    metrics: Sequence[BoundMetric | BoundSets | BlackBox],
    panel_makers: Sequence[tuple[list[int], PanelMaker]],
    mask: NDArray[np.bool_] | None,
    panels: list[ComparedPanel],
) -> _SubsetComparisons:
    """Return the positions of one subset's comparisons that have items, and add their panels to `panels`."""
    shape = len(spec.pairs), len(metrics)
    panel, row = np.full(shape, -1, np.int32), np.zeros(shape, np.int32)
    column = np.zeros(len(metrics), np.int32)
    for group, make_panels in panel_makers:
        column[group] = np.arange(len(group))
        for new_panel, pair_indices in make_panels(mask):
            if new_panel.extent[0]:
                panel[pair_indices[:, None], group] = len(panels)
                row[pair_indices[:, None], group] = np.arange(len(pair_indices))[:, None]
                panels.append(new_panel)
    pair, metric = (indices.astype(np.int32) for indices in np.nonzero(panel >= 0))
    return _SubsetComparisons(pair, metric, panel[pair, metric], row[pair, metric], column[metric])


def _count_discordant(
    panels: Sequence[ComparedPanel], panel: NDArray[np.int32], row: NDArray[np.int32], column: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the number of units that differ in each comparison."""
    n_units = np.zeros(len(panel), np.int64)
    order = np.argsort(panel, kind="stable")
    borders = np.cumsum(np.bincount(panel, minlength=len(panels)))
    for compared, rows in zip(panels, np.split(order, borders[:-1]), strict=False):  # of no panels one part, of nothing
        n_units[rows] = compared.n_discordant[row[rows], column[rows]]
    return n_units


def _choose_enumerated(method: Method, n_discordant: NDArray[np.int64], is_box: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which comparisons are enumerated: those with few arrangements, unless the method is randomization."""
    max_units = np.where(is_box, outputs.ENUMERATED_UNITS, sums.ENUMERATED_UNITS)
    return (n_discordant <= max_units) & (method != "randomization")
