"""Drop hung workers from a scheduler soon: a plugin that a scheduler can also preload.

`dask scheduler --preload sigdask.execution.clusters.hung_workers` loads it.

dask looks for silent workers every worker-ttl, and then gives their nannies 30 s to restart them;
on a host that hangs as a whole the nanny hangs too, and tasks wait for a minute (measured: 53 s).
A worker that wakes up again is told that it is no longer known and starts anew.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import dask
from dask.utils import parse_timedelta
from distributed import SchedulerPlugin
from distributed.metrics import time

EVERY = 3.0
"""Seconds between looks."""


class HungWorkers(SchedulerPlugin):  # type: ignore[misc]
    """Removes workers that have not been heard of for worker-ttl."""

    name = "sigdask-hung-workers"

    async def start(self, scheduler: Any) -> None:
        """Look at the workers from now on."""
        from tornado.ioloop import PeriodicCallback

        looking = PeriodicCallback(partial(drop, scheduler), EVERY * 1000)
        scheduler.periodic_callbacks[self.name] = looking
        looking.start()


async def drop(scheduler: Any) -> None:
    """Remove the workers that are silent."""
    longest = parse_timedelta(dask.config.get("distributed.scheduler.worker-ttl") or "15s")
    for worker in list(scheduler.workers.values()):
        if time() - worker.last_seen > max(longest, 10 * scheduler_interval(len(scheduler.workers))):
            await scheduler.remove_worker(worker.address, stimulus_id=f"sigdask-hung-{time()}")


def scheduler_interval(n_workers: int) -> float:
    """Return how often workers send a heartbeat, in seconds."""
    from distributed.scheduler import heartbeat_interval

    return float(heartbeat_interval(n_workers))


async def dask_setup(scheduler: Any) -> None:
    """Preload: what dask calls when a scheduler starts."""
    plugin = HungWorkers()
    scheduler.add_plugin(plugin)
    await plugin.start(scheduler)
