"""Tests of a short `python -m benchmarks.calibration`: fixed seeds, bands that detect broken procedures."""

import json
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from builders import build_rng
from scipy import stats

from benchmarks.calibration import pairs
from benchmarks.calibration.attainable import compute_attainable_size
from benchmarks.calibration.catalogue import get_case, get_catalogue, select_cases
from benchmarks.calibration.measuring import Case, Outcome, combine_batches, measure_cases
from benchmarks.calibration.real import SETS
from benchmarks.calibration.scenarios import SCENARIOS_BY_NAME
from benchmarks.calibration.table import (
    BEGIN,
    END,
    FOLDER,
    PAGES,
    RESULTS,
    TITLES,
    load_results,
    save_results,
    write_tables,
)

QUIET_OPTIONS = {"report": lambda _text: None}


@cache
def measure_case(name, n_sets=1000):
    return {m.procedure: m for m in measure_cases([get_case(name)], n_sets, **QUIET_OPTIONS)}


def test_the_tables_of_the_pages_are_those_of_the_kept_results(tmp_path):
    written = {page.name: page.read_text() for page in FOLDER.iterdir() if page.name != "nights.md"}
    assert written.keys() == {f"{name}.md" for name in PAGES}
    for name, text in written.items():
        (tmp_path / name).write_text(text)
        assert text.count(BEGIN) == text.count(END) == 1
    write_tables(load_results(), tmp_path)
    assert {page.name: page.read_text() for page in tmp_path.iterdir()} == written
    assert sorted(table for tables in PAGES.values() for table in tables) == sorted(TITLES)


def test_every_row_that_is_kept_is_one_that_is_measured_and_none_is_missing():
    rows = {f"{m.table}: {m.row}" for m in load_results()}
    of_real_data = {name for name in rows if any(source in name for source in SETS)}
    assert rows - of_real_data == get_catalogue().keys() - of_real_data
    assert len(of_real_data) == 7  # four under the null, three drawn again


def test_what_is_measured_again_replaces_what_was_kept_and_the_rest_stays(tmp_path):
    path = tmp_path / "kept.json"
    path.write_bytes(RESULTS.read_bytes())
    remeasured = measure_cases([get_case("power: 34 signs, better with P = 0.7")], 500, **QUIET_OPTIONS)
    save_results(remeasured, path)
    assert len(load_results(path)) == len(load_results())
    assert {m.n_sets for m in load_results(path) if m.row == remeasured[0].row} == {500}
    assert json.loads(path.read_text())[0] == json.loads(RESULTS.read_text())[0]


@pytest.mark.slow
def test_figures_are_the_same_on_any_number_of_workers():
    cases = select_cases("checks")
    in_process = measure_cases(cases, 1000, **QUIET_OPTIONS)
    assert measure_cases(cases, 1000, cluster="local", **QUIET_OPTIONS) == in_process


def test_fewer_data_sets_are_a_prefix_of_more():
    case = get_case("nights: 60 nights, 0 % with a loss, independent")
    assert case.count_batches(250) == 3
    batches = [case.measure_batch(k) for k in range(5)]
    assert list(combine_batches(case, batches[:3])) == measure_cases([case], 300, **QUIET_OPTIONS)


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
    "checks: 0/1 at 60 %, r = 0.8, 50", "nights: 60 nights, 20 % with a loss, independent",
    "across sets: normal, three sets", "across sets: normal, one set of three differs",
    "margins: 300 items, worse by 0.01, wins 0 %",
]  # fmt: skip


@pytest.mark.parametrize("name", SHORT_CASES)
def test_what_is_promised_is_kept_over_a_thousand_data_sets(name):
    for m in measure_case(name).values():
        assert m.is_wrong == (m.procedure == "shifted shuffle"), m


FEWER_SETS = {
    "families": 100, "discoveries": 50, "power of families": 50, "rankings": 50, "foretold power": 50, "exact": 100,
    "gates": 50, "dependence": 100, "intervals": 150,
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


@pytest.mark.parametrize("name", ["pairs: normal, 6", "pairs: grades 0 to 3, 10", "pairs: 0/1 at 8 %, 50"])
def test_sizes_are_not_only_kept_but_reached(name):
    for m in measure_case(name).values():
        assert abs(m.share - m.expected) <= 4 * max(m.error, np.sqrt(m.expected * (1 - m.expected) / m.n_sets)), m


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


@pytest.mark.slow
def test_a_test_that_reports_the_smaller_of_two_runs_is_found(monkeypatch):
    honest = pairs.compute_p_values

    def least_of_two(counts, *, seed=0, **how):
        return np.minimum(honest(counts, seed=seed, **how), honest(counts, seed=seed + 1, **how))

    monkeypatch.setattr(pairs, "N_TRIALS", 19)
    monkeypatch.setattr(pairs, "SAMPLED", {"method": "randomization", "trials": 19})
    monkeypatch.setattr(pairs, "compute_p_values", least_of_two)
    case = Case(
        "pairs", "normal, 50", lambda rng, n: pairs.measure_size(SCENARIOS_BY_NAME["normal"], 50, rng, n), at_once=100
    )
    assert [m.is_wrong for m in measure_cases([case], 4000, **QUIET_OPTIONS)] == [True] * 3


def test_what_errs_on_the_promised_side_is_not_wrong_and_what_does_not_is():
    def share(k, should, expected):
        happened = np.arange(1000) < k
        [m] = combine_batches(
            Case("pairs", "r", lambda _rng, _n: {}), [{"p": (1000, float(happened.sum()), 1000 * expected, should)}]
        )
        return m.is_wrong

    assert not share(10, "at most", 0.05)
    assert share(90, "at most", 0.05)
    assert share(900, "at least", 0.95)
    assert not share(990, "at least", 0.95)
    assert share(10, "about", 0.05)
    assert not share(10, "nothing", 0.05)
    assert Outcome(np.ones(1)).should == "at most"
