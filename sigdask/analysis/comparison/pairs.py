"""Comparisons of a test set: what is asked, and the pairs x metrics x subsets as columns.

Real scores of so unequal size that integer steps cannot hold them are enumerated in fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from sigdask import metrics as metric_registry
from sigdask.counts import Counts, check_names
from sigdask.counts.fields import Bools, Integers
from sigdask.counts.texts import check_unique
from sigdask.errors import InputError
from sigdask.interface import spell
from sigdask.metrics import replicates
from sigdask.metrics.base import AnyBound, BlackBox, BoundAgreement, BoundMetric, BoundRanks, BoundSets, Metric
from sigdask.metrics.forms import MEAN
from sigdask.options import (
    RECORDED_OPTIONS,
    Alternative,
    IntervalKind,
    Method,
    Option,
    SelectionOptions,
    find_unused_options,
)
from sigdask.randomization.panels import ComparedPanel, agreement, build, outputs, ranks, sums
from sigdask.randomization.panels.agreement import AgreementPanel, DecisionPanel
from sigdask.randomization.panels.cells import AgreementCells, build_decisions
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.ranks import RankPanel
from sigdask.randomization.panels.sets import build_set_panels
from sigdask.randomization.panels.sums import Panel, SwapUnits
from sigdask.randomization.slabs import Job
from sigdask.results.columns import Subset
from sigdask.statistics.classical import parse_tests
from sigdask.statistics.numbering import group_rows, number_rows
from sigdask.text import suggest_name

MIN_SLACK_RATIO = 2**10
"""Minimum ratio of the smallest difference to a sum's slack. Below it, the lattice cannot tell ties from differences.
"""


def is_unequal(panel: ComparedPanel, rows: Integers, column: int) -> Bools:
    """Return which pairs have units with differences so small that integer steps cannot tell them from ties."""
    if not isinstance(panel, Panel) or not panel.linear[column] or not panel.count_slack_steps(column):
        return np.zeros(len(rows), np.bool_)
    if panel.is_coarse(column):
        return np.ones(len(rows), np.bool_)
    values = panel.compute_numerators(column, panel.values)
    result = np.zeros(len(rows), np.bool_)
    for index, (i, j) in enumerate(panel.pairs[rows].tolist()):
        sizes = np.abs(values[:, i] - values[:, j])
        sizes = sizes[sizes > 0]
        result[index] = bool(len(sizes)) and sizes.min() < MIN_SLACK_RATIO * panel.slack[rows[index], column]
    return result


KnownMetric = Metric | AnyBound
Places = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """The comparisons of one test set: arrays of shape (n,), in the order of subsets, pairs and metrics.

    Attributes
    ----------
    spec : CompareSpec
        What was asked.
    counts : Counts
        The test set, with the swapped unit.
    units : SwapUnits
        The swapped units.
    pairs : int64 array, shape (n_pairs, 2)
        The requested pairs of systems.
    metrics : tuple of BoundMetric, BoundSets or BlackBox
        All metrics.
    panels : tuple of panels
        All panels.
    subsets : tuple of Subset or None
        All subsets; None is all items.
    masks : tuple of bool array, shape (n_items,), or None
        The items of each subset.
    a, b : int32
        Indices in `counts.systems`.
    metric, subset, panel : int32
        Indices in `metrics`, `subsets` and `panels`.
    row, column : int32
        Position of the comparison in its panel.
    n_items, n_units, n_discordant : int64
        Items and units that both systems have under the metric, and units that differ in the metric's fields.
    sampled, enumerated : bool
        Whether random trials, and all arrangements, are counted.
    n_trials : int64
        Number of random trials.
    cells : list of CountedCells
        Their counts, in the order of the jobs; empty until jobs are listed.
    signs : int64, shape (n, 2)
        Wins and losses if the exact p is a binomial tail, otherwise -1.
    """

    spec: CompareSpec
    counts: Counts
    units: SwapUnits
    pairs: Integers
    metrics: tuple[AnyBound, ...]
    panels: tuple[ComparedPanel, ...]
    subsets: tuple[Subset | None, ...]
    masks: tuple[Bools | None, ...]
    a: Places
    b: Places
    metric: Places
    subset: Places
    panel: Places
    row: Places
    column: Places
    n_items: Integers
    n_units: Integers
    n_discordant: Integers
    sampled: Bools
    enumerated: Bools
    n_trials: Integers
    signs: Integers
    cells: list[CountedCells] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.a)

    def describe(self, k: int) -> str:
        """Return the names of the systems and the metric of comparison `k`, for errors."""
        a, b = (self.counts.systems[int(side[k])] for side in (self.a, self.b))
        return f"{a} and {b} by {self.get_metric(k).name}"

    def get_metric(self, k: int) -> AnyBound:
        """Return the metric of comparison `k`."""
        return self.metrics[int(self.metric[k])]

    def get_mask(self, k: int) -> Bools | None:
        """Return the items in the subset of comparison `k`, or None for all."""
        return self.masks[int(self.subset[k])]

    def get_panel(self, k: int) -> ComparedPanel:
        """Return the panel of comparison `k`."""
        return self.panels[int(self.panel[k])]

    def iter_panels(self) -> Iterator[tuple[ComparedPanel, int, Integers]]:
        """Yield each panel and column of it, with the indices of its comparisons."""
        for rows in group_rows(number_rows(self.panel, self.column)):
            yield self.get_panel(rows[0]), int(self.column[rows[0]]), rows


CountKind = Literal["first run", "second run", "all arrangements", "exact p", "family"]
"""Kind of counts. Jobs of families and intervals count several comparisons together."""

RUN_KINDS: tuple[CountKind, ...] = ("first run", "second run")
"""Kind of counts of each run."""


@dataclass(frozen=True, slots=True, eq=False)
class CountedCells:
    """Comparisons that a job counts, and their cells in the job's tally: arrays of shape (n,).

    Attributes
    ----------
    kind : str
        Kind of the counts.
    job : Job
        The job.
    index : int64
        The comparisons.
    row, column : int
        Their rows and columns in the tally.
    """

    kind: CountKind
    job: Job
    index: Integers
    row: NDArray[np.integer[Any]]
    column: NDArray[np.integer[Any]]

    @staticmethod
    def from_whole(job: Job, index: Integers, kind: CountKind = "family") -> CountedCells:
        """Return the cells of comparisons that are counted together, all in the first row and column."""
        zeros = np.broadcast_to(np.int64(0), len(index))
        return CountedCells(kind, job, index, zeros, zeros)

    def look_up(self, numbers: Mapping[Job, Integers]) -> Any:
        """Return the entry of each comparison in the array of its job; a job that counts as a whole has one entry."""
        return numbers[self.job][(0, 0) if self.job.panel.is_whole else (self.row, self.column)]

    def shift(self, n: int) -> CountedCells:
        """Return the cells as part of a longer list of comparisons, after `n` others."""
        return CountedCells(self.kind, self.job, self.index + n, self.row, self.column) if n else self


def join_cells(lists: Iterable[Iterable[CountedCells]], sizes: Iterable[int]) -> Iterator[CountedCells]:
    """Yield the cells of several lists of comparisons, given their sizes, in the list of all comparisons."""
    for cells, n_before in zip(lists, accumulate(sizes, initial=0), strict=False):
        for part in cells:
            yield part.shift(n_before)


def look_up_numbers(cells: Sequence[CountedCells], numbers: Mapping[Job, Integers], n: int) -> Integers:
    """Return the entry of each of `n` comparisons' p in the array `numbers` of its job; -1 without a job."""
    result = np.full(n, -1, np.int64)
    for kind in ("exact p", "all arrangements", "first run"):  # uses the last cell of a comparison
        for part in cells:
            if part.kind == kind:
                result[part.index] = part.look_up(numbers)
    return result


