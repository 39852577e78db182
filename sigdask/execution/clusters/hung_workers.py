"""A scheduler plugin that removes hung workers earlier than dask does; a scheduler can also preload it.

`dask scheduler --preload sigdask.execution.clusters.hung_workers` loads it.

dask looks for silent workers every worker-ttl, and then gives their nannies 30 s to restart them. If a whole host
hangs, the nanny hangs too, and tasks wait for a minute (53 s were measured). A worker that recovers is told that the
scheduler has removed it, and restarts.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import dask
from dask.utils import parse_timedelta
from distributed import SchedulerPlugin
from distributed.metrics import time

CHECK_SECONDS = 3.0


class HungWorkers(SchedulerPlugin):  # type: ignore[misc]
    """Removes workers that have been silent for longer than worker-ttl."""

    name = "sigdask-hung-workers"

    async def start(self, scheduler: Any) -> None:
        """Start to check the workers regularly."""
        from tornado.ioloop import PeriodicCallback

        callback = PeriodicCallback(partial(remove_silent, scheduler), CHECK_SECONDS * 1000)
        scheduler.periodic_callbacks[self.name] = callback
        callback.start()


async def remove_silent(scheduler: Any) -> None:
    """Remove from the scheduler the workers that have not reported for too long."""
    from distributed.scheduler import heartbeat_interval  # seconds between a worker's reports

    limit = parse_timedelta(dask.config.get("distributed.scheduler.worker-ttl") or "15s")
    for worker in list(scheduler.workers.values()):
        if time() - worker.last_seen > max(limit, 10 * float(heartbeat_interval(len(scheduler.workers)))):
            await scheduler.remove_worker(worker.address, stimulus_id=f"sigdask-hung-{time()}")


async def dask_setup(scheduler: Any) -> None:
    """Add the plugin to a scheduler that starts with this module preloaded; dask calls this function."""
    plugin = HungWorkers()
    scheduler.add_plugin(plugin)
    await plugin.start(scheduler)
