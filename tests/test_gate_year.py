"""Tests of the simulated year of gates: its p-values, and its kept rates."""

import json

import numpy as np
import pytest
from scipy import stats

from benchmarks import gate_year
from benchmarks.gate_year import CASES, RESULTS

ROWS = json.loads(RESULTS.read_text())


def get_row(case, n_items, rule, rows=ROWS):
    [row] = [r for r in rows if (r["case"], r["n_items"], r["rule"]) == (case, n_items, rule)]
    return row


@pytest.mark.parametrize("row", [row for row in ROWS if row["case"] == "fresh items"], ids=str)
def test_the_kept_false_alarms_are_those_of_scipys_distributions(row):
    """Of n items a tenth differ, each won or lost with probability 1/2: binomial sums without simulation."""
    level = {"alpha = 0.05": 0.05}.get(row["rule"], 4 / 365)
    n_differing = np.arange(row["n_items"] // 4)
    critical = stats.binom.isf(level / 2, n_differing, 0.5)  # P(losses > critical) is at most half the level
    expected = 365 * stats.binom.pmf(n_differing, row["n_items"], 0.1) @ stats.binom.sf(critical, n_differing, 0.5)
    assert abs(row["false_alarms"] - expected) <= 4 * row["error"]


def test_a_shorter_simulation_finds_the_kept_rates():
    rows = [row for case in CASES for row in gate_year._iter_rows(case, 300, 100)]
    for row in rows:
        kept_row = get_row(row["case"], 300, row["rule"])
        error = np.hypot(kept_row["error"], max(row["error"], 0.01))
        assert abs(row["false_alarms"] - kept_row["false_alarms"]) <= 4 * error + 0.02, row
        for loss, rates in row["losses"].items():
            assert rates["caught"] == pytest.approx(kept_row["losses"][loss]["caught"], abs=0.2), row
