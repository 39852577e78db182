"""The analysis of one test set: its comparisons, beside them those with other units, and their results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sigdask.comparison.comparisons import Asked, Comparison, left_out, list_comparisons
from sigdask.comparison.found.result import Beside, Result
from sigdask.comparison.jobs import Slots, list_jobs
from sigdask.comparison.nesting import Nesting, highest
from sigdask.comparison.notes import Note
from sigdask.comparison.request import Wanted, pairs_of
from sigdask.comparison.summary import Failed, Inference
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.options import Alternative
from sigdask.randomization.jobs import Cell, Job, Tallies
from sigdask.randomization.panels.sums import Units
from sigdask.statistics.dependence import Dependence, naive_size
from sigdask.writing import listed

SHOWN = 5
"""Comparisons left out that are named."""

FEWEST_GROUPS = 6
"""Groups from which exchanging them can reach 0.05, two-sided."""


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """The comparisons by exchange of one unit, their jobs, and where each finds its counts."""

    asked: Asked
    comparisons: list[Comparison]
    jobs: list[Job]
    slots: list[Slots]

    @staticmethod
    def of(counts: Counts, wanted: Wanted, *, second_run: bool) -> Exchange:
        """List what is compared and counted."""
        asked = Asked(
            counts=counts,
            units=Units.of(counts, wanted.seed),
            pairs=pairs_of(counts, wanted.pairs, wanted.baseline),
            method=wanted.method,
            trials=wanted.trials,
        )
        comparisons = list(list_comparisons(asked, wanted.found(counts), wanted.by))
        if asked.pairs and not comparisons:
            raise InputError(
                f"{counts.name or 'these data'}: no two systems have an item in common, so there is nothing to compare"
            )
        return Exchange(asked, comparisons, *list_jobs(counts, comparisons, second_run=second_run))


@dataclass(frozen=True, eq=False)
class Analysis:
    """All that is asked of one test set.

    Attributes
    ----------
    main : Exchange
        With the unit asked for.
    dependences : tuple of tuple of Dependence
        Of each comparison, within each coarser column.
    others : tuple of Exchange
        With other units, for contrast.
    left_out : tuple of (str or None, str, str, str)
        Subset, systems and metric of what is not compared, as one of the systems has no item of it.
    """

    main: Exchange
    dependences: tuple[tuple[Dependence, ...], ...]
    others: tuple[Exchange, ...]
    left_out: tuple[tuple[str | None, str, str, str], ...] = ()

    @staticmethod
    def of(counts: Counts, wanted: Wanted, *, second_run: bool) -> Analysis:
        """Resolve what is asked of `counts`."""
        unit = highest(counts, wanted.levels) if wanted.levels else counts.unit
        grouped = counts.with_unit(unit)
        wanted = wanted.bind(grouped)
        main = Exchange.of(grouped, wanted, second_run=second_run)
        nesting = Nesting(grouped, main.asked.units)
        dependences = tuple(nesting.dependences(c) for c in main.comparisons)
        finer = [level for level in dict.fromkeys(("item", *wanted.levels)) if level != unit]
        levels = (
            [*(finer if unit != "item" else ()), *clear_columns(dependences, FEWEST_GROUPS)] if wanted.beside else []
        )
        others = tuple(Exchange.of(counts.with_unit(level), wanted, second_run=False) for level in levels)
        without = left_out(grouped, main.asked.pairs, wanted.found(grouped), wanted.by)
        return Analysis(main, dependences, others, tuple(without))

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Of all units, the one asked for first."""
        return self.main, *self.others

    @property
    def jobs(self) -> list[Job]:
        """What must be counted."""
        return [job for exchange in self.exchanges for job in exchange.jobs]

    @property
    def asking(self) -> list[tuple[Asked, Comparison]]:
        """The comparisons, each with what was asked."""
        return [(self.main.asked, c) for c in self.main.comparisons]

    @property
    def cells(self) -> list[tuple[Cell, ...]]:
        """Where the counts of each comparison stand, those that its p is of first."""
        of_each = zip(*(exchange.slots for exchange in self.exchanges), strict=True)
        return [tuple(cell for slots in own for cell in slots.cells) for own in of_each]

    def results(
        self,
        tallies: Tallies,
        alternative: Alternative,
        alpha: float,
        n_sampled: int,
        failed: Failed | None = None,
    ) -> list[Result]:
        """Judge the counts of `jobs`."""
        judged = [_judged(exchange, tallies, alternative, alpha, n_sampled, failed) for exchange in self.exchanges]
        besides = list(zip(*([_beside(r) for r in results] for results in judged[1:]), strict=True))
        return [
            replace(r, dependence=d, beside=besides[k] if besides else ())
            for k, (r, d) in enumerate(zip(judged[0], self.dependences, strict=True))
        ]

    def one_sided(self, tallies: Tallies) -> list[tuple[float, float]]:
        """Return (p greater, p less) of each comparison."""
        by_side = [Inference(self.main.asked, side, 0.5, 1) for side in ("greater", "less")]
        return [
            (by_side[0].p_value(c, slots, tallies), by_side[1].p_value(c, slots, tallies))
            for c, slots in zip(self.main.comparisons, self.main.slots, strict=True)
        ]

    @cached_property
    def notes(self) -> list[Note]:
        """Say what could not be compared, and where differences hang together within groups not exchanged whole."""
        unit = self.main.asked.counts.unit
        notes = []
        if self.left_out:
            names = [
                f"{a} and {b} by {metric}{f' on {subset}' if subset is not None else ''}"
                for subset, a, b, metric in self.left_out
            ]
            text = f"not compared, as the two have no item in common: {listed(names, SHOWN, '; ')}"
            notes.append(Note("missing", text, {"n_comparisons": len(self.left_out)}))
        for column in clear_columns(self.dependences):
            clear = [d for d in _of_column(self.dependences, column) if d.is_clear(_n_tested(self.dependences))]
            worst = max(clear, key=lambda d: d.design_effect)
            remedy = (
                f"use --unit {column}"
                if worst.n_groups >= FEWEST_GROUPS
                else f"{worst.n_groups} groups are too few to exchange, --by {column} judges each alone"
            )
            text = (
                f"differences hang together within {column} in {len(clear):,} of {len(self.dependences):,} comparisons "
                f"(ICC up to {worst.icc:.2f}, design effect {worst.design_effect:.1f}: a test at 0.05 would reject "
                f"about {naive_size(worst.design_effect):.0%} of true hypotheses): swapping by {unit} makes p too "
                f"small for other values of {column} than these; {remedy}"
            )
            of_worst = {"n_groups": worst.n_groups, "icc": worst.icc, "design_effect": worst.design_effect}
            shares = {"n_comparisons": len(clear), "of": len(self.dependences)}
            notes.append(Note("dependence", text, {"column": column, "unit": unit, **of_worst, **shares}))
        return notes


def _judged(
    exchange: Exchange, tallies: Tallies, alternative: Alternative, alpha: float, n_sampled: int, failed: Failed | None
) -> list[Result]:
    inference = Inference(exchange.asked, alternative, alpha, n_sampled, failed)
    return [inference.result(c, slots, tallies) for c, slots in zip(exchange.comparisons, exchange.slots, strict=True)]


def _beside(r: Result) -> Beside:
    return Beside(r.unit, r.n_units, r.method, r.n_trials, r.n_extreme, r.p_value)


def clear_columns(dependences: Sequence[Sequence[Dependence]], fewest: int = 2) -> list[str]:
    """Return the columns, of `fewest` groups or more, within which differences clearly hang together."""
    n = _n_tested(dependences)
    clear = (d for own in dependences for d in own if d.n_groups >= fewest and d.is_clear(n))
    return list(dict.fromkeys(d.column for d in clear))


def _n_tested(dependences: Sequence[Sequence[Dependence]]) -> int:
    return sum(len(own) for own in dependences)


def _of_column(dependences: Sequence[Sequence[Dependence]], column: str) -> Iterable[Dependence]:
    return (d for own in dependences for d in own if d.column == column)
