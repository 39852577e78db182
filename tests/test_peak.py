"""What the largest commands hold at most, each in a process of its own."""

import sys

import pytest

MEGABYTE = 10**6


@pytest.mark.slow
def test_half_a_million_comparisons_with_their_json_stay_below_a_gigabyte_and_a_half(tmp_path):
    from benchmarks.scale import spent
    from benchmarks.scale_cases import pairs_of_1000

    case, _ = pairs_of_1000(tmp_path, "full")
    took = spent([sys.executable, "-m", "sigdask", *case.arguments], tmp_path)
    assert took.status == 0, took.said
    assert (tmp_path / "out.json").stat().st_size > 100 * MEGABYTE
    assert took.peak < 1500 * MEGABYTE
