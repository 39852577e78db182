"""Tests of assumptions about units: in verdicts, JSON, CSV, tables, stores and `sigdask reproduce`."""

import csv
import json

import numpy as np
import pytest
import scipy
from builders import build_rng

from sigdask import compare_all
from sigdask.counts import Counts
from sigdask.report.summary import headline
from sigdask.results.columns import compute_unseen_rate

LOSSES = np.r_[np.full(2, -1.9), np.full(18, 0.1)]
GAINS = np.r_[[5.0, 4, 4, 4.5, 4], np.linspace(-0.6, 0.7, 25).round(2)]


def compare_differences(d, **options):
    scores = {"I": d, "II": np.zeros(len(d))}
    return compare_all(Counts.from_scores(scores), metrics=["mean"], cluster="none", interval="none", **options)


def list_kinds(result):
    return [assumption.kind for assumption in result.assumptions]


def test_the_verdict_line_says_how_few_units_decide_if_they_decide_significance():
    assert headline.build_verdict(compare_differences(GAINS)).headline == (
        "I is better than II on mean by 0.76, but 2 of 30 items decide it; p = 0.017 (exact)."
    )
    assert headline.build_verdict(compare_differences(LOSSES)).headline == (
        "I and II are not significantly different on mean: II is ahead by 0.10; p = 0.5 (exact)."
    )


def test_skewed_differences_that_no_few_units_decide_are_called_skewed():
    d = np.r_[np.full(45, 0.5), [-0.7, -0.8, -0.6, -0.9, -0.5]]
    assert ", but the differences of items are skewed; p =" in headline.build_verdict(compare_differences(d)).headline


def compare_many_pairs(draw, shift=0.0, n_pairs=300):
    """Compare pairs of systems on 30 units each; return p, the differences, and which have the note."""
    rng = build_rng(5)
    a, b = (np.round(draw(rng, (30, n_pairs)), 3) for _ in range(2))
    d = a + shift - b
    systems = {f"{name}{k}": values[:, k] for name, values in (("a", a + shift), ("b", b)) for k in range(n_pairs)}
    pairs, how = [(f"a{k}", f"b{k}") for k in range(n_pairs)], {"interval": "none", "adjust": "none", "cluster": "none"}
    results = compare_all(Counts.from_scores(systems), pairs=pairs, method="randomization", trials=999, **how)
    return np.array([r.p_value for r in results]), d, np.array(["skewed-differences" in list_kinds(r) for r in results])


def test_a_long_tail_against_a_significant_lead_is_noted_already_if_it_is_shorter():
    # a sample of opposite lognormals rejects because it lacks rare large differences, so its skewness is moderate
    signs = iter([1, -1])
    p, d, is_noted = compare_many_pairs(lambda rng, shape: next(signs) * rng.lognormal(0, 1, shape), -2 * np.exp(0.5))
    skewness, limit = scipy.stats.skew(d), 1.96 * np.sqrt(6 / 30)
    is_against_lead = skewness * d.mean(axis=0) < 0
    is_against_lead &= scipy.stats.binom.cdf(np.round(1000 * p) - 1, 999, 0.05) < 0.995  # not clearly above 0.05
    assert (is_noted == (np.abs(skewness) > np.where(is_against_lead, limit, 1.5))).all()
    assert (p <= 0.05).sum() > 20
    assert is_noted[p <= 0.05].mean() > 0.6
    p, _, is_noted = compare_many_pairs(lambda rng, shape: rng.standard_normal(shape), 0.9)
    assert (p <= 0.05).mean() > 0.8
    assert is_noted.mean() <= 0.05


def test_gains_without_a_loss_tell_how_many_units_could_lose():
    # 1 - 0.05^(1/20) = 0.1391 (the exact binomial bound of none in 20); 0.1 (1 - r) / r = 0.619
    results = compare_differences(np.full(20, 0.1))
    assert headline.build_verdict(results).headline == (
        "I is better than II on mean by 0.10, with none of 20 items against it (at 95 % confidence, up to 14 % of all "
        "items may be; a loss of 0.62 on each would cancel the lead); p = 1.91e-06 (exact)."
    )
    [assumption] = results[0].assumptions
    assert (assumption.kind, assumption.severity) == ("one-sign", "note")
    assert assumption.unseen_rate == pytest.approx(1 - 0.05 ** (1 / 20))
    assert assumption.cancelling_size * assumption.unseen_rate == pytest.approx(0.1 * (1 - assumption.unseen_rate))
    assert compute_unseen_rate(1) == pytest.approx(0.95)


def test_no_verdict_of_0_and_1_has_a_note():
    d = np.r_[np.ones(12), np.zeros(30)]
    assert compare_differences(d)[0].assumptions == ()


def test_json_csv_and_frames_have_the_assumptions(tmp_path):
    results = compare_differences(GAINS)
    [row] = json.loads(results.to_json())["results"]
    few_units = row["assumptions"][1]
    assert [assumption["kind"] for assumption in row["assumptions"]] == ["skewed-differences", "few-units-decide"]
    assert (few_units["severity"], few_units["n_deciding"], few_units["changes"]) == ("warning", 2, "verdict")
    assert few_units["detail"] == "2 of 30 items decide the result: without them the verdict would change"
    results.to_csv(tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(newline="") as file:
        [csv_row] = csv.DictReader(file)
    assert csv_row["assumptions"] == "skewed-differences, few-units-decide"
    assert results.to_frame()["assumptions"].tolist() == [csv_row["assumptions"]]
