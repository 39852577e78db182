"""Tests of the peak memory of the largest commands, each in its own process."""

import sys

import pytest

MEGABYTE = 10**6


@pytest.mark.slow
def test_half_a_million_comparisons_with_their_json_stay_below_a_gigabyte_and_a_half(tmp_path):
    from benchmarks.scale import run_measured
    from benchmarks.scale_cases import pairs_of_1000

    case, *_ = pairs_of_1000(tmp_path, "full")
    took = run_measured([sys.executable, "-m", "sigdask", *case.arguments], tmp_path)
    assert took.status == 0, took.output_end
    assert (tmp_path / "out.json").stat().st_size > 100 * MEGABYTE
    assert took.peak < 1500 * MEGABYTE
