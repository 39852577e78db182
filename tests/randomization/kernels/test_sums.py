"""Tests of sums over swapped units, on every code path, against a plain product of bits and values."""

import threading

import numpy as np
import pytest
from builders import build_panel, build_rng
from hypothesis import given, settings
from hypothesis import strategies as st

from sigdask.execution.run import limit_blas_threads
from sigdask.metrics.forms import Ratios
from sigdask.randomization.kernels import sums
from sigdask.randomization.stream import draw_swap_bits

MEAN = Ratios(((1, 0),), ((0, 1),))


@pytest.fixture(params=[sums.MAX_PLANES, 64, 0], ids=["both", "planes", "tables"])
def path(request, monkeypatch):
    """Force each way to sum."""
    monkeypatch.setattr(sums, "MAX_PLANES", request.param)
    sums._layouts.clear()
    yield request.param
    sums._layouts.clear()


def compute_moved(panel, **options):
    """Return the sums that swaps move for each system and field, relative to the first system."""
    arranged = sums.get_layout(panel)
    out = sums.compute_moved_sums(panel, arranged, **options)
    full = np.zeros((*arranged.column_of.shape, out.shape[1]), np.int64)
    for s, f in np.argwhere(arranged.column_of >= 0):
        full[s, f] = out[arranged.column_of[s, f]]
    return full


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), n_items=st.integers(1, 300), size=st.sampled_from([1, 3, 100, 10**6, 10**15]))
def check_all_units(seed, n_items, size):
    rng = build_rng(seed)
    values = rng.integers(-size, size + 1, (n_items, 3, 2)) * (rng.random((n_items, 3, 1)) < 0.3)
    panel = build_panel(values, [MEAN])
    sums._layouts.clear()
    bits = draw_swap_bits(panel.key, run=0, first=11, n_trials=50, n_units=n_items).astype(np.int64)
    expected = np.einsum("tu,usf->sft", bits, values - values[:, :1])
    assert (compute_moved(panel, run=0, first=11, n_trials=50) == expected).all()


def test_moved_sums_are_the_product_of_swaps_and_values(path):
    check_all_units()


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**31), size=st.sampled_from([2, 10**4, 10**15, 2**54])
)  # the last beyond what doubles hold)
def check_sparse(seed, size):
    # few discordant units, anywhere in 40 columns of 128
    rng = build_rng(seed)
    values = np.zeros((5000, 3, 2), np.int64)
    units = rng.choice(5000, 25, replace=False)
    values[units] = rng.integers(-size, size + 1, (25, 3, 2))
    panel = build_panel(values, [MEAN])
    sums._layouts.clear()
    bits = draw_swap_bits(panel.key, run=1, first=2**32 - 5, n_trials=10, n_units=5000).astype(np.int64)
    expected = np.einsum("tu,usf->sft", bits, values - values[:, :1])
    assert (compute_moved(panel, run=1, first=2**32 - 5, n_trials=10) == expected).all()


def test_units_far_apart_are_summed_at_their_own_addresses(path):
    check_sparse()


def test_weighted_sums_of_32_bit_columns_may_need_64():
    # NumPy 1.26 multiplies an int32 array by a 0-dimensional int64 in 32 bits: 100 x 3e7 is lost
    values = np.zeros((40, 2, 2), np.int64)
    values[:, 1, 0] = 10**7
    panel = build_panel(values, [MEAN])
    arranged = sums.get_layout(panel)
    assert arranged.get_dtype() == np.int32
    assert arranged.get_dtype(100) == np.int64
    out = np.empty((2, 50), np.int64)
    sums.sum_fields(arranged, sums.compute_moved_sums(panel, arranged, run=0, first=0, n_trials=50), [0], [100], out)
    bits = draw_swap_bits(panel.key, run=0, first=0, n_trials=50, n_units=40)
    assert out[1].tolist() == (bits.sum(1) * 10**9).tolist()


def test_blas_keeps_to_one_thread_in_any_thread_and_whichever_ends_first():
    from threadpoolctl import threadpool_info

    def count_threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    before, seen = count_threads(), []
    with limit_blas_threads():
        pass  # the main thread has set a limit first, and lives on
    is_inside, is_alone = threading.Event(), threading.Event()

    def multiply_briefly():
        with limit_blas_threads():
            seen.append(count_threads())
            is_inside.set()
            is_alone.wait(60)

    def multiply_long():
        is_inside.wait(60)
        with limit_blas_threads():
            seen.append(count_threads())
            is_alone.set()
            brief.join()
            seen.append(count_threads())

    brief, long = threading.Thread(target=multiply_briefly), threading.Thread(target=multiply_long)
    brief.start()
    long.start()
    long.join()
    assert seen == [{1}] * 3
    assert count_threads() == before
