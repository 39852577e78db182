"""Common subsequences and edit distances against the textbook recursion."""

from functools import cache

import numpy as np

from sigdask.formats.spans.sequences import compute_edit_distances, compute_subsequence_lengths


def packed(sequences):
    starts = np.concatenate([[0], np.cumsum([len(s) for s in sequences])]).astype(np.int64)
    return np.array([code for s in sequences for code in s], np.int64), starts


def recursive(a, b):
    @cache
    def of(i, j):
        if not i or not j:
            return 0, i + j
        same = a[i - 1] == b[j - 1]
        both, up, left = of(i - 1, j - 1), of(i - 1, j), of(i, j - 1)
        return max(both[0] + same, up[0], left[0]), min(both[1] + (not same), up[1] + 1, left[1] + 1)

    return of(len(a), len(b))


def test_they_are_the_textbook_values():
    rng = np.random.default_rng(0)
    a, b = ([rng.integers(0, 4, rng.integers(0, 9)).tolist() for _ in range(200)] for _ in range(2))
    subsequences, edits = np.empty(200, np.int64), np.empty(200, np.int64)
    compute_subsequence_lengths(*packed(a), *packed(b), subsequences)
    compute_edit_distances(*packed(a), *packed(b), edits)
    assert list(zip(subsequences.tolist(), edits.tolist(), strict=True)) == [
        recursive(x, y) for x, y in zip(a, b, strict=True)
    ]
