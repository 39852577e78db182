"""Tests that the benchmarks run: scale in a small size, the scheduler simulation with few workers, mutants of modules."""

import subprocess
import sys
from random import Random

import pytest
from conftest import ROOT


def run_benchmark(module, *arguments):
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines() if "|" in line]


@pytest.mark.slow
def test_every_case_of_scale_ends_well_in_a_small_size():
    from benchmarks.scale_cases import GROUPS, WMT

    rows = run_benchmark("scale", "--small")
    assert len(rows) >= len(GROUPS) - (not WMT.is_dir())
    for name, _, wall, cpu, peak, details in rows:
        assert "status" not in details, (name, details)
        assert float(wall) > 0 < float(cpu)
        assert float(peak.replace(",", "")) > 10  # what Python alone takes


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["0", "0.25"])
def test_a_simulated_cluster_finishes_its_tasks_with_and_without_lost_workers(lost):
    _, _, row = run_benchmark("scheduler", "8", f"0.2,6,{lost}")
    assert (row[0], row[2]) == ("8", "48")
    assert int(row[3]) == 8 * float(lost)


@pytest.mark.slow
def test_what_dask_costs_is_measured_beside_threads_and_bare_processes():
    rows = run_benchmark("overhead", "1", str(2**22))
    assert [row[0] for row in rows[2:]] == ["1 thread", "2 threads", "2 processes", "2 workers"]


SOURCE = '''
"""Two numbers."""
LIMIT: int = 3


def clip(value: float, low: float = 0.5) -> float:
    """Return at least 1, or more."""
    if not value < low and LIMIT != 4:
        raise ValueError(f"{value + 1} is not less than {low}")
    value -= min(value, low)
    return value


def describe(value: float) -> str:
    return str(value + 1)
'''


def test_mutants_change_one_thing_and_leave_text_and_annotations_alone():
    from benchmarks.mutants import count_skipped, draw_mutants, list_names, list_places

    changes = {(SOURCE.encode()[slice(*place.span)].decode(), place.texts) for place in list_places(SOURCE)}
    assert changes == {
        ("3", ("4", "2")), ("0.5", ("1.5", "-0.5")), ("not ", ("",)), ("<", ("<=",)), ("and", ("or",)), ("!=", ("==",)),
        ("4", ("5", "3")), ('raise ValueError(f"{value + 1} is not less than {low}")', ("pass",)), ("-=", ("+=",)),
        ("value -= min(value, low)", ("pass",)), ("min", ("max",)), ("value", ("-(value)",)),
    }  # fmt: skip
    assert count_skipped(SOURCE, ["describe"]) == 2  # a sum and the constant in it
    assert list_names(SOURCE) == {"LIMIT", "clip", "describe"}
    mutants = draw_mutants(SOURCE, ["clip"], 5, Random(1))
    assert [mutant.name for mutant in mutants] == 5 * ["clip"]
    assert draw_mutants(SOURCE, ["clip"], 5, Random(1)) == mutants
    assert all(mutant.source != SOURCE and len(mutant.diff) == 2 for mutant in mutants)


def test_every_row_of_mutation_testing_names_what_is_there():
    from benchmarks.mutation import TARGETS, choose_targets

    assert choose_targets([]) == list(TARGETS)
