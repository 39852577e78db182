"""An exact p-value of real scores is counted in parts, across killed workers and drivers."""

import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing, suppress

import numpy as np
import pytest
from builders import build_rng
from nights import list_workers, run_sigdask

from sigdask.api import compare
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan
from sigdask.randomization.panels.exact import ExactPanel

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
N, PARTS = 50, 4
"""Units that differ, and the parts in which they are counted, of a second or so each."""

STORED_PARTS_QUERY = "SELECT max(stop) FROM arrays JOIN comparisons ON comparison = id WHERE label = 'exact p'"


@pytest.fixture
def plan(tmp_path):
    a, b = build_rng(4).normal(0.25, 1, N), np.zeros(N)
    rows = [f"{k},{x!r},{y!r}" for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True))]
    (tmp_path / "scores.csv").write_text("\n".join(["id,a,b", *rows]))
    (tmp_path / "night.toml").write_text(
        'trials = 20000\nmethod = "both"\nstore = "night.sqlite"\n[[test_set]]\nname = "s"\nsystems = "scores.csv"\n'
    )
    return tmp_path / "night.toml"


def count_stored_parts(plan):
    """Return how many parts the store has."""
    store = plan.parent / "night.sqlite"
    if not store.exists():
        return 0
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection, suppress(sqlite3.Error):
        return connection.execute(STORED_PARTS_QUERY).fetchone()[0] or 0
    return 0


def wait_for_parts(plan, process, n=1):
    """Wait until n parts are stored, or the process has ended."""
    while process.poll() is None and count_stored_parts(plan) < n:
        time.sleep(0.05)


def kill(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.chaos
def test_killed_workers_and_drivers_leave_an_exact_p_as_it_is(plan):
    process = run_sigdask("run", plan, "--cluster", "local", "--workers", "2", cwd=plan.parent, start=True, **QUIET)
    wait_for_parts(plan, process)
    for pid in list_workers(process.pid)[:1]:
        kill(pid)
    wait_for_parts(plan, process, 2)
    process.kill()
    process.wait()
    before = count_stored_parts(plan)
    assert before >= 1
    calls = []
    panel = ExactPanel.tally
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExactPanel, "tally", lambda self, **options: (calls.append(options), panel(self, **options))[1])
        outcome = run_plan(load_plan(plan), cluster="none")
    assert sum(options["n_trials"] for options in calls) == PARTS - before  # what was kept is not counted again
    [r] = outcome.results["s"]
    assert (r.exact.method, r.method) == ("meet-in-the-middle", "exact")
    assert r.exact.guarantee in {"exact", "certified"}
    assert {c.name: c.verdict for c in r.checks}["exact value"] == "agrees"
    a, b = np.loadtxt(plan.parent / "scores.csv", delimiter=",", skiprows=1, usecols=(1, 2)).T
    assert r.exact == compare(a, b, method="exact").exact  # counted in one go, on no store
