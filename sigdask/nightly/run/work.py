"""Preparation of a plan's work: read its test sets, and list the jobs to count.

The record of a run also gets its provenance: versions, settings, and a digest of each file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.analysis.comparison.pairs import CountedCells, join_cells, list_left_out, list_pairs
from sigdask.analysis.comparison.study import Study
from sigdask.counts import Counts
from sigdask.counts.fields import Integers
from sigdask.execution.clusters import ClusterLike
from sigdask.execution.extract import ClusterExtraction
from sigdask.execution.run import Progress
from sigdask.io import addresses
from sigdask.metrics.extraction import ExtractedData, StatisticsSource, extract_statistics
from sigdask.metrics.extraction.cache import LayeredCache, get_user_cache
from sigdask.metrics.extraction.parts import ExtractionLog
from sigdask.nightly.gate.rules import ComparisonKey
from sigdask.nightly.plan import Plan, TestSet
from sigdask.nightly.store import COMPLETE, Store
from sigdask.nightly.store.results import fetch_results
from sigdask.nightly.store.runs import find_run
from sigdask.nightly.test_sets import build_spec, build_study, digest_file_state, prepare_set
from sigdask.randomization.slabs import Job
from sigdask.report.page.frame import get_versions, hash_paths
from sigdask.results.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Test sets whose results are in one table, in studies with the same layout.

    Attributes
    ----------
    counts : dict of str to Counts
        The data of the test sets, by name.
    studies : list of Study
        The studies.
    cells, p_cells : list of CountedCells
        All counts of the results, and those from which p is computed.
    set_indices : int64 array, shape (n_results,)
        Index of the test set of each result.
    """

    counts: dict[str, Counts]
    studies: list[Study]
    cells: list[CountedCells]
    p_cells: list[CountedCells]
    set_indices: Integers

    @property
    def jobs(self) -> list[Job]:
        """Jobs of all studies."""
        return [part.job for part in self.cells]

    @property
    def files(self) -> list[tuple[str, tuple[Path, ...]]]:
        """Paths that each test set was read from, by its name."""
        analyses = [analysis for study in self.studies for analysis in study.analyses]
        return [(name, entry.main.spec.counts.files) for name, entry in zip(self.names, analyses, strict=True)]

    @staticmethod
    def from_studies(counts: dict[str, Counts], studies: list[Study]) -> Batch:
        """Build a batch of test sets, in the order of the studies."""
        sizes = [len(analysis) for study in studies for analysis in study.analyses]
        cells, p_cells = (
            [*join_cells(lists, (study.n_results for study in studies))]
            for lists in ((study.cells for study in studies), (study.main_cells for study in studies))
        )
        return Batch(counts, studies, cells, p_cells, np.repeat(np.arange(len(counts)), sizes))

    def __len__(self) -> int:
        return len(self.set_indices)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the test sets."""
        return tuple(self.counts)


def build_source(
    store: Store, cluster: ClusterLike, workers: int | None, progress: Progress | None, note: Callable[[str], None]
) -> StatisticsSource:
    """Return the source of a run's extracted statistics: store, user's cache, or else extraction on the cluster."""
    tell = getattr(progress, "show_extraction", None) or ExtractionLog(note)
    return StatisticsSource(
        LayeredCache(store.extraction_cache, get_user_cache()), ClusterExtraction(cluster, workers), tell
    )


def read_batches(
    plan: Plan,
    source: StatisticsSource,
    unread: Container[str],
    states: dict[str, str],
) -> tuple[list[Batch], dict[str, Any]]:
    """Read the test sets of a plan; return them in batches, and what was extracted.

    Parameters
    ----------
    plan : Plan
        The plan with the test sets.
    source : StatisticsSource
        Source of statistics extracted from outputs.
    unread : container of str
        Names of the test sets to leave out.
    states : dict of str to str
        States of the files, by test set. Those of files that are read now are added.

    Returns
    -------
    (list of Batch, dict)
        The batches, and for the run's record the extracted statistics by test set.
    """
    addresses.add_folder(plan.path.parent)
    test_sets = [test_set for test_set in plan.test_sets if test_set.name not in unread]
    shared = _describe_shared(plan)
    prepared_sets = [prepare_set(plan.comparison, shared, test_set) for test_set in test_sets]
    states |= {test_set.name: p.state for test_set, p in zip(test_sets, prepared_sets, strict=True)}
    pairs = zip(test_sets, prepared_sets, strict=True)
    incomplete = [(test_set, p.counts) for test_set, p in pairs if p.study is None]
    extractions = extract_statistics([(c, build_spec(t, c, ()).find_metrics(c)) for t, c in incomplete], source)
    counts_by_set = {t.name: p.counts for t, p in zip(test_sets, prepared_sets, strict=True)}
    counts_by_set |= {t.name: extraction.counts for (t, _), extraction in zip(incomplete, extractions, strict=True)}
    studies = [
        ({t.name: (counts := counts_by_set[t.name])}, p.study or build_study(plan.comparison, t, counts))
        for t, p in zip(test_sets, prepared_sets, strict=True)
    ]
    n_unread = accumulate(test_set.name in unread for test_set in plan.test_sets)
    before = dict(zip((test_set.name for test_set in plan.test_sets), n_unread, strict=True))
    return [*_iter_batches(studies, before)], {
        t.name: _build_record(extraction)
        for (t, _), extraction in zip(incomplete, extractions, strict=True)
        if extraction.made or extraction.n_kept
    }


MAX_RESULTS = 10_000
"""Number of results from which on a batch gets no further study."""


def _iter_batches(studies: Iterable[tuple[dict[str, Counts], Study]], n_unread: Mapping[str, int]) -> Iterator[Batch]:
    """Yield batches of consecutive studies that have the same layout, and no unread test set between them."""
    for _, group in groupby(studies, lambda pair: (pair[1].layout, n_unread[next(iter(pair[0]))])):
        n_results = 0
        pending: list[tuple[dict[str, Counts], Study]] = []
        for pair in group:
            n_results += pair[1].n_results
            pending.append(pair)
            if n_results >= MAX_RESULTS:
                yield _join_studies(pending)
                n_results, pending = 0, []
        if pending:
            yield _join_studies(pending)


def _join_studies(pairs: Sequence[tuple[dict[str, Counts], Study]]) -> Batch:
    return Batch.from_studies({name: c for counts, _ in pairs for name, c in counts.items()}, [s for _, s in pairs])


def digest_file_states(plan: Plan) -> dict[str, str]:
    """Return a digest of all inputs of each test set's results, by test set. "" if unknown.

    It covers versions, settings, and the size, inode, time of change and time of modification of each file. Unknown are
    folders, URLs, the user's own formats and metrics, and files that changed just now.
    """
    shared = _describe_shared(plan)
    return {test_set.name: digest_file_state(test_set, shared) for test_set in plan.test_sets}


def _describe_shared(plan: Plan) -> str:
    """Describe the inputs on which the results of all test sets depend."""
    return repr((_get_versions(), plan.comparison))


@cache
def _get_versions() -> dict[str, str]:
    """Return the versions of relevant packages, cached because parsing their metadata takes milliseconds."""
    return get_versions("dask", "distributed")


@dataclass(frozen=True, slots=True, eq=False)
class UnreadSets:
    """Test sets that are not read, because the plan's latest run read the same inputs.

    Attributes
    ----------
    names : tuple of str
        Their names.
    details : dict
        The record of the latest run.
    stored : Table
        Their results.
    """

    names: tuple[str, ...]
    details: dict[str, Any]
    stored: Table

    def select_details(self, key: str) -> dict[str, Any]:
        """Return the values of these test sets in the record under a key."""
        recorded = self.details.get(key, {})
        return {name: recorded[name] for name in self.names if name in recorded}

    def select_results(self, names: Collection[str]) -> Table:
        """Return the results of some test sets."""
        is_selected = self.stored.test_set.find({*names}.__contains__)
        return self.stored.take(np.flatnonzero(is_selected))

    @staticmethod
    def find(plan: Plan, store: Store, *, reread: bool = False) -> UnreadSets:
        """Return the test sets whose files and settings are as in the plan's latest run, which counted all.

        A gate, a page and a table of units need the data of all test sets. With `reread`, all are read.
        """
        none = UnreadSets((), {}, Table.build_empty())
        has_files = plan.report.has_page or "items" in plan.report.files
        run = None if has_files or plan.gate is not None or reread else store.read(find_run, plan.name, None)
        if run is None or run.state != "finished":
            return none
        states = digest_file_states(plan)
        recorded = run.details.get("file_states", {})
        same = {name for name, state in states.items() if state and recorded.get(name) == state}
        if not same:
            return none
        stored = store.read(fetch_results, plan.name, None, plan.comparison["alpha"])
        column = stored.test_set
        n_open = np.bincount(column.codes[~stored[COMPLETE]], minlength=len(column.values))
        same &= {name for name, n in zip(column.values, n_open.tolist(), strict=True) if not n}
        rows = np.flatnonzero(column.find(same.__contains__))
        return UnreadSets(tuple(name for name in states if name in same), run.details, stored.take(rows))


def _build_record(extraction: ExtractedData) -> dict[str, Any]:
    """Return, for the run's record, which systems' outputs were extracted by each metric, and how many were cached."""
    return {"made": {metric: list(systems) for metric, systems in extraction.made.items()}, "kept": extraction.n_kept}


def iter_missing(test_set: TestSet, counts: Counts) -> Iterator[ComparisonKey]:
    """Yield the requested comparisons that cannot be made because the systems have no item in common."""
    spec = build_spec(test_set, counts, ())
    pairs = list_pairs(counts, spec.pairs, spec.baseline)
    for subset, a, b, metric in list_left_out(counts, pairs, spec.find_metrics(counts), spec.by):
        yield counts.name, subset, a, b, metric


def build_provenance(
    plan: Plan, read_paths: Mapping[str, Sequence[Path]], unread: Mapping[str, dict[str, str]]
) -> dict[str, Any]:
    """Return the versions, settings and inputs of a run.

    `read_paths` are the files that the folders and patterns of each test set's systems matched. `unread` are the
    digests of the files of test sets that were not read.
    """
    inputs = {
        t.name: unread[t.name] if t.name in unread else hash_paths(t.list_files(read_paths.get(t.name, ())))
        for t in plan.test_sets
    }
    settings: dict[str, Any] = {name: plan.comparison[name] for name in ("seed", "alpha", "adjust", "second_run")}
    settings["trials"] = {t.name: t.comparison["trials"] for t in plan.test_sets}
    return {"versions": _get_versions(), "settings": settings, "inputs": inputs}
