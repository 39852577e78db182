"""Tests of importing the user's own modules, in this process and in local workers."""

from sigdask.io import addresses


def test_modules_of_the_current_folder_are_found_and_local_workers_are_told_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lonely_module.py").write_text("number = 7\n")
    assert addresses.load_object("lonely_module:number", "metric") == 7
    assert (*addresses.FOLDERS,)[-1] == str(tmp_path)


def test_what_stands_on_the_path_is_found_before(tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "twice_there.py").write_text(f"where = {name!r}\n")
    addresses.add_folder(tmp_path / "second")
    monkeypatch.syspath_prepend(tmp_path / "first")
    assert addresses.load_object("twice_there:where", "metric") == "first"


def test_a_folder_is_the_one_it_was_when_the_program_goes_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "stays_found.py").write_text("number = 7\n")
    monkeypatch.chdir(tmp_path)
    addresses.add_folder("mine")
    monkeypatch.chdir("/")
    assert addresses.load_object("stays_found:number", "metric") == 7
