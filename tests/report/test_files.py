"""Tests that files are written whole or not at all, and keep their permissions."""

import os
import stat

import pytest

from sigdask import compare_all, read
from sigdask.errors import UnfinishedError
from sigdask.report.files import write_parts


def get_mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    previous = os.umask(0o077)
    yield
    os.umask(previous)


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:
        write_parts(pipe, ["text\n"])
        assert reader.read() == "text\n"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_a_new_file_has_the_mode_of_the_umask_and_an_old_one_keeps_its_own(tmp_path):
    write_parts(tmp_path / "new", ["text"])
    assert get_mode(tmp_path / "new") == 0o600
    (tmp_path / "old").write_text("before")
    (tmp_path / "old").chmod(0o664)
    write_parts(tmp_path / "old", ["text"])
    assert get_mode(tmp_path / "old") == 0o664
    assert (tmp_path / "old").read_text() == "text"


@pytest.mark.parametrize("target", ["file", "there/new"])
def test_nothing_is_written_through_a_link_to_a_file_but_into_a_folder_that_is_a_link(tmp_path, target):
    (tmp_path / "there").mkdir()
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(UnfinishedError, match="symbolic link; name the file itself"):
        write_parts(tmp_path / "link", ["text"])
    assert (tmp_path / "file").read_text() == "kept"
    assert [*(tmp_path / "there").iterdir()] == []
    (tmp_path / "folder").symlink_to("there")
    write_parts(tmp_path / "folder" / "new", ["text"])
    assert (tmp_path / "there" / "new").read_text() == "text"


def test_a_failure_is_told_and_leaves_nothing_behind(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("before")
    with pytest.raises(UnfinishedError, match="file: cannot be written .*surrogates not allowed"):
        write_parts(tmp_path / "file", ["a \udce9 that is none"])
    with pytest.raises(UnfinishedError, match="folder: cannot be written"):
        write_parts(tmp_path / "folder", ["text"])
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UnfinishedError, match="loop: cannot be written"):
        write_parts(tmp_path / "loop", ["text"])
    (tmp_path / "loop").unlink()
    with pytest.raises(UnfinishedError, match="gone/file: cannot be written"):
        write_parts(tmp_path / "gone" / "file", ["text"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "before"


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(UnfinishedError, match="No space left"):
        write_parts(tmp_path / "file", ["text"])
    assert list(tmp_path.iterdir()) == []


def test_a_page_names_files_without_the_folders_that_they_share(tmp_path):
    home = tmp_path / "of a user"
    (home / "systems").mkdir(parents=True)
    (home / "gold.conll").write_text("get O\nit B-X\n\nnow O\n\n" * 30)
    for name, tag in ("a", "B-X"), ("b", "O"):
        (home / "systems" / f"{name}.conll").write_text(f"gt O\nit {tag}\n\nnow O\n\n" * 30)
    systems = sorted((home / "systems").iterdir())
    results = compare_all(read(*systems, gold=home / "gold.conll", format="conll"), metrics=["f1"], trials=99)
    results.write(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "systems/a.conll" in page
    assert "of a user" not in page
