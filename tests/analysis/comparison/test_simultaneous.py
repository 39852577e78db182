"""Tests of values beside adjusted p: the equal-score test, Tukey's p, simultaneous intervals."""

import json

import numpy as np
import pytest
import scipy.stats
from builders import build_rng
from command import call_sigdask
from nights import read_tallies, write_plan

from sigdask import Counts, compare_all, compare_sets, run_plan
from sigdask.analysis.comparison.equal_scores import EqualScoreTest, build_bootstrap
from sigdask.analysis.comparison.jobs import JoinedComparisons, plan_jobs
from sigdask.analysis.comparison.pairs import CompareSpec
from sigdask.nightly.plan import load_plan
from sigdask.randomization.families.bootstrap_t import find_critical_value

OPTIONS = {"metrics": ["mean"], "trials": 2000, "second_run": False}


def draw_normal(n=40, seed=0, gain=0.0):
    """Draw normal scores of four systems, the last better by a gain."""
    rng = build_rng(seed)
    return Counts.from_scores({name: np.round(rng.standard_normal(n) + gain * (name == "d"), 2) for name in "abcd"})


def draw_skewed(n=30, seed=5):
    """Draw lognormal scores of four systems with mean 0, every other one mirrored."""
    noise = np.exp(build_rng(seed).standard_normal((n, 4))) - np.exp(0.5)
    scores = np.round(noise * [1, -1, 1, -1], 3)
    return Counts.from_scores(dict(zip("abcd", scores.T, strict=True)))


def build_family(counts, side="two-sided"):
    joined = JoinedComparisons.from_sets(plan_jobs(counts, CompareSpec(["mean"])))
    return build_bootstrap(joined, side, has_cells=True)


def compute_p_values(family, n_trials):
    """Return p of the studentised bootstrap alone, and step-down, made monotone by hand."""
    counts = family.tally(run=0, first=0, n_trials=n_trials).counts[: family.n_hypotheses, 0]
    own, p = ((counts + 1) / (n_trials + 1)).T
    order = np.argsort(-family.statistics, kind="stable")
    p[order] = np.maximum.accumulate(p[order])
    return own, p


@pytest.mark.parametrize("adjust", ["max-t", "holm", "tukey", "bh", "none"])
def test_every_comparison_has_an_equal_score_test_with_the_adjustment_of_its_p(adjust):
    data = draw_skewed()
    results = compare_all(data, adjust=adjust, interval="none", **OPTIONS)
    [n_resamples] = {r.equal_scores.n_resamples for r in results}
    own, joint = compute_p_values(build_family(data), n_resamples)
    assert [r.equal_scores.p_value for r in results] == own.tolist()
    shown = {"none": own, "bh": scipy.stats.false_discovery_control(own)}.get(adjust, joint)
    if adjust == "none":
        assert {r.equal_scores.p_adjusted for r in results} == {None}
    else:
        assert [r.equal_scores.p_adjusted for r in results] == pytest.approx([*shown], rel=1e-12)
    for r, p in zip(results, shown, strict=True):
        rejects = (r.p_value if r.p_adjusted is None else r.p_adjusted) <= 0.05
        assert (r.verdict == "contested") == (rejects != (p <= 0.05))
        assert r.p_adjusted_by is None or adjust == "tukey"
    assert any(r.verdict == "contested" for r in results)
    parsed = json.loads(results.to_json())["results"]
    assert [row["verdict"] for row in parsed] == [r.verdict for r in results]
    entries = [row["checks"][-1] for row in parsed]
    assert [(e["name"], e["p_value"], e["verdict"] == "contested") for e in entries] == [
        ("equal scores", p, r.verdict == "contested") for p, r in zip(own.tolist(), results, strict=True)
    ]
    assert not results.table.has_disagreement.any()


def test_items_scored_0_or_1_need_no_equal_score_test_and_intervals_change_none():
    a = build_rng(3).integers(0, 2, (3, 30))
    results = compare_all(dict(zip("abc", a, strict=True)), **OPTIONS)
    assert {r.equal_scores.p_value for r in results} == {None}
    assert all("scored 0 or 1" in r.equal_scores.why for r in results)
    wins = build_rng(4).integers(1, 9, 30)  # 30 wins of one size: a rare large loss may not have been drawn
    [r] = compare_all({"a": wins + 1, "b": wins}, **OPTIONS)
    assert (r.equal_scores.p_value, r.verdict, r.equal_scores.cause) == (
        1, "contested", "differences do not vary",
    )  # fmt: skip
    data = draw_normal()
    results, with_intervals = (compare_all(data, interval=kind, **OPTIONS) for kind in ("none", "auto"))
    assert results.family.n_resamples is None
    assert [r.equal_scores for r in with_intervals] == [r.equal_scores for r in results]


