"""Tests of exact p-values: which are added, and what they do to p, families, rules and stores."""

from collections import Counter
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from builders import build_rng

import sigdask
from sigdask.analysis.comparison import jobs as list_problems
from sigdask.analysis.reproduce import read, reproduce_results
from sigdask.api import compare, compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.statistics import exact
from sigdask.statistics.bounds import clopper_pearson, compute_bound
from sigdask.statistics.exact import CLOSE_SHARE

SIDES = ("greater", "less", "two-sided")


def enumerate_signs(differences, side):
    """Return p by enumeration of all signs, unit by unit, in integers."""
    sums = Counter({0: 1})
    for d in differences:
        moved = Counter()
        for total, n in sums.items():
            moved[total + d] += n
            moved[total - d] += n
        sums = moved
    t = sum(differences)
    reached = {"greater": lambda s: s >= t, "less": lambda s: s <= t, "two-sided": lambda s: abs(s) >= abs(t)}[side]
    return Fraction(sum(n for s, n in sums.items() if reached(s)), 2 ** len(differences))


def draw_tenths(n=40, seed=1, shift=2):
    """Draw differences of a mean in tenths."""
    return [int(d) for d in np.rint(build_rng(seed).normal(shift, 6, n)) if d]


@pytest.mark.parametrize("side", SIDES)
def test_a_mean_of_decimals_has_the_exact_p_and_the_counts_of_its_trials(side):
    d = draw_tenths()
    r = compare(np.array(d) / 10, np.zeros(len(d)), alternative=side, trials=20_000, seed=3)
    assert r.p_value == pytest.approx(float(enumerate_signs(d, side)), rel=1e-12)
    assert (r.method, r.exact.p_hi, r.n_trials) == ("exact", r.p_value, 20_000)
    assert r.exact.guarantee in {"exact", "certified"}
    sampled = compare(
        np.array(d) / 10, np.zeros(len(d)), alternative=side, trials=20_000, seed=3, method="randomization"
    )
    assert sampled.exact is None
    assert (sampled.method, sampled.p_value) == ("approximate", compute_bound(r.n_extreme, 20_000))
    for name in ("n_trials", "n_extreme", "p_interval", "second_run"):
        assert getattr(r, name) == getattr(sampled, name)
    assert r.p_interval == pytest.approx([float(limit) for limit in clopper_pearson(r.n_extreme, 20_000)])
    assert {c.name: c.verdict for c in r.checks}["exact value"] == "agrees"


@pytest.mark.parametrize(("n", "ones"), [(60, 41), (1500, 800), (9000, 4600)])
def test_accuracy_has_the_binomial_tail_of_any_number_of_items(n, ones):
    a = np.arange(n) < ones
    r = compare(a.astype(int), (~a).astype(int), trials=999)
    tail = Fraction(2 * sum_upper_binomials(n, ones), 2**n)
    assert r.exact.method == "binomial"
    assert r.p_value == pytest.approx(float(tail), rel=1e-12)
    assert r.exact.p_lo <= float(tail) * (1 + 1e-15)
    assert r.exact.p_hi >= float(tail) * (1 - 1e-15)


def sum_upper_binomials(n, start):
    """Sum n over k from k = start on, computing each term from the one before."""
    term = total = comb(n, start)
    for k in range(start, n):
        term = term * (n - k) // (k + 1)
        total += term
    return total


def test_both_adds_exact_values_without_the_limit_and_exact_alone_draws_no_trial(monkeypatch):
    monkeypatch.setattr(list_problems, "MAX_OPERATIONS", -1)
    d = draw_tenths()
    a, b = np.array(d) / 10, np.zeros(len(d))
    auto, both, exact_alone = (compare(a, b, trials=500, method=m) for m in ("auto", "both", "exact"))
    assert (auto.exact, auto.method) == (None, "approximate")
    assert both.p_value == exact_alone.p_value == pytest.approx(float(enumerate_signs(d, "two-sided")), rel=1e-12)
    assert (both.n_trials, both.n_extreme) == (500, auto.n_extreme)
    assert (exact_alone.n_trials, exact_alone.n_extreme, exact_alone.second_run) == (0, 0, None)
    assert exact_alone.method == "exact"
    assert exact_alone.p_interval == (exact_alone.p_value, exact_alone.p_value)
    assert {c.verdict for c in exact_alone.checks[:-1]} == {"not applicable"}  # but the equal-score test
    assert not exact_alone.warnings


