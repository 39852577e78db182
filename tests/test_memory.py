"""What was compared is let go: no cache holds a data set once its user has let it go."""

import gc
import weakref

import numpy as np

from sigdask import compare_all
from sigdask.counts import Counts, Outputs


def terms(rng, n):
    column = np.empty(n, object)
    column[:] = [frozenset(rng.choice(50, 5).astype(str)) for _ in range(n)]
    return column


def test_comparing_sets_of_terms_keeps_no_data_set():
    rng = np.random.default_rng(1)
    outputs = Outputs((terms(rng, 40), terms(rng, 40)), terms(rng, 40))
    counts = Counts(systems=("a", "b"), fields={}, n_items=40, outputs=outputs, suggested=("type-f1",))
    kept = weakref.ref(outputs)
    found = compare_all(counts, trials=500, cluster="none")
    assert found[0].n_trials == 500
    del counts, outputs
    gc.collect()
    assert kept() is None
