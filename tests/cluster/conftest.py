"""Fixtures of real clusters. Each skips its tests with a reason where the cluster cannot be started."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from cluster import slurm as slurm_room
from cluster.hosts import start_sshd, write_certificates
from cluster.work import counted, exact_jobs, slow_jobs

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid.startswith("tests/cluster/") and not _is_dry_run(item):  # paths of thousands take seconds
            item.add_marker(pytest.mark.cluster)


def _is_dry_run(item):
    """Whether a test only writes a job for a queue and does not send it, which is quick."""
    return item.path.name == "test_submission.py" and "queue" not in item.fixturenames


@pytest.fixture(autouse=True)
def _home(tmp_path_factory, monkeypatch):
    """Point HOME at a folder of the test's own, for certificates, and let workers import the tests."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    paths = [str(FOLDER.parent.parent), str(FOLDER.parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))


@pytest.fixture(scope="session")
def exact():
    """Jobs, and their counts in this process."""
    jobs = exact_jobs()
    return jobs, counted(jobs, cluster="none")


@pytest.fixture(scope="session")
def slow():
    """Jobs of 4 ms a trial, and their counts in this process."""
    jobs = slow_jobs()
    return jobs, counted(jobs, cluster="none")


@pytest.fixture(scope="session")
def queue():
    """A real Slurm of two nodes."""
    if absent := slurm_room.list_missing_programs():
        pytest.skip(f"Slurm is not installed ({', '.join(absent)}): apt-get install slurm-wlm munge")
    if os.geteuid() != 0:
        pytest.skip("slurmd is started as root here")
    pytest.importorskip("dask_jobqueue")
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    with slurm_room.Slurm(folder) as running:
        yield running
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def slurm(queue, monkeypatch):
    """Slurm, with nothing left over from other tests."""
    for name, value in queue.environment.items():
        monkeypatch.setenv(name, value)
    yield queue
    queue.run("scancel", *queue.jobs("all"), check=False)
    slurm_room.wait_until(lambda: not queue.jobs("all"), "empty queue", 300)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A certificate of the tests' own, and its key."""
    pytest.importorskip("cryptography")
    return write_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def login(tmp_path_factory):
    """Options to log in to a real sshd on loopback."""
    pytest.importorskip("asyncssh")
    if shutil.which("sshd") is None:
        pytest.skip("sshd is not installed: apt-get install openssh-server")
    with start_sshd(tmp_path_factory.mktemp("sshd")) as options:
        yield options
