"""Tests of studentised max-T against enumerations in fractions: scales, intervals, ties and notes."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from builders import build_panel, build_rng

from sigdask import Counts, compare_all, compare_sets
from sigdask.analysis.comparison.families import compute_joint_p_values
from sigdask.metrics.forms import ChrF, Formula, Ratios
from sigdask.randomization.families import MaxTFamily
from sigdask.randomization.panels.build import FamilyMember
from sigdask.randomization.panels.scored_sums import compute_contributions, compute_swap_deviations

MEAN = Ratios(((1, 0),), ((0, 1),))


# ---- an oracle that shares nothing with the package: every arrangement, in fractions ----


class FractionPair:
    """One pair on one test set, scored by num / den of summed fields, in any arrangement."""

    def __init__(self, first, second, above, below, offset=0, n_sets=1):
        self.x, self.y = first, second  # whole numbers, which Python adds faster than fractions
        self.above, self.below, self.offset, self.n_sets = above, below, offset, n_sets

    def score(self, sums):
        n, d = (sum(w * s for w, s in zip(side, sums, strict=True)) for side in (self.above, self.below))
        return Fraction(n, d) if d else Fraction(0)

    def difference(self, signs):
        set_signs = signs[self.offset : self.offset + len(self.x)]
        a, b = (
            [
                sum(col)
                for col in zip(*(q if s else p for p, q, s in zip(first, second, set_signs, strict=True)), strict=True)
            ]
            for first, second in ((self.x, self.y), (self.y, self.x))
        )
        return self.score(a) - self.score(b)

    def contributions(self):
        """Return each unit's contribution, by the quotient rule at the pooled sums."""
        pooled = [Fraction(sum(col), 2) for col in zip(*self.x, *self.y, strict=True)]
        n, d = (sum(w * s for w, s in zip(side, pooled, strict=True)) for side in (self.above, self.below))
        slope = [(a * d - n * b) / d**2 if d else 0 for a, b in zip(self.above, self.below, strict=True)]
        return {
            self.offset + k: sum(g * (p - q) for g, p, q in zip(slope, first, second, strict=True))
            for k, (first, second) in enumerate(zip(self.x, self.y, strict=True))
        }


def adjust_by_enumeration(hypotheses, n_units, side=0):
    """Return adjusted p as fractions, for hypotheses that are lists of pairs to sum."""

    def size(total):  # of squares, with the sign of what is compared: exact
        value = abs(total) if side == 0 else side * total
        return value * abs(value)

    variances = []
    for parts in hypotheses:
        moved = {}
        for part in parts:
            for unit, d in part.contributions().items():
                moved[unit] = moved.get(unit, 0) + d
        variances.append(sum(d * d for d in moved.values()))
    trials = []
    for signs in product((0, 1), repeat=n_units):
        totals = [sum(part.difference(signs) for part in parts) for parts in hypotheses]
        trials.append([size(t) / v if v else None for t, v in zip(totals, variances, strict=True)])
    observed = trials[0]
    order = sorted((h for h in range(len(hypotheses)) if variances[h]), key=lambda h: observed[h])
    p = [Fraction(1)] * len(hypotheses)
    for rank, h in enumerate(order):
        p[h] = Fraction(sum(max(row[k] for k in order[: rank + 1]) >= observed[h] for row in trials), len(trials))
    for above, h in zip(order[::-1], order[-2::-1], strict=False):
        p[h] = max(p[h], p[above])
    single = [
        Fraction(sum(row[h] >= observed[h] for row in trials), len(trials)) if variances[h] else Fraction(1)
        for h in range(len(hypotheses))
    ]
    return [max(x, y) for x, y in zip(p, single, strict=True)]


SIDES = {"two-sided": 0, "greater": 1, "less": -1}


