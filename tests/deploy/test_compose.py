"""The Dockerfile is built, and the services of the compose file run from the image until a plan is done."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from cluster.slurm import wait
from conftest import ROOT
from deploy.containers import ADDRESSES, DOCKER, Composed, Images, missing

pytestmark = pytest.mark.cluster
USER = 10001

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
    if why := missing():
        pytest.skip(why)
    with Images(Path(tempfile.mkdtemp(prefix="sigdask-images-"))) as built:
        yield built


@pytest.fixture
def prepared(tmp_path):
    """What deploy/docker/README.md says to make before the services are started."""
    sigdask("certificates", tmp_path / "certificates")
    for path in [tmp_path / "certificates", *(tmp_path / "certificates").iterdir()]:
        os.chown(path, USER, USER)
    (tmp_path / "postgres.password").write_text("5ecre7\n")
    (tmp_path / "plan").mkdir()
    shutil.copy(DOCKER / "cluster.toml", tmp_path / "plan")
    rows = "".join(f"q{k},{k * k % 89 / 89:.4f},{k * 7 % 97 / 97:.4f},{k * 5 % 83 / 90:.4f}\n" for k in range(400))
    (tmp_path / "plan" / "t.csv").write_text("item,a,b,c\n" + rows)
    (tmp_path / "plan" / "plan.toml").write_text(PLAN)
    return tmp_path


def sigdask(*arguments, before=()):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PGPASSWORD": "5ecre7"}
    command = [*before, sys.executable, "-m", "sigdask", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def found(store, **how):
    """What a store holds but when and where it was run."""
    report = json.loads(sigdask("report", store, "--json", "-", **how))
    assert report.pop("run")["state"] == "finished"
    return report


def computed(services, name):
    """Seconds that the processes of a service have computed."""
    return sum(sum(process.cpu_times()[:2]) for process in services.processes(name))


def test_services_of_the_compose_file_finish_a_plan_though_a_worker_is_killed(images, prepared):
    with Composed(images, prepared) as services:
        services.start("postgres")
        services.check_health("postgres")
        services.start("scheduler")
        for name in ("worker-1", "worker-2"):
            services.start("worker", name)
        wait(lambda: services.say("scheduler").count("Register worker") == 2, "workers", 60)
        before = computed(services, "worker-1")
        services.start("driver")
        wait(lambda: computed(services, "worker-1") > before + 2 or services.has_ended("driver"), "work", 120)
        assert not services.has_ended("driver"), services.say("driver")
        services.kill("worker-1")
        services.start("worker", "worker-1")  # restart: always
        status, said = services.finish("driver", 240)
        assert status == 0, said
        assert not services.has_ended("worker-2")
        store = f"postgresql://sigdask@{ADDRESSES['postgres']}/sigdask"
        there = found(store, before=services.inside([]))
        services.start("driver", "driver-again")
        status, said = services.finish("driver-again", 120)
        assert status == 0, said
        assert "\nsigdask: 0 trials counted" in said
    here = prepared / "here.sqlite"
    sigdask("run", prepared / "plan" / "plan.toml", "--cluster", "threads", "--store", here)
    assert there == found(here)
