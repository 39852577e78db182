"""Test of the Dockerfile and the compose file: its services run from the image until a plan is done."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from cluster.hosts import write_certificates
from cluster.slurm import wait_until
from conftest import ROOT
from deploy.containers import ADDRESSES, DOCKER, BuiltImages, ComposeServices, find_obstacle

pytestmark = pytest.mark.cluster
USER_ID = 10001

PLAN = """
trials = 60_000_000
pairs = { baseline = "a" }
metrics = ["mean"]
[[test_set]]
name = "t"
systems = "t.csv"
"""


@pytest.fixture(scope="module")
def images():
    if obstacle := find_obstacle():
        pytest.skip(obstacle)
    with BuiltImages(Path(tempfile.mkdtemp(prefix="sigdask-images-"))) as built:
        yield built


@pytest.fixture
def prepared(tmp_path):
    """Make what deploy/docker/README.md asks for before the services are started."""
    (tmp_path / "certificates").mkdir(mode=0o700)
    write_certificates(tmp_path / "certificates")
    for path in [tmp_path / "certificates", *(tmp_path / "certificates").iterdir()]:
        os.chown(path, USER_ID, USER_ID)
    (tmp_path / "postgres.password").write_text("5ecre7\n")
    (tmp_path / "plan").mkdir()
    shutil.copy(DOCKER / "cluster.toml", tmp_path / "plan")
    rows = "".join(f"q{k},{k * k % 89 / 89:.4f},{k * 7 % 97 / 97:.4f},{k * 5 % 83 / 90:.4f}\n" for k in range(400))
    (tmp_path / "plan" / "t.csv").write_text("item,a,b,c\n" + rows)
    (tmp_path / "plan" / "plan.toml").write_text(PLAN)
    return tmp_path


def run_sigdask(*arguments, before=()):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PGPASSWORD": "5ecre7"}
    command = [*before, sys.executable, "-m", "sigdask", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def read_report(store, **options):
    """Return the report of a store, except when and where it was run."""
    report = json.loads(run_sigdask("report", store, "--json", "-", **options))
    assert report.pop("run")["state"] == "finished"
    return report


def get_cpu_seconds(services, name):
    """Return the CPU seconds of the processes of a service."""
    return sum(sum(process.cpu_times()[:2]) for process in services.processes(name))


def test_services_of_the_compose_file_finish_a_plan_though_a_worker_is_killed(images, prepared):
    with ComposeServices(images, prepared) as services:
        services.start("postgres")
        services.check_health("postgres")
        services.start("scheduler")
        for name in ("worker-1", "worker-2"):
            services.start("worker", name)
        wait_until(lambda: services.read_log("scheduler").count("Register worker") == 2, "workers", 300)
        cpu_before = get_cpu_seconds(services, "worker-1")
        services.start("driver")
        wait_until(
            lambda: get_cpu_seconds(services, "worker-1") > cpu_before + 2 or services.has_ended("driver"), "work", 300
        )
        assert not services.has_ended("driver"), services.read_log("driver")
        services.kill("worker-1")
        services.start("worker", "worker-1")  # restart: always
        status, output = services.wait_for_exit("driver", 240)
        assert status == 0, output
        assert not services.has_ended("worker-2")
        store = f"postgresql://sigdask@{ADDRESSES['postgres']}/sigdask"
        service_report = read_report(store, before=services.wrap_in_network([]))
        services.start("driver", "driver-again")
        status, output = services.wait_for_exit("driver-again", 120)
        assert status == 0, output
        assert "sigdask: 0 trials counted" in output
    local_store = prepared / "here.sqlite"
    run_sigdask("run", prepared / "plan" / "plan.toml", "--cluster", "threads", "--store", local_store)
    assert service_report == read_report(local_store)