@pytest.mark.parametrize("alternative", SIDES)
@pytest.mark.parametrize("seed", range(4))
def test_means_are_adjusted_as_fractions_adjust_them(alternative, seed):
    rng = build_rng(seed)
    scores = rng.integers(0, (2, 6)[seed % 2], (8, 4)) * [1, 1, 3, 9]
    names = "abcd"
    results = compare_all(
        Counts.from_scores(dict(zip(names, scores.T, strict=True))), metrics=["mean"],
        adjust="max-t", alternative=alternative, cluster="none",
    )  # fmt: skip
    columns = {n: [(v, 1) for v in scores[:, k].tolist()] for k, n in enumerate(names)}
    hypotheses = [[FractionPair(columns[a], columns[b], (1, 0), (0, 1))] for a, b in combinations(names, 2)]
    want = adjust_by_enumeration(hypotheses, 8, SIDES[alternative])
    assert [r.p_adjusted for r in results] == [float(p) for p in want]
    assert all(r.p_adjusted_interval == (r.p_adjusted, r.p_adjusted) for r in results)


RATIOS = {"recall": ((1, 0, 0), (0, 0, 1)), "precision": ((1, 0, 0), (0, 1, 0)), "f1": ((2, 0, 0), (0, 1, 1))}


@pytest.mark.parametrize("seed", range(2))
def test_the_family_of_each_metric_is_adjusted_as_fractions_adjust_it(seed):
    rng = build_rng(seed + 50)
    gold = rng.random(8) < 0.6
    predictions = {
        n: np.where(gold, rng.random(8) < hit, rng.random(8) < 0.3) for n, hit in (("a", 0.9), ("b", 0.5), ("c", 0.3))
    }
    results = compare_all(
        Counts.from_responses(gold, predictions), metrics=list(RATIOS), adjust="max-t", cluster="none"
    )
    rows = {
        n: [(int(f and g), int(f), int(g)) for f, g in zip(predicted, gold, strict=True)]
        for n, predicted in predictions.items()
    }
    for metric, (above, below) in RATIOS.items():
        family = [r for r in results if r.metric == metric]
        want = adjust_by_enumeration([[FractionPair(rows[r.a], rows[r.b], above, below)] for r in family], 8)
        assert [r.p_adjusted for r in family] == [float(p) for p in want]


@pytest.mark.parametrize("seed", range(3))
def test_verdicts_over_sets_are_adjusted_as_fractions_adjust_them(seed):
    rng = build_rng(seed + 80)
    sets = [rng.integers(0, 4, (n, 3)) * [1, 1, 6] for n in (4, 5)]
    units = 10, 1  # scores of the first set are tenths
    test_sets = [
        Counts.from_scores(dict(zip("abc", (s / unit).T, strict=True)), name=f"set{k}")
        for k, (s, unit) in enumerate(zip(sets, units, strict=True))
    ]
    results = compare_sets(test_sets, metrics=["mean"], together=True, cluster="none")
    columns = [{n: [(v, 1) for v in s[:, k].tolist()] for k, n in enumerate("abc")} for s in sets]
    hypotheses = [
        [
            FractionPair(columns_of_set[a], columns_of_set[b], (1, 0), (0, unit), offset)
            for columns_of_set, unit, offset in zip(columns, units, (0, 4), strict=True)
        ]
        for a, b in combinations("abc", 2)
    ]
    assert [v.p_adjusted for v in results.together] == [float(p) for p in adjust_by_enumeration(hypotheses, 9)]
    assert all(v.p_adjusted_interval == (v.p_adjusted, v.p_adjusted) for v in results.together)
    singles = [
        [FractionPair(columns_of_set[a], columns_of_set[b], (1, 0), (0, unit), offset)]
        for columns_of_set, unit, offset in zip(columns, units, (0, 4), strict=True)
        for a, b in combinations("abc", 2)
    ]
    assert [r.p_adjusted for r in results] == [float(p) for p in adjust_by_enumeration(singles, 9)]


def test_sets_that_have_too_many_units_together_are_sampled():
    scores = {"a": np.arange(14), "b": np.arange(14)[::-1] * 2}
    test_sets = [Counts.from_scores(scores, name=name) for name in "xy"]
    [result] = compare_sets(test_sets, metrics=["mean"], together=True, trials=99, cluster="none").together
    assert (result.method, result.n_trials) == ("approximate", 99)


