"""Letters, ranks and discriminative power."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from sigdask.groups import achieved_significance, discriminative_power, letter, letter_groups, ranking


@given(n=st.integers(2, 9), data=st.data())
def test_two_systems_share_a_letter_exactly_when_they_are_not_told_apart(n, data):
    pairs = list(combinations(range(n), 2))
    apart = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    groups = letter_groups(n, apart)
    for i, j in pairs:
        assert any({i, j} <= group for group in groups) == ((i, j) not in apart)
    assert all(any(k in group for group in groups) for k in range(n))
    assert not any(one < other for one in groups for other in groups)


def test_a_ranking_letters_the_best_first_and_shares_ranks():
    rows = ranking([("x", 0.2), ("y", 0.9), ("z", 0.5), ("w", 0.9)], [("y", "x"), ("w", "x"), ("z", "x")])
    assert [(r.system, r.rank, r.letters) for r in rows] == [
        ("y", 1, ("a",)), ("w", 1, ("a",)), ("z", 3, ("a",)), ("x", 4, ("b",)),
    ]  # fmt: skip
    lower = ranking([("x", 0.2), ("y", 0.9)], [], higher_is_better=False)
    assert [r.system for r in lower] == ["x", "y"]


def test_letters_by_hand():
    assert [sorted(g) for g in letter_groups(4, [(0, 3), (1, 3)])] == [[0, 1, 2], [2, 3]]


def test_letters_do_not_run_out():
    names = [letter(k) for k in range(52 + 26 * 52)]
    assert len(set(names)) == len(names)


def test_discriminative_power_and_its_curve():
    assert discriminative_power([0.05, 0.051, 0.2, 0.01], 0.05) == 0.5
    assert discriminative_power([], 0.05) == 0
    assert achieved_significance([0.1, 0.9, 0.5]) == [0.9, 0.5, 0.1]


def test_letters_that_would_be_too_many_are_left_out():
    apart = [(k, k + 32) for k in range(32)]
    assert letter_groups(64, apart[:8]) != []
    assert letter_groups(64, apart) == []
    ranked = ranking([(str(k), -k) for k in range(64)], [(str(a), str(b)) for a, b in apart])
    assert [s.rank for s in ranked] == list(range(1, 65))
    assert {s.letters for s in ranked} == {()}
