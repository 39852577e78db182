"""Small plans for tests of the overnight runner, and what a store holds."""

import os
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
from sqlalchemy import text

from sigdask.nightly.store import open_for_reading

TALLIES = (
    "SELECT digest, run, min(first), max(stop), sum(stop - first), sum(greater), sum(less), sum(two_sided), count(*) "
    "FROM tallies JOIN comparisons ON comparison = id GROUP BY digest, run ORDER BY digest, run"
)

ARRAYS = "SELECT digest, run, first, stop, counts FROM arrays JOIN comparisons ON comparison = id ORDER BY digest, run, first"

SLOW = """
import time


def slowly(outputs, gold):
    time.sleep(0.0005)
    return float(sum(outputs))
"""


def write_scores(path, n_systems, n_items=40, seed=0, digits=2):
    """A table of scores, one column a system."""
    scores = np.random.default_rng(seed).random((n_items, n_systems)).round(digits)
    scores += np.linspace(0, 0.2, n_systems).round(digits)
    header = ",".join(f"s{k}" for k in range(n_systems))
    np.savetxt(path, scores, fmt=f"%.{digits}f", delimiter=",", header=header, comments="")


def write_plan(folder, *, sets=2, systems=6, trials=20_000, method="randomization", more=""):
    """A plan over some tables of scores, of trials alone unless told otherwise; the store lies beside it."""
    folder.mkdir(exist_ok=True)
    lines = ["seed = 3", f"trials = {trials}", f'method = "{method}"', 'store = "night.sqlite"', more]
    for k in range(sets):
        if not (folder / f"set{k}.csv").exists():
            write_scores(folder / f"set{k}.csv", systems, seed=k)
        lines += ["[[test_set]]", f'name = "set{k}"', f'systems = "set{k}.csv"', 'metrics = ["mean"]']
    (folder / "night.toml").write_text("\n".join(lines) + "\n")
    return folder / "night.toml"


def write_slow_plan(folder, *, trials=2000, more=""):
    """A plan whose black box takes its time, beside quick comparisons."""
    plan = write_plan(folder, sets=1, systems=4, trials=200_000, more=more)
    (folder / "slow_metric.py").write_text(SLOW)
    write_scores(folder / "slow.csv", 3, n_items=30, seed=9)
    with plan.open("a") as file:
        file.write(
            f'[[test_set]]\nname = "slow"\nsystems = "slow.csv"\nmetrics = ["slow_metric:slowly"]\ntrials = {trials}\n'
        )
    return plan


def tallies_in(store):
    """What is kept of each comparison and run; whether trials follow on each other without gap or overlap."""
    with open_for_reading(str(store)) as connection:
        rows = [tuple(row) for row in connection.execute(text(TALLIES))]
        arrays = [tuple(row) for row in connection.execute(text(ARRAYS))]
    for _, _, first, stop, n, *_ in rows:
        assert (first, stop) == (0, n)
    return [tuple(int(x) if k else x for k, x in enumerate(row)) for row in rows] + _families(arrays)


def _families(arrays):
    """Sums over the rounds of each family."""
    found = {}
    for digest, run, first, stop, packed in arrays:
        before, counts = found.get((digest, run), (0, 0))
        assert first == before
        found[digest, run] = (stop, counts + np.frombuffer(zlib.decompress(packed), "<i8"))
    return [(digest, run, 0, stop, counts.tolist()) for (digest, run), (stop, counts) in found.items()]


def sigdask(*arguments, cwd, start=False, **options):
    """Run the command line."""
    path = os.pathsep.join(filter(None, [str(cwd), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", "")}
    environment = {key: value for key, value in environment.items() if value}
    command = [sys.executable, "-m", "sigdask", *map(str, arguments)]
    options = {"cwd": cwd, "env": environment, "text": True, **options}
    if start:
        return subprocess.Popen(command, **options)
    return subprocess.run(command, capture_output=True, check=False, **options)


ROOT = Path(__file__).parent.parent


def workers_of(pid):
    """Processes that a driver has spawned to count."""
    found = []
    for task in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            parent = int((task / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and b"spawn_main" in (task / "cmdline").read_bytes():
                found.append(int(task.name))
    return found
