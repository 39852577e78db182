"""The cache folder: bounded, shared by processes, and never in the way."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from command import call_sigdask

from sigdask.metrics.extraction import NO_CACHE, FolderCache, get_user_cache


def test_entries_come_back_and_are_replaced(tmp_path):
    folder = FolderCache(tmp_path)
    folder.put({"aa1": b"one", "bb2": b"two"})
    folder.put({"aa1": b"other"})
    assert folder.get(["aa1", "bb2", "cc3"]) == {"aa1": b"other", "bb2": b"two"}
    assert {p.name for p in tmp_path.rglob("*") if p.is_file()} == {"aa1", "bb2"}


def test_a_folder_that_gets_full_is_emptied_first(tmp_path):
    folder = FolderCache(tmp_path, most_bytes=1000)
    for k in range(11):
        folder.put({f"{k:02}": bytes(100)})
    assert sorted(folder.get([f"{k:02}" for k in range(11)])) == ["10"]


def test_a_folder_that_cannot_be_made_or_read_is_no_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    folder = FolderCache(tmp_path / "file")
    folder.put({"aa1": b"one"})
    assert folder.get(["aa1"]) == {}
    (tmp_path / "extracted" / "aa" / "aa1").mkdir(parents=True)
    working = FolderCache(tmp_path)
    working.put({"aa1": b"one"})
    assert working.get(["aa1"]) == {}


WRITER_SCRIPT = """
import sys
from pathlib import Path
from sigdask.metrics.extraction import FolderCache
folder = FolderCache(Path(sys.argv[1]), most_bytes=40_000)
for k in range(150):
    key = f"{k % 30:02}x"
    folder.put({key: bytes([k % 30]) * 2000})
    for got, content in folder.get([f"{j:02}x" for j in range(30)]).items():
        assert content == bytes([int(got[:2])]) * 2000, got
"""


@pytest.mark.slow
def test_several_processes_use_one_folder(tmp_path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    processes = [subprocess.Popen([sys.executable, "-c", WRITER_SCRIPT, str(tmp_path)], env=env) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert sum(p.stat().st_size for p in files) <= 50_000
    assert not any(p.name.startswith(".") for p in files)


@pytest.mark.parametrize(
    ("variables", "where"),
    [
        ({"SIGDASK_CACHE": "/own"}, "/own/extracted"),
        ({"SIGDASK_CACHE": "", "XDG_CACHE_HOME": "/xdg"}, "/xdg/sigdask/extracted"),
        ({"SIGDASK_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "/home/me"}, "/home/me/.cache/sigdask/extracted"),
    ],
)
def test_the_folder_is_where_the_environment_says(monkeypatch, variables, where):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert get_user_cache().path == Path(where)


@pytest.mark.parametrize("off", ["OFF", "none", "0"])
def test_it_can_be_turned_off(monkeypatch, off):
    monkeypatch.setenv("SIGDASK_CACHE", off)
    assert get_user_cache() is NO_CACHE


def test_compare_keeps_and_finds_and_leaves_alone_what_no_cache_says(tmp_path, monkeypatch):
    for name, text in {"gold": "the cat sat\na dog ran\n", "x": "the cat\na dog\n", "y": "a cat\ndog ran\n"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("SIGDASK_CACHE", str(tmp_path / "cache"))
    command = ["compare", "x", "y", "--gold", "gold", "--metric", "BLEU", "--format", "segments"]
    called_here = partial(call_sigdask, cwd=tmp_path)
    first = called_here(*command, "--no-cache")
    assert not (tmp_path / "cache").exists()
    second = called_here(*command)
    files = {p: p.stat().st_ino for p in (tmp_path / "cache").rglob("*") if p.is_file()}
    third = called_here(*command)
    assert len(files) == 2
    assert files == {p: p.stat().st_ino for p in files}
    assert first.stdout == second.stdout == third.stdout