@pytest.mark.parametrize("metric", ["macro-f1", "accuracy", "f1[n]"])
def test_two_items_of_a_subset_do_not_contest_its_p_of_1(metric):
    labels = {"gold": "pn" + "pn" * 20, "A": "pn" + "pnnn" * 10, "B": "nn" + "pnpp" * 10}
    gold, a, b = map(list, labels.values())
    counts = Counts.from_labels(gold, {"A": a, "B": b}, groups={"domain": [*"xx", *"y" * 40]})
    small, _ = compare_all(counts, by="domain", metrics=[metric], trials=99)
    assert (small.subset["value"], small.p_value, small.verdict) == ("x", 1, "not significant")
    assert small.equal_scores.p_value is None or small.equal_scores.p_value > 0.3


def test_contested_results_name_their_causes():
    [skewed] = {r.equal_scores.cause for r in compare_all(draw_skewed(), **OPTIONS) if r.verdict == "contested"}
    assert skewed == "skewed differences"
    # 500 of 1,000 answers of a are right, and 59 of 100 of b, on other items: chi-square gives 0.086
    predicted = np.repeat([[1, 0], [0, 1]], [1000, 100], axis=0)
    right = predicted * np.repeat([1, 0, 1, 0], [500, 500, 59, 41])[:, None]
    counts = Counts(("a", "b"), {"tp": right, "predicted": predicted, "gold": np.ones_like(right)}, 1100)
    [r] = compare_all(counts, metrics=["precision"], second_run=False)
    assert r.p_value < 0.01
    assert r.equal_scores.p_value == pytest.approx(0.083, abs=0.01)
    assert (r.verdict, r.equal_scores.cause) == ("contested", "unequal numbers of answers")
    assert "few-units-decide" not in {note.kind for note in r.notes}  # none of 1,100 items does


def test_mean_differences_over_test_sets_have_an_equal_score_test():
    # oracle: plain NumPy, other random numbers
    x = [np.array([0, 0.4]) + build_rng(n).standard_normal((n, 2)) for n in (20, 30, 25)]
    counts = [Counts.from_scores(dict(zip("ab", s.T, strict=True)), name=f"t{len(s)}") for s in x]
    [r] = compare_sets(counts, together=True, **OPTIONS).together
    num = den = 0
    for s in x:
        d = s[:, 0] - s[:, 1]
        drawn = d[build_rng(1).integers(0, len(d), (20_000, len(d)))]
        num, den = num + drawn.mean(axis=1) - d.mean(), den + drawn.var(axis=1) / len(d)
    t = abs(3 * r.difference) / np.sqrt(sum((s[:, 0] - s[:, 1]).var() / len(s) for s in x))
    assert r.equal_scores.p_value == pytest.approx((np.abs(num) / np.sqrt(den) >= t).mean(), abs=0.008)


def test_resamples_that_a_deadline_stops_give_no_p():
    data = draw_normal()
    comparisons = JoinedComparisons.from_sets(plan_jobs(data, CompareSpec(["mean"])))
    test = EqualScoreTest.build("max-t", comparisons, "two-sided", with_intervals=False)
    records = test.compute_records({test.job: test.job.panel.tally(run=0, first=0, n_trials=4096)})
    assert {record.p_value for record in records} == {None}
    assert {record.why for record in records} == {"the resamples were not all counted"}


