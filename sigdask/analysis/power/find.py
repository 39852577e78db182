"""From aligned counts to the power of every comparison that is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sigdask.analysis.comparison.nesting import highest
from sigdask.analysis.comparison.spec import CompareSpec, pairs_of
from sigdask.analysis.power.points import Count, PowerTarget, RejectionRule
from sigdask.analysis.power.results import Power, PowerResults
from sigdask.analysis.power.search import PowerQuestion, PowerSearch, search
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric
from sigdask.options import Alternative
from sigdask.randomization.panels.build import PanelSharing
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.power.population import SystemPairs
from sigdask.randomization.power.rejection import is_judged
from sigdask.statistics.bounds import MAX_TRIALS

SAMPLES, FEWER_SAMPLES, MANY = 2_000, 500, 100
"""Samples of each point; where comparisons are many."""


@dataclass(frozen=True, slots=True)
class PowerSettings:
    """How power is found.

    Attributes
    ----------
    alternative : str
        Of the test.
    alpha : float
        Level of the test.
    adjust : {"none", "holm"}
        Whether each comparison is judged at alpha, or at the level of the first step of Holm.
    n_samples : int or None
        Of each point; None for 2,000, and 500 of more than 100 comparisons.
    """

    alternative: Alternative = "two-sided"
    alpha: float = 0.05
    adjust: str = "none"
    n_samples: int | None = None


def find_powers(
    counts: Counts, wanted: CompareSpec, sought: PowerQuestion, how: PowerSettings, count: Count
) -> PowerResults:
    """Return the power of every comparison.

    Parameters
    ----------
    counts : Counts
        The aligned systems.
    wanted : CompareSpec
        Metrics, pairs, unit and seed.
    sought : PowerQuestion
        What is asked of each comparison.
    how : PowerSettings
        How it is found.
    count : callable
        Counts jobs: `count_jobs`.

    Raises
    ------
    InputError
        What is asked for cannot be had of any comparison; it says why.
    """
    sought = checked(sought, how)
    counts = counts.with_unit(highest(counts, wanted.levels) if wanted.levels else counts.unit)
    placed = [*_placed(counts, wanted)]
    if not placed:
        raise InputError("no two systems have an item in common, so there is nothing whose power could be told")
    n = len(placed)
    level = how.alpha / n if how.adjust == "holm" else how.alpha
    if not is_judged(level):
        raise InputError(
            f"level {level:.3g}: samples near it take too many swaps to be judged; raise alpha, or compare fewer"
        )
    test = RejectionRule(how.alternative, level, how.n_samples or (SAMPLES if n <= MANY else FEWER_SAMPLES))
    asks = [
        PowerSearch(PowerTarget(pairs, row, _side(pairs, row, how.alternative)), sought, test)
        for pairs, row, _ in placed
    ]
    _check(asks, [names for *_, names in placed], sought)
    search(asks, test, count)
    found = tuple(ask.answer(names, counts.name, counts.unit) for ask, (*_, names) in zip(asks, placed, strict=True))
    return PowerResults(found, how.alpha, how.adjust, wanted.seed, tuple(_notes(found, how, level)))


def checked(sought: PowerQuestion, how: PowerSettings) -> PowerQuestion:
    """Return what is asked with the size of its difference, or refuse what makes no sense."""
    difference = sought.difference
    if not how.alpha < sought.power < 1:
        raise InputError(f"power = {sought.power:g}: must lie between alpha ({how.alpha:g}) and 1")
    if sought.n_units is not None and not 2 <= sought.n_units <= MAX_TRIALS:
        raise InputError(f"units = {sought.n_units}: must be at least 2")
    if how.n_samples is not None and not 100 <= how.n_samples <= MAX_TRIALS:
        raise InputError(f"samples = {how.n_samples}: must be at least 100")
    if difference is None:
        return sought
    if difference == 0:
        raise InputError("difference = 0: no test finds what is not there; give a difference above 0")
    if not np.isfinite(difference):
        raise InputError(f"difference = {difference}: must be a number")
    if difference < 0 and how.alternative != "two-sided":
        raise InputError(
            f"difference = {difference:g}: give its size; alternative {how.alternative} says on which side it is"
        )
    return PowerQuestion(sought.power, abs(difference), sought.n_units)


def _placed(counts: Counts, wanted: CompareSpec) -> Iterator[tuple[SystemPairs, int, tuple[str, str]]]:
    """Yield every comparison: where its units are, and its systems."""
    units, pairs = SwapUnits.of(counts, wanted.seed), pairs_of(counts, wanted.pairs, wanted.baseline)
    if not len(pairs):
        raise InputError("power is of two systems or more; give another")
    for metric in wanted.bind(counts).metrics:
        if not isinstance(metric, BoundMetric):
            raise InputError(
                f"metric {metric if isinstance(metric, str) else metric.name}: power is found for scores of summed "
                "counts, of which samples can be summed; not for sets over all items, nor for metrics of whole outputs"
            )
        found: dict[int, tuple[SystemPairs, int]] = {}
        for placed in PanelSharing.of(counts, [metric], pairs).panels(units, every_unit=True):
            own = SystemPairs(placed.panel)
            if placed.panel.n_units:  # else the two have no item in common
                found |= {k: (own, row) for row, k in enumerate(placed.of_pairs.tolist())}
        for k in sorted(found):
            a, b = pairs[k]
            yield *found[k], (counts.systems[a], counts.systems[b])


def _side(pairs: SystemPairs, row: int, alternative: Alternative) -> int:
    if alternative == "two-sided":
        return 1 if pairs[row].difference >= 0 else -1
    return 1 if alternative == "greater" else -1


def _check(asks: Sequence[PowerSearch], names: Sequence[tuple[str, str]], sought: PowerQuestion) -> None:
    """Refuse what no comparison answers."""
    if any((ask.needed if sought.difference is not None else ask.detectable) is not None for ask in asks):
        return
    a, b = names[0]
    more = f" (and likewise of {len(asks) - 1} more)" if len(asks) > 1 else ""
    raise InputError(f"{a} and {b} by {asks[0].place.observed.panel.metrics[0].name}: {asks[0].note}{more}")


def _notes(found: Sequence[Power], how: PowerSettings, level: float) -> Iterator[str]:
    n = len(found)
    if n > 1 and how.adjust == "none":
        yield (
            f"each comparison is judged by itself at {how.alpha:g}; the {n:,} together, adjusted, ask for more units: "
            "--adjust holm judges each at the level that the first of them must reach"
        )
    elif n > 1:
        yield f"each comparison is judged at {level:.3g}, the first step of Holm: power is at least what is stated"
