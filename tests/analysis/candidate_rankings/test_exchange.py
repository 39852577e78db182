"""Tests of swapped ranks: counts against all arrangements in fractions, alike however they are counted."""

from fractions import Fraction

import numpy as np
import pytest

from sigdask import rankings
from sigdask.analysis.candidate_rankings import MeasureRankings
from sigdask.counts import Candidates
from sigdask.options import RankingOptions, fill_options
from sigdask.randomization.stream import compute_stream_key, draw_swap_bits


def draw_candidates(n=12, n_measures=3, seed=0, ids=True):
    rng = np.random.default_rng(seed)
    gold = rng.random(n) < 0.5
    gold[:2] = [True, False]
    scores = {f"m{k}": rng.permutation(n) + k * 3.3 * gold for k in range(n_measures)}
    return Candidates(gold.tolist(), scores, ids=[f"c{k}" for k in rng.permutation(n)] if ids else None)


def compute_precision(ranks, gold, n):
    selected = [k for k, rank in enumerate(ranks) if rank < n]
    return Fraction(int(sum(gold[k] for k in selected)), len(selected)) if selected else Fraction(0)


CUTOFFS = [2, 5, 9]


@pytest.mark.slow
def test_counts_are_those_of_fractions():
    candidates = draw_candidates()
    lists = MeasureRankings(candidates, fill_options(RankingOptions, {"n": CUTOFFS}))
    place, n = np.argsort(candidates.ids), 300
    scores = np.array([*candidates.oriented.values()])
    ranks, gold = np.argsort(np.argsort(-scores, axis=1), axis=1)[:, place], candidates.gold[place]
    key = compute_stream_key(0, "", np.array(candidates.ids)[place].tolist())
    swaps = draw_swap_bits(key, run=0, first=0, n_trials=n, n_units=len(gold))
    expected = []
    for a, b in lists.pairs:
        for cutoff in CUTOFFS:
            differences = [
                compute_precision(np.where(swapped, ranks[b], ranks[a]), gold, cutoff)
                - compute_precision(np.where(swapped, ranks[a], ranks[b]), gold, cutoff)
                for swapped in [np.zeros(len(gold), bool), *swaps]
            ]
            t, trials = differences[0], differences[1:]
            expected.append([
                sum(d >= t for d in trials), sum(d <= t for d in trials), sum(abs(d) >= abs(t) for d in trials)
            ])  # fmt: skip
    assert lists.family.tally(run=0, first=0, n_trials=n).counts[:, 0, :3].tolist() == expected


def test_the_order_of_the_file_does_not_matter_where_there_are_ids():
    candidates = draw_candidates(n=60, seed=7)
    order = np.random.default_rng(0).permutation(60)
    shuffled = Candidates(
        candidates.gold[order].tolist(),
        {measure: scores[order] for measure, scores in candidates.scores.items()},
        ids=candidates.ids[order].tolist(),
    )
    options = {"n": [5, 20], "trials": 500, "cluster": "none"}
    assert rankings(candidates, **options) == rankings(shuffled, **options)


def test_a_measure_and_its_twin_have_p_of_one():
    base = draw_candidates(n=40, n_measures=1, seed=8)
    [scores] = (column.round(-1) for column in base.scores.values())
    twins = Candidates(base.gold.tolist(), {"a": scores, "b": scores * 2})
    results = rankings(twins, n=[5, 20], trials=200, cluster="none")
    for row in results.differences:
        assert (row.difference, row.p_fisher, row.p_exchange, row.p_adjusted) == (0, 1, 1, 1)
