"""The scripts in deploy/ do what their README says."""

import json
import os
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
