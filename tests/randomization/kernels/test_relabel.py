"""Tests of random relabellings: how rejected words are handled."""

import numpy as np
import pytest

from sigdask.randomization.kernels import labels as relabel


def shuffle_labels(words, n):
    """Shuffle labels with Lemire's unbiased draws from a stream of words."""
    labels, stream = list(range(n)), iter(words)
    for i in range(n - 1, 0, -1):
        product = next(stream) * (i + 1)
        while product % 2**32 < 2**32 % (i + 1):
            product = next(stream) * (i + 1)
        labels[i], labels[product >> 32] = labels[product >> 32], labels[i]
    return labels


@pytest.mark.parametrize("n_systems", range(1, 14))
def test_a_rejected_word_is_followed_by_the_next_one_of_the_same_calls(n_systems, monkeypatch):
    rng = np.random.default_rng(n_systems)
    stream = np.where(rng.random(400) < 0.5, 0, rng.integers(0, 2**32, 400)).astype(np.uint32)  # 0 is often rejected
    permute = getattr(relabel.permute, "build", lambda: relabel.permute)()  # before its helper is replaced
    monkeypatch.setattr(relabel, "call_philox", lambda _k, _l, _t, _r, _u, call: tuple(stream[4 * call : 4 * call + 4]))
    labels = np.arange(n_systems, dtype=np.int32)
    words, starts = np.empty((4, max(n_systems + 2, 4) // 4), np.uint32), np.array([0, n_systems])
    permute.py_func(np.zeros(2, np.uint32), np.uint64(0), np.uint32(0), 0, starts, words, labels)
    assert labels.tolist() == shuffle_labels(stream.tolist(), n_systems)
