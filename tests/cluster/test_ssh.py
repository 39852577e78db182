"""Tests on a real sshd on loopback: scheduler and workers started through it, over TLS."""

import sys

import pytest
from cluster.work import counted

from sigdask.errors import InputError
from sigdask.execution.clusters import connect
from sigdask.execution.clusters.description import parse_description

pytest.importorskip("asyncssh")
pytest.importorskip("cryptography")


def build_description(login, **changed):
    options = {
        "hosts": ["127.0.0.1"] * 3,
        "remote_python": sys.executable,
        "connect_options": login,
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


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hosts": ["127.0.0.1", "127.0.0.9"]}, r"ssh 127\.0\.0\.9"),
        ({"remote_python": "/nosuch/python"}, r"ssh 127\.0\.0\.1: .*/nosuch/python"),
        ({"connect_options": {"port": 1}}, r"ssh 127\.0\.0\.1: "),
        ({"hosts": ["127.0.0.1"]}, r"class ssh needs hosts"),
        ({"host": ["127.0.0.1"]}, r"unexpected keyword argument 'host'"),
    ],
)
def test_a_host_that_cannot_be_used_is_named(login, changed, message):
    options = dict(login) | changed.pop("connect_options", {})
    with pytest.raises(InputError, match=message), connect(build_description(options, **changed)):
        pass


def test_a_host_key_that_is_not_known_is_refused(login, tmp_path):
    (tmp_path / "known").write_text("")
    options = {**login, "known_hosts": str(tmp_path / "known")}
    with pytest.raises(InputError, match="Host key is not trusted"), connect(build_description(options)):
        pass
