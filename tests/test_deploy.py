"""The scripts in deploy/ do what their README says."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
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
        for _ in range(300):
            if file.is_file() and file.stat().st_size:
                break
            time.sleep(0.1)
        assert "127.0.0.1" in json.loads(file.read_text())["address"]
        command = [BIN / "sigdask", "compare", YEH, "--metric", "f1", "--json", "-", "--cluster"]
        there, here = (subprocess.check_output([*command, where], text=True) for where in (file, "none"))
        assert there == here
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


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
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / "sigdask@nightly.service", tmp_path / "sigdask@nightly.timer"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "sigdask@" not in done.stderr
    calendar = re.search("OnCalendar=(.*)", (ROOT / "deploy" / "sigdask@.timer").read_text())[1]
    assert subprocess.run(["systemd-analyze", "calendar", calendar], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(shutil.which("flock") is None, reason="no flock")
def test_the_line_of_cron_runs_the_plan_and_excludes_a_second_night(tmp_path):
    lines = [x for x in (ROOT / "deploy" / "crontab").read_text().splitlines() if x and x[0] not in "#SP"]
    assert len(lines) == 1
    *when, command = lines[0].split(maxsplit=5)
    assert when == ["30", "1", "*", "*", "*"]
    assert "%" not in command  # cron would read a new line
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "sigdask"
    program.write_text('#!/bin/sh\necho "$@"\nsleep 2\n')
    program.chmod(0o755)
    command = command.replace("/srv/evaluation", str(tmp_path))
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    first = subprocess.Popen(["/bin/sh", "-c", command], env=environment)
    time.sleep(0.5)
    assert subprocess.run(["/bin/sh", "-c", command], env=environment, check=False).returncode == 1
    assert first.wait() == 0
    assert (tmp_path / "nightly.log").read_text() == "run nightly.toml --deadline 06:00\n"
