"""Drivers, schedulers, workers and databases are killed at random; the counts never change.

Each round: the plan is run and something is killed; what was running is run again until it is done;
what the store then holds is compared row by row with an undisturbed run's.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from nights import SLOW_SECONDS, list_workers, read_tallies, run_sigdask, wait_for_rows, write_slow_plan
from servers import find_free_port, forward_connections, start_postgres
from sqlalchemy import text

from sigdask.execution.clusters.base import environment
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan
from sigdask.nightly.store import open_for_reading, open_store
from sigdask.nightly.store.database import is_locked
from sigdask.nightly.store.results import fetch_results
from sigdask.nightly.store.runs import find_plan, iter_runs
from sigdask.results.fields import iter_results

TRIALS = 400
LONG_TRIALS = 10_000
"""Half a minute on two workers and a minute on one, which goes on while the other is away for `SILENT_SECONDS`."""

SILENT_SECONDS = 33
"""Longer than `distributed.scheduler.worker-ttl`, 15 s, and the next look at it, after 15 s more."""

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """Return what an undisturbed run stores."""
    return run_calmly(tmp_path_factory.mktemp("calm"), TRIALS)


@pytest.fixture(scope="module")
def long_calm(tmp_path_factory):
    """Return what an undisturbed run of `LONG_TRIALS` stores."""
    return run_calmly(tmp_path_factory.mktemp("long_calm"), LONG_TRIALS)


def run_calmly(folder, trials):
    """Run the plan in this process, where its metric does not wait, and return what the store holds."""
    plan, sleep = load_plan(write_slow_plan(folder, trials=trials)), time.sleep
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setattr(time, "sleep", lambda seconds: None if seconds == SLOW_SECONDS else sleep(seconds))
        assert run_plan(plan, cluster="none").exit_status == 0
    return read_tallies(folder / "night.sqlite"), read_results(folder / "night.sqlite")


def read_results(store):
    """Return the current results in sorted order."""
    with open_for_reading(str(store)) as connection:
        results = fetch_results(connection, find_plan(connection, None), 1000, 0.05)
    return sorted(map(repr, iter_results(results)))


@pytest.mark.parametrize("number", [0, *(pytest.param(k, marks=pytest.mark.chaos) for k in range(1, 20))])
@pytest.mark.parametrize("cluster", ["threads"])
@pytest.mark.slow
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
        workers = list_workers(process.pid)  # fewer while others start
        for pid in rng.sample(workers, k=min(1, len(workers))):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(rng.uniform(0.1, 1))
    assert process.wait(timeout=150) == 0
    finish_run(path, cluster="none")  # nothing is left to do
    assert_calm(tmp_path / "night" / "night.sqlite", calm)


@pytest.mark.chaos
def test_a_stopped_worker_that_was_given_up_and_goes_on_changes_no_count(tmp_path, long_calm):
    path = write_slow_plan(tmp_path / "night", trials=LONG_TRIALS)
    port = find_free_port()
    scheduler, *workers = start_cluster(port, path.parent, n_workers=2, settings=environment())
    process = start_run(path, f"tcp://127.0.0.1:{port}")
    try:
        wait_for_rows(path.parent / "night.sqlite", process)
        assert stop_for_a_while(workers[0].pid, process)
        assert process.wait(timeout=150) == 0
        assert workers[0].wait(timeout=30) is not None  # the scheduler had removed it
    finally:
        for daemon in (scheduler, *workers, process):
            daemon.kill()
            daemon.wait()
    assert_calm(path.parent / "night.sqlite", long_calm)


def stop_for_a_while(pid, process):
    """Stop a worker for `SILENT_SECONDS`, then let it go on; return whether the run was still going on."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(SILENT_SECONDS)
    is_running = process.poll() is None
    with suppress(ProcessLookupError):  # its nanny may have killed it
        os.kill(pid, signal.SIGCONT)
    return is_running


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
def test_a_driver_whose_database_comes_back_after_another_took_over_writes_nothing(tmp_path, long_calm, server):
    path = write_slow_plan(tmp_path / "night", trials=LONG_TRIALS)
    clear_tables(server.url)
    is_due, second = threading.Event(), None

    def cut_before_commit(data):
        # the driver waits for its answer then; at another moment it may fail to connect anew, and give up
        if is_due.is_set() and b"UPDATE runs SET record" in data:
            is_due.clear()
            connected.clear()
            connected.wait()
        return False

    with forward_connections(server.port, cut_before_commit) as (port, connected):
        url = server.url.replace(f":{server.port}/", f":{port}/")
        first = run_sigdask("run", path, "--cluster", "threads", "--store", url, cwd=path.parent, start=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # fmt: skip
        try:
            wait_for_rows(server.url, first)
            is_due.set()
            wait_until(lambda: not connected.is_set(), first)
            counted = read_tallies(server.url)
            assert counted != long_calm[0]
            held = run_sigdask("run", path, "--cluster", "none", "--store", server.url, cwd=path.parent)
            assert held.returncode != 0
            assert "is being run by process" in held.stderr
            assert read_tallies(server.url) == counted
            wait_until(lambda: not read(server.url, is_locked, "night"), first)
            second = start_run(path, "threads", "--store", server.url)
            wait_until(lambda: next(read(server.url, iter_runs, "night")).pid == second.pid, second)
            assert first.poll() is None
            connected.set()
            _, message = first.communicate(timeout=150)
            assert first.returncode == 3
            assert "another run took over" in message
            assert second.wait(timeout=150) == 0
        finally:
            connected.set()
            for process in filter(None, (first, second)):
                process.kill()
                process.wait()
    assert_calm(server.url, long_calm)


def read(store, look, *arguments):
    with open_for_reading(store) as connection:
        found = look(connection, *arguments)
        return iter([*found]) if isinstance(found, Iterator) else found


def wait_until(holds, process):
    """Wait until something holds, as long as a process goes on; how long that takes depends on the machine."""
    while not holds():
        assert process.poll() is None, process.args
        time.sleep(0.1)


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
    with (
        open_store(url, "night", details={"settings": {"alpha": 0.05, "seed": 0}}) as store,
        store.database.transaction() as connection,
    ):
        for table in ("runs", "tallies", "results"):
            connection.execute(text(f"DELETE FROM {table}"))


STARTED = []


@pytest.fixture(autouse=True)
def runs_end_with_their_test():
    """End the runs of a test that failed, so that they fail no other."""
    yield
    while STARTED:
        process = STARTED.pop()
        process.kill()
        process.wait()


def start_run(path, cluster, *options):
    STARTED.append(run_sigdask("run", path, "--cluster", cluster, *options, cwd=path.parent, start=True, **QUIET))
    return STARTED[-1]


def finish_run(path, *options, cluster):
    result = run_sigdask("run", path, "--cluster", cluster, *options, cwd=path.parent)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr


def assert_calm(store, calm):
    tallies, results = calm
    assert read_tallies(store) == tallies
    assert read_results(store) == results


def start_cluster(port, folder, *, n_workers=1, settings=()):
    dask = str(Path(sys.executable).parent / "dask")
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    variables |= dict(settings)
    options = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = subprocess.Popen([dask, "scheduler", *options, "--port", str(port)], env=variables, **QUIET)
    command = [dask, "worker", f"tcp://127.0.0.1:{port}", *options, "--no-nanny", "--nthreads", "1"]
    return scheduler, *(subprocess.Popen(command, env=variables, **QUIET) for _ in range(n_workers))
