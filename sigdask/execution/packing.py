"""Panels as they travel to workers: packed once, opaque to the scheduler, no code for other machines.

A large panel goes in blocks of systems, which are spread over the workers; what a task needs of them are
sums, which workers make where the blocks are and fetch from each other.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sigdask.errors import InputError
from sigdask.execution.clusters import Cluster, versions
from sigdask.execution.tasks import TrialRange
from sigdask.io import addresses
from sigdask.metrics.travel import functions_of, is_named
from sigdask.randomization.blocks import SystemBlock, frame_of, from_sums, is_large, panels_of, parts_of
from sigdask.randomization.jobs import Job
from sigdask.randomization.kernels.sums import MovedSums
from sigdask.randomization.panels import AnyPanel
from sigdask.randomization.panels.sums import Panel

SHIPPED_WITH_TASK = 16 * 1024
"""Bytes up to which a packed panel travels inside its tasks; larger ones are sent to workers once."""


@dataclass(slots=True, eq=False)
class TransientBytes:
    """Bytes that are let go where they are unpacked: a worker keeps what a task was called with as long as its result.

    Attributes
    ----------
    content : bytes or None
        None once they are unpacked.
    arrived : bool
        Whether this is the copy of a worker; the sender's is sent again where a worker is lost.
    """

    content: bytes | None
    arrived: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        return TransientBytes, (self.content, True)

    def taken(self) -> bytes:
        """Return the bytes, the last time where they arrived."""
        content = self.content
        assert content is not None
        if self.arrived:
            self.content = None
        return content


@dataclass(frozen=True, slots=True, eq=False)
class WholePanel:
    """A panel that each worker is sent: packed where it is small, else a future of one that workers share."""

    panel: Any

    def of_trials(self, _client: Any, _trials: TrialRange) -> Any:
        """Return what a task takes of it."""
        return self.panel


@dataclass(frozen=True, slots=True, eq=False)
class BlockedPanel:
    """A large panel, or a family of such, in blocks of systems.

    Attributes
    ----------
    frame : future
        The panel without its contributions.
    blocks : list of list of future
        Of each panel.
    """

    frame: Any
    blocks: list[list[Any]]

    def of_trials(self, client: Any, trials: TrialRange) -> Any:
        """Return what a task takes of it: futures of the sums of all blocks in its trials."""
        sums = [[client.submit(summed, block, trials, pure=False) for block in own] for own in self.blocks]
        return [self.frame, sums]


def sent_once(cluster: Cluster, jobs: Sequence[Job]) -> dict[int, WholePanel | BlockedPanel]:
    """Return each panel as tasks take it; blocks that a panel and its families share are sent once."""
    sent: dict[int, WholePanel | BlockedPanel] = {}
    blocks: dict[int, list[Any]] = {}
    for panel in {id(job.panel): job.panel for job in jobs}.values():
        if is_large(panel):
            for one in panels_of(panel):
                if id(one) not in blocks:
                    blocks[id(one)] = _in_turn(cluster, parts_of(one))
            frame = _made(cluster, unpacked, frame_of(panel))
            sent[id(panel)] = BlockedPanel(frame, [blocks[id(one)] for one in panels_of(panel)])
            continue
        packed = _packed(panel, code=not cluster.remote)
        large = len(packed) > SHIPPED_WITH_TASK
        sent[id(panel)] = WholePanel(
            cluster.client.submit(unpacked, TransientBytes(packed), pure=False) if large else packed
        )
    return sent


def _in_turn(cluster: Cluster, parts: Iterable[Panel]) -> list[Any]:
    """Send blocks, one a thread at a time: what workers have not unpacked yet takes their memory."""
    from distributed import wait

    sent: list[Any] = []
    for part in parts:
        if len(sent) >= cluster.n_threads:
            wait(sent[-max(cluster.n_threads, 1)])
        sent.append(_made(cluster, arranged, part))
    return sent


def _made(cluster: Cluster, function: Callable[[TransientBytes], Any], panel: AnyPanel) -> Any:
    """Return the future of what a worker makes of a panel; a task, so that it is made again where it was lost."""
    return cluster.client.submit(function, TransientBytes(_packed(panel, code=not cluster.remote)), pure=False)


def arranged(packed: TransientBytes) -> SystemBlock:
    """Return a block of a panel, from a part that was packed."""
    part = unpacked(packed)
    assert isinstance(part, Panel)
    return SystemBlock.of(part)


def summed(block: SystemBlock, trials: TrialRange) -> MovedSums:
    """Return the sums of a block in the trials of a task."""
    return block.sums(run=trials.run, first=trials.first, n_trials=trials.n_trials)


def _packed(panel: AnyPanel, *, code: bool) -> bytes:
    """Pickle a panel, opaque to the scheduler; without `code`, as arrays and names only.

    Before it, and read before it, go the driver's versions, and to workers of this machine the folders in which the
    driver finds modules.
    """
    if code:
        import cloudpickle

        return bytes(cloudpickle.dumps((versions.here(), addresses.looked_in(), cloudpickle.dumps(panel))))
    for name, function in functions_of(panel):
        if not is_named(function):
            raise InputError(
                f"metric {name!r}: workers on other machines are sent the names of metrics, not code: define the "
                "function at the top of a module that can be imported there, and ask for it as MODULE:FUNCTION"
            )
    return pickle.dumps((versions.here(), (), pickle.dumps(panel)))


def unpacked(panel: Any) -> AnyPanel:
    """Return a panel that was packed by this program's own driver, or one that counts from the sums of its blocks."""
    if isinstance(panel, list):
        return from_sums(*panel)
    if isinstance(panel, TransientBytes):
        panel = panel.taken()
    if not isinstance(panel, bytes):
        whole: AnyPanel = panel
        return whole
    theirs, folders, packed = pickle.loads(panel)  # noqa: S301  # over the cluster's own, authenticated, connections
    versions.require(theirs)
    for folder in folders:
        addresses.look_in(folder)
    found: AnyPanel = pickle.loads(packed)  # noqa: S301
    return found