def bind_metric(metric: KnownMetric, counts: Counts) -> AnyBound:
    """Return the metric bound to the data; a metric that is already bound is returned unchanged.

    If systems have replicates, it is the mean of the replicates' scores.
    """
    if not isinstance(metric, Metric):
        return metric
    if counts.replicates and not metric.takes_replicates:
        return replicates.bind_mean(metric, counts)
    bound = metric.bind(counts)
    if isinstance(bound, BoundMetric) and not metric.takes_replicates:
        return replace(bound, held=counts.held_in(bound.fields))
    return bound


def list_comparisons(counts: Counts, spec: CompareSpec) -> Comparisons:
    """Return the comparisons of pairs with common items, in the order of subsets, pairs and metrics, without jobs.

    Raises
    ------
    InputError
        No pair has common items.
    """
    units, pairs = SwapUnits.from_counts(counts, spec.seed), list_pairs(counts, spec.pairs, spec.baseline)
    metrics = tuple(bind_metric(m, counts) for m in spec.find_metrics(counts))
    subsets, masks = zip(*_iter_subsets(counts, spec.by), strict=True)
    panels, (subset, pair, metric, panel, row, column) = _build_panels(counts, spec.seed, units, pairs, metrics, masks)
    n = len(pair)
    if len(pairs) and not n:
        raise InputError(
            f"{counts.name or 'these data'}: no two systems have an item in common, so there is nothing to "
            "compare. Check that all systems use the same ids"
        )
    n_items, n_units = np.array([p.extent for p in panels], np.int64).reshape(-1, 2)[panel].T
    defaults = [_get_defaults(m) for m in metrics]
    most = [spec.family_trials.get(m.name, limit.DEFAULT_TRIALS) for m, limit in zip(metrics, defaults, strict=True)]
    trials = np.minimum([limit.DEFAULT_TRIALS for limit in defaults], most)
    max_units = np.array([limit.ENUMERATED_UNITS for limit in defaults], np.int64)[metric]
    n_discordant, is_enumerable = np.zeros(n, np.int64), np.ones(n, np.bool_)
    for rows in group_rows(number_rows(panel, column)):
        shared, m = panels[int(panel[rows[0]])], int(column[rows[0]])
        n_discordant[rows] = shared.n_discordant[row[rows], m]
        small = rows[n_discordant[rows] <= max_units[rows]]
        is_enumerable[small] = ~is_unequal(shared, row[small].astype(np.int64), m)
    enumerated = (n_discordant <= max_units) & (is_enumerable | (n_discordant == 0)) & (spec.method != "randomization")
    return Comparisons(
        spec=spec,
        counts=counts,
        units=units,
        pairs=pairs,
        metrics=metrics,
        panels=tuple(panels),
        subsets=subsets,
        masks=masks,
        a=pairs[pair, 0].astype(np.int32),
        b=pairs[pair, 1].astype(np.int32),
        metric=metric,
        subset=subset,
        panel=panel,
        row=row,
        column=column,
        n_items=n_items,
        n_units=n_units,
        n_discordant=n_discordant,
        sampled=(~enumerated | (spec.method == "both")) & (spec.method != "exact"),
        enumerated=enumerated,
        n_trials=np.broadcast_to(np.int64(spec.trials), n) if spec.trials else trials[metric],
        signs=np.broadcast_to(np.int64(-1), (n, 2)),
    )


