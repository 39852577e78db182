"""What 1,000 workers ask of driver and scheduler: `python -m benchmarks.scheduler [WORKERS [SECONDS,TASKS,LOST]]`.

Driver and scheduler are the real ones, each in a process of its own; the workers are dask's too, hundreds to a process,
and answer after a drawn time. The same tasks at full length and shorter ones: what a scheduler bears.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from os import environ

import numpy as np
import psutil

from benchmarks.simulated import Waited
from sigdask.execution.clusters import connect
from sigdask.execution.clusters.settings import environment
from sigdask.execution.run import run_tasks
from sigdask.execution.tasks import split_jobs
from sigdask.randomization.jobs import Job

N_FARMS = 2
CASES = [(10.0, 10, 0.0), (10.0, 10, 0.1), (0.1, 10, 0.0), (0.1, 10, 0.1)]
"""Seconds a task, tasks a worker, the share of workers that are lost; at a hundredth of the time a scheduler saturates."""


def main():
    n_workers = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    cases = [tuple(map(float, sys.argv[2].split(",")))] if len(sys.argv) > 2 else CASES
    print("\n".join(table([simulate(n_workers, *case) for case in cases])))


def simulate(n_workers, seconds, tasks_a_worker, lost, n_pairs=1000, nbytes=200_000):
    """Count tasks of `seconds` on simulated workers, of which a share is lost on the way; return what it took."""
    n_tasks = int(n_workers * tasks_a_worker)
    job = Job(Waited(n_pairs, nbytes), n_tasks)
    with cluster_of(n_workers, seconds) as (address, scheduler, farms), connect(address) as cluster:
        assert cluster.n_threads == n_workers, cluster.n_threads
        tasks = split_jobs([job], [seconds], seconds)
        driver = psutil.Process()
        before = [_cpu(p) for p in (driver, scheduler)]
        start, done, n_lost = time.time(), 0, int(lost * n_workers)
        for counted in run_tasks(cluster, [job], tasks):
            done += sum(trials.n_trials for trials, _ in counted)
            if n_lost and done > n_tasks / 3:
                for farm in farms:
                    print(f"lose {n_lost // len(farms)} {seconds}", file=farm.stdin, flush=True)
                n_lost = 0
        wall = time.time() - start
        assert done == n_tasks
        cpu = [_cpu(p) - b for p, b in zip((driver, scheduler), before, strict=True)]
        memory = [p.memory_info().rss / 2**20 for p in (driver, scheduler)]
        lives = [life for farm in farms for life in json.loads(farm.communicate()[0].splitlines()[-1])]
    return {
        "workers": n_workers, "seconds": seconds, "tasks": n_tasks, "lost": int(lost * n_workers), "wall": wall,
        "driver": cpu[0] / n_tasks, "scheduler": cpu[1] / n_tasks, "memory": memory, **idle(lives, start, start + wall),
    }  # fmt: skip


def idle(lives, start, stop):
    """Return the share of time in which workers had nothing to do: in all, and from when all had begun to the last tasks' start."""
    begun = float(np.quantile([min((a for a, _ in life["spans"]), default=stop) for life in lives], 0.99))
    late = max(begun, float(np.quantile([a for life in lives for a, _ in life["spans"]], 0.9)))
    return {
        "idle": 1 - _busy(lives, start, stop) / _alive(lives, start, stop),
        "steady": 1 - _busy(lives, begun, late) / max(_alive(lives, begun, late), 1e-9),
        "begun": begun - start,
    }


def _busy(lives, start, stop):
    return sum(max(0.0, min(b, stop, life["end"] or stop) - max(a, start)) for life in lives for a, b in life["spans"])


def _alive(lives, start, stop):
    return sum(max(0.0, min(life["end"] or stop, stop) - start) for life in lives)


@contextmanager
def cluster_of(n_workers, seconds):
    """A scheduler in a process of its own with simulated workers in some others."""
    with ExitStack() as stack:
        env = {**environ, **environment()}
        port = _free_port()
        address = f"tcp://127.0.0.1:{port}"
        at = [
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--no-dashboard",
            "--preload",
            "sigdask.execution.clusters.hung_workers",
        ]
        scheduler = stack.enter_context(
            _process(["-m", "distributed.cli.dask_scheduler", *at], env=env, stderr=subprocess.DEVNULL)
        )
        time.sleep(3)
        share = [n_workers // N_FARMS + (k < n_workers % N_FARMS) for k in range(N_FARMS)]
        farms = [
            stack.enter_context(_process(["-m", "benchmarks.farm", address, str(n), str(seconds), str(k)], env=env))
            for k, n in enumerate(share)
        ]
        for farm in farms:
            assert farm.stdout.readline() == "ready\n"
        yield address, psutil.Process(scheduler.pid), farms


@contextmanager
def _process(arguments, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, *arguments], **pipes, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _cpu(process):
    times = process.cpu_times()
    return times.user + times.system


def table(found):
    """The results as lines of Markdown."""
    return [
        "| workers | task s | tasks | lost | wall s | tasks/s | idle | idle while there is work for all | all had begun after s | driver ms a task | scheduler ms a task | driver MiB | scheduler MiB |",
        "|" + "---|" * 13,
        *(
            f"| {f['workers']} | {f['seconds']:g} | {f['tasks']} | {f['lost']} | {f['wall']:.1f} | {f['tasks'] / f['wall']:.0f} | "
            f"{f['idle']:.1%} | {f['steady']:.1%} | {f['begun']:.1f} | {1e3 * f['driver']:.2f} | {1e3 * f['scheduler']:.2f} | "
            f"{f['memory'][0]:.0f} | {f['memory'][1]:.0f} |"
            for f in found
        ),
    ]


if __name__ == "__main__":
    main()
