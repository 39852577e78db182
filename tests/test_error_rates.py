"""Tests of a short `python -m benchmarks.calibration`: fixed seeds, bands that detect broken procedures."""

import json
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from builders import build_rng
from scipy import stats

from benchmarks import gate_year
from benchmarks.calibration import pairs
from benchmarks.calibration.attainable import compute_attainable_size
from benchmarks.calibration.catalogue import get_case, get_catalogue
from benchmarks.calibration.measuring import measure_cases
from benchmarks.calibration.real import SETS
from benchmarks.calibration.table import load_results
from benchmarks.gate_year import CASES, RESULTS

QUIET_OPTIONS = {"report": lambda _text: None}


@cache
def measure_case(name, n_sets=1000):
    return {m.procedure: m for m in measure_cases([get_case(name)], n_sets, **QUIET_OPTIONS)}


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_attainable_size_is_that_of_all_arrangements_in_fractions(alternative):
    d = build_rng(5).integers(-2, 4, (6, 20))
    expected = []
    for differences in d.T.tolist():
        sums = [sum(s * x for s, x in zip(signs, differences, strict=True)) for signs in product((1, -1), repeat=6)]
        sums = [{"two-sided": abs(t), "greater": t, "less": -t}[alternative] for t in sums]
        p = [Fraction(sum(total >= t for total in sums), 64) for t in sums]
        expected.append(float(Fraction(sum(differences <= Fraction(1, 20) for differences in p), 64)))
    assert compute_attainable_size(d, 0.05, alternative, None) == pytest.approx(expected, abs=1e-12)


def test_the_attainable_size_of_signs_is_the_binomial_tests():
    d = np.where(np.arange(40)[:, None] < np.arange(0, 41, 8), 1, 0)
    size = [
        sum(stats.binom.pmf(k, m, 0.5) for k in range(m + 1) if stats.binomtest(k, m).pvalue <= 0.05) if m else 0.0
        for m in range(0, 41, 8)
    ]
    assert compute_attainable_size(d, 0.05, "two-sided", None) == pytest.approx(size, abs=1e-12)


def test_the_power_of_signs_is_the_known_one():
    # STATISTICS section 13: n = 34, P = 0.7, size 0.0243065, power 0.5544607
    [m] = measure_cases([get_case("power: 34 signs, better with P = 0.7")], 500, **QUIET_OPTIONS)
    assert m.expected == pytest.approx(0.5544607, abs=5e-8)


SHORT_CASES = [
    "pairs: normal, 6", "pairs: grades 0 to 3, 10", "pairs: 0/1 at 8 %, 50", "pairs: t, 2.5 degrees, 20",
    "checks: 0/1 at 60 %, r = 0.8, 50", "across sets: normal, three sets",
    "margins: 300 items, worse by 0.01, wins 0 %",
]  # fmt: skip


@pytest.mark.parametrize("name", SHORT_CASES)
@pytest.mark.slow
def test_what_is_promised_is_kept_over_a_thousand_data_sets(name):
    for m in measure_case(name).values():
        assert m.is_wrong == (m.procedure == "shifted shuffle"), m


FEWER_SETS = {
    "families": 100, "discoveries": 50, "power of families": 50, "rankings": 50, "foretold power": 50, "exact": 100,
    "gates": 50, "dependence": 100, "intervals": 150, "simultaneous intervals": 50,
}  # fmt: skip
"""Data sets of what takes milliseconds each."""

LONG_CASES = [
    name for name in get_catalogue() if name not in SHORT_CASES and not any(source in name for source in SETS)
]


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG_CASES)
def test_what_the_table_says_is_so_over_some_hundreds_of_data_sets(name):
    """Beside the kept share within both errors: a procedure that changed would leave it, on either side."""
    page_rows = {(m.table, m.row, m.procedure): m for m in load_results()}
    for m in measure_case(name, FEWER_SETS.get(get_case(name).table, 250)).values():
        long = page_rows[m.table, m.row, m.procedure]
        spread = np.sqrt(m.error**2 + long.error**2 + 1 / m.n_sets**2)
        assert abs(m.share - long.share) <= 4.5 * spread, (m, long)


def without_ties(counts, *, method, trials=999, alternative="two-sided", seed=0):
    """Compute the test's p with `>` where it must be `>=`."""
    scores = counts.fields["score"]
    d = scores[:, ::2] - scores[:, 1::2]
    signs = build_rng(seed).choice([-1, 1], (trials, len(d)))
    sums, observed = signs @ d, d.sum(axis=0)
    fold = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}[alternative]
    return ((fold(sums) > fold(observed)).sum(axis=0) + 1) / (trials + 1)


def test_a_test_that_leaves_out_ties_is_found(monkeypatch):
    monkeypatch.setattr(pairs, "compute_p_values", without_ties)
    wrong = [m.is_wrong for m in measure_case.__wrapped__("pairs: 0/1 at 8 %, 20").values()]
    assert wrong == [True] * 3


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
