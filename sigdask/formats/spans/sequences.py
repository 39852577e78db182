"""Distances of many pairs of short sequences: longest common subsequence and edit distance.

Sequences lie end to end in one array of codes; sequence k is codes[starts[k] : starts[k + 1]].
"""
# ruff: noqa: ANN001, ANN201
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from sigdask.io.compiled_cache import cached_njit


@cached_njit()
def compute_subsequence_lengths(a, a_starts, b, b_starts, out):
    """Write the length of the longest common subsequence of each pair into `out`, shape (n_pairs,)."""
    for k in range(out.shape[0]):
        left, right = a[a_starts[k] : a_starts[k + 1]], b[b_starts[k] : b_starts[k + 1]]
        row = np.zeros(right.shape[0] + 1, np.int64)
        for i in range(left.shape[0]):
            diagonal = 0
            for j in range(right.shape[0]):
                above = row[j + 1]
                row[j + 1] = diagonal + 1 if left[i] == right[j] else max(above, row[j])
                diagonal = above
        out[k] = row[right.shape[0]]


@cached_njit()
def compute_edit_distances(a, a_starts, b, b_starts, out):
    """Write the edit distance (Levenshtein) of each pair into `out`, shape (n_pairs,)."""
    for k in range(out.shape[0]):
        left, right = a[a_starts[k] : a_starts[k + 1]], b[b_starts[k] : b_starts[k + 1]]
        row = np.arange(right.shape[0] + 1)
        for i in range(left.shape[0]):
            diagonal = row[0]
            row[0] = i + 1
            for j in range(right.shape[0]):
                above = row[j + 1]
                substituted = diagonal + (left[i] != right[j])
                row[j + 1] = min(above + 1, row[j] + 1, substituted)
                diagonal = above
        out[k] = row[right.shape[0]]
