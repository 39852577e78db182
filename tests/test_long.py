"""Tests of which tests a plain run leaves out, and how to select them."""

import conftest  # noqa: F401  # loaded once, not for each of the inner runs
import pytest

pytest_plugins = ["pytester"]

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
def test_long_tests_run_when_they_are_asked_for(pytester, asked, ran, is_said):
    pytester.makepyfile(test_it=TESTS)
    pytester.makeini("[pytest]\nmarkers =\n    slow\n    chaos\n")
    result = pytester.runpytest_inprocess("-v", "-p", "conftest", *asked)
    assert result.ret == 0
    passed = [line.partition("::test_")[2].split()[0] for line in result.outlines if " PASSED " in line]
    assert (set(passed), len(passed)) == (ran, len(ran))
    assert any(LEFT_OUT_MESSAGE in line for line in result.outlines) == is_said
