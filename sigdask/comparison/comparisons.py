"""What is compared: pairs x metrics x subsets, which arrangements are counted, and the jobs that count them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.metrics import replicates
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets, Metric
from sigdask.options import Method
from sigdask.randomization.panels import ComparedPanel, build, outputs, sums
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sets import PresencePanel, build_sets
from sigdask.randomization.panels.sums import Pair, Panel, Units

AnyMetric = Metric | BoundMetric | BoundSets | BlackBox


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What the user asked for, resolved."""

    counts: Counts
    units: Units
    pairs: list[Pair]
    method: Method
    trials: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One pair and metric: where it stands in its panel, and which arrangements are counted."""

    pair: Pair
    metric: BoundMetric | BoundSets | BlackBox
    subset: dict[str, str] | None
    mask: NDArray[np.bool_] | None
    panel: ComparedPanel
    row: int
    column: int
    n_discordant: int
    sampled: bool
    enumerated: bool
    n_trials: int

    @property
    def n_items(self) -> int:
        """Items that both systems have in the metric."""
        return self.panel.extent[0]

    def label(self, counts: Counts) -> str:
        """Return what is compared, for errors."""
        a, b = (counts.systems[k] for k in self.pair)
        return f"{a} and {b} by {self.metric.name}"


def _subsets(counts: Counts, by: str | None) -> Iterator[tuple[dict[str, str] | None, NDArray[np.bool_] | None]]:
    if by is None:
        yield None, None
        return
    column = np.array(counts.group(by), dtype=object)
    for value in sorted(set(column)):
        yield {"column": by, "value": value}, column == value


def bind(metric: AnyMetric, counts: Counts) -> BoundMetric | BoundSets | BlackBox:
    """Bind a metric to the data, once: what is bound already stays."""
    return replicates.bind(metric, counts) if isinstance(metric, Metric) else metric


def list_comparisons(asked: Asked, chosen: Sequence[AnyMetric], by: str | None) -> Iterator[Comparison]:
    """Yield every comparison of systems that have an item in common, in the order of subsets, pairs and metrics."""
    bound_metrics = [bind(m, asked.counts) for m in chosen]
    groups = _sharing_items([m for m in bound_metrics if not isinstance(m, BlackBox)])
    columns = {id(m): (g, k) for g, group in enumerate(groups) for k, m in enumerate(group)}
    for subset, mask in _subsets(asked.counts, by):
        where = {(g, k): place for g, own in enumerate(groups) for k, place in _places(asked, own, mask)}
        for k, pair in enumerate(asked.pairs):
            for metric in bound_metrics:
                if isinstance(metric, BlackBox):
                    comparison = _black_box(asked, metric, pair, subset, mask)
                else:
                    group, column = columns[id(metric)]
                    comparison = _of_panel(asked, where[group, k], column, metric, pair, subset, mask)
                if comparison.n_items:
                    yield comparison


def left_out(
    counts: Counts, pairs: Sequence[Pair], chosen: Sequence[AnyMetric], by: str | None
) -> Iterator[tuple[str | None, str, str, str]]:
    """Yield (subset, a, b, metric) of what is not compared although a system has it: the other has no such item."""
    if counts.present is None and not counts.held and not counts.replicates:
        return
    for subset, mask in _subsets(counts, by):
        for metric in (bind(m, counts) for m in chosen):
            held = metric.held if isinstance(metric, BoundMetric) else None
            own = [counts.in_common([s], mask, held) for s in range(counts.n_systems)]
            has = np.column_stack(own).astype(np.float32)  # (n_items, n_systems)
            common = has.T @ has  # numbers of items, above 0 where there are some
            for i, j in pairs:
                if not common[i, j] and (common[i, i] or common[j, j]):
                    yield _value(subset), counts.systems[i], counts.systems[j], metric.name


def _value(subset: dict[str, str] | None) -> str | None:
    return subset["value"] if subset else None


def _sharing_items(metrics: Sequence[BoundMetric | BoundSets]) -> list[list[BoundMetric | BoundSets]]:
    """Group the metrics that can share panels: of one kind, on the same items."""
    groups: dict[tuple[bool, bytes], list[BoundMetric | BoundSets]] = {}
    for metric in metrics:
        of_sets = isinstance(metric, BoundSets)
        held = None if isinstance(metric, BoundSets) else metric.held
        key = of_sets, b"" if held is None else np.packbits(held).tobytes()
        groups.setdefault(key, []).append(metric)
    return list(groups.values())


def _places(
    asked: Asked, metrics: Sequence[BoundMetric | BoundSets], mask: NDArray[np.bool_] | None
) -> Iterator[tuple[int, tuple[Panel | PresencePanel, int]]]:
    """Yield each pair with its panel and row there, for metrics that can share panels."""
    summed = [m for m in metrics if isinstance(m, BoundMetric)]
    if summed:
        for placed in build.build(asked.counts, asked.units, summed, asked.pairs, subset=mask):
            yield from ((k, (placed.panel, row)) for row, k in enumerate(placed.of_pairs))
        return
    of_sets = [m for m in metrics if isinstance(m, BoundSets)]
    for panel, members in build_sets(asked.counts, asked.units, of_sets, asked.pairs, subset=mask):
        yield from ((k, (panel, row)) for row, k in enumerate(members))


def _of_panel(
    asked: Asked,
    where: tuple[Panel | PresencePanel, int],
    column: int,
    metric: BoundMetric | BoundSets,
    pair: Pair,
    subset: dict[str, str] | None,
    mask: NDArray[np.bool_] | None,
) -> Comparison:
    panel, row = where
    n_discordant = int(panel.n_discordant[row, column])
    sampled, enumerated = _how(asked, n_discordant, sums.ENUMERATED_UNITS, metric.name)
    return Comparison(
        pair, metric, subset, mask, panel, row, column, n_discordant, sampled, enumerated,
        asked.trials or sums.DEFAULT_TRIALS,
    )  # fmt: skip


def _black_box(
    asked: Asked, metric: BlackBox, pair: Pair, subset: dict[str, str] | None, mask: NDArray[np.bool_] | None
) -> Comparison:
    panel = OutputsPanel.of(asked.counts, asked.units, metric, pair, mask)
    n_discordant = len(panel.discordant)
    sampled, enumerated = _how(asked, n_discordant, outputs.ENUMERATED_UNITS, metric.name)
    return Comparison(
        pair, metric, subset, mask, panel, 0, 0, n_discordant, sampled, enumerated,
        asked.trials or outputs.DEFAULT_TRIALS,
    )  # fmt: skip


def _how(asked: Asked, n_discordant: int, most: int, metric: str) -> tuple[bool, bool]:
    """Decide whether to sample and whether to enumerate."""
    feasible = n_discordant <= most
    if asked.method == "exact" and not feasible:
        raise InputError(
            f"method exact: {n_discordant} discordant units under {metric}, at most {most} are enumerated; "
            "use --method auto, which samples the larger ones"
        )
    enumerated = feasible and asked.method != "randomization"
    return not enumerated or asked.method == "both", enumerated
