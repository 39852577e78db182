"""Panels as they travel to workers: packed once, opaque to the scheduler, no code for other machines."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from sigdask import addresses
from sigdask.clusters import Cluster, versions
from sigdask.errors import InputError
from sigdask.metrics.travel import functions_of, is_named
from sigdask.randomization.jobs import Job
from sigdask.randomization.panels import AnyPanel

SHIPPED_WITH_TASK = 16 * 1024
"""Bytes up to which a packed panel travels inside its tasks; larger ones are sent to workers once."""


def sent_once(cluster: Cluster, jobs: Sequence[Job]) -> dict[int, Any]:
    """Return each panel as tasks take it: packed where it is small, else a future of one that workers share."""
    sent: dict[int, Any] = {}
    for job in jobs:
        if id(job.panel) not in sent:
            packed = _packed(job.panel, code=not cluster.remote)
            large = len(packed) > SHIPPED_WITH_TASK
            sent[id(job.panel)] = cluster.client.submit(unpacked, packed, pure=False) if large else packed
    return sent


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


def unpacked(panel: AnyPanel | bytes) -> AnyPanel:
    """Return a panel that was packed by this program's own driver."""
    if not isinstance(panel, bytes):
        return panel
    theirs, folders, packed = pickle.loads(panel)  # noqa: S301  # over the cluster's own, authenticated, connections
    versions.require(theirs)
    for folder in folders:
        addresses.look_in(folder)
    found: AnyPanel = pickle.loads(packed)  # noqa: S301
    return found
