"""Tests of hosts with their own addresses: one cut off, one slow, one hung, and unchanged counts."""

import os
import signal
import threading
import time

import pytest
from cluster import network
from cluster.hosts import DASK, is_answering, kill, list_tls_options, start
from cluster.slurm import wait_until
from cluster.work import counted, exact_jobs, fast_sum, slow_jobs

from sigdask.execution.clusters import connect
from sigdask.execution.clusters.base import environment
from sigdask.execution.clusters.description import parse_description

PORT = 8786
SCHEDULER, CUT, SLOW, HUNG, GOOD = 1, 2, 3, 4, 5


@pytest.fixture
def hosts(tmp_path, certificates, monkeypatch):
    """Start a scheduler and four workers on a host each, and yield the network and the processes."""
    if reason := network.find_obstacle():
        pytest.skip(reason)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    with network.Network(5) as net:
        address = f"tls://{net.address(SCHEDULER)}:{PORT}"
        tls = ["--protocol", "tls", "--dashboard-address", "127.0.0.1:0", *list_tls_options(certificates)]

        def begin(role, host, *options):
            command = [DASK, *role, "--host", net.address(host), *tls, *options]
            return start(*command, log=tmp_path / f"{host}.log", prefix=net.get_prefix(host))

        processes = {0: begin(["scheduler"], SCHEDULER, "--port", PORT)}
        wait_until(lambda: is_answering(PORT, net.address(SCHEDULER)), "scheduler", 300)
        for host in (CUT, SLOW, HUNG, GOOD):
            options = ["--nthreads", "1", "--name", host, "--no-dashboard"]
            processes[host] = begin(["worker", address], host, *options)
        try:
            yield net, processes, address
        finally:
            for process in processes.values():
                kill(process, signal.SIGCONT)
                kill(process)


def test_a_host_cut_off_a_slow_one_and_a_hung_one_change_no_count(hosts, certificates):
    net, started, address = hosts
    jobs = [*exact_jobs(200_000), *slow_jobs(6000)]
    want = counted([*exact_jobs(200_000), *slow_jobs(6000, function=fast_sum)], cluster="none")
    described = parse_description(
        {"class": "address", "wait": 60, "options": {"address": address}, "certificates": certificates},
        source="c",
    )  # fmt: skip
    with connect(described) as cluster:
        wait_until(lambda: len(cluster.client.nthreads()) == 4, "four workers", 300)
        counted(jobs[:2], cluster=cluster)  # compiles everywhere
        net.slow_down(SLOW)
        lost = (CUT, HUNG)

        def is_rid_of_lost_hosts():
            addresses = " ".join(cluster.client.nthreads())
            return not any(f"{net.address(host)}:" in addresses for host in lost)

        def disturb():
            time.sleep(2)
            net.cut(CUT)
            os.killpg(started[HUNG].pid, signal.SIGSTOP)
            wait_until(is_rid_of_lost_hosts, "removal of the lost hosts", 300)

        disturber = threading.Thread(target=disturb)
        disturber.start()
        assert counted(jobs, cluster=cluster) == want
        disturber.join()
        assert is_rid_of_lost_hosts()