def test_tukeys_published_p_stands_beside_the_one_that_the_verdict_takes():
    # c lies in the middle of a and b on every unit: relabelled, a and b are half as far apart as swapped
    base, half = build_rng(4).standard_normal((2, 40))
    half += 0.27 - half.mean()
    scores = {"a": np.round(base + half, 2), "b": np.round(base - half, 2), "c": np.round(base, 2)}
    results = compare_all(scores, adjust="tukey", method="randomization", **OPTIONS | {"trials": 20_000})
    tukey_results = compare_all(
        scores, adjust="tukey", method="randomization", interval="none", **OPTIONS | {"trials": 20_000}
    )
    for r in results:
        assert [*r.p_adjusted_by] == ["tukey", "unadjusted"]
        assert r.p_adjusted_by["unadjusted"] == r.p_value
        assert r.p_adjusted == max(r.p_adjusted_by.values())
    assert [r.p_adjusted_by for r in tukey_results] == [r.p_adjusted_by for r in results]
    ab = results[0]
    assert ab.p_adjusted_by["tukey"] < 0.9 * ab.p_value == 0.9 * ab.p_adjusted
    relabelled = np.stack([base + half, base - half, base], axis=1)[
        np.arange(40)[:, None], np.argsort(build_rng(0).random((20_000, 40, 3)), axis=2)
    ].mean(axis=1)  # plain NumPy, other random numbers
    share = (np.ptp(relabelled, axis=1) >= abs(ab.difference) - 1e-9).mean()
    assert ab.p_adjusted_by["tukey"] == pytest.approx(share, abs=0.012)
    assert {"p_tukey", "p_equal_scores"} <= {*results.to_frame().columns}


def test_simultaneous_intervals_reach_as_far_as_the_largest_statistic_of_all():
    data = draw_normal(gain=0.8)
    family = build_family(data)
    tally = family.tally(run=0, first=0, n_trials=2**14)
    d = np.array([data.fields["score"][:, i] - data.fields["score"][:, j] for i in range(4) for j in range(i + 1, 4)])
    reach = find_critical_value(tally, 0.05) * d.std(axis=1) / np.sqrt(40)
    results = compare_all(data, **OPTIONS)
    ends = np.array([r.interval_simultaneous for r in results])
    assert ends == pytest.approx(np.column_stack([d.mean(axis=1) - reach, d.mean(axis=1) + reach]), rel=1e-9)
    assert all(r.interval_simultaneous[0] < r.interval.low for r in results)
    narrower = compare_all(data, alpha=0.2, **OPTIONS)
    assert all(a.interval_simultaneous[0] > b.interval_simultaneous[0] for a, b in zip(narrower, results, strict=True))
    for side, end in (("greater", 0), ("less", 1)):
        one_sided_intervals = np.array(
            [r.interval_simultaneous for r in compare_all(data, alternative=side, **OPTIONS)]
        )
        assert np.isinf(one_sided_intervals[:, 1 - end]).all()
        assert (np.abs(one_sided_intervals[:, end] - d.mean(axis=1)) < reach).all()
    tukey = compare_all(data, adjust="tukey", **OPTIONS)
    assert [r.interval_simultaneous for r in tukey] == [r.interval_simultaneous for r in results]


def test_two_systems_or_a_pair_that_never_differs_have_no_simultaneous_interval():
    two = compare_all({"a": [1, 2, 3, 5], "b": [2, 1, 5, 3]}, **OPTIONS)
    assert two[0].interval_simultaneous is None
    a = build_rng(0).integers(0, 9, 30)
    results = compare_all({"a": a, "b": a, "c": a + 1, "d": a[::-1]}, **OPTIONS)
    by_pair = {r.a + r.b: r for r in results}
    assert by_pair["ab"].p_adjusted == 1
    for pair in ("ab", "ac", "bc"):  # equal, or apart by 1 everywhere: no unit varies
        assert by_pair[pair].interval_simultaneous is None
    assert by_pair["ad"].interval_simultaneous is not None


def test_a_night_keeps_resamples_of_families_and_counts_them_once(tmp_path):
    plan = write_plan(
        tmp_path / "p", sets=1, systems=4, trials=2000, settings='adjust = "max-t"\ninterval = "bootstrap"'
    )
    plan = load_plan(plan)
    first_night = run_plan(plan)
    tallies_before = read_tallies(tmp_path / "p" / "night.sqlite")
    second_night = run_plan(plan)
    assert read_tallies(tmp_path / "p" / "night.sqlite") == tallies_before
    [first_results], [second_results] = first_night.results.values(), second_night.results.values()
    assert first_results == second_results
    direct = call_sigdask("compare", "set0.csv", "--adjust", "max-t", "--trials", "2000", "--seed", "3", "--name", "set0", "--interval", "bootstrap",
                    "--method", "randomization", "-q", "--json", "-", cwd=tmp_path / "p")  # fmt: skip
    json_rows = json.loads(direct.stdout)["results"]
    assert [r["p_adjusted"] for r in json_rows] == [r.p_adjusted for r in first_results]
    assert [tuple(r["interval_simultaneous"]) for r in json_rows] == [r.interval_simultaneous for r in first_results]
