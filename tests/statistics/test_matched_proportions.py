"""Tests of matched proportions against published intervals, direct maximisation and full enumeration."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

from sigdask.statistics import classical
from sigdask.statistics.classical import (
    FEW_CLUSTERS,
    MatchedProportions,
    compute_exact_margin,
    compute_exact_p,
    compute_score,
    compute_score_margins,
    estimate_design_effect,
    estimate_loss_probability,
)


def compute_interval(wins, losses, n, confidence):
    """Return the score test's limits of the difference, by the smallest margins of both directions."""
    alpha = (1 - confidence) / 2
    limits = [
        optimize.brentq(lambda m, w=w, x=x: compute_score(w, x, n, m) + stats.norm.ppf(alpha), -1 + 1e-12, 1 - 1e-12)
        for w, x in ((wins, losses), (losses, wins))
    ]
    return -limits[0], limits[1]


@pytest.mark.parametrize(
    ("wins", "losses", "n", "confidence", "low", "high"),
    [
        (9, 3, 32, 0.95, -0.027, 0.390),  # Tango 1998, as ratesci's tests quote it
        (0, 1, 44, 0.90, -0.096, 0.037),  # Tango 1998, the cross-over trial, likewise
        (16, 8, 86, 0.95, -0.020, 0.207),  # Agresti & Min 2005, likewise
        (1, 7, 21, 0.95, -0.517, -0.026),  # Fagerland, Lydersen & Laake 2014, Bentur et al.
        (6, 16, 161, 0.95, -0.1240, -0.0054),  # R contingencytables, Cavo et al.
        (28, 25, 618, 0.90, -0.0148, 0.0247),  # R PropCIs::scoreci.mp(25, 28, 618, 0.9)
    ],
)
def test_limits_are_those_of_published_examples(wins, losses, n, confidence, low, high):
    digits, alpha = len(str(low).split(".")[1]), (1 - confidence) / 2
    limits = -compute_score_margins(wins, losses, n, alpha), compute_score_margins(losses, wins, n, alpha)
    assert limits == pytest.approx((low, high), abs=0.5 * 10**-digits + 1e-9)
    assert limits == pytest.approx(compute_interval(wins, losses, n, confidence), abs=1e-9)


def test_without_a_margin_the_statistic_is_mcnemars():
    assert float(compute_score(12, 5, 300, 0.0)) == pytest.approx((12 - 5) / math.sqrt(17))
    assert float(compute_score(0, 0, 300, 0.0)) == 0.0


@pytest.mark.parametrize("margin", [0.01, 0.1, 0.4, -0.2])
@pytest.mark.parametrize(("wins", "losses", "n"), [(3, 9, 40), (0, 2, 40), (0, 0, 40), (7, 0, 40), (20, 20, 40)])
def test_the_nuisance_parameter_is_the_likeliest(wins, losses, n, margin):
    """Against direct maximisation of the trinomial likelihood."""

    def cost(q):
        cells = ((wins, q - margin), (losses, q), (n - wins - losses, 1 - 2 * q + margin))
        return -sum(k * math.log(max(p, 1e-300)) for k, p in cells if k)

    low, high = max(margin, 0.0), (1 + margin) / 2
    optimum = optimize.minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
    q = float(estimate_loss_probability(wins, losses, n, margin))
    assert low <= q <= high
    assert cost(q) <= optimum.fun + 1e-9


@pytest.mark.parametrize("n", [1, 7, 30])
@pytest.mark.parametrize("margin", [-0.3, 0.0, 0.01, 0.1, 0.5, 0.9])
def test_more_wins_fewer_losses_and_larger_margins_never_lower_the_statistic(n, margin):
    counts = np.arange(n + 1)
    table = compute_score(counts, counts[:, None], n, margin)  # (losses, wins)
    fits = counts + counts[:, None] <= n
    assert (np.diff(table, axis=1)[fits[:, 1:]] >= -1e-12).all()
    assert (np.diff(table, axis=0)[fits[1:]] <= 1e-12).all()
    assert (compute_score(counts, counts[:, None], n, margin + 0.01)[fits] >= table[fits] - 1e-12).all()


