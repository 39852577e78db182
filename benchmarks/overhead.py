"""What dask costs beside the counting: `python -m benchmarks.overhead [ROUNDS [TRIALS]]`.

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
from benchmarks.cases import _panel
from benchmarks.measure import _cpu
from sigdask.execution.clusters import connect
from sigdask.execution.run import count_jobs
from sigdask.randomization.jobs import Job

WAYS = ("1 thread", "2 threads", "2 processes", "2 workers")


def main():
    n_rounds, n_trials = (int(a) for a in (sys.argv[1:] + ["5", str(2**29)][len(sys.argv) - 1 :]))
    found = [{way: spent(way, n_trials) for way in WAYS} for _ in range(n_rounds)]
    print("\n".join(table(found, n_trials)))


def spent(way, n_trials):
    """CPU and wall seconds of the trials, and CPU seconds of what had to be started before."""
    process, panel = psutil.Process(), _warm()
    if way == "2 processes":
        return _by_hand(n_trials // 2)
    before = _cpu(process)
    with connect("local" if way == "2 workers" else "threads", workers=int(way[0])) as cluster:
        if cluster.client is not None:
            cluster.client.run(_warm)  # every worker imports and loads kernels once, which is starting
        count_jobs([Job(panel, 100_000)], cluster=cluster)
        start, cpu = time.perf_counter(), _cpu(process)
        count_jobs([Job(panel, n_trials)], cluster=cluster)
        return _cpu(process) - cpu, time.perf_counter() - start, cpu - before


def _by_hand(n_trials):
    """Two processes that count side by side and know nothing of each other."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.overhead", "count", str(n_trials)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    cpu = sum(float(each.communicate()[0]) for each in both)
    return cpu, time.perf_counter() - start, 0.0


def _warm():
    panel = _panel(data.scores(1000))
    panel.tally(n_trials=100_000)
    return panel


def _count(n_trials):
    panel = _warm()
    start = time.process_time()
    panel.tally(n_trials=n_trials)
    print(time.process_time() - start)


def table(found, n_trials):
    """The medians as lines of Markdown; what is beyond is of each round, so that a busy machine bears on both."""

    def beyond(way, other):
        return f"{100 * (median(r[way][0] / r[other][0] for r in found) - 1):+.1f} %"

    lines = [
        f"{n_trials:,} trials of a pair of 1,000 items, medians of {len(found)} rounds:",
        "",
        "| where | CPU s | wall s | CPU s to start | beyond one thread | beyond two threads | beyond two processes |",
        "|---|---|---|---|---|---|---|",
    ]
    for way in WAYS:
        cpu, wall, started = (median(r[way][k] for r in found) for k in range(3))
        others = " | ".join(beyond(way, other) for other in WAYS[:3])
        lines.append(f"| {way} | {cpu:.1f} | {wall:.1f} | {started:.1f} | {others} |")
    return lines


if __name__ == "__main__":
    _count(int(sys.argv[2])) if sys.argv[1:2] == ["count"] else main()
