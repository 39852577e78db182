"""Exchanged ranks: counts against all arrangements in fractions, and the same however they are counted."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sigdask.analysis.candidate_rankings.evaluation import MeasureRankings
from sigdask.analysis.candidate_rankings.spec import RankingSpec
from sigdask.api import Candidates, evaluate
from sigdask.randomization.stream.shuffles import draw_sample_ranks, draw_swap_bits


def made(n=12, n_measures=3, seed=0, ids=True):
    rng = np.random.default_rng(seed)
    gold = rng.random(n) < 0.5
    gold[:2] = [True, False]
    scores = {f"m{k}": rng.permutation(n) + k * 3.0 * gold for k in range(n_measures)}
    return Candidates.of(gold.tolist(), scores, ids=[f"c{k}" for k in rng.permutation(n)] if ids else None)


def ranks_of(panel):
    return np.argsort(panel.orders, axis=1)


def plain_precision(ranks, gold, n):
    listed = [k for k, rank in enumerate(ranks) if rank < n]
    return Fraction(int(sum(gold[k] for k in listed)), len(listed)) if listed else Fraction(0)


def plain_average(ranks, gold):
    """Average precision; candidates at one rank are tied, and all of them stand before any counts."""
    found = Fraction(0)
    for k in np.flatnonzero(gold):
        above = [j for j, rank in enumerate(ranks) if rank <= ranks[k]]
        found += Fraction(int(sum(gold[j] for j in above)), len(above))
    return found / int(gold.sum())


def plain_differences(panel, swapped):
    """Differences of one trial, by sorting everything again."""
    ranks, gold = ranks_of(panel), panel.gold.astype(int)
    found = []
    for a, b in panel.pairs:
        x, y = np.where(swapped, ranks[b], ranks[a]), np.where(swapped, ranks[a], ranks[b])
        if panel.cutoffs.size:
            found += [plain_precision(x, gold, n) - plain_precision(y, gold, n) for n in panel.cutoffs[a]]
        else:
            found.append(plain_average(x, gold) - plain_average(y, gold))
    return found


@pytest.fixture(scope="module", params=[0, 1], ids=["precision", "average precision"])
def panel(request):
    return MeasureRankings(made(), RankingSpec.from_options(n=[2, 5, 9])).swap_panels[request.param]


def test_shuffled_differences_are_those_of_rankings_sorted_again(panel):
    bits = draw_swap_bits(panel.key, run=0, first=7, n_trials=40, n_units=len(panel.gold))
    [(found, _)] = panel.iter_slabs(run=0, first=7, n_trials=40)
    expected = [[float(d) for d in plain_differences(panel, row)] for row in bits]
    np.testing.assert_allclose(found.T, expected, atol=1e-15)


def test_counts_are_those_of_fractions_ties_included(panel):
    observed = plain_differences(panel, np.zeros(len(panel.gold), bool))
    n = 300
    bits = draw_swap_bits(panel.key, run=0, first=0, n_trials=n, n_units=len(panel.gold))
    drawn = [plain_differences(panel, row) for row in bits]
    expected = [
        [
            sum(row[h] >= t for row in drawn),
            sum(row[h] <= t for row in drawn),
            sum(abs(row[h]) >= abs(t) for row in drawn),
        ]
        for h, t in enumerate(observed)
    ]
    assert panel.tally(run=0, first=0, n_trials=n).counts[:, 0, :3].tolist() == expected


def test_p_of_many_trials_is_that_of_all_arrangements():
    candidates = made(n=10, n_measures=2, seed=3)
    panel = MeasureRankings(candidates, RankingSpec.from_options(n=[3, 6])).swap_panels[0]
    observed = plain_differences(panel, np.zeros(10, bool))
    every = [plain_differences(panel, np.array(swapped)) for swapped in product([False, True], repeat=10)]
    found = evaluate(candidates, n=[3, 6], trials=40_000, cluster="none").differences
    for h, row in enumerate(found):
        exact = sum(abs(d[h]) >= abs(observed[h]) for d in every) / 2**10
        assert abs(row.p_exchange - exact) < 4 * np.sqrt(exact * (1 - exact) / 40_000) + 1e-4


def test_maxima_count_as_westfall_and_young_have_them(panel):
    tally = panel.tally(run=0, first=0, n_trials=500)
    [(found, _)] = panel.iter_slabs(run=0, first=0, n_trials=500)
    sizes = np.abs(found) * panel.scales[:, None]
    own = np.abs(panel.observed) * panel.scales
    for place, h in enumerate(panel.order):
        below = sizes[panel.order[: place + 1]].max(axis=0)
        assert tally.counts[h, 0, 3] == (sizes.max(axis=0) >= own[h] - 1e-9).sum()
        assert tally.counts[h, 0, 4] == (below >= own[h] - 1e-9).sum()


def test_scales_are_deviations_that_no_exchange_changes():
    candidates = made(n=400, n_measures=2, seed=5)
    lists = MeasureRankings(candidates, RankingSpec.from_options(n=[100]))
    panel, average = lists.swap_panels
    [(found, _), *_] = panel.iter_slabs(run=0, first=0, n_trials=4000)
    assert 1 / panel.scales[0] == pytest.approx(found[0].std(), rel=0.05)
    [(found, _), *_] = average.iter_slabs(run=0, first=0, n_trials=4000)
    assert 1 / average.scales[0] == pytest.approx(found[0].std(), rel=0.06)


@pytest.mark.parametrize("cuts", [(500,), (1, 256, 243), (100, 400)])
def test_tallies_of_any_parts_add_to_the_same(panel, cuts):
    whole, first = panel.tally(run=0, first=0, n_trials=500), 0
    total = None
    for n in cuts:
        part = panel.tally(run=0, first=first, n_trials=n)
        total, first = part if total is None else total + part, first + n
    np.testing.assert_array_equal(total.counts, whole.counts)


def test_threads_count_what_one_process_does():
    candidates = made(n=300, n_measures=3, seed=6)
    options = {"n": [20, 50], "trials": 3000, "samples": 20, "sample_size": 60}
    one, many = (evaluate(candidates, cluster=where, workers=2, **options) for where in ("none", "threads"))
    assert one == many


@pytest.mark.cluster
def test_worker_processes_count_what_one_process_does():
    candidates = made(n=300, n_measures=3, seed=6)
    options = {"n": [20, 50], "trials": 3000, "samples": 200, "sample_size": 60}
    one, many = (evaluate(candidates, cluster=where, workers=2, **options) for where in ("none", "local"))
    assert one == many


def test_the_order_of_the_file_does_not_matter_where_there_are_ids():
    candidates = made(n=60, seed=7)
    order = np.random.default_rng(0).permutation(60)
    shuffled = Candidates.of(
        candidates.gold[order].tolist(),
        {m: s[order] for m, s in zip(candidates.measures, candidates.scores, strict=True)},
        ids=candidates.ids[order].tolist(),
    )
    options = {"n": [5, 20], "trials": 500, "samples": 5, "sample_size": 20, "cluster": "none"}
    assert evaluate(candidates, **options) == evaluate(shuffled, **options)


def test_a_measure_and_its_twin_have_p_of_one():
    base = made(n=40, n_measures=1, seed=8)
    scores = base.scores[0].round(-1)
    twins = Candidates.of(base.gold.tolist(), {"a": scores, "b": scores * 2})
    found = evaluate(twins, n=[5, 20], trials=200, cluster="none")
    for row in found.differences:
        assert (row.difference, row.p_fisher, row.p_exchange, row.p_adjusted) == (0, 1, 1, 1)
    assert found.average_precision[0].p_adjusted == 1


def test_adjusted_p_is_never_below_its_own():
    found = evaluate(made(n=200, n_measures=4, seed=9), trials=400, cluster="none")
    assert all(row.p_adjusted >= row.p_exchange for row in found.differences)
    assert all(row.p_adjusted >= row.p_value for row in found.average_precision)


def test_samples_are_random_and_of_their_size():
    drawn = draw_sample_ranks((1, 2), run=0, first=0, n_trials=4000, n_units=10)
    assert drawn.shape == (4000, 10)
    first = np.argsort(drawn, axis=1)[:, 0]
    assert np.bincount(first, minlength=10) == pytest.approx(np.full(10, 400), abs=5 * 19)
    np.testing.assert_array_equal(drawn[5:9], draw_sample_ranks((1, 2), run=0, first=5, n_trials=4, n_units=10))
