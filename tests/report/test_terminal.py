"""What is printed of results on a terminal."""

import re

import pytest

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.report.terminal import render


@pytest.mark.parametrize(
    ("shift", "told"), [(1e-9, "r12 = 1.000: .* without bound"), (0.5, r"r12 = 0\.\d{3}: .* times")]
)
def test_an_r12_that_rounds_to_1_costs_without_bound(shift, told):
    x = [k / 7 for k in range(12)]
    y = [score + shift * (-1) ** k for k, score in enumerate(x)]
    results = compare_all(Counts.from_scores({"x": x, "y": y}), metrics=["mean"], trials=64, second_run=False)
    assert re.search(told, render(results))