def compute_trinomial(wins, losses, n, won, lost):
    n_orders = math.comb(n, wins) * math.comb(n - wins, losses)
    return n_orders * won**wins * lost**losses * (1 - won - lost) ** (n - wins - losses)


@pytest.mark.parametrize(("wins", "losses", "n"), [(0, 0, 5), (0, 1, 8), (2, 1, 8), (1, 3, 7), (4, 0, 8)])
@pytest.mark.parametrize("margin", [Fraction(1, 10), Fraction(1, 3)])
def test_the_exact_p_is_the_largest_sum_over_all_tables(wins, losses, n, margin):
    """Every table, probabilities as fractions, 2,000 values of the nuisance parameter."""
    alpha = 0.05
    margin_limit = -compute_interval(wins, losses, n, 1 - 2 * alpha)[0]
    tables = [
        (w, x)
        for w in range(n + 1)
        for x in range(n + 1 - w)
        if float(compute_score(w, x, n, margin_limit)) >= float(compute_score(wins, losses, n, margin_limit)) - 1e-9
    ]
    largest = max(
        sum(compute_trinomial(w, x, n, lost - margin, lost) for w, x in tables)
        for lost in (margin + Fraction(k, 400) * ((1 + margin) / 2 - margin) for k in range(401))
    )
    p = compute_exact_p(wins, losses, n, float(margin), alpha)
    assert p >= float(largest) - 1e-12
    assert p == pytest.approx(float(largest), rel=1e-4)


@pytest.mark.slow
def test_a_finer_grid_of_the_nuisance_parameter_finds_no_larger_tail(monkeypatch):
    tables = [(2, 5, 200, 0.05), (0, 3, 200, 0.02), (30, 30, 200, 0.1), (1, 0, 60, 0.03), (12, 2, 150, -0.01)]
    p_values = [compute_exact_p(*table, 0.05) for table in tables]
    monkeypatch.setattr(classical, "GRID", 4000)
    assert p_values == pytest.approx([compute_exact_p(*table, 0.05) for table in tables], rel=1e-7)


@pytest.mark.parametrize("alpha", [0.001, 0.5, 0.8])
@pytest.mark.parametrize("n", [40, 400])
def test_any_level_and_any_margin_has_an_answer(n, alpha):
    for proportions in (
        MatchedProportions(0, 0, n),
        MatchedProportions(2, 1, n),
        MatchedProportions(0, n, n),
        MatchedProportions(n, 0, n),
    ):
        p_values = [proportions.compute_p_value(margin, alpha) for margin in (1e-9, 0.2, 0.9999, 1.0, 50.0)]
        assert all(0 <= p <= 1 for p in p_values)
        assert p_values == sorted(p_values, reverse=True)
        assert 0 <= proportions.compute_power(0.1, alpha) <= 1


@pytest.mark.parametrize("n", [1, 10, 200])
def test_systems_that_agree_everywhere_are_shown_within_one_minus_the_root_of_alpha(n):
    # losses alone, of probability m: (1 - m)^n = alpha; the "rule of three"
    assert compute_exact_margin(0, 0, n, 0.05) == pytest.approx(1 - 0.05 ** (1 / n), abs=1e-6)


def compute_size(is_shown, n, margin, win_rates):
    """Return the exact probability of showing a system worse by the margin, at the worst rate of wins."""
    wins, losses = np.nonzero(is_shown)
    return max(
        float(
            stats.multinomial.pmf(np.c_[wins, losses, n - wins - losses], n, [w, w + margin, 1 - 2 * w - margin]).sum()
        )
        for w in win_rates
        if 2 * w + margin < 1
    )


