"""Tests of values beside adjusted p: the studentised bootstrap under skewness, Tukey's p, simultaneous intervals."""

import json

import numpy as np
import pytest
from builders import build_rng
from command import call_sigdask
from nights import read_tallies, write_plan

from sigdask import Counts, compare_all, run_plan
from sigdask.analysis.comparison.families import build_adjustment, build_bootstrap
from sigdask.analysis.comparison.jobs import ComparisonJobs, FamilyComparisons
from sigdask.analysis.comparison.pairs import CompareSpec
from sigdask.nightly.plan import load_plan
from sigdask.randomization.families.bootstrap_t import find_critical_value
from sigdask.randomization.families.skewness import find_skewed
from sigdask.report.terminal import render

OPTIONS = {"metrics": ["mean"], "trials": 2000, "second_run": False}


def draw_normal(n=40, seed=0, gain=0.0):
    """Draw normal scores of four systems, the last better by a gain."""
    rng = build_rng(seed)
    return Counts.from_scores({name: np.round(rng.standard_normal(n) + gain * (name == "d"), 2) for name in "abcd"})


def draw_skewed(n=30, seed=1):
    """Draw lognormal scores of four systems with mean 0, every other one mirrored."""
    noise = np.exp(build_rng(seed).standard_normal((n, 4))) - np.exp(0.5)
    scores = np.round(noise * [1, -1, 1, -1], 3)
    return Counts.from_scores(dict(zip("abcd", scores.T, strict=True)))


def build_family(counts, side="two-sided"):
    return build_bootstrap(
        FamilyComparisons.from_jobs(
            ComparisonJobs.from_spec(counts, CompareSpec(metrics=["mean"]).bind_metrics(counts), second_run=False)
        ),
        side,
    )


def compute_step_down_p(family, n_trials):
    """Return p of the studentised bootstrap, made monotone by hand."""
    counts = family.tally(run=0, first=0, n_trials=n_trials).counts[: family.n_hypotheses, 0, 1]
    p = (counts + 1) / (n_trials + 1)
    order = np.argsort(-family.statistics, kind="stable")
    p[order] = np.maximum.accumulate(p[order])
    return p


def test_where_differences_are_skewed_p_is_the_larger_of_two():
    data = draw_skewed()
    results = compare_all(data, interval="none", **OPTIONS)
    family = build_family(data)
    adjusted = build_adjustment(
        "max-t",
        FamilyComparisons.from_jobs(
            ComparisonJobs.from_spec(data, CompareSpec(metrics=["mean"]).bind_metrics(data), second_run=False)
        ),
        "two-sided",
    )
    is_skewed = find_skewed(adjusted.family)
    assert is_skewed.any()
    resampled = compute_step_down_p(family, 2000)
    for r, fired, p in zip(results, is_skewed.tolist(), resampled.tolist(), strict=True):
        assert (r.p_adjusted_by is not None) == fired
        if fired:
            assert r.p_adjusted_by["bootstrap-t"] == max(p, r.p_value)
            assert r.p_adjusted == max(r.p_adjusted_by.values())
        assert r.interval_simultaneous is None
    [note] = [note for note in results.notes if note.kind == "skewed"]
    assert note.numbers == {"n_comparisons": int(is_skewed.sum()), "of": 6, "adjust": "max-t"}
    assert "of max-t" in note.text
    parsed = json.loads(results.to_json())
    assert [row["p_adjusted_by"] for row in parsed["results"]] == [r.p_adjusted_by for r in results]


def test_where_none_is_skewed_nothing_is_resampled_and_p_is_max_t_s_alone():
    data = draw_normal()
    results = compare_all(data, interval="none", **OPTIONS)
    assert results.family.n_resamples is None
    assert results.table.adjusted is None
    with_intervals = compare_all(data, **OPTIONS)
    assert with_intervals.family.n_resamples == 10_000
    assert [r.p_adjusted for r in with_intervals] == [r.p_adjusted for r in results]
    assert {r.test_signature for r in with_intervals} == {r.test_signature for r in results}


@pytest.mark.parametrize("adjust", ["holm", "bh"])
def test_adjustments_of_p_alone_say_that_differences_are_skewed_and_have_no_simultaneous_intervals(adjust):
    results = compare_all(draw_skewed(), adjust=adjust, **OPTIONS)
    [note] = [note for note in results.notes if note.kind == "skewed"]
    assert note.numbers["adjust"] == adjust
    assert all(r.p_adjusted_by is None and r.interval_simultaneous is None for r in results)
    assert "unadjusted 95 % interval" in render(results)
    assert not [note for note in compare_all(draw_normal(), adjust=adjust, **OPTIONS).notes if note.kind == "skewed"]


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
    [note] = [note for note in results.notes if note.kind == "larger-of-two"]
    assert note.numbers["adjust"] == "tukey"
    assert "such as a and b: Tukey's p = 0." in note.text
    assert {"p_tukey", "p_max_t"} <= {*results.to_frame().columns}


def test_simultaneous_intervals_reach_as_far_as_the_largest_statistic_of_all():
    data = draw_normal(gain=0.8)
    family = build_family(data)
    tally = family.tally(run=0, first=0, n_trials=10_000)
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
