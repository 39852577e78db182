"""Tests of online false-discovery rules against the R package onlineFDR and by simulation."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr, zeta

from sigdask.statistics.multiplicity import bound_false_alarms, compute_levels, compute_old_levels, compute_weight

# The example of `LORD` and `LOND` in the reference manual of the R package onlineFDR (Robertson et al. 2019),
# https://dsrobertson.github.io/onlineFDR/reference/LORD.html, `LORD(sample.df, random=FALSE)`
SAMPLE_P_VALUES = [
    2.90e-08, 0.06743, 0.01514, 0.08174, 0.00171, 3.60e-05, 0.79149, 0.27201, 0.28295, 7.59e-08,
    0.69274, 0.30443, 0.00136, 0.72342, 0.54757,
]  # fmt: skip
LORD_LEVELS = [
    0.0002675839, 0.0024664457, 0.0005732818, 0.0004872805, 0.0004059066, 0.0003447286, 0.0029745013,
    0.0008450114, 0.0007305648, 0.0006243143, 0.0032185913, 0.0010617227, 0.0009256825, 0.0008019657,
    0.0007059610,
]  # fmt: skip


def test_the_levels_of_stores_before_are_those_of_onlinefdr_with_its_own_weights():
    assert compute_old_levels(SAMPLE_P_VALUES, 0.05, "lord++")[:-1] == pytest.approx(LORD_LEVELS, abs=6e-11)
    # onlineFDR's own tests: LOND of (1e-07, 6e-04, 0.1) rejects the first, which doubles the level of the second
    second = 0.07720838 * math.log(2) / (2 * math.exp(math.sqrt(math.log(2))))
    assert compute_old_levels([1e-07, 6e-04, 0.1], 0.05, "lond")[1] == pytest.approx(2 * 0.05 * second)


def compute_lord(p_values, alpha):
    """LORD++ of Ramdas et al. 2017 as onlineFDR documents it: gammai j^-1.6 / zeta(1.6), w0 = alpha / 2.

    alpha_t = gamma_t w0 + gamma_{t - tau_1} (alpha - w0) + alpha * sum of gamma_{t - tau_j} over j >= 2.
    """
    z = float(zeta(1.6))
    levels, alarms = [], []
    for t in range(1, len(p_values) + 1):
        level = t**-1.6 / z * alpha / 2
        for j, tau in enumerate(alarms):
            level += (t - tau) ** -1.6 / z * (alpha / 2 if j == 0 else alpha)
        levels.append(level)
        if p_values[t - 1] <= level:
            alarms.append(t)
    return levels


def compute_lond(p_values, alpha):
    """LOND of Javanmard & Montanari 2015: alpha_t = alpha gamma_t (1 + alarms before)."""
    z = float(zeta(1.6))
    levels, n = [], 0
    for t, p in enumerate(p_values, 1):
        levels.append(alpha * t**-1.6 / z * (n + 1))
        n += p <= levels[-1]
    return levels


@pytest.mark.parametrize(("rule", "plain"), [("lord++", compute_lord), ("lond", compute_lond)])
def test_the_levels_are_those_of_the_published_formulas_with_the_steeper_weights(rule, plain):
    rng = np.random.default_rng(7)
    mixed = np.where(rng.random(120) < 0.2, rng.random(120) * 1e-4, rng.random(120)).tolist()
    for p_values in (SAMPLE_P_VALUES, mixed, [0.5] * 40, [1e-9] * 40):
        assert compute_levels(p_values, 0.05, rule)[:-1] == pytest.approx(plain(p_values, 0.05), rel=1e-12)


def test_the_alarms_of_both_rules_on_the_sample_of_onlinefdr():
    alarms = {
        rule: [int(p <= a) for p, a in zip(SAMPLE_P_VALUES, compute_levels(SAMPLE_P_VALUES, 0.05, rule), strict=False)]
        for rule in ("lord++", "lond")
    }
    # with the weights of version 0.2 the fifth (0.00171) and the thirteenth (0.00136) were no alarms
    assert alarms["lord++"] == [1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0]
    assert alarms["lond"] == [1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0]


def test_the_weights_fall_and_sum_to_one():
    """The tail beyond n lies between the integrals of x^-1.6 from n + 1 and from n."""
    n = 2000
    weights = [compute_weight(j) for j in range(1, n + 1)]
    assert all(later < earlier for earlier, later in pairwise(weights))
    tails = [k**-0.6 / 0.6 / float(zeta(1.6)) for k in (n + 1, n)]
    assert sum(weights) + tails[0] < 1 < sum(weights) + tails[1]


@pytest.mark.parametrize("rule", ["lord++", "lond"])
def test_recorded_levels_stay_and_levels_after_them_keep_the_sum_below_alpha_for_each_alarm(rule):
    """FDR is at most alpha where the sum of levels is at most alpha times the alarms, at least one (Ramdas et al. 2017)."""
    rng, alpha = np.random.default_rng(3), 0.05
    for n_before in (1, 9, 60, 200):
        for share in (0.0, 0.1, 0.3):
            p = np.where(rng.random(300) < share, 1e-9, 0.9).tolist()
            recorded = compute_old_levels(p[:n_before], alpha, rule)[:-1]
            levels = compute_levels(p, alpha, rule, recorded=recorded)
            assert levels[:n_before] == recorded
            assert levels[n_before:] == compute_levels(p, alpha, rule)[n_before:]  # these alarms hold at any level
            alarms = np.cumsum([x <= level for x, level in zip(p, levels, strict=False)])
            if rule == "lord++":
                assert (np.cumsum(levels[:-1]) <= alpha * np.maximum(alarms, 1) + 1e-12).all()
            else:  # of each level its part of alpha, before alarms multiply it
                ratios = np.array(levels[:-1]) / (1 + np.append(0, alarms[:-1]))
                assert ratios.sum() <= alpha


@pytest.mark.parametrize("rule", ["lord++", "lond"])
def test_an_alarm_more_in_the_past_lowers_no_later_level(rule):
    for n_before in (0, 20):
        recorded = compute_old_levels([0.9] * n_before, 0.05, rule)[:-1]
        quiet = compute_levels([0.9] * 40, 0.05, rule, recorded=recorded)
        for t in (0, 5, 30):
            p = [0.9] * 40
            p[t] = 1e-12
            levels = compute_levels(p, 0.05, rule, recorded=recorded)
            assert all(a >= b for a, b in zip(levels, quiet, strict=True))


def test_the_steeper_weights_double_the_power_of_lord():
    """60 independent nights, one in ten with a loss of three standard errors, alpha 0.05: STATISTICS.md, 14."""
    rng, results = np.random.default_rng(11), {compute_levels: [], compute_old_levels: []}
    for _ in range(250):
        is_worse = rng.random(60) < 0.1
        p = ndtr(-(rng.standard_normal(60) + 3 * is_worse))
        for compute, shares in results.items():
            alarm = p <= np.array(compute(p.tolist(), 0.05, "lord++")[:-1])
            shares.append(((alarm & is_worse).sum(), is_worse.sum(), (alarm & ~is_worse).sum() / max(alarm.sum(), 1)))
    (power, n, fdr), (old_power, _, fdr_before) = (np.array(shares).sum(axis=0) for shares in results.values())
    assert power / n == pytest.approx(0.332, abs=0.06)
    assert old_power / n == pytest.approx(0.155, abs=0.05)
    assert fdr_before / 250 < fdr / 250 < 0.05


@pytest.mark.parametrize("rule", ["lord++", "lond"])
def test_the_share_of_false_alarms_stays_below_alpha(rule):
    rng, shares, alpha = np.random.default_rng(1), [], 0.1
    for _ in range(300):
        is_worse = rng.random(200) < 0.2
        p = np.where(is_worse, rng.random(200) * 1e-4, rng.random(200))
        alarm = p <= np.array(compute_levels(p.tolist(), alpha, rule)[:-1])
        shares.append((alarm & ~is_worse).sum() / max(alarm.sum(), 1))
    assert np.mean(shares) <= alpha + 3 * np.std(shares) / math.sqrt(300)


@pytest.mark.parametrize("rule", ["lord++", "lond"])
def test_false_alarms_of_years_without_a_loss_stay_below_their_bound(rule):
    rng, alpha, alarms = np.random.default_rng(2), 0.05, 0
    for _ in range(400):
        p = rng.random(365).tolist()
        alarms += sum(x <= a for x, a in zip(p, compute_levels(p, alpha, rule), strict=False))
    bound = bound_false_alarms(alpha, rule, 365)
    assert alarms / 400 <= bound + 3 * math.sqrt(bound / 400)


def test_the_first_night_has_a_level():
    assert len(compute_levels([], 0.05, "lord++")) == 1
    assert compute_levels([], 0.05, "lond")[0] == pytest.approx(0.05 * compute_weight(1))


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.3])
def test_the_bound_on_false_alarms_is_what_all_levels_can_add_up_to(alpha):
    # LORD++: the first wealth (half of alpha), and of each alarm that it buys at most alpha more
    series = sum(0.5 * alpha * alpha**k for k in range(60))
    assert bound_false_alarms(alpha, "lord++", 365) == pytest.approx(series, rel=1e-12)
    assert sum(compute_levels([1.0] * 2000, alpha, "lord++")) < 0.5 * alpha  # without any alarm
    # LOND: the levels of a year in which every night is an alarm, which no dependence exceeds
    assert bound_false_alarms(alpha, "lond", 200) == pytest.approx(sum(compute_levels([0.0] * 199, alpha, "lond")))


def test_lond_keeps_its_bound_on_false_alarms_if_all_nights_have_the_same_p():
    alpha, n_nights = 0.05, 365
    p_values = (np.arange(2000) + 0.5) / 2000  # one uniform p per year, in every night of it
    alarms = [np.count_nonzero(p <= np.array(compute_levels([p] * n_nights, alpha, "lond")[:-1])) for p in p_values]
    assert alpha < np.mean(alarms) <= bound_false_alarms(alpha, "lond", n_nights)


@pytest.mark.parametrize("rule", ["lord++", "lond"])
def test_a_p_equal_to_its_level_is_an_alarm(rule):
    [level] = compute_levels([], 0.05, rule)
    assert compute_levels([level], 0.05, rule) == compute_levels([level / 2], 0.05, rule)
    assert compute_levels([level], 0.05, rule)[1] > compute_levels([math.nextafter(level, 1)], 0.05, rule)[1]
