"""Tests that the scripts in deploy/ do what their README says."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from cluster.slurm import wait_until
from conftest import ROOT, YEH

BIN = Path(sys.executable).parent


@pytest.mark.cluster
def test_a_cluster_on_loopback_counts_like_this_process(tmp_path):
    file = tmp_path / "scheduler.json"
    started = subprocess.Popen(
        [ROOT / "deploy" / "cluster.sh", "2", file],
        env={**os.environ, "DASK": str(BIN / "dask")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(lambda: file.is_file() and file.stat().st_size, "scheduler file", 300)
        assert "127.0.0.1" in json.loads(file.read_text())["address"]
        command = [BIN / "sigdask", "compare", YEH, "--metric", "f1", "--json", "-", "--cluster"]
        on_cluster, in_process = (subprocess.check_output([*command, cluster], text=True) for cluster in (file, "none"))
        assert on_cluster == in_process
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def write_fake_dask(folder, text):
    """Write a stand-in for dask whose child processes must end with the script."""
    (folder / "dask").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "dask").chmod(0o755)
    return {**os.environ, "DASK": str(folder / "dask")}


@pytest.mark.parametrize(("status", "told"), [(7, 7), (0, 1)])
def test_a_scheduler_that_does_not_start_is_told_with_its_status(tmp_path, status, told):
    command = [ROOT / "deploy" / "cluster.sh", "2", tmp_path / "scheduler.json"]
    environment = write_fake_dask(tmp_path, f"exit {status}")
    result = subprocess.run(command, env=environment, timeout=300, capture_output=True, text=True, check=False)
    assert result.returncode == told
    assert f"dask scheduler ended with status {told} before it wrote {tmp_path}/scheduler.json" in result.stderr


def test_a_cluster_that_is_stopped_takes_its_processes_with_it_and_no_others(tmp_path):
    file, ends = tmp_path / "scheduler.json", tmp_path / "ended"
    text = (
        f"trap 'echo $1 >> {ends}; exit 0' TERM\n[ \"$1\" = scheduler ] && echo x > {file}\n"
        f"echo $1 >> {tmp_path}/begun\nwhile :; do sleep 0.1; done"
    )
    shell = f"{ROOT}/deploy/cluster.sh 2 {file} & echo $! > {tmp_path}/pid; wait $!; echo $? > {tmp_path}/status"
    caller = subprocess.Popen(["bash", "-c", shell], env=write_fake_dask(tmp_path, text), start_new_session=True)
    try:
        begun = tmp_path / "begun"
        wait_until(lambda: begun.exists() and len(begun.read_text().split()) == 2, "start of both", 300)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
        assert caller.wait(300) == 0  # in the same process group, and left alone
        assert (tmp_path / "status").read_text() == "143\n"
        assert sorted(ends.read_text().split()) == ["scheduler", "worker"]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(caller.pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_night_leaves_a_table_and_a_json_and_excludes_a_second_one(tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_text("item,x,y\na,1,2\nb,2,1\n")
    command = [ROOT / "deploy" / "nightly.sh", scores, tmp_path / "results"]
    environment = {**os.environ, "SIGDASK": str(BIN / "sigdask")}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert [p.suffix for p in sorted((tmp_path / "results").glob("2*"))] == [".json", ".txt"]
    with (tmp_path / "results" / ".lock").open() as lock:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        assert subprocess.run(command, env=environment, check=False, capture_output=True).returncode == 2


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path):
    for unit in ("service", "timer"):
        shutil.copy(ROOT / "deploy" / f"sigdask@.{unit}", tmp_path / f"sigdask@nightly.{unit}")
    result = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / "sigdask@nightly.service", tmp_path / "sigdask@nightly.timer"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "sigdask@" not in result.stderr
    calendar = re.search("OnCalendar=(.*)", (ROOT / "deploy" / "sigdask@.timer").read_text())[1]
    assert subprocess.run(["systemd-analyze", "calendar", calendar], capture_output=True, check=False).returncode == 0
