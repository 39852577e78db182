"""Measure one case in its own process: CPU and wall seconds, and memory beyond imports and data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def measure(work: str, tool: str, repeats: int = 15) -> dict:
    """Run one case in a new process; other tools are limited to one thread."""
    command = [sys.executable, "-m", "benchmarks.measure", work, tool, str(repeats)]
    completed = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ONE_THREAD}, check=False)
    if completed.returncode:
        return {"error": (completed.stderr.strip().splitlines() or ["failed"])[-1]}
    return json.loads(completed.stdout.splitlines()[-1])


def _run_case(work: str, tool: str, repeats: int) -> dict:
    import psutil

    from benchmarks.cases import CASES

    call, share = CASES[work][tool]()
    process = psutil.Process()
    memory_before = process.memory_info().rss
    cpu, wall = [], []
    for _ in range(repeats):
        start_wall, start_cpu = time.perf_counter(), _measure_cpu(process)
        call()
        wall.append((time.perf_counter() - start_wall) / share)
        cpu.append((_measure_cpu(process) - start_cpu) / share)
        if sum(wall) * share > 5 and (len(wall) >= 3 or wall[-1] * share > 5):
            break
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    close = getattr(call, "close", None)
    results = {
        "cpu": sorted(cpu)[len(cpu) // 2],
        "wall": sorted(wall)[len(wall) // 2],
        "share": share,
        "memory": max(peak - memory_before, 0),
    }
    if hasattr(call, "n_trials"):
        results["n_trials"] = call.n_trials
    if close:
        close()
    return results


def _measure_cpu(process) -> float:
    """Return the CPU seconds of this process and its running children."""
    times = [child.cpu_times() for child in process.children(recursive=True)]
    return time.process_time() + sum(t.user + t.system for t in times)


if __name__ == "__main__":
    print(json.dumps(_run_case(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
