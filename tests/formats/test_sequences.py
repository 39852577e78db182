"""Common subsequences and edit distances agree with the textbook recursion."""

from functools import cache

import numpy as np

from sigdask.formats.spans.matching import compute_edit_distances, compute_subsequence_lengths


def pack_sequences(sequences):
    starts = np.concatenate([[0], np.cumsum([len(s) for s in sequences])]).astype(np.int64)
    return np.array([code for s in sequences for code in s], np.int64), starts


def solve_recursively(a, b):
    @cache
    def solve(i, j):
        if not i or not j:
            return 0, i + j
        same = a[i - 1] == b[j - 1]
        diagonal, up, left = solve(i - 1, j - 1), solve(i - 1, j), solve(i, j - 1)
        return max(diagonal[0] + same, up[0], left[0]), min(diagonal[1] + (not same), up[1] + 1, left[1] + 1)

    return solve(len(a), len(b))


def test_they_are_the_textbook_values():
    rng = np.random.default_rng(0)
    a, b = ([rng.integers(0, 4, rng.integers(0, 9)).tolist() for _ in range(200)] for _ in range(2))
    subsequences, edits = np.empty(200, np.int64), np.empty(200, np.int64)
    compute_subsequence_lengths(*pack_sequences(a), *pack_sequences(b), subsequences)
    compute_edit_distances(*pack_sequences(a), *pack_sequences(b), edits)
    assert list(zip(subsequences.tolist(), edits.tolist(), strict=True)) == [
        solve_recursively(x, y) for x, y in zip(a, b, strict=True)
    ]
