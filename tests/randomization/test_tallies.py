"""Tests that tallies add up, with all that they hold."""

import numpy as np
import pytest

from sigdask.randomization.tallies import Tally


def build_tally(n_trials, extreme, trials=None):
    return Tally(n_trials, np.full((1, 2, 3), extreme), None if trials is None else np.array([trials]))


def test_a_sum_keeps_the_trials_of_each_pair_and_metric():
    partial, complete = build_tally(100, 7, [100, 250]), build_tally(50, 2)
    for total in (partial + complete, complete + partial):
        assert [total.get_n_trials(0, k) for k in (0, 1)] == [150, 300]
        assert total.n_trials == 150
        assert (total.counts == 9).all()
    summed = partial + build_tally(10, 1, [90, 10])
    assert [summed.get_n_trials(0, k) for k in (0, 1)] == [190, 260]
    assert summed.n_trials == 190


def test_tallies_of_equal_trials_add_without_a_column_of_them():
    total = build_tally(100, 7) + Tally.zero((1, 2))
    assert (total.n_trials, total.trials) == (100, None)


def test_tallies_of_other_pairs_are_refused():
    with pytest.raises(ValueError, match=r"\(1, 2, 3\) and \(2, 2, 3\)"):
        build_tally(1, 1) + Tally.zero((2, 2))


@pytest.mark.parametrize("largest", [0, 1, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**48])
def test_counts_arrive_as_they_were_sent_in_the_smallest_type(largest):
    tally = Tally(2**48, np.array([[[0, largest, 1], [3, largest // 2, 0]]], np.int64))
    sent = tally.narrow()
    assert sent.counts.dtype == np.min_scalar_type(largest)
    assert sent.widen().counts.dtype == np.int64
    assert (sent.widen().counts == tally.counts).all()
