"""Type-level metrics: the fast panel agrees with a black box that scores whole outputs."""

import numpy as np
import pytest

from sigdask.api import compare_all
from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import to_object_array
from sigdask.errors import InputError
from sigdask.metrics import metric


def type_f1(outputs, gold):
    predicted, correct = set().union(*outputs), set().union(*gold)
    n_common = len(predicted & correct)
    return 2 * n_common / (len(predicted) + len(correct)) if predicted or correct else 0.0


def type_precision(outputs, gold):
    predicted, correct = set().union(*outputs), set().union(*gold)
    return len(predicted & correct) / len(predicted) if predicted else 0.0


def type_recall(outputs, gold):
    predicted, correct = set().union(*outputs), set().union(*gold)
    return len(predicted & correct) / len(correct) if correct else 0.0


PLAIN = {"interval": "none", "cluster": "none"}  # a black box is slow: resamples cost most, and might start a cluster
FUNCTIONS = {"type-f1": type_f1, "type-precision": type_precision, "type-recall": type_recall}


def draw_term_sets(rng, n_items, n_systems, vocabulary, mean):
    """Draw sets of terms from a Zipfian vocabulary: some are everywhere, most occur once."""
    weights = 1 / np.arange(1, vocabulary + 1)
    columns = []
    for _ in range(n_systems + 1):
        draws = (rng.choice(vocabulary, rng.poisson(mean), p=weights / weights.sum()) for _ in range(n_items))
        columns.append(to_object_array([frozenset(f"t{term}" for term in terms) for terms in draws]))
    return columns


def build_counts(columns, **options):
    n_items = len(columns[0])
    return Counts(
        systems=tuple("xyzw"[: len(columns) - 1]),
        fields={"items": np.ones((n_items, 1), np.int8)},
        n_items=n_items,
        outputs=Outputs(tuple(columns[1:]), columns[0]),
        **options,
    )


@pytest.mark.parametrize("seed", range(6))
def test_counts_are_those_of_the_black_box(seed):
    rng = np.random.default_rng(seed)
    shape = [(1, 5), (7, 20), (40, 30), (130, 200), (150, 50), (30, 3)][seed]
    counts = build_counts(draw_term_sets(rng, shape[0], 3, shape[1], 1.5))
    for alternative in ("two-sided", "greater"):
        options = {"method": "randomization", "trials": 60, "alternative": alternative, **PLAIN}
        fast = compare_all(counts, metrics=list(FUNCTIONS), **options)
        slow = compare_all(
            counts, metrics=[metric(f, name=name, of="outputs") for name, f in FUNCTIONS.items()], **options
        )
        for f, s in zip(fast, slow, strict=True):
            for name in ("a", "b", "metric", "n_extreme", "n_discordant"):
                assert getattr(f, name) == getattr(s, name)
            assert (f.score_a, f.score_b) == pytest.approx((s.score_a, s.score_b), rel=1e-14)
            assert f.second_run.n_extreme == s.second_run.n_extreme


@pytest.mark.parametrize("seed", range(4))
def test_enumeration_is_that_of_the_black_box(seed):
    rng = np.random.default_rng(100 + seed)
    counts = build_counts(draw_term_sets(rng, 11, 2, 12, 1.0))
    options = {"method": "exact", **PLAIN}
    fast = compare_all(counts, metrics=list(FUNCTIONS), **options)
    slow = compare_all(counts, metrics=[metric(f, name=name, of="outputs") for name, f in FUNCTIONS.items()], **options)
    assert [(f.p_value, f.n_trials) for f in fast] == [(s.p_value, s.n_trials) for s in slow]


def test_units_subsets_and_missing_items():
    rng = np.random.default_rng(7)
    columns = draw_term_sets(rng, 60, 3, 40, 1.5)
    present = rng.random((60, 3)) < 0.9
    groups = {"document": tuple(f"d{k // 5}" for k in range(60)), "half": tuple("ab"[k % 2] for k in range(60))}
    counts = build_counts(columns, groups=groups, present=present)
    options = {"unit": "document", "by": "half", "trials": 200, "method": "randomization", **PLAIN}
    fast = compare_all(counts, metrics=["type-f1"], **options)
    slow = compare_all(counts, metrics=[metric(type_f1, name="type-f1", of="outputs")], **options)
    assert len(fast) == 6
    for f, s in zip(fast, slow, strict=True):
        assert (f.subset, f.n_items, f.n_units, f.n_extreme) == (s.subset, s.n_items, s.n_units, s.n_extreme)


def test_fewer_pairs_change_no_count():
    counts = build_counts(draw_term_sets(np.random.default_rng(3), 80, 3, 60, 2.0))
    options = {"metrics": ["type-f1"], "trials": 9000, "method": "randomization", "cluster": "none"}
    fewer = compare_all(counts, pairs=[("y", "z")], **options)
    assert fewer[0].n_extreme == next(r.n_extreme for r in compare_all(counts, **options) if (r.a, r.b) == ("y", "z"))


def test_replicates_are_refused():
    columns = draw_term_sets(np.random.default_rng(4), 40, 2, 30, 1.5)
    counts = Counts.of_replicates([build_counts(columns), build_counts([columns[0], columns[2], columns[1]])])
    with pytest.raises(InputError, match="metric 'type-f1' is of sets, which takes no replicates"):
        compare_all(counts, metrics=["type-f1"], trials=64)


def test_a_random_metric_is_an_error_that_names_it():
    values = iter(range(1000))
    functions = {"outputs": lambda outputs, gold: next(values), "sums": lambda score, items: score + next(values)}
    for of, function in functions.items():
        with pytest.raises(InputError, match="metric 'shaky' gives other values for the same outputs"):
            compare_all({"a": [1, 2], "b": [2, 1]}, metrics=[metric(function, of=of, name="shaky")], cluster="none")