def test_what_has_no_exact_p_ends_before_anything_is_counted():
    box = sigdask.metric(lambda outputs, _: float(np.median(outputs)), name="middle", of="outputs")
    a, b = build_rng(1).integers(0, 9, (2, 40))
    with pytest.raises(
        InputError,
        match="method exact: .* by middle: the p-value of a metric of whole outputs can only be enumerated or sampled, and .* method=",
    ):
        compare_all({"a": a, "b": b}, metrics=[box], method="exact")
    result = compare_all({"a": a, "b": b}, metrics=[box, "mean"], method="both", trials=50)
    assert [r.exact is None for r in result] == [True, False]


def test_adjusted_p_are_of_p_as_printed_and_never_below_it():
    rng = build_rng(7)
    scores = {name: np.rint(rng.normal(k / 3, 1, 50) * 10) / 10 for k, name in enumerate("abcd")}
    plain = [r.p_value for r in compare_all(scores, trials=500, adjust="none")]
    order = np.argsort(plain)
    holm = np.empty(6)
    holm[order] = np.minimum(np.maximum.accumulate(np.array(plain)[order] * np.arange(6, 0, -1)), 1)
    assert compare_all(scores, method="exact").family.adjust == "holm"
    results = compare_all(scores, trials=500, adjust="holm")
    assert [r.p_adjusted for r in results] == pytest.approx(holm.tolist(), rel=1e-14)
    assert all(r.p_adjusted_interval == (r.p_adjusted, r.p_adjusted) for r in results)
    for adjust in ("max-t", "tukey"):
        for r in compare_all(scores, trials=50, adjust=adjust, seed=1):
            assert r.p_adjusted >= r.p_value
            assert r.p_adjusted >= 1 / 51


def test_bounds_that_are_apart_are_no_p(monkeypatch):
    d = draw_tenths()

    def widen(problem, chosen=None, **more):
        solution = solve(problem, chosen, **more)
        low, high = solution.two_sided
        return type(solution)(
            **{**list_fields(solution), "guarantee": "bounds", "two_sided": (low * (1 - 2 * CLOSE_SHARE), high)}
        )

    def list_fields(solution):
        return {name: getattr(solution, name) for name in solution.__slots__}

    solve = exact.solve
    monkeypatch.setattr(exact, "solve", widen)
    r = compare(np.array(d) / 10, np.zeros(len(d)), trials=2000)
    assert r.method == "approximate"
    assert r.p_value == compute_bound(r.n_extreme, 2000)
    assert r.exact.p_lo < r.exact.p_hi


def test_a_count_that_does_not_fit_the_exact_p_is_an_alarm(monkeypatch, yeh):
    def halve(problem, chosen=None, **more):
        solution = solve(problem, chosen, **more)
        halved = {name: tuple(p / 2 for p in getattr(solution, name)) for name in ("greater", "less", "two_sided")}
        return type(solution)(**{**{name: getattr(solution, name) for name in solution.__slots__}, **halved})

    solve = exact.solve
    monkeypatch.setattr(exact, "solve", halve)
    [r] = compare_all(yeh, metrics=["f1"])
    assert [c.name for c in r.disagreements()] == ["exact value"]
    from sigdask.verify import run_audits

    assert any("exact" in name for name, passed, _ in run_audits("none") if not passed)


def test_counts_of_groups_of_items_are_exact_under_their_unit():
    rng = build_rng(8)
    groups = {"document": [f"d{k // 3:02}" for k in range(90)]}
    a, b = rng.integers(0, 2, (2, 90))
    counts = Counts.from_scores({"a": a, "b": b}, groups=groups)
    [r] = compare_all(counts, unit="document", trials=2000)
    d = [int(x) for x in (a - b).reshape(30, 3).sum(axis=1) if x]
    assert (r.n_units, r.n_items, r.n_discordant) == (30, 90, len(d))
    assert {c.name: c.verdict for c in r.checks}["sign test"] == "not applicable"
    assert r.exact.p_hi == pytest.approx(float(enumerate_signs(d, "two-sided")), rel=1e-12)


def test_sampled_scores_of_very_unequal_size_are_said_to_have_an_upper_bound():
    a = [1e16] + [0.9] * 30
    sampled = compare(a, [0.0] * 31, trials=999)
    assert (sampled.n_discordant, sampled.method) == (31, "approximate")
    assert sampled.p_value >= 2.0**-30  # that of all 31 signs alike
    assert sampled.warnings[0].startswith("the sampled p is an upper bound")
    with pytest.raises(InputError, match="can only be sampled"):
        compare(a, [0.0] * 31, method="exact")


