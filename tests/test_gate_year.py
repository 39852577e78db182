"""Tests of the simulated year of gates: its table on the page, its parts, and the choice of the default."""

import json

import numpy as np
import pytest
from scipy import stats

from benchmarks import gate_year
from benchmarks.gate_year import CASES, DEFAULT_RULE, FRESH, PAGE, RESULTS, RULES, SAME_ITEMS, UNCHANGED

ROWS = json.loads(RESULTS.read_text())


def get_row(case, n_items, rule, rows=ROWS):
    [row] = [r for r in rows if (r["case"], r["n_items"], r["rule"]) == (case, n_items, rule)]
    return row


def test_the_table_of_the_page_is_that_of_the_kept_results(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text())
    gate_year.write_table(ROWS, page)
    assert page.read_text() == PAGE.read_text()


def test_p_is_that_of_scipys_binomial_test():
    wins, losses = np.array([0, 3, 5, 14, 2]), np.array([14, 9, 5, 0, 3])
    expected = [stats.binomtest(int(k), int(n), 0.5).pvalue for k, n in zip(losses, wins + losses, strict=True)]
    p_values = gate_year.compute_p_values(wins, losses)
    assert p_values[losses > wins] == pytest.approx(np.array(expected)[losses > wins], rel=1e-12)
    assert (p_values[losses <= wins] == 1).all()


def test_a_shorter_simulation_finds_the_kept_rates():
    rows = [row for case in CASES for row in gate_year._iter_rows(case, 300, 100)]
    for row in rows:
        kept_row = get_row(row["case"], 300, row["rule"])
        error = np.hypot(kept_row["error"], max(row["error"], 0.01))
        assert abs(row["false_alarms"] - kept_row["false_alarms"]) <= 4 * error + 0.02, row
        for loss, rates in row["losses"].items():
            assert rates["caught"] == pytest.approx(kept_row["losses"][loss]["caught"], abs=0.2), row


def test_the_default_is_the_rule_that_the_table_speaks_for():
    """At most four false alarms a year in every case, and of such rules none that catches fewer losses on old items."""
    within = [
        rule
        for rule in RULES
        if all(get_row(case, n, rule)["false_alarms"] <= 4 for case in CASES for n in gate_year.ITEMS)
    ]
    assert DEFAULT_RULE in within
    assert {"alpha = 0.05", "e-values added up"}.isdisjoint(within)
    for case in (UNCHANGED, SAME_ITEMS, FRESH):
        for n in gate_year.ITEMS:
            for loss in ("1", "2", "5"):
                caught = {rule: get_row(case, n, rule)["losses"][loss]["caught"] for rule in within}
                assert caught[DEFAULT_RULE] == max(caught.values())


def test_the_same_outputs_taken_for_new_evidence_every_night_alarm_in_a_fifth_of_the_years():
    assert get_row(UNCHANGED, 3000, "e-values multiplied every night")["years_with_some"] > 0.15
