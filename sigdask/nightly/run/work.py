"""Prepare a plan's work: read its test sets, and list the jobs to count.

Provenance of a run for its record: versions, settings, and a digest of each file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import CompareSpec, CountPositions, list_left_out, list_pairs
from sigdask.analysis.comparison.study import Study, prepare_study
from sigdask.counts import Counts
from sigdask.execution.clusters import ClusterLike
from sigdask.execution.extract import ClusterExtraction
from sigdask.execution.run import Progress
from sigdask.io import addresses
from sigdask.metrics.extraction import ExtractedData, StatisticsSource, extract_statistics
from sigdask.metrics.extraction.cache import LayeredCache, get_user_cache
from sigdask.metrics.extraction.parts import ExtractionLog
from sigdask.nightly.gate import ComparisonKey
from sigdask.nightly.plan import Plan, TestSet
from sigdask.nightly.store import Store
from sigdask.report.page.frame import get_versions, hash_paths


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Test sets that are judged together.

    Attributes
    ----------
    counts : dict of str to Counts
        The test sets, by name, as they were read.
    study : Study
        What is counted and judged.
    set_indices : int64 array, shape (n_results,)
        The test set of each result, a place among them.
    p_positions : CountPositions
        Where the counts stand that each result's p is of; jobs by their places in the study's.
    positions : tuple of CountPositions
        Where all counts of the results stand: of both runs, of all arrangements, of other units, of families,
        of intervals.
    """

    counts: dict[str, Counts]
    study: Study
    set_indices: NDArray[np.int64]
    p_positions: CountPositions
    positions: tuple[CountPositions, ...]

    @property
    def files(self) -> list[tuple[str, tuple[Path, ...]]]:
        """Paths that each test set was read from, by its name."""
        return [
            (name, analysis.main.spec.counts.files)
            for name, analysis in zip(self.names, self.study.analyses, strict=True)
        ]

    @staticmethod
    def from_study(counts: dict[str, Counts], study: Study) -> Batch:
        """Build a batch of test sets, in the order of the study."""
        sizes = [len(analysis.main.comparisons) for analysis in study.analyses]
        slots = (study.slots, *study.contrast_slots)
        positions = [count_positions for slot in slots for count_positions in slot.all_kinds]
        p_positions = reduce(_merge_positions, (slots[0].first, slots[0].exact, slots[0].exact_p))
        positions += [study.family_positions, study.companion_positions, *study.interval_positions]
        return Batch(counts, study, np.repeat(np.arange(len(counts)), sizes), p_positions, tuple(positions))

    def __len__(self) -> int:
        return len(self.set_indices)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the test sets."""
        return tuple(self.counts)


def _merge_positions(first: CountPositions, second: CountPositions) -> CountPositions:
    """Return the first positions of results' counts, or the second where the first have none."""
    is_first = first.job >= 0
    return CountPositions(
        *(np.where(is_first, getattr(first, n), getattr(second, n)) for n in ("job", "row", "column"))
    )


def build_source(
    store: Store, cluster: ClusterLike, workers: int | None, progress: Progress | None, note: Callable[[str], None]
) -> StatisticsSource:
    """Return the source of a run's extracted statistics: store, user's cache, or else extraction on the cluster."""
    tell = getattr(progress, "extracting", None) or ExtractionLog(note)
    return StatisticsSource(
        LayeredCache(store.extraction_cache, get_user_cache()), ClusterExtraction(cluster, workers), tell
    )


