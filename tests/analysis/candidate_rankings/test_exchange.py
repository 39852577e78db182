"""Tests of swapped ranks: counts against all arrangements in fractions, alike however they are counted."""

from fractions import Fraction

import numpy as np
import pytest

from sigdask import rankings
from sigdask.analysis.candidate_rankings.evaluation import MeasureRankings
from sigdask.counts import Candidates
from sigdask.options import RankingOptions, fill_options
from sigdask.randomization.stream import draw_swap_bits


def draw_candidates(n=12, n_measures=3, seed=0, ids=True):
    rng = np.random.default_rng(seed)
    gold = rng.random(n) < 0.5
    gold[:2] = [True, False]
    scores = {f"m{k}": rng.permutation(n) + k * 3.0 * gold for k in range(n_measures)}
    return Candidates.of(gold.tolist(), scores, ids=[f"c{k}" for k in rng.permutation(n)] if ids else None)


def compute_ranks(panel):
    return np.argsort(panel.orders, axis=1)


def compute_precision(ranks, gold, n):
    selected = [k for k, rank in enumerate(ranks) if rank < n]
    return Fraction(int(sum(gold[k] for k in selected)), len(selected)) if selected else Fraction(0)


def compute_average_precision(ranks, gold):
    """Return the average precision; each candidate is counted after all candidates of its rank."""
    total = Fraction(0)
    for k in np.flatnonzero(gold):
        above = [j for j, rank in enumerate(ranks) if rank <= ranks[k]]
        total += Fraction(int(sum(gold[j] for j in above)), len(above))
    return total / int(gold.sum())


def compute_differences(panel, swapped):
    """Return the differences of one trial, by sorting everything again."""
    ranks, gold = compute_ranks(panel), panel.gold.astype(int)
    differences = []
    for a, b in panel.pairs:
        x, y = np.where(swapped, ranks[b], ranks[a]), np.where(swapped, ranks[a], ranks[b])
        if panel.cutoffs.size:
            differences += [compute_precision(x, gold, n) - compute_precision(y, gold, n) for n in panel.cutoffs[a]]
        else:
            differences.append(compute_average_precision(x, gold) - compute_average_precision(y, gold))
    return differences


@pytest.fixture(scope="module", params=[0, 1], ids=["precision", "average precision"])
def panel(request):
    return MeasureRankings(draw_candidates(), fill_options(RankingOptions, {"n": [2, 5, 9]})).panels[request.param]


@pytest.mark.slow
def test_counts_are_those_of_fractions_ties_included(panel):
    observed = compute_differences(panel, np.zeros(len(panel.gold), bool))
    n = 300
    bits = draw_swap_bits(panel.key, run=0, first=0, n_trials=n, n_units=len(panel.gold))
    differences = [compute_differences(panel, row) for row in bits]
    columns = zip(*differences, strict=True)
    expected = [
        [sum(d >= t for d in column), sum(d <= t for d in column), sum(abs(d) >= abs(t) for d in column)]
        for t, column in zip(observed, columns, strict=True)
    ]
    assert panel.tally(run=0, first=0, n_trials=n).counts[:, 0, :3].tolist() == expected


def test_maxima_count_as_westfall_and_young_have_them(panel):
    tally = panel.tally(run=0, first=0, n_trials=500)
    [(differences, _)] = panel.iter_slabs(run=0, first=0, n_trials=500)
    sizes = np.abs(differences) * panel.scales[:, None]
    statistics = np.abs(panel.observed) * panel.scales
    for position, h in enumerate(panel.order):
        below = sizes[panel.order[: position + 1]].max(axis=0)
        assert tally.counts[h, 0, 3] == (below >= statistics[h] - 1e-9).sum()


@pytest.mark.parametrize("cuts", [(500,), (1, 256, 243), (100, 400)])
def test_tallies_of_any_parts_add_to_the_same(panel, cuts):
    whole, first = panel.tally(run=0, first=0, n_trials=500), 0
    total = None
    for n in cuts:
        part = panel.tally(run=0, first=first, n_trials=n)
        total, first = part if total is None else total + part, first + n
    np.testing.assert_array_equal(total.counts, whole.counts)


def test_the_order_of_the_file_does_not_matter_where_there_are_ids():
    candidates = draw_candidates(n=60, seed=7)
    order = np.random.default_rng(0).permutation(60)
    shuffled = Candidates.of(
        candidates.gold[order].tolist(),
        {m: s[order] for m, s in zip(candidates.measures, candidates.scores, strict=True)},
        ids=candidates.ids[order].tolist(),
    )
    options = {"n": [5, 20], "trials": 500, "cluster": "none"}
    assert rankings(candidates, **options) == rankings(shuffled, **options)


def test_a_measure_and_its_twin_have_p_of_one():
    base = draw_candidates(n=40, n_measures=1, seed=8)
    scores = base.scores[0].round(-1)
    twins = Candidates.of(base.gold.tolist(), {"a": scores, "b": scores * 2})
    results = rankings(twins, n=[5, 20], trials=200, cluster="none")
    for row in results.differences:
        assert (row.difference, row.p_fisher, row.p_exchange, row.p_adjusted) == (0, 1, 1, 1)
    assert results.average_precision[0].p_adjusted == 1
