"""Small plans for tests of nightly runs, and what a store holds after them."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sqlalchemy import text

from sigdask.cli import commands
from sigdask.errors import SigdaskError
from sigdask.nightly.store import open_for_reading

SLOW_SECONDS = 0.0005

SLOW_METRIC = f"""
import time


def slowly(outputs, gold):
    time.sleep({SLOW_SECONDS})
    return float(sum(outputs))
"""


def write_scores(path, n_systems, n_items=40, seed=0, digits=2):
    """Write a table of scores with one column per system."""
    scores = np.random.default_rng(seed).random((n_items, n_systems)).round(digits)
    scores += np.linspace(0, 0.2, n_systems).round(digits)
    header = ",".join(f"s{k}" for k in range(n_systems))
    np.savetxt(path, scores, fmt=f"%.{digits}f", delimiter=",", header=header, comments="")


def write_plan(folder, *, sets=2, systems=6, trials=20_000, method="randomization", settings=""):
    """Write a plan over some score tables, by default of sampled trials, with its store beside it."""
    folder.mkdir(exist_ok=True)
    lines = ["seed = 3", f"trials = {trials}", f'method = "{method}"', 'store = "night.sqlite"', settings]
    for k in range(sets):
        if not (folder / f"set{k}.csv").exists():
            write_scores(folder / f"set{k}.csv", systems, seed=k)
        lines += ["[[test_set]]", f'name = "set{k}"', f'systems = "set{k}.csv"', 'metrics = ["mean"]']
    (folder / "night.toml").write_text("\n".join(lines) + "\n")
    return folder / "night.toml"


def write_slow_plan(folder, *, trials=2000, settings=""):
    """Write a plan with a slow black-box metric besides quick comparisons."""
    plan = write_plan(folder, sets=1, systems=4, trials=200_000, settings=settings)
    (folder / "slow_metric.py").write_text(SLOW_METRIC)
    write_scores(folder / "slow.csv", 3, n_items=30, seed=9)
    with plan.open("a") as file:
        file.write(
            f'[[test_set]]\nname = "slow"\nsystems = "slow.csv"\nmetrics = ["slow_metric:slowly"]\ntrials = {trials}\n'
        )
    return plan


def write_effects(path, effects, seed=3):
    """Write a table of scores of `base` and of systems that are better by these effects."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal(60).round(3)
    columns = {name: (base + effect + 0.3 * rng.standard_normal(60)).round(3) for name, effect in effects.items()}
    names = ['"' + name.replace('"', '""') + '"' for name in ("base", *columns)]
    rows = zip(base.tolist(), *(column.tolist() for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]) + "\n")


def run_plan_here(folder, *options):
    """Run plan.toml of a folder by the command in this process; return its exit status and output."""
    arguments = ["run", str(folder / "plan.toml"), "--cluster", "none", *map(str, options)]
    result = CliRunner().invoke(commands, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def wait_for_rows(store, process, table="tallies"):
    """Wait until a run has stored rows of a table."""
    for _ in range(1200):  # imports take long on a busy machine
        assert process.poll() is None
        with suppress(SigdaskError), open_for_reading(str(store)) as connection:
            if connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one():
                return
        time.sleep(0.1)
    pytest.fail("nothing was stored")


def read_tallies(store):
    """Return the trials and exceedances of each comparison and run, as they are stored."""
    with open_for_reading(str(store)) as connection:
        return [tuple(row) for row in connection.execute(text("SELECT * FROM tallies ORDER BY digest, run"))]


def run_sigdask(*arguments, cwd, start=False, **options):
    """Run or start the command line in another process."""
    path = os.pathsep.join(filter(None, [str(cwd), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", "")}
    environment = {key: value for key, value in environment.items() if value}
    command = [sys.executable, "-m", "sigdask", *map(str, arguments)]
    options = {"cwd": cwd, "env": environment, "text": True, **options}
    if start:
        return subprocess.Popen(command, **options)
    return subprocess.run(command, capture_output=True, check=False, **options)


ROOT = Path(__file__).parent.parent


def list_workers(pid):
    """Return the ids of the worker processes that a driver has spawned."""
    pids = []
    for task in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            parent = int((task / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and b"spawn_main" in (task / "cmdline").read_bytes():
                pids.append(int(task.name))
    return pids
