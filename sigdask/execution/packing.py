"""Packing of panels for workers: packed once, opaque to the scheduler, no code for other machines.

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
    """Bytes that are freed when unpacked; workers keep arguments as long as a task's result.

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
        """Return the bytes; on a worker this works only once."""
        content = self.content
        assert content is not None
        if self.arrived:
            self.content = None
        return content


@dataclass(frozen=True, slots=True, eq=False)
class WholePanel:
    """A panel that workers get whole: packed if it is small, else a future that they share."""

    panel: Any

    def get_argument(self, _client: Any, _trials: TrialRange) -> Any:
        """Return the panel as an argument of a task."""
        return self.panel


@dataclass(frozen=True, slots=True, eq=False)
class BlockedPanel:
    """A large panel, or a family of large panels, in blocks of systems.

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
        """Return the argument of a task: futures of the sums of all blocks in its trials."""
        sums = [
            [client.submit(sum_block, block, trials, pure=False) for block in panel_blocks]
            for panel_blocks in self.blocks
        ]
        return [self.frame, sums]


def send_panels(cluster: Cluster, jobs: Sequence[Job]) -> dict[int, WholePanel | BlockedPanel]:
    """Send each panel and return its form for tasks; shared blocks of families are sent once."""
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
    """Send blocks, at most one per thread at a time, because packed blocks take workers' memory."""
    from distributed import wait

    futures: list[Any] = []
    for part in parts:
        if len(futures) >= cluster.n_threads:
            wait(futures[-max(cluster.n_threads, 1)])
        futures.append(_submit_panel(cluster, build_block, part))
    return futures


def _submit_panel(cluster: Cluster, function: Callable[[TransientBytes], Any], panel: AnyPanel) -> Any:
    """Return the future of a function of a panel; as a task, it is computed again if it is lost."""
    return cluster.client.submit(function, TransientBytes(_pack_panel(panel, code=not cluster.remote)), pure=False)


def build_block(packed: TransientBytes) -> SystemBlock:
    """Build a block of systems from a packed part of a panel."""
    part = unpack_panel(packed)
    assert isinstance(part, Panel)
    return SystemBlock.from_panel(part)


def sum_block(block: SystemBlock, trials: TrialRange) -> MovedSums:
    """Return the sums of a block in the trials of a task."""
    return block.compute_sums(run=trials.run, first=trials.first, n_trials=trials.n_trials)


def _pack_panel(panel: AnyPanel, *, code: bool) -> bytes:
    """Pickle a panel, opaque to the scheduler; without `code`, as arrays and names only.

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
    """Return a panel that this program's driver packed, or one that counts from sums of its blocks."""
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
