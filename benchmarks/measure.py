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
    command = [sys.executable, "-m", "benchmarks.run_case", work, tool, str(repeats)]
    completed = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ONE_THREAD}, check=False)
    if completed.returncode:
        return {"error": (completed.stderr.strip().splitlines() or ["failed"])[-1]}
    return json.loads(completed.stdout.splitlines()[-1])


def measure_cpu(process) -> float:
    """Return the CPU seconds of this process and its running children."""
    times = [child.cpu_times() for child in process.children(recursive=True)]
    return time.process_time() + sum(t.user + t.system for t in times)
