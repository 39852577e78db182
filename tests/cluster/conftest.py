"""Fixtures of real clusters; each says why it cannot be had where it cannot."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from cluster import slurm as slurm_room
from cluster.work import counted, exact_jobs, slow_jobs

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents and not _is_written_only(item):
            item.add_marker(pytest.mark.cluster)


def _is_written_only(item):
    """Whether a job is written for a queue, and not sent to one, which is quick."""
    return item.path.name == "test_submission.py" and "queue" not in item.fixturenames


@pytest.fixture(autouse=True)
def _home(tmp_path_factory, monkeypatch):
    """Certificates of a run go to a home of the test's own; workers can import the tests."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    paths = [str(HERE.parent.parent), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))


@pytest.fixture(scope="session")
def exact():
    """Jobs and their counts in this process."""
    jobs = exact_jobs()
    return jobs, counted(jobs, cluster="none")


@pytest.fixture(scope="session")
def slow():
    """Jobs of 4 ms a trial and their counts in this process."""
    jobs = slow_jobs()
    return jobs, counted(jobs, cluster="none")


@pytest.fixture(scope="session")
def queue():
    """A real Slurm of two nodes."""
    if absent := slurm_room.absent():
        pytest.skip(f"Slurm is not installed ({', '.join(absent)}): apt-get install slurm-wlm munge")
    if os.geteuid() != 0:
        pytest.skip("slurmd is started as root here")
    pytest.importorskip("dask_jobqueue")
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    with slurm_room.Slurm(folder) as started:
        yield started
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def slurm(queue, monkeypatch):
    """Slurm, with nothing left over from other tests."""
    for name, value in queue.environment.items():
        monkeypatch.setenv(name, value)
    yield queue
    queue.run("scancel", *queue.jobs("all"), check=False)
    slurm_room.wait(lambda: not queue.jobs("all"), "empty queue", 30)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """Certificates of an authority of the tests."""
    pytest.importorskip("cryptography")
    from sigdask.execution.certificates import create_certificates

    return create_certificates(tmp_path_factory.mktemp("tls") / "own")
