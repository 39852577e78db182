"""Tests on a real Slurm of two logical nodes: cancelled and timed-out jobs change no count."""

import threading
import time

import pytest
from cluster.slurm import wait_until
from cluster.work import counted, fast_sum, slow_jobs, slow_sum_until

from sigdask.errors import UnfinishedError
from sigdask.execution.clusters import connect
from sigdask.execution.clusters.description import parse_description

LOOPBACK = {"scheduler_options": {"host": "127.0.0.1"}, "worker_extra_args": ["--host", "127.0.0.1"]}


def build_description(**changed):
    options = {"cores": 1, "memory": "1GB", **LOOPBACK, **changed.pop("options", {})}
    size = {} if "maximum" in changed else {"workers": 2}
    return parse_description(
        {"class": "slurm", **size, "wait": "60 s", "options": options, **changed}, source="slurm.toml"
    )


def test_counts_are_those_of_this_process_over_tls(slurm, exact):
    jobs, want = exact
    with connect(build_description()) as cluster:
        assert cluster.client.scheduler_info()["address"].startswith("tls://")
        assert len(slurm.jobs("all")) == 2
        assert counted(jobs, cluster=cluster, blocks_per_task=1) == want
    wait_until(lambda: not slurm.jobs(), "end of the jobs", 300)


def test_a_cluster_of_no_workers_submits_jobs_when_there_is_work(slurm, exact):
    jobs, want = exact
    with connect(build_description(minimum=0, maximum=2)) as cluster:
        assert not slurm.jobs("all")
        assert counted(jobs, cluster=cluster, blocks_per_task=1) == want
        assert slurm.jobs("all")
    wait_until(lambda: not slurm.jobs(), "end of the jobs", 300)


def test_a_queue_that_refuses_jobs_when_there_is_work_is_an_error(slurm, exact):
    description = build_description(minimum=0, maximum=2, wait=8, options={"queue": "nosuch"})
    with connect(description) as cluster, pytest.raises(UnfinishedError, match=r"no workers left .*nosuch"):
        counted(exact[0], cluster=cluster)


def test_cancelled_jobs_are_replaced_and_change_no_count(slurm, slow):
    jobs, want = slow
    with connect(build_description()) as cluster:
        wait_until(lambda: len(cluster.client.nthreads()) == 2, "two workers", 300)
        old_jobs = set(slurm.jobs())
        replaced = threading.Event()

        def cancel():
            time.sleep(1)
            slurm.run("scancel", *old_jobs)
            wait_until(
                lambda: len(cluster.client.nthreads()) == 2 and not old_jobs & set(slurm.jobs("all")), "new jobs", 300
            )
            replaced.set()

        thread = threading.Thread(target=cancel)
        thread.start()
        assert counted(jobs, cluster=cluster) == want
        thread.join()
        assert replaced.is_set()


@pytest.mark.slow
def test_jobs_that_hit_their_time_limit_change_no_count(slurm, tmp_path):
    n, end_file = 100_000, tmp_path / "gone"
    want = counted(slow_jobs(n, function=fast_sum), cluster="none")
    with connect(build_description(options={"walltime": "00:01:00"})) as cluster:
        first_jobs = set(slurm.jobs("all"))

        def watch():  # Slurm looks at its limits every half minute, so the first two end after 60 to 90 s
            wait_until(lambda: not first_jobs & set(slurm.jobs("all")), "end of the first jobs", 300)
            end_file.touch()

        watcher = threading.Thread(target=watch)
        watcher.start()
        assert counted(slow_jobs(n, function=slow_sum_until(end_file)), cluster=cluster) == want
        assert end_file.exists(), "no job hit its limit"
        watcher.join()


def test_a_refused_submission_fails_at_once_with_what_the_queue_said(slurm):
    with pytest.raises(UnfinishedError, match=r"nosuch"), connect(build_description(options={"queue": "nosuch"})):
        pass


def test_jobs_that_never_start_end_in_an_error_that_says_why(slurm):
    with (
        pytest.raises(UnfinishedError, match=r"no worker arrived within 3 s\. .*; the queue says: .*PENDING"),
        connect(build_description(wait=3, options={"cores": 9})),
    ):
        pass


def test_a_slurm_cluster_of_ones_own_is_used_and_left_running(slurm, exact, tmp_path):
    from dask_jobqueue import SLURMCluster

    jobs, want = exact
    with SLURMCluster(
        cores=1, processes=1, memory="1GB", worker_extra_args=["--host", "127.0.0.1"], log_directory=tmp_path,
        scheduler_options={"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"},
    ) as cluster:  # fmt: skip
        cluster.scale(jobs=2)
        assert counted(jobs, cluster=cluster) == want
        assert cluster.status.name == "running"
        wait_until(lambda: len(slurm.jobs()) == 2, "two jobs", 300)
        with cluster.get_client() as client:
            assert counted(jobs, cluster=client) == want
            assert counted(jobs, cluster="current") == want
