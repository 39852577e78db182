"""Tests of cluster files: what is understood, and that each mistake is one clear error."""

import os

import pytest

from sigdask.errors import InputError
from sigdask.execution.clusters import connect
from sigdask.execution.clusters.description import parse_description

BAD = [
    ({"workers": 2}, "class is missing"),
    ({"class": "slrum"}, "class = 'slrum'"),
    ({"class": "slurm", "worker": 2}, "unknown key 'worker'; did you mean 'workers'"),
    ({"class": "slurm", "nodes_": 2}, r"belong in \[options\]"),
    ({"class": "slurm", "workers": "2"}, "workers = '2'"),
    ({"class": "slurm", "workers": True}, "workers = True"),
    ({"class": "slurm", "workers": 0}, "workers = 0"),
    ({"class": "slurm", "minimum": 2}, "minimum without maximum"),
    ({"class": "slurm", "minimum": 3, "maximum": 2}, "more than maximum"),
    ({"class": "slurm", "workers": 2, "maximum": 2}, "exclude each other"),
    ({"class": "slurm", "wait": "soon"}, "wait"),
    ({"class": "slurm", "security": "ssl"}, "security = 'ssl'"),
    ({"class": "slurm", "certificates": {"ca": "ca.pem"}}, "certificates.cert is missing"),
    ({"class": "slurm", "certificates": {"cret": "x", "ca": "x", "cert": "x", "key": "x"}}, "did you mean 'cert'"),
    ({"class": "slurm", "options": []}, "options = "),
    ({"class": "slurm", "submit": {"walltme": "1:00"}}, "did you mean 'walltime'"),
    ({"class": "slurm", "options": {"cores": "x"}}, "options.cores = 'x'"),
    ({"class": "ssh", "options": {"hosts": "node1"}}, "options.hosts = 'node1'"),
    ({"class": "slurm", "submit": {"directives": [3]}}, "submit.directives.0 = 3"),
]


@pytest.mark.parametrize(("table", "message"), BAD, ids=[m for _, m in BAD])
def test_each_mistake_is_named(table, message):
    with pytest.raises(InputError, match=message) as raised:
        parse_description(table, source="c.toml")
    assert str(raised.value).startswith("c.toml")


def test_a_size_given_on_the_command_line_wins():
    adaptive = parse_description({"class": "slurm", "minimum": 0, "maximum": 9}, source="c")
    assert adaptive.maximum == 9
    assert (adaptive.with_workers(3).workers, adaptive.with_workers(3).maximum) == (3, None)


@pytest.mark.parametrize("text", ["class = ", "\x00", "class = 'local'\nclass = 'ssh'"])
def test_a_file_that_is_no_toml_is_an_error(tmp_path, text):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(InputError, match=r"c\.toml: not TOML"), connect(str(tmp_path / "c.toml")):
        pass
    with pytest.raises(InputError, match="no such file"), connect(str(tmp_path / "none.toml")):
        pass


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"class": "address"}, "must be tcp://HOST:PORT or tls"),
        ({"class": "address", "options": {"address": "127.0.0.1:1"}}, "must be tcp://HOST:PORT or tls"),
        ({"class": "local", "options": {"treads_per_worker": 2}}, "treads_per_worker"),
        ({"class": "local", "options": {"threads_per_worker": 2, "hosts": ["x"]}}, "hosts"),
        ({"class": "kubernetes"}, r'supports only plain tcp: write security = "tcp"'),
    ],
)
def test_what_a_class_does_not_take_is_an_error(table, message):
    with pytest.raises(InputError, match=message), connect(parse_description(table, source="c.toml")):
        pass


@pytest.mark.slow
def test_a_local_cluster_may_have_threads_for_workers():
    table = {"class": "local", "workers": 1, "options": {"processes": False}}
    with connect(parse_description(table, source="c.toml")) as cluster:
        assert list(cluster.client.run(os.getpid).values()) == [os.getpid()]
