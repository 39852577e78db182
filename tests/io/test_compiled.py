"""Compiled functions: kept between processes, and usable where nothing can be written."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

MODULE = """
from sigdask.io.caches import cached_njit

@cached_njit()
def twice(x):
    return 2 * x

print(twice(21), sum(twice.build().stats.cache_hits.values()))
"""


def run_module(folder, **environment):
    """Import a module that compiles; return its value and its cache hits."""
    if not (folder / "doubles.py").exists():  # else its time is another, and its code is compiled again
        (folder / "doubles.py").write_text(MODULE)
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    process = subprocess.run(
        [sys.executable, "-c", "import doubles"], cwd=folder, capture_output=True, text=True, check=True,
        env={**inherited, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), **environment},
    )  # fmt: skip
    return [int(number) for number in process.stdout.split()]


@pytest.mark.slow
def test_a_second_process_takes_the_compiled_function_from_the_cache(tmp_path):
    assert [run_module(tmp_path) for _ in range(2)] == [[42, 0], [42, 1]]


@pytest.mark.slow
def test_where_no_folder_can_be_written_each_process_compiles(tmp_path):
    for name in ("__pycache__", "file"):
        (tmp_path / name).touch()
    assert run_module(tmp_path, XDG_CACHE_HOME=str(tmp_path / "file")) == [42, 0]
