"""What is compared: pairs x metrics x subsets, and which arrangements are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.exact.rationals import RationalCounts, is_unequal
from sigdask.counts import Counts
from sigdask.counts.grouping import numbered, rows_of
from sigdask.metrics import replicates
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets, Metric
from sigdask.options import Method
from sigdask.randomization.jobs import Job
from sigdask.randomization.panels import ComparedPanel, build, outputs, sums
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sets import build_sets
from sigdask.randomization.panels.sums import Panel, SwapUnits
from sigdask.results.columns.coded import Coded, Subset

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
        Places among `metrics` and `panels`.
    subset : Coded of Subset or None
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
    subset: Coded[Subset | None]
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

    def label(self, k: int) -> str:
        """Return what is compared, for errors."""
        a, b = (self.counts.systems[int(side[k])] for side in (self.a, self.b))
        return f"{a} and {b} by {self.metrics[int(self.metric[k])].name}"


@dataclass(frozen=True, slots=True, eq=False)
class CountPositions:
    """Where one kind of counts of each comparison stands: arrays of shape (n,).

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

    def numbered(self, jobs: Sequence[Job], at: Mapping[Job, Integers]) -> Integers:
        """Return the number of each comparison where each pair and metric of a job has one; -1 where none stand."""
        number = np.full(len(self.job), -1, np.int64)
        order = np.argsort(self.job, kind="stable")
        listed, starts = np.unique(self.job[order], return_index=True)
        for k, own in zip(listed.tolist(), np.split(order, starts[1:]), strict=len(order) > 0):
            if k >= 0:
                number[own] = at[jobs[k]][self.row[own], self.column[own]]
        return number


