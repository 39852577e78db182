"""Power analysis of all comparisons of a test set, from aligned counts to results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sigdask.analysis.comparison.nesting import find_coarsest
from sigdask.analysis.comparison.spec import CompareSpec, list_pairs
from sigdask.analysis.power.points import Count, PowerTarget, RejectionRule
from sigdask.analysis.power.results import Power, PowerResults
from sigdask.analysis.power.search import PowerQuestion, PowerSearch, run_searches
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric
from sigdask.options import Alternative
from sigdask.randomization.panels.build import PanelGroups
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.power.population import SystemPairs
from sigdask.randomization.power.rejection import can_decide
from sigdask.statistics.bounds import MAX_TRIALS

SAMPLES, FEWER_SAMPLES, MANY_COMPARISONS = 2_000, 500, 100
"""Samples of each point; where comparisons are many."""


@dataclass(frozen=True, slots=True)
class PowerSettings:
    """Settings of a power analysis: the test, its level, and the number of samples.

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


def estimate_powers(
    counts: Counts, spec: CompareSpec, question: PowerQuestion, settings: PowerSettings, count: Count
) -> PowerResults:
    """Return the estimated power of every comparison of a test set.

    Parameters
    ----------
    counts : Counts
        The aligned systems.
    spec : CompareSpec
        Metrics, pairs, unit and seed.
    question : PowerQuestion
        What is asked of each comparison.
    settings : PowerSettings
        How it is found.
    count : callable
        Counts jobs: `count_jobs`.

    Raises
    ------
    InputError
        What is asked for cannot be had of any comparison; it says why.
    """
    question = check_question(question, settings)
    counts = counts.with_unit(find_coarsest(counts, spec.levels) if spec.levels else counts.unit)
    comparisons = [*_iter_comparisons(counts, spec)]
    if not comparisons:
        raise InputError("no two systems have an item in common, so there is nothing whose power could be told")
    n = len(comparisons)
    level = settings.alpha / n if settings.adjust == "holm" else settings.alpha
    if not can_decide(level):
        raise InputError(
            f"level {level:.3g}: samples near it take too many swaps to be judged; raise alpha, or compare fewer"
        )
    rule = RejectionRule(
        settings.alternative, level, settings.n_samples or (SAMPLES if n <= MANY_COMPARISONS else FEWER_SAMPLES)
    )
    searches = [
        PowerSearch(PowerTarget(pairs, row, _get_side(pairs, row, settings.alternative)), question, rule)
        for pairs, row, _ in comparisons
    ]
    _check_answerable(searches, [names for *_, names in comparisons], question)
    run_searches(searches, rule, count)
    powers = tuple(
        power_search.build_power(names, counts.name, counts.unit)
        for power_search, (*_, names) in zip(searches, comparisons, strict=True)
    )
    return PowerResults(powers, settings.alpha, settings.adjust, spec.seed, tuple(_iter_notes(powers, settings, level)))


def check_question(question: PowerQuestion, settings: PowerSettings) -> PowerQuestion:
    """Return the question with a positive difference; raise if its numbers are not valid."""
    difference = question.difference
    if not settings.alpha < question.power < 1:
        raise InputError(f"power = {question.power:g}: must lie between alpha ({settings.alpha:g}) and 1")
    if question.n_units is not None and not 2 <= question.n_units <= MAX_TRIALS:
        raise InputError(f"units = {question.n_units}: must be at least 2")
    if settings.n_samples is not None and not 100 <= settings.n_samples <= MAX_TRIALS:
        raise InputError(f"samples = {settings.n_samples}: must be at least 100")
    if difference is None:
        return question
    if difference == 0:
        raise InputError("difference = 0: no test finds what is not there; give a difference above 0")
    if not np.isfinite(difference):
        raise InputError(f"difference = {difference}: must be a number")
    if difference < 0 and settings.alternative != "two-sided":
        raise InputError(
            f"difference = {difference:g}: give its size; alternative {settings.alternative} says on which side it is"
        )
    return PowerQuestion(question.power, abs(difference), question.n_units)


def _iter_comparisons(counts: Counts, spec: CompareSpec) -> Iterator[tuple[SystemPairs, int, tuple[str, str]]]:
    """Yield each comparison as the pairs of its panel, its row among them, and the names of its systems."""
    units, pairs = SwapUnits.from_counts(counts, spec.seed), list_pairs(counts, spec.pairs, spec.baseline)
    if not len(pairs):
        raise InputError("power is of two systems or more; give another")
    for metric in spec.bind_metrics(counts).metrics:
        if not isinstance(metric, BoundMetric):
            raise InputError(
                f"metric {metric if isinstance(metric, str) else metric.name}: power is found for scores of summed "
                "counts, of which samples can be summed; not for sets over all items, nor for metrics of whole outputs"
            )
        position_of: dict[int, tuple[SystemPairs, int]] = {}
        for placed in PanelGroups.from_metrics(counts, [metric], pairs).build(units, every_unit=True):
            system_pairs = SystemPairs(placed.panel)
            if placed.panel.n_units:  # else the two have no item in common
                position_of |= {k: (system_pairs, row) for row, k in enumerate(placed.pair_indices.tolist())}
        for k in sorted(position_of):
            a, b = pairs[k]
            yield *position_of[k], (counts.systems[a], counts.systems[b])


def _get_side(pairs: SystemPairs, row: int, alternative: Alternative) -> int:
    if alternative == "two-sided":
        return 1 if pairs[row].difference >= 0 else -1
    return 1 if alternative == "greater" else -1


def _check_answerable(
    searches: Sequence[PowerSearch], names: Sequence[tuple[str, str]], question: PowerQuestion
) -> None:
    """Raise if the question has no answer for any comparison."""
    if any(
        (power_search.needed if question.difference is not None else power_search.detectable) is not None
        for power_search in searches
    ):
        return
    a, b = names[0]
    suffix = f" (and likewise of {len(searches) - 1} more)" if len(searches) > 1 else ""
    raise InputError(f"{a} and {b} by {searches[0].target.observed.panel.metrics[0].name}: {searches[0].note}{suffix}")


def _iter_notes(powers: Sequence[Power], settings: PowerSettings, level: float) -> Iterator[str]:
    n = len(powers)
    if n > 1 and settings.adjust == "none":
        yield (
            f"each comparison is judged by itself at {settings.alpha:g}; the {n:,} together, adjusted, ask for more "
            "units: "
            "--adjust holm judges each at the level that the first of them must reach"
        )
    elif n > 1:
        yield f"each comparison is judged at {level:.3g}, the first step of Holm: power is at least what is stated"
