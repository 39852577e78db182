"""Tests of cluster files: what is understood, and that each mistake is one clear error."""

import os

import pytest

from sigdask.errors import InputError
from sigdask.execution.clusters import connect, parse_description, read
from sigdask.execution.clusters.description import KINDS

GOOD = {"class": "slurm", "workers": 2, "options": {"cores": 1, "memory": "1GB"}}

BAD = [
    ({"workers": 2}, "key class is missing"),
    ({"class": "slrum"}, "did you mean 'slurm'"),
    ({"class": "slurm", "worker": 2}, "unknown key 'worker'; did you mean 'workers'"),
    ({"class": "slurm", "cores": 2}, r"belong in \[options\]"),
    ({"class": "slurm", "workers": "2"}, "must be a whole number"),
    ({"class": "slurm", "workers": 0}, "must be from 1 to"),
    ({"class": "slurm", "minimum": 2}, "minimum without maximum"),
    ({"class": "slurm", "minimum": 3, "maximum": 2}, "more than maximum"),
    ({"class": "slurm", "workers": 2, "maximum": 2}, "exclude each other"),
    ({"class": "slurm", "wait": "soon"}, "must be a duration"),
    ({"class": "slurm", "security": "ssl"}, 'must be "tls", "tcp" or a table'),
    ({"class": "slurm", "security": {"ca": "ca.pem"}}, "belong together"),
    ({"class": "slurm", "security": {"cret": "x"}}, "did you mean 'cert'"),
    ({"class": "slurm", "options": []}, "must be a table"),
    ({"class": "slurm", "submit": {"walltme": "1:00"}}, "did you mean 'walltime'"),
    ({"class": "local", "expose": "yes"}, "expose = 'yes': must be true or false"),
    ({"class": 7}, "must be a string"),
    ({"class": "slurm", "options": {"cores": "x"}}, r"\[options\]: cores = 'x': must be a whole number"),
    ({"class": "slurm", "options": {"cores": 0}}, r"\[options\]: cores = 0: must be from 1 to"),
    ({"class": "slurm", "options": {"processes": False}}, r"\[options\]: processes = False: must be a whole number"),
    ({"class": "ssh", "options": {"worker_options": 3}}, r"\[options\]: worker_options = 3: must be a table"),
    ({"class": "ssh", "options": {"worker_options": {"nthreads": "x"}}}, "nthreads = 'x': must be a whole number"),
    ({"class": "slurm", "options": {"worker_extra_args": "x"}}, "worker_extra_args = 'x': must be a list"),
    ({"class": "slurm", "submit": {"restarts": "many"}}, r"\[submit\]: restarts = 'many': must be a whole number"),
    ({"class": "slurm", "submit": {"log": 3}}, r"\[submit\]: log = 3: must be a string"),
    ({"class": "slurm", "submit": {"directives": [3]}}, r"\[submit\]: directives = \[3\]: must be a list of strings"),
    ({"class": "os:system('rm')"}, "known classes"),
]


@pytest.mark.parametrize(("table", "message"), BAD, ids=[m for _, m in BAD])
def test_each_mistake_is_named(table, message):
    with pytest.raises(InputError, match=message) as raised:
        parse_description(table, source="c.toml")
    assert str(raised.value).startswith("c.toml")


def test_tls_is_the_default_and_plain_tcp_is_asked_for():
    assert not parse_description(GOOD, source="c").transport.plain
    assert parse_description({**GOOD, "security": "tcp"}, source="c").transport.plain
    assert parse_description({"class": "local", "security": "tcp"}, source="c").transport.plain
    assert all(not parse_description({"class": kind}, source="c").transport.plain for kind in KINDS)


def test_paths_of_certificates_are_relative_to_the_file(tmp_path):
    (tmp_path / "c.toml").write_text('class = "address"\n[security]\nca = "ca.pem"\ncert = "c.pem"\nkey = "k.pem"\n')
    assert read(tmp_path / "c.toml").transport.key == tmp_path / "k.pem"


def test_a_size_given_on_the_command_line_wins():
    adaptive = parse_description({"class": "slurm", "minimum": 0, "maximum": 9}, source="c")
    assert adaptive.is_adaptive
    assert adaptive.max_workers == 9
    assert adaptive.with_workers(3).max_workers == 3
    assert not adaptive.with_workers(3).is_adaptive


@pytest.mark.parametrize("text", ["class = ", "\x00", "class = 'local'\nclass = 'ssh'"])
def test_a_file_that_is_no_toml_is_an_error(tmp_path, text):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(InputError, match=r"c\.toml: not TOML"), connect(str(tmp_path / "c.toml")):
        pass


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no such file"), connect(str(tmp_path / "c.toml")):
        pass


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"class": "address"}, "names no address"),
        ({"class": "address", "options": {"address": "127.0.0.1:1"}}, "must be tcp://HOST:PORT or tls"),
        ({"class": "address", "options": {"adress": "tcp://x:1"}}, "did you mean 'address'"),
        ({"class": "local", "options": {"treads_per_worker": 2}}, "did you mean 'threads_per_worker'"),
    ],
)
def test_what_a_class_does_not_take_is_an_error(table, message):
    pytest.importorskip("cryptography")
    with pytest.raises(InputError, match=message), connect(parse_description(table, source="c.toml")):
        pass


@pytest.mark.slow
def test_a_local_cluster_may_have_threads_for_workers():
    table = {"class": "local", "workers": 1, "options": {"processes": False}}
    with connect(parse_description(table, source="c.toml")) as cluster:
        assert list(cluster.client.run(os.getpid).values()) == [os.getpid()]
