"""Packing of panels for workers: pickled once, never unpickled by the scheduler, without code for other machines.

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
from sigdask.metrics.transport import can_send_by_name, iter_functions
from sigdask.randomization.blocks import SystemBlock, build_frame, build_from_sums, is_large, list_panels, split_panel
from sigdask.randomization.jobs import Job
from sigdask.randomization.kernels.sums import MovedSums
from sigdask.randomization.panels import AnyPanel
from sigdask.randomization.panels.sums import Panel

MAX_INLINE_BYTES = 16 * 1024
"""Bytes up to which a packed panel travels inside its tasks; larger ones are sent to workers once."""


@dataclass(slots=True, eq=False)
class TransientBytes:
    """Bytes that a worker frees when it unpacks them, as dask keeps a task's arguments as long as its result.

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

    def take(self) -> bytes:
        """Return the bytes; on a worker they are freed, so that a second call fails."""
        content = self.content
        assert content is not None
        if self.arrived:
            self.content = None
        return content


@dataclass(frozen=True, slots=True, eq=False)
class WholePanel:
    """A panel that workers receive as a whole: its packed bytes if they are few, else a future that tasks share."""

    panel: Any

    def get_argument(self, _client: Any, _trials: TrialRange) -> Any:
        """Return what a task receives as its panel: the bytes or the future."""
        return self.panel


@dataclass(frozen=True, slots=True, eq=False)
class BlockedPanel:
    """A large panel, or a family of large panels, that workers hold in blocks of systems.

    Attributes
    ----------
    frame : future
        The panel without its contributions.
    blocks : list of list of future
        Of each panel.
    """

    frame: Any
    blocks: list[list[Any]]

    def get_argument(self, client: Any, trials: TrialRange) -> Any:
        """Return what a task receives as its panel: futures of all blocks' sums in the task's trials."""
        sums = [
            [client.submit(sum_block, block, trials, pure=False) for block in panel_blocks]
            for panel_blocks in self.blocks
        ]
        return [self.frame, sums]


def send_panels(cluster: Cluster, jobs: Sequence[Job]) -> dict[int, WholePanel | BlockedPanel]:
    """Send the panels of all jobs to workers, and return, by panel id, what tasks receive in place of the panel.

    Blocks that families share are sent once.
    """
    panels: dict[int, WholePanel | BlockedPanel] = {}
    blocks: dict[int, list[Any]] = {}
    for panel in {id(job.panel): job.panel for job in jobs}.values():
        if is_large(panel):
            for member in list_panels(panel):
                if id(member) not in blocks:
                    blocks[id(member)] = _send_blocks(cluster, split_panel(member))
            frame = _submit_panel(cluster, unpack_panel, build_frame(panel))
            panels[id(panel)] = BlockedPanel(frame, [blocks[id(member)] for member in list_panels(panel)])
            continue
        packed = _pack_panel(panel, code=not cluster.remote)
        large = len(packed) > MAX_INLINE_BYTES
        panels[id(panel)] = WholePanel(
            cluster.client.submit(unpack_panel, TransientBytes(packed), pure=False) if large else packed
        )
    return panels


def _send_blocks(cluster: Cluster, parts: Iterable[Panel]) -> list[Any]:
    """Send a panel's blocks to workers, and return their futures; few are in transit at once, to save memory."""
    from distributed import wait

    futures: list[Any] = []
    for part in parts:
        if len(futures) >= cluster.n_threads:
            wait(futures[-max(cluster.n_threads, 1)])
        futures.append(_submit_panel(cluster, build_block, part))
    return futures


def _submit_panel(cluster: Cluster, function: Callable[[TransientBytes], Any], panel: AnyPanel) -> Any:
    """Return the future of a function applied to a panel; dask repeats the task if its result is lost."""
    return cluster.client.submit(function, TransientBytes(_pack_panel(panel, code=not cluster.remote)), pure=False)


def build_block(packed: TransientBytes) -> SystemBlock:
    """Return the block of systems that a packed part of a panel describes."""
    part = unpack_panel(packed)
    assert isinstance(part, Panel)
    return SystemBlock.from_panel(part)


def sum_block(block: SystemBlock, trials: TrialRange) -> MovedSums:
    """Return the sums of a block's systems in the trials of a task."""
    return block.compute_sums(run=trials.run, first=trials.first, n_trials=trials.n_trials)


def _pack_panel(panel: AnyPanel, *, code: bool) -> bytes:
    """Return a panel as bytes that the scheduler does not unpickle; without `code`, only arrays and names.

    Before it, and read before it, go the driver's versions, and to workers of this machine the folders in which the
    driver finds modules.
    """
    if code:
        import cloudpickle

        return bytes(
            cloudpickle.dumps((versions.get_own_versions(), addresses.list_folders(), cloudpickle.dumps(panel)))
        )
    for name, function in iter_functions(panel):
        if not can_send_by_name(function):
            raise InputError(
                f"metric {name!r}: workers on other machines are sent the names of metrics, not code: define the "
                "function at the top of a module that can be imported there, and ask for it as MODULE:FUNCTION"
            )
    return pickle.dumps((versions.get_own_versions(), (), pickle.dumps(panel)))


def unpack_panel(panel: Any) -> AnyPanel:
    """Return the panel that a task receives: unpickled from bytes, or built from the sums of its blocks."""
    if isinstance(panel, list):
        return build_from_sums(*panel)
    if isinstance(panel, TransientBytes):
        panel = panel.take()
    if not isinstance(panel, bytes):
        ready: AnyPanel = panel
        return ready
    theirs, folders, packed = pickle.loads(panel)  # noqa: S301  # over the cluster's own, authenticated, connections
    versions.check_driver_versions(theirs)
    for folder in folders:
        addresses.add_folder(folder)
    result: AnyPanel = pickle.loads(packed)  # noqa: S301
    return result