def _get_defaults(metric: AnyBound) -> Any:
    """Return the module with the default trials of a metric, and with the most units that are enumerated."""
    if isinstance(metric, BoundAgreement) and metric.swaps_pairs:  # decisions on pairs of cells are summed
        return sums
    return {BlackBox: outputs, BoundRanks: ranks, BoundAgreement: agreement}.get(type(metric), sums)


def list_left_out(
    counts: Counts, pairs: Integers, metrics: Sequence[KnownMetric], by: str | None
) -> Iterator[tuple[str | None, str, str, str]]:
    """Yield (subset, a, b, metric) of the comparisons that are omitted because the systems have no common items."""
    if counts.present is None and not counts.held and not counts.replicates:
        return
    i, j = pairs.T
    for subset, mask in _iter_subsets(counts, by):
        for metric in (bind_metric(m, counts) for m in metrics):
            items_by_system = [counts.in_common([s], mask, metric.held) for s in range(counts.n_systems)]
            has = np.column_stack(items_by_system).astype(np.float32)  # (n_items, n_systems)
            common = has.T @ has  # numbers of common items, above 0 if there are any
            has_any = common.diagonal() > 0
            for k in np.flatnonzero((common[i, j] == 0) & (has_any[i] | has_any[j])):
                a, b = (counts.systems[s] for s in pairs[k])
                yield subset.value if subset else None, a, b, metric.name