def nowhere(n: int) -> CountPositions:
    """Return where the counts of comparisons stand that have none."""
    return CountPositions(np.full(n, -1, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class AllCountPositions:
    """Where the counts of comparisons stand: of the first and second run, of all arrangements, of exact p-values."""

    first: CountPositions
    second: CountPositions
    exact: CountPositions
    known: CountPositions

    @staticmethod
    def nowhere(n: int) -> AllCountPositions:
        """Return the slots of comparisons that have no counts."""
        return AllCountPositions(*(nowhere(n) for _ in range(4)))

    @property
    def each(self) -> tuple[CountPositions, ...]:
        """All of them."""
        return self.first, self.second, self.exact, self.known


@dataclass(frozen=True, slots=True, eq=False)
class ResolvedSpec:
    """What the user asked for, resolved.

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
        """The method, with the limit of exact p-values where it was given and decides which of them there are."""
        decides = self.exact_limit is not None and self.method in {"auto", "both"}
        return f"{self.method}:{float(self.exact_limit or 0)!r}" if decides else str(self.method)


def bind(metric: AnyMetric, counts: Counts) -> BoundMetric | BoundSets | BlackBox:
    """Bind a metric to the data, once: what is bound already stays."""
    return replicates.bind(metric, counts) if isinstance(metric, Metric) else metric


def list_comparisons(asked: ResolvedSpec, chosen: Sequence[AnyMetric], by: str | None) -> Comparisons:
    """List every comparison of systems that have an item in common, in the order of subsets, pairs and metrics."""
    metrics = tuple(bind(m, asked.counts) for m in chosen)
    placings = _placings(asked, metrics)
    subsets, masks = zip(*_subsets(asked.counts, by), strict=True)
    panels: list[ComparedPanel] = []
    grids = [_grid(asked, metrics, placings, mask, panels) for mask in masks]
    of_subset = np.repeat(np.arange(len(grids), dtype=np.int32), [len(grid.pair) for grid in grids])
    pair, metric, panel, row, column = (
        np.concatenate([getattr(grid, name) for grid in grids]) for name in ("pair", "metric", "panel", "row", "column")
    )
    n_items, n_units = np.array([p.extent for p in panels], np.int64).reshape(-1, 2)[panel].T
    is_box = np.array([isinstance(m, BlackBox) for m in metrics], np.bool_)[metric]
    n_discordant = _n_discordant(panels, panel, row, column)
    enumerated = _enumerated(asked.method, n_discordant, is_box)
    rational = RationalCounts.nothing(len(pair))
    for own in rows_of(numbered(panel, column)):
        one, at = panels[int(panel[own[0]])], own[enumerated[own] & (n_discordant[own] > 0)]
        for k in at[is_unequal(one, row[at].astype(np.int64), int(column[own[0]]))].tolist():
            systems, bound = asked.pairs[pair[k]].tolist(), metrics[int(metric[k])]
            assert isinstance(one, Panel)
            assert isinstance(bound, BoundMetric)
            mask = masks[int(of_subset[k])]
            rational.add(k, asked.counts, asked.units, bound, systems, mask, one, int(row[k]), int(column[k]))
    return Comparisons(
        counts=asked.counts,
        metrics=metrics,
        panels=tuple(panels),
        masks=masks,
        a=asked.pairs[pair, 0].astype(np.int32),
        b=asked.pairs[pair, 1].astype(np.int32),
        metric=metric,
        subset=Coded(of_subset, subsets),
        panel=panel,
        row=row,
        column=column,
        n_items=n_items,
        n_units=n_units,
        n_discordant=n_discordant,
        sampled=(~enumerated | (asked.method == "both")) & (asked.method != "exact"),
        enumerated=enumerated,
        n_trials=np.where(is_box, asked.trials or outputs.DEFAULT_TRIALS, asked.trials or sums.DEFAULT_TRIALS),
        rational=rational,
    )


def left_out(
    counts: Counts, pairs: NDArray[np.int64], chosen: Sequence[AnyMetric], by: str | None
) -> Iterator[tuple[str | None, str, str, str]]:
    """Yield (subset, a, b, metric) of what is not compared although a system has it: the other has no such item."""
    if counts.present is None and not counts.held and not counts.replicates:
        return
    i, j = pairs.T
    for subset, mask in _subsets(counts, by):
        for metric in (bind(m, counts) for m in chosen):
            own = [counts.in_common([s], mask, metric.held) for s in range(counts.n_systems)]
            has = np.column_stack(own).astype(np.float32)  # (n_items, n_systems)
            common = has.T @ has  # numbers of items, above 0 where there are some
            has_any = common.diagonal() > 0
            for k in np.flatnonzero((common[i, j] == 0) & (has_any[i] | has_any[j])):
                a, b = (counts.systems[s] for s in pairs[k])
                yield subset.value if subset else None, a, b, metric.name


def _subsets(counts: Counts, by: str | None) -> Iterator[tuple[Subset | None, NDArray[np.bool_] | None]]:
    if by is None:
        yield None, None
        return
    column = counts.group(by)
    values = sorted(set(column))
    place = {value: k for k, value in enumerate(values)}
    codes = np.fromiter((place[value] for value in column), np.int64, len(column))
    for k, value in enumerate(values):
        yield Subset(by, value), codes == k


Placing = Callable[[NDArray[np.bool_] | None], Iterator[tuple[ComparedPanel, NDArray[np.int64]]]]
"""The items of a subset -> panels, and the places of their pairs among those asked for."""


def with_every_unit(asked: ResolvedSpec, listed: Comparisons) -> tuple[list[ComparedPanel], Places, Places, Places]:
    """Return panels of the same comparisons that have concordant units as well, and where each stands in them.

    Returns
    -------
    (list of panel, int32 array, int32 array, int32 array)
        Panels, and of each comparison the place of its panel, its row and its column; arrays of shape (n,).
    """
    panels: list[ComparedPanel] = []
    placings = _placings(asked, listed.metrics, every_unit=True)
    grids = [_grid(asked, listed.metrics, placings, mask, panels) for mask in listed.masks]
    panel, row, column = (np.concatenate([getattr(grid, n) for grid in grids]) for n in ("panel", "row", "column"))
    return panels, panel, row, column


def _placings(
    asked: ResolvedSpec, metrics: Sequence[BoundMetric | BoundSets | BlackBox], *, every_unit: bool = False
) -> list[tuple[list[int], Placing]]:
    """Return the metrics that share panels, by their places, and what makes these: of one kind, on the same items."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for k, metric in enumerate(metrics):
        held = b"" if metric.held is None else np.packbits(metric.held).tobytes()
        groups.setdefault((k,) if isinstance(metric, BlackBox) else (type(metric), held), []).append(k)
    return [(own, _placing(asked, [metrics[k] for k in own], every_unit=every_unit)) for own in groups.values()]


def _placing(
    asked: ResolvedSpec, metrics: Sequence[BoundMetric | BoundSets | BlackBox], *, every_unit: bool
) -> Placing:
    counts, units, pairs = asked.counts, asked.units, asked.pairs
    if summed := [m for m in metrics if isinstance(m, BoundMetric)]:
        sharing = build.PanelSharing.of(counts, summed, pairs)
        return lambda mask: (
            (placed.panel, placed.of_pairs) for placed in sharing.panels(units, mask, every_unit=every_unit)
        )
    if of_sets := [m for m in metrics if isinstance(m, BoundSets)]:
        return lambda mask: iter(build_sets(counts, units, of_sets, pairs, subset=mask))
    [box] = [m for m in metrics if isinstance(m, BlackBox)]
    each = list(enumerate(pairs.tolist()))
    return lambda mask: ((OutputsPanel.of(counts, units, box, pair, mask), np.array([k])) for k, pair in each)


@dataclass(frozen=True, slots=True, eq=False)
class _SubsetComparisons:
    """Where the comparisons of one subset stand, in the order of pairs and metrics: arrays of shape (n,)."""

    pair: NDArray[np.int32]
    metric: NDArray[np.int32]
    panel: NDArray[np.int32]
    row: NDArray[np.int32]
    column: NDArray[np.int32]


def _grid(
    asked: ResolvedSpec,
    metrics: Sequence[BoundMetric | BoundSets | BlackBox],
    placings: Sequence[tuple[list[int], Placing]],
    mask: NDArray[np.bool_] | None,
    panels: list[ComparedPanel],
) -> _SubsetComparisons:
    """Place the comparisons of one subset that have items, and add their panels to `panels`."""
    shape = len(asked.pairs), len(metrics)
    panel, row = np.full(shape, -1, np.int32), np.zeros(shape, np.int32)
    column = np.zeros(len(metrics), np.int32)
    for own, placing in placings:
        column[own] = np.arange(len(own))
        for made, of_pairs in placing(mask):
            if made.extent[0]:
                panel[of_pairs[:, None], own] = len(panels)
                row[of_pairs[:, None], own] = np.arange(len(of_pairs))[:, None]
                panels.append(made)
    pair, metric = (places.astype(np.int32) for places in np.nonzero(panel >= 0))
    return _SubsetComparisons(pair, metric, panel[pair, metric], row[pair, metric], column[metric])


def _n_discordant(
    panels: Sequence[ComparedPanel], panel: NDArray[np.int32], row: NDArray[np.int32], column: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the units that differ of each comparison."""
    found = np.zeros(len(panel), np.int64)
    order = np.argsort(panel, kind="stable")
    borders = np.cumsum(np.bincount(panel, minlength=len(panels)))
    for one, here in zip(panels, np.split(order, borders[:-1]), strict=False):  # of no panels one part, of nothing
        found[here] = one.n_discordant[row[here], column[here]]
    return found


def _enumerated(method: Method, n_discordant: NDArray[np.int64], is_box: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Decide which comparisons are counted by all arrangements: where these are few enough."""
    most = np.where(is_box, outputs.ENUMERATED_UNITS, sums.ENUMERATED_UNITS)
    return (n_discordant <= most) & (method != "randomization")
