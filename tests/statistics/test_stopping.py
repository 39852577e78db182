"""Tests of stopping rules: figures of their papers, validity, independence of the partition."""

import math
from fractions import Fraction

import numpy as np
import pytest
from builders import build_panels

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.metrics import find_metric
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.trials import count_by_trial
from sigdask.statistics.stopping import (
    NOT_YET,
    SINGLE_TRIALS,
    BesagClifford,
    ConfidenceSequence,
    compute_saving,
    compute_sequence_interval,
    compute_sequential_p,
    compute_settled_after,
    decide,
    find_hidden_blocks,
    find_stopping_block,
    locate_exceedances,
    log_likelihood,
    parse_rule,
)


def simulate_trials(p, rng, rule, replications, limit):
    """Return after how many trials the confidence sequence decides if it checks after every one."""
    used = []
    for _ in range(replications):
        k, n, step = 0, 0, 64
        while n < limit:
            hits = np.cumsum(rng.random(step) < p) + k
            looks = np.arange(n + 1, n + step + 1)
            reached = rule.is_reached(hits, looks)
            if reached.any():
                n = int(looks[reached.argmax()])
                break
            k, n, step = int(hits[-1]), n + step, min(2 * step, 65536)
        used.append(n)
    return np.array(used)


@pytest.mark.parametrize(
    ("p", "mean"), [(0.5, 10), (0.1, 475), (0.001, 264), (0.04, 10_600)], ids=["0.5", "0.1", "0.001", "0.04"]
)
def test_the_confidence_sequence_needs_the_published_mean_number_of_trials(p, mean):
    used = simulate_trials(p, np.random.default_rng(1), ConfidenceSequence(0.05, 1e-3), 400, 10**6)
    error = used.std(ddof=1) / math.sqrt(len(used))
    assert abs(used.mean() - mean) < 4 * error + 0.06 * mean


def test_the_rule_is_the_formula_in_rational_arithmetic():
    alpha = Fraction(1, 20)
    for n, k in [(1, 0), (10, 3), (400, 7), (400, 60)]:
        exact = (n + 1) * math.comb(n, k) * alpha**k * (1 - alpha) ** (n - k)
        assert log_likelihood(k, n, 0.05) == pytest.approx(math.log(exact), rel=1e-12)


@pytest.mark.parametrize("p", [0.045, 0.056])
def test_the_confidence_sequence_decides_wrongly_at_most_epsilon_of_the_time(p):
    rng, rule, wrong = np.random.default_rng(2), ConfidenceSequence(0.05, 0.05), 0
    replications = 500
    for _ in range(replications):
        tallies = rng.binomial(256, p, 400)
        decision = decide(rule, tallies, np.full(400, 256), limit=400 * 256)
        wrong += decision.is_significant == int(p > 0.05)
    assert wrong <= rule.epsilon * replications + 3 * math.sqrt(rule.epsilon * replications)


def test_the_interval_of_the_sequence_holds_at_the_time_of_stopping():
    rng, rule, missed = np.random.default_rng(3), ConfidenceSequence(0.05, 0.05), 0
    for _ in range(400):
        p = rng.uniform(0.02, 0.12)
        decision = decide(rule, rng.binomial(64, p, 500), np.full(500, 64), limit=500 * 64)
        missed += not decision.p_low <= p <= decision.p_high
    assert missed <= 0.05 * 400 + 3 * math.sqrt(20)


def test_a_decision_has_alpha_outside_its_interval():
    rule = ConfidenceSequence(0.05, 1e-3)
    for k, n in [(130, 4096), (300, 4096), (2, 4096), (0, 4096), (4096, 4096)]:
        decision = decide(rule, [k], [n], limit=n)
        low, high = decision.p_low, decision.p_high
        assert decision.is_significant == (high <= 0.05 + 1e-12 if k / n < 0.05 else False)
        assert not low < 0.05 < high


def test_the_ends_of_the_interval_are_where_the_formula_is_epsilon():
    low, high = compute_sequence_interval(7, 4096, 1e-3)
    for end in (low, high):
        assert log_likelihood(7, 4096, end) == pytest.approx(math.log(1e-3), abs=1e-6)
    low, high = compute_sequence_interval(2**20 - 1, 2**20, 1e-3)
    assert 1 - 1e-4 < low < high < 1
    assert compute_sequence_interval(0, 10, 1e-3)[0] == 0.0
    assert compute_sequence_interval(10, 10, 1e-3)[1] == 1.0