def _iter_subsets(counts: Counts, by: str | None) -> Iterator[tuple[Subset | None, Bools | None]]:
    if by is None:
        yield None, None
        return
    column = counts.group(by)
    if n_empty := int(column.equals("").sum()):
        raise InputError(f"column {by!r} is empty in {n_empty:,} of {counts.n_items:,} items; fill it in every row")
    for value in sorted(set(column)):
        yield Subset(by, value), column.equals(value)


PanelMaker = Callable[[Bools | None], Iterator[tuple[ComparedPanel, Integers]]]
"""Function from the items of a subset to panels, and to the positions of their pairs among the requested pairs."""


def build_full_panels(comparisons: Comparisons) -> tuple[list[ComparedPanel], Places, Places, Places]:
    """Return panels that include units on which systems do not differ, and the positions of comparisons in them.

    Returns
    -------
    (list of panel, int32 array, int32 array, int32 array)
        Panels, and the index of each comparison's panel, its row and its column; arrays of shape (n,).
    """
    c = comparisons
    panels, (*_, panel, row, column) = _build_panels(
        c.counts, c.spec.seed, c.units, c.pairs, c.metrics, c.masks, every_unit=True
    )
    return panels, panel, row, column


def _build_panels(
    counts: Counts, seed: int, units: SwapUnits, pairs: Integers, metrics: Sequence[AnyBound],
    masks: Sequence[Bools | None], *, every_unit: bool = False,
) -> tuple[list[ComparedPanel], list[Places]]:  # fmt: skip
    """Return the panels of all subsets; and subset, pair, metric, panel, row and column of each comparison."""
    panels: list[ComparedPanel] = []
    panel_makers = _group_metrics(counts, seed, units, pairs, metrics, every_unit=every_unit)
    grids = [_place_subset(len(pairs), len(metrics), panel_makers, mask, panels) for mask in masks]
    subset = np.repeat(np.arange(len(grids), dtype=np.int32), [len(grid[0]) for grid in grids])
    return panels, [subset, *map(np.concatenate, zip(*grids, strict=True))]


