"""Drivers, schedulers, workers and databases are killed at random; the counts never change.

Each round: the plan is run and something is killed; what was running is run again until it is done;
what the store then holds is compared row by row with an undisturbed run's.
"""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from nights import list_workers, read_tallies, run_sigdask, write_slow_plan
from servers import find_free_port, start_postgres
from sqlalchemy import text

from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan
from sigdask.nightly.store import open_for_reading, open_store
from sigdask.nightly.store.history import find_plan
from sigdask.nightly.store.results import build_results_table, fetch_results_at
from sigdask.results.fields import iter_results

TRIALS = 400
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """Return what an undisturbed run stores."""
    folder = tmp_path_factory.mktemp("calm")
    plan = load_plan(write_slow_plan(folder, trials=TRIALS))
    sys.path.insert(0, str(folder))
    try:
        assert run_plan(plan, cluster="none").exit_status == 0
    finally:
        sys.path.remove(str(folder))
    return read_tallies(folder / "night.sqlite"), read_results(folder / "night.sqlite")


def read_results(store):
    """Return the current results in sorted order."""
    with open_for_reading(str(store)) as connection:
        results = build_results_table(fetch_results_at(connection, find_plan(connection, None), None), 0.05)
    return sorted(map(repr, iter_results(results)))


@pytest.mark.parametrize("number", [0, *(pytest.param(k, marks=pytest.mark.chaos) for k in range(1, 20))])
@pytest.mark.parametrize("cluster", ["threads"])
def test_a_killed_driver_changes_no_count(tmp_path, calm, number, cluster):
    rng = random.Random(number)
    path = write_slow_plan(tmp_path / "night", trials=TRIALS)
    process = start_run(path, cluster)
    time.sleep(rng.uniform(0.5, 5))
    process.kill()
    process.wait()
    finish_run(path, cluster="none")
    assert_calm(tmp_path / "night" / "night.sqlite", calm)


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(4))
def test_killed_workers_change_no_count(tmp_path, calm, number):
    rng = random.Random(100 + number)
    path = write_slow_plan(tmp_path / "night", trials=TRIALS)
    process = start_run(path, "local", "--workers", "2")
    time.sleep(rng.uniform(2, 8))  # as they start, and as they count
    for _ in range(rng.randint(1, 2)):
        for pid in rng.sample(list_workers(process.pid), k=min(1, len(list_workers(process.pid)))):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(rng.uniform(0.1, 1))
    assert process.wait(timeout=150) == 0
    finish_run(path, cluster="none")  # nothing is left to do
    assert_calm(tmp_path / "night" / "night.sqlite", calm)


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(4))
def test_a_killed_scheduler_changes_no_count_and_is_come_back_to(tmp_path, calm, number):
    rng = random.Random(200 + number)
    path = write_slow_plan(tmp_path / "night", trials=TRIALS)
    port = find_free_port()
    cluster = start_cluster(port, path.parent)
    process = start_run(path, f"tcp://127.0.0.1:{port}")
    try:
        time.sleep(rng.uniform(2, 5))
        for daemon in cluster:
            daemon.kill()
            daemon.wait()
        cluster = start_cluster(port, path.parent)
        assert process.wait(timeout=150) in {0, 2}  # 2: killed before the driver had reached it
    finally:
        for daemon in (*cluster, process):
            daemon.kill()
            daemon.wait()
    finish_run(path, cluster="none")
    assert_calm(tmp_path / "night" / "night.sqlite", calm)


@pytest.fixture(scope="module")
def server():
    postgres = start_postgres()
    yield postgres
    postgres.close()


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(5))
def test_a_killed_postgresql_server_or_driver_changes_no_count(tmp_path, calm, server, number):
    rng = random.Random(300 + number)
    path = write_slow_plan(tmp_path / "night", trials=TRIALS)
    clear_tables(server.url)
    process = start_run(path, "threads", "--store", server.url)
    time.sleep(rng.uniform(2, 4))
    server.kill()
    if number % 2:
        process.kill()
    else:
        time.sleep(rng.uniform(0, 1))
    server.start()
    assert process.wait(timeout=150) in {0, 3, -signal.SIGKILL}
    finish_run(path, "--store", server.url, cluster="none")
    assert_calm(server.url, calm)


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(5))
def test_plans_that_share_a_killed_postgresql_server_change_no_count(tmp_path, calm, server, number):
    rng = random.Random(400 + number)
    clear_tables(server.url)
    plans = []
    for name in ("one", "two"):
        path = write_slow_plan(tmp_path / name, trials=TRIALS)
        plans.append(path.rename(path.with_name(f"{name}.toml")))  # a plan is called as its file
    processes = [start_run(path, "threads", "--store", server.url) for path in plans]
    time.sleep(rng.uniform(2, 5))
    server.kill()
    if number % 2:
        processes[0].kill()
    server.start()
    assert {process.wait(timeout=150) for process in processes} <= {0, 3, -signal.SIGKILL}
    for path in plans:
        finish_run(path, "--store", server.url, cluster="none")
    assert read_tallies(server.url) == calm[0]


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(5))
def test_a_disk_that_fills_at_any_moment_changes_no_count(tmp_path, calm, number):
    rng = random.Random(500 + number)
    disk, path = tmp_path / "disk", write_slow_plan(tmp_path / "night", trials=TRIALS)
    disk.mkdir()
    store, size = disk / "night.sqlite", rng.randrange(60, 200, 4)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", disk]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no rights to mount a small file system")
    try:
        for _ in range(2):
            result = run_sigdask("run", path, "--cluster", "none", "--store", store, cwd=path.parent)
            assert (result.returncode, "Traceback" in result.stderr) in {(3, False), (0, False)}
            assert result.returncode == 0 or "the disk is full" in result.stderr
        subprocess.run(["mount", "-o", "remount,size=50m", disk], check=True)
        finish_run(path, "--store", store, cluster="none")
        assert_calm(store, calm)
    finally:
        subprocess.run(["umount", disk], check=False)


def clear_tables(url):
    with open_store(url, "night") as store, store.database.transaction() as connection:
        for table in ("ended", "found", "progress", "runs", "arrays", "tallies", "comparisons"):
            connection.execute(text(f"DELETE FROM {table}"))


def start_run(path, cluster, *options):
    return run_sigdask("run", path, "--cluster", cluster, *options, cwd=path.parent, start=True, **QUIET)


def finish_run(path, *options, cluster):
    result = run_sigdask("run", path, "--cluster", cluster, *options, cwd=path.parent)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr


def assert_calm(store, calm):
    tallies, results = calm
    assert read_tallies(store) == tallies
    assert read_results(store) == results


def start_cluster(port, folder):
    dask = str(Path(sys.executable).parent / "dask")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    options = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = subprocess.Popen([dask, "scheduler", *options, "--port", str(port)], env=environment, **QUIET)
    address = f"tcp://127.0.0.1:{port}"
    worker = subprocess.Popen(
        [dask, "worker", address, *options, "--no-nanny", "--nthreads", "1"], env=environment, **QUIET
    )
    return scheduler, worker
