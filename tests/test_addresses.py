"""Tests of importing the user's own modules, in this process and in local workers."""

import importlib

import numpy as np
import pytest

from sigdask.execution.clusters import connect
from sigdask.execution.run import count_jobs
from sigdask.io import addresses
from sigdask.metrics.base import BlackBox
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.slabs import Job

MODULE = """
class Sum:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, outputs, gold):
        from {helper} import weight  # imported when it is called

        return self.scale * weight * float(sum(outputs))


def score(outputs, gold):
    return Sum(1.0)(outputs, gold)
"""


def write_modules(folder, name):
    """Write a module, and the one that it imports in another folder."""
    for folder_name, module, text in (
        ("own", name, MODULE.format(helper=f"{name}_helper")),
        ("beside", f"{name}_helper", "weight = 2.0\n"),
    ):
        (folder / folder_name).mkdir()
        (folder / folder_name / f"{module}.py").write_text(text)
        addresses.add_folder(folder / folder_name)
    importlib.invalidate_caches()


def test_modules_of_the_current_folder_are_found_and_local_workers_are_told_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lonely_module.py").write_text("number = 7\n")
    assert addresses.load_object("lonely_module:number", "metric") == 7
    assert addresses.list_folders()[-1] == str(tmp_path)


def test_what_stands_on_the_path_is_found_before(tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "twice_there.py").write_text(f"where = {name!r}\n")
    addresses.add_folder(tmp_path / "second")
    monkeypatch.syspath_prepend(tmp_path / "first")
    assert addresses.load_object("twice_there:where", "metric") == "first"


@pytest.mark.parametrize("regular", [True, False])
def test_packages_are_found_with_what_is_in_them(tmp_path, regular):
    name = f"own_package_{regular}"
    (tmp_path / name / "deep").mkdir(parents=True)
    for folder in (tmp_path / name, tmp_path / name / "deep"):
        if regular:
            (folder / "__init__.py").touch()
    (tmp_path / name / "deep" / "scores.py").write_text("number = 7\n")
    addresses.add_folder(tmp_path)
    assert addresses.load_object(f"{name}.deep.scores:number", "metric") == 7


def test_a_folder_is_the_one_it_was_when_the_program_goes_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "stays_found.py").write_text("number = 7\n")
    monkeypatch.chdir(tmp_path)
    addresses.add_folder("mine")
    monkeypatch.chdir("/")
    assert addresses.load_object("stays_found:number", "metric") == 7


@pytest.mark.slow
def test_local_workers_find_modules_where_the_driver_does_however_late_it_learnt_of_them(tmp_path):
    a, b = np.arange(12, dtype=object), np.arange(12, dtype=object)[::-1] % 5
    with connect("local", workers=1) as cluster:
        write_modules(tmp_path, "own_of_driver")
        user_module = importlib.import_module("own_of_driver")
        for function in (user_module.score, user_module.Sum(3.0)):  # by its name, and an object of its class
            panel = OutputsPanel((1, 2), BlackBox("own", function), a, b, None, np.arange(12), 12)
            jobs = [Job(panel, 100)]
            local_counts, cluster_counts = (
                count_jobs(jobs, cluster=name_of_cluster)[0].counts.tolist() for name_of_cluster in ("none", cluster)
            )
            assert local_counts == cluster_counts