def _group_metrics(
    counts: Counts, seed: int, units: SwapUnits, pairs: Integers, metrics: Sequence[AnyBound], *, every_unit: bool
) -> list[tuple[list[int], PanelMaker]]:
    """Return groups of metric indices that can share panels, each with the function that builds these panels."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for k, metric in enumerate(metrics):
        held_bits = b"" if metric.held is None else np.packbits(metric.held).tobytes()
        is_single = isinstance(metric, BlackBox | BoundRanks | BoundAgreement)
        groups.setdefault((k,) if is_single else (type(metric), held_bits), []).append(k)
    makers: list[tuple[list[int], PanelMaker]] = []
    for group in groups.values():
        members = [metrics[k] for k in group]
        summed = [metric for metric in members if isinstance(metric, BoundMetric)]
        sharing = build.PanelGroups.from_metrics(counts, summed, pairs) if summed else None
        makers.append((group, partial(_iter_panels, counts, seed, units, pairs, members, sharing, every_unit)))
    return makers


def _iter_panels(
    counts: Counts, seed: int, units: SwapUnits, pairs: Integers, metrics: Sequence[AnyBound],
    sharing: build.PanelGroups | None, every_unit: bool, mask: Bools | None,
) -> Iterator[tuple[ComparedPanel, Integers]]:  # fmt: skip
    """Yield the panels of metrics of one kind on the items of a subset, and the positions of their pairs."""
    metric = metrics[0]
    if sharing is not None:
        for placed in sharing.build(units, mask, every_unit=every_unit):
            yield placed.panel, placed.pair_indices
    elif isinstance(metric, BoundSets):
        yield from build_set_panels(counts, units, cast("list[BoundSets]", metrics), pairs, subset=mask)
    elif isinstance(metric, BoundAgreement):
        items = np.ones(counts.n_items, np.bool_) if mask is None else mask
        cells = AgreementCells.from_counts(counts, metric, items, units.index)
        if not metric.swaps_pairs:
            yield AgreementPanel.from_cells(cells, units, metric, pairs, int(items.sum())), np.arange(len(pairs))
            return
        # decisions on pairs of cells are swapped: these pairs are the items, and the agreement is their mean
        decisions, weights = build_decisions(cells.average() if cells.has_means(metric) else cells, metric)
        of_pairs = Counts(counts.systems, {"decisions": decisions, "pairs": weights}, len(weights), name=counts.name)
        mean = BoundMetric(metric.name, ("decisions", "pairs"), MEAN)
        pair_units = SwapUnits.from_counts(of_pairs, seed)
        sharing = build.PanelGroups.from_metrics(of_pairs, [mean], pairs)
        for placed in sharing.build(pair_units, every_unit=every_unit):
            yield DecisionPanel.from_panel(placed.panel), placed.pair_indices
    else:
        kind: type[OutputsPanel] = RankPanel if isinstance(metric, BoundRanks) else OutputsPanel
        for k, pair in enumerate(pairs.tolist()):
            yield kind.from_counts(counts, units, metric, pair, mask), np.array([k])


def _place_subset(
    n_pairs: int,
    n_metrics: int,
    panel_makers: Sequence[tuple[list[int], PanelMaker]],
    mask: Bools | None,
    panels: list[ComparedPanel],
) -> tuple[Places, Places, Places, Places, Places]:
    """Return pair, metric, panel, row and column of a subset's comparisons with items; append to `panels`."""
    panel, row = np.full((n_pairs, n_metrics), -1, np.int32), np.zeros((n_pairs, n_metrics), np.int32)
    column = np.zeros(n_metrics, np.int32)
    for group, make_panels in panel_makers:
        column[group] = np.arange(len(group))
        for new_panel, pair_indices in make_panels(mask):
            if new_panel.extent[0]:
                panel[pair_indices[:, None], group] = len(panels)
                row[pair_indices[:, None], group] = np.arange(len(pair_indices))[:, None]
                panels.append(new_panel)
    pair, metric = (indices.astype(np.int32) for indices in np.nonzero(panel >= 0))
    return pair, metric, panel[pair, metric], row[pair, metric], column[metric]


AnyMetric = str | KnownMetric