@pytest.mark.slow
@pytest.mark.parametrize(("n", "margin"), [(12, 0.1), (12, 0.3), (24, 0.2)])
def test_the_exact_test_never_exceeds_its_level(n, margin):
    is_shown = np.zeros((n + 1, n + 1), bool)
    for wins in range(n + 1):
        for losses in range(n + 1 - wins):
            is_shown[wins, losses] = compute_exact_p(wins, losses, n, margin, 0.1) <= 0.1
    assert 0 < compute_size(is_shown, n, margin, np.linspace(0, (1 - margin) / 2, 200)[:-1]) <= 0.1


PROPORTIONS = [
    MatchedProportions(0, 0, 50), MatchedProportions(3, 9, 120), MatchedProportions(9, 3, 200), MatchedProportions(0, 4, 300), MatchedProportions(40, 55, 5000),
    MatchedProportions(40, 20, 900, 2.5, 60), MatchedProportions(2, 5, 600, 10.0, 60), MatchedProportions(12, 30, 700, worth=100.0),
    MatchedProportions(0, 60, 60), MatchedProportions(60, 0, 60),
]  # fmt: skip


@pytest.mark.parametrize("alpha", [0.05, *(pytest.param(a, marks=pytest.mark.slow) for a in (0.01, 0.2))])
@pytest.mark.parametrize("matched", PROPORTIONS)
def test_p_falls_as_margins_grow(matched, alpha):
    margins = matched.worth * np.array([-0.3, -0.05, 0.001, 0.01, 0.05, 0.1, 0.3, 0.6, 0.99])
    p_values = [matched.compute_p_value(float(m), alpha) for m in margins]
    assert (np.diff(p_values) <= 1e-9).all()


def test_the_power_for_an_equal_system_is_nearly_that_of_enumeration():
    n, alpha, differ, margin = 400, 0.05, 0.1, 0.04
    proportions = MatchedProportions(20, 20, n)
    counts = np.arange(n + 1)
    is_shown = (compute_score(counts[:, None], counts, n, margin) >= stats.norm.ppf(1 - alpha)) & (
        counts[:, None] + counts <= n
    )
    wins, losses = np.nonzero(is_shown)
    cells = [differ / 2, differ / 2, 1 - differ]
    true = stats.multinomial.pmf(np.c_[wins, losses, n - wins - losses], n, cells).sum()
    assert proportions.compute_power(margin, alpha) == pytest.approx(true, abs=0.02)
    assert proportions.compute_power(proportions.find_margin_of_power(0.8, alpha), alpha) == pytest.approx(
        0.8, abs=1e-6
    )
    assert MatchedProportions(0, 0, 1000).compute_power(0.01, alpha) == 1.0
    assert MatchedProportions(0, 0, 100).compute_power(0.01, alpha) == 0.0


@pytest.mark.parametrize(("n", "alpha"), [(1, 0.1), (19, 0.05), (150, 0.01), (200, 0.05)])
def test_an_equal_system_is_promised_no_smaller_margin_than_one_that_agrees_everywhere_is_shown_within(n, alpha):
    smallest_margin = compute_exact_margin(0, 0, n, alpha)
    agrees = MatchedProportions(0, 0, n)
    assert agrees.find_margin_of_power(0.8, alpha) == pytest.approx(smallest_margin, abs=1e-8)
    assert (
        agrees.compute_power(smallest_margin * 0.99, alpha),
        agrees.compute_power(smallest_margin * 1.01, alpha),
    ) == (0.0, 1.0)
    if n > 2:
        assert MatchedProportions(1, 1, n).find_margin_of_power(0.8, alpha) >= smallest_margin - 1e-8


def test_a_design_effect_is_the_variance_of_sums_over_clusters_above_that_of_items():
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(40), rng.integers(1, 9, 40))
    d = rng.choice([-1, 0, 1], len(clusters), p=[0.2, 0.7, 0.1])
    residuals = [(d[clusters == k] - d.mean()).sum() for k in range(40)]
    expected = 40 / 39 * np.dot(residuals, residuals) / ((d - d.mean()) ** 2).sum()
    assert estimate_design_effect(d, clusters) == pytest.approx(max(expected, 1.0))


