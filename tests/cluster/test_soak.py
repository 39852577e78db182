"""Soak test: minutes of random kills lose nothing, change no count and leak no memory.

Three minutes by default; `SIGDASK_SOAK_MINUTES=30 pytest -s tests/cluster/test_soak.py` by hand.
"""

import gc
import os
import random
import signal
import statistics
import threading
import time

import psutil
import pytest
from cluster.hosts import DASK, is_answering, kill, list_tls_options, start
from cluster.slurm import find_free_port, wait_until
from cluster.work import counted, exact_jobs, fast_sum, slow_jobs

from sigdask.execution.clusters import connect
from sigdask.execution.clusters.base import environment
from sigdask.execution.clusters.description import parse_description

MINUTES = float(os.environ.get("SIGDASK_SOAK_MINUTES", "3"))
N_WORKERS = 3
MEGABYTE = 2**20


class FaultInjector(threading.Thread):
    """Kills a worker, a nanny and its worker, or stops both for 20 s; restarts what has died."""

    def __init__(self, start_worker, seed):
        super().__init__(daemon=True)
        self.start_worker = start_worker
        self.random = random.Random(seed)
        self.workers = [start_worker(k) for k in range(N_WORKERS)]
        self.n_faults = {"worker killed": 0, "nanny and worker killed": 0, "both stopped for 20 s": 0}
        self.stop_event = threading.Event()

    def run(self):
        while not self.stop_event.wait(self.random.uniform(2, 8)):
            k = self.random.randrange(N_WORKERS)
            fault = self.random.choices(list(self.n_faults), [6, 3, 1])[0]
            self.n_faults[fault] += 1
            if fault == "worker killed":
                for child in psutil.Process(self.workers[k].pid).children(recursive=True):
                    if "spawn_main" in " ".join(child.cmdline()):
                        child.kill()
            elif fault == "nanny and worker killed":
                kill(self.workers[k])
                self.workers[k] = self.start_worker(k)
            else:
                kill(self.workers[k], signal.SIGSTOP)
                self.stop_event.wait(20)
                kill(self.workers[k], signal.SIGCONT)
            self.workers = [w if w.poll() is None else self.start_worker(j) for j, w in enumerate(self.workers)]


@pytest.mark.chaos
@pytest.mark.slow
def test_minutes_of_kills_lose_nothing_and_leak_nothing(tmp_path, certificates, monkeypatch):
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    port = find_free_port()
    address = f"tls://127.0.0.1:{port}"
    local = ["--host", "127.0.0.1", "--protocol", "tls", "--dashboard-address", "127.0.0.1:0"]
    scheduler = start(DASK, "scheduler", *local, "--port", port, *list_tls_options(certificates), log=tmp_path / "scheduler.log")  # fmt: skip
    wait_until(lambda: is_answering(port), "scheduler", 300)

    def begin(k):
        options = [*local, "--nthreads", "1", "--no-dashboard", *list_tls_options(certificates)]
        return start(DASK, "worker", address, *options, log=tmp_path / f"worker-{k}.log")

    jobs = [*exact_jobs(400_000), *slow_jobs(2500)]
    want = counted([*exact_jobs(400_000), *slow_jobs(2500, function=fast_sum)], cluster="none")
    described = parse_description({"class": "address", "wait": 60, "options": {"address": address},
                          "certificates": certificates}, source="soak")  # fmt: skip
    chaos = FaultInjector(begin, seed=0)
    samples, n_rounds = [], 0
    driver, its = psutil.Process(), psutil.Process(scheduler.pid)
    try:
        with connect(described) as cluster:
            counted(jobs, cluster=cluster)
            chaos.start()
            end = time.monotonic() + 60 * MINUTES
            while time.monotonic() < end or n_rounds < 3:
                assert counted(jobs, cluster=cluster) == want
                n_rounds += 1
                gc.collect()
                samples.append((driver.memory_info().rss, its.memory_info().rss))
            chaos.stop_event.set()
            chaos.join()
    finally:
        for process in [*chaos.workers, scheduler]:
            kill(process, signal.SIGCONT)
            kill(process)
    third = len(samples) // 3
    grown = {}
    for role, sizes in zip(("driver", "scheduler"), zip(*samples, strict=True), strict=True):
        middle_size, last_size = (
            statistics.median(sample) / MEGABYTE for sample in (sizes[third : 2 * third], sizes[-third:])
        )
        grown[role] = last_size - middle_size
        print(
            f"{role}: {sizes[0] / MEGABYTE:.0f} MiB at first, {middle_size:.0f} in the middle third, {last_size:.0f} in the last"
        )
    n_trials = n_rounds * sum(job.n_trials for job in jobs)
    print(f"{MINUTES:g} minutes: {n_rounds} rounds, {n_trials:,} trials, {chaos.n_faults}; counts equal in every round")
    assert max(grown.values()) < 8
