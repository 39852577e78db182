"""A plan's work: the test sets that are judged together, read, and what they want counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison import pairs as comparisons
from sigdask.analysis.comparison.pairs import CountPositions
from sigdask.analysis.comparison.spec import CompareSpec, IntervalSpec, pairs_of
from sigdask.analysis.comparison.study import Study, prepare
from sigdask.counts import Counts
from sigdask.execution.clusters import Where
from sigdask.execution.extract import ClusterExtraction
from sigdask.execution.run import Progress
from sigdask.io import addresses
from sigdask.metrics.extraction import ExtractedData, ExtractionLog, LayeredCache, StatisticsSource, at_home, extracted
from sigdask.nightly.gate import Key
from sigdask.nightly.plan import Plan, TestSet
from sigdask.nightly.store import Store


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Test sets that are judged together.

    Attributes
    ----------
    counts : dict of str to Counts
        The test sets, by name, as they were read.
    study : Study
        What is counted and judged.
    set_of : int64 array, shape (n_results,)
        The test set of each result, a place among them.
    of_p : CountPositions
        Where the counts stand that each result's p is of; jobs by their places in the study's.
    standings : tuple of CountPositions
        Where all counts of the results stand: of both runs, of all arrangements, of other units, of families,
        of intervals.
    """

    counts: dict[str, Counts]
    study: Study
    set_of: NDArray[np.int64]
    of_p: CountPositions
    standings: tuple[CountPositions, ...]

    @property
    def files(self) -> list[tuple[str, tuple[Path, ...]]]:
        """The files that were taken for each test set, where folders or patterns were given."""
        return [(name, one.main.asked.counts.files) for name, one in zip(self.names, self.study.analyses, strict=True)]

    @staticmethod
    def of(counts: dict[str, Counts], study: Study) -> Batch:
        """Make a batch of test sets, in the order of the study."""
        sizes = [len(analysis.main.comparisons) for analysis in study.analyses]
        slots = (study.slots, *study.beside)
        standings = [standing for own in slots for standing in own.each]
        of_p = reduce(_first_of, (slots[0].first, slots[0].exact, slots[0].known))
        standings += [study.of_families, study.of_companions, *study.of_intervals]
        return Batch(counts, study, np.repeat(np.arange(len(counts)), sizes), of_p, tuple(standings))

    def __len__(self) -> int:
        return len(self.set_of)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the test sets."""
        return tuple(self.counts)


def _first_of(one: CountPositions, other: CountPositions) -> CountPositions:
    """Return where counts stand: the first, and where there are none the other."""
    is_first = one.job >= 0
    return CountPositions(*(np.where(is_first, getattr(one, n), getattr(other, n)) for n in ("job", "row", "column")))


def source_of(
    store: Store, cluster: Where, workers: int | None, progress: Progress | None, note: Callable[[str], None]
) -> StatisticsSource:
    """Return where a run has what its metrics take from outputs: its store, the cache of `check`, its cluster."""
    tell = getattr(progress, "extracting", None) or ExtractionLog(note)
    return StatisticsSource(LayeredCache(store.shelf, at_home()), ClusterExtraction(cluster, workers), tell)


def read_batches(plan: Plan, source: StatisticsSource) -> tuple[list[Batch], dict[str, Any]]:
    """Read the test sets of a plan and list what they want counted.

    Returns
    -------
    (list of Batch, dict)
        And, for the run's record, what its metrics took from outputs (`source`): by test set.
    """
    addresses.look_in(plan.path.parent)
    files = [(test_set, test_set.read()) for test_set in plan.test_sets]
    found = extracted([(c, _wanted(plan, t, c, ()).found(c)) for t, c in files], source)
    read = [(test_set, own.counts) for (test_set, _), own in zip(files, found, strict=True)]
    whole = plan.family == "plan" and plan.adjust != "none"
    groups = [read] if whole else [[each] for each in read]
    batches = [Batch.of({t.name: counts for t, counts in group}, study_of(plan, group)) for group in groups]
    return batches, {t.name: _record(own) for (t, _), own in zip(files, found, strict=True) if own.made or own.n_kept}


def _record(own: ExtractedData) -> dict[str, Any]:
    """Say whose outputs were counted now, by metric, and how many were found in the store."""
    return {"made": {metric: list(systems) for metric, systems in own.made.items()}, "kept": own.n_kept}


def study_of(plan: Plan, read: Sequence[tuple[TestSet, Counts]], metrics: Sequence[Any] = ()) -> Study:
    """List what must be counted for some test sets of a plan, judged together as the plan wants.

    Parameters
    ----------
    plan : Plan
        Its seed, level and adjustment.
    read : sequence of (TestSet, Counts)
        Test sets and what they read.
    metrics : sequence, optional
        Metrics, instead of the test sets' own.
    """
    return prepare(
        [(counts, _wanted(plan, test_set, counts, metrics), test_set.alternative) for test_set, counts in read],
        alpha=plan.alpha,
        adjust=plan.adjust,
        by_metric=plan.family == "metric",
        second_run=plan.second_run,
    )


def left_out(plan: Plan, test_set: TestSet, counts: Counts) -> Iterator[Key]:
    """Yield what a plan asks of a test set and its data do not have: the systems have no such item in common."""
    wanted = _wanted(plan, test_set, counts, ())
    pairs = pairs_of(counts, wanted.pairs, wanted.baseline)
    for subset, a, b, metric in comparisons.left_out(counts, pairs, wanted.found(counts), wanted.by):
        yield counts.name, subset, a, b, metric


def _wanted(plan: Plan, test_set: TestSet, counts: Counts, metrics: Sequence[Any]) -> CompareSpec:
    return CompareSpec(
        metrics=metrics or test_set.metrics or counts.suggested,
        pairs=test_set.pairs,
        baseline=test_set.baseline,
        levels=(test_set.unit,),
        by=test_set.by,
        method=test_set.method,
        exact_limit=test_set.exact_limit,
        trials=test_set.trials,
        seed=plan.seed,
        tests=test_set.tests,
        sureness=IntervalSpec.asked(test_set.interval, test_set.confidence, test_set.resamples),
    )
