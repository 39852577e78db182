"""Hosts with their own addresses: one cut off, one slow, one hung, and the counts are the same."""

import os
import signal
import threading
import time

import pytest
from cluster import network
from cluster.hosts import DASK, answers, kill, start, tls
from cluster.slurm import wait
from cluster.work import at_once, counted, exact_jobs, slow_jobs

from sigdask.execution.clusters import connect, parse_description
from sigdask.execution.clusters.settings import environment

PORT = 8786
SCHEDULER, CUT, SLOW, HUNG, GOOD = 1, 2, 3, 4, 5


@pytest.fixture
def hosts(tmp_path, certificates, monkeypatch):
    """A scheduler on one host, a worker on each of four others; yields the network and the workers' processes."""
    if reason := network.missing():
        pytest.skip(reason)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    with network.Network(5) as net:
        address = f"tls://{net.address(SCHEDULER)}:{PORT}"
        quiet = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--protocol", "tls"]
        at = [
            "--host",
            net.address(SCHEDULER),
            "--port",
            PORT,
            *tls(certificates, "scheduler"),
            "--preload",
            "sigdask.execution.clusters.hung_workers",
        ]
        started = {
            0: start(
                DASK, "scheduler", *at, *quiet[1:2], "127.0.0.1:0", *quiet[3:], log=tmp_path / "s.log", prefix=net.on(1)
            )
        }
        wait(lambda: answers(PORT, net.address(SCHEDULER)), "scheduler", 30)
        for host in (CUT, SLOW, HUNG, GOOD):
            options = [
                "--host",
                net.address(host),
                "--nthreads",
                "1",
                "--name",
                host,
                *quiet,
                *tls(certificates, "worker"),
            ]
            started[host] = start(DASK, "worker", address, *options, log=tmp_path / f"{host}.log", prefix=net.on(host))
        try:
            yield net, started, address
        finally:
            for process in started.values():
                kill(process, signal.SIGCONT)
                kill(process)


def removed(client, host, since):
    """Return after how many seconds the scheduler took a host for lost."""
    wait(
        lambda: not any(f"{network.NET}.{host}:" in address for address in client.nthreads()), f"removal of {host}", 60
    )
    return time.monotonic() - since


def test_a_host_cut_off_a_slow_one_and_a_hung_one_change_no_count(hosts, certificates):
    net, started, address = hosts
    jobs = [*exact_jobs(200_000), *slow_jobs(6000)]
    want = counted([*exact_jobs(200_000), *slow_jobs(6000, function=at_once)], cluster="none")
    described = parse_description(
        {"class": "address", "wait": 60, "options": {"address": address}, "security": {"folder": str(certificates.ca.parent)}},
        source="c",
    )  # fmt: skip
    with connect(described) as cluster:
        wait(lambda: len(cluster.client.nthreads()) == 4, "four workers", 30)
        counted(jobs[:2], cluster=cluster)  # compiles everywhere
        begun = time.monotonic()
        net.slow_down(SLOW)
        recovered = {}

        def disturb():
            time.sleep(2)
            since = time.monotonic()
            net.cut(CUT)
            os.killpg(started[HUNG].pid, signal.SIGSTOP)
            for host in (CUT, HUNG):
                recovered[host] = removed(cluster.client, host, since)

        disturber = threading.Thread(target=disturb)
        disturber.start()
        got = counted(jobs, cluster=cluster)
        lasted = time.monotonic() - begun
        disturber.join()
        assert got == want
    print(
        f"cut off: lost after {recovered[CUT]:.1f} s; hung: after {recovered[HUNG]:.1f} s; the run took {lasted:.1f} s"
    )
    assert lasted < 75
    assert max(recovered.values()) < 30
