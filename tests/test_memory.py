"""Tests that no cache keeps a data set once its user has released it."""

import gc
import weakref

import numpy as np

from sigdask import compare_all
from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import to_object_array


def draw_terms(rng, n):
    return to_object_array([frozenset(rng.choice(50, 5).astype(str)) for _ in range(n)])


def test_sets_of_terms_are_kept_no_longer_than_their_results():
    rng = np.random.default_rng(1)
    outputs = Outputs((draw_terms(rng, 40), draw_terms(rng, 40)), draw_terms(rng, 40))
    counts = Counts(systems=("a", "b"), fields={}, n_items=40, outputs=outputs, suggested=("type-f1",))
    reference = weakref.ref(outputs)
    results = compare_all(counts, trials=500, cluster="none")
    assert results[0].n_trials == 500
    del counts, outputs, results  # which hold the data for their tables of units
    gc.collect()
    assert reference() is None
