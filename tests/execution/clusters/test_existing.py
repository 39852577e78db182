"""Tests of the caller's own clients and clusters: used, left running, found as the current one."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace

import dask
import numpy as np
import pytest

import sigdask
from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError, UnfinishedError
from sigdask.nightly.run.check import check_plan_data

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


@pytest.mark.slow
def test_a_client_and_a_cluster_are_used_and_left_running(running, client, counts):
    expected = list_n_extreme(counts, cluster="none")
    for cluster in (client, running):
        n_before = count_transitions(running)
        assert list_n_extreme(counts, cluster=cluster) == expected
        assert count_transitions(running) > n_before
        assert (client.status, running.status.name, len(running.scheduler.workers)) == ("running", "running", 1)


@pytest.mark.slow
def test_the_active_client_is_current_and_taken_by_default(running, client, counts):
    expected = list_n_extreme(counts, cluster="none")
    for options in ({"cluster": "current"}, {"cluster": "auto"}, {}):
        n_before = count_transitions(running)
        assert list_n_extreme(counts, **options) == expected
        assert count_transitions(running) > n_before


@pytest.mark.slow
def test_the_scheduler_of_dasks_settings_is_current_and_taken_by_default(running, counts):
    with pytest.raises(InputError, match="no current dask cluster: this process has no active"):
        list_n_extreme(counts, cluster="current")
    for address in (running.scheduler_address, running.scheduler_address.removeprefix("tcp://")):
        with dask.config.set({"scheduler-address": address}):
            for name in ("current", "auto"):
                n_before = count_transitions(running)
                assert list_n_extreme(counts, cluster=name) == list_n_extreme(counts, cluster="none")
                assert count_transitions(running) > n_before


@pytest.mark.slow
def test_a_function_without_a_name_travels_by_value_to_the_callers_own_session(client, counts):
    box = sigdask.metric(lambda outputs, _: float(sum(outputs)), name="total", of="outputs")
    form = sigdask.metric(lambda score, items: score / items, name="own")
    for metric in (box, form):
        cluster_counts, local_counts = (
            list_n_extreme(counts, 1000, metrics=metric, cluster=cluster) for cluster in (client, "none")
        )
        assert cluster_counts == local_counts


def run_coroutine(coroutine):
    """Run a coroutine in a thread with an event loop of its own; a browser of other tests may run one in this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, asyncio.run, coroutine).result()


@pytest.mark.slow
def test_a_client_works_within_a_running_event_loop(client, counts):
    async def cell():  # as Jupyter runs one
        return list_n_extreme(counts, cluster=client), list_n_extreme(counts, cluster="current")

    assert run_coroutine(cell()) == (list_n_extreme(counts, cluster="none"),) * 2


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert len(check_plan_data(plan)) == 1
    with pytest.raises(InputError, match="no current dask cluster"):
        sigdask.run_plan(plan, store=str(tmp_path / "new.db"))


@pytest.mark.slow
def test_a_client_that_its_owner_closes_ends_a_plan_at_once(running, plan):
    from distributed import Client

    own_client = Client(running, set_as_default=False)
    first = plan.test_sets[0]
    long = replace(plan, test_sets=(replace(first, comparison={**first.comparison, "trials": 50_000_000}),))
    with pytest.raises(
        UnfinishedError, match="the given Client was closed during the run; all counts so far are stored"
    ):
        sigdask.run_plan(long, cluster=own_client, progress=lambda _n_done, _n_all: own_client.close())
