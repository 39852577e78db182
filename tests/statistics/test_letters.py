"""Tests of compact letter displays, ranks and discriminative power."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.statistics.ranking_letters import (
    discriminative_power,
    find_letter_groups,
    rank_systems,
)


def insert_and_absorb(n, different):
    """Return letter groups by Piepho's (2004) own algorithm, column by column."""
    groups = [set(range(n))]
    for i, j in different:
        for group in [group for group in groups if {i, j} <= group]:
            groups.remove(group)
            for smaller in (group - {i}, group - {j}):
                if not any(smaller <= other_group for other_group in groups):
                    groups = [other_group for other_group in groups if not other_group < smaller] + [smaller]
    return sorted(map(sorted, groups))


@given(n=st.integers(1, 12), data=st.data())
def test_the_groups_are_those_of_insert_and_absorb(n, data):
    pairs = list(combinations(range(n), 2))
    different = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    assert find_letter_groups(n, different) == insert_and_absorb(n, different)


@given(n=st.integers(1, 9), data=st.data())
def test_ranges_of_ranks_and_clusters_are_those_of_counted_wins_and_losses(n, data):
    """Ranges are counted pair by pair, and clusters are cut wherever no range passes, as WMT23 describes both."""
    pairs = list(combinations(range(n), 2))
    different = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    rows = rank_systems(
        [f"s{k}" for k in range(n)], -np.arange(n, dtype=float), np.array(different, int).reshape(-1, 2)
    )
    assert [r.rank_low for r in rows] == [1 + sum(loser == k for _, loser in different) for k in range(n)]
    assert [r.rank_high for r in rows] == [n - sum(winner == k for winner, _ in different) for k in range(n)]
    assert [r.tied_with_best for r in rows] == [(0, k) not in different for k in range(n)]
    ranges = [(r.rank_low, r.rank_high) for r in rows]
    for k in range(1, n):
        is_cut = all(high < low for _, high in ranges[:k] for low, _ in ranges[k:])
        assert rows[k].cluster - rows[k - 1].cluster == is_cut


@pytest.mark.slow
def test_a_thousand_systems_get_letters():
    index = np.arange(1000)
    different = np.argwhere(index[None, :] - index[:, None] > 30)
    ranked = rank_systems([f"s{k}" for k in index], index / 7.0, different, higher_is_better=False)
    assert find_letter_groups(1000, different) == [list(range(k, k + 31)) for k in range(970)]
    assert [len(s.letters) for s in ranked[:35]] == [*range(1, 32), 31, 31, 31, 31]


def test_a_ranking_letters_the_best_first_and_shares_ranks():
    rows = rank_systems("xyzw", np.array([0.2, 0.9, 0.5, 0.9]), np.array([(1, 0), (3, 0), (2, 0)]))
    assert [(r.system, r.rank, r.letters) for r in rows] == [
        ("y", 1, ("a",)), ("w", 1, ("a",)), ("z", 3, ("a",)), ("x", 4, ("b",)),
    ]  # fmt: skip
    lower = rank_systems("xy", np.array([0.2, 0.9]), np.empty((0, 2), np.int64), higher_is_better=False)
    assert [r.system for r in lower] == ["x", "y"]


def test_discriminative_power():
    assert discriminative_power([0.05, 0.051, 0.2, 0.01], 0.05) == 0.5
    assert discriminative_power([], 0.05) == 0


def test_verdicts_that_need_too_many_groups_get_none():
    # n disjoint pairs told apart: 2^n groups, each with one of every pair
    assert len(find_letter_groups(12, [(2 * k, 2 * k + 1) for k in range(6)])) == 64
    assert find_letter_groups(40, [(2 * k, 2 * k + 1) for k in range(20)]) == []
    pairs = np.arange(40).reshape(20, 2)
    assert rank_systems([*map(str, range(40))], np.arange(40.0), pairs)[0].letters == ()


def test_scores_of_other_items_in_each_pair_give_no_ranking():
    """By construction a is above b on each common item, and both are above c; only b has the easy items."""
    easy, common, hard = np.arange(40) / 1000 + 0.9, np.arange(30) / 1000 + 0.5, np.arange(60) / 1000 + 0.2
    a = np.concatenate([np.full(40, np.nan), common + 0.1, hard])
    b = np.concatenate([easy, common, np.full(60, np.nan)])
    c = np.concatenate([easy - 0.1, common - 0.02, hard - 0.04])
    results = compare_all(
        Counts.from_scores({"a": a, "b": b, "c": c}, missing="pairwise"), metrics=["mean"], trials=999
    )
    assert results.rankings() == ()
    assert "a scores best" in str(results)
    assert "groups" not in str(results)


def test_a_family_of_one_side_has_no_ranking():
    data = Counts.from_scores({"a": [1, 2, 3], "b": [3, 3, 1], "c": [0, 0, 1]})
    assert len(compare_all(data, metrics=["mean"]).rankings()) == 1
    assert not compare_all(data, metrics=["mean"], alternative="greater").rankings()