def test_copies_of_items_count_as_one_item():
    rng = np.random.default_rng(2)
    once = rng.choice([-1, 0, 1], 400, p=[0.08, 0.9, 0.02])
    copies, clusters = np.repeat(once, 7), np.repeat(np.arange(400), 7)
    assert estimate_design_effect(copies, clusters) == pytest.approx(7 * 400 / 399)
    wins, losses = (int((once == sign).sum()) for sign in (1, -1))
    p = MatchedProportions(wins, losses, 400).compute_p_value(0.08, 0.05)
    p_of_copies = MatchedProportions.from_differences(copies, clusters).compute_p_value(0.08, 0.05)
    assert p_of_copies == pytest.approx(p, rel=0.05)


def test_clusters_of_unequal_size_have_fewer_degrees_of_freedom_and_a_doubt():
    """A simulation: 3 documents of 100 items and 100 of one, and a system that is worse by just the margin.

    With n_clusters - 1 = 102 degrees of freedom, 11 % of such data sets pass at 0.05.
    """
    rng = np.random.default_rng(5)
    sizes, n_samples, margin, won = np.array([100] * 3 + [1] * 100), 800, 0.05, 0.2
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    n_passed = 0
    for _ in range(n_samples):
        p_lost = rng.beta(2 * (won + margin), 2 * (1 - won - margin), len(sizes))
        p_won = rng.beta(2 * won, 2 * (1 - won), len(sizes)) * (1 - p_lost) / (1 - won - margin)
        u = rng.random(len(clusters))
        d = np.where(u < p_lost[clusters], -1, np.where(u < (p_lost + p_won)[clusters], 1, 0))
        proportions = MatchedProportions.from_differences(d, clusters)
        n_passed += proportions.compute_p_value(margin, 0.05) <= 0.05
        assert proportions.as_items or "from 5.3 effective units: p may be too small" in proportions.method
    assert n_passed / n_samples < 0.085  # 0.066 in 1,500 others
    z = compute_score(proportions.wins, proportions.losses, 400, margin) / math.sqrt(proportions.design_effect)
    df = 400**2 / (3 * 100**2 + 100) - 1
    assert proportions.compute_p_value(margin, 0.05) == pytest.approx(stats.t.sf(z, df))


def test_clusters_of_equal_size_have_no_doubt():
    clusters = np.repeat(np.arange(15), 7)
    proportions = MatchedProportions.from_differences(-(np.arange(105) % 7 == 0).astype(int), clusters)
    assert (proportions.as_items, proportions.n_effective, proportions.is_doubtful) == (False, 15.0, False)


def test_few_clusters_that_differ_count_as_one_item_each():
    d = np.zeros(300, int)
    d[: 10 * (FEW_CLUSTERS - 1) : 10] = -1
    clusters = np.repeat(np.arange(30), 10)
    assert MatchedProportions.from_differences(d, clusters) == MatchedProportions(
        0, FEW_CLUSTERS - 1, 300, 10.0, 30, as_items=True, n_effective=30.0
    )
    assert MatchedProportions.from_differences(np.where(d < 0, d, 1), clusters).as_items  # wins tell nothing of losses
    assert MatchedProportions.from_differences(-np.ones(40), np.repeat(np.arange(20), 2)).design_effect == 2
    uneven = np.repeat([0, 1], [2, 6])
    assert MatchedProportions.from_differences(np.zeros(8), uneven).design_effect == (2 * 2 + 6 * 6) / 8
    assert "each counted as one item" in MatchedProportions.from_differences(d, clusters).method
    assert MatchedProportions.from_differences(d, np.arange(300)) == MatchedProportions(0, FEW_CLUSTERS - 1, 300)
