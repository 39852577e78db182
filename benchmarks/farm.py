"""Run many real dask workers in one process; their tasks take a random time and no CPU.

`python -m benchmarks.farm SCHEDULER N_WORKERS SECONDS SEED` runs until its input ends, and then prints what its workers did.
A line `lose N SECONDS` on its input cuts N of them off, one after the other, within that time.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import tempfile
from concurrent.futures import Executor, Future

import dask
import numpy as np

from benchmarks.simulated import SimulatedPanel
from sigdask.execution.clusters.base import SETTINGS

WORKER_SETTINGS = {
    "distributed.admin.tick.interval": "60s",
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.worker.http.routes": [],
}
"""What hundreds of workers in one process need not do hundreds of times."""


class SimulatedExecutor(Executor):
    """Executor that counts at once and answers after a random time."""

    def __init__(self, rng, seconds):
        self.rng, self.seconds, self.spans = rng, seconds, []

    def submit(self, run, *arguments):
        future, result = Future(), run(*arguments)
        if SimulatedPanel.is_result(result.get("result")):
            seconds = self.seconds * self.rng.lognormal(-0.02, 0.2)  # of mean 1
            result["stop"] = result["start"] + seconds
            self.spans.append((result["start"], result["stop"]))
            asyncio.get_running_loop().call_later(seconds, _answer, future, result)
        else:
            future.set_result(result)
        return future


def _answer(future, result):
    if not future.cancelled():
        future.set_result(result)


async def run_workers(address, n_workers, seconds, seed):
    """Start workers, let them work until standard input ends, and print their busy times."""
    from distributed import Worker

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    rng = np.random.default_rng(seed)
    executors = [SimulatedExecutor(rng, seconds) for _ in range(n_workers)]
    with tempfile.TemporaryDirectory() as folder:
        options = {"nthreads": 1, "host": "127.0.0.1", "memory_limit": 0, "local_directory": folder}
        workers = [
            Worker(address, executor={"default": executor}, name=f"{seed}-{k}", **options)
            for k, executor in enumerate(executors)
        ]
        for start in range(0, n_workers, 20):
            await asyncio.gather(*workers[start : start + 20])
        print("ready", flush=True)
        ends, losing = {}, None
        while line := await asyncio.to_thread(sys.stdin.readline):
            _, n_lost, within = line.split()
            losing = asyncio.create_task(_cut_off_workers(workers, int(n_lost), float(within), ends))
        if losing is not None:
            await losing
        lives = [{"spans": executor.spans, "end": ends.get(k)} for k, executor in enumerate(executors)]
    print(json.dumps(lives), flush=True)
    os._exit(0)  # hundreds of workers would take their leave one by one


async def _cut_off_workers(workers, n_lost, within, ends):
    """Cut workers off without a message to the scheduler, as if their hosts had failed."""
    from distributed.metrics import time

    for k in range(n_lost):
        workers[k].batched_stream.comm.abort()
        ends[k] = time()
        await asyncio.sleep(within / n_lost)


def main():
    address, n_workers, seconds, seed = sys.argv[1:]
    with dask.config.set({**SETTINGS, **WORKER_SETTINGS}):
        asyncio.run(run_workers(address, int(n_workers), float(seconds), int(seed)))


if __name__ == "__main__":
    main()
