"""Minutes of random kills: nothing lost, no count changed, memory of scheduler and driver flat.

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
from cluster.hosts import DASK, answers, kill, start, tls
from cluster.slurm import free_port, wait
from cluster.work import at_once, counted, exact_jobs, slow_jobs

from sigdask.execution.clusters import connect, parse_description
from sigdask.execution.clusters.settings import environment

MINUTES = float(os.environ.get("SIGDASK_SOAK_MINUTES", "3"))
N_WORKERS = 3
MEGABYTE = 2**20


class Chaos(threading.Thread):
    """Kills a worker, a nanny with its worker, or stops both for 20 s, every few seconds; starts what is gone."""

    def __init__(self, begin, seed):
        super().__init__(daemon=True)
        self.begin = begin
        self.random = random.Random(seed)
        self.workers = [begin(k) for k in range(N_WORKERS)]
        self.done = {"worker killed": 0, "nanny and worker killed": 0, "both stopped for 20 s": 0}
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(self.random.uniform(2, 8)):
            k = self.random.randrange(N_WORKERS)
            what = self.random.choices(list(self.done), [6, 3, 1])[0]
            self.done[what] += 1
            if what == "worker killed":
                for child in psutil.Process(self.workers[k].pid).children(recursive=True):
                    if "spawn_main" in " ".join(child.cmdline()):
                        child.kill()
            elif what == "nanny and worker killed":
                kill(self.workers[k])
                self.workers[k] = self.begin(k)
            else:
                kill(self.workers[k], signal.SIGSTOP)
                self.over.wait(20)
                kill(self.workers[k], signal.SIGCONT)
            self.workers = [w if w.poll() is None else self.begin(j) for j, w in enumerate(self.workers)]


@pytest.mark.chaos
@pytest.mark.slow
def test_minutes_of_kills_lose_nothing_and_leak_nothing(tmp_path, certificates, monkeypatch):
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    port = free_port()
    address = f"tls://127.0.0.1:{port}"
    local = ["--host", "127.0.0.1", "--protocol", "tls", "--dashboard-address", "127.0.0.1:0"]
    scheduler = start(DASK, "scheduler", *local, "--port", port, "--preload", "sigdask.execution.clusters.hung_workers",
                      *tls(certificates, "scheduler"), log=tmp_path / "scheduler.log")  # fmt: skip
    wait(lambda: answers(port), "scheduler", 30)

    def begin(k):
        options = [*local, "--nthreads", "1", "--no-dashboard", *tls(certificates, "worker")]
        return start(DASK, "worker", address, *options, log=tmp_path / f"worker-{k}.log")

    jobs = [*exact_jobs(400_000), *slow_jobs(2500)]
    want = counted([*exact_jobs(400_000), *slow_jobs(2500, function=at_once)], cluster="none")
    described = parse_description({"class": "address", "wait": 60, "options": {"address": address},
                          "security": {"folder": str(certificates.ca.parent)}}, source="soak")  # fmt: skip
    chaos = Chaos(begin, seed=0)
    samples, n_rounds = [], 0
    driver, its = psutil.Process(), psutil.Process(scheduler.pid)
    try:
        with connect(described) as cluster:
            counted(jobs, cluster=cluster)
            chaos.start()
            end = time.monotonic() + 60 * MINUTES
            while time.monotonic() < end:
                assert counted(jobs, cluster=cluster) == want
                n_rounds += 1
                gc.collect()
                samples.append((driver.memory_info().rss, its.memory_info().rss))
            chaos.over.set()
            chaos.join()
    finally:
        for process in [*chaos.workers, scheduler]:
            kill(process, signal.SIGCONT)
            kill(process)
    third = len(samples) // 3
    grown = {}
    for who, sizes in zip(("driver", "scheduler"), zip(*samples, strict=True), strict=True):
        middle, last = (statistics.median(part) / MEGABYTE for part in (sizes[third : 2 * third], sizes[-third:]))
        grown[who] = last - middle
        print(
            f"{who}: {sizes[0] / MEGABYTE:.0f} MiB at first, {middle:.0f} in the middle third, {last:.0f} in the last"
        )
    n_trials = n_rounds * sum(job.n_trials for job in jobs)
    print(f"{MINUTES:g} minutes: {n_rounds} rounds, {n_trials:,} trials, {chaos.done}; counts equal in every round")
    assert n_rounds >= 3
    assert max(grown.values()) < 8
