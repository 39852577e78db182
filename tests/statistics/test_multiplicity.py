"""Tests of adjusted p-values against R, and of the number of sets where a difference replicates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sigdask.statistics.bounds import (
    P_VALUE_ADJUSTMENTS,
    compute_trials_needed,
    enforce_step_down,
)

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@pytest.mark.parametrize(("method", "oracle"), [("holm", "padjust_holm"), ("bh", "padjust_BH")])
def test_adjusted_p_values_are_rs(method, oracle, oracles):
    o = oracles[oracle]
    assert P_VALUE_ADJUSTMENTS[method](o["inputs"]["p"]) == pytest.approx(o["expected"], rel=1e-12)


@settings(deadline=None)
@given(p=P_VALUES, data=st.data())
def test_adjustments_know_no_order_and_never_lower_p(p, data):
    order = data.draw(st.permutations(range(len(p))))
    for adjusted in P_VALUE_ADJUSTMENTS.values():
        values = adjusted(p)
        assert (values >= np.array(p) * (1 - 1e-15)).all()
        assert (values <= 1).all()
        assert adjusted([p[k] for k in order]).tolist() == [values[k] for k in order]


def test_step_down_p_values_rise_from_the_most_extreme():
    assert enforce_step_down(np.array([0.5, 0.01, 0.2, 0.1]), np.array([0, 3, 2, 1])).tolist() == [0.5, 0.01, 0.2, 0.2]


@pytest.mark.parametrize(("m", "alpha"), [(1, 0.05), (8256, 0.05), (325, 0.01), (7, 0.3)])
def test_trials_needed_are_the_fewest(m, alpha):
    n = compute_trials_needed(m, alpha)
    assert m / (n + 1) <= alpha * (1 + 1e-12)
    assert m / n > alpha
