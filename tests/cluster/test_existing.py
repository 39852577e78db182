"""Tests of existing clusters given as objects: dask-jobqueue's on a real Slurm, and dask-gateway's."""

import os
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from cluster.slurm import find_free_port, wait_until
from cluster.work import counted
from conftest import YEH

GATEWAY_CONFIG = """
c.DaskGateway.backend_class = "dask_gateway_server.backends.local.UnsafeLocalBackend"
c.DaskGateway.authenticator_class = "dask_gateway_server.auth.SimpleAuthenticator"
c.Proxy.address = "127.0.0.1:{port}"
c.UnsafeLocalBackend.clusters_directory = {folder!r}
c.ClusterConfig.scheduler_cmd = [{dask!r}, "scheduler"]  # it still asks for dask-scheduler, which dask no longer has
c.ClusterConfig.worker_cmd = [{dask!r}, "worker"]
c.ClusterConfig.environment = {{"PYTHONPATH": {python_path!r}}}
"""


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


USER_SCRIPT = """
import sys
from dask_gateway import Gateway, BasicAuth
import sigdask

counts = sigdask.read(sys.argv[2])
with Gateway(sys.argv[1], auth=BasicAuth("user", "password")) as gateway:
    with gateway.new_cluster() as cluster:
        cluster.scale(1)
        there = sigdask.compare_all(counts, trials=50_000, cluster=cluster)
        print(cluster.status, there == sigdask.compare_all(counts, trials=50_000, cluster="none"))
    try:
        sigdask.compare_all(counts, cluster=cluster)
    except sigdask.InputError as error:
        print(error)
"""


@pytest.fixture
def gateway(tmp_path):
    """Start a real gateway, whose clusters are processes of this machine, and yield its address."""
    pytest.importorskip("dask_gateway_server", reason="pip install dask-gateway dask-gateway-server")
    port, file, tools = find_free_port(), tmp_path / "gateway.py", Path(sys.executable).parent
    settings = {"port": port, "folder": str(tmp_path / "run"), "python_path": os.environ["PYTHONPATH"]}
    file.write_text(GATEWAY_CONFIG.format(dask=str(tools / "dask"), **settings))
    address = f"http://127.0.0.1:{port}"
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen([tools / "dask-gateway-server", "-f", file], stdout=log, stderr=log)
    try:
        wait_until(lambda: _is_answering(f"{address}/api/health"), "the gateway", 30)
        yield address
    finally:
        server.terminate()
        server.wait(30)


def _is_answering(url):
    with suppress(OSError):
        return urllib.request.urlopen(url, timeout=5).status == 200
    return False


def test_a_gateways_cluster_is_used_and_left_running(gateway):
    user = [
        sys.executable,
        "-c",
        USER_SCRIPT,
        gateway,
        YEH,
    ]  # a process of its own: the library leaves an event loop open
    result = subprocess.run(user, capture_output=True, text=True, check=False, timeout=120)
    assert result.stdout.splitlines() == [
        "running True",
        "the given GatewayCluster is closed; give one that is running",
    ], result.stderr