def read_batches(plan: Plan, source: StatisticsSource) -> tuple[list[Batch], dict[str, Any]]:
    """Read the test sets of a plan; return them in batches that are judged together, and what was extracted.

    Returns
    -------
    (list of Batch, dict)
        And, for the run's record, what its metrics took from outputs (`source`): by test set.
    """
    addresses.add_folder(plan.path.parent)
    files = [(test_set, test_set.read()) for test_set in plan.test_sets]
    extractions = extract_statistics([(c, _build_spec(t, c, ()).find_metrics(c)) for t, c in files], source)
    sets_and_counts = [
        (test_set, extraction.counts) for (test_set, _), extraction in zip(files, extractions, strict=True)
    ]
    is_joint = plan.family == "plan" and plan.comparison["adjust"] != "none"
    groups = [sets_and_counts] if is_joint else [[pair] for pair in sets_and_counts]
    batches = [Batch.from_study({t.name: counts for t, counts in group}, build_study(plan, group)) for group in groups]
    return batches, {
        t.name: _build_record(extraction)
        for (t, _), extraction in zip(files, extractions, strict=True)
        if extraction.made or extraction.n_kept
    }


def _build_record(extraction: ExtractedData) -> dict[str, Any]:
    """Return, for the run's record, which systems' outputs were extracted by each metric, and how many were cached."""
    return {"made": {metric: list(systems) for metric, systems in extraction.made.items()}, "kept": extraction.n_kept}


def build_study(plan: Plan, sets_and_counts: Sequence[tuple[TestSet, Counts]], metrics: Sequence[Any] = ()) -> Study:
    """Return the study of test sets that the plan judges together.

    Parameters
    ----------
    plan : Plan
        Its seed, level and adjustment.
    sets_and_counts : sequence of (TestSet, Counts)
        Test sets and what they read.
    metrics : sequence, optional
        Metrics, instead of the test sets' own.
    """
    return prepare_study(
        [
            (counts, _build_spec(test_set, counts, metrics), test_set.comparison["alternative"])
            for test_set, counts in sets_and_counts
        ],
        alpha=plan.comparison["alpha"],
        adjust=plan.comparison["adjust"],
        by_metric=plan.family == "metric",
        second_run=plan.comparison["second_run"],
    )


def iter_missing(test_set: TestSet, counts: Counts) -> Iterator[ComparisonKey]:
    """Yield the requested comparisons that cannot be made because the systems have no item in common."""
    spec = _build_spec(test_set, counts, ())
    pairs = list_pairs(counts, spec.pairs, spec.baseline)
    for subset, a, b, metric in list_left_out(counts, pairs, spec.find_metrics(counts), spec.by):
        yield counts.name, subset, a, b, metric


def _build_spec(test_set: TestSet, counts: Counts, metrics: Sequence[Any]) -> CompareSpec:
    return CompareSpec.from_options(test_set.comparison, metrics or test_set.metrics or counts.suggested)


NO_PATHS: Mapping[str, Sequence[Path]] = {}


def build_provenance(plan: Plan, read_paths: Mapping[str, Sequence[Path]] = NO_PATHS) -> dict[str, Any]:
    """Return the versions, settings and inputs of a run.

    `read_paths` are, by test set, the files that were taken of the folders and patterns of its systems.
    """
    inputs = _hash_inputs(plan.test_sets, read_paths) | _hash_other_inputs(plan)
    return {"versions": get_versions("dask", "distributed"), "settings": _list_settings(plan), "inputs": inputs}


def _list_settings(plan: Plan) -> dict[str, Any]:
    shared = {name: plan.comparison[name] for name in ("seed", "alpha", "adjust", "second_run")}
    return {**shared, "trials": {t.name: t.comparison["trials"] for t in plan.test_sets}}


def _hash_inputs(test_sets: Sequence[TestSet], read_paths: Mapping[str, Sequence[Path]]) -> dict[str, dict[str, str]]:
    """Return the digests of the files of each test set."""
    return {t.name: hash_paths(t.list_files(read_paths.get(t.name, ()))) for t in test_sets}


def _hash_other_inputs(plan: Plan) -> dict[str, dict[str, str]]:
    """Return the digests of the files of candidate lists and tests of independence."""
    files = [(entry.name, (entry.path,)) for entry in plan.rankings] + [
        (entry.name, entry.list_files()) for entry in plan.independence
    ]
    return {name: hash_paths(paths) for name, paths in files}
