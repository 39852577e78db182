"""One case in a process of its own: CPU and wall seconds, memory beyond imports and data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

QUIET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def measure(work: str, tool: str, repeats: int = 15) -> dict:
    """Run one case in a fresh process; peers are held to one thread."""
    command = [sys.executable, "-m", "benchmarks.measure", work, tool, str(repeats)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **QUIET}, check=False)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def _run(work: str, tool: str, repeats: int) -> dict:
    import psutil

    from benchmarks.cases import CASES

    call, share = CASES[work][tool]()
    process = psutil.Process()
    before = process.memory_info().rss
    cpu, wall = [], []
    for _ in range(repeats):
        start_wall, start_cpu = time.perf_counter(), _cpu(process)
        call()
        wall.append((time.perf_counter() - start_wall) / share)
        cpu.append((_cpu(process) - start_cpu) / share)
        if sum(wall) * share > 5 and (len(wall) >= 3 or wall[-1] * share > 5):
            break
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    close = getattr(call, "close", None)
    found = {
        "cpu": sorted(cpu)[len(cpu) // 2],
        "wall": sorted(wall)[len(wall) // 2],
        "share": share,
        "memory": max(peak - before, 0),
    }
    if hasattr(call, "n_trials"):
        found["n_trials"] = call.n_trials
    if close:
        close()
    return found


def _cpu(process) -> float:
    """CPU seconds of this process and its children that live."""
    times = [child.cpu_times() for child in process.children(recursive=True)]
    return time.process_time() + sum(t.user + t.system for t in times)


if __name__ == "__main__":
    print(json.dumps(_run(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
