"""Tests of which tests a plain run leaves out, and how to select them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest


def test_quick(): ...


@pytest.mark.slow
def test_slow(): ...


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.chaos)])
def test_kills(number): ...
"""
LEFT_OUT_MESSAGE = "2 long tests were left out: --all runs them too"


@pytest.mark.parametrize(
    ("asked", "ran", "is_said"),
    [
        (["test_it.py"], {"quick", "kills[0]"}, True),
        (["test_it.py", "--all"], {"quick", "slow", "kills[0]", "kills[1]"}, False),
        (["test_it.py", "-m", "chaos"], {"kills[1]"}, False),
        (["test_it.py::test_slow"], {"slow"}, False),
    ],
)
def test_long_tests_run_when_they_are_asked_for(tmp_path, asked, ran, is_said):
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    chaos\n")
    paths = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "conftest", *asked], cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTEST_ADDOPTS": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    passed = [line.partition("::test_")[2].split()[0] for line in result.stdout.splitlines() if " PASSED " in line]
    assert (set(passed), len(passed)) == (ran, len(ran))
    assert (LEFT_OUT_MESSAGE in result.stdout) == is_said
