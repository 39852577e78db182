"""Measure driver and scheduler with 1,000 workers: `python -m benchmarks.scheduler [WORKERS [SECONDS,TASKS,LOST]]`.

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

from benchmarks.simulated import SimulatedPanel
from sigdask.execution.clusters import connect
from sigdask.execution.clusters.base import environment
from sigdask.execution.run import run_tasks, split_jobs
from sigdask.randomization.slabs import Job

N_WORKER_PROCESSES = 2
CASES = [(10.0, 10, 0.0), (10.0, 10, 0.1), (0.1, 10, 0.0), (0.1, 10, 0.1)]
"""Seconds a task, tasks a worker, the share of workers that are lost; at a hundredth of the time a scheduler saturates."""


def main():
    n_workers = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    cases = [tuple(map(float, sys.argv[2].split(",")))] if len(sys.argv) > 2 else CASES
    print("\n".join(format_table([simulate(n_workers, *case) for case in cases])))


def simulate(n_workers, seconds, tasks_a_worker, lost, n_pairs=1000, nbytes=200_000):
    """Run tasks of `seconds` on simulated workers, lose a share of the workers, and return the cost."""
    n_tasks = int(n_workers * tasks_a_worker)
    job = Job(SimulatedPanel(n_pairs, nbytes), n_tasks)
    with start_cluster(n_workers, seconds) as (address, scheduler, farms), connect(address) as cluster:
        assert cluster.n_threads == n_workers, cluster.n_threads
        tasks = split_jobs([job], [seconds], seconds)
        driver = psutil.Process()
        cpu_before = [_measure_cpu(p) for p in (driver, scheduler)]
        start, n_done, n_lost = time.time(), 0, int(lost * n_workers)
        for results in run_tasks(cluster, [job], tasks):
            n_done += sum(trials.n_trials for trials, _ in results)
            if n_lost and n_done > n_tasks / 3:
                for farm in farms:
                    print(f"lose {n_lost // len(farms)} {seconds}", file=farm.stdin, flush=True)
                n_lost = 0
        wall = time.time() - start
        assert n_done == n_tasks
        cpu = [_measure_cpu(p) - b for p, b in zip((driver, scheduler), cpu_before, strict=True)]
        memory = [p.memory_info().rss / 2**20 for p in (driver, scheduler)]
        lives = [life for farm in farms for life in json.loads(farm.communicate()[0].splitlines()[-1])]
    return {
        "workers": n_workers, "seconds": seconds, "tasks": n_tasks, "lost": int(lost * n_workers), "wall": wall,
        "driver": cpu[0] / n_tasks, "scheduler": cpu[1] / n_tasks, "memory": memory, **compute_idle(lives, start, start + wall),
    }  # fmt: skip


def compute_idle(lives, start, stop):
    """Return the idle share: in all, and from when all workers are busy until the last tasks start."""
    begun = float(np.quantile([min((a for a, _ in life["spans"]), default=stop) for life in lives], 0.99))
    late = max(begun, float(np.quantile([a for life in lives for a, _ in life["spans"]], 0.9)))
    return {
        "idle": 1 - _sum_busy(lives, start, stop) / _sum_alive(lives, start, stop),
        "steady": 1 - _sum_busy(lives, begun, late) / max(_sum_alive(lives, begun, late), 1e-9),
        "begun": begun - start,
    }


def _sum_busy(lives, start, stop):
    return sum(max(0.0, min(b, stop, life["end"] or stop) - max(a, start)) for life in lives for a, b in life["spans"])


def _sum_alive(lives, start, stop):
    return sum(max(0.0, min(life["end"] or stop, stop) - start) for life in lives)


@contextmanager
def start_cluster(n_workers, seconds):
    """Start a scheduler in its own process and simulated workers in others."""
    with ExitStack() as stack:
        env = {**environ, **environment()}
        port = _find_free_port()
        address = f"tcp://127.0.0.1:{port}"
        options = [
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--no-dashboard",
        ]
        scheduler = stack.enter_context(
            _start_process(["-m", "distributed.cli.dask_scheduler", *options], env=env, stderr=subprocess.DEVNULL)
        )
        time.sleep(3)
        share = [
            n_workers // N_WORKER_PROCESSES + (k < n_workers % N_WORKER_PROCESSES) for k in range(N_WORKER_PROCESSES)
        ]
        farms = [
            stack.enter_context(
                _start_process(["-m", "benchmarks.farm", address, str(n), str(seconds), str(k)], env=env)
            )
            for k, n in enumerate(share)
        ]
        for farm in farms:
            assert farm.stdout.readline() == "ready\n"
        yield address, psutil.Process(scheduler.pid), farms


@contextmanager
def _start_process(arguments, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, *arguments], **pipes, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _find_free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _measure_cpu(process):
    times = process.cpu_times()
    return times.user + times.system


def format_table(results):
    """Format the results as lines of Markdown."""
    return [
        "| workers | task s | tasks | lost | wall s | tasks/s | idle | idle while there is work for all | all had begun after s | driver ms a task | scheduler ms a task | driver MiB | scheduler MiB |",
        "|" + "---|" * 13,
        *(
            f"| {f['workers']} | {f['seconds']:g} | {f['tasks']} | {f['lost']} | {f['wall']:.1f} | {f['tasks'] / f['wall']:.0f} | "
            f"{f['idle']:.1%} | {f['steady']:.1%} | {f['begun']:.1f} | {1e3 * f['driver']:.2f} | {1e3 * f['scheduler']:.2f} | "
            f"{f['memory'][0]:.0f} | {f['memory'][1]:.0f} |"
            for f in results
        ),
    ]


if __name__ == "__main__":
    main()