def test_subsets_that_share_units_are_summed_by_unit_before_they_are_squared():
    # each document holds an item of both subsets: its exchange moves both
    rng = build_rng(4)
    scores = rng.integers(0, 5, (12, 3)) * [1, 1, 4]
    groups = {"doc": [f"d{k // 2}" for k in range(12)], "half": ["x", "y"] * 6}
    counts = Counts.from_scores(dict(zip("abc", scores.T, strict=True)), groups=groups)
    results = compare_all(counts, metrics=["mean"], unit="doc", by="half", together=True, cluster="none")
    hypotheses = [
        [
            FractionPair(
                [(v, 1) for v in scores[half::2, i].tolist()],
                [(v, 1) for v in scores[half::2, j].tolist()],
                (1, 0),
                (0, 1),
            )
            for half in (0, 1)
        ]
        for i, j in combinations(range(3), 2)
    ]
    assert [v.p_adjusted for v in results.together] == [float(p) for p in adjust_by_enumeration(hypotheses, 6)]


# ---- scales ----


def build_family(panel, metric=0, side=0):
    parts = np.array([[[0, row]] for row in range(len(panel.pairs))])
    return MaxTFamily((FamilyMember(panel, metric),), parts, side)


@pytest.mark.parametrize(
    "form",
    [
        Ratios(((2, 0, 0),), ((0, 1, 1),)),
        Ratios(((2, 0, 0), (1, 0, 0)), ((0, 1, 1), (0, 1, 0))),
        Formula("f", lambda tp, predicted, gold: tp / np.sqrt(np.maximum(predicted * gold, 1))),
        ChrF(),
    ],
    ids=["f1", "macro", "formula", "chrf"],
)
def test_contributions_are_the_derivative_of_the_score_by_each_units_exchange(form):
    rng = build_rng(7)
    gold = rng.integers(2, 9, (300, 1, 1)).repeat(3, axis=1)
    predicted = rng.integers(2, 9, (300, 3, 1))
    tp = np.minimum(np.minimum(gold, predicted), rng.integers(0, 7, (300, 3, 1)))
    order = (predicted, gold, tp) if isinstance(form, ChrF) else (tp, predicted, gold)
    panel = build_panel(np.concatenate(order, axis=2), [form])
    contributions = compute_contributions(panel, 0, [0, 2])
    for row, (i, j) in zip(contributions, panel.pairs[[0, 2]], strict=True):
        pooled = (panel.totals[i] + panel.totals[j]) / 2
        moved = panel.values[:, i] - panel.values[:, j].astype(np.int64)
        step = 1e-3
        numeric = (form.score(pooled + step * moved) - form.score(pooled - step * moved)) / (2 * step)
        assert row == pytest.approx(numeric, rel=1e-5, abs=1e-9)
    spread = np.sqrt((contributions**2).sum(axis=1))
    assert compute_swap_deviations(panel, 0, [0, 2]) == pytest.approx(spread, rel=1e-12)


def whole(a, n):
    if (np.asarray(a) % 1).any() or (np.asarray(n) % 1).any():
        raise ValueError("whole sums alone")
    return a / n


def test_a_formula_of_whole_sums_alone_takes_part_in_a_family():
    rng = build_rng(10)
    values = np.stack([rng.integers(0, 3, (61, 3)) + np.array([2, 0, 0]), np.ones((61, 3), int)], axis=-1)
    panel = build_panel(values, [Formula("whole", whole)])
    assert compute_swap_deviations(panel, 0) == pytest.approx(
        compute_swap_deviations(build_panel(values, [MEAN]), 0), rel=0.25
    )
    counts = build_family(panel).tally(run=0, first=0, n_trials=999).counts[:, 0, 3]
    assert (counts[:2] < 10).all()


def test_what_nothing_varies_has_p_1_and_raises_no_maximum():
    rng = build_rng(5)
    a, b = np.round(rng.standard_normal((2, 40)) + np.array([[1], [0]]), 1)
    data = {"a": a, "b": b, "twin": b}
    for alternative in ("two-sided", "greater", "less"):
        options = {"metrics": ["mean"], "trials": 999, "alternative": alternative, "cluster": "none"}
        results = {(r.a, r.b): r for r in compare_all(Counts.from_scores(data), **options)}
        assert results["b", "twin"].p_adjusted == 1.0
        alone = compare_all(Counts.from_scores(data), pairs=[("a", "b"), ("a", "twin")], **options)
        assert [results[r.a, r.b].p_adjusted for r in alone] == [r.p_adjusted for r in alone]


