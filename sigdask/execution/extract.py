"""What metrics take from outputs, counted where a run counts its trials: here, on processes beside it, or on a cluster.

Counters in Python hold the interpreter's lock, so that threads become processes. A cluster whose workers have other
versions of a library, or none, is left out of it; what it does not count is counted on this machine.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sigdask.counts.fields import Array
from sigdask.errors import ClusterLostError
from sigdask.execution import clusters
from sigdask.execution.clusters import Cluster, Description, Where
from sigdask.execution.clusters.base import log
from sigdask.execution.flight import Flight
from sigdask.metrics.extraction import Executor, ExtractionPart, LocalExtraction
from sigdask.metrics.extraction.processes import POSSIBLE, Processes

SHORT = 2.0
"""Seconds of work up to which processes cost more than they save."""

LONG = 60.0
"""Seconds on this machine's processes from which a cluster that must first be reached is worth it."""

Counted = Iterator[tuple[int, list[Array]]]


class ClusterExtraction:
    """Counts parts on what a run was given to count on.

    Parameters
    ----------
    cluster : str, Description, Cluster, or a client or cluster of dask's
        As for the trials; "threads" and "local" are processes of this machine, "auto" too where it takes long.
    workers : int, optional
        How many; by default one a core.
    """

    def __init__(self, cluster: Where = "auto", workers: int | None = None) -> None:
        self.cluster = cluster
        described = cluster.expected if isinstance(cluster, Description) else None
        self.n = workers or _threads_of(cluster) or (described if self._is_here else None) or clusters.cores()

    @property
    def _is_here(self) -> bool:
        """Whether it is this machine that counts."""
        kind = self.cluster.kind if isinstance(self.cluster, (Cluster, Description)) else self.cluster
        return kind in clusters.HERE

    def __call__(self, parts: Sequence[ExtractionPart], seconds: float) -> Counted:
        """Yield the number of each part and what it counted, as they finish."""
        if seconds < SHORT:
            return LocalExtraction()(parts, seconds)
        if (found := clusters.at_hand(self.cluster)) is not self.cluster:
            return ClusterExtraction(found, self.n)(parts, seconds)
        if self.n == 1 and self._is_here:
            return LocalExtraction()(parts, seconds)
        if isinstance(self.cluster, Cluster) and self.cluster.client is not None:
            return _or_here(_on_client(self.cluster, parts), parts, seconds)
        if self._is_here or (seconds / self.n < LONG and not clusters.is_handed(self.cluster)):
            return _beside(self.n)(parts, seconds)
        return _or_here(self._reached(parts), parts, seconds)

    def _reached(self, parts: Sequence[ExtractionPart]) -> Counted:
        assert not isinstance(self.cluster, Cluster)
        with clusters.connect(self.cluster) as connected:
            yield from _on_client(connected, parts)


def _beside(n: int) -> Executor:
    """Return what counts on this machine, beside this process where it can."""
    return Processes(n) if POSSIBLE else LocalExtraction()


def _threads_of(cluster: Where) -> int | None:
    if cluster == "none":
        return 1
    return cluster.n_threads if isinstance(cluster, Cluster) else None


def _or_here(elsewhere: Counted, parts: Sequence[ExtractionPart], seconds: float) -> Counted:
    """Count on a cluster, and on this machine what that does not."""
    lacking = set(range(len(parts)))
    try:
        for number, found in elsewhere:
            lacking.discard(number)
            yield number, found
    except ClusterLostError as error:
        log.warning("extraction: %s", error)
    if lacking:
        log.warning("extraction: the cluster left %d of %d parts, which are made here", len(lacking), len(parts))
        left = sorted(lacking)
        rest = [parts[number] for number in left]
        yield from ((left[k], found) for k, found in _beside(clusters.cores())(rest, seconds))


@dataclass(frozen=True, slots=True)
class _ExtractionTask:
    """A part on its way; of a job of its own, so that one that fails leaves the others alone."""

    job: int


def _on_client(cluster: Cluster, parts: Sequence[ExtractionPart]) -> Counted:
    def submit(task: tuple[_ExtractionTask]) -> Any:
        number = task[0].job
        packed = pickle.dumps((number, parts[number].extraction.key, parts[number]))
        return cluster.client.submit(count_packed, packed, pure=False)

    for number, found in Flight(cluster, [(_ExtractionTask(number),) for number in range(len(parts))], submit):
        if found is not None:
            yield number, found


def count_packed(packed: bytes) -> tuple[int, list[Array] | None]:
    """Count a part where the libraries are those of the driver; return its number and what was counted, or None."""
    number, key, part = pickle.loads(packed)  # noqa: S301  # from the driver, as all tasks are
    return number, part.count() if part.extraction.key == key else None
