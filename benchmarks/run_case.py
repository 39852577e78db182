"""Run one case in this process and print its measurements: `python -m benchmarks.run_case WORK TOOL REPEATS`.

`benchmarks.measure` starts it for each case.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import psutil

from benchmarks.cases import CASES
from benchmarks.measure import measure_cpu


def run_case(work: str, tool: str, repeats: int) -> dict:
    call, share = CASES[work][tool]()
    process = psutil.Process()
    memory_before = process.memory_info().rss
    cpu, wall = [], []
    for _ in range(repeats):
        start_wall, start_cpu = time.perf_counter(), measure_cpu(process)
        call()
        wall.append((time.perf_counter() - start_wall) / share)
        cpu.append((measure_cpu(process) - start_cpu) / share)
        if sum(wall) * share > 5 and (len(wall) >= 3 or wall[-1] * share > 5):
            break
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


if __name__ == "__main__":
    print(json.dumps(run_case(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