def test_differences_of_rounding_alone_hide_nothing():
    rng = build_rng(6)
    a, b = rng.random((2, 200))
    a += 0.2
    data = Counts.from_scores({"a": a, "b": b, "again": b * (1 + 2.0**-52)})
    results = {(r.a, r.b): r for r in compare_all(data, metrics=["mean"], trials=9999, cluster="none")}
    assert results["b", "again"].p_adjusted == 1.0
    assert results["a", "b"].p_adjusted < 0.001


def test_integers_and_floats_count_alike():
    rng = build_rng(2)
    scores = rng.integers(0, 4, (30, 6)) * [1, 1, 1, 5, 5, 20]
    panel = build_panel(np.stack([scores, np.ones_like(scores)], axis=-1), [MEAN])
    halves = tuple(FamilyMember(panel, 0, 1.0) for _ in range(2))  # two members take the path of floats
    parts = np.array([[[row % 2, row]] for row in range(len(panel.pairs))])
    for side in (0, 1, -1):
        whole = build_family(panel, side=side).tally(run=0, first=0, n_trials=3000)
        split = MaxTFamily(halves, parts, side).tally(run=0, first=0, n_trials=3000)
        assert whole.counts.tolist() == split.counts.tolist()


def test_equal_statistics_of_different_scales_are_ties():
    # the second pair is the first times 7: both reach the maximum whenever one does
    d = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    values = np.stack([np.stack([d, 0 * d, 7 * d], axis=1), np.ones((8, 3), int)], axis=-1)
    panel = build_panel(values, [MEAN], pairs=[(0, 1), (2, 1)])
    family = build_family(panel).build_enumeration()
    counts = family.tally(run=0, first=0, n_trials=256).counts[:, 0]
    assert counts[0, 2:].tolist() == counts[1, 2:].tolist() == [2, 2]


def test_of_all_arrangements_of_one_orbit_no_more_than_k_have_a_p_of_k_in_2_to_the_n():
    # mirroring all scores of a unit turns every pair's difference: 2^6 data sets that are equally likely under the null
    scores = build_rng(14).integers(-4, 5, (6, 4)) * [1, 1, 3, 9]
    least_p = []
    for signs in product((1, -1), repeat=6):
        values = scores * np.array(signs)[:, None]
        panel = build_panel(np.stack([values, np.ones_like(values)], axis=-1), [MEAN])
        family = build_family(panel).build_enumeration()
        tally = family.tally(run=0, first=0, n_trials=family.n_arrangements)
        least_p.append(compute_joint_p_values(family, tally)[0].min())
    for k in range(1, 65):
        assert sum(p <= k / 64 for p in least_p) <= k


# ---- intervals ----


@pytest.mark.parametrize("adjust", ["max-t", pytest.param("tukey", marks=pytest.mark.slow), "holm", "bh"])
def test_an_interval_of_each_adjusted_p_rises_with_it_and_holds_what_more_trials_find(adjust):
    rng = build_rng(21)
    data = Counts.from_scores({f"s{k}": np.round(rng.standard_normal(40) + 0.15 * k, 1) for k in range(6)})
    few, many = (
        compare_all(data, metrics=["mean"], trials=n, adjust=adjust, cluster="none", seed=s)
        for n, s in ((999, 0), (200_000, 1))
    )
    ordered = sorted(few, key=lambda r: r.p_adjusted)
    assert all(low <= r.p_adjusted <= high for r in few for low, high in [r.p_adjusted_interval])
    assert [r.p_adjusted_interval for r in ordered] == sorted(r.p_adjusted_interval for r in few)
    is_covered = [
        low <= r.p_adjusted <= high for f, r in zip(few, many, strict=True) for low, high in [f.p_adjusted_interval]
    ]
    assert all(is_covered)
    assert compare_all(data, metrics=["mean"], trials=99, adjust="none", cluster="none")[0].p_adjusted_interval is None
