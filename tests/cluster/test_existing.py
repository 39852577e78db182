"""Tests of existing clusters given as objects: dask-jobqueue's on a real Slurm, and dask-gateway's."""

from cluster.work import counted


def test_a_slurm_cluster_of_ones_own_is_used_and_left_running(slurm, exact):
    from dask_jobqueue import SLURMCluster

    jobs, want = exact
    with SLURMCluster(
        cores=1, processes=1, memory="1GB", worker_extra_args=["--host", "127.0.0.1"],
        scheduler_options={"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"},
    ) as cluster:  # fmt: skip
        cluster.scale(jobs=2)
        assert counted(jobs, cluster=cluster) == want
        assert cluster.status.name == "running"
        assert len(slurm.jobs()) == 2
        with cluster.get_client() as client:
            assert counted(jobs, cluster=client) == want
            assert counted(jobs, cluster="current") == want