def test_reciprocal_ranks_keep_the_exact_values_that_they_had():
    """Thirds tie with 1 although their floats do not, with the values from before fractions were counted."""
    rng = build_rng(3)
    for _ in range(5):
        ranks = rng.integers(1, 6, (2, 9))
        a, b = 1 / ranks
        d = [Fraction(1, int(x)) - Fraction(1, int(y)) for x, y in ranks.T if x != y]
        assert compare(a, b).p_value == float(enumerate_signs(d, "two-sided"))


def draw_reals(n, seed=3):
    return build_rng(seed).normal(0.2, 1, n), np.zeros(n)


@pytest.mark.parametrize(("n", "limit", "names"), [(60, None, ["60 s", "exact_limit="]), (70, 1e9, ["2.0 GB"])])
def test_a_p_beyond_time_or_memory_is_refused_with_its_limit(n, limit, names):
    with pytest.raises(InputError) as refused:
        compare(*draw_reals(n), method="exact", **({} if limit is None else {"exact_limit": limit}))
    assert all(name in str(refused.value) for name in names)


def draw_problem(n):
    return exact.SumProblem(build_rng(1).integers(-(2**45), 2**45, n), slack=4 * n)


def test_the_limit_is_of_all_comparisons_of_a_set_and_metric_together():
    rng = build_rng(11)
    scores = {name: rng.normal(0, 1, 34) for name in "abc"}
    seconds_of_one = next(w.seconds for w in exact.iter_methods(draw_problem(34)) if w.method == "meet-in-the-middle")
    with pytest.raises(
        InputError, match=r"the exact p-values of 3 comparisons by mean would take about .* together, but"
    ):
        compare_all(scores, method="exact", exact_limit=2.5 * seconds_of_one)
    results = compare_all(scores, method="both", exact_limit=2.5 * seconds_of_one, trials=100)
    assert sum(r.exact is not None for r in results) == 2
    auto = compare_all(scores, method="auto", exact_limit=2.5 * seconds_of_one, trials=100)
    assert [r.exact for r in auto] == [None] * 3
    assert all(r.exact for r in compare_all(scores, method="auto", exact_limit=3.5 * seconds_of_one, trials=100))


def test_a_limit_that_decides_which_p_are_exact_is_in_the_signature_and_results_are_found_again(tmp_path):
    rng = build_rng(11)
    counts = Counts.from_scores({name: rng.normal(0, 1, 34) for name in "abc"})
    seconds_of_one = next(w.seconds for w in exact.iter_methods(draw_problem(34)) if w.method == "meet-in-the-middle")
    results = compare_all(
        counts, metrics=["mean"], method="both", exact_limit=2.5 * seconds_of_one, trials=100, adjust="holm"
    )
    assert f"|method:both|limit:{2.5 * seconds_of_one!r}|" in results[0].test_signature
    (tmp_path / "r.json").write_text(results.to_json())
    reproduced = reproduce_results(read(tmp_path / "r.json"), counts, compare_all)
    assert reproduced.is_reproduced
    plain = compare_all(counts, metrics=["mean"], method="exact", exact_limit=99)
    assert "limit:" not in plain[0].test_signature


def test_doubtful_ties_make_bounds_of_certified_limits():
    """Kappa of many units, whose ties no rounding bound decides; the oracle is kappa in integers under own swaps."""
    rng, n = np.random.default_rng(3), 320
    gold = rng.integers(0, 3, n)
    a, b = (np.where(rng.random(n) < 0.85, gold, rng.integers(0, 3, n)) for _ in range(2))
    labels = [np.array(list("ABC"))[column].tolist() for column in (gold, a, b)]
    counts = Counts.from_labels(labels[0], {"a": labels[1], "b": labels[2]})
    [r] = compare_all(counts, metrics=["kappa"], method="exact", interval="none", exact_limit=60)
    assert r.n_discordant > 62
    assert r.exact.p_hi > r.exact.p_lo * (1 + 1e-6)
    assert r.exact.guarantee == "bounds"

    def compute_kappa(columns):  # numerators and denominators
        n_agreeing = (columns == gold).sum(axis=1)
        by_chance = sum((columns == k).sum(axis=1) * (gold == k).sum() for k in range(3))
        return n * n_agreeing - by_chance, n * n - by_chance

    is_swapped = rng.random((20_000, n)) < 0.5
    is_swapped[0] = False
    (p, q), (s, t) = (compute_kappa(np.where(is_swapped, x, y)) for x, y in ((b, a), (a, b)))
    numerators, denominators = np.abs(p * t - s * q), q * t  # below 2**53
    is_extreme = [
        int(x) * int(denominators[0]) >= int(numerators[0]) * int(y)
        for x, y in zip(numerators, denominators, strict=True)
    ]
    assert np.mean(is_extreme) == pytest.approx((r.exact.p_lo + r.exact.p_hi) / 2, abs=0.012)