def test_nothing_is_decided_before_the_limit_and_undecided_at_it():
    rule = ConfidenceSequence(0.05, 1e-3)
    assert not decide(rule, [205], [4096], limit=8192).is_final
    decision = decide(rule, [205, 205], [4096, 4096], limit=8192)
    assert (decision.is_final, decision.is_significant) == (True, -1)
    assert (decision.n_trials, decision.n_extreme) == (8192, 410)


def build_recount(flags):
    """Build a function that counts flags again, shape (n_comparisons, n_trials), trial by trial if few."""

    def recount(first, n, indices):
        selected = flags[indices, first : first + n].T
        return selected if n <= SINGLE_TRIALS else selected.sum(axis=0, keepdims=True)

    return recount


def build_recount_of_one(flags):
    return build_recount(np.asarray(flags)[None])


def compute_p(rule, n_extreme, n_trials, recount, *, limit):
    """Find the trial at which one comparison stops, and return its p."""
    block = find_hidden_blocks(rule, n_extreme, n_trials)
    trial = NOT_YET
    if block.has_come:
        target = np.array([0]), np.array([block.ordinals])
        [(_, [trial])] = locate_exceedances(int(block.first), int(block.n_trials), *target, recount)
    return compute_sequential_p(rule, n_extreme, n_trials, trial, limit=limit)


def test_besag_and_clifford_find_the_very_trial():
    rng = np.random.default_rng(4)
    for _ in range(200):
        flags = rng.random(rng.integers(50, 5000)) < rng.uniform(0.001, 0.5)
        h, size = int(rng.integers(1, 12)), int(rng.integers(1, 300))
        starts = range(0, len(flags), size)
        result = compute_p(
            BesagClifford(h), [int(flags[s : s + size].sum()) for s in starts],
            [len(flags[s : s + size]) for s in starts], build_recount_of_one(flags), limit=len(flags),
        )  # fmt: skip
        extreme_trials = np.flatnonzero(flags)
        if len(extreme_trials) >= h:
            assert result.n_trials == extreme_trials[h - 1] + 1
            assert result.p_value == h / (extreme_trials[h - 1] + 1)
            assert result.is_early
        else:
            assert result.p_value == (len(extreme_trials) + 1) / (len(flags) + 1)
            assert not result.is_early


