"""Extraction of statistics from outputs for metrics: in this process, in other processes or on a cluster.

Counters in Python hold the interpreter's lock, so processes are used instead of threads. If the workers of a cluster
have another version of a library, or lack it, they are not used. What a cluster does not count is counted on this
machine.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sigdask.counts import Counts
from sigdask.counts.fields import Array
from sigdask.errors import ClusterLostError
from sigdask.execution import clusters
from sigdask.execution.clusters import Cluster, ClusterLike
from sigdask.execution.clusters.base import log
from sigdask.execution.task_window import TaskWindow
from sigdask.metrics.extraction import StatisticsSource, extract_statistics
from sigdask.metrics.extraction.cache import NO_CACHE, get_user_cache
from sigdask.metrics.extraction.parts import (
    ExtractionLog,
    ExtractionPart,
    LocalExtraction,
    ProcessExtraction,
)
from sigdask.options import SelectionOptions

SHORT_SECONDS = 2.0
"""Work of fewer seconds is done without worker processes."""

LONG_SECONDS = 60.0
"""Estimated seconds on this machine from which connecting to a cluster is worthwhile."""

CountedParts = Iterator[tuple[int, list[Array]]]


class ClusterExtraction:
    """An executor that counts the parts of an extraction on the cluster of a run.

    Parameters
    ----------
    cluster : str, Cluster, or a client or cluster of dask's
        As for trials. "threads" and "local" use processes on this machine, as does "auto" for long work.
    workers : int, optional
        Number of workers; by default one per core.
    """

    def __init__(self, cluster: ClusterLike = "auto", workers: int | None = None) -> None:
        self.cluster = cluster
        self.n = workers or int(getattr(cluster, "n_threads", 1 if cluster == "none" else clusters.count_cores()))

    @property
    def _is_local(self) -> bool:
        """Whether parts are counted on this machine, not on a dask cluster."""
        kind = self.cluster.kind if isinstance(self.cluster, Cluster) else self.cluster
        return kind in clusters.LOCAL_WORDS

    def __call__(self, parts: Sequence[ExtractionPart], seconds: float) -> CountedParts:
        """Yield each part's number and statistics as parts finish; `seconds` is the expected work."""
        if seconds < SHORT_SECONDS:
            return LocalExtraction()(parts, seconds)
        if (active := clusters.resolve_active(self.cluster)) is not self.cluster:
            return ClusterExtraction(active, self.n)(parts, seconds)
        if self.n == 1 and self._is_local:
            return LocalExtraction()(parts, seconds)
        is_dask = clusters.is_dask_object(self.cluster) or isinstance(self.cluster, Cluster)
        if self._is_local or (seconds / self.n < LONG_SECONDS and not is_dask):
            return ProcessExtraction(self.n)(parts, seconds)
        return _count_with_fallback(self._count_connected(parts), parts, seconds)

    def _count_connected(self, parts: Sequence[ExtractionPart]) -> CountedParts:
        with clusters.connect(self.cluster) as connected:
            yield from _count_on_client(connected, parts)


def _count_with_fallback(cluster_counts: CountedParts, parts: Sequence[ExtractionPart], seconds: float) -> CountedParts:
    """Yield the parts that a cluster counts, then count the missing parts on this machine."""
    missing = set(range(len(parts)))
    try:
        for number, counts in cluster_counts:
            missing.discard(number)
            yield number, counts
    except ClusterLostError as error:
        log.warning("extraction: %s", error)
    if missing:
        text = "extraction: the cluster did not finish %d of %d parts; this process computes them"
        log.warning(text, len(missing), len(parts))
        numbers, executor = sorted(missing), ProcessExtraction(clusters.count_cores())
        for k, counts in executor([parts[number] for number in numbers], seconds):
            yield numbers[k], counts


@dataclass(frozen=True, slots=True)
class _ExtractionTask:
    """One part of an extraction as a task; each part has its own job, so that a failure affects no other part."""

    job: int


def _count_on_client(cluster: Cluster, parts: Sequence[ExtractionPart]) -> CountedParts:
    def submit(task: tuple[_ExtractionTask]) -> Any:
        number = task[0].job
        packed = pickle.dumps((number, parts[number].extraction.key, parts[number]))
        return cluster.client.submit(count_packed, packed, pure=False)

    for number, counts in TaskWindow(cluster, [(_ExtractionTask(number),) for number in range(len(parts))], submit):
        if counts is not None:
            yield number, counts


def count_packed(packed: bytes) -> tuple[int, list[Array] | None]:
    """Count a packed part; return its number and statistics, or None instead if library versions differ."""
    number, key, part = pickle.loads(packed)  # noqa: S301  # from the driver, as all tasks are
    return number, part.count() if part.extraction.key == key else None


def extract_with_options(requests: Sequence[tuple[Counts, Sequence[Any]]], options: SelectionOptions) -> list[Counts]:
    """Return the data with the statistics that metrics take from whole outputs, extracted or from the cache.

    Each request has the data of one test set and its metrics.
    """
    if not any(getattr(metric, "extraction", None) for _, metrics in requests for metric in metrics):
        return [counts for counts, _ in requests]
    cache = get_user_cache() if options["cache"] else NO_CACHE
    log = getattr(options["progress"], "show_extraction", None) or ExtractionLog()
    executor = ClusterExtraction(options["cluster"], options["workers"])
    return [entry.counts for entry in extract_statistics(requests, StatisticsSource(cache, executor, log))]
