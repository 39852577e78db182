"""Tests of security: who can connect, what listens, and what hostile names and files cannot do."""

import os
import socket
import ssl

import psutil
import pytest
from cluster.hosts import start_dask_cluster, write_certificates
from cluster.work import counted

from sigdask.errors import InputError
from sigdask.execution.clusters import connect
from sigdask.execution.clusters.description import parse_description


@pytest.fixture(scope="module")
def secured(certificates, tmp_path_factory):
    with start_dask_cluster(tmp_path_factory.mktemp("tls-cluster"), files=certificates) as address:
        yield address


def describe_address(address, certificates):
    table = {"class": "address", "wait": 30, "options": {"address": address}, "certificates": certificates}
    return parse_description(table, source="c.toml")


def test_a_client_with_our_certificate_counts(secured, certificates, exact):
    jobs, want = exact
    with connect(describe_address(secured, certificates)) as cluster:
        assert counted(jobs, cluster=cluster, blocks_per_task=3) == want


def test_a_client_without_a_certificate_is_refused(secured):
    for address, message in ((secured, "TLS needs certificates"), (secured.replace("tls://", "tcp://"), "no dask sch")):
        with pytest.raises(InputError, match=message), connect(address):
            pass


def test_a_client_of_another_authority_is_refused_though_it_trusts_ours(secured, certificates, tmp_path):
    other = write_certificates(tmp_path)
    for security in (other, {**other, "ca": certificates["ca"]}):
        with (
            pytest.raises(InputError, match="no dask scheduler answers"),
            connect(describe_address(secured, security)),
        ):
            pass


def test_every_port_of_scheduler_nanny_and_worker_wants_a_certificate(secured, certificates):
    with connect(describe_address(secured, certificates)) as cluster:
        info = cluster.client.scheduler_info()
        ports = [secured, *info["workers"], *(worker["nanny"] for worker in info["workers"].values())]
        assert len(ports) == 3
        for address in ports:
            host, port = address.removeprefix("tls://").split(":")
            assert requires_certificate(host, int(port)), address


def requires_certificate(host, port):
    """Whether a handshake fails for lack of a certificate; TLS 1.3 says so at the first read."""
    context = ssl._create_unverified_context()
    try:
        with socket.create_connection((host, port), timeout=15) as raw, context.wrap_socket(raw) as encrypted:
            encrypted.recv(1)
    except (ssl.SSLError, TimeoutError) as error:
        return "certificate required" in str(error).lower()
    return False


def serves_pages(host, port):
    with socket.create_connection((host, port), timeout=60) as raw:
        raw.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        return raw.recv(5) == b"HTTP/"


def list_listening(pid):
    """Return the addresses on which a process and its children listen."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    addresses = set()
    for process in processes:
        try:
            addresses |= {(c.laddr.ip, c.laddr.port) for c in process.net_connections("inet") if c.status == "LISTEN"}
        except psutil.NoSuchProcess:
            continue
    return addresses


def test_who_reaches_loopback_without_a_certificate_can_run_nothing_on_a_local_cluster(exact):
    jobs, want = exact
    before = list_listening(os.getpid())
    with connect("local", workers=1) as cluster:
        assert counted(jobs, cluster=cluster) == want
        cluster_addresses = list_listening(os.getpid()) - before
        closed = [(ip, port) for ip, port in cluster_addresses if requires_certificate(ip, port)]
        assert len(closed) == 3  # scheduler, nanny and worker
        assert all(serves_pages(ip, port) for ip, port in cluster_addresses.difference(closed))
        with (
            pytest.raises(InputError, match="no dask scheduler answers"),
            connect(cluster.client.scheduler.address.replace("tls://", "tcp://")),
        ):
            pass