def test_the_partition_into_blocks_changes_no_sequential_p():
    flags = np.random.default_rng(5).random(2**15) < 0.003
    results = {
        float(compute_p(
            BesagClifford(20), flags.reshape(-1, size).sum(axis=1), np.full(len(flags) // size, size),
            build_recount_of_one(flags), limit=len(flags),
        ).p_value)
        for size in (256, 1024, 4096, 2**15)
    }  # fmt: skip
    assert len(results) == 1


def test_besag_and_clifford_are_valid_at_every_level():
    """P(p <= alpha) <= alpha where the exceedance rate itself is uniform: the null."""
    rng, h, limit, replications = np.random.default_rng(6), 5, 400, 20_000
    rates = rng.random(replications)
    values = np.empty(replications)
    for r, rate in enumerate(rates):
        extreme_trials = np.flatnonzero(rng.random(limit) < rate)
        values[r] = (
            h / (extreme_trials[h - 1] + 1) if len(extreme_trials) >= h else (len(extreme_trials) + 1) / (limit + 1)
        )
    for alpha in (0.01, 0.05, 0.1, 0.5):
        size = np.mean(values <= alpha)
        assert size <= alpha + 4 * math.sqrt(alpha * (1 - alpha) / replications)


def test_peeking_would_not_be_valid():
    """The rule that STATISTICS warns of: stopping at the first look with (k + 1) / (n + 1) <= alpha."""
    rng, replications = np.random.default_rng(7), 20_000
    rates = rng.random(replications)
    counts = np.zeros(replications, int)
    rejected = np.zeros(replications, bool)
    for n in range(100, 2001, 100):
        counts += rng.binomial(100, rates)
        rejected |= (counts + 1) / (n + 1) <= 0.05
    assert rejected.mean() > 0.055


def test_many_places_in_one_block_are_found_together():
    rng = np.random.default_rng(12)
    flags = rng.random((40, 5000)) < rng.uniform(0.01, 0.5, (40, 1))
    ranges = []

    def recount(first, n, indices):
        ranges.append(n)
        return build_recount(flags)(first, n, indices)

    targets = np.array([rng.integers(1, flags[k].sum() + 1) for k in range(40)])
    trials = {
        k: trial
        for indices, trials_of_block in locate_exceedances(0, 5000, np.arange(40), targets, recount)
        for k, trial in zip(indices, trials_of_block, strict=True)
    }
    assert trials == {k: int(np.flatnonzero(flags[k])[n - 1]) + 1 for k, n in enumerate(targets)}
    assert ranges.count(313) <= 16  # the sixteen parts, once
    assert len(ranges) < 40 * 11


@pytest.mark.parametrize("length", [1, 63, 64, 65, 127, 1000, 1023, 1025, 1089, 4097, 5008, 5009])
def test_blocks_of_any_length_are_searched_to_their_last_trial_and_no_further(length):
    first = 777
    flags = np.random.default_rng(length).random(first + length + 5000) < 0.1
    flags[first + length - 1 :] = True  # the last trial of the block, and all that come after it
    places = np.flatnonzero(flags[first : first + length])

    def recount(start, n, indices):
        assert first <= start < start + n <= first + length
        return build_recount(np.tile(flags, (len(places), 1)))(start, n, indices)

    indices = np.arange(len(places))
    trials = {
        k: trial
        for solved, stops in locate_exceedances(first, length, indices, indices + 1, recount)
        for k, trial in zip(solved, stops, strict=True)
    }
    assert [trials[k] for k in indices] == (first + places + 1).tolist()
    with pytest.raises(InputError, match="counted again"):  # one more than there are
        list(locate_exceedances(first, length, indices[:1], indices[:1] + len(places) + 1, recount))


def test_a_place_not_looked_for_yet_bounds_p_from_above():
    rng = np.random.default_rng(13)
    for _ in range(100):
        flags = rng.random(4000) < rng.uniform(0.005, 0.5)
        blocks = flags.reshape(-1, 500).sum(axis=1)
        trials = np.full(8, 500)
        if not (block := find_hidden_blocks(BesagClifford(10), blocks, trials)).has_come:
            continue
        bounded = compute_sequential_p(BesagClifford(10), blocks, trials, NOT_YET, limit=4000)
        exact = compute_p(BesagClifford(10), blocks, trials, build_recount_of_one(flags), limit=4000)
        assert exact.p_value <= bounded.p_value == 10 / (block.first + block.ordinals)


def test_the_mean_number_of_trials_is_h_over_p():
    rng, h, p = np.random.default_rng(8), 10, 0.05
    used = [np.flatnonzero(rng.random(2000) < p)[h - 1] + 1 for _ in range(2000)]
    assert np.mean(used) == pytest.approx(h / p, rel=0.03)


def test_a_real_comparison_stops_at_the_trial_that_the_kernel_says():
    rng = np.random.default_rng(11)
    counts = Counts.from_scores({"a": rng.integers(0, 50, 60), "b": rng.integers(0, 50, 60)})
    panel = build_panels(counts, SwapUnits.from_counts(counts, 0), [find_metric("mean").bind(counts)], [(0, 1)])[
        0
    ].panel

    flags = np.array([panel.tally(first=t, n_trials=1).counts[0, 0, 2] for t in range(8192)])
    blocks = [int(panel.tally(first=first, n_trials=4096).counts[0, 0, 2]) for first in (0, 4096)]
    by_trial = np.concatenate(
        [count_by_trial(panel, run=0, first=t, n_trials=1024)[:, 0, 0, 2] for t in range(0, 8192, 1024)]
    )
    assert by_trial.tolist() == flags.tolist()
    h = int(flags.sum()) - 3
    assert h > 30
    result = compute_p(BesagClifford(h), blocks, [4096, 4096], build_recount_of_one(flags), limit=2**20)
    assert result.n_trials == np.flatnonzero(flags)[h - 1] + 1


@pytest.mark.parametrize(
    ("h", "recount"),
    [
        (3, lambda first, n, some: np.zeros((min(n, 64), 1))),  # none of them is there any more
        (1, lambda first, n, some: np.zeros((min(n, 64), 1))),
        (2, lambda first, n, some: np.arange(first, first + min(n, 64))[:, None] == 4095),  # one where two were
    ],
)
def test_counts_that_changed_in_between_are_refused(h, recount):
    with pytest.raises(InputError, match="trials 0 to 4095 were counted again with different counts"):
        compute_p(BesagClifford(h), [5], [4096], recount, limit=4096)


def test_many_comparisons_at_once_stop_where_each_alone_would():
    rng = np.random.default_rng(10)
    tallies = rng.binomial(4096, rng.uniform(0, 0.1, (3, 7)), (20, 3, 7))
    for rule in (BesagClifford(500), ConfidenceSequence(0.05, 1e-3)):
        together = find_stopping_block(rule, tallies, np.full(20, 4096))
        for cell in np.ndindex(3, 7):
            assert together[cell] == find_stopping_block(rule, tallies[(slice(None), *cell)], np.full(20, 4096))


def test_the_rules_stop_by_default_as_documented():
    # docs: h = 10; alpha = 0.05 at a resampling risk of 1e-3 (Ding, Gandy & Hahn 2020)
    assert BesagClifford() == BesagClifford(10)
    assert ConfidenceSequence() == ConfidenceSequence(0.05, 1e-3)


def test_a_rule_takes_the_smallest_and_largest_number_and_no_other():
    assert parse_rule("besag-clifford:h=1", 0.05) == BesagClifford(1)
    assert parse_rule("besag-clifford:h=281474976710656", 0.05) == BesagClifford(2**48)
    for value in (0, 2**48 + 1):
        with pytest.raises(InputError, match="whole number from 1"):
            parse_rule(f"besag-clifford:h={value}", 0.05)


@pytest.mark.parametrize(("n", "alpha"), [(99, 0.29), (99, 0.07), (999, 0.05), (99, 0.57), (49, 0.14)])
def test_the_exceedances_that_settle_a_verdict_are_those_of_which_p_as_computed_is_above_alpha(n, alpha):
    """alpha (n + 1) is not exact: 0.29 * 100 < 29, although (28 + 1) / 100 <= 0.29 as computed."""
    needed = next(k for k in range(n + 1) if (k + 1) / (n + 1) > alpha)
    for k in range(n + 1):
        expected = needed * (n + 1) / (k + 1) if k >= needed else (n - needed + 1) * (n + 1) / (n - k + 1)
        assert compute_settled_after(k, n, alpha) == pytest.approx(expected, rel=1e-15)


def test_the_lower_end_is_found_however_small_p_is():
    low, high = compute_sequence_interval(3, 2**20, 1e-3)
    for end in (low, high):
        assert log_likelihood(3, 2**20, end) == pytest.approx(math.log(1e-3), abs=1e-5)


def solve_interval(k, n, epsilon):
    """Return the interval by SciPy's root of the formula, to an absolute error of 1e-15."""
    from scipy import optimize

    def above(p):
        return float(log_likelihood(k, n, p)) - math.log(epsilon)

    low = 0.0 if k == 0 else optimize.brentq(above, 5e-324, k / n, xtol=1e-15)
    return low, 1.0 if k == n else optimize.brentq(above, k / n, 1 - 2.0**-53, xtol=1e-15)


def test_intervals_of_many_are_those_of_each_and_those_of_a_root_finder():
    rng = np.random.default_rng(14)
    n = rng.choice([1, 10, 1000, 4096, 2**20], 400)
    k = np.minimum((n * rng.choice([0, 0.001, 0.05, 0.5, 0.99, 1], 400)).astype(int) + rng.integers(0, 3, 400), n)
    low, high = compute_sequence_interval(k, n, 1e-3)
    for index in range(400):
        alone = compute_sequence_interval(k[index], n[index], 1e-3)
        assert alone == (low[index], high[index])  # whatever stands beside it
        if k[index] < n[index] - 1:
            assert alone == pytest.approx(solve_interval(k[index], n[index], 1e-3), rel=1e-9, abs=2e-15)


def test_rules_say_of_many_what_they_say_of_each():
    rng = np.random.default_rng(15)
    trials = np.array([4096, 12288, 3616])[:, None] * (np.arange(3)[:, None] < rng.integers(1, 4, 60))
    extreme = rng.binomial(trials, rng.choice([1e-4, 0.002, 0.05, 0.4], 60))
    trials_found = np.full(60, NOT_YET)
    for rule, say, some in (
        (BesagClifford(10), lambda *a: compute_sequential_p(*a[:3], a[3], limit=20_000), ("is_final", "n_trials", "p_value", "is_early")),
        (ConfidenceSequence(), lambda *a: decide(*a[:3], limit=20_000), ("is_final", "n_trials", "is_significant", "p_low", "p_high")),
    ):  # fmt: skip
        many = say(rule, extreme, trials, trials_found)
        for k in range(60):
            whole = trials[:, k] > 0
            alone = say(rule, extreme[whole, k], trials[whole, k], NOT_YET)
            assert all(getattr(many, name)[k] == getattr(alone, name) for name in some)


def test_no_blocks_do_not_stop():
    assert find_stopping_block(BesagClifford(1), np.zeros((0, 2)), []).tolist() == [-1, -1]
    assert not compute_sequential_p(BesagClifford(1), [], [], NOT_YET, limit=10).is_final
    assert compute_saving(5, 10) == 0.5
