"""Measure the cost of dask in addition to counting: `python -m benchmarks.overhead [ROUNDS [TRIALS]]`.

The same trials on one thread, on two threads and two processes without dask, and on two workers, turn by turn: what two
busy cores cost each other is told from what dask adds. CPU seconds are of all processes; starting is told apart.
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

import psutil

from benchmarks import data
from benchmarks.cases import _build_panel
from benchmarks.measure import measure_cpu
from sigdask.execution.clusters import connect
from sigdask.execution.run import count_jobs
from sigdask.randomization.slabs import Job

SETUPS = ("1 thread", "2 threads", "2 processes", "2 workers")


def main():
    n_rounds, n_trials = (int(a) for a in (sys.argv[1:] + ["5", str(2**29)][len(sys.argv) - 1 :]))
    rounds = [{setup: measure_setup(setup, n_trials) for setup in SETUPS} for _ in range(n_rounds)]
    print("\n".join(format_table(rounds, n_trials)))


def measure_setup(setup, n_trials):
    """Return CPU and wall seconds of the trials, and CPU seconds of the start-up."""
    process, panel = psutil.Process(), _prepare_panel()
    if setup == "2 processes":
        return _count_in_processes(n_trials // 2)
    cpu_before = measure_cpu(process)
    with connect("local" if setup == "2 workers" else "threads", workers=int(setup[0])) as cluster:
        if cluster.client is not None:
            cluster.client.run(_prepare_panel)  # every worker imports and loads kernels once, which is starting
        count_jobs([Job(panel, 100_000)], cluster=cluster)
        start, cpu = time.perf_counter(), measure_cpu(process)
        count_jobs([Job(panel, n_trials)], cluster=cluster)
        return measure_cpu(process) - cpu, time.perf_counter() - start, cpu - cpu_before


def _count_in_processes(n_trials):
    """Count in two independent processes at the same time."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.overhead", "count", str(n_trials)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    cpu = sum(float(process.communicate()[0]) for process in processes)
    return cpu, time.perf_counter() - start, 0.0


def _prepare_panel():
    panel = _build_panel(data.draw_scores(1000))
    panel.tally(n_trials=100_000)
    return panel


def _count_trials(n_trials):
    panel = _prepare_panel()
    start = time.process_time()
    panel.tally(n_trials=n_trials)
    print(time.process_time() - start)


def format_table(rounds, n_trials):
    """Format the medians as lines of Markdown; overheads are computed within each round."""

    def format_overhead(setup, reference):
        return f"{100 * (median(r[setup][0] / r[reference][0] for r in rounds) - 1):+.1f} %"

    lines = [
        f"{n_trials:,} trials of a pair of 1,000 items, medians of {len(rounds)} rounds:",
        "",
        "| where | CPU s | wall s | CPU s to start | beyond one thread | beyond two threads | beyond two processes |",
        "|---|---|---|---|---|---|---|",
    ]
    for setup in SETUPS:
        cpu, wall, started = (median(r[setup][k] for r in rounds) for k in range(3))
        overheads = " | ".join(format_overhead(setup, reference) for reference in SETUPS[:3])
        lines.append(f"| {setup} | {cpu:.1f} | {wall:.1f} | {started:.1f} | {overheads} |")
    return lines


if __name__ == "__main__":
    _count_trials(int(sys.argv[2])) if sys.argv[1:2] == ["count"] else main()
