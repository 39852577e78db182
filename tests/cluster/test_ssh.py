"""Tests on a real sshd on loopback: scheduler and workers started through it, over TLS."""

import asyncio
import sys

import pytest
from cluster.work import counted

from sigdask.errors import InputError
from sigdask.execution.clusters import connect, parse_description

pytest.importorskip("asyncssh")
pytest.importorskip("cryptography")


def build_description(login, **changed):
    options = {
        "hosts": ["127.0.0.1", "127.0.0.1"],
        "python": sys.executable,
        "connect": login,
        "scheduler_options": {"host": "127.0.0.1"},
        "worker_options": {"host": "127.0.0.1", "nthreads": 1},
        **changed,
    }
    return parse_description({"class": "ssh", "wait": "60 s", "options": options}, source="ssh.toml")


def test_counts_are_those_of_this_process_over_tls(login, exact):
    jobs, want = exact
    with connect(build_description(login)) as cluster:
        assert cluster.client.scheduler_info()["address"].startswith("tls://")
        assert counted(jobs, cluster=cluster, blocks_per_task=1) == want


def test_settings_of_recovery_reach_the_scheduler_and_workers(login):
    import dask

    with connect(build_description(login)) as cluster:
        key = "distributed.scheduler.worker-ttl"
        assert cluster.client.run_on_scheduler(dask.config.get, key) == "15s"
        assert set(cluster.client.run(dask.config.get, "distributed.worker.profile.enabled").values()) == {False}


def test_certificates_are_copied_to_hosts_that_lack_them_for_their_owner_only(login, certificates, tmp_path):
    from sigdask.execution.clusters.ssh import _remove_files, prepare_hosts

    remote_home = tmp_path / "an other's home"
    contents = {remote_home / "certs" / path.name: path.read_text() for path in certificates}
    copied = asyncio.run(prepare_hosts(["127.0.0.1"], login, contents, sys.executable))
    assert [path for _, path in copied] == list(contents)
    assert {path.name for path in (remote_home / "certs").iterdir()} == {path.name for path in certificates}
    assert {path.stat().st_mode & 0o777 for path in (remote_home / "certs").iterdir()} == {0o600}
    assert not asyncio.run(prepare_hosts(["127.0.0.1"], login, contents, sys.executable))
    asyncio.run(_remove_files(copied, login))
    assert not (remote_home / "certs").exists()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hosts": ["127.0.0.1", "127.0.0.9"]}, r"ssh 127\.0\.0\.9"),
        ({"python": "/nosuch/python"}, r"/nosuch/python is not a program on that host"),
        ({"connect": {"port": 1}}, r"ssh 127\.0\.0\.1: "),
        ({"hosts": []}, r"must be a list of host names"),
        ({"host": ["127.0.0.1"]}, r"did you mean 'hosts'"),
    ],
)
def test_a_host_that_cannot_be_used_is_named(login, changed, message):
    options = dict(login) | changed.pop("connect", {})
    with pytest.raises(InputError, match=message), connect(build_description(options, **changed)):
        pass


def test_a_host_key_that_is_not_known_is_refused(login, tmp_path):
    (tmp_path / "known").write_text("")
    options = {**login, "known_hosts": str(tmp_path / "known")}
    with pytest.raises(InputError, match="Host key is not trusted"), connect(build_description(options)):
        pass
