"""Tests of the caller's own clients and clusters: used, left running, found as the current one."""

import asyncio
import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace

import dask
import numpy as np
import pytest
from counters import build_metric, lengths

import sigdask
from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError, UnfinishedError
from sigdask.execution import clusters
from sigdask.execution.clusters import existing as handed
from sigdask.execution.extract import ClusterExtraction
from sigdask.metrics.extraction.parts import ExtractionPart
from sigdask.nightly.run.estimate import estimate_costs

LocalCluster = pytest.importorskip("distributed").LocalCluster
LOOPBACK = {"n_workers": 1, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}


@pytest.fixture(scope="module")
def running():
    with LocalCluster(silence_logs=logging.CRITICAL, **LOOPBACK) as cluster:
        yield cluster


@pytest.fixture
def client(running):
    from distributed import Client

    with Client(running) as connected:
        yield connected


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    return Counts.from_scores({name: rng.integers(0, 5, 300) for name in "abc"})


def list_n_extreme(counts, trials=20_000, **options):
    return [r.n_extreme for r in compare_all(counts, trials=trials, **options)]


def count_transitions(running):
    """Return how many task transitions the scheduler has made."""
    return running.scheduler.transition_counter


def test_a_client_and_a_cluster_are_used_and_left_running(running, client, counts):
    expected = list_n_extreme(counts, cluster="none")
    for cluster in (client, running):
        n_before = count_transitions(running)
        assert list_n_extreme(counts, cluster=cluster) == expected
        assert count_transitions(running) > n_before
        assert (client.status, running.status.name, len(running.scheduler.workers)) == ("running", "running", 1)


def test_what_metrics_take_from_outputs_is_counted_there_as_well(running, client):
    parts = [ExtractionPart(build_metric().extraction, (["a" * k, "b"],), ["c", "dd"]) for k in range(6)]
    want = {k: [array.tolist() for array in lengths([["a" * k, "b"]], ["c", "dd"])] for k in range(6)}
    for cluster in (client, running, "current"):
        n_before = count_transitions(running)
        extracted = {
            number: [array.tolist() for array in arrays]
            for number, arrays in ClusterExtraction(cluster)(parts, seconds=10.0)
        }
        assert extracted == want
        assert count_transitions(running) > n_before


def test_the_active_client_is_current_and_taken_by_default(running, client, counts):
    expected = list_n_extreme(counts, cluster="none")
    for options in ({"cluster": "current"}, {"cluster": "auto"}, {}):
        n_before = count_transitions(running)
        assert list_n_extreme(counts, **options) == expected
        assert count_transitions(running) > n_before


def test_a_client_that_is_not_the_default_is_used_as_well(running, counts):
    from distributed import Client

    with Client(running, set_as_default=False) as other_client:
        assert list_n_extreme(counts, cluster=other_client) == list_n_extreme(counts, cluster="none")


def test_the_scheduler_of_dasks_settings_is_current_and_taken_by_default(running, counts):
    with pytest.raises(InputError, match="no current dask cluster: this process has no active"):
        list_n_extreme(counts, cluster="current")
    for address in (running.scheduler_address, running.scheduler_address.removeprefix("tcp://")):
        with dask.config.set({"scheduler-address": address}):
            for name in ("current", "auto"):
                n_before = count_transitions(running)
                assert list_n_extreme(counts, cluster=name) == list_n_extreme(counts, cluster="none")
                assert count_transitions(running) > n_before


def test_who_named_a_scheduler_that_does_not_answer_is_said(counts, monkeypatch):
    monkeypatch.setattr("sigdask.execution.clusters.existing.CONNECT_SECONDS", 0.1)
    message = r"tcp://127\.0\.0\.1:9 .*; dask's settings name it \(scheduler-address\)"
    with dask.config.set({"scheduler-address": "127.0.0.1:9"}), pytest.raises(InputError, match=message):
        list_n_extreme(counts)


@pytest.mark.parametrize("how", ["variable", "file", "neither"])
def test_the_settings_are_read_where_dask_was_not_imported_yet(how, tmp_path):
    (tmp_path / "own.yaml").write_text("scheduler-address: tcp://127.0.0.1:1\n")
    variables = {"variable": {"DASK_SCHEDULER_ADDRESS": "tcp://127.0.0.1:1"}, "file": {"DASK_CONFIG": str(tmp_path)}}
    environment = {**os.environ, "HOME": str(tmp_path), **variables.get(how, {})}
    code = "import sys; from sigdask.execution.clusters import resolve_active; print(resolve_active('auto'), 'dask' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.split() == (["auto", "False"] if how == "neither" else ["tcp://127.0.0.1:1", "True"])


def test_a_function_without_a_name_travels_by_value_to_the_callers_own_session(client, counts):
    box = sigdask.metric(lambda outputs, _: float(sum(outputs)), name="total", of="outputs")
    form = sigdask.metric(lambda score, items: score / items, name="own")
    for metric in (box, form):
        cluster_counts, local_counts = (
            list_n_extreme(counts, 1000, metrics=metric, cluster=cluster) for cluster in (client, "none")
        )
        assert cluster_counts == local_counts


def test_within_a_task_no_client_is_current(client):
    assert client.submit(clusters.resolve_active, "auto", pure=False).result() == "auto"


def test_settings_that_a_scheduler_lacks_are_named_once(client, counts, caplog):
    handed.WARNED_SCHEDULERS.clear()
    with caplog.at_level(logging.WARNING, "sigdask.execution.clusters"):
        list_n_extreme(counts, cluster=client)
        list_n_extreme(counts, cluster=client)
    [message] = [record.getMessage() for record in caplog.records if "lacks settings" in record.getMessage()]
    assert "scheduler.worker-ttl is 5 minutes, not 15s" in message