@dataclass(frozen=True, slots=True)
class CompareSpec:
    """The specification of the comparisons of one test set.

    Attributes
    ----------
    metrics : sequence of str, Metric, BoundMetric, BoundSets or BlackBox
        Scores.
    pairs : sequence of (str, str), or None
        Systems to compare; None for all pairs, or all against the baseline.
    baseline : str or None
        The system that all others are compared with.
    unit : str or None
        Column of the unit that is swapped; None for that of the data.
    by : str or None
        Column of subsets.
    method, exact_limit, trials, seed
        As in `compare_sets`.
    family_trials : mapping of str to int
        The most trials that are counted by default, by name of the metric; metrics that are not named have no limit.
    alternative, alpha, second_run, interval, confidence, resamples, margin
        As in `compare_sets`.
    tests : tuple of str
        Names of classical tests, as `statistics.classical.parse_tests` gives them.
    unused : tuple of Option
        Options that have no effect together with the others.
    requested : mapping of str to value
        The options that results record.
    """

    metrics: Sequence[AnyMetric]
    pairs: Sequence[tuple[str, str]] | None = None
    baseline: str | None = None
    unit: str | None = None
    by: str | None = None
    method: Method = "auto"
    exact_limit: float | None = None
    trials: int | None = None
    seed: int = 0
    family_trials: Mapping[str, int] = field(default_factory=dict)
    alternative: Alternative = "two-sided"
    alpha: float = 0.05
    second_run: bool = True
    tests: tuple[str, ...] = ()
    interval: IntervalKind | None = "none"
    confidence: float = 0.95
    resamples: int | None = None
    margin: float | None = None
    unused: tuple[Option, ...] = ()
    requested: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def from_options(options: SelectionOptions, metrics: Sequence[AnyMetric]) -> CompareSpec:
        """Return the specification of comparisons that options describe, under these metrics."""
        values: Mapping[str, Any] = options
        tests = parse_tests(options["tests"])
        same: dict[str, Any] = {name: value for name, value in options.items() if name in CompareSpec.__slots__}
        return CompareSpec(**same | {
            "metrics": metrics,
            "tests": tests,
            "unused": tuple(find_unused_options(options)),
            "requested": {name: values[name] for name in RECORDED_OPTIONS} | {"tests": [*tests]},
        })  # fmt: skip

    def find_metrics(self, counts: Counts) -> list[KnownMetric]:
        """Return the metrics as objects; names are looked up among the built-in metrics."""
        metrics = [metric_registry.find_metric(m, counts.of_one) if isinstance(m, str) else m for m in self.metrics]
        for metric in metrics:
            if not isinstance(metric, (Metric, AnyBound)):
                raise InputError(
                    f"metric {metric!r}: expected a name or a metric; `sigdask.metric` makes metrics of functions"
                )
        check_unique([metric.name for metric in metrics], "metric")
        return metrics


def list_named_pairs(
    names: Sequence[str],
    pairs: Sequence[tuple[str, str]] | None,
    baseline: str | None,
    *,
    noun: str = "system",
    test_set: str = "",
) -> Integers:
    """Return the named pairs as indices, by default all pairs or all with the baseline, shape (n_pairs, 2).

    `noun` and `test_set` are for errors.
    """
    if pairs is not None and baseline is not None:
        raise InputError(f"{spell('pairs')} and {spell('baseline')} cannot be combined", remedy="give one of them")
    for pair in pairs or ():
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(f"pairs: {pair!r} is no pair of {noun}s; expected a list such as [('new', 'old')]")
    index_of = {name: k for k, name in enumerate(names)}
    named = [("pairs", name) for pair in pairs or () for name in pair]
    for option, name in named if baseline is None else [*named, ("baseline", baseline)]:
        if name not in index_of:
            where = f" on test set {test_set!r}" if test_set else ""
            known = f"; {noun}s: {', '.join(names)}"
            raise InputError(f"{option}: no {noun} {name!r}{where}{suggest_name(name, names) or known}")
    if pairs is not None:
        for a, b in pairs:
            if a == b:
                raise InputError(f"pair {a!r}, {b!r}: a {noun} cannot be compared with itself")
        check_unique([", ".join(sorted(pair)) for pair in pairs], "pair")
        return np.array([(index_of[a], index_of[b]) for a, b in pairs], np.int64).reshape(-1, 2)
    if baseline is not None:
        others = np.delete(np.arange(len(names)), index_of[baseline])
        return np.column_stack([others, np.full_like(others, index_of[baseline])])
    return np.column_stack(np.triu_indices(len(names), 1))


def list_pairs(counts: Counts, pairs: Sequence[tuple[str, str]] | None, baseline: str | None) -> Integers:
    """Return the pairs of systems of a test set to compare, as indices, shape (n_pairs, 2)."""
    check_names(counts.systems)
    return list_named_pairs(counts.systems, pairs, baseline, test_set=counts.name)
