"""Online false-discovery rules against the R package onlineFDR, and their promise by simulation."""

import math

import numpy as np
import pytest

from sigdask.statistics.online_fdr import levels, most_false_alarms, weight

# The example of `LORD` and `LOND` in the reference manual of the R package onlineFDR (Robertson et al. 2019),
# https://dsrobertson.github.io/onlineFDR/reference/LORD.html, `LORD(sample.df, random=FALSE)`
SAMPLE = [
    2.90e-08, 0.06743, 0.01514, 0.08174, 0.00171, 3.60e-05, 0.79149, 0.27201, 0.28295, 7.59e-08,
    0.69274, 0.30443, 0.00136, 0.72342, 0.54757,
]  # fmt: skip
LORD = [
    0.0002675839, 0.0024664457, 0.0005732818, 0.0004872805, 0.0004059066, 0.0003447286, 0.0029745013,
    0.0008450114, 0.0007305648, 0.0006243143, 0.0032185913, 0.0010617227, 0.0009256825, 0.0008019657,
    0.0007059610,
]  # fmt: skip


def test_the_levels_of_lord_are_those_of_onlinefdr():
    assert levels(SAMPLE, 0.05, "lord++")[:-1] == pytest.approx(LORD, abs=6e-11)


def test_the_alarms_of_both_rules_are_those_of_onlinefdr():
    alarms = {
        rule: [int(p <= a) for p, a in zip(SAMPLE, levels(SAMPLE, 0.05, rule), strict=False)]
        for rule in ("lord++", "lond")
    }
    assert alarms["lord++"] == [1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    # onlineFDR's own tests: LOND of (1e-07, 6e-04, 0.1) and of 1e-04 reject the first and the second by size
    assert levels([1e-07, 6e-04, 0.1], 0.05, "lond")[1] == pytest.approx(2 * 0.05 * weight(2))


def test_the_weights_sum_to_one_at_most():
    """The tail beyond N is the integral of log x / (x exp(sqrt(log x))), with u = sqrt(log x)."""
    n = 100_000
    u = math.sqrt(math.log(n))
    tail = 0.07720838 * 2 * math.exp(-u) * (u**3 + 3 * u**2 + 6 * u + 6)
    assert 0.97 < sum(weight(j) for j in range(1, n + 1)) + tail < 1


@pytest.mark.parametrize("rule", ["lord++", "lond"])
def test_the_share_of_false_alarms_stays_below_alpha(rule):
    rng, shares, alpha = np.random.default_rng(1), [], 0.1
    for _ in range(300):
        is_worse = rng.random(200) < 0.2
        p = np.where(is_worse, rng.random(200) * 1e-4, rng.random(200))
        alarm = p <= np.array(levels(p.tolist(), alpha, rule)[:-1])
        shares.append((alarm & ~is_worse).sum() / max(alarm.sum(), 1))
    assert np.mean(shares) <= alpha + 3 * np.std(shares) / math.sqrt(300)


@pytest.mark.parametrize("rule", ["lord++", "lond"])
def test_false_alarms_of_years_without_a_loss_stay_below_their_bound(rule):
    rng, alpha, alarms = np.random.default_rng(2), 0.05, 0
    for _ in range(400):
        p = rng.random(365).tolist()
        alarms += sum(x <= a for x, a in zip(p, levels(p, alpha, rule), strict=False))
    bound = most_false_alarms(alpha, rule)
    assert alarms / 400 <= bound + 3 * math.sqrt(bound / 400)


def test_the_first_night_has_a_level():
    assert len(levels([], 0.05, "lord++")) == 1
    assert levels([], 0.05, "lond")[0] == pytest.approx(0.05 * weight(1))


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.3])
@pytest.mark.parametrize(("rule", "share"), [("lord++", 0.1), ("lond", 1.0)])
def test_the_bound_on_false_alarms_is_what_all_levels_can_add_up_to(rule, share, alpha):
    # the first wealth (a tenth of alpha in onlineFDR's LORD), and of each alarm that it buys at most alpha more
    series = sum(share * alpha * alpha**k for k in range(60))
    assert most_false_alarms(alpha, rule) == pytest.approx(series, rel=1e-12)
    assert sum(levels([1.0] * 2000, alpha, rule)) < share * alpha  # without any alarm


@pytest.mark.parametrize("rule", ["lord++", "lond"])
def test_a_p_equal_to_its_level_is_an_alarm(rule):
    [first] = levels([], 0.05, rule)
    assert levels([first], 0.05, rule) == levels([first / 2], 0.05, rule)
    assert levels([first], 0.05, rule)[1] > levels([math.nextafter(first, 1)], 0.05, rule)[1]