def test_versions_are_checked_as_ever(client, counts, monkeypatch):
    real = client.get_versions

    def change_versions(**options):
        versions = real(**options)
        for worker in versions["workers"].values():
            worker["packages"]["numpy"] = "1.0"
        return versions

    monkeypatch.setattr(client, "get_versions", change_versions)
    with pytest.raises(InputError, match=r"numpy is .* here and 1\.0 at worker"):
        list_n_extreme(counts, cluster=client)


def run_coroutine(coroutine):
    """Run a coroutine in a thread with an event loop of its own; a browser of other tests may run one in this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, asyncio.run, coroutine).result()


def test_a_client_works_within_a_running_event_loop(client, counts):
    async def cell():  # as Jupyter runs one
        return list_n_extreme(counts, cluster=client), list_n_extreme(counts, cluster="current")

    assert run_coroutine(cell()) == (list_n_extreme(counts, cluster="none"),) * 2


def test_an_async_client_works_from_a_thread_and_its_own_loop_is_told_how(counts):
    from distributed import Client

    async def iter_counts():
        async with (
            LocalCluster(asynchronous=True, **LOOPBACK) as cluster,
            Client(cluster, asynchronous=True) as async_client,
        ):
            for cluster_or_client in (cluster, async_client, "current"):
                with pytest.raises(InputError, match=r"await asyncio\.to_thread\(sigdask\.compare_all"):
                    list_n_extreme(counts, cluster=cluster_or_client)
                yield await asyncio.to_thread(list_n_extreme, counts, cluster=cluster_or_client)
            yield list_n_extreme(counts)  # auto counts in this process

    async def collect():
        return [n_extreme async for n_extreme in iter_counts()]

    assert run_coroutine(collect()) == [list_n_extreme(counts, cluster="none")] * 4


def test_what_is_no_cluster_or_closed_is_refused(running, counts):
    from distributed import Client

    with Client(running) as closed_client:
        pass
    with pytest.raises(InputError, match="the given Client is closed"):
        list_n_extreme(counts, cluster=closed_client)
    for wrong in (5, object()):
        with pytest.raises(InputError, match=r"expected a distributed\.Client, a dask cluster, or auto"):
            list_n_extreme(counts, cluster=wrong)


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "scores.csv").write_text("id,a,b\n" + "".join(f"{k},{k % 7},{k % 5}\n" for k in range(300)))
    text = 'cluster = "current"\ntrials = 8192\n[[test_set]]\nname = "t"\nsystems = "scores.csv"\n'
    (tmp_path / "plan.toml").write_text(text)
    return sigdask.load_plan(tmp_path / "plan.toml")


def test_a_plan_is_run_on_a_client_that_is_given_or_current(running, client, plan, tmp_path):
    expected = sigdask.run_plan(plan, store=str(tmp_path / "here.db"), cluster="none")
    for cluster in (client, running, None):
        n_before = count_transitions(running)
        night = sigdask.run_plan(plan, store=str(tmp_path / f"{n_before}.db"), cluster=cluster)
        assert list(night.results["t"]) == list(expected.results["t"])
        assert count_transitions(running) > n_before


def test_a_plan_that_has_nothing_to_count_asks_for_no_current_cluster(plan, tmp_path):
    first = sigdask.run_plan(plan, store=str(tmp_path / "here.db"), cluster="none")
    second = sigdask.run_plan(plan, store=str(tmp_path / "here.db"))
    assert list(second.results["t"]) == list(first.results["t"])
    assert len(estimate_costs(plan)) == 1
    with pytest.raises(InputError, match="no current dask cluster"):
        sigdask.run_plan(plan, store=str(tmp_path / "new.db"))


def test_a_client_that_its_owner_closes_ends_a_plan_at_once(running, plan):
    from distributed import Client

    own_client = Client(running, set_as_default=False)
    first = plan.test_sets[0]
    long = replace(plan, test_sets=(replace(first, comparison={**first.comparison, "trials": 50_000_000}),))
    with pytest.raises(
        UnfinishedError, match="the given Client was closed during the run; all counts so far are stored"
    ):
        sigdask.run_plan(long, cluster=own_client, progress=lambda _n_done, _n_all: own_client.close())


@pytest.mark.cluster
def test_a_cluster_without_workers_that_follows_the_work_starts_one(counts):
    with LocalCluster(**LOOPBACK | {"n_workers": 0}) as cluster:
        cluster.adapt(minimum=0, maximum=1)
        assert list_n_extreme(counts, cluster=cluster) == list_n_extreme(counts, cluster="none")


@pytest.mark.cluster
def test_metrics_of_a_notebook_travel_by_value(tmp_path):
    script = tmp_path / "notebook.py"
    script.write_text("""
import sigdask
from distributed import Client, LocalCluster

def total(outputs, gold):
    return float(sum(outputs))

@sigdask.metric
def own(score, items):
    return score / items

if __name__ == "__main__":
    counts = sigdask.read({"a": [k % 7 for k in range(60)], "b": [k % 5 for k in range(60)]})
    ask = {"metrics": [own, sigdask.metric(total, of="outputs")], "trials": 2000}
    with LocalCluster(n_workers=1, dashboard_address="127.0.0.1:0") as cluster, Client(cluster) as client:
        there = sigdask.compare_all(counts, cluster=client, **ask)
    assert [r.n_extreme for r in there] == [r.n_extreme for r in sigdask.compare_all(counts, cluster="none", **ask)]
    print("equal")
""")
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "equal", result.stderr
