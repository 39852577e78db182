"""Tests that the benchmarks run: scale in a small size."""

import subprocess
import sys

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
