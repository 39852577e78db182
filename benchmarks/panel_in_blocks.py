"""Count a 2 GB panel on workers of 700 MB: `python -m benchmarks.panel_in_blocks [systems items workers trials]`.

Precision of systems that count hits and answers, all pairs, on dask workers with a memory limit each. Prints CPU
seconds of the driver and of the workers, their peak memory, and whether some pairs, counted apart, agree.
"""

from __future__ import annotations

import re
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

MEMORY_LIMIT = "700MB"
PARAMETERS = (1000, 10**6, 7, 2048)
N_CHECKED = 5


def build_panel(n_systems, n_items):
    from sigdask.counts import Counts
    from sigdask.metrics.base import BoundMetric
    from sigdask.metrics.forms import Ratios
    from sigdask.randomization.panels.build import PanelGroups
    from sigdask.randomization.panels.sums import SwapUnits

    rng = np.random.default_rng(0)
    answers, hits = (np.empty((n_items, n_systems), np.int8, order="F") for _ in range(2))
    for s in range(n_systems):
        answers[:, s] = rng.integers(1, 4, n_items, dtype=np.int8)
        hits[:, s] = rng.integers(0, answers[:, s] + 1, dtype=np.int8)
    counts = Counts(tuple(f"s{k:04}" for k in range(n_systems)), {"hits": hits, "answers": answers}, n_items)
    precision = BoundMetric("precision", ("hits", "answers"), Ratios(((1, 0),), ((0, 1),)))
    pairs = np.column_stack(np.triu_indices(n_systems, 1))
    [placed] = PanelGroups.from_metrics(counts, [precision], pairs).build(SwapUnits.from_counts(counts, 0))
    return placed.panel


def measure_usage():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    status = Path("/proc/self/status").read_text()  # ru_maxrss is that of the process that this one was started by
    return round(usage.ru_utime + usage.ru_stime, 1), int(re.search(r"VmHWM:\s*(\d+)", status)[1]) // 1024


def main():
    from sigdask.execution.clusters import connect
    from sigdask.execution.run import count_jobs
    from sigdask.randomization.slabs import Job

    n_systems, n_items, n_workers, n_trials = [int(a) for a in sys.argv[1:]] or PARAMETERS
    panel = build_panel(n_systems, n_items)
    print(
        f"panel of {panel.nbytes / 1e9:.2f} GB, {len(panel.pairs):,} pairs; driver so far (s, MiB): {measure_usage()}"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.toml"
        file.write_text(f'class = "local"\nworkers = {n_workers}\n[options]\nmemory_limit = "{MEMORY_LIMIT}"\n')
        with connect(str(file)) as cluster:
            start = time.perf_counter()
            [tally] = count_jobs([Job(panel, n_trials)], cluster=cluster)
            seconds = time.perf_counter() - start
            worker_usage = cluster.client.run(measure_usage)
    print(
        f"counted {n_trials:,} trials in {seconds:.0f} s; driver: {measure_usage()}; workers: {sorted(worker_usage.values())}"
    )
    rows = np.linspace(0, len(panel.pairs) - 1, N_CHECKED).astype(int)
    separate = panel.select(rows.tolist()).tally(n_trials=n_trials)
    assert (separate.counts == tally.counts[rows]).all()
    print(f"{N_CHECKED} pairs counted apart: the same")


if __name__ == "__main__":
    main()
