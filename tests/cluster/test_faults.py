"""Tests of faults: deadly comparisons, lost workers, and code that may not be sent."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from cluster import work
from cluster.hosts import start_dask_cluster
from cluster.slurm import wait_until
from cluster.work import counted, exact_jobs, slow_jobs

from sigdask.errors import InputError, UnfinishedError
from sigdask.execution.clusters import connect
from sigdask.execution.run import count_jobs


def test_a_comparison_that_kills_its_workers_is_named_and_all_else_is_counted(monkeypatch):
    monkeypatch.setenv("SIGDASK_TEST_DRIVER", str(os.getpid()))
    jobs = [*exact_jobs(300_000), *slow_jobs(300, function=work.deadly_metric, label="A and B under deadly")]
    n_done = []
    message = "A and B under deadly failed on every worker that tried it"
    with connect("local", workers=2) as cluster, pytest.raises(UnfinishedError, match=message):
        count_jobs(jobs, cluster=cluster, progress=lambda n, _: n_done.append(n), blocks_per_task=8)
    assert n_done[-1] == 6 * 300_000 + 5_000  # trials of all pairs


def test_every_worker_may_die_and_the_cluster_comes_back(slow):
    jobs, want = slow
    with connect("local", workers=2) as cluster:

        def kill_all():
            time.sleep(1)
            nannies = {int(w.name): w for w in cluster.client.cluster.workers.values()}
            pids = cluster.client.run(os.getpid).values()
            cluster.client.cluster.loop.add_callback(nannies[0].close)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill_all)
        killer.start()
        assert counted(jobs, cluster=cluster) == want
        killer.join()
        wait_until(lambda: len(cluster.client.nthreads()) == 2, "both workers", 300)


def test_code_is_sent_to_no_other_machine(certificates, tmp_path):
    del certificates
    local = []

    def here(outputs, _gold):
        local.append(1)
        return float(np.sum(outputs))

    with start_dask_cluster(tmp_path) as address, connect(address) as cluster:
        with pytest.raises(InputError, match="'mine': workers on other machines import metrics by name"):
            count_jobs(slow_jobs(100, function=here, label="mine"), cluster=cluster)
        jobs = slow_jobs(100)
        assert counted(jobs, cluster=cluster) == counted(jobs, cluster="none")


def forget_module():
    """Make a worker import the module again."""
    import sys

    from sigdask.io import addresses

    sys.modules.pop("only_here", None)
    for folders in (addresses.FOLDERS, sys.path):
        folders[:] = [folder for folder in folders if not folder.endswith("hidden")]


def test_a_module_that_workers_lack_is_the_users_error(tmp_path, monkeypatch):
    module = tmp_path / "hidden" / "only_here.py"
    module.parent.mkdir()
    module.write_text("def score(outputs, gold):\n    return float(sum(outputs))\n")
    with start_dask_cluster(tmp_path) as address, connect(address) as cluster:
        monkeypatch.syspath_prepend(module.parent)
        import only_here

        shared = slow_jobs(100, function=only_here.score, label="shared")
        assert counted(shared, cluster=cluster) == counted(slow_jobs(100), cluster="none")
        cluster.client.run(forget_module)
        module.parent.rename(tmp_path / "gone")
        jobs = slow_jobs(100, function=only_here.score, label="only_here:score")
        with pytest.raises(InputError, match=r"only_here:score.*cannot be imported by a worker"):
            count_jobs(jobs, cluster=cluster)


def test_a_cluster_that_loses_all_its_workers_is_an_error_not_a_wait(tmp_path, monkeypatch):
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__NO_WORKERS_TIMEOUT", "3s")
    with start_dask_cluster(tmp_path) as address, connect(address) as cluster:
        [nanny] = cluster.client.run(os.getppid).values()
        killer = threading.Timer(1, os.killpg, (nanny, signal.SIGKILL))
        killer.start()
        with pytest.raises(UnfinishedError, match="no workers left"):
            count_jobs(slow_jobs(20_000), cluster=cluster)
        killer.join()
