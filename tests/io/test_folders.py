"""Temporary folders: private, removed in the end, and swept after a kill."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

from sigdask.io.folders import LOCK, make_private_folder


def test_a_folder_is_its_owners_alone_and_gone_in_the_end(tmp_path):
    with make_private_folder("run-", tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        with make_private_folder("run-", tmp_path):
            assert len(list(tmp_path.iterdir())) == 2
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_swept_and_what_lives_or_is_not_ours_stays(tmp_path):
    code = (
        "import os, signal; from pathlib import Path; from sigdask.io.folders import make_private_folder\n"
        f"with make_private_folder('run-', Path({str(tmp_path)!r})): os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == -9
    [leftover] = tmp_path.iterdir()
    (tmp_path / "run-elsewhere").mkdir()
    (tmp_path / "run-elsewhere" / LOCK).write_text("another host")
    (tmp_path / "run-file").touch()
    (tmp_path / "run-link").symlink_to(leftover)
    (tmp_path / "run-new").mkdir()
    (tmp_path / "run-old").mkdir()
    os.utime(tmp_path / "run-old", (0, 0))
    assert (leftover / LOCK).is_file()
    with make_private_folder("run-", tmp_path) as living, make_private_folder("run-", tmp_path):
        assert living.is_dir()
    assert {path.name for path in tmp_path.iterdir()} == {"run-elsewhere", "run-file", "run-link", "run-new"}


def test_where_nothing_can_be_made_it_says_so(tmp_path):
    with pytest.raises(OSError, match="No such file"), make_private_folder("run-", tmp_path / "absent"):
        pass
