"""Tests of intraclass correlation against SciPy's analysis of variance and textbooks; nested units."""

import numpy as np
import pytest
from builders import build_rng
from scipy import stats

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.results.record import NamedValues
from sigdask.statistics.dependence import SumsOfSquares, find_clear


def draw_clustered(n_groups, size, icc, rng):
    """Draw differences with an intraclass correlation."""
    between = np.sqrt(icc) * rng.standard_normal((n_groups, 1))
    return (between + np.sqrt(1 - icc) * rng.standard_normal((n_groups, size))).ravel()


def compute_dependence(grams, weights):
    """Return the dependence of one combination of columns, None where nothing varies."""
    icc, effect, p = (x[0] for x in grams.compute_dependence(np.arange(len(weights))[None], np.array([weights])))
    return None if np.isnan(p) else NamedValues(n_groups=len(grams.sizes), icc=icc, design_effect=effect, p_value=p)


@pytest.mark.parametrize("seed", range(5))
def test_the_f_test_is_scipys_and_the_icc_the_textbooks(seed):
    rng = build_rng(seed)
    groups = np.sort(rng.integers(0, 8, 60))
    groups = np.unique(groups, return_inverse=True)[1]
    values = rng.standard_normal((60, 2)) + (seed / 2) * groups[:, None] / 8
    result = compute_dependence(SumsOfSquares.from_values(values, groups, np.ones(60, int)), [1.0, -1.0])
    d = values[:, 0] - values[:, 1]
    parts = [d[groups == g] for g in range(groups.max() + 1)]
    f = stats.f_oneway(*parts)
    assert result.p_value == pytest.approx(f.pvalue, rel=1e-9)
    # Donner & Koval 1980, the ANOVA estimator: (MSB - MSW) / (MSB + (n0 - 1) MSW)
    msw = sum(((p - p.mean()) ** 2).sum() for p in parts) / (60 - len(parts))
    n0 = (60 - sum(len(p) ** 2 for p in parts) / 60) / (len(parts) - 1)
    icc = (f.statistic * msw - msw) / (f.statistic * msw + (n0 - 1) * msw)
    assert result.icc == pytest.approx(icc, rel=1e-9)
    assert result.design_effect == pytest.approx(max(0, 1 + (sum(len(p) ** 2 for p in parts) / 60 - 1) * icc), rel=1e-9)


def test_nothing_varies_within_or_at_all():
    groups = np.repeat(np.arange(4), 3)
    constant = compute_dependence(SumsOfSquares.from_values(np.ones((12, 2)), groups, np.ones(12, int)), [1.0, -1.0])
    assert constant is None
    constant_within = compute_dependence(
        SumsOfSquares.from_values(np.column_stack([groups, 0 * groups]).astype(float), groups, np.ones(12, int)),
        [1.0, -1.0],
    )
    assert (constant_within.icc, constant_within.p_value) == (pytest.approx(1.0), 0.0)


def test_groups_of_equal_means_have_an_f_of_0_whatever_rounding_leaves():
    rng = build_rng(5)
    for _ in range(50):
        half = np.append(rng.integers(0, 2, 8), [0, 1])
        d, x = np.concatenate([half, half[::-1]]), rng.random(20)
        result = compute_dependence(
            SumsOfSquares.from_values(np.column_stack([x + d, x]), np.repeat([0, 1], 10), np.ones(20, int)),
            [1, -1],
        )
        assert result.p_value == pytest.approx(1.0, abs=1e-6)  # scipy.stats.f.sf(0, 1, 18)


def test_groups_of_one_unit_and_one_group_of_all_have_no_dependence():
    values = build_rng(1).standard_normal((12, 2))
    for groups in (np.arange(12), np.zeros(12, int)):
        assert compute_dependence(SumsOfSquares.from_values(values, groups, np.ones(12, int)), [1.0, -1.0]) is None


@pytest.mark.parametrize(
    ("effect", "p", "n_tested", "clear"),
    [
        (2.0, 0.01, 1, True), (2.0, 0.011, 1, False), (2.0, 0.01, 2, False), (2.0, 0.005, 2, True), (2.0, 0.01, 0, True),
        (1.06, 1e-9, 1, True), (1.05, 1e-9, 1, False), (0.2, 1e-9, 1, False),
    ],
)  # fmt: skip
def test_dependence_is_clear_where_it_matters_and_is_not_chance(effect, p, n_tested, clear):
    assert find_clear(effect, p, n_tested) == clear


def draw_data(icc, *, columns=("document",), n_groups=60, size=8, seed=1):
    d = np.round(draw_clustered(n_groups, size, icc, build_rng(seed)) + 0.1, 2)
    names = [f"d{k // size:03}" for k in range(len(d))]
    groups = {"document": names, "domain": [f"m{int(n[1:]) % 6}" for n in names]}
    return Counts.from_scores({"a": d, "b": np.zeros(len(d))}, groups={c: groups[c] for c in columns})


def test_dependent_items_are_warned_of_and_the_named_remedy_gives_a_larger_p():
    results = compare_all(draw_data(0.5), metrics=["mean"], trials=4095)
    [r] = results
    assert [(d.column, d.n_groups) for d in r.dependence] == [("document", 60)]
    assert r.dependence[0].icc == pytest.approx(0.5, abs=0.15)
    [warning] = results.warnings
    assert "are correlated within document" in warning
    assert "unit='document'" in warning
    [by_document] = compare_all(draw_data(0.5), metrics=["mean"], trials=4095, unit="document")
    assert by_document.p_value > r.p_value


def test_the_dependence_of_a_ratio_is_that_of_its_linearisation():
    rng = build_rng(9)
    gold = rng.random(600) < 0.4
    predictions = {"a": (rng.random(600) < 0.7) & gold, "b": rng.random(600) < 0.5}
    data = Counts.from_responses(gold, predictions, groups={"document": [f"d{k // 10}" for k in range(600)]})
    [r] = compare_all(data, metrics=["precision"], trials=99)
    tp = np.column_stack([f & gold for f in predictions.values()]).astype(float)
    predicted = np.column_stack(list(predictions.values())).astype(float)
    n, d = tp.sum(0).mean(), predicted.sum(0).mean()
    effect = (tp[:, 0] - tp[:, 1]) / d - (predicted[:, 0] - predicted[:, 1]) * n / d**2
    f = stats.f_oneway(*effect.reshape(60, 10))
    assert r.dependence[0].p_value == pytest.approx(f.pvalue, rel=1e-9)
